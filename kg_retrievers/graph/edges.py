"""Edges: the triples of a graph by id, read from its adjacency."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, is_backward, label_of, relation_of
from kg_retrievers.graph.columns import Array


class Edges:
    """The triples by id, sorted by head, relation and tail. Each use reads them anew: nothing is kept.

    Args:
        adjacency: The triples by entity.

    Example:
        >>> edges = Edges(Adjacency.of_edges(np.array([[2, 0, 1], [0, 1, 2]]), 3))
        >>> len(edges), edges[1].tolist(), edges[[1, 0]].tolist(), edges.tails.tolist()
        (2, [2, 0, 1], [[2, 0, 1], [0, 1, 2]], [2, 1])
    """

    def __init__(self, adjacency: Adjacency) -> None:
        """Take the adjacency as it is."""
        self._adjacency = adjacency

    def __len__(self) -> int:
        """The number of triples."""
        return len(self._adjacency.backward_triples)

    def __getitem__(self, ids: SupportsIndex | slice | Array | list[int]) -> Array:
        """Return head, relation and tail of one triple: int32, shape (3); or of several: int32, shape (n, 3).

        Cost: a binary search for each triple; `edges[:]` takes some passes over all.
        """
        if isinstance(ids, slice):
            if ids == slice(None):
                return np.stack([self.heads, self.relations, self.tails], axis=1)
            ids = np.arange(*ids.indices(len(self)))
        wanted = np.asarray(ids)
        if wanted.dtype == np.bool_:
            wanted = np.flatnonzero(wanted)
        wanted = wanted.astype(np.int64, copy=False)  # narrow ids cannot be moved by the number of triples
        if wanted.size and not -len(self) <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"Edges holds {len(self)} triples, but got {ids}.")
        return self._rows(np.where(wanted < 0, wanted + len(self), wanted))

    def _rows(self, ids: Array) -> Array:
        adjacency = self._adjacency
        ids = ids.astype(adjacency.first_triples.dtype)
        heads = adjacency.first_triples.searchsorted(ids, "right") - 1
        entries = ids - adjacency.first_triples[heads] + adjacency.indptr[heads]
        rows = np.empty((*ids.shape, 3), np.int32)
        rows[..., 0], rows[..., 1] = heads, relation_of(adjacency.labels[entries])
        rows[..., 2] = adjacency.neighbors[entries]
        return rows

    def triple(self, id: int) -> tuple[int, int, int]:
        """Return head, relation and tail of one triple, in a quarter of the time of `edges[id]`."""
        indptr, first_triples, neighbors, labels, _ = self._adjacency
        if not 0 <= id < len(self):
            raise IndexError(f"Edges holds {len(self)} triples, but got {id}.")
        head = int(first_triples.searchsorted(first_triples.dtype.type(id), "right")) - 1
        entry = id - int(first_triples[head]) + int(indptr[head])
        return head, relation_of(int(labels[entry])), int(neighbors[entry])

    def find(self, head: int | None = None, relation: int | None = None, tail: int | None = None) -> Array:
        """Return the ids of the triples with the given parts, ascending; of all triples by default.

        Cost: a binary search at each end that is given, and a pass over the entries of the one that has fewer; a pass
        over all entries where only the relation is given.

        Example:
            >>> edges = Edges(Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 2], [3, 1, 2]]), 4))
            >>> edges.find(0).tolist(), edges.find(relation=1).tolist(), edges.find(3, None, 2).tolist()
            ([0, 1], [1, 2], [2])
        """
        adjacency = self._adjacency
        ends = [(head, tail, False), (tail, head, True)]
        found = [(end, other, self._entries(end, relation, back)) for end, other, back in ends if end is not None]
        if found:
            end, other, entries = min(found, key=lambda one: len(one[2]))
            at = np.array(entries, np.int64)
            return np.sort(adjacency.triples_of(at if other is None else at[adjacency.neighbors[at] == other], end))
        if relation is None:
            return np.arange(len(self))
        return adjacency.triples_of(*adjacency.entries_labelled(label_of(relation, False)))

    def _entries(self, entity: int, relation: int | None, backward: bool) -> range:
        """Return the entries of an entity in a direction, of one relation or of all."""
        adjacency = self._adjacency
        half = adjacency.half(entity, backward)
        found = half if relation is None else adjacency.entries_with(entity, label_of(relation, backward))
        return range(found.start, found.stop)

    @property
    def heads(self) -> Array:
        """The head of each triple: int32, shape (n)."""
        counts = np.diff(self._adjacency.first_triples)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    @property
    def relations(self) -> Array:
        """The relation of each triple: of the type of the labels, shape (n)."""
        labels: Array = self._adjacency.labels[self._is_forward]
        return relation_of(labels)

    @property
    def tails(self) -> Array:
        """The tail of each triple: int32, shape (n)."""
        tails: Array = self._adjacency.neighbors[self._is_forward]
        return tails

    @property
    def _is_forward(self) -> Array:
        """Whether each entry of the adjacency is a forward one."""
        return ~is_backward(self._adjacency.labels)
