"""Ids of triples in a graph and in a changed one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.edges import Edges
from kg_retrievers.graph.triple_order import TripleColumns, triple_order


class MergedTriples(NamedTuple):
    """The triples that stay and new ones, in order.

    Attributes:
        triples: All of them, sorted.
        origins: The earlier id of each, -1 where it is new: int64.
        kept_ids: The id now of each triple of before, -1 where it is gone: int64.
        new_ids: The id of each new triple: int64.
    """

    triples: TripleColumns
    origins: Array
    kept_ids: Array
    new_ids: Array


def merge_triples(edges: Edges, kept: Array, new: Array) -> MergedTriples:
    """Put new triples between those that stay.

    Cost: a few passes over the triples.

    Args:
        edges: The triples of before.
        kept: Which of them stay: bool, shape (n).
        new: Triples that are none of them, each once: int, shape (m, 3).
    """
    given = zip((edges.heads, edges.relations, edges.tails), new.T, strict=True)
    columns = [np.concatenate([column[kept], more]) for column, more in given]
    order = triple_order(*columns)
    ids = np.empty(len(order), np.int64)
    ids[order] = np.arange(len(order))
    staying = np.flatnonzero(kept)
    kept_ids = np.full(len(kept), -1)
    kept_ids[staying] = ids[: len(staying)]
    origins = np.append(staying, np.full(len(new), -1))[order]
    triples = TripleColumns(*(column[order] for column in columns))
    return MergedTriples(triples, origins, kept_ids, ids[len(staying) :])


def find_triples(adjacency: Adjacency, edges: Array) -> Array:
    """Return the id of each triple, -1 where it is none of the graph: int64.

    Cost: some dozens of array operations, all rows halved at once.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails; ids may be those of nothing, as -1.
    """
    found = np.full(len(edges), -1, np.int64)
    known = np.flatnonzero((edges >= 0).all(axis=1) & (edges[:, 0] < len(adjacency.indptr) - 1))
    if not len(known) or not len(adjacency.labels):
        return found
    heads, relations, tails = edges[known].T.astype(np.int64)
    wanted = label_of(relations, False)
    low, last = (adjacency.first_triples[entities].astype(np.int64) for entities in (heads, heads + 1))
    shift, high = adjacency.indptr[heads] - low, last
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = np.where(open_, middle + shift, 0)
        labels = adjacency.labels[at]
        is_less = (labels < wanted) | ((labels == wanted) & (adjacency.neighbors[at] < tails))
        low = np.where(open_ & is_less, middle + 1, low)
        high = np.where(open_ & ~is_less, middle, high)
    at = np.where(low < last, low + shift, 0)
    hit = (low < last) & (adjacency.labels[at] == wanted) & (adjacency.neighbors[at] == tails)
    found[known[hit]] = low[hit]
    return found
