"""Changes of an adjacency: triples are found in its sorted rows, taken out of them and merged into them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of
from kg_retrievers.graph.columns import Array


class Entries(NamedTuple):
    """Entries to look up or to add, two for each triple: first those of all heads, then those of all tails.

    Attributes:
        rows: The entity in whose row the entry is.
        labels: Its label.
        neighbors: The entity at its other end.
    """

    rows: Array
    labels: Array
    neighbors: Array

    @classmethod
    def of_edges(cls, edges: Array) -> Entries:
        """Return the entries of triples, int of shape (n, 3)."""
        heads, relations, tails = edges.T
        return cls(
            np.concatenate([heads, tails]),
            np.concatenate([label_of(relations, False), label_of(relations, True)]),
            np.concatenate([tails, heads]),
        )


def positions_of(adjacency: Adjacency, entries: Entries) -> Array:
    """Return where each entry is, or would be: the first position whose entry is not less. Rows beyond are at the end.

    All entries are halved at once, so that the cost is that of a few dozen array operations.
    """
    last_row = len(adjacency.indptr) - 1
    rows = np.minimum(entries.rows, last_row)
    low, high = adjacency.indptr[rows], adjacency.indptr[np.minimum(rows + 1, last_row)]
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = np.where(open_, middle, 0)
        labels = adjacency.labels[at]
        is_less = labels < entries.labels
        is_less |= (labels == entries.labels) & (adjacency.neighbors[at] < entries.neighbors)
        low = np.where(open_ & is_less, middle + 1, low)
        high = np.where(open_ & ~is_less, middle, high)
    return low


def triples_of(adjacency: Adjacency, edges: Array) -> Array:
    """Return the id of each triple, -1 where it is none of the graph: int64.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails; ids may be those of nothing, as -1.
    """
    found = np.full(len(edges), -1, np.int64)
    known = np.flatnonzero((edges >= 0).all(axis=1) & (edges[:, 0] < len(adjacency.indptr) - 1))
    if not len(known) or not len(adjacency.triples):
        return found
    heads, relations, tails = edges[known].T
    entries = Entries(heads, label_of(relations, False), tails)
    at = positions_of(adjacency, entries)
    inside = np.minimum(at, len(adjacency.triples) - 1)
    hit = at < adjacency.indptr[heads + 1]
    hit &= (adjacency.labels[inside] == entries.labels) & (adjacency.neighbors[inside] == tails)
    found[known[hit]] = adjacency.triples[inside[hit]]
    return found


def change_adjacency(adjacency: Adjacency, removed: Array, kept: Array, added: Array, entities: int) -> Adjacency:
    """Return the adjacency of the triples that stay and of new ones behind them.

    Args:
        adjacency: The adjacency.
        removed: int, shape (n, 3): the triples that are taken out.
        kept: Which triples stay, by id: bool.
        added: int, shape (m, 3): new triples.
        entities: The number of entities, new ones included.
    """
    lost, new = Entries.of_edges(removed), Entries.of_edges(added)
    order = np.lexsort((new.neighbors, new.labels, new.rows))
    new = Entries(*(column[order] for column in new))
    stays = np.ones(len(adjacency.triples), np.bool_)
    stays[positions_of(adjacency, lost)] = False
    before = np.append(0, np.cumsum(stays))  # how many entries before each position stay
    places = before[positions_of(adjacency, new)] + np.arange(len(order))
    is_old = np.ones(int(before[-1]) + len(order), np.bool_)
    is_old[places] = False
    source = np.zeros(len(is_old), np.int32)  # where each old entry was
    source[is_old] = np.flatnonzero(stays)

    def spliced(old: Array, added: Array) -> Array:
        values: Array = old[source] if len(old) else np.empty(len(source), np.int32)
        values[places] = added
        return values

    ids = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    triples = spliced(ids[adjacency.triples], int(kept.sum()) + order % max(len(added), 1))
    counts = np.diff(adjacency.indptr, append=np.full(entities - len(adjacency.indptr) + 1, adjacency.indptr[-1]))
    counts += np.bincount(new.rows, minlength=entities) - np.bincount(lost.rows, minlength=entities)
    indptr = np.zeros(entities + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    neighbors, labels = spliced(adjacency.neighbors, new.neighbors), spliced(adjacency.labels, new.labels)
    return Adjacency(indptr, neighbors, labels, triples)
