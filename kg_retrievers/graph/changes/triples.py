"""Triples of a changed graph: some go, others come between those that stay, and nothing is sorted anew."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of
from kg_retrievers.graph.changes.rows import new_ids
from kg_retrievers.graph.changes.triple_ids import find_entries, ids_before
from kg_retrievers.graph.columns import Array, offset_type
from kg_retrievers.graph.edges import Edges
from kg_retrievers.graph.triple_order import id_type, triple_order


class Splice(NamedTuple):
    """Which items of a column stay, and where new ones are in the column that results.

    Attributes:
        kept: Which items of the column stay: bool.
        is_new: Which items of the result are new: bool.

    Example:
        >>> splice = Splice.of(4, removed=np.array([1]), at=np.array([0, 2, 4]))
        >>> splice.column(np.array([10, 11, 12, 13]), np.array([7, 8, 9])).tolist()
        [7, 10, 8, 12, 13, 9]
    """

    kept: Array
    is_new: Array

    @classmethod
    def of(cls, size: int, removed: Array, at: Array) -> Self:
        """Say what changes.

        Args:
            size: How many items the column has.
            removed: The positions of those that go, each once, in any order.
            at: The position before which each new item goes, ascending; `size` behind the last.
        """
        kept = np.ones(size, np.bool_)
        kept[removed] = False
        is_new = np.zeros(size - len(removed) + len(at), np.bool_)
        is_new[at - np.searchsorted(np.sort(removed), at) + np.arange(len(at))] = True
        return cls(kept, is_new)

    def column(self, before: Array, new: Array | int) -> Array:
        """Return the column that results, given that of before and the new items in their order."""
        column = np.empty((len(self.is_new)), before.dtype)
        column[~self.is_new] = before[self.kept]
        column[self.is_new] = new
        return column


class ChangedTriples(NamedTuple):
    """The triples that stay and new ones.

    Attributes:
        adjacency: All of them.
        origins: The earlier id of each, -1 where it is new: int64.
        kept_ids: The id now of each triple of before, -1 where it is gone: int32.
        new_ids: The id of each new triple: int32.
    """

    adjacency: Adjacency
    origins: Array
    kept_ids: Array
    new_ids: Array


def change_triples(adjacency: Adjacency, removed: Array, new: Array, entities: int, relations: int) -> ChangedTriples:
    """Leave some triples out, and put new ones between the others.

    Cost: a few passes over the columns; only the new triples are sorted.

    Args:
        adjacency: The triples of before.
        removed: The ids of those that go, ascending.
        new: Triples that are none of those that stay, each once: int, shape (m, 3).
        entities: How many entities there are.
        relations: How many relations there are.
    """
    count, gone = len(adjacency.backward_triples), Edges(adjacency)[removed].astype(np.int64)
    orders = triple_order(*new.T), triple_order(*new[:, ::-1].T)
    forward, backward = (new[order] for order in orders)
    entries_at = [find_entries(adjacency, forward, False)[0], find_entries(adjacency, backward, True)[0]]
    gone_at = [find_entries(adjacency, gone, back)[0] for back in (False, True)]

    of_ids = Splice.of(count, removed, ids_before(adjacency, entries_at[0], forward[:, 0]))
    kept_ids = np.full(count, -1, np.int32)
    kept_ids[of_ids.kept] = np.flatnonzero(~of_ids.is_new)
    ids = np.empty(len(new), np.int32)
    ids[orders[0]] = np.flatnonzero(of_ids.is_new)

    # A row's forward entries come before its backward ones: the order of equal rows stays.
    rows = np.argsort(np.append(forward[:, 0], backward[:, 2]), kind="stable")
    of_entries = Splice.of(2 * count, np.concatenate(gone_at), np.concatenate(entries_at)[rows])
    labels = np.append(label_of(forward[:, 1], False), label_of(backward[:, 1], True))[rows]
    behind = [_backward_entries(adjacency, *two) for two in ((gone_at[1], gone), (entries_at[1], backward))]
    changed = Adjacency(
        _starts(adjacency.indptr, new[:, ::2], gone[:, ::2], entities),
        _starts(adjacency.first_triples, new[:, 0], gone[:, 0], entities),
        of_entries.column(adjacency.neighbors, np.append(forward[:, 2], backward[:, 0])[rows]),
        of_entries.column(adjacency.labels.astype(id_type(relations), copy=False), labels),
        Splice.of(count, *behind).column(kept_ids[adjacency.backward_triples], ids[orders[1]]),
    )
    return ChangedTriples(changed, of_ids.column(np.arange(count), -1), kept_ids, ids)


def renumbered(adjacency: Adjacency, entities: Array, relations: Array) -> Adjacency:
    """Return triples with the ids of the entities and relations that stay; those that go have no triples.

    Args:
        adjacency: The triples.
        entities: Which entities stay: bool.
        relations: Which relations stay: bool.
    """
    indptr, first_triples, neighbors, labels, backward_triples = adjacency
    if not relations.all():
        kinds = new_ids(relations)
        labels = np.stack([label_of(kinds, False), label_of(kinds, True)], axis=1).ravel()[labels]
    if not entities.all():
        rows = np.append(entities, True)
        indptr, first_triples, neighbors = indptr[rows], first_triples[rows], new_ids(entities)[neighbors]
    starts, kind = offset_type(len(labels)), id_type(max(int(relations.sum()), 1))
    indptr, first_triples = indptr.astype(starts), first_triples.astype(starts)
    return Adjacency(indptr, first_triples, neighbors, labels.astype(kind, copy=False), backward_triples)


def _backward_entries(adjacency: Adjacency, entries: Array, edges: Array) -> Array:
    """Return how many backward entries come before some backward entries, or what would be some."""
    after = np.minimum(edges[:, 2] + 1, len(adjacency.indptr) - 1)
    before: Array = entries - adjacency.first_triples[after]
    return before


def _starts(starts: Array, new: Array, gone: Array, size: int) -> Array:
    """Return where each row begins once rows get new items and lose others; those behind were empty: int64."""
    lengths = np.bincount(new.ravel(), minlength=size) - np.bincount(gone.ravel(), minlength=size)
    lengths[: len(starts) - 1] += np.diff(starts)
    return np.append(0, np.cumsum(lengths))
