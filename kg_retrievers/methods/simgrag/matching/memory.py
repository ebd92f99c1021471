"""The arrays of a search, and the arrays that serve one search after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array

#: How many numbers a search holds for each step, and for each node: those of `Progress` in `pointers.py`.
STEP_COLUMNS, NODE_COLUMNS = 7, 10

#: Positions in `State.counts`: entries looked at, whether to stop, whether a buffer is full, combinations kept, the
#: last stamp, whether `max_bindings` left something out, facts and bindings collected, the match that is completed, -1
#: while searching, whether the matches are completed, how many were found, whether that search was stopped, where the
#: bindings of the match begin; then what the caller set: budgets for finding the matches and for completing each, the
#: edges of the pattern, a cost below which the k best are the best of all, how many are given, the size of the buffers.
SCANS, STOPPED, FULL, FOUND, STAMP, LEFT_OUT, FACTS, BINDINGS, MATCH, COMPLETED, TOTAL, CUT, FIRST_BINDING = range(13)
MAX_SCANS, SCANS_OF_EACH, MAX_BINDINGS, EDGES, CERTAIN_BELOW, GIVEN, CAPACITY, COUNTS = range(13, 21)


class State(NamedTuple):
    """Where the search stands; arrays that are changed in place. k matches, s steps, v nodes."""

    steps: Array  # int64, (STEP_COLUMNS, s + 1)
    nodes: Array  # int64, (NODE_COLUMNS, v)
    sets: Array  # int64, (2, (s + 1) * v): where the set of each node before each step begins and ends in `pool`
    keys: Array  # int64, (k * (s + v)): the best combinations
    costs: Array  # int64, (k + 1): their costs, ascending, and the limit; while one is completed, its own
    key: Array  # int64, (s + v): the combination at hand
    best_costs: Array  # int64, (k): their costs
    truncated: Array  # int64, (k): whether something of a match was left out
    given: Array  # int64, (n * (1 + s + v)): costs and keys of combinations that are known before the search
    counts: Array  # int64: see above
    stop: Array  # int64, (1): set from outside when the time is up
    slots: Array  # int64, (relations * levels): the best bound of each of a few options
    pool: Array  # these as in `Scratch`
    option_bounds: Array
    option_keys: Array
    bindings: Array
    facts: Array
    lower: Array
    present: Array
    reached: Array
    message: Array
    touched: Array
    stamps: Array
    is_bound: Array


class Scratch:
    """Arrays that serve one search after the other: fresh memory costs more than most searches do.

    Those with a place for each entity are zero between searches, so that the system gives memory only for what searches
    touch: at most 4 * (rows + 2) + (rows + nodes) / 8 bytes an entity, and as much again where the lists of a search
    hold all entities. A row has a place for each entity.

    Attributes:
        pool: int32, (capacity): the sets.
        option_bounds: int64, (capacity): the bound of each option.
        option_keys: int64, (capacity): relation * width + code, where the width is above every code.
        bindings: int64, (capacity): (match * nodes + node) * entities + entity.
        facts: int64, (capacity): (match * edges + edge) * triples + triple.
        lower: int32, (rows * entities): INFINITE less the least cost of a node's subtree; see `lower_bounds`.
        present: uint8, (rows * entities / 8): a bit for each entity that a node reaches.
        reached: int32, (rows * entities): the entities that nodes reach, as lists.
        message: int32, (entities): INFINITE less what the entities of the parent pay for a child.
        touched: int32, (entities): the entities in `message`, as a list.
        stamps: int32, (entities): marks of the set that is compared at the moment; older marks mean nothing.
        is_bound: uint8, (nodes * entities / 8): bits of what the nodes take in the match that is completed.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.capacity = self.entities = self.places = self.bits = self.stamp = 0

    def arrays(self, capacity: int, entities: int, rows: int, nodes: int) -> tuple[Array, ...]:
        """Return the arrays, in at least these sizes."""
        if capacity > self.capacity:
            self.capacity = capacity
            self.pool = np.empty(capacity, np.int32)
            self.option_bounds, self.option_keys = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            self.bindings, self.facts = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        if entities > self.entities:
            self.entities, self.stamp = entities, 0
            self.message, self.touched = np.zeros(entities, np.int32), np.empty(entities, np.int32)
            self.stamps = np.zeros(entities, np.int32)
        if rows * entities >= self.places:
            self.places = rows * entities + 1
            self.lower, self.reached = np.zeros(self.places, np.int32), np.empty(self.places, np.int32)
            self.present = np.zeros(self.places // 8 + 1, np.uint8)
        if nodes * entities > self.bits:
            self.bits = nodes * entities
            self.is_bound = np.zeros(self.bits // 8 + 1, np.uint8)
        buffers = (self.pool, self.option_bounds, self.option_keys, self.bindings, self.facts)
        bounds = (self.lower, self.present, self.reached, self.message, self.touched)
        return (*buffers, *bounds, self.stamps, self.is_bound)


#: Scratch that no search uses at the moment.
_IDLE: list[Scratch] = []


@contextmanager
def borrowed_scratch() -> Iterator[Scratch]:
    """Lend arrays to a search; after an interrupt they are not used again, since they may not be zero."""
    try:
        scratch = _IDLE.pop()
    except IndexError:  # none is idle; another thread may have taken the last one
        scratch = Scratch()
    yield scratch
    _IDLE.append(scratch)
