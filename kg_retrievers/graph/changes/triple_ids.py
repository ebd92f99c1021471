"""Triples of a graph by their ids, and where others would be between them."""

from __future__ import annotations

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of
from kg_retrievers.graph.columns import Array


def find_triples(adjacency: Adjacency, edges: Array) -> Array:
    """Return the id of each triple, -1 where it is none of the graph: int64.

    Cost: some dozens of array operations, all rows halved at once.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails; ids may be those of nothing, as -1.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [1, 0, 0]]), 2)
        >>> find_triples(adjacency, np.array([[1, 0, 0], [0, 0, 0], [5, 0, -1]])).tolist()
        [1, -1, -1]
    """
    found = np.full(len(edges), -1, np.int64)
    known = np.flatnonzero((edges >= 0).all(axis=1))
    entries, is_there = find_entries(adjacency, edges[known], False)
    hit = known[is_there]
    found[hit] = ids_before(adjacency, entries[is_there], edges[hit, 0])
    return found


def find_entries(adjacency: Adjacency, edges: Array, backward: bool) -> tuple[Array, Array]:
    """Return the entry of each triple, or that before which it would be, and whether it is there: int64 and bool.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails from 0 on; some may be beyond those of the graph.
        backward: Whether to look in the rows of tails, and not of heads.
    """
    size = len(adjacency.indptr) - 1
    ends, relations, others = edges[:, ::-1].T if backward else edges.T
    rows, after = np.minimum(ends, size), np.minimum(ends + 1, size)
    begin, end = adjacency.indptr[rows].astype(np.int64), adjacency.indptr[after].astype(np.int64)
    middle = begin + adjacency.first_triples[after] - adjacency.first_triples[rows]
    low, last = (middle, end) if backward else (begin, middle)
    if not len(adjacency.labels):
        return low, low < last
    wanted, high = label_of(relations.astype(np.int64), backward), last
    while (open_ := low < high).any():
        at = np.where(open_, (low + high) // 2, 0)
        labels = adjacency.labels[at]
        is_less = (labels < wanted) | ((labels == wanted) & (adjacency.neighbors[at] < others))
        low = np.where(open_ & is_less, at + 1, low)
        high = np.where(open_ & ~is_less, at, high)
    at = np.where(low < last, low, 0)
    return low, (low < last) & (adjacency.labels[at] == wanted) & (adjacency.neighbors[at] == others)


def ids_before(adjacency: Adjacency, entries: Array, heads: Array) -> Array:
    """Return how many triples come before forward entries: the ids of those triples that are there.

    Args:
        adjacency: The adjacency of the graph.
        entries: Positions of forward entries, or of what would be some: int.
        heads: The head of each; may be beyond those of the graph.
    """
    rows = np.minimum(heads, len(adjacency.indptr) - 1)
    ids: Array = entries - adjacency.indptr[rows] + adjacency.first_triples[rows]
    return ids
