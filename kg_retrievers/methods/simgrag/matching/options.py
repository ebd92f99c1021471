"""The options of a step: what it may choose, the cheapest bound first."""

from __future__ import annotations

from typing import NamedTuple

from kg_retrievers.algorithms.compiled import inlined, non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, START
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Plan
from kg_retrievers.methods.simgrag.matching.rows import end_of_run, other_side, part_of, ways
from kg_retrievers.methods.simgrag.matching.state import (
    STOPPED,
    State,
    allowed,
    code_of,
    fits_match,
    has_room,
    sort_pairs,
    spend,
    subtree_cost,
    worst_bound,
)


class _Listing(NamedTuple):
    """How the options of a step are listed."""

    step: int
    rest: int  # the least cost of everything but the step and what hangs below it
    worst: int  # options with this bound or a higher one are left out
    width: int  # option keys are packed by it
    levels: int  # there are relations * levels slots
    by_slot: bool  # few choices, each reached over and over: `slots` keeps the best bound of each
    free: bool  # the relation is no part of the choice


@non_allocating
def key_width(adjacency: Adjacency, plan: Plan) -> int:
    """Return an integer above every code, by which option keys are packed as relation * width + code.

    A code is an entity or a level of types; there may be more levels than entities.
    """
    return max(len(adjacency.indptr) - 1, int(plan.level_costs.shape[1]))


@non_allocating
def list_options(adjacency: Adjacency, plan: Plan, state: State, s: int, prefix: int) -> None:
    """List the choices at a step, the cheapest bound first, then by relation and code."""
    kind, v = plan.steps[s].kind, plan.steps[s].far
    listing = _Listing(
        s,
        prefix + state.steps[s].pending,
        worst_bound(state),
        key_width(adjacency, plan),
        max(plan.level_costs.shape[1], 1),
        kind == CYCLE or plan.nodes[v].as_set != 0,
        kind == START or plan.steps[s].free != 0,
    )
    relations = 1 if listing.free else plan.relation_costs.shape[1]
    slots = relations * listing.levels if listing.by_slot else 0
    for slot in range(slots):
        state.slots[slot] = INFINITE
    begin = end = state.steps[s].first_option
    if kind == START:
        end = _list_starts(adjacency, plan, state, listing, end)
    elif kind == CYCLE:
        _list_joining(adjacency, plan, state, listing, end)
    else:
        end = _list_neighbors(adjacency, plan, state, listing, end)
    if state.counts[STOPPED] != 0 or not has_room(state, state.options, end, slots):
        return
    for slot in range(slots):
        if state.slots[slot] < listing.worst:
            relation, code = slot // listing.levels, slot % listing.levels
            end = _add_option(state, listing, end, relation, code, state.slots[slot])
    sort_pairs(state.options[begin:end])
    state.steps[s + 1].first_option = end


@inlined
def _add_option(state: State, listing: _Listing, end: int, relation: int, code: int, bound: int) -> int:
    """Write an option at the end of all options; return the new end."""
    state.options[end, 0], state.options[end, 1] = bound, relation * listing.width + code
    return end + 1


@inlined
def _keep_in_slot(state: State, listing: _Listing, relation: int, code: int, bound: int) -> None:
    """Lower the bound of a choice."""
    slot = (0 if listing.free else relation) * listing.levels + code
    state.slots[slot] = min(state.slots[slot], bound)


@inlined
def _list_choice(plan: Plan, state: State, listing: _Listing, end: int, relation: int, entity: int, bound: int) -> int:
    """List a relation and an entity, or its level; return the new end of the options."""
    if listing.by_slot:
        _keep_in_slot(state, listing, relation, code_of(plan, plan.steps[listing.step].far, entity), bound)
        return end
    return _add_option(state, listing, end, 0 if listing.free else relation, entity, bound)


@inlined
def _list_starts(adjacency: Adjacency, plan: Plan, state: State, listing: _Listing, end: int) -> int:
    """List the entities, or levels, of a root; return the end of the options."""
    v = plan.steps[listing.step].far
    count = _count_starts(adjacency, plan, state, v)
    if spend(state, count) or not has_room(state, state.options, end, count):
        return end
    for i in range(count):
        e = _start(plan, state, v, i)
        code = code_of(plan, v, e)
        bound = listing.rest + subtree_cost(plan, state, v, e)
        if code < 0 or bound >= listing.worst or not fits_match(plan, state, v, e):
            continue
        if listing.by_slot:
            _keep_in_slot(state, listing, 0, code, bound)
        elif allowed(plan, state, v, e, listing.step):
            end = _add_option(state, listing, end, 0, e, bound)
    return end


@inlined
def _count_starts(adjacency: Adjacency, plan: Plan, state: State, v: int) -> int:
    """Return how many entities a root may be."""
    if plan.nodes[v].known and state.nodes[v].only >= 0:
        return 1
    if state.nodes[v].lower_row >= 0:
        return int(state.nodes[v].reach)
    return plan.starts[v + 1] - plan.starts[v] if plan.nodes[v].known else len(adjacency.indptr) - 1


@inlined
def _start(plan: Plan, state: State, v: int, i: int) -> int:
    """Return one of the entities that a root may be."""
    if plan.nodes[v].known and state.nodes[v].only >= 0:
        return int(state.nodes[v].only)
    if state.nodes[v].lower_row >= 0:
        return int(state.reached[state.nodes[v].lower_row, i])
    return int(plan.candidates[plan.starts[v] + i]) if plan.nodes[v].known else i


@inlined
def _relation_wanted(plan: Plan, state: State, s: int) -> int:
    """Return the only relation that a step may take; -1 where it chooses."""
    first_use = plan.steps[s].first_use
    if first_use >= 0 and first_use < s:
        return int(state.steps[first_use].relation)
    return int(state.steps[s].only)


@inlined
def _list_joining(adjacency: Adjacency, plan: Plan, state: State, listing: _Listing, end: int) -> None:
    """Keep in slots the relations that join two placed nodes."""
    s = listing.step
    u, v, side = plan.steps[s].near, plan.steps[s].far, plan.steps[s].side
    costs, only = plan.relation_costs[plan.steps[s].term], _relation_wanted(plan, state, s)
    first, last = ways(only, side)
    for p in range(state.sets[s, u, 0], state.sets[s, u, 1]):
        a = state.pool[p]
        for way in range(first, last):
            wanted = a if u == v else state.nodes[v].code
            i, stop = part_of(adjacency, a, only, way)
            other, other_stop = part_of(adjacency, wanted, only, other_side(way))
            if other_stop - other < stop - i:  # the part of the other end is shorter
                i, stop, wanted = other, other_stop, a
            if spend(state, stop - i + (1 if way == first else 0)) or not has_room(state, state.options, end, stop - i):
                return
            while i < stop:
                label = adjacency.labels[i]
                cost = costs[relation_of(label)]
                if cost == INFINITE or listing.rest + cost >= listing.worst:
                    i = end_of_run(adjacency.labels, i, stop)
                    continue
                if adjacency.neighbors[i] == wanted:
                    _keep_in_slot(state, listing, relation_of(label), 0, listing.rest + cost)
                i += 1


@inlined
def _list_neighbors(adjacency: Adjacency, plan: Plan, state: State, listing: _Listing, end: int) -> int:
    """List the relations to, and entities or levels of, a node next to a placed one; return the end of the options."""
    s = listing.step
    u, v, side = plan.steps[s].near, plan.steps[s].far, plan.steps[s].side
    costs, only = plan.relation_costs[plan.steps[s].term], _relation_wanted(plan, state, s)
    # One neighbor is as good as another where nothing is known of them.
    alike = listing.by_slot and state.nodes[v].lower_row < 0 and plan.nodes[v].level_row < 0
    begin_set, end_set = state.sets[s, u, 0], state.sets[s, u, 1]
    near = state.pool[begin_set]
    from_far = _is_far_end_lighter(adjacency, plan, state, s, only)
    if from_far:
        begin_set, end_set, side = 0, state.nodes[v].reach, other_side(side)
    first, last = ways(only, side)
    for p in range(begin_set, end_set):
        a = state.reached[state.nodes[v].lower_row, p] if from_far else state.pool[p]
        for way in range(first, last):
            i, stop = part_of(adjacency, a, only, way)
            if spend(state, stop - i + (1 if way == first else 0)) or not has_room(state, state.options, end, stop - i):
                return end
            while i < stop:
                label = adjacency.labels[i]
                cost = costs[relation_of(label)]
                if cost == INFINITE or listing.rest + cost >= listing.worst:
                    i = end_of_run(adjacency.labels, i, stop)
                    continue
                e = adjacency.neighbors[i]
                i += 1
                if from_far and e != near:
                    continue
                e = a if from_far else e
                bound = listing.rest + cost + subtree_cost(plan, state, v, e)
                if bound >= listing.worst or not _may_take(plan, state, v, e, s):
                    continue
                end = _list_choice(plan, state, listing, end, relation_of(label), e, bound)
                if alike:
                    i = end_of_run(adjacency.labels, i - 1, stop)
    return end


@inlined
def _is_far_end_lighter(adjacency: Adjacency, plan: Plan, state: State, s: int, only: int) -> bool:
    """Return whether fewer edges are at what the far end may be than at the one entity of the near end."""
    u, v = plan.steps[s].near, plan.steps[s].far
    begin, end = state.sets[s, u, 0], state.sets[s, u, 1]
    if state.nodes[v].lower_row < 0 or end - begin != 1:
        return False
    first, last = ways(only, plan.steps[s].side)
    count = 0
    for way in range(first, last):
        low, high = part_of(adjacency, state.pool[begin], only, way)
        count += high - low
    return bool(state.nodes[v].weight < count)


@inlined
def _may_take(plan: Plan, state: State, node: int, entity: int, s: int) -> bool:
    """Return whether a node may take an entity at step s, as far as its types and the other nodes go."""
    if code_of(plan, node, entity) < 0 or not fits_match(plan, state, node, entity):
        return False
    return allowed(plan, state, node, entity, s)
