"""The mutable arrays of a search, and small queries on them."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import half_of, label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching.bounds import first_not_below, own_cost, ways
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, LEVEL, Plan

#: Positions in `State.counts`: entries looked at, whether to stop, whether a buffer is full, combinations kept, the
#: last stamp, whether `max_bindings` left something out, facts and bindings collected, the match that is completed, -1
#: while searching; then what the caller set.
SCANS, STOPPED, FULL, FOUND, STAMP, LEFT_OUT, FACTS, BINDINGS, MATCH, MAX_SCANS, MAX_BINDINGS, EDGES = range(12)

#: How a step stands.
STEP_STATE = np.dtype(
    [
        ("relation", np.int64),  # the relation chosen; -1 where free
        ("only", np.int64),  # the relation of the match to complete; -1 where free to choose
        ("pending", np.int64),  # the least cost of what is neither placed before the step nor below it
        ("prefix", np.int64),  # the cost of what is placed before the step
        ("top", np.int64),  # the end of all sets before the step
        ("first_option", np.int64),  # its options lie in `options[first_option:first_option of the next]`
        ("option", np.int64),  # the option to try next
    ]
)

#: How a node stands.
NODE_STATE = np.dtype(
    [
        ("code", np.int64),  # the entity of a bound node, the level of a set with types, else 0
        ("only", np.int64),  # the code of the match to complete; -1 where free to choose
        ("lower_row", np.int64),  # these as `lower_bounds` fills them in
        ("reach", np.int64),
        ("weight", np.int64),
        ("sent", np.int64),
        ("below", np.int64),
        ("least", np.int64),
        ("bound", np.int64),  # how many entities it takes in the match that is completed
    ]
)


class State(NamedTuple):
    """Where the search stands; arrays that are changed in place."""

    steps: Array  # (s + 1) of STEP_STATE; the last row is the end
    nodes: Array  # (v) of NODE_STATE
    sets: Array  # int64, (s + 1, v, 2): where the set of each node before each step begins and ends in `pool`
    keys: Array  # int64, (k, s + v): the best combinations
    costs: Array  # int64, (k + 1): their costs, ascending, and the limit; while one is completed, its own
    key: Array  # int64, (s + v): the combination at hand
    best_costs: Array  # int64, (k): their costs
    truncated: Array  # bool, (k): whether something of a match was left out
    counts: Array  # int64: see above
    stop: Array  # int64, (1): set from outside when the time is up
    slots: Array  # int64, (relations * levels): the best bound of each of a few options
    pool: Array  # these as in `Scratch`
    options: Array
    bindings: Array
    facts: Array
    lower: Array
    reached: Array
    message: Array
    touched: Array
    stamps: Array
    is_bound: Array


class Scratch(threading.local):
    """Arrays that a thread keeps from one search to the next: fresh memory costs more than most searches do.

    Attributes:
        pool: int32, (capacity): the sets.
        options: int64, (capacity, 2): bound, and relation * width + code, where the width is above every code.
        bindings: int64, (capacity): (match * nodes + node) * entities + entity.
        facts: int64, (capacity): (match * edges + edge) * triples + triple.
        lower: int32, (informing nodes, entities): as in `lower_bounds`; INFINITE between searches.
        reached: int32, (informing nodes, entities): as in `lower_bounds`.
        message: int32, (entities): as in `lower_bounds`.
        touched: int32, (entities): as in `lower_bounds`.
        stamps: int64, (entities): marks of the set that is compared at the moment; older marks mean nothing.
        is_bound: bool, (nodes * entities): what the nodes take in the match that is completed; False between searches.
    """

    def __init__(self) -> None:
        """Begin with nothing, and again after an interrupt, when older marks may not be older."""
        self.capacity = self.entities = self.rows = self.bits = self.stamp = 0

    def arrays(self, capacity: int, entities: int, rows: int, nodes: int) -> tuple[Array, ...]:
        """Return the arrays, in at least these sizes."""
        if capacity > self.capacity:
            self.capacity = capacity
            self.pool, self.options = np.empty(capacity, np.int32), np.empty((capacity, 2), np.int64)
            self.bindings, self.facts = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        if entities > self.entities or rows > self.rows:
            self.rows = max(rows, self.rows)
            self.lower = np.full((self.rows, max(entities, self.entities)), INFINITE, np.int32)
            self.reached = np.empty_like(self.lower)
        if entities > self.entities:
            self.entities = entities
            self.message, self.touched = np.full(entities, INFINITE, np.int32), np.empty(entities, np.int32)
            self.stamps = np.zeros(entities, np.int64)
        if nodes * entities > self.bits:
            self.bits = nodes * entities
            self.is_bound = np.zeros(self.bits, np.bool_)
        buffers = (self.pool, self.options, self.bindings, self.facts)
        return (*buffers, self.lower, self.reached, self.message, self.touched, self.stamps, self.is_bound)


@non_allocating
def worst_bound(state: State) -> int:
    """Return the bound at or above which nothing can be among the k best."""
    k = len(state.keys)
    return int(state.costs[k - 1] if state.counts[FOUND] == k else state.costs[k])


@non_allocating
def spend(state: State, scans: int) -> bool:
    """Count scans; return whether the search must stop."""
    state.counts[SCANS] += scans
    if state.counts[SCANS] > state.counts[MAX_SCANS] or (state.counts[MATCH] < 0 and state.stop[0] != 0):
        state.counts[STOPPED] = 1
    return bool(state.counts[STOPPED] != 0)


@non_allocating
def has_room(state: State, buffer: Array, used: int, more: int) -> bool:
    """Return whether a buffer takes `more` items; if not, the search stops and is begun again with larger ones."""
    if used + more > len(buffer):
        state.counts[FULL] = state.counts[STOPPED] = 1
        return False
    return True


@non_allocating
def make_set(state: State, row: int, node: int, count: int) -> None:
    """Make the last `count` items that were written behind the top the set of a node."""
    state.sets[row, node, 0] = state.steps[row].top
    state.steps[row].top += count
    state.sets[row, node, 1] = state.steps[row].top


@non_allocating
def part_of(adjacency: Adjacency, entity: int, relation: int, way: int) -> tuple[int, int]:
    """Return the part of an entity's row with a relation (-1: any) in a direction: 0 forward, 1 backward."""
    low, high = half_of(adjacency, entity, way)
    if relation >= 0:
        low = first_not_below(adjacency.labels, low, high, label_of(relation, way))
        high = first_not_below(adjacency.labels, low, high, label_of(relation, way) + 1)
    return low, high


@non_allocating
def joined(adjacency: Adjacency, a: int, b: int, relation: int, side: int) -> bool:
    """Return whether a triple of the relation (-1: any) joins a to b, seen from a."""
    first, last = ways(side)
    for way in range(first, last):
        low, high = part_of(adjacency, a, relation, way)
        if relation >= 0:  # one relation and direction: ascending neighbors
            low = first_not_below(adjacency.neighbors, low, high, b)
            high = min(low + 1, high)
        for i in range(low, high):
            if adjacency.neighbors[i] == b:
                return True
    return False


@non_allocating
def code_of(plan: Plan, node: int, entity: int) -> int:
    """Return what tells branches that place an entity apart: itself, its level, or nothing; -1 if it has no level."""
    if not plan.nodes[node].as_set:
        return entity
    row = plan.nodes[node].level_row
    return int(plan.levels[row, entity]) if row >= 0 else 0


@non_allocating
def fits_match(plan: Plan, state: State, node: int, entity: int) -> bool:
    """Return whether an entity belongs to the match that is completed; yes while searching."""
    only = state.nodes[node].only
    if only < 0:
        return True
    if plan.nodes[node].key == LEVEL:
        return bool(plan.levels[plan.nodes[node].level_row, entity] == only)
    return bool(entity == only)


@non_allocating
def subtree_cost(plan: Plan, state: State, node: int, entity: int) -> int:
    """Return the least cost of a node's subtree with this entity; INFINITE if impossible."""
    if state.nodes[node].lower_row >= 0:
        return int(state.lower[state.nodes[node].lower_row, entity])
    return int(min(own_cost(plan, node, entity) + state.nodes[node].below, INFINITE))


@non_allocating
def allowed(plan: Plan, state: State, node: int, entity: int, s: int) -> bool:
    """Return whether no node that was bound before step s forbids the entity at this node."""
    for other in range(len(plan.nodes)):
        is_bound = not plan.nodes[other].as_set and plan.nodes[other].step < s
        if plan.differs[node, other] and is_bound and state.nodes[other].code == entity:
            return False
    return True


@non_allocating
def sort_pairs(pairs: Array) -> None:
    """Sort rows of two in place (heap sort: small machine code, no scratch space)."""
    for size in range(len(pairs), -len(pairs), -1):
        if size > 0:  # build the heap from the last row to the first, then take its top away again and again
            root, end = size - 1, len(pairs)
        else:
            end = len(pairs) - 1 + size
            root = 0
            for column in range(2):
                pairs[0, column], pairs[end, column] = pairs[end, column], pairs[0, column]
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and _precedes(pairs, child, child + 1):
                child += 1
            if not _precedes(pairs, root, child):
                break
            for column in range(2):
                pairs[root, column], pairs[child, column] = pairs[child, column], pairs[root, column]
            root = child


@non_allocating
def _precedes(pairs: Array, a: int, b: int) -> bool:
    return bool(pairs[a, 0] < pairs[b, 0] or (pairs[a, 0] == pairs[b, 0] and pairs[a, 1] < pairs[b, 1]))
