"""Branch and bound over a plan: tries the choices of each step, best first."""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import inlined, non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.complete import collect, propagate
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, LEVEL, NOTHING, START, TREE
from kg_retrievers.methods.simgrag.matching.options import key_width, list_options
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Plan
from kg_retrievers.methods.simgrag.matching.rows import joined, part_of, ways
from kg_retrievers.methods.simgrag.matching.state import (
    FOUND,
    MATCH,
    STOPPED,
    State,
    allowed,
    code_of,
    has_room,
    make_set,
    next_stamp,
    own_cost,
    spend,
    subtree_cost,
    worst_bound,
)

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
    width, steps = key_width(adjacency, plan), len(plan.steps)
    state.steps[0].option = state.steps[0].first_option = 0
    list_options(adjacency, plan, state, 0, 0)
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
            list_options(adjacency, plan, state, s, total)
        elif state.counts[MATCH] < 0:
            _write_key(plan, state)
            keep_key(state, total)
        else:
            collect(adjacency, plan, state)
