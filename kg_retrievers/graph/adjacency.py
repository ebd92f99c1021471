"""Adjacency: the triples by entity, in both directions, and what the labels of its entries mean.

A label says by which relation a triple leads from an entity to its neighbor, and in which direction: forward from head
to tail, backward from tail to head. The direction is the lowest bit of the label; no other file knows that. The
functions take integers and arrays alike, and compiled code may call those that `algorithms/compiled.py` lists.

Triples are numbered by head, then relation, then tail. So the forward entries of an entity, sorted by relation and
neighbor, are its triples in their order, and their ids need not be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from kg_retrievers.graph.columns import Array, StringTable, offset_type
from kg_retrievers.graph.triple_order import TripleColumns, blocks, id_type, order_by_tail, sort_triples

Bools = npt.NDArray[np.bool_]


class Adjacency(NamedTuple):
    """Every triple twice, once in the row of its head and once in the row of its tail.

    The row of an entity holds its forward entries, where it is the head, and then its backward entries, where it is the
    tail; each half ascends by label, and by neighbor within a label. A self-loop is in both halves of its row. All
    columns are signed integers of the narrowest type that holds them: widen them before arithmetic that may leave it.

    Attributes:
        indptr: int32, or int64 where that is too narrow, shape (entities + 1): row e is `indptr[e]:indptr[e + 1]`.
        first_triples: Of the type of `indptr`, shape (entities + 1): the triples with head e have the ids
            `first_triples[e]:first_triples[e + 1]`.
        neighbors: int32, shape (2 * triples): the entity at the other end.
        labels: int16, or int32 where that is too narrow, shape (2 * triples): `label_of(relation, False)` of a forward
            entry, `label_of(relation, True)` of a backward one.
        backward_triples: int32, shape (triples): the ids of the triples of all backward entries, row after row.
    """

    indptr: Array
    first_triples: Array
    neighbors: Array
    labels: Array
    backward_triples: Array

    @classmethod
    def of_edges(cls, edges: Array, entities: int) -> Adjacency:
        """Sort triples into rows; repeated ones are dropped.

        Args:
            edges: int, shape (triples, 3): ids of head, relation and tail.
            entities: The number of entities.
        """
        return cls.of_triples(sort_triples(list(edges.T)), entities)

    @classmethod
    def of_triples(cls, triples: TripleColumns, entities: int) -> Adjacency:
        """Make the rows of sorted triples.

        Args:
            triples: Each triple once, sorted.
            entities: The number of entities.
        """
        heads, relations, tails = triples
        count = len(heads)
        starts = offset_type(2 * count)
        first_triples, first_backward = _starts(heads, entities), _starts(tails, entities)
        ids = order_by_tail(triples)
        neighbors = np.empty(2 * count, np.int32)
        labels = np.empty(2 * count, id_type(int(relations.max(initial=0)) + 1))
        for block in blocks(count):
            positions, by_tail = np.arange(block.start, block.stop), ids[block]
            forward = positions + first_backward[heads[block]]
            neighbors[forward], labels[forward] = tails[block], label_of(relations[block], False)
            backward = positions + first_triples[tails[by_tail] + 1]
            neighbors[backward], labels[backward] = heads[by_tail], label_of(relations[by_tail], True)
        indptr = (first_triples + first_backward).astype(starts)
        return cls(indptr, first_triples.astype(starts), neighbors, labels, ids)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array]) -> Self:
        """Read back what `columns` returned."""
        return cls(*(columns[f"adjacency.{name}"] for name in cls._fields))

    def columns(self) -> dict[str, Array]:
        """Return the arrays by the names of their columns."""
        return {f"adjacency.{name}": column for name, column in self._asdict().items()}

    # --- one entity ---------------------------------------------------------------------------------------------------

    def row(self, entity: int) -> slice:
        """Return where the entries of an entity are."""
        return slice(int(self.indptr[entity]), int(self.indptr[entity + 1]))

    def half(self, entity: int, backward: bool) -> slice:
        """Return where the forward entries of an entity are, or its backward ones."""
        return slice(*map(int, half_of(self, entity, backward)))

    def entries_with(self, entity: int, label: int) -> slice:
        """Return where the entries of an entity with a label are.

        Cost: O(log(degree)).

        Example:
            >>> from kg_retrievers.graph import KnowledgeGraph
            >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Adams"), ("Her", "starring", "Phoenix")])
            >>> adjacency = graph.adjacency
            >>> adjacency.neighbors[adjacency.entries_with(graph.entities.find("Her"), label_of(0, False))].tolist()
            [1, 2]
        """
        half = self.half(entity, bool(is_backward(label)))
        if not 0 <= label < np.iinfo(self.labels.dtype).max:
            return slice(half.start, half.start)
        first, last = self.labels[half].searchsorted(np.array([label, label + 1], self.labels.dtype)).tolist()
        return slice(half.start + first, half.start + last)

    def has_label(self, entity: int, label: int) -> bool:
        """Return whether an entity has an entry with a label.

        Cost: O(log(degree)).
        """
        entries = self.entries_with(entity, label)
        return bool(entries.start < entries.stop)

    def row_triples(self, entity: int) -> Array:
        """Return the ids of the triples of an entity, one for each entry of its row, in their order: int32."""
        row = self.row(entity)
        return self.triples_of(np.arange(row.start, row.stop), entity)

    # --- many entities ------------------------------------------------------------------------------------------------

    def ranges_with(self, entities: Array, label: int) -> tuple[Array, Array]:
        """Return where the entries with a label begin and end in the rows of several entities.

        Cost: some dozens of array operations: one binary search for all rows at once.
        """
        if len(entities) == 1:  # most walks are from one entity at a time, and are mined by the thousand
            one = self.entries_with(int(entities[0]), label)
            return np.array([one.start]), np.array([one.stop])
        low, high = half_of(self, entities, bool(is_backward(label)))
        firsts = _first_not_below(self.labels, low, high, label)
        return firsts, _first_not_below(self.labels, firsts, high, label + 1)

    def triples_of(self, entries: Array, entities: Array | int) -> Array:
        """Return the ids of the triples of entries: int32.

        Args:
            entries: Positions of entries, integers of shape (n).
            entities: The entity of the row of each, or the one of all.

        Example:
            >>> adjacency = Adjacency.of_edges(np.array([[1, 0, 2], [0, 0, 1], [1, 1, 0]]), 3)
            >>> adjacency.triples_of(np.arange(6), np.array([0, 0, 1, 1, 1, 2])).tolist()
            [0, 2, 1, 2, 0, 1]
        """
        behind = entries - self.first_triples[entities + 1]
        ids = np.asarray(entries - self.indptr[entities] + self.first_triples[entities])
        backward = np.flatnonzero(ids >= self.first_triples[entities + 1])
        ids[backward] = self.backward_triples[behind[backward]]
        return ids.astype(np.int32, copy=False)

    # --- the whole graph ----------------------------------------------------------------------------------------------

    def entries_labelled(self, labels: int | Array) -> tuple[Array, Array]:
        """Return the entries with a label, or one of several, in all rows, ascending, and the entity of each.

        Cost: a pass over the labels, 2 bytes an entry, and a binary search for each entry that is found.

        Example:
            >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [2, 0, 1], [2, 1, 0]]), 3)
            >>> entries, entities = adjacency.entries_labelled(label_of(0, False))
            >>> entities.tolist(), adjacency.neighbors[entries].tolist()
            ([0, 2], [1, 1])
        """
        entries = np.flatnonzero(np.isin(self.labels, labels) if np.ndim(labels) else self.labels == labels)
        return entries, self.entities_of(entries)

    def entities_of(self, entries: Array) -> Array:
        """Return the entity of the row of each entry: int64."""
        return self.indptr.searchsorted(entries.astype(self.indptr.dtype), "right") - 1


def _starts(rows: Array, size: int) -> Array:
    """Return where each of so many rows begins, given the row of each item: int64."""
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
    return starts


def _first_not_below(labels: Array, low: Array, high: Array, label: int) -> Array:
    """Return the first position of each range, sorted, whose label is not below one."""
    while (apart := low < high).any():
        middle = low + (high - low) // 2
        below = labels[np.where(apart, middle, 0)] < label
        low, high = np.where(apart & below, middle + 1, low), np.where(apart & ~below, middle, high)
    return low


# --- entries: for compiled code too -----------------------------------------------------------------------------------


def half_of(adjacency: Adjacency, entity: Any, backward: Any) -> tuple[Any, Any]:
    """Return where the forward entries of an entity, or its backward ones, begin and end.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0]]), 2)
        >>> adjacency.half(0, False), adjacency.half(0, True)
        (slice(0, 2, None), slice(2, 3, None))
    """
    begin, end = adjacency.indptr[entity], adjacency.indptr[entity + 1]
    middle = begin + (adjacency.first_triples[entity + 1] - adjacency.first_triples[entity])
    return (middle, end) if backward else (begin, middle)


def triple_of(adjacency: Adjacency, entity: Any, entry: Any) -> Any:
    """Return the id of the triple of an entry in the row of an entity.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0]]), 2)
        >>> [int(triple_of(adjacency, 0, entry)) for entry in range(3)]
        [0, 1, 2]
    """
    id = entry - adjacency.indptr[entity] + adjacency.first_triples[entity]
    after = adjacency.first_triples[entity + 1]
    return id if id < after else adjacency.backward_triples[entry - after]


# --- labels: for compiled code too ------------------------------------------------------------------------------------


@overload
def label_of(relation: int, backward: int) -> int: ...
@overload
def label_of(relation: Array, backward: int) -> Array: ...
@overload
def label_of(relation: Array, backward: Bools) -> Array: ...
def label_of(relation: Any, backward: Any) -> Any:
    """Return the label of a relation, crossed from head to tail, or `backward` from tail to head.

    Example:
        >>> label_of(3, False), label_of(3, True), label_of(np.array([0, 3]), True).tolist()
        (6, 7, [1, 7])
    """
    return 2 * relation + backward


@overload
def relation_of(label: int) -> int: ...
@overload
def relation_of(label: Array) -> Array: ...
def relation_of(label: Any) -> Any:
    """Return the relation of a label.

    Example:
        >>> relation_of(7), relation_of(np.array([1, 6])).tolist()
        (3, [0, 3])
    """
    return label >> 1


@overload
def is_backward(label: int) -> bool: ...
@overload
def is_backward(label: Array) -> Bools: ...
def is_backward(label: Any) -> Any:
    """Return whether a label crosses its relation from tail to head.

    Example:
        >>> is_backward(7), is_backward(np.array([1, 6])).tolist()
        (True, [True, False])
    """
    return (label & 1) == 1


@overload
def reversed_label(label: int) -> int: ...
@overload
def reversed_label(label: Array) -> Array: ...
def reversed_label(label: Any) -> Any:
    """Return the label of the same relation, crossed the other way.

    Example:
        >>> reversed_label(7), reversed_label(np.array([1, 6])).tolist()
        (6, [0, 7])
    """
    return label ^ 1


def translated_label(label: int, names: StringTable, others: StringTable) -> int:
    """Return the label of the relation of the same name in another graph; below 0 where that graph lacks it.

    Args:
        label: The label in one graph; one below 0 stays.
        names: The relations of that graph.
        others: The relations of the other graph.
    """
    return label if label < 0 else label_of(others.find(names[relation_of(label)]), is_backward(label))


def label_count(relations: int) -> int:
    """Return how many labels a number of relations has: all of them are below it.

    Example:
        >>> label_count(4) > label_of(3, True)
        True
    """
    return 2 * relations


def entries_between(firsts: Array, lasts: Array, most: int | None = None) -> tuple[Array, Array]:
    """Return the entries of several ranges, one range after the other, and the position of the range of each.

    Args:
        firsts: Where each range starts.
        lasts: Where each range ends, that entry excluded.
        most: The most entries in all; further ones are left out.

    Example:
        >>> entries, ranges = entries_between(np.array([2, 7]), np.array([4, 9]), most=3)
        >>> entries.tolist(), ranges.tolist()
        ([2, 3, 7], [0, 0, 1])
    """
    counts = lasts - firsts
    before = np.cumsum(counts) - counts
    if most is not None:
        counts = np.clip(most - before, 0, counts)
    entries = np.arange(int(counts.sum())) + np.repeat(firsts - before, counts)
    return entries, np.repeat(np.arange(len(counts)), counts)
