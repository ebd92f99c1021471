"""Branch and bound over a plan: the k best combinations, then each of them completed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from kg_retrievers.algorithms.compiled import compiled, compiled_entry, source_checksum
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.bounds import (
    first_place,
    least_of,
    lower_bounds,
    on_side,
    other_side,
    own_cost,
)
from kg_retrievers.methods.simgrag.matching.complete import collect, grouped, propagate
from kg_retrievers.methods.simgrag.matching.plan import (
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
from kg_retrievers.methods.simgrag.matching.state import (
    BINDINGS,
    EDGES,
    FACTS,
    FOUND,
    FULL,
    LEFT_OUT,
    MATCH,
    MAX_BINDINGS,
    MAX_SCANS,
    NODE_STATE,
    SCANS,
    STAMP,
    STEP_STATE,
    STOPPED,
    Scratch,
    State,
    allowed,
    code_of,
    fits_match,
    has_room,
    joined,
    make_set,
    row_of,
    sort_pairs,
    spend,
    subtree_cost,
    worst_bound,
)

_SCRATCH = Scratch()


@compiled
def _key_width(adjacency: Adjacency, plan: Plan) -> int:
    """Return a number above every code, by which option keys are packed as relation * width + code.

    A code is an entity or a level of types; there may be more levels than entities.
    """
    return max(len(adjacency.indptr) - 1, int(plan.level_costs.shape[1]))


@compiled
def _options(adjacency: Adjacency, plan: Plan, state: State, s: int, prefix: int) -> None:
    """List the choices at a step, the cheapest bound first, then by relation and code."""
    size, width = len(adjacency.indptr) - 1, _key_width(adjacency, plan)
    u, v, t = plan.steps[s].near, plan.steps[s].far, plan.steps[s].term
    side, kind = plan.steps[s].side, plan.steps[s].kind
    begin = state.steps[s].first_option
    end = begin
    worst, rest = worst_bound(state), prefix + state.steps[s].pending
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
        if spend(state, high - low) or not has_room(state, state.options, end, high - low):
            return
        for i in range(low, high):
            e = plan.candidates[i] if plan.nodes[v].known else i
            code = code_of(plan, v, e)
            bound = rest + subtree_cost(plan, state, v, e)
            if code < 0 or bound >= worst or not fits_match(plan, state, v, e):
                continue
            if by_slot:
                best[code] = min(best[code], bound)
            elif allowed(plan, state, v, e, s):
                state.options[end, 0], state.options[end, 1] = bound, e
                end += 1
    else:
        costs = plan.relation_costs[t]
        only_relation = state.steps[s].only
        if plan.steps[s].first_use >= 0 and plan.steps[s].first_use < s:
            only_relation = state.steps[plan.steps[s].first_use].relation
        # One neighbour is as good as another where nothing is known of them.
        alike = by_slot and kind == TREE and state.nodes[v].lower_row < 0 and plan.nodes[v].level_row < 0
        back = other_side(side)
        begin_set, end_set, others = state.sets[s, u, 0], state.sets[s, u, 1], 0
        first = state.pool[begin_set]
        if kind == TREE and state.nodes[v].lower_row >= 0 and end_set - begin_set == 1:
            low, high = row_of(adjacency, first, only_relation, side)
            if state.nodes[v].weight < high - low:  # fewer edges at the entities that the other end may be
                begin_set, end_set, others = 0, state.nodes[v].reach, 1
        for p in range(begin_set, end_set):
            a = state.reached[state.nodes[v].lower_row, p] if others else state.pool[p]
            i, stop = row_of(adjacency, a, only_relation, back if others else side)
            wanted, flip = first, others
            if kind == CYCLE:
                wanted = a if u == v else state.nodes[v].code
                other, other_stop = row_of(adjacency, wanted, only_relation, back)
                if other_stop - other < stop - i:  # the row of the other end is shorter
                    i, stop, wanted, flip = other, other_stop, a, 1
            if spend(state, stop - i + 1) or not has_room(state, state.options, end, stop - i):
                return
            while i < stop:
                label = adjacency.labels[i]
                r = relation_of(label)
                cost = costs[r]
                if cost == INFINITE or not on_side(label, back if flip else side) or rest + cost >= worst:
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
                bound = rest + cost + subtree_cost(plan, state, v, e)
                if bound >= worst:
                    continue
                code = code_of(plan, v, e)
                if code < 0 or not fits_match(plan, state, v, e) or not allowed(plan, state, v, e, s):
                    continue
                if by_slot:
                    slot = (0 if free else r) * levels + code
                    best[slot] = min(best[slot], bound)
                    if alike:
                        i = first_place(adjacency.labels, i, stop, label + 1)
                else:
                    state.options[end, 0], state.options[end, 1] = bound, (0 if free else r) * width + e
                    end += 1
    if not has_room(state, state.options, end, slots):
        return
    for slot in range(slots):
        if best[slot] < worst:
            state.options[end, 0], state.options[end, 1] = best[slot], (slot // levels) * width + slot % levels
            end += 1
    sort_pairs(state.options[begin:end])
    state.steps[s + 1].first_option = end


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
            if not has_room(state, state.pool, state.steps[row].top, 1):
                return False
            state.pool[state.steps[row].top] = code
            make_set(state, row, v, 1)
    if kind == START and as_set:
        if spend(state, size) or not has_room(state, state.pool, state.steps[row].top, size):
            return False
        count = 0
        for e in range(size):
            if code_of(plan, v, e) == code and allowed(plan, state, v, e, s):
                state.pool[state.steps[row].top + count] = e
                count += 1
        make_set(state, row, v, count)
        return count > 0
    if kind == TREE and as_set:
        costs = plan.relation_costs[plan.steps[s].term]
        worst = worst_bound(state)
        state.counts[STAMP] += 2
        taken, refused = state.counts[STAMP], state.counts[STAMP] - 1
        top, count = state.steps[row].top, 0
        for p in range(state.sets[s, u, 0], state.sets[s, u, 1]):
            low, high = row_of(adjacency, state.pool[p], relation, side)
            if spend(state, high - low + 1) or not has_room(state, state.pool, top + count, high - low):
                return False
            for i in range(low, high):
                e, label = adjacency.neighbors[i], adjacency.labels[i]
                if state.stamps[e] >= refused or not on_side(label, side) or costs[relation_of(label)] == INFINITE:
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
        if not propagate(adjacency, plan, state, row, v):
            return False
    elif kind != START:
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
        if count < end - begin:
            make_set(state, row, u, count)
            if not propagate(adjacency, plan, state, row, u):
                return False
    if kind != CYCLE and not as_set:  # the entity leaves the sets of nodes that must differ
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
def _walk(adjacency: Adjacency, plan: Plan, state: State) -> None:
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
        relation, code, cost = key // width, key % width, 0
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
            collect(adjacency, plan, state)


@compiled
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


def _entry(sources: int) -> Callable[[Adjacency, Plan, State], int]:
    """Return `_solve` for Python to call; `sources` as `compiled_entry` asks for."""

    def solve(adjacency: Adjacency, plan: Plan, state: State) -> int:
        return _solve(adjacency, plan, state) if sources > 0 else 0

    return compiled_entry(solve)


_run = _entry(source_checksum(Path(__file__).parent))


def find_matches(
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
    try:
        found = _run(adjacency, plan, state)
        _SCRATCH.stamp = int(counts[STAMP])
    except BaseException:
        _SCRATCH.__init__()  # type: ignore[misc]
        raise
    if counts[FULL]:
        return None
    entities = grouped(state.bindings[: counts[BINDINGS]], found * nodes, size)
    facts = grouped(state.facts[: counts[FACTS]], found * edges, triples)
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
