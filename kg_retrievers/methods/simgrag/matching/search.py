"""Branch and bound over a plan: tries the choices of each step, best first."""

from __future__ import annotations

from typing import NamedTuple

from kg_retrievers.algorithms.compiled import inlined, non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.complete import collect, propagate
from kg_retrievers.methods.simgrag.matching.plan import (
    CYCLE,
    INFINITE,
    LEVEL,
    NOTHING,
    START,
    TREE,
    Plan,
)
from kg_retrievers.methods.simgrag.matching.rows import end_of_run, joined, other_side, part_of, ways
from kg_retrievers.methods.simgrag.matching.state import (
    FOUND,
    MATCH,
    STOPPED,
    State,
    allowed,
    code_of,
    fits_match,
    has_room,
    make_set,
    next_stamp,
    own_cost,
    sort_pairs,
    spend,
    subtree_cost,
    worst_bound,
)

# --- the options of a step -------------------------------------------------------------------------------------------


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
def _key_width(adjacency: Adjacency, plan: Plan) -> int:
    """Return an integer above every code, by which option keys are packed as relation * width + code.

    A code is an entity or a level of types; there may be more levels than entities.
    """
    return max(len(adjacency.indptr) - 1, int(plan.level_costs.shape[1]))


@non_allocating
def _options(adjacency: Adjacency, plan: Plan, state: State, s: int, prefix: int) -> None:
    """List the choices at a step, the cheapest bound first, then by relation and code."""
    kind, v = plan.steps[s].kind, plan.steps[s].far
    listing = _Listing(
        s,
        prefix + state.steps[s].pending,
        worst_bound(state),
        _key_width(adjacency, plan),
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


# --- the state after an option ---------------------------------------------------------------------------------------


@non_allocating
def _apply(adjacency: Adjacency, plan: Plan, state: State, s: int, relation: int, code: int) -> bool:
    """Write the state after step s with an option; return whether a match is still possible."""
    row, v, kind = s + 1, plan.steps[s].far, plan.steps[s].kind
    for w in range(len(plan.nodes)):
        state.sets[row, w, 0], state.sets[row, w, 1] = state.sets[s, w, 0], state.sets[s, w, 1]
    state.steps[row].top = state.steps[s].top
    state.steps[s].relation = relation
    if kind == CYCLE:
        return _keep_joined(adjacency, plan, state, s)
    state.nodes[v].code = code
    if plan.nodes[v].as_set:
        if kind == START:
            return _place_everything(adjacency, plan, state, s)
        return _place_neighbors(adjacency, plan, state, s)
    if not has_room(state, state.pool, state.steps[row].top, 1):
        return False
    state.pool[state.steps[row].top] = code
    make_set(state, row, v, 1)
    if kind == TREE and not _keep_joined(adjacency, plan, state, s):
        return False
    return _keep_different(adjacency, plan, state, s)


@inlined
def _place_everything(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Place an unknown root: the set of all entities of its level; return whether there are any."""
    row, v, size = s + 1, plan.steps[s].far, len(adjacency.indptr) - 1
    if spend(state, size) or not has_room(state, state.pool, state.steps[row].top, size):
        return False
    count = 0
    for e in range(size):
        if code_of(plan, v, e) == state.nodes[v].code and allowed(plan, state, v, e, s):
            state.pool[state.steps[row].top + count] = e
            count += 1
    make_set(state, row, v, count)
    return count > 0


@inlined
def _place_neighbors(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Place an unknown node: the set of all neighbors that fit; return whether a match is still possible."""
    row, u, v = s + 1, plan.steps[s].near, plan.steps[s].far
    relation, code, side = state.steps[s].relation, state.nodes[v].code, plan.steps[s].side
    costs, worst = plan.relation_costs[plan.steps[s].term], worst_bound(state)
    taken = next_stamp(state, 2)
    refused = taken - 1
    top, count = state.steps[row].top, 0
    first, last = ways(relation, side)
    for p in range(state.sets[s, u, 0], state.sets[s, u, 1]):
        for way in range(first, last):
            low, high = part_of(adjacency, state.pool[p], relation, way)
            if spend(state, high - low + (1 if way == first else 0)) or not has_room(
                state, state.pool, top + count, high - low
            ):
                return False
            for i in range(low, high):
                e = adjacency.neighbors[i]
                if state.stamps[e] >= refused or costs[relation_of(adjacency.labels[i])] == INFINITE:
                    continue
                state.stamps[e] = refused
                fits = subtree_cost(plan, state, v, e) < worst and code_of(plan, v, e) == code
                if fits and allowed(plan, state, v, e, s):
                    state.stamps[e] = taken
                    state.pool[top + count] = e
                    count += 1
    if count == 0:
        return False
    make_set(state, row, v, count)
    return propagate(adjacency, plan, state, row, v)


@inlined
def _keep_joined(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Keep of the near end what the relation joins to the entity of the far end; return whether a match is possible."""
    row, u, v = s + 1, plan.steps[s].near, plan.steps[s].far
    relation, side = state.steps[s].relation, plan.steps[s].side
    begin, end, top = state.sets[s, u, 0], state.sets[s, u, 1], state.steps[row].top
    if not has_room(state, state.pool, top, end - begin):
        return False
    count = 0
    for p in range(begin, end):
        a = state.pool[p]
        other = state.nodes[v].code if u != v else a
        if joined(adjacency, a, other, relation, side):
            state.pool[top + count] = a
            count += 1
        if spend(state, 1):
            return False
    if count == end - begin:
        return True
    make_set(state, row, u, count)
    return propagate(adjacency, plan, state, row, u)


@inlined
def _keep_different(adjacency: Adjacency, plan: Plan, state: State, s: int) -> bool:
    """Take the entity of step s out of the sets of nodes that must differ; return whether a match is still possible."""
    row, v, code = s + 1, plan.steps[s].far, state.nodes[plan.steps[s].far].code
    for w in range(len(plan.nodes)):
        if not plan.nodes[w].as_set or not plan.differs[v, w] or plan.nodes[w].step >= s:
            continue
        begin, end, top = state.sets[row, w, 0], state.sets[row, w, 1], state.steps[row].top
        if not has_room(state, state.pool, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            if state.pool[p] != code:
                state.pool[top + count] = state.pool[p]
                count += 1
        if count < end - begin:
            make_set(state, row, w, count)
            if not propagate(adjacency, plan, state, row, w):
                return False
    return True


# --- the k best ------------------------------------------------------------------------------------------------------


@inlined
def _write_key(plan: Plan, state: State) -> None:
    """Write what tells the combination at hand apart from others."""
    steps, key = len(plan.steps), state.key
    for i in range(steps):
        key[i] = state.steps[i].relation if plan.steps[i].in_key else -1
    for v in range(len(plan.nodes)):
        key[steps + v] = -1
        if plan.nodes[v].key == LEVEL and not plan.nodes[v].as_set:
            key[steps + v] = plan.levels[plan.nodes[v].level_row, state.nodes[v].code]
        elif plan.nodes[v].key != NOTHING:
            key[steps + v] = state.nodes[v].code


@inlined
def _is_kept(state: State) -> bool:
    """Return whether the combination at hand is among the k best already."""
    for i in range(state.counts[FOUND]):
        same = True
        for j in range(len(state.key)):
            same = same and state.keys[i, j] == state.key[j]
        if same:
            return True
    return False


@non_allocating
def keep_key(state: State, cost: int) -> None:
    """Put the combination in `key` among the k best, unless it is there already."""
    if _is_kept(state):
        return
    k, found, position = len(state.keys), state.counts[FOUND], state.counts[FOUND]
    while position > 0 and state.costs[position - 1] > cost:
        position -= 1
    for i in range(min(found, k - 1), position, -1):
        for j in range(len(state.key)):
            state.keys[i, j] = state.keys[i - 1, j]
        state.costs[i] = state.costs[i - 1]
    for j in range(len(state.key)):
        state.keys[position, j] = state.key[j]
    state.costs[position] = cost
    state.counts[FOUND] = min(found + 1, k)


@inlined
def _cost_of(plan: Plan, s: int, relation: int, code: int) -> int:
    """Return what an option of a step costs."""
    cost = 0
    if plan.steps[s].kind != START and not plan.steps[s].free:
        cost += plan.relation_costs[plan.steps[s].term, relation]
    if plan.steps[s].kind == CYCLE:
        return cost
    v = plan.steps[s].far
    if not plan.nodes[v].as_set:
        return cost + own_cost(plan, v, code)
    if plan.nodes[v].level_row >= 0:
        cost += plan.level_costs[plan.nodes[v].level_row, code]
    return cost


@non_allocating
def walk(adjacency: Adjacency, plan: Plan, state: State) -> None:
    """Try the options of each step, best first, depth first."""
    width, steps = _key_width(adjacency, plan), len(plan.steps)
    state.steps[0].option = state.steps[0].first_option = 0
    _options(adjacency, plan, state, 0, 0)
    s = 0
    while s >= 0 and state.counts[STOPPED] == 0:
        i = state.steps[s].option
        if i == state.steps[s + 1].first_option or state.options[i, 0] >= worst_bound(state):
            s -= 1
            continue
        state.steps[s].option += 1
        key = state.options[i, 1]
        if i > state.steps[s].first_option and key == state.options[i - 1, 1]:
            continue  # reached from several entities
        relation, code = key // width, key % width
        if plan.steps[s].free and plan.steps[s].kind != START:
            relation = -1
        total = state.steps[s].prefix + _cost_of(plan, s, relation, code)
        if not _apply(adjacency, plan, state, s, relation, code):
            continue
        if s + 1 < steps:
            s += 1
            state.steps[s].prefix = total
            state.steps[s].option = state.steps[s + 1].first_option = state.steps[s].first_option
            _options(adjacency, plan, state, s, total)
        elif state.counts[MATCH] < 0:
            _write_key(plan, state)
            keep_key(state, total)
        else:
            collect(adjacency, plan, state)
