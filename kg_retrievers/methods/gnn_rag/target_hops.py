"""Finds how far targets are from a seed, looking at as few entries as the nearer side of each step needs.

Source: S. Beamer, K. Asanovic, D. Patterson: Direction-Optimizing Breadth-First Search. SC 2012. From a hub most of a
graph is within three hops, so that the last steps are cheaper backwards, from the targets.
"""

from __future__ import annotations

import numpy as np

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array

#: Up to so many hops are kept in one byte.
MAX_NARROW = 125

# A step of an entity is its hops + 1. These are others.
_UNKNOWN, _FARTHER = 0, -1


def steps_to(adjacency: Adjacency, seed: int, targets: Array, max_hops: int) -> Array:
    """Return how far the targets are from the seed, and all entities on the shortest paths to them.

    Cost: at most the adjacency entries of the entities nearer than the farthest target, and two passes over the rows of
    the targets; where that is less, those of the targets and of their neighbors in place of the last steps.

    Args:
        adjacency: The graph, both directions.
        seed: The id of an entity.
        targets: Ids of entities, integers of shape (n).
        max_hops: How far to look, 0 or more.

    Returns:
        int8 or int32, shape (entities): 1 + the hops of the targets, and of all on a shortest path to one; of others
        the same, or 0 or -1.
    """
    size = len(adjacency.indptr) - 1
    max_hops = min(max_hops, size)
    steps = np.zeros(size, np.int8 if max_hops <= MAX_NARROW else np.int32)
    left = np.unique(targets).astype(np.int64)
    _search(adjacency, seed, left, np.zeros(len(left), np.int64), max_hops, steps, np.empty(size, np.int32))
    return steps


@compiled
def _degree(adjacency: Adjacency, entity: int) -> int:
    return int(adjacency.indptr[entity + 1] - adjacency.indptr[entity])


@compiled
def _touches(adjacency: Adjacency, entity: int, steps: Array, step: int) -> bool:
    """Tell whether an entity has a neighbor of a step."""
    for i in range(adjacency.indptr[entity], adjacency.indptr[entity + 1]):
        if steps[adjacency.neighbors[i]] == step:
            return True
    return False


@compiled
def _entries_of_neighbors(adjacency: Adjacency, entities: Array, count: int, most: int) -> int:
    """Return how many entries the neighbors of some entities have, or more than `most`."""
    total = 0
    for at in range(count):
        for i in range(adjacency.indptr[entities[at]], adjacency.indptr[entities[at] + 1]):
            total += 1 + _degree(adjacency, adjacency.neighbors[i])
            if total > most:
                return total
    return total


@compiled
def _expand(adjacency: Adjacency, steps: Array, reached: Array, first: int, last: int) -> int:
    """Reach the neighbors of the entities that were reached last; return how many are reached then."""
    count = last
    for at in range(first, last):
        u = reached[at]
        for i in range(adjacency.indptr[u], adjacency.indptr[u + 1]):
            v = adjacency.neighbors[i]
            if steps[v] == _UNKNOWN:
                steps[v] = steps[u] + 1
                reached[count] = v
                count += 1
    return count


@compiled
def _look_back_twice(adjacency: Adjacency, targets: Array, found: Array, count: int, steps: Array, step: int) -> None:
    """Find the targets that are two steps further, and all of their neighbors that are one step further."""
    for at in range(count):
        target = targets[at]
        for i in range(adjacency.indptr[target], adjacency.indptr[target + 1]):
            v = adjacency.neighbors[i]
            if steps[v] == _UNKNOWN:
                steps[v] = step + 1 if _touches(adjacency, v, steps, step) else _FARTHER
            if steps[v] == step + 1:
                found[at] = step + 2


@compiled
def _open_targets(steps: Array, left: Array, found: Array, count: int) -> int:
    """Move the targets that are not reached to the front; return how many they are."""
    still = 0
    for at in range(count):
        target = left[at]
        if steps[target] == _UNKNOWN and found[at] == 0:
            left[at], found[at], left[still] = left[still], found[still], target
            found[still] = 0
            still += 1
    return still


@compiled
def _look_back(
    adjacency: Adjacency, left: Array, found: Array, count: int, max_hops: int, steps: Array, step: int, entries: int
) -> bool:
    """Find the targets one step further, and two where these are the last ones; tell whether that is all."""
    for at in range(count):
        if _touches(adjacency, left[at], steps, step):
            found[at] = step + 1
    still = _open_targets(steps, left, found, count)
    is_all = still == 0 or step == max_hops
    if not is_all and step + 1 == max_hops and _entries_of_neighbors(adjacency, left, still, entries) < entries:
        _look_back_twice(adjacency, left, found, still, steps, step)
        is_all = True
    if is_all:
        for at in range(count):
            if found[at] > 0:
                steps[left[at]] = found[at]
    return is_all


@compiled_entry
def _search(
    adjacency: Adjacency, seed: int, left: Array, found: Array, max_hops: int, steps: Array, reached: Array
) -> None:
    """Fill in `steps`; `left` holds the targets, of which those not yet found come first, and `found` their steps."""
    steps[seed], reached[0] = 1, seed
    first, last, step, count = 0, 1, 1, len(left)
    while step <= max_hops:
        found[:count] = 0
        count = _open_targets(steps, left, found, count)
        entries, rows = 0, 0
        for at in range(first, last):
            entries += _degree(adjacency, reached[at])
        for at in range(count):
            rows += _degree(adjacency, left[at])
        if count == 0 or entries == 0:
            return
        if rows < entries and _look_back(adjacency, left, found, count, max_hops, steps, step, entries):
            return
        first, last = last, _expand(adjacency, steps, reached, first, last)
        step += 1
