"""The mutable arrays of a search, and small queries on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import non_allocating
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching.layout import LEVEL
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Plan
from kg_retrievers.methods.simgrag.matching.rows import first_not_below

#: Positions in `State.counts`: entries looked at, whether to stop, whether a buffer is full, combinations kept, the
#: last stamp, whether `max_bindings` left something out, facts and bindings collected, the match that is completed, -1
#: while searching, whether the matches are completed; then what the caller set: budgets for finding the matches and for
#: completing each, a cost below which the k best are the best of all, how many are given.
SCANS, STOPPED, FULL, FOUND, STAMP, LEFT_OUT, FACTS, BINDINGS, MATCH, COMPLETED = range(10)
MAX_SCANS, SCANS_OF_EACH, MAX_BINDINGS, EDGES, CERTAIN_BELOW, GIVEN = range(10, 16)

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
        ("floor", np.int64),
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
    given: Array  # int64, (k, 1 + s + v): costs and keys of combinations that are known before the search
    counts: Array  # int64: see above
    stop: Array  # int64, (1): set from outside when the time is up
    slots: Array  # int64, (relations * levels): the best bound of each of a few options
    pool: Array  # these as in `Scratch`
    options: Array
    bindings: Array
    facts: Array
    lower: Array
    present: Array
    reached: Array
    message: Array
    touched: Array
    stamps: Array
    is_bound: Array


#: Marks of sets begin anew above this one; they are 32-bit integers.
LAST_STAMP = 2**31 - 16


class Scratch:
    """Arrays that serve one search after the other: fresh memory costs more than most searches do.

    Those with a place for each entity are zero between searches, so that the system gives memory only for what searches
    touch: at most 4 * (rows + 2) + (rows + nodes) / 8 bytes an entity, and as much again where the lists of a search
    hold all entities.

    Attributes:
        pool: int32, (capacity): the sets.
        options: int64, (capacity, 2): bound, and relation * width + code, where the width is above every code.
        bindings: int64, (capacity): (match * nodes + node) * entities + entity.
        facts: int64, (capacity): (match * edges + edge) * triples + triple.
        lower: int32, (rows, entities): INFINITE less the least cost of a node's subtree; see `lower_bounds`.
        present: uint8, (rows, entities / 8): a bit for each entity that a node reaches.
        reached: int32, (rows, entities): the entities that nodes reach, as lists.
        message: int32, (entities): INFINITE less what the entities of the parent pay for a child.
        touched: int32, (entities): the entities in `message`, as a list.
        stamps: int32, (entities): marks of the set that is compared at the moment; older marks mean nothing.
        is_bound: uint8, (nodes * entities / 8): bits of what the nodes take in the match that is completed.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.capacity = self.entities = self.rows = self.bits = self.stamp = 0

    def arrays(self, capacity: int, entities: int, rows: int, nodes: int) -> tuple[Array, ...]:
        """Return the arrays, in at least these sizes."""
        if capacity > self.capacity:
            self.capacity = capacity
            self.pool, self.options = np.empty(capacity, np.int32), np.empty((capacity, 2), np.int64)
            self.bindings, self.facts = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        if entities > self.entities or rows > self.rows:
            self.rows, size = max(rows, self.rows), max(entities, self.entities)
            self.lower, self.present = (
                np.zeros((self.rows, size), np.int32),
                np.zeros((self.rows, size // 8 + 1), np.uint8),
            )
            self.reached = np.empty_like(self.lower)
        if entities > self.entities:
            self.entities, self.stamp = entities, 0
            self.message, self.touched = np.zeros(entities, np.int32), np.empty(entities, np.int32)
            self.stamps = np.zeros(entities, np.int32)
        if nodes * entities > self.bits:
            self.bits = nodes * entities
            self.is_bound = np.zeros(self.bits // 8 + 1, np.uint8)
        buffers = (self.pool, self.options, self.bindings, self.facts)
        bounds = (self.lower, self.present, self.reached, self.message, self.touched)
        return (*buffers, *bounds, self.stamps, self.is_bound)


@non_allocating
def mark(bits: Array, row: int, entity: int) -> None:
    """Set the bit of an entity."""
    bits[row, entity >> 3] |= 1 << (entity & 7)


@non_allocating
def unmark(bits: Array, row: int, entity: int) -> None:
    """Clear the bit of an entity."""
    bits[row, entity >> 3] &= ~(1 << (entity & 7))


@non_allocating
def is_marked(bits: Array, row: int, entity: int) -> bool:
    """Return the bit of an entity."""
    return bool((bits[row, entity >> 3] >> (entity & 7)) & 1)


@non_allocating
def lower_cost(state: State, row: int, entity: int) -> int:
    """Return the least cost of a node's subtree with an entity; INFINITE where there is none."""
    return int(INFINITE - state.lower[row, entity])


@non_allocating
def next_stamp(state: State, count: int) -> int:
    """Return the last of so many fresh marks of sets."""
    if state.counts[STAMP] > LAST_STAMP:
        state.stamps[:] = 0
        state.counts[STAMP] = 0
    state.counts[STAMP] += count
    return int(state.counts[STAMP])


@non_allocating
def least_of(costs: Array, low: int, high: int) -> int:
    """Return the least of `costs[low:high]`; INFINITE if there is none."""
    least = INFINITE
    for i in range(low, high):
        least = min(least, costs[i])
    return least


@non_allocating
def own_cost(plan: Plan, node: int, entity: int) -> int:
    """Return what an entity costs at a node; INFINITE if it is no candidate."""
    if plan.nodes[node].known:
        high = plan.starts[node + 1]
        position = first_not_below(plan.candidates, plan.starts[node], high, entity)
        if position < high and plan.candidates[position] == entity:
            return int(plan.candidate_costs[position])
        return INFINITE
    row = plan.nodes[node].level_row
    if row >= 0:
        level = plan.levels[row, entity]
        return int(plan.level_costs[row, level]) if level >= 0 else INFINITE
    return 0


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
    row = state.nodes[node].lower_row
    if row >= 0:
        return lower_cost(state, row, entity) if is_marked(state.present, row, entity) else INFINITE
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
