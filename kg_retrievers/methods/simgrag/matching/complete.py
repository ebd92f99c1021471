"""All bindings and facts of a combination: its sets are made consistent and collected."""

from __future__ import annotations

import itertools

import numpy as np

from kg_retrievers.algorithms.compiled import inlined, non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of, triple_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching.layout import START, TREE
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Plan
from kg_retrievers.methods.simgrag.matching.rows import part_of, ways
from kg_retrievers.methods.simgrag.matching.state import (
    BINDINGS,
    EDGES,
    FACTS,
    LEFT_OUT,
    MATCH,
    MAX_BINDINGS,
    State,
    has_room,
    make_set,
    next_stamp,
    spend,
)


@non_allocating
def _keep_supported(adjacency: Adjacency, plan: Plan, state: State, row: int, child: int) -> bool:
    """Drop from the set above a node what has no neighbor in the node's set; return whether something was dropped."""
    s = plan.nodes[child].step
    parent, relation, side = plan.steps[s].near, state.steps[s].relation, plan.steps[s].side
    costs = plan.relation_costs[plan.steps[s].term]
    stamp = next_stamp(state, 1)
    for p in range(state.sets[row, child, 0], state.sets[row, child, 1]):
        state.stamps[state.pool[p]] = stamp
    begin, end, top = state.sets[row, parent, 0], state.sets[row, parent, 1], state.steps[row].top
    if not has_room(state, state.pool, top, end - begin):
        return False
    count = 0
    first, last = ways(relation, side)
    for p in range(begin, end):
        a = state.pool[p]
        looked, found = 1, False
        for way in range(first, last):
            low, high = part_of(adjacency, a, relation, way)
            for i in range(low, high):
                looked += 1
                fits = costs[relation_of(adjacency.labels[i])] < INFINITE
                if fits and state.stamps[adjacency.neighbors[i]] == stamp:
                    found = True
                    break
            if found:
                state.pool[top + count] = a
                count += 1
                break
        if spend(state, looked):
            return False
    if count == end - begin:
        return False
    make_set(state, row, parent, count)
    return True


@non_allocating
def propagate(adjacency: Adjacency, plan: Plan, state: State, row: int, node: int) -> bool:
    """Shrink the sets above one that has shrunk; return whether none is empty."""
    while state.sets[row, node, 1] > state.sets[row, node, 0]:
        if plan.nodes[node].parent < 0 or not _keep_supported(adjacency, plan, state, row, node):
            return True
        node = plan.nodes[node].parent
    return False


@inlined
def _keep_reached(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Keep in the set of the far end of a step what the near end reaches; return whether anything is left."""
    row, near, far = len(plan.steps), plan.steps[s].near, plan.steps[s].far
    relation, side, costs = state.steps[s].relation, plan.steps[s].side, plan.relation_costs[plan.steps[s].term]
    stamp = next_stamp(state, 1)
    first, last = ways(relation, side)
    for p in range(state.sets[row, near, 0], state.sets[row, near, 1]):
        for way in range(first, last):
            low, high = part_of(adjacency, state.pool[p], relation, way)
            if spend(state, high - low):
                return False
            for i in range(low, high):
                if costs[relation_of(adjacency.labels[i])] < INFINITE:
                    state.stamps[adjacency.neighbors[i]] = stamp
    begin, end, top = state.sets[row, far, 0], state.sets[row, far, 1], state.steps[row].top
    if not has_room(state, state.pool, top, end - begin):
        return False
    count = 0
    for p in range(begin, end):
        if state.stamps[state.pool[p]] == stamp:
            state.pool[top + count] = state.pool[p]
            count += 1
    if count > 0:
        make_set(state, row, far, count)
    return count > 0


@non_allocating
def _make_consistent(adjacency: Adjacency, plan: Plan, state: State) -> bool:
    """Keep in each set of a complete combination only what occurs in a match; return whether none is empty."""
    row = len(plan.steps)
    for s in range(row - 1, -1, -1):
        if plan.steps[s].kind == TREE:
            _keep_supported(adjacency, plan, state, row, plan.steps[s].far)
            if state.sets[row, plan.steps[s].near, 0] == state.sets[row, plan.steps[s].near, 1]:
                return False
    for s in range(row):  # noqa: SIM110 - numba compiles no generator expressions
        if plan.steps[s].kind == TREE and not _keep_reached(adjacency, plan, state, s):
            return False
    return True


@non_allocating
def _is_bound(state: State, bit: int) -> bool:
    """Return whether an entity is bound in the match, by the number of its bit: node * entities + entity."""
    return bool((state.is_bound[bit >> 3] >> (bit & 7)) & 1)


@inlined
def _leave_out(adjacency: Adjacency, plan: Plan, state: State) -> bool:
    """Cut the sets down to `max_bindings`; return whether something is left of all of them."""
    row = len(plan.steps)
    for v in range(len(plan.nodes)):
        begin, end, top = state.sets[row, v, 0], state.sets[row, v, 1], state.steps[row].top
        room = state.counts[MAX_BINDINGS] - state.nodes[v].bound
        if end - begin <= room:
            continue
        first = v * (len(adjacency.indptr) - 1)
        if not has_room(state, state.pool, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            e = state.pool[p]
            bound = _is_bound(state, first + e)
            if bound or room > 0:
                room -= 0 if bound else 1
                state.pool[top + count] = e
                count += 1
        if count < end - begin:
            state.counts[LEFT_OUT] = 1
            make_set(state, row, v, count)
            if count == 0 or not _make_consistent(adjacency, plan, state):
                return False
    return True


@inlined
def _collect_bindings(adjacency: Adjacency, plan: Plan, state: State) -> bool:
    """Add what the sets hold to the bindings; return whether there was room."""
    row, size = len(plan.steps), len(adjacency.indptr) - 1
    for v in range(len(plan.nodes)):
        begin, end = state.sets[row, v, 0], state.sets[row, v, 1]
        if not has_room(state, state.bindings, state.counts[BINDINGS], end - begin):
            return False
        for p in range(begin, end):
            bit = v * size + state.pool[p]
            if not _is_bound(state, bit):
                state.is_bound[bit >> 3] |= 1 << (bit & 7)
                state.nodes[v].bound += 1
                state.bindings[state.counts[BINDINGS]] = state.counts[MATCH] * len(plan.nodes) * size + bit
                state.counts[BINDINGS] += 1
    return True


@inlined
def _collect_facts(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Add the triples that join the two sets of a step to the facts; return whether there was room and time."""
    row, u, v = len(plan.steps), plan.steps[s].near, plan.steps[s].far
    relation, side, costs = state.steps[s].relation, plan.steps[s].side, plan.relation_costs[plan.steps[s].term]
    stamp = next_stamp(state, 1)
    for p in range(state.sets[row, v, 0], state.sets[row, v, 1]):
        state.stamps[state.pool[p]] = stamp
    edge = state.counts[MATCH] * state.counts[EDGES] + plan.steps[s].edge
    first, last = ways(relation, side)
    for p in range(state.sets[row, u, 0], state.sets[row, u, 1]):
        a = state.pool[p]
        for way in range(first, last):
            low, high = part_of(adjacency, a, relation, way)
            if spend(state, high - low) or not has_room(state, state.facts, state.counts[FACTS], high - low):
                return False
            for i in range(low, high):
                e = adjacency.neighbors[i]
                if state.stamps[e] != stamp or (u == v and e != a):
                    continue
                if costs[relation_of(adjacency.labels[i])] < INFINITE:
                    fact = edge * len(adjacency.backward_triples) + triple_of(adjacency, a, i)
                    state.facts[state.counts[FACTS]] = fact
                    state.counts[FACTS] += 1
    return True


@non_allocating
def collect(adjacency: Adjacency, plan: Plan, state: State) -> None:
    """Add what the sets hold to the bindings and facts of the match."""
    if not _make_consistent(adjacency, plan, state):
        return
    if not _leave_out(adjacency, plan, state) or not _collect_bindings(adjacency, plan, state):
        return
    for s in range(len(plan.steps)):
        if plan.steps[s].kind != START and not _collect_facts(adjacency, plan, state, s):
            return


def grouped(codes: Array, groups: int, size: int) -> list[Array]:
    """Split integers written as group * size + id by group, each ascending, each id once."""
    codes = codes.copy()
    codes.sort()
    again = codes[1:] == codes[:-1]
    if again.any():
        codes = codes[np.append(True, ~again)]
    ends = codes.searchsorted(np.arange(0, (groups + 1) * size, size)).tolist()
    codes %= size
    return [codes[low:high] for low, high in itertools.pairwise(ends)]
