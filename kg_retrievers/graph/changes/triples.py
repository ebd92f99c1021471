"""Triples of a changed graph: which of them a graph has, and those that stay beside new ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of
from kg_retrievers.graph.changes.merge import new_ids
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.triple_order import rank_triples


def find_triples(adjacency: Adjacency, edges: Array) -> Array:
    """Return the id of each triple, -1 if the graph lacks it: int64.

    Cost: some dozens of array operations, which halve all rows at once.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails. Ids may be -1, or beyond those of the graph.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [1, 0, 0]]), 2)
        >>> find_triples(adjacency, np.array([[1, 0, 0], [0, 0, 0], [5, 0, -1]])).tolist()
        [1, -1, -1]
    """
    found = np.full(len(edges), -1, np.int64)
    known = np.flatnonzero((edges >= 0).all(axis=1) & (edges[:, 0] < len(adjacency.indptr) - 1))
    if not len(known) or not len(adjacency.labels):
        return found
    heads, relations, tails = edges[known].astype(np.int64).T
    first_triples, starts = adjacency.first_triples.astype(np.int64), adjacency.indptr[heads].astype(np.int64)
    low, last = starts, starts + first_triples[heads + 1] - first_triples[heads]
    wanted, high = label_of(relations, False), last
    while (apart := low < high).any():
        at = np.where(apart, (low + high) // 2, 0)
        labels = adjacency.labels[at]
        is_less = (labels < wanted) | ((labels == wanted) & (adjacency.neighbors[at] < tails))
        low, high = np.where(apart & is_less, at + 1, low), np.where(apart & ~is_less, at, high)
    at = np.where(low < last, low, 0)
    is_there = (low < last) & (adjacency.labels[at] == wanted) & (adjacency.neighbors[at] == tails)
    found[known[is_there]] = (low - starts + first_triples[heads])[is_there]
    return found


class ChangedTriples(NamedTuple):
    """The triples that stay, and new ones.

    Attributes:
        adjacency: All of them, by the ids of the entities and relations that stay.
        origins: The earlier id of each, -1 if it is new: int64.
        kept_ids: The id now of each triple of before, -1 if it is gone: int64.
        new_ids: The id of each new triple: int64.
    """

    adjacency: Adjacency
    origins: Array
    kept_ids: Array
    new_ids: Array


def change_triples(columns: list[Array], kept: Array, new: Array, entities: Array, relations: Array) -> ChangedTriples:
    """Leave some triples out, and sort new ones between the others.

    Cost: a few passes over the columns, and two sorts of nearly sorted triples.

    Args:
        columns: Heads, relations and tails of the triples of before.
        kept: Which of them stay: bool.
        new: Triples that are none of those that stay, each once: int, shape (m, 3).
        entities: Which entities stay: bool. Those that go have no triples.
        relations: Which relations stay: bool.
    """
    tables = [new_ids(table) for table in (entities, relations, entities)]
    given = [table[np.append(column[kept], added)] for table, column, added in zip(tables, columns, new.T, strict=True)]
    triples, ranks = rank_triples(given)
    stay = np.flatnonzero(kept)
    kept_ids, origins = np.full(len(kept), -1), np.full(len(ranks), -1)
    kept_ids[stay], origins[ranks[: len(stay)]] = ranks[: len(stay)], stay
    return ChangedTriples(Adjacency.of_triples(triples, int(entities.sum())), origins, kept_ids, ranks[len(stay) :])
