"""NeighborhoodRetriever: the facts within k hops of the question's entities, the baseline of all methods.

It is the candidate set that the methods of this package choose from, as the k-hop subgraph of G. He et al.: Improving
Multi-hop Knowledge Base Question Answering by Learning Intermediate Supervision Signals (WSDM 2021, arXiv:2101.03737)
and of GNN-RAG (arXiv:2405.20139, appendix D).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.stages import QuestionShape, RetrievalState, Stage
from kg_retrievers.graph import Evidence

#: One hop: all that the graph says of the entities themselves. A second hop holds hundreds of facts in most graphs.
MAX_HOPS = 1

#: Ours. The most facts of one Document.
MAX_TRIPLES = 1_000


class NeighborhoodRetriever(BaseNeighborhoodRetriever):
    """Return the facts within `max_hops` of the question's entities, the nearest first.

    A fact is as far away as the nearer of its two entities, plus one. Its score is 1 / hops, in (0, 1]. The facts of
    the question's entities themselves score 1. A Document of several facts scores 1, as its nearest fact does. Facts at
    the same distance stand in the order of the graph. The method proposes no answers.

    `granularity="subgraph"` gives one Document with the first `max_triples` facts. "triple" gives each fact its own.
    More facts, or more than `max_nodes` entities, mark the Documents as truncated.

    Cost: no call of a language model, and linear in the edges within `max_hops`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Jackass", "directed_by", "Spike Jonze")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> print(NeighborhoodRetriever.from_index(index, max_hops=2).invoke("What of Her?")[0].page_content)
        Her -> directed by -> Spike Jonze
        Jackass -> directed by -> Spike Jonze
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"open"})
    proposes_answers: ClassVar[bool] = False

    #: Always the neighbourhood of the question's entities.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The content of one Document.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"
    #: How many hops a fact is away from the question's entities, at most.
    max_hops: int = Field(default=MAX_HOPS, ge=1)
    #: The most facts of one Document. It has no effect on single triples.
    max_triples: int = Field(default=MAX_TRIPLES, ge=1)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, then collect the facts around them."""
        return (
            Stage("link_entities", self.link_entities, ("seed_entities",)),
            Stage("collect_facts", self._collect_facts, ("answers", "documents")),
        )

    def _collect_facts(self, state: RetrievalState) -> dict[str, Any]:
        around = self.neighborhood(state["seed_entities"])
        hops_of_node = dict(zip(around.nodes.tolist(), around.hops.tolist(), strict=True))
        ends = self.graph.edges[around.triples][:, [0, 2]].tolist()
        hops = np.array([1 + min(hops_of_node[head], hops_of_node[tail]) for head, tail in ends], np.int64)
        # Facts between two entities at the rim are a hop farther.
        is_near = hops <= self.max_hops
        triples, hops = around.triples[is_near], hops[is_near]
        order = np.argsort(hops, kind="stable")
        triples, hops = triples[order], hops[order]
        truncated = around.truncated
        groups = [(hop, triples[hops == hop]) for hop in np.unique(hops).tolist()]
        if self.granularity == "subgraph":
            truncated |= len(triples) > self.max_triples
            groups = [(1, triples[: self.max_triples])] if len(triples) else []
        details = self.named(state["seed_entities"])
        evidence = []
        for hop, group in groups:
            facts = self.facts_of(group)
            evidence.append(Evidence(tuple(facts), score=1 / hop, truncated=truncated, details=details))
        return self.results(state, evidence)
