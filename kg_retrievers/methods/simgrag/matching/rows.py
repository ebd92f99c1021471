"""Reads the rows of an adjacency in compiled code."""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import half_of, label_of
from kg_retrievers.graph.columns import Array


@non_allocating
def first_not_below(values: Array, low: int, high: int, wanted: int) -> int:
    """Return the first position in `values[low:high]`, ascending, whose value is not below `wanted`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@non_allocating
def end_of_run(labels: Array, position: int, end: int) -> int:
    """Return the first position behind the entries of a row that have the label of one; they stand side by side.

    Cost: O(log(entries with the label)), so that a row takes little more than its distinct labels.
    """
    label, low, step = labels[position], position, 1
    while low + step < end and labels[low + step] == label:
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if labels[middle] == label:
            low = middle + 1
        else:
            high = middle
    return low


@non_allocating
def other_side(side: int) -> int:
    """Return the direction that a step wants, seen from its other end."""
    return side if side < 0 else 1 - side


@non_allocating
def ways(relation: int, side: int) -> tuple[int, int]:
    """Return the parts of a row to read, as a range: 0 is forward, 1 is backward, -1 is both at once."""
    if relation < 0 and side < 0:
        return -1, 0
    return (1 if side > 0 else 0), (1 if side == 0 else 2)


@non_allocating
def part_of(adjacency: Adjacency, entity: int, relation: int, way: int) -> tuple[int, int]:
    """Return the part of an entity's row with a relation (-1: any) in one of the `ways`."""
    if way < 0:
        return adjacency.indptr[entity], adjacency.indptr[entity + 1]
    low, high = half_of(adjacency, entity, way)
    if relation >= 0:
        low = first_not_below(adjacency.labels, low, high, label_of(relation, way > 0))
        high = first_not_below(adjacency.labels, low, high, label_of(relation, way > 0) + 1)
    return low, high


@non_allocating
def joined(adjacency: Adjacency, a: int, b: int, relation: int, side: int) -> bool:
    """Return whether a triple of the relation (-1: any) joins a to b, seen from a."""
    first, last = ways(relation, side)
    for way in range(first, last):
        low, high = part_of(adjacency, a, relation, way)
        if relation >= 0:  # one relation and direction: ascending neighbors
            low = first_not_below(adjacency.neighbors, low, high, b)
            high = min(low + 1, high)
        for i in range(low, high):
            if adjacency.neighbors[i] == b:
                return True
    return False
