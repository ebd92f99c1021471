"""All bindings and facts of a combination: its sets are made consistent and collected."""

from __future__ import annotations

import itertools

import numpy as np

from kg_retrievers.algorithms.compiled import Graph, compiled, wide
from kg_retrievers.graph.adjacency import relation_of, triple_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching import tally
from kg_retrievers.methods.simgrag.matching.layout import START, TREE
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Layout
from kg_retrievers.methods.simgrag.matching.pointers import (
    Progress,
    has_room,
    make_set,
    next_stamps,
    part_of,
    spend,
    ways,
)


@compiled
def _keep_supported(graph: Graph, plan: Layout, state: Progress, row: int, child: int) -> bool:
    """Drop entities without a neighbor in a node's set from the set above. Return whether something was dropped."""
    s = plan.placed_by[child]
    relation, costs = state.relation[s], plan.term[s] * plan.relations
    stamp = next_stamps(graph, state)
    for p in range(state.begin[row * plan.nodes + child], state.end[row * plan.nodes + child]):
        state.stamps[state.pool[p]] = stamp
    at, top = row * plan.nodes + plan.near[s], state.top[row]
    begin, end = state.begin[at], state.end[at]
    if not has_room(state, top, end - begin):
        return False
    count = 0
    first, last = ways(relation, plan.side[s])
    for p in range(begin, end):
        a = wide(state.pool[p])
        looked, found = 1, False
        for way in range(first, last):
            low, high = part_of(graph, a, relation, way)
            while low < high and not found:
                looked += 1
                fits = plan.relation_costs[costs + relation_of(graph.labels[low])] < INFINITE
                found = fits and state.stamps[graph.neighbors[low]] == stamp
                low += 1
            if found:
                state.pool[top + count] = a
                count += 1
                break
        if spend(state, looked):
            return False
    if count == end - begin:
        return False
    make_set(plan, state, row, plan.near[s], count)
    return True


@compiled
def propagate(graph: Graph, plan: Layout, state: Progress, row: int, node: int) -> bool:
    """Shrink the sets above one that has shrunk. Return whether none is empty."""
    while state.end[row * plan.nodes + node] > state.begin[row * plan.nodes + node]:
        if plan.parent[node] < 0 or not _keep_supported(graph, plan, state, row, node):
            return True
        node = plan.parent[node]
    return False


@compiled
def _keep_reached(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Keep the entities that the near end reaches in the set of a step's far end. Return whether anything is left."""
    row, relation, costs = plan.steps, state.relation[s], plan.term[s] * plan.relations
    near, far = row * plan.nodes + plan.near[s], row * plan.nodes + plan.far[s]
    stamp = next_stamps(graph, state)
    first, last = ways(relation, plan.side[s])
    for p in range(state.begin[near], state.end[near]):
        for way in range(first, last):
            low, high = part_of(graph, wide(state.pool[p]), relation, way)
            if spend(state, high - low):
                return False
            for i in range(low, high):
                if plan.relation_costs[costs + relation_of(graph.labels[i])] < INFINITE:
                    state.stamps[graph.neighbors[i]] = stamp
    begin, end, top = state.begin[far], state.end[far], state.top[row]
    if not has_room(state, top, end - begin):
        return False
    count = 0
    for p in range(begin, end):
        if state.stamps[state.pool[p]] == stamp:
            state.pool[top + count] = state.pool[p]
            count += 1
    if count > 0:
        make_set(plan, state, row, plan.far[s], count)
    return count > 0


@compiled
def _make_consistent(graph: Graph, plan: Layout, state: Progress) -> bool:
    """Keep only entities of a match in each set of a complete combination. Return whether none is empty."""
    row = plan.steps
    for s in range(row - 1, -1, -1):
        if plan.kind[s] == TREE:
            _keep_supported(graph, plan, state, row, plan.far[s])
            if state.begin[row * plan.nodes + plan.near[s]] == state.end[row * plan.nodes + plan.near[s]]:
                return False
    for s in range(row):  # noqa: SIM110 - numba compiles no generator expressions
        if plan.kind[s] == TREE and not _keep_reached(graph, plan, state, s):
            return False
    return True


@compiled
def _leave_out(graph: Graph, plan: Layout, state: Progress) -> bool:
    """Cut the sets down to `max_bindings`. Return whether something is left of all of them."""
    row = plan.steps
    for v in range(plan.nodes):
        begin, end, top = state.begin[row * plan.nodes + v], state.end[row * plan.nodes + v], state.top[row]
        room = state.counts[tally.MAX_BINDINGS] - state.bound[v]
        if end - begin <= room:
            continue
        if not has_room(state, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            bit = v * graph.entities + state.pool[p]
            is_bound = (state.is_bound[bit >> 3] >> (bit & 7)) & 1
            if is_bound or room > 0:
                room -= 1 - is_bound
                state.pool[top + count] = state.pool[p]
                count += 1
        if count < end - begin:
            state.counts[tally.LEFT_OUT] = 1
            make_set(plan, state, row, v, count)
            if count == 0 or not _make_consistent(graph, plan, state):
                return False
    return True


@compiled
def _collect_bindings(graph: Graph, plan: Layout, state: Progress) -> bool:
    """Add the entities of the sets to the bindings. Return whether there was room."""
    row, first = plan.steps, state.counts[tally.MATCH] * plan.nodes * graph.entities
    for v in range(plan.nodes):
        begin, end = state.begin[row * plan.nodes + v], state.end[row * plan.nodes + v]
        if not has_room(state, state.counts[tally.BINDINGS], end - begin):
            return False
        for p in range(begin, end):
            bit = v * graph.entities + state.pool[p]
            if not (state.is_bound[bit >> 3] >> (bit & 7)) & 1:
                state.is_bound[bit >> 3] |= 1 << (bit & 7)
                state.bound[v] += 1
                state.bindings[state.counts[tally.BINDINGS]] = first + bit
                state.counts[tally.BINDINGS] += 1
    return True


@compiled
def _collect_facts(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Add the triples that join the two sets of a step to the facts. Return whether there was room and time."""
    row, relation, costs = plan.steps, state.relation[s], plan.term[s] * plan.relations
    near, far = row * plan.nodes + plan.near[s], row * plan.nodes + plan.far[s]
    stamp = next_stamps(graph, state)
    for p in range(state.begin[far], state.end[far]):
        state.stamps[state.pool[p]] = stamp
    edge = state.counts[tally.MATCH] * state.counts[tally.EDGES] + plan.edge[s]
    first, last = ways(relation, plan.side[s])
    for p in range(state.begin[near], state.end[near]):
        a = wide(state.pool[p])
        for way in range(first, last):
            low, high = part_of(graph, a, relation, way)
            if spend(state, high - low) or not has_room(state, state.counts[tally.FACTS], high - low):
                return False
            for i in range(low, high):
                e = graph.neighbors[i]
                if state.stamps[e] != stamp or (near == far and e != a):
                    continue
                if plan.relation_costs[costs + relation_of(graph.labels[i])] < INFINITE:
                    triple = triple_of(graph, a, i)  # type: ignore[arg-type] # it has these columns
                    state.facts[state.counts[tally.FACTS]] = edge * graph.triples + triple
                    state.counts[tally.FACTS] += 1
    return True


@compiled
def collect(graph: Graph, plan: Layout, state: Progress) -> None:
    """Add the entities and triples of the sets to the bindings and facts of the match."""
    if not _make_consistent(graph, plan, state):
        return
    if not _leave_out(graph, plan, state) or not _collect_bindings(graph, plan, state):
        return
    for s in range(plan.steps):
        if plan.kind[s] != START and not _collect_facts(graph, plan, state, s):
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
