"""DenseSubgraphRetriever: the whole subgraph around the question's entities, as graph networks read it.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
table 5, "Dense Subgraph", and appendix D: all facts between the 2,000 entities first by PageRank.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from langchain_core.runnables import RunnableLambda

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.stages import QuestionShape, RetrievalState, Stage
from kg_retrievers.graph import Evidence


class DenseSubgraphRetriever(BaseNeighborhoodRetriever):
    """Returns all facts between the entities around those of the question, which no method has chosen from.

    The entities are those within `max_hops` triples of the question's entities, at most `max_nodes` of them, first by
    personalized PageRank; the facts are all that the graph has between any two of them. They are one Document, the
    nearest first, of score 1; with `granularity="triple"` each is one, of score 1 / hops, in (0, 1], where a fact is as
    far away as the nearer of its two entities, plus one. The method proposes no answers.

    A Document may hold thousands of facts: give the chain a budget, `answer_chain(..., max_tokens=...)`.

    Differs from the paper: PageRank is that of the whole graph, or of a walk in large ones, not PageRank-Nibble.

    Cost: no call of a language model; linear in the edges within `max_hops`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Jackass", "directed_by", "Spike Jonze")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> print(DenseSubgraphRetriever.from_index(index).invoke("What of Her?")[0].page_content)
        Her -> directed by -> Spike Jonze
        Jackass -> directed by -> Spike Jonze
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset()
    proposes_answers: ClassVar[bool] = False

    #: Always the neighbourhood of the question's entities.
    scope: Literal["neighborhood"] = "neighborhood"
    #: What one Document holds.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, then take the subgraph around them."""
        return (
            Stage("link_entities", RunnableLambda(self.link_entities), ("seed_entities",)),
            Stage("take_subgraph", RunnableLambda(self._take_subgraph), ("answers", "documents")),
        )

    def _take_subgraph(self, state: RetrievalState) -> dict[str, Any]:
        triples, hops, truncated = self.facts_by_distance(state["seed_entities"])
        groups = [(hop, triples[hops == hop]) for hop in np.unique(hops).tolist()]
        if self.granularity == "subgraph":
            groups = [(1, triples)] if len(triples) else []
        details = self.named(state["seed_entities"])
        evidence = [
            Evidence(tuple(self.facts_of(group)), score=1 / hop, truncated=truncated, details=details)
            for hop, group in groups
        ]
        return {"answers": [], "documents": self.documents_from(evidence, state["k"], state["question"])}
