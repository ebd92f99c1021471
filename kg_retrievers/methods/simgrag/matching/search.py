"""Branch and bound over a plan: tries the choices of each step, best first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kg_retrievers.algorithms.compiled import (
    Graph,
    Pointer,
    compiled,
    compiled_entry,
    graph_pointers,
    pointers,
    source_checksum,
    wide,
)
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching import tally
from kg_retrievers.methods.simgrag.matching.bounds import add_pending, begin_bounds, bound_node, clear_bounds
from kg_retrievers.methods.simgrag.matching.complete import collect, propagate
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, LEVEL, NOTHING, START, TREE
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Layout, Plan
from kg_retrievers.methods.simgrag.matching.pointers import (
    Progress,
    State,
    code_of,
    end_of_run,
    first_not_below,
    has_room,
    level_of,
    make_set,
    may_take,
    next_stamps,
    own_cost,
    part_of,
    root_of,
    roots_of,
    spend,
    subtree_cost,
    ways,
    worst_bound,
)

# --- the options of a step --------------------------------------------------------------------------------------------


@compiled
def key_width(graph: Graph, plan: Layout) -> int:
    """Return an integer above every code, by which option keys are packed as relation * width + code.

    A code is an entity or a level of types. There may be more levels than entities.
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
    """List a relation and an entity, or its level. Return the new end of the options."""
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
    """List the entities, or levels, of a root. Return the end of the options."""
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
    """Return the only relation that a step may take, or -1 if it chooses."""
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
    """List the relations to, and entities or levels of, a node next to a placed one. Return the end of the options."""
    v, costs, end = plan.far[s], plan.term[s] * plan.relations, state.first_option[s]
    only, worst = _relation_wanted(plan, state, s), worst_bound(state)
    # One neighbor is as good as another if nothing is known of them.
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


# --- the state after an option ---------------------------------------------------------------------------------------


@compiled
def _apply(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Write the state after step s with its relation and code. Return whether a match is still possible."""
    row, v, kind = s + 1, plan.far[s], plan.kind[s]
    for at in range(row * plan.nodes, (row + 1) * plan.nodes):
        state.begin[at], state.end[at] = state.begin[at - plan.nodes], state.end[at - plan.nodes]
    state.top[row] = state.top[s]
    if kind == CYCLE:
        return _keep_joined(graph, plan, state, s)
    if plan.as_set[v]:
        if kind == START:
            return _place_everything(graph, plan, state, s)
        return _place_neighbors(graph, plan, state, s)
    one = wide(1)
    if not has_room(state, state.top[row], one):
        return False
    state.pool[state.top[row]] = state.code[v]
    make_set(plan, state, row, v, one)
    if kind == TREE and not _keep_joined(graph, plan, state, s):
        return False
    return _keep_different(graph, plan, state, s)


@compiled
def _place_everything(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Place an unknown root: the set of all entities of its level. Return whether there are any."""
    v, top = plan.far[s], state.top[s + 1]
    first, last = roots_of(graph, plan, v)
    if spend(state, last - first) or not has_room(state, top, last - first):
        return False
    count = 0
    for i in range(first, last):
        e = root_of(plan, v, i)
        if code_of(graph, plan, v, e) == state.code[v] and may_take(graph, plan, state, v, e, s):
            state.pool[top + count] = e
            count += 1
    make_set(plan, state, s + 1, v, count)
    return count > 0


@compiled
def _place_neighbors(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Place an unknown node: the set of all neighbors that fit. Return whether a match is still possible."""
    row, v, relation, costs = s + 1, plan.far[s], state.relation[s], plan.term[s] * plan.relations
    worst, near = worst_bound(state), s * plan.nodes + plan.near[s]
    taken = next_stamps(graph, state)
    refused = taken - 1
    top, count = state.top[row], 0
    first, last = ways(relation, plan.side[s])
    for p in range(state.begin[near], state.end[near]):
        for way in range(first, last):
            low, high = part_of(graph, wide(state.pool[p]), relation, way)
            if spend(state, high - low + (1 if way == first else 0)) or not has_room(state, top + count, high - low):
                return False
            for i in range(low, high):
                e = wide(graph.neighbors[i])
                if state.stamps[e] >= refused or plan.relation_costs[costs + relation_of(graph.labels[i])] == INFINITE:
                    continue
                state.stamps[e] = refused
                fits = subtree_cost(graph, plan, state, v, e) < worst and code_of(graph, plan, v, e) == state.code[v]
                if fits and may_take(graph, plan, state, v, e, s):
                    state.stamps[e] = taken
                    state.pool[top + count] = e
                    count += 1
    if count == 0:
        return False
    make_set(plan, state, row, v, count)
    return propagate(graph, plan, state, row, v)


@compiled
def _joined(graph: Graph, a: int, b: int, relation: int, side: int) -> bool:
    """Return whether a triple of the relation (-1: any) joins a to b, seen from a."""
    first, last = ways(relation, side)
    for way in range(first, last):
        low, high = part_of(graph, a, relation, way)
        if relation >= 0:  # one relation and direction: ascending neighbors
            low = first_not_below(graph.neighbors, low, high, b)
            high = min(low + 1, high)
        for i in range(low, high):
            if graph.neighbors[i] == b:
                return True
    return False


@compiled
def _keep_joined(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Keep the near end's entities that the relation joins to the far end's. Return whether a match is possible."""
    row, u, v = s + 1, plan.near[s], plan.far[s]
    begin, end, top = state.begin[s * plan.nodes + u], state.end[s * plan.nodes + u], state.top[row]
    if not has_room(state, top, end - begin):
        return False
    count, one = wide(0), wide(1)
    for p in range(begin, end):
        a = wide(state.pool[p])
        if _joined(graph, a, state.code[v] if u != v else a, state.relation[s], plan.side[s]):
            state.pool[top + count] = a
            count += 1
        if spend(state, one):
            return False
    if count == end - begin:
        return True
    make_set(plan, state, row, u, count)
    return propagate(graph, plan, state, row, u)


@compiled
def _keep_different(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Take the entity of step s out of the sets of nodes that must differ. Return whether a match is still possible."""
    row, v = s + 1, plan.far[s]
    for w in range(plan.nodes):
        if not plan.as_set[w] or not plan.differs[v * plan.nodes + w] or plan.placed_by[w] >= s:
            continue
        begin, end, top = state.begin[row * plan.nodes + w], state.end[row * plan.nodes + w], state.top[row]
        if not has_room(state, top, end - begin):
            return False
        count = 0
        for p in range(begin, end):
            if state.pool[p] != state.code[v]:
                state.pool[top + count] = state.pool[p]
                count += 1
        if count < end - begin:
            make_set(plan, state, row, w, count)
            if not propagate(graph, plan, state, row, w):
                return False
    return True


# --- the k best ------------------------------------------------------------------------------------------------------


@compiled
def _write_key(graph: Graph, plan: Layout, state: Progress) -> None:
    """Write the key that distinguishes the combination at hand from others."""
    for s in range(plan.steps):
        state.key_at_hand[s] = state.relation[s] if plan.in_key[s] else -1
    for v in range(plan.nodes):
        key = -1
        if plan.key[v] == LEVEL and not plan.as_set[v]:
            key = level_of(graph, plan, v, state.code[v])
        elif plan.key[v] != NOTHING:
            key = state.code[v]
        state.key_at_hand[plan.steps + v] = key


@compiled
def keep_key(plan: Layout, state: Progress, cost: int) -> None:
    """Put the combination in `key_at_hand` among the k best, unless it is there already."""
    size, found = plan.steps + plan.nodes, state.counts[tally.FOUND]
    for i in range(found):
        same = True
        for j in range(size):
            same = same and state.keys[i * size + j] == state.key_at_hand[j]
        if same:
            return
    position = found
    while position > 0 and state.costs[position - 1] > cost:
        position -= 1
    for i in range(min(found, state.k - 1), position, -1):
        for j in range(i * size, (i + 1) * size):
            state.keys[j] = state.keys[j - size]
        state.costs[i] = state.costs[i - 1]
    for j in range(size):
        state.keys[position * size + j] = state.key_at_hand[j]
    state.costs[position] = cost
    state.counts[tally.FOUND] = min(found + 1, state.k)


@compiled
def _cost_of(graph: Graph, plan: Layout, s: int, relation: int, code: int) -> int:
    cost = 0
    if plan.kind[s] != START and not plan.free[s]:
        cost += plan.relation_costs[plan.term[s] * plan.relations + relation]
    if plan.kind[s] == CYCLE:
        return cost
    v = plan.far[s]
    if not plan.as_set[v]:
        return cost + own_cost(graph, plan, v, code)
    if plan.level_row[v] >= 0:
        cost += plan.level_costs[plan.level_row[v] * plan.level_count + code]
    return cost


@compiled
def _choose(graph: Graph, plan: Layout, state: Progress, s: int) -> bool:
    """Take the next option of a step. Return whether one is left that may be among the k best."""
    width = key_width(graph, plan)
    while True:
        i = state.option[s]
        if i == state.first_option[s + 1] or state.option_bounds[i] >= worst_bound(state):
            return False
        state.option[s] += 1
        key = state.option_keys[i]
        if i == state.first_option[s] or key != state.option_keys[i - 1]:  # else reached from several entities
            break
    relation, code = key // width, key % width
    state.prefix[s + 1] = state.prefix[s] + _cost_of(graph, plan, s, relation, code)
    state.relation[s] = -1 if plan.free[s] and plan.kind[s] != START else relation
    if plan.kind[s] != CYCLE:
        state.code[plan.far[s]] = code
    return True


@compiled
def _keep_given(plan: Layout, state: Progress) -> None:
    """Put combinations that were known before among the k best."""
    size = plan.steps + plan.nodes
    for i in range(0, state.counts[tally.GIVEN] * (size + 1), size + 1):
        for j in range(size):
            state.key_at_hand[j] = state.given[i + j + 1]
        if state.given[i] < worst_bound(state):
            keep_key(plan, state, state.given[i])


@compiled
def _end_search(plan: Layout, state: Progress) -> bool:
    """Note the k best combinations. Return whether they are certain, and to be completed."""
    counts = state.counts
    best = worst_bound(state) + (1 if counts[tally.FOUND] == state.k else 0)
    for i in range(counts[tally.FOUND]):
        state.best_costs[i] = state.costs[i]
    counts[tally.TOTAL], counts[tally.CUT] = counts[tally.FOUND], counts[tally.STOPPED]
    is_certain = counts[tally.CUT] == 0 and best <= counts[tally.CERTAIN_BELOW]
    if counts[tally.FULL] != 0 or not (counts[tally.CERTAIN_BELOW] > INFINITE or is_certain):
        return False
    counts[tally.COMPLETED], counts[tally.FOUND] = 1, 0
    return True


@compiled
def _end_match(graph: Graph, plan: Layout, state: Progress) -> bool:
    """Note whether the match at hand is truncated. Return whether there was room to complete it."""
    counts = state.counts
    is_cut = counts[tally.CUT] + counts[tally.STOPPED] + counts[tally.LEFT_OUT] > 0
    state.truncated[counts[tally.MATCH]] = 1 if is_cut else 0
    bits = plan.nodes * graph.entities
    for i in range(counts[tally.FIRST_BINDING], counts[tally.BINDINGS]):
        state.is_bound[(state.bindings[i] % bits) >> 3] = 0
    return counts[tally.FULL] == 0


@compiled
def _begin_match(plan: Layout, state: Progress) -> bool:
    """Begin to complete the next of the best combinations, by a search for it alone. Return whether there is one."""
    counts = state.counts
    counts[tally.MATCH] += 1
    if counts[tally.MATCH] == counts[tally.TOTAL]:
        return False
    counts[tally.SCANS] = counts[tally.STOPPED] = counts[tally.LEFT_OUT] = 0
    counts[tally.MAX_SCANS] = counts[tally.SCANS_OF_EACH]
    counts[tally.FIRST_BINDING] = counts[tally.BINDINGS]
    for i in range(state.k + 1):
        state.costs[i] = state.best_costs[counts[tally.MATCH]] + 1
    keys = counts[tally.MATCH] * (plan.steps + plan.nodes)
    for s in range(plan.steps):
        state.only_relation[s] = state.keys[keys + s]
    for v in range(plan.nodes):
        state.only_code[v] = state.keys[keys + plan.steps + v]
        state.bound[v] = 0
    return True


@compiled
def _end_walk(graph: Graph, plan: Layout, state: Progress) -> bool:
    """End the search, or the completion of a match. Return whether there is another match to complete."""
    if state.counts[tally.MATCH] >= 0:
        return _end_match(graph, plan, state) and _begin_match(plan, state)
    if state.counts[tally.STOPPED] != 0:
        _keep_given(plan, state)
    return _end_search(plan, state) and _begin_match(plan, state)


def _entry(sources: int) -> Callable[[Adjacency, Plan, State], int]:  # noqa: C901
    """Return the search for Python to call, with `sources` as `compiled_entry` asks for."""

    # One function: each function is compiled once more, with all that it calls, for each of those that call it.
    def solve(adjacency: Adjacency, arrays_of_plan: Plan, arrays: State) -> int:  # noqa: C901
        """Find the k best combinations and return their number. Complete them if they are certain.

        The options of each step are tried best first, depth first: once to find the best, then once for each of them.
        """
        graph = graph_pointers(adjacency)
        plan: Layout = pointers(arrays_of_plan)
        state: Progress = pointers(arrays)
        counts = state.counts
        room = worst_bound(state) - begin_bounds(graph, plan, state)
        for step in range(plan.steps - 1, -1, -1):
            if plan.kind[step] != CYCLE and counts[tally.STOPPED] == 0:
                bound_node(graph, plan, state, plan.far[step], room)
        if counts[tally.STOPPED] == 0:
            add_pending(plan, state)
        else:  # what is given is completed without bounds
            clear_bounds(plan, state)
        s, is_new = wide(0), True
        while sources >= 0:
            if s < 0 or counts[tally.STOPPED] != 0:
                if not _end_walk(graph, plan, state):
                    break
                s, is_new = wide(0), True
            if is_new:
                list_options(graph, plan, state, s)
            is_new = False
            if counts[tally.STOPPED] != 0:
                continue
            if not _choose(graph, plan, state, s):
                s -= 1
            elif not _apply(graph, plan, state, s):
                continue
            elif s + 1 < plan.steps:
                s += 1
                is_new = True
            elif counts[tally.MATCH] < 0:
                _write_key(graph, plan, state)
                keep_key(plan, state, state.prefix[s + 1])
            else:
                collect(graph, plan, state)
        clear_bounds(plan, state)
        return counts[tally.TOTAL]

    return compiled_entry(solve)


run = _entry(source_checksum(Path(__file__).parent))
