"""The shortest chains of facts between two entities, found from both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.deadline import check_deadline
from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.columns import Array, distinct, entries_between

#: The most chains that are looked at.
MOST_CHAINS = 1_000

#: Returns for entities whether chains may pass through them, bool, (n).
Passes = Callable[[Array], Array]


class Chain(NamedTuple):
    """A walk from one entity to another that passes no entity twice.

    Attributes:
        triples: The ids of its facts, in the order of the walk.
        entities: The ids of its entities, one more than facts.
    """

    triples: tuple[int, ...]
    entities: tuple[int, ...]


class _Side:
    """How far entities are from some, level by level: -1 if not reached, -2 if no chain may pass through them."""

    def __init__(self, adjacency: Adjacency, starts: Array, passes: Passes) -> None:
        self._adjacency, self._passes = adjacency, passes
        self.distances = np.full(len(adjacency.indptr) - 1, -1, np.int8)
        self.distances[starts] = 0
        self._reached, self.level = starts, 0

    @property
    def frontier(self) -> Array:
        """The entities of the last level, ascending. They are sorted when they are first asked for."""
        self._reached = distinct(self._reached)
        return self._reached

    @property
    def cost(self) -> int:
        """How many adjacency entries the next level looks at."""
        indptr, frontier = self._adjacency.indptr, self.frontier
        return int((indptr[frontier + 1] - indptr[frontier]).sum())

    def grow(self) -> Array:
        """Reach the next level by the entities that chains may pass through. Return its entities, some repeated."""
        check_deadline()
        frontier, indptr = self.frontier, self._adjacency.indptr
        if self.level:
            may_pass = self._passes(frontier)
            self.distances[frontier[~may_pass]] = -2
            frontier = frontier[may_pass]
        entries, _ = entries_between(indptr[frontier], indptr[frontier + 1])
        near = self._adjacency.neighbors[entries]
        self._reached = near[self.distances[near] == -1]
        self.level += 1
        self.distances[self._reached] = self.level
        return self._reached

    def chains_to(self, entity: int) -> Iterator[Chain]:
        """Yield the shortest chains from an entity to the nearest start, chains by entities of few facts first."""
        if self.distances[entity] == 0:
            yield Chain((), (entity,))
            return
        adjacency = self._adjacency
        row = adjacency.row(entity)
        at = np.flatnonzero(self.distances[adjacency.neighbors[row]] == self.distances[entity] - 1)
        nearer, triples = adjacency.neighbors[row][at], adjacency.row_triples(entity)[at]
        degrees = adjacency.indptr[nearer + 1] - adjacency.indptr[nearer]
        for one in np.lexsort((triples, degrees)).tolist():
            for rest in self.chains_to(int(nearer[one])):
                yield Chain((int(triples[one]), *rest.triples), (entity, *rest.entities))


def shortest_chains(
    adjacency: Adjacency,
    start: Array,
    end: int,
    *,
    max_hops: int,
    passes: Passes = lambda entities: np.ones(len(entities), bool),
    through: Array | None = None,
) -> list[Chain]:
    """Return the shortest chains between two entities, at most `MOST_CHAINS`.

    Cost: the facts around both ends, up to half of the length of the chains. With `through`, up to the whole length
    minus one.

    Args:
        adjacency: The graph.
        start: The ids of entities from which chains may start, ascending.
        end: The id of the entity at their end.
        max_hops: The most facts of a chain.
        passes: Whether chains may pass through entities.
        through: The ids of entities, ascending, of which each chain must pass through one. None for any.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [2, 0, 1], [2, 1, 3]]), 4)
        >>> shortest_chains(adjacency, np.array([0]), 3, max_hops=3)
        [Chain(triples=(0, 1, 2), entities=(0, 1, 2, 3))]
    """
    if end in start:
        return []
    one, other = _Side(adjacency, start, passes), _Side(adjacency, np.array([end], start.dtype), passes)
    if through is not None:
        return _passing(adjacency, one, other, through[passes(through)], max_hops)
    while one.level + other.level < max_hops:
        side, opposite = sorted((one, other), key=lambda side: side.cost)
        if not side.cost:
            break
        reached = side.grow()
        met = distinct(reached[opposite.distances[reached] >= 0])
        met = met[passes(met) | (opposite.distances[met] == 0)]
        if len(met):
            return _joined(adjacency, one, other, met)
    return []


def _passing(adjacency: Adjacency, one: _Side, other: _Side, through: Array, max_hops: int) -> list[Chain]:
    """Return the shortest chains that pass through one of some entities."""
    for length in range(2, max_hops + 1):
        for side in (one, other):
            while side.level < length - 1 and len(side.frontier):
                side.grow()
        ways, back = one.distances[through], other.distances[through]
        met = through[(ways > 0) & (back > 0) & (ways + back == length)]
        if found := _joined(adjacency, one, other, met):
            return found
    return []


def _joined(adjacency: Adjacency, one: _Side, other: _Side, met: Array) -> list[Chain]:
    """Return the chains that join both sides at some entities, chains of few facts first."""
    degrees = adjacency.indptr[met + 1] - adjacency.indptr[met]

    def chains() -> Iterator[Chain]:
        for middle in met[np.lexsort((met, degrees))].tolist():
            for first in one.chains_to(middle):
                for last in other.chains_to(middle):
                    entities = (*reversed(first.entities), *last.entities[1:])
                    if len({*entities}) == len(entities):
                        yield Chain((*reversed(first.triples), *last.triples), entities)

    return list(dict.fromkeys(islice(chains(), MOST_CHAINS)))
