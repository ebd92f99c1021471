"""Calls that a type checker must accept or reject: `make lint` fails if `from_index` loses the type of an argument."""

from __future__ import annotations

from typing import assert_type

from kg_retrievers import (
    CypherRetriever,
    GNNRAGRetriever,
    GraphIndex,
    NeighborhoodRetriever,
    PCSTRetriever,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
    SubgraphRAGRetriever,
    TripleSimilarityRetriever,
)


def right(index: GraphIndex, examples: list[Question]) -> None:
    """Build each method with a field of its own and one that all share."""
    retriever = SimGRAGRetriever.from_index(index, examples=examples, preset="paper", k_nodes=8, k=3, ties="break")
    assert_type(retriever, SimGRAGRetriever)
    assert_type(retriever.k_nodes, int)
    PCSTRetriever.from_index(index, pruning="gw", min_confidence=0.2)
    GNNRAGRetriever.from_index(index, model="folder", max_paths=3)
    SubgraphRAGRetriever.from_index(index, model="folder", max_triples=30)
    CypherRetriever.from_index(index, max_rows=10, on_refusal="raise")
    RelationPathRetriever.from_index(index, examples=examples, beam_width=5)
    TripleSimilarityRetriever.from_index(index, max_hops=1)
    NeighborhoodRetriever.from_index(index, max_hops=1, tags=["mine"])


def wrong(index: GraphIndex) -> None:
    """Build retrievers wrongly: an ignored error that a type checker does not report is an error itself."""
    SimGRAGRetriever.from_index(index, k_node=8)  # type: ignore[call-arg]
    SimGRAGRetriever.from_index(index, k="3")  # type: ignore[arg-type]
    SimGRAGRetriever.from_index(index, preset="papers")  # type: ignore[arg-type]
    PCSTRetriever.from_index(index, ties="break")  # type: ignore[call-arg]
    GNNRAGRetriever.from_index(index)  # type: ignore[call-arg]
