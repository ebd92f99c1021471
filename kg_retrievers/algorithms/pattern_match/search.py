"""Branch and bound over a plan: the k best combinations, then all bindings of each."""

from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.algorithms.pattern_match.bounds import first_place, least_of, lower_bounds, own_cost
from kg_retrievers.algorithms.pattern_match.plan import (
    CYCLE,
    INFINITE,
    LEVEL,
    NOTHING,
    SCALE,
    START,
    TREE,
    Array,
    Match,
    Plan,
)
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import Adjacency

#: Places in `State.counts`: entries looked at, whether to stop, whether a buffer is full, combinations kept, the last
#: stamp, whether `max_bindings` left something out, facts and bindings collected, the match that is
#: completed, -1 while searching; then what the caller set.
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
        options: int64, (capacity, 2): bound, and relation * entities + code.
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
        """Begin with nothing."""
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


_SCRATCH = Scratch()


@compiled
def _worst(state: State) -> int:
    """A bound at or above this cannot be among the k best."""
    k = len(state.keys)
    return int(state.costs[k - 1] if state.counts[FOUND] == k else state.costs[k])


@compiled
def _spend(state: State, scans: int) -> bool:
    """Count scans; whether the search must stop."""
    state.counts[SCANS] += scans
    if state.counts[SCANS] > state.counts[MAX_SCANS] or (state.counts[MATCH] < 0 and state.stop[0] != 0):
        state.counts[STOPPED] = 1
    return bool(state.counts[STOPPED] != 0)


@compiled
def _has_room(state: State, buffer: Array, used: int, more: int) -> bool:
    """Whether a buffer takes `more` items; if not, the search stops and is begun again with larger ones."""
    if used + more > len(buffer):
        state.counts[FULL] = state.counts[STOPPED] = 1
        return False
    return True


@compiled
def _row(adjacency: Adjacency, entity: int, relation: int, side: int) -> tuple[int, int]:
    """The part of an entity's row with a relation (-1: any) and, with a relation, of a direction (-1: any)."""
    low, high = adjacency.indptr[entity], adjacency.indptr[entity + 1]
    if relation >= 0:
        first = 2 * relation + max(side, 0)
        low = first_place(adjacency.labels, low, high, first)
        high = first_place(adjacency.labels, low, high, first + (2 if side < 0 else 1))
    return low, high


@compiled
def _joined(adjacency: Adjacency, a: int, b: int, relation: int, side: int) -> bool:
    """Whether a triple of the relation (-1: any) joins a to b, seen from a."""
    if relation < 0:
        low, high = adjacency.indptr[a], adjacency.indptr[a + 1]
        for i in range(low, high):
            if adjacency.neighbors[i] == b and (side < 0 or (adjacency.labels[i] & 1) == side):
                return True
        return False
    for bit in range(2):
        if side < 0 or bit == side:
            low, high = _row(adjacency, a, relation, bit)  # one relation and direction: ascending neighbours
            place = first_place(adjacency.neighbors, low, high, b)
            if place < high and adjacency.neighbors[place] == b:
                return True
    return False


@compiled
def _code(plan: Plan, node: int, entity: int) -> int:
    """What tells apart the branches that place an entity: itself, its level, or nothing; -1 if it has no level."""
    if not plan.nodes[node].as_set:
        return entity
    row = plan.nodes[node].level_row
    return int(plan.levels[row, entity]) if row >= 0 else 0


@compiled
def _fits(plan: Plan, state: State, node: int, entity: int) -> bool:
    """Whether an entity belongs to the match that is completed; yes while searching."""
    only = state.nodes[node].only
    if only < 0:
        return True
    if plan.nodes[node].key == LEVEL:
        return bool(plan.levels[plan.nodes[node].level_row, entity] == only)
    return bool(entity == only)


@compiled
def _subtree_cost(plan: Plan, state: State, node: int, entity: int) -> int:
    """The least cost of a node's subtree with this entity; INFINITE if impossible."""
    if state.nodes[node].lower_row >= 0:
        return int(state.lower[state.nodes[node].lower_row, entity])
    return int(min(own_cost(plan, node, entity) + state.nodes[node].below, INFINITE))


@compiled
def _allowed(plan: Plan, state: State, node: int, entity: int, s: int) -> bool:
    """Whether no node that was bound before step s forbids the entity at this node."""
    for other in range(len(plan.nodes)):
        is_bound = not plan.nodes[other].as_set and plan.nodes[other].step < s
        if plan.differs[node, other] and is_bound and state.nodes[other].code == entity:
            return False
    return True


@compiled
def _options(adjacency: Adjacency, plan: Plan, state: State, s: int, prefix: int) -> None:
    """List the choices at a step, the cheapest bound first, then by relation and code."""
    size = len(adjacency.indptr) - 1
    u, v, t = plan.steps[s].near, plan.steps[s].far, plan.steps[s].term
    side, kind = plan.steps[s].side, plan.steps[s].kind
    begin = state.steps[s].first_option
    end = begin
    worst, rest = _worst(state), prefix + state.steps[s].pending
    levels = max(plan.level_costs.shape[1], 1)
    by_slot = kind == CYCLE or plan.nodes[v].as_set  # few choices, each reached over and over: keep the best of each
    free = kind == START or plan.steps[s].free
    relations = 1 if free else plan.relation_costs.shape[1]
    best = state.slots
    slots = relations * levels if by_slot else 0
    for slot in range(slots):
        best[slot] = INFINITE
    if kind == START:
        low, high = (plan.starts[v], plan.starts[v + 1]) if plan.nodes[v].known else (0, size)
        if _spend(state, high - low) or not _has_room(state, state.options, end, high - low):
            return
        for i in range(low, high):
            e = plan.candidates[i] if plan.nodes[v].known else i
            code = _code(plan, v, e)
            bound = rest + _subtree_cost(plan, state, v, e)
            if code < 0 or bound >= worst or not _fits(plan, state, v, e):
                continue
            if by_slot:
                best[code] = min(best[code], bound)
            elif _allowed(plan, state, v, e, s):
                state.options[end, 0], state.options[end, 1] = bound, e
                end += 1
    else:
        costs = plan.relation_costs[t]
        only_relation = state.steps[s].only
        if plan.steps[s].first_use >= 0 and plan.steps[s].first_use < s:
            only_relation = state.steps[plan.steps[s].first_use].relation
        # One neighbour is as good as another where nothing is known of them.
        alike = by_slot and kind == TREE and state.nodes[v].lower_row < 0 and plan.nodes[v].level_row < 0
        back = side if side < 0 else 1 - side
        begin_set, end_set, others = state.sets[s, u, 0], state.sets[s, u, 1], 0
        first = state.pool[begin_set]
        if kind == TREE and state.nodes[v].lower_row >= 0 and end_set - begin_set == 1:
            low, high = _row(adjacency, first, only_relation, side)
            if state.nodes[v].weight < high - low:  # fewer edges at the entities that the other end may be
                begin_set, end_set, others = 0, state.nodes[v].reach, 1
        for p in range(begin_set, end_set):
            a = state.reached[state.nodes[v].lower_row, p] if others else state.pool[p]
            i, stop = _row(adjacency, a, only_relation, back if others else side)
            wanted, flip = first, others
            if kind == CYCLE:
                wanted = a if u == v else state.nodes[v].code
                other, other_stop = _row(adjacency, wanted, only_relation, back)
                if other_stop - other < stop - i:  # the row of the other end is shorter
                    i, stop, wanted, flip = other, other_stop, a, 1
            if _spend(state, stop - i + 1) or not _has_room(state, state.options, end, stop - i):
                return
            while i < stop:
                label = adjacency.labels[i]
                r = label >> 1
                cost = costs[r]
                if cost == INFINITE or (side >= 0 and ((label & 1) ^ flip) != side) or rest + cost >= worst:
                    i = first_place(adjacency.labels, i, stop, label + 1)
                    continue
                e = adjacency.neighbors[i]
                i += 1
                if kind == CYCLE:
                    if e == wanted:
                        slot = (0 if free else r) * levels
                        best[slot] = min(best[slot], rest + cost)
                    continue
                if others:
                    if e != wanted:
                        continue
                    e = a
                bound = rest + cost + _subtree_cost(plan, state, v, e)
                if bound >= worst:
                    continue
                code = _code(plan, v, e)
                if code < 0 or not _fits(plan, state, v, e) or not _allowed(plan, state, v, e, s):
                    continue
                if by_slot:
                    slot = (0 if free else r) * levels + code
                    best[slot] = min(best[slot], bound)
                    if alike:
                        i = first_place(adjacency.labels, i, stop, label + 1)
                else:
                    state.options[end, 0], state.options[end, 1] = bound, (0 if free else r) * size + e
                    end += 1
    if not _has_room(state, state.options, end, slots):
        return
    for slot in range(slots):
        if best[slot] < worst:
            state.options[end, 0], state.options[end, 1] = best[slot], (slot // levels) * size + slot % levels
            end += 1
    _sort(state.options[begin:end])
    state.steps[s + 1].first_option = end


@compiled
def _sort(pairs: Array) -> None:
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


@compiled
def _precedes(pairs: Array, a: int, b: int) -> bool:
    return bool(pairs[a, 0] < pairs[b, 0] or (pairs[a, 0] == pairs[b, 0] and pairs[a, 1] < pairs[b, 1]))


@compiled
def _set(state: State, row: int, node: int, count: int) -> None:
    """Make the last `count` items that were written behind the top the set of a node."""
    state.sets[row, node, 0] = state.steps[row].top
    state.steps[row].top += count
    state.sets[row, node, 1] = state.steps[row].top


@compiled
def _keep_supported(adjacency: Adjacency, plan: Plan, state: State, row: int, child: int) -> bool:
    """Drop from the set above a node what has no neighbour in the node's set; whether something was dropped."""
    s = plan.nodes[child].step
    parent, relation, side = plan.steps[s].near, state.steps[s].relation, plan.steps[s].side
    costs = plan.relation_costs[plan.steps[s].term]
    state.counts[STAMP] += 1
    stamp = state.counts[STAMP]
    for p in range(state.sets[row, child, 0], state.sets[row, child, 1]):
        state.stamps[state.pool[p]] = stamp
    begin, end, top = state.sets[row, parent, 0], state.sets[row, parent, 1], state.steps[row].top
    if not _has_room(state, state.pool, top, end - begin):
        return False
    count = 0
    for p in range(begin, end):
        a = state.pool[p]
        low, high = _row(adjacency, a, relation, side)
        looked = 1
        for i in range(low, high):
            label = adjacency.labels[i]
            looked += 1
            fits = (side < 0 or (label & 1) == side) and costs[label >> 1] < INFINITE
            if fits and state.stamps[adjacency.neighbors[i]] == stamp:
                state.pool[top + count] = a
                count += 1
                break
        if _spend(state, looked):
            return False
    if count == end - begin:
        return False
    _set(state, row, parent, count)
    return True


@compiled
def _propagate(adjacency: Adjacency, plan: Plan, state: State, row: int, node: int) -> bool:
    """After a set has shrunk, shrink those above it; whether none is empty."""
    while state.sets[row, node, 1] > state.sets[row, node, 0]:
        if plan.nodes[node].parent < 0 or not _keep_supported(adjacency, plan, state, row, node):
            return True
        node = plan.nodes[node].parent
    return False


@compiled
def _apply(adjacency: Adjacency, plan: Plan, state: State, s: int, relation: int, code: int) -> bool:
    """Write the state after step s with an option; whether a match is still possible."""
    size = len(adjacency.indptr) - 1
    u, v, side, kind = plan.steps[s].near, plan.steps[s].far, plan.steps[s].side, plan.steps[s].kind
    row = s + 1
    for w in range(len(plan.nodes)):
        state.sets[row, w, 0], state.sets[row, w, 1] = state.sets[s, w, 0], state.sets[s, w, 1]
    state.steps[row].top = state.steps[s].top
    state.steps[s].relation = relation
    as_set = kind != CYCLE and plan.nodes[v].as_set
    if kind != CYCLE:
        state.nodes[v].code = code
        if not as_set:
            if not _has_room(state, state.pool, state.steps[row].top, 1):
                return False
            state.pool[state.steps[row].top] = code
            _set(state, row, v, 1)
    if kind == START and as_set:
        if _spend(state, size) or not _has_room(state, state.pool, state.steps[row].top, size):
            return False
        count = 0
        for e in range(size):
            if _code(plan, v, e) == code and _allowed(plan, state, v, e, s):
                state.pool[state.steps[row].top + count] = e
                count += 1
        _set(state, row, v, count)
        return count > 0
    if kind == TREE and as_set:
        costs = plan.relation_costs[plan.steps[s].term]
        worst = _worst(state)
        state.counts[STAMP] += 2
        taken, refused = state.counts[STAMP], state.counts[STAMP] - 1
        top, count = state.steps[row].top, 0
        for p in range(state.sets[s, u, 0], state.sets[s, u, 1]):
            low, high = _row(adjacency, state.pool[p], relation, side)
            if _spend(state, high - low + 1) or not _has_room(state, state.pool, top + count, high - low):
                return False
            for i in range(low, high):
                e, label = adjacency.neighbors[i], adjacency.labels[i]
                if state.stamps[e] >= refused or (side >= 0 and (label & 1) != side) or costs[label >> 1] == INFINITE:
                    continue
                state.stamps[e] = refused
                fits = _subtree_cost(plan, state, v, e) < worst and _code(plan, v, e) == code
                if fits and _allowed(plan, state, v, e, s):
                    state.stamps[e] = taken
                    state.pool[top + count] = e
                    count += 1
        if count == 0:
            return False
        _set(state, row, v, count)
        if not _propagate(adjacency, plan, state, row, v):
            return False
    elif kind != START:
        begin, end, top = state.sets[s, u, 0], state.sets[s, u, 1], state.steps[row].top
        if not _has_room(state, state.pool, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            a = state.pool[p]
            other = state.nodes[v].code if u != v else a
            if _joined(adjacency, a, other, relation, side):
                state.pool[top + count] = a
                count += 1
            if _spend(state, 1):
                return False
        if count < end - begin:
            _set(state, row, u, count)
            if not _propagate(adjacency, plan, state, row, u):
                return False
    if kind != CYCLE and not as_set:  # the entity leaves the sets of nodes that must differ
        for w in range(len(plan.nodes)):
            if not plan.nodes[w].as_set or not plan.differs[v, w] or plan.nodes[w].step >= s:
                continue
            begin, end, top = state.sets[row, w, 0], state.sets[row, w, 1], state.steps[row].top
            if not _has_room(state, state.pool, top, end - begin):
                return False
            count = 0
            for p in range(begin, end):
                if state.pool[p] != code:
                    state.pool[top + count] = state.pool[p]
                    count += 1
            if count < end - begin:
                _set(state, row, w, count)
                if not _propagate(adjacency, plan, state, row, w):
                    return False
    return True


@compiled
def _keep(plan: Plan, state: State, cost: int) -> None:
    """Put a complete combination among the k best, unless it is there already."""
    steps, k, found = len(plan.steps), len(state.keys), state.counts[FOUND]
    key = state.key
    for i in range(steps):
        key[i] = state.steps[i].relation if plan.steps[i].in_key else -1
    for v in range(len(plan.nodes)):
        key[steps + v] = -1
        if plan.nodes[v].key == LEVEL and not plan.nodes[v].as_set:
            key[steps + v] = plan.levels[plan.nodes[v].level_row, state.nodes[v].code]
        elif plan.nodes[v].key != NOTHING:
            key[steps + v] = state.nodes[v].code
    for i in range(found):
        same = True
        for j in range(len(key)):
            same = same and state.keys[i, j] == key[j]
        if same:
            return
    place = found
    while place > 0 and state.costs[place - 1] > cost:
        place -= 1
    for i in range(min(found, k - 1), place, -1):
        for j in range(len(key)):
            state.keys[i, j] = state.keys[i - 1, j]
        state.costs[i] = state.costs[i - 1]
    for j in range(len(key)):
        state.keys[place, j] = key[j]
    state.costs[place] = cost
    state.counts[FOUND] = min(found + 1, k)


@compiled
def _make_consistent(adjacency: Adjacency, plan: Plan, state: State) -> bool:
    """Keep in each set of a complete combination only what occurs in a match; whether none is empty."""
    row = len(plan.steps)
    for s in range(row - 1, -1, -1):
        if plan.steps[s].kind == TREE:
            _keep_supported(adjacency, plan, state, row, plan.steps[s].far)
            if state.sets[row, plan.steps[s].near, 0] == state.sets[row, plan.steps[s].near, 1]:
                return False
    for s in range(row):
        if plan.steps[s].kind != TREE:
            continue
        parent, child, relation, side = (
            plan.steps[s].near,
            plan.steps[s].far,
            state.steps[s].relation,
            plan.steps[s].side,
        )
        costs = plan.relation_costs[plan.steps[s].term]
        state.counts[STAMP] += 1
        stamp = state.counts[STAMP]
        for p in range(state.sets[row, parent, 0], state.sets[row, parent, 1]):
            low, high = _row(adjacency, state.pool[p], relation, side)
            if _spend(state, high - low):
                return False
            for i in range(low, high):
                label = adjacency.labels[i]
                if (side < 0 or (label & 1) == side) and costs[label >> 1] < INFINITE:
                    state.stamps[adjacency.neighbors[i]] = stamp
        begin, end, top = state.sets[row, child, 0], state.sets[row, child, 1], state.steps[row].top
        if not _has_room(state, state.pool, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            if state.stamps[state.pool[p]] == stamp:
                state.pool[top + count] = state.pool[p]
                count += 1
        if count == 0:
            return False
        _set(state, row, child, count)
    return True


@compiled
def _collect(adjacency: Adjacency, plan: Plan, state: State) -> None:
    """Add what the sets hold to the bindings and facts of the match."""
    if not _make_consistent(adjacency, plan, state):
        return
    row = len(plan.steps)
    for v in range(len(plan.nodes)):
        begin, end, top = state.sets[row, v, 0], state.sets[row, v, 1], state.steps[row].top
        room = state.counts[MAX_BINDINGS] - state.nodes[v].bound
        if end - begin <= room:
            continue
        first = v * (len(adjacency.indptr) - 1)
        if not _has_room(state, state.pool, top, end - begin):
            return
        count = 0
        for p in range(begin, end):
            e = state.pool[p]
            if state.is_bound[first + e] or room > 0:
                room -= 0 if state.is_bound[first + e] else 1
                state.pool[top + count] = e
                count += 1
        if count < end - begin:
            state.counts[LEFT_OUT] = 1
            _set(state, row, v, count)
            if count == 0 or not _make_consistent(adjacency, plan, state):
                return
    for v in range(len(plan.nodes)):
        begin, end, size = state.sets[row, v, 0], state.sets[row, v, 1], len(adjacency.indptr) - 1
        if not _has_room(state, state.bindings, state.counts[BINDINGS], end - begin):
            return
        for p in range(begin, end):
            bit = v * size + state.pool[p]
            if not state.is_bound[bit]:
                state.is_bound[bit] = True
                state.nodes[v].bound += 1
                state.bindings[state.counts[BINDINGS]] = state.counts[MATCH] * len(plan.nodes) * size + bit
                state.counts[BINDINGS] += 1
    for s in range(row):
        if plan.steps[s].kind == START:
            continue
        u, v, relation, side = plan.steps[s].near, plan.steps[s].far, state.steps[s].relation, plan.steps[s].side
        costs = plan.relation_costs[plan.steps[s].term]
        state.counts[STAMP] += 1
        stamp = state.counts[STAMP]
        for p in range(state.sets[row, v, 0], state.sets[row, v, 1]):
            state.stamps[state.pool[p]] = stamp
        for p in range(state.sets[row, u, 0], state.sets[row, u, 1]):
            a = state.pool[p]
            low, high = _row(adjacency, a, relation, side)
            if _spend(state, high - low) or not _has_room(state, state.facts, state.counts[FACTS], high - low):
                return
            for i in range(low, high):
                label, e = adjacency.labels[i], adjacency.neighbors[i]
                if state.stamps[e] != stamp or (u == v and e != a):
                    continue
                if (side < 0 or (label & 1) == side) and costs[label >> 1] < INFINITE:
                    edge = state.counts[MATCH] * state.counts[EDGES] + plan.steps[s].edge
                    state.facts[state.counts[FACTS]] = edge * len(adjacency.triples) + adjacency.triples[i]
                    state.counts[FACTS] += 1


@compiled
def _walk(adjacency: Adjacency, plan: Plan, state: State) -> None:
    """Try the options of each step, best first, depth first."""
    size, steps = len(adjacency.indptr) - 1, len(plan.steps)
    state.steps[0].option = state.steps[0].first_option = 0
    _options(adjacency, plan, state, 0, 0)
    s = 0
    while s >= 0 and state.counts[STOPPED] == 0:
        i = state.steps[s].option
        if i == state.steps[s + 1].first_option or state.options[i, 0] >= _worst(state):
            s -= 1
            continue
        state.steps[s].option += 1
        key = state.options[i, 1]
        if i > state.steps[s].first_option and key == state.options[i - 1, 1]:
            continue  # reached from several entities
        relation, code, cost = key // size, key % size, 0
        if plan.steps[s].kind != START:
            if plan.steps[s].free:
                relation = -1
            else:
                cost += plan.relation_costs[plan.steps[s].term, relation]
        if plan.steps[s].kind != CYCLE:
            v = plan.steps[s].far
            if not plan.nodes[v].as_set:
                cost += own_cost(plan, v, code)
            elif plan.nodes[v].level_row >= 0:
                cost += plan.level_costs[plan.nodes[v].level_row, code]
        if not _apply(adjacency, plan, state, s, relation, code):
            continue
        total = state.steps[s].prefix + cost
        if s + 1 < steps:
            s += 1
            state.steps[s].prefix = total
            state.steps[s].option = state.steps[s + 1].first_option = state.steps[s].first_option
            _options(adjacency, plan, state, s, total)
        elif state.counts[MATCH] < 0:
            _keep(plan, state, total)
        else:
            _collect(adjacency, plan, state)


@compiled_entry
def _solve(adjacency: Adjacency, plan: Plan, state: State) -> int:
    """Find the k best combinations, collect the bindings and facts of each, and return how many there are."""
    counts, steps, size = state.counts, len(plan.steps), len(adjacency.indptr) - 1
    counts[SCANS] = lower_bounds(adjacency, plan, state.nodes, state.lower, state.reached, state.message, state.touched)
    for s in range(steps):
        for later in range(steps):
            if plan.outside[s, later]:
                if plan.steps[later].kind != CYCLE:
                    state.steps[s].pending += state.nodes[plan.steps[later].far].least
                if plan.steps[later].kind != START:
                    costs = plan.relation_costs[plan.steps[later].term]
                    state.steps[s].pending += least_of(costs, 0, len(costs))
    _walk(adjacency, plan, state)
    found, cut = counts[FOUND], counts[STOPPED] != 0
    for i in range(found):
        state.best_costs[i] = state.costs[i]
    counts[FOUND] = 0
    for match in range(found):
        if counts[FULL] != 0:
            break
        counts[MATCH], counts[SCANS], counts[STOPPED], counts[LEFT_OUT] = match, 0, 0, 0
        first = counts[BINDINGS]
        for i in range(len(state.costs)):
            state.costs[i] = state.best_costs[match] + 1
        for s in range(steps):
            state.steps[s].only = state.keys[match, s]
        for v in range(len(plan.nodes)):
            state.nodes[v].only = state.keys[match, steps + v]
            state.nodes[v].bound = 0
        _walk(adjacency, plan, state)
        state.truncated[match] = cut or counts[STOPPED] != 0 or counts[LEFT_OUT] != 0
        for i in range(first, counts[BINDINGS]):
            state.is_bound[state.bindings[i] % (len(plan.nodes) * size)] = False
    for v in range(len(plan.nodes)):
        row = state.nodes[v].lower_row
        if row >= 0:
            for i in range(state.nodes[v].reach):
                state.lower[row, state.reached[row, i]] = INFINITE
    return int(found)


def search(
    adjacency: Adjacency,
    plan: Plan,
    k: int,
    limit: int,
    max_bindings: int,
    max_scans: int,
    stop: Array,
    capacity: int,
) -> list[Match] | None:
    """Find the k best combinations and complete each.

    Args:
        adjacency: The graph.
        plan: The pattern.
        k: How many matches.
        limit: Matches at this cost or above are not wanted.
        max_bindings: The most entities of one unknown node in one match.
        max_scans: The most adjacency entries to look at.
        stop: Shape (1); the search for the best ends soon after it is set to 1.
        capacity: The size of the buffers for sets, options, bindings and facts.

    Returns:
        The matches, ascending by distance; None if a buffer was too small.

    Raises:
        SearchBudgetError: If a budget ends the search before anything is found.
    """
    steps, nodes, size = len(plan.steps), len(plan.nodes), len(adjacency.indptr) - 1
    edge_steps = [s for _, s in sorted((edge, s) for s, edge in enumerate(plan.steps["edge"].tolist()) if edge >= 0)]
    edges, triples = len(edge_steps), len(adjacency.triples)
    counts = np.zeros(12, np.int64)
    counts[[STAMP, MATCH, MAX_SCANS, MAX_BINDINGS, EDGES]] = _SCRATCH.stamp, -1, max_scans, max_bindings, edges
    state = State(
        np.zeros(steps + 1, STEP_STATE),
        np.zeros(nodes, NODE_STATE),
        np.zeros((steps + 1, nodes, 2), np.int64),
        np.full((k, steps + nodes), -1, np.int64),
        np.full(k + 1, limit, np.int64),
        np.empty(steps + nodes, np.int64),
        np.empty(k, np.int64),
        np.zeros(k, np.bool_),
        counts,
        stop,
        np.empty(plan.relation_costs.shape[1] * max(plan.level_costs.shape[1], 1), np.int64),
        *_SCRATCH.arrays(capacity, size, int(np.count_nonzero(plan.nodes["informs"])), nodes),
    )
    state.steps["only"] = state.nodes["only"] = -1
    found = _solve(adjacency, plan, state)
    _SCRATCH.stamp = int(counts[STAMP])
    if counts[FULL]:
        return None
    entities = _grouped(state.bindings[: counts[BINDINGS]], found * nodes, size)
    facts = _grouped(state.facts[: counts[FACTS]], found * edges, triples)
    matches = []
    for i, (cost, key) in enumerate(zip(state.best_costs[:found].tolist(), state.keys[:found].tolist(), strict=True)):
        of_nodes = tuple(entities[i * nodes : (i + 1) * nodes])
        of_edges = tuple(facts[i * edges : (i + 1) * edges])
        if all(map(len, of_nodes)):  # else the budget ended before anything was bound
            chosen = tuple(key[s] for s in edge_steps)
            matches.append(Match(cost / SCALE, of_nodes, of_edges, chosen, bool(state.truncated.any())))
    if counts[STOPPED] and not matches:
        raise SearchBudgetError(
            f"match_pattern: a budget (max_scans={max_scans} or max_seconds) ended the search before anything was "
            "found. Raise it, or name more in the pattern."
        )
    return matches


def _grouped(codes: Array, groups: int, size: int) -> list[Array]:
    """Split numbers written as group * size + number by group, each ascending, each number once."""
    codes = np.sort(codes)
    if len(codes):
        codes = codes[np.concatenate(([True], codes[1:] != codes[:-1]))]
    ends = np.searchsorted(codes, np.arange(groups + 1) * size).tolist()
    codes %= size
    return [codes[low:high] for low, high in itertools.pairwise(ends)]
