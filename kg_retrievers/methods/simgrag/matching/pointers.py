"""The arrays of a search, their pointers, and small queries on them for compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeAlias

import numpy as np

from kg_retrievers.algorithms.compiled import Graph, Pointer, compiled, wide
from kg_retrievers.graph.adjacency import half_of, label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching import tally
from kg_retrievers.methods.simgrag.matching.layout import LEVEL
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Layout, Row


class Scratch:
    """Arrays that serve one search after the other.

    Fresh memory costs more than most searches do. Arrays with a place for each entity are zero between searches, so
    that the system gives memory only for entities that searches touch. This is at most 4 * (rows + 2) + (rows + nodes)
    / 8 bytes per entity, and as much again if the lists of a search hold all entities. A row has a place for each
    entity.

    Attributes:
        pool: int32, (capacity): the sets.
        option_bounds: int64, (capacity): the bound of each option.
        option_keys: int64, (capacity): relation * width + code, with a width above every code.
        bindings: int64, (capacity): (match * nodes + node) * entities + entity.
        facts: int64, (capacity): (match * edges + edge) * triples + triple.
        lower: int32, (rows * entities): INFINITE less the least cost of a node's subtree, see `lower_bounds`.
        present: uint8, (rows * entities / 8): a bit for each entity that a node reaches.
        reached: int32, (rows * entities): the entities that nodes reach, as lists.
        message: int32, (entities): INFINITE less the cost of a child for the entities of the parent.
        touched: int32, (entities): the entities in `message`, as a list.
        stamps: int32, (entities): marks of the set that is compared at the moment. Older marks mean nothing.
        is_bound: uint8, (nodes * entities / 8): bits of the entities that the nodes take in the match that is
            completed.
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
    """Lend arrays to a search. After an interrupt they are not used again, since they may not be zero."""
    try:
        scratch = _IDLE.pop()
    except IndexError:  # none is idle; another thread may have taken the last one
        scratch = Scratch()
    yield scratch
    _IDLE.append(scratch)


#: Marks of sets begin again above this one, since they are 32-bit integers.
LAST_STAMP = 2**31 - 16


class ProgressOf(NamedTuple, Generic[Row]):
    """The state of a search: arrays in Python, pointers to them in compiled code."""

    # Of each step, and one more, int64:
    relation: Row  # the relation chosen; -1 where free
    only_relation: Row  # the relation of the match to complete; -1 where free to choose
    pending: Row  # the least cost of what is neither placed before the step nor below it
    prefix: Row  # the cost of what is placed before the step
    top: Row  # the end of all sets before the step
    first_option: Row  # its options are those from `first_option` up to the `first_option` of the next step
    option: Row  # the option to try next
    # Of each node, int64:
    code: Row  # the entity of a bound node, the level of a set with types, else 0
    only_code: Row  # the code of the match to complete; -1 where free to choose
    lower: Row  # where its bounds begin in `gains`; -1 if it has none; these six as `bounds.py` fills them in
    reach: Row
    weight: Row
    sent: Row
    floor: Row
    below: Row
    least: Row
    bound: Row  # how many entities it takes in the match that is completed
    # int64:
    begin: Row  # ((s + 1) * v): the beginning in `pool` of the set of each node before each step
    end: Row  # ... and ends
    keys: Row  # (k * (s + v)): the best combinations
    costs: Row  # (k + 1): their costs, ascending, and the limit; while one is completed, its own
    key_at_hand: Row  # (s + v): the combination at hand
    best_costs: Row  # (k): their costs
    truncated: Row  # (k): whether something of a match was left out
    given: Row  # (n * (1 + s + v)): costs and keys of combinations that are known before the search
    counts: Row  # see `tally.py`
    stop: Row  # (1): set from outside when the time is up
    slots: Row  # (relations * levels): the best bound of each of a few options
    pool: Row  # these as in `Scratch`
    option_bounds: Row
    option_keys: Row
    bindings: Row
    facts: Row
    gains: Row  # `lower` there
    present: Row
    reached: Row
    message: Row
    touched: Row
    stamps: Row
    is_bound: Row
    k: int  # how many matches are wanted


State: TypeAlias = ProgressOf[Array]
Progress: TypeAlias = ProgressOf[Pointer]


# --- rows of the adjacency -------------------------------------------------------------------------------------------


@compiled
def first_not_below(values: Pointer, low: int, high: int, wanted: int) -> int:
    """Return the first position in `values[low:high]`, ascending, whose value is not below `wanted`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def end_of_run(labels: Pointer, position: int, end: int) -> int:
    """Return the first position behind the entries of a row that have the label of one. They stand side by side.

    Cost: O(log(entries with the label)), so that a row takes little more than its distinct labels.
    """
    label, low, step = labels[position], position, wide(1)
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


@compiled
def ways(relation: int, side: int) -> tuple[int, int]:
    """Return the parts of a row to read, as a range: 0 is forward, 1 is backward, -1 is both at once.

    A side below 0 is either one. So `side ^ 1` is the side seen from the other end.
    """
    if relation < 0 and side < 0:
        return -1, 0
    return (1 if side > 0 else 0), (1 if side == 0 else 2)


@compiled
def part_of(graph: Graph, entity: int, relation: int, way: int) -> tuple[int, int]:
    """Return the part of an entity's row with a relation (-1: any) in one of the `ways`."""
    low, high = wide(graph.indptr[entity]), wide(graph.indptr[entity + 1])
    if way >= 0:
        low, high = half_of(graph, entity, way)  # type: ignore[arg-type] # it has these columns
    if relation >= 0:
        label = label_of(relation, way)
        low = first_not_below(graph.labels, low, high, label)
        high = first_not_below(graph.labels, low, high, label + 1)
    return low, high


# --- small queries ---------------------------------------------------------------------------------------------------


@compiled
def next_stamps(graph: Graph, state: Progress) -> int:
    """Return the second of two fresh marks of sets."""
    if state.counts[tally.STAMP] > LAST_STAMP:
        for e in range(graph.entities):
            state.stamps[e] = 0
        state.counts[tally.STAMP] = 0
    state.counts[tally.STAMP] += 2
    return state.counts[tally.STAMP]


@compiled
def own_cost(graph: Graph, plan: Layout, node: int, entity: int) -> int:
    """Return the cost of an entity at a node, INFINITE if it is no candidate."""
    if plan.known[node]:
        high = plan.starts[node + 1]
        position = first_not_below(plan.candidates, plan.starts[node], high, entity)
        if position < high and plan.candidates[position] == entity:
            return wide(plan.candidate_costs[position])
        return INFINITE
    row = plan.level_row[node]
    if row >= 0:
        level = level_of(graph, plan, node, entity)
        return wide(plan.level_costs[row * plan.level_count + level]) if level >= 0 else INFINITE
    return 0


@compiled
def level_of(graph: Graph, plan: Layout, node: int, entity: int) -> int:
    """Return the level of an entity's nearest type. -1 if it has none of the node's types, 0 if the node has none."""
    row = plan.level_row[node]
    return wide(plan.levels[row * graph.entities + entity]) - 1 if row >= 0 else 0


@compiled
def roots_of(graph: Graph, plan: Layout, node: int) -> tuple[int, int]:
    """Return the range of entities of an unknown root: in `limited`, or of all entities without conditions."""
    first, last = plan.limited_starts[node], plan.limited_starts[node + 1]
    return (first, last) if last > first else (wide(0), graph.entities)


@compiled
def root_of(plan: Layout, node: int, at: int) -> int:
    """Return the entity at a place of the range of `roots_of`."""
    return wide(plan.limited[at]) if plan.limited_starts[node + 1] > plan.limited_starts[node] else at


@compiled
def worst_bound(state: Progress) -> int:
    """Return the bound at or above which nothing can be among the k best."""
    return state.costs[state.k - 1 if state.counts[tally.FOUND] == state.k else state.k]


@compiled
def spend(state: Progress, scans: int) -> bool:
    """Count scans. Return whether the search must stop."""
    counts = state.counts
    counts[tally.SCANS] += scans
    if counts[tally.SCANS] > counts[tally.MAX_SCANS] or (counts[tally.MATCH] < 0 and state.stop[0] != 0):
        counts[tally.STOPPED] = 1
    return counts[tally.STOPPED] != 0


@compiled
def has_room(state: Progress, used: int, more: int) -> bool:
    """Return whether a buffer takes `more` items. If not, the search stops and is begun again with larger ones."""
    if used + more > state.counts[tally.CAPACITY]:
        state.counts[tally.FULL] = state.counts[tally.STOPPED] = 1
        return False
    return True


@compiled
def make_set(plan: Layout, state: Progress, row: int, node: int, count: int) -> None:
    """Make the last `count` items that were written behind the top the set of a node."""
    at = row * plan.nodes + node
    state.begin[at] = state.top[row]
    state.top[row] += count
    state.end[at] = state.top[row]


@compiled
def code_of(graph: Graph, plan: Layout, node: int, entity: int) -> int:
    """Return the code of a branch that places an entity: the entity, its level, or nothing. -1 if it has no level."""
    return level_of(graph, plan, node, entity) if plan.as_set[node] else entity


@compiled
def subtree_cost(graph: Graph, plan: Layout, state: Progress, node: int, entity: int) -> int:
    """Return the least cost of a node's subtree with this entity, INFINITE if impossible."""
    if state.lower[node] >= 0:
        at = state.lower[node] + entity
        return INFINITE - state.gains[at] if (state.present[at >> 3] >> (at & 7)) & 1 else INFINITE
    return min(own_cost(graph, plan, node, entity) + state.below[node], INFINITE)


@compiled
def may_take(graph: Graph, plan: Layout, state: Progress, node: int, entity: int, s: int) -> bool:
    """Return whether a node may take an entity at step s, as its types and the nodes placed before allow.

    While a match is completed, the entity must belong to it. No node that is bound before the step may forbid it.
    """
    only, found = state.only_code[node], entity
    if plan.as_set[node] or plan.key[node] == LEVEL:
        level = level_of(graph, plan, node, entity)
        if plan.as_set[node] and level < 0:
            return False
        if plan.key[node] == LEVEL:
            found = level
    if only >= 0 and only != found:
        return False
    for other in range(plan.nodes):
        is_bound = not plan.as_set[other] and plan.placed_by[other] < s
        if plan.differs[node * plan.nodes + other] and is_bound and state.code[other] == entity:
            return False
    return True
