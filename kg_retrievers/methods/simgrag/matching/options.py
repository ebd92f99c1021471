"""The options of a step: what it may choose, the cheapest bound first."""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import Graph, Pointer, compiled, wide
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching import tally
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, START
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Layout
from kg_retrievers.methods.simgrag.matching.pointers import (
    Progress,
    code_of,
    end_of_run,
    has_room,
    may_take,
    part_of,
    root_of,
    roots_of,
    spend,
    subtree_cost,
    ways,
    worst_bound,
)


@compiled
def key_width(graph: Graph, plan: Layout) -> int:
    """Return an integer above every code, by which option keys are packed as relation * width + code.

    A code is an entity or a level of types; there may be more levels than entities.
    """
    return max(graph.entities, plan.level_count)


@compiled
def list_options(graph: Graph, plan: Layout, state: Progress, s: int) -> None:
    """List the choices at a step, the cheapest bound first, then by relation and code.

    There may be few choices, each reached over and over: `slots` keeps the best bound of each.
    """
    kind = plan.kind[s]
    by_slot = kind == CYCLE or plan.as_set[plan.far[s]] != 0
    relations = 1 if kind == START or plan.free[s] else plan.relations
    levels = max(plan.level_count, 1)
    slots = relations * levels if by_slot else 0
    for slot in range(slots):
        state.slots[slot] = INFINITE
    rest, begin = state.prefix[s] + state.pending[s], state.first_option[s]
    end = state.option[s] = begin
    if kind == START:
        end = _list_starts(graph, plan, state, s, rest)
    elif kind == CYCLE:
        _list_joining(graph, plan, state, s, rest)
    else:
        end = _list_neighbors(graph, plan, state, s, rest)
    if state.counts[tally.STOPPED] != 0 or not has_room(state, end, slots):
        return
    width, worst = key_width(graph, plan), worst_bound(state)
    for slot in range(slots):
        if state.slots[slot] < worst:
            state.option_bounds[end] = state.slots[slot]
            state.option_keys[end] = slot // levels * width + slot % levels
            end += 1
    _sort_options(state.option_bounds, state.option_keys, begin, end)
    state.first_option[s + 1] = end


@compiled
def _list_choice(
    graph: Graph, plan: Layout, state: Progress, s: int, end: int, relation: int, entity: int, bound: int
) -> int:
    """List a relation and an entity, or its level; return the new end of the options."""
    if plan.kind[s] == START or plan.free[s]:
        relation = 0
    if plan.as_set[plan.far[s]]:
        slot = relation * max(plan.level_count, 1) + code_of(graph, plan, plan.far[s], entity)
        state.slots[slot] = min(state.slots[slot], bound)
        return end
    state.option_bounds[end], state.option_keys[end] = bound, relation * key_width(graph, plan) + entity
    return end + 1


@compiled
def _list_starts(graph: Graph, plan: Layout, state: Progress, s: int, rest: int) -> int:
    """List the entities, or levels, of a root; return the end of the options."""
    v, worst, end = plan.far[s], worst_bound(state), state.first_option[s]
    is_given = plan.known[v] and state.only_code[v] >= 0
    first, last = roots_of(graph, plan, v)
    if is_given:
        last = first + 1
    elif state.lower[v] >= 0:
        first, last = state.lower[v], state.lower[v] + state.reach[v]
    elif plan.known[v]:
        first, last = plan.starts[v], plan.starts[v + 1]
    if spend(state, last - first) or not has_room(state, end, last - first):
        return end
    first_relation = wide(0)
    until = first_relation if plan.as_set[v] else s  # a set loses what other nodes have taken when it is placed
    for i in range(first, last):
        if is_given:
            e = state.only_code[v]
        elif state.lower[v] >= 0:
            e = wide(state.reached[i])
        else:
            e = wide(plan.candidates[i]) if plan.known[v] else root_of(plan, v, i)
        bound = rest + subtree_cost(graph, plan, state, v, e)
        if bound < worst and may_take(graph, plan, state, v, e, until):
            end = _list_choice(graph, plan, state, s, end, first_relation, e, bound)
    return end


@compiled
def _relation_wanted(plan: Layout, state: Progress, s: int) -> int:
    """Return the only relation that a step may take; -1 where it chooses."""
    first_use = plan.first_use[s]
    if first_use >= 0 and first_use < s:
        return state.relation[first_use]
    return state.only_relation[s]


@compiled
def _list_joining(graph: Graph, plan: Layout, state: Progress, s: int, rest: int) -> None:
    """Keep in slots the relations that join two placed nodes."""
    u, v, costs = plan.near[s], plan.far[s], plan.term[s] * plan.relations
    only, worst, levels = _relation_wanted(plan, state, s), worst_bound(state), max(plan.level_count, 1)
    first, last = ways(only, plan.side[s])
    for p in range(state.begin[s * plan.nodes + u], state.end[s * plan.nodes + u]):
        a = wide(state.pool[p])
        for way in range(first, last):
            wanted = a if u == v else state.code[v]
            i, stop = part_of(graph, a, only, way)
            other, other_stop = part_of(graph, wanted, only, way ^ 1 if way >= 0 else way)
            if other_stop - other < stop - i:  # the part of the other end is shorter
                i, stop, wanted = other, other_stop, a
            if spend(state, stop - i + (1 if way == first else 0)) or not has_room(
                state, state.first_option[s], stop - i
            ):
                return
            while i < stop:
                relation = wide(relation_of(graph.labels[i]))
                cost = plan.relation_costs[costs + relation]
                if cost == INFINITE or rest + cost >= worst:
                    i = end_of_run(graph.labels, i, stop)
                    continue
                if graph.neighbors[i] == wanted:
                    slot = 0 if plan.free[s] else relation * levels
                    state.slots[slot] = min(state.slots[slot], rest + cost)
                i += 1


@compiled
def _list_neighbors(graph: Graph, plan: Layout, state: Progress, s: int, rest: int) -> int:
    """List the relations to, and entities or levels of, a node next to a placed one; return the end of the options."""
    v, costs, end = plan.far[s], plan.term[s] * plan.relations, state.first_option[s]
    only, worst = _relation_wanted(plan, state, s), worst_bound(state)
    # One neighbor is as good as another where nothing is known of them.
    alike = plan.as_set[v] != 0 and state.lower[v] < 0 and plan.level_row[v] < 0
    near = s * plan.nodes + plan.near[s]
    first, last = ways(only, plan.side[s])
    for p in range(state.begin[near], state.end[near]):
        for way in range(first, last):
            i, stop = part_of(graph, wide(state.pool[p]), only, way)
            if spend(state, stop - i + (1 if way == first else 0)) or not has_room(state, end, stop - i):
                return end
            while i < stop:
                relation = wide(relation_of(graph.labels[i]))
                cost = plan.relation_costs[costs + relation]
                if cost == INFINITE or rest + cost >= worst:
                    i = end_of_run(graph.labels, i, stop)
                    continue
                e = wide(graph.neighbors[i])
                i += 1
                bound = rest + cost + subtree_cost(graph, plan, state, v, e)
                if bound >= worst or not may_take(graph, plan, state, v, e, s):
                    continue
                end = _list_choice(graph, plan, state, s, end, relation, e, bound)
                if alike:
                    i = end_of_run(graph.labels, i - 1, stop)
    return end


@compiled
def _sort_options(bounds: Pointer, keys: Pointer, begin: int, end: int) -> None:
    """Sort options by bound and key, in place (shell sort: small machine code, no scratch space)."""
    gap = wide(1)
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            bound, key, at = bounds[i], keys[i], i - gap
            while at >= begin and (bounds[at] > bound or (bounds[at] == bound and keys[at] > key)):
                bounds[at + gap], keys[at + gap] = bounds[at], keys[at]
                at -= gap
            bounds[at + gap], keys[at + gap] = bound, key
        gap //= 3
