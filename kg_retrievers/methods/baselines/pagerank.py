"""PageRankRetriever: the triples between the entities that a walk from the question's entities visits most.

T. Haveliwala: Topic-Sensitive PageRank. WWW 2002. M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and
Large Language Models in Knowledge-Graph-Based Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, section 4.1
(ablation) compares its structural features with it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.stages import MAX_K, QuestionShape, RetrievalState, Stage
from kg_retrievers.graph import Evidence

#: As many triples as SubgraphRAG retrieves.
K = 100

#: The probability of a return to the question's entities in each step: 1 less the damping factor of NetworkX's
#: function, 0.85, which the paper takes (appendix B.2).
RESTART = 0.15


class PageRankRetriever(BaseNeighborhoodRetriever):
    """Returns the triples around the question's entities whose two ends have the highest personalized PageRank.

    The score of a triple (h, r, t) is (p(h) + p(t)) / 2, in [0, 1], where p is the personalized PageRank of the
    entities, restarted at those of the question; see `personalized_pagerank`. Ties keep the order of the graph. The
    words of the question count for nothing but its entities. The method proposes no answers.

    Differs from the paper: there, PageRank is a feature of a trained network; triples are followed in either direction.

    Cost: no call of a language model; some 20 sweeps over all triples of the graph.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Spike Jonze", "born_in", "New York"), ("Her", "directed_by", "Spike Jonze")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> [document.page_content for document in PageRankRetriever.from_index(index).invoke("Who directed Her?")]
        ['Her -> directed by -> Spike Jonze', 'Spike Jonze -> born in -> New York']
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset()
    proposes_answers: ClassVar[bool] = False

    #: Always the neighbourhood of the question's entities.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The number of Documents, each of one triple.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["triple"] = "triple"
    #: How the triple of a Document is written.
    style: DocumentStyle = "triples"
    #: The probability that the walk returns to the question's entities in each step.
    restart: float = Field(default=RESTART, gt=0, lt=1)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, then rank triples."""
        return (
            Stage("link_entities", RunnableLambda(self.link_entities), ("seed_entities",)),
            Stage("rank_triples", RunnableLambda(self._rank_triples), ("answers", "documents")),
        )

    def _rank_triples(self, state: RetrievalState) -> dict[str, Any]:
        keys = state["seed_entities"]
        triples, truncated = self.triples_in_scope(keys)
        pagerank = personalized_pagerank(self.graph.adjacency, self.entity_ids(keys), restart=self.restart)
        heads, tails = self.graph.edges[triples][:, [0, 2]].T
        ranks = (pagerank[heads] + pagerank[tails]) / 2
        best = np.argsort(-ranks, kind="stable")[: state["k"]]
        facts, scores = self.facts_of(triples[best]), ranks[best].tolist()
        details = self.named(keys)
        evidence = [
            Evidence((fact,), score, truncated=truncated, details=details)
            for fact, score in zip(facts, scores, strict=True)
        ]
        return {"answers": [], "documents": self.documents_from(evidence, state["k"], state["question"])}
