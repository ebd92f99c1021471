"""Adjacency: the triples by entity, in both directions, and what the labels of its entries mean.

A label says by which relation a triple leads from an entity to its neighbor, and in which direction: forward from head
to tail, backward from tail to head. The direction is the lowest bit of the label; no other file knows that. The
functions take integers and arrays alike, and compiled code may call those that `algorithms/compiled.py` lists.
"""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from kg_retrievers.graph.columns import Array

Bools = npt.NDArray[np.bool_]


class Adjacency(NamedTuple):
    """Every triple twice, once in the row of its head and once in the row of its tail.

    Attributes:
        indptr: int64, shape (entities + 1): row e is `indptr[e]:indptr[e + 1]`.
        neighbors: int32, shape (2 * triples): the entity at the other end.
        labels: int32, shape (2 * triples): `label_of(relation, False)` where e is the head,
            `label_of(relation, True)` where it is the tail; ascending in each row, and neighbors ascend within a label.
        triples: int32, shape (2 * triples): the id of the triple.
    """

    indptr: Array
    neighbors: Array
    labels: Array
    triples: Array

    @classmethod
    def of_edges(cls, edges: Array, entities: int) -> Adjacency:
        """Sort triples into rows.

        Args:
            edges: int32, shape (triples, 3): ids of head, relation and tail.
            entities: The number of entities.
        """
        heads, relations, tails = edges.T
        ids = np.arange(len(edges), dtype=np.int32)
        rows = np.concatenate([heads, tails])
        neighbors = np.concatenate([tails, heads])
        labels = np.concatenate([label_of(relations, False), label_of(relations, True)])
        order = _sorted_by(rows, labels, neighbors)
        indptr = np.zeros(entities + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=entities), out=indptr[1:])
        return cls(indptr, neighbors[order], labels[order], np.concatenate([ids, ids])[order])

    def row(self, entity: int) -> slice:
        """Return where the entries of an entity are."""
        return slice(int(self.indptr[entity]), int(self.indptr[entity + 1]))

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
        row = self.row(entity)
        first, last = row.start + np.searchsorted(self.labels[row], [label, label + 1])
        return slice(int(first), int(last))

    def has_label(self, entity: int, label: int) -> bool:
        """Return whether an entity has an entry with a label.

        Cost: O(log(degree)).
        """
        entries = self.entries_with(entity, label)
        return bool(entries.start < entries.stop)


def _sorted_by(rows: Array, labels: Array, neighbors: Array) -> Array:
    """Return the order that sorts entries by row, then label, then neighbor; no two entries are equal."""
    sizes = [int(column.max(initial=0)) + 1 for column in (rows, labels, neighbors)]
    if sizes[0] * sizes[1] * sizes[2] >= 2**63:
        return np.asarray(np.lexsort((neighbors, labels, rows)))
    codes = (rows.astype(np.int64) * sizes[1] + labels) * sizes[2] + neighbors
    return np.asarray(np.argsort(codes))  # one number an entry sorts several times faster


@overload
def label_of(relation: int, backward: bool) -> int: ...
@overload
def label_of(relation: Array, backward: bool) -> Array: ...
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


def label_count(relations: int) -> int:
    """Return how many labels a number of relations has: all of them are below it.

    Example:
        >>> label_count(4) > label_of(3, True)
        True
    """
    return 2 * relations


def label_sources(edges: Array, label: int) -> Array:
    """Return the entities that have an entry with a label, one for each triple: heads, or tails of a backward label.

    Cost: a pass over the triples.

    Args:
        edges: int, shape (triples, 3): ids of head, relation and tail.
        label: A label.

    Example:
        >>> edges = np.array([[0, 0, 1], [2, 0, 1], [2, 1, 3]])
        >>> label_sources(edges, label_of(0, False)).tolist(), label_sources(edges, label_of(1, True)).tolist()
        ([0, 2], [3])
    """
    of_relation = edges[edges[:, 1] == relation_of(label)]
    sources: Array = of_relation[:, 2 if is_backward(label) else 0]
    return sources


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
