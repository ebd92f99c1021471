"""The adjacency of a graph as pointers, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

from kg_retrievers.algorithms.compiled import Pointer, compiled, pointer
from kg_retrievers.graph import Adjacency


class Graph(NamedTuple):
    """Pointers to the columns of an adjacency, and its sizes."""

    indptr: Pointer
    first_triples: Pointer
    neighbors: Pointer
    labels: Pointer
    backward_triples: Pointer
    entities: int
    triples: int


@compiled
def graph_pointers(adjacency: Adjacency) -> Graph:
    """Return pointers to an adjacency."""
    return Graph(
        pointer(adjacency.indptr),
        pointer(adjacency.first_triples),
        pointer(adjacency.neighbors),
        pointer(adjacency.labels),
        pointer(adjacency.backward_triples),
        len(adjacency.indptr) - 1,
        len(adjacency.backward_triples),
    )
