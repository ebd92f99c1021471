"""What the question sets of the GraphQA benchmark become: a question with a graph of its own.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630, section 4: ExplaGraphs, SceneGraphs and WebQSP.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

from kg_retrievers.datasets.types import Question
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True)
class GraphQuestion(Question):
    """A question about a graph of its own; its answers are texts, and not always keys of entities.

    `write_questions` writes it without its graph.

    Args:
        graph: The graph, which several questions may share; it may be empty.
        id: Which question it is, in the words of the set.
        in_words: Whether its answers are words to say, as "support", and no entities; nothing compares them by key.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("cannabis", "synonym of", "marijuana")])
        >>> question = GraphQuestion("Support or counter?", answers=("support",), graph=graph, id="0")
        >>> question.graph
        KnowledgeGraph(2 entities, 1 relations, 1 triples)
    """

    _: KW_ONLY
    graph: KnowledgeGraph
    id: str
    in_words: bool = False

    def with_keys(self) -> Self:
        """Return the question with keys of its graph in place of names.

        A name stands for all entities that bear it. An answer in words, or that the graph does not hold, stays; a seed
        entity that it does not hold is left out where others are there.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Q1", "capital", "Q2")], labels={"Q2": "Rome"})
            >>> GraphQuestion("What is its capital?", answers=("Rome",), graph=graph, id="0").with_keys().answers
            ('Q2',)
        """
        seeds = self._keys(self.seed_entities)
        answers = self.answers if self.in_words else self._keys(self.answers)
        known = tuple(key for key in seeds if key in self.graph.entities)
        return replace(self, seed_entities=known or seeds, answers=answers)

    def _keys(self, names: Sequence[str]) -> tuple[str, ...]:
        keys: dict[str, None] = {}
        for name in names:
            named = [name] if name in self.graph.entities else self.graph.entities_named(name)
            keys |= dict.fromkeys(named or [name])
        return tuple(keys)


def join_graphs(questions: Iterable[Question]) -> KnowledgeGraph:
    """Return all that the graphs of questions hold as one graph, in which entities with equal keys are one.

    So examples with graphs of their own, as parts of one knowledge graph, can teach a retriever: build it on the index
    of this graph, with the examples. Questions without a graph add nothing.

    Example:
        >>> first = GraphQuestion("?", graph=KnowledgeGraph.from_triples([("Her", "genre", "Drama")]), id="0")
        >>> second = GraphQuestion("?", graph=KnowledgeGraph.from_triples([("Alien", "genre", "Horror")]), id="1")
        >>> join_graphs([first, second])
        KnowledgeGraph(4 entities, 1 relations, 2 triples)
    """
    graphs = dict.fromkeys(question.graph for question in questions if isinstance(question, GraphQuestion))
    labels = {key: graph.label(key) for graph in graphs for key in graph.entities if graph.label(key) != key}
    return KnowledgeGraph.from_triples((triple for graph in graphs for triple in graph.triples()), labels=labels)
