"""What the question sets of the GraphQA benchmark become: a question with a graph of its own.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630, section 4: ExplaGraphs, SceneGraphs and WebQSP.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from kg_retrievers.datasets.types import Question
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True)
class GraphQuestion(Question):
    """A question about a graph of its own; its answers are texts, and not always keys of entities.

    `write_questions` writes it without its graph.

    Args:
        graph: The graph, which several questions may share; it may be empty.
        id: Which question it is, in the words of the set.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("cannabis", "synonym of", "marijuana")])
        >>> question = GraphQuestion("Support or counter?", answers=("support",), graph=graph, id="0")
        >>> question.graph
        KnowledgeGraph(2 entities, 1 relations, 1 triples)
    """

    _: KW_ONLY
    graph: KnowledgeGraph
    id: str
