"""Lower bounds: distances flow from the known nodes of a pattern towards its root (min-sum messages)."""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import inlined, non_allocating, prefetch
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, START
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Plan
from kg_retrievers.methods.simgrag.matching.rows import end_of_run, other_side, part_of, ways
from kg_retrievers.methods.simgrag.matching.state import (
    STOPPED,
    State,
    is_marked,
    least_of,
    lower_cost,
    mark,
    own_cost,
    spend,
    unmark,
    worst_bound,
)

#: A message is not sent through more than this share of the graph's adjacency entries; a constant serves instead.
MESSAGE_SHARE = 0.5

#: How many rows are loaded ahead of the one that is read.
AHEAD = 8


# --- what a node reaches ---------------------------------------------------------------------------------------------


@inlined
def _reach(state: State, v: int, entity: int, cost: int) -> None:
    """Let a node reach an entity at a cost."""
    row = state.nodes[v].lower_row
    state.lower[row, entity] = INFINITE - cost
    mark(state.present, row, entity)
    state.reached[row, state.nodes[v].reach] = entity
    state.nodes[v].reach += 1


@inlined
def _keep_below(state: State, row: int, kept: int, entity: int, cost: int, most: int) -> int:
    """Keep an entity that is reached at its new cost, if that is below `most`; return how many are kept then."""
    if cost < most:
        state.lower[row, entity] = INFINITE - cost
        state.reached[row, kept] = entity
        return kept + 1
    state.lower[row, entity] = 0
    unmark(state.present, row, entity)
    return kept


@non_allocating
def _load_ahead(adjacency: Adjacency, state: State, v: int, position: int) -> None:
    """Begin to load the rows of entities that a node reaches, some ahead of one: they lie anywhere in memory."""
    row, reach = state.nodes[v].lower_row, state.nodes[v].reach
    if position + 2 * AHEAD < reach:
        prefetch(adjacency.indptr, state.reached[row, position + 2 * AHEAD])
    if position + AHEAD < reach:
        begin = adjacency.indptr[state.reached[row, position + AHEAD]]
        prefetch(adjacency.labels, begin)
        prefetch(adjacency.neighbors, begin)


@non_allocating
def _weigh(adjacency: Adjacency, state: State, v: int) -> None:
    """Write how many adjacency entries the entities have that a node reaches."""
    row, weight = state.nodes[v].lower_row, 0
    for i in range(state.nodes[v].reach):
        entity = state.reached[row, i]
        weight += adjacency.indptr[entity + 1] - adjacency.indptr[entity]
    state.nodes[v].weight = weight


# --- messages --------------------------------------------------------------------------------------------------------


@non_allocating
def _ask(adjacency: Adjacency, plan: Plan, state: State, v: int, c: int, s: int, side: int, most: int) -> None:
    """Add to what a node reaches the least cost at the other end of a step, reading the rows of the node.

    Args:
        adjacency: The graph.
        plan: The pattern.
        state: Where the search stands.
        v: The node.
        c: The node at the other end.
        s: The step. If it closes a cycle, only the relation counts, by what it costs beyond the cheapest one.
        side: Its direction, seen from the node.
        most: Entities with this cost or a higher one are dropped.
    """
    row, from_row, costs = state.nodes[v].lower_row, state.nodes[c].lower_row, plan.relation_costs[plan.steps[s].term]
    closes = plan.steps[s].kind == CYCLE
    floor = least_of(costs, 0, len(costs)) if closes else 0
    first, last = ways(-1, side)
    kept = 0
    for j in range(state.nodes[v].reach):
        _load_ahead(adjacency, state, v, j)
        x = state.reached[row, j]
        base = lower_cost(state, row, x)
        best = most - base
        for way in range(first, last):
            i, end = part_of(adjacency, x, -1, way)
            if spend(state, end - i):
                return
            while i < end:
                cost = costs[relation_of(adjacency.labels[i])]
                if cost == INFINITE or cost - floor >= best:
                    i = end_of_run(adjacency.labels, i, end)
                    continue
                a = adjacency.neighbors[i]
                if is_marked(state.present, from_row, a):
                    best = min(best, cost - floor + (0 if closes else lower_cost(state, from_row, a)))
                i += 1
        kept = _keep_below(state, row, kept, x, base + best, most)
    state.nodes[v].reach = kept


@non_allocating
def _tell(
    adjacency: Adjacency, plan: Plan, state: State, v: int, c: int, s: int, side: int, most: int, begun: bool
) -> int:
    """Write in `message` what the other end of a step costs by entity of a node, reading the rows of the other end.

    Args:
        adjacency: The graph.
        plan: The pattern.
        state: Where the search stands.
        v: The node.
        c: The node at the other end.
        s: The step, as in `_ask`.
        side: Its direction, seen from the other end.
        most: What costs this or more is left out.
        begun: Whether the node reaches something already; the message holds nothing else then.

    Returns:
        How many entities the message holds, those in `touched`.
    """
    row, from_row, costs = state.nodes[v].lower_row, state.nodes[c].lower_row, plan.relation_costs[plan.steps[s].term]
    closes = plan.steps[s].kind == CYCLE
    floor = least_of(costs, 0, len(costs)) if closes else 0
    first, last = ways(-1, side)
    count = 0
    for j in range(state.nodes[c].reach):
        _load_ahead(adjacency, state, c, j)
        x = state.reached[from_row, j]
        base = -floor if closes else lower_cost(state, from_row, x)
        for way in range(first, last):
            i, end = part_of(adjacency, x, -1, way)
            if spend(state, end - i):
                return count
            while i < end:
                cost = costs[relation_of(adjacency.labels[i])]
                if cost == INFINITE or cost + base >= most:
                    i = end_of_run(adjacency.labels, i, end)
                    continue
                a = adjacency.neighbors[i]
                i += 1
                if begun and not is_marked(state.present, row, a):
                    continue
                if state.message[a] == 0:
                    state.touched[count] = a
                    count += 1
                state.message[a] = max(state.message[a], INFINITE - cost - base)
    return count


@inlined
def _take_message(plan: Plan, state: State, v: int, count: int, most: int, begun: bool) -> None:
    """Join a message to what a node reaches, or let it begin with what the message holds; then forget the message."""
    row = state.nodes[v].lower_row
    if begun:
        kept = 0
        for i in range(state.nodes[v].reach):
            a = state.reached[row, i]
            gain = state.message[a]
            cost = lower_cost(state, row, a) + INFINITE - gain if gain > 0 else INFINITE
            kept = _keep_below(state, row, kept, a, cost, most)
        state.nodes[v].reach = kept
    else:
        for i in range(count):
            a = state.touched[i]
            cost = own_cost(plan, v, a) + INFINITE - state.message[a] + state.nodes[v].below
            if cost < most:
                _reach(state, v, a, cost)
    for i in range(count):
        state.message[state.touched[i]] = 0


@non_allocating
def _hear(adjacency: Adjacency, plan: Plan, state: State, v: int, c: int, s: int, most: int, begun: bool) -> bool:
    """Bound a node by what another end of a step reaches; return whether that was possible, and little enough to read.

    The rows are read at the end that has fewer entries.
    """
    side = plan.steps[s].side if plan.steps[s].near == v else other_side(plan.steps[s].side)
    asked = state.nodes[v].weight if begun else INFINITE
    read = min(state.nodes[c].weight, asked)
    if state.nodes[v].lower_row < 0 or state.nodes[c].lower_row < 0 or read > MESSAGE_SHARE * len(adjacency.neighbors):
        return False
    if asked < state.nodes[c].weight:
        _ask(adjacency, plan, state, v, c, s, side, most)
    else:
        floor = state.nodes[v].floor
        count = _tell(adjacency, plan, state, v, c, s, other_side(side), most - floor, begun)
        _take_message(plan, state, v, count, most, begun)
    _weigh(adjacency, state, v)
    return True


# --- the bounds of all nodes -----------------------------------------------------------------------------------------


@inlined
def _next_child(plan: Plan, state: State, v: int) -> int:
    """Return the child with the fewest edges of those that have sent nothing; -1 where all have.

    It comes first, since those after it need to answer only for the entities that it reaches.
    """
    c = -1
    for other in range(len(state.nodes)):
        if plan.nodes[other].parent == v and state.nodes[other].sent == 0:
            c = other if c < 0 or state.nodes[other].weight < state.nodes[c].weight else c
    return c


@inlined
def _finish_node(plan: Plan, state: State, v: int, begun: bool) -> None:
    """Write the least cost of a node's subtree."""
    if not begun:
        state.nodes[v].lower_row = -1
        state.nodes[v].least = state.nodes[v].below + _own_floor(plan, v)
        return
    row, least = state.nodes[v].lower_row, INFINITE
    for i in range(state.nodes[v].reach):
        least = min(least, lower_cost(state, row, state.reached[row, i]))
    state.nodes[v].least = least


@non_allocating
def _own_floor(plan: Plan, v: int) -> int:
    """Return the least that an entity costs at a node."""
    if plan.nodes[v].known:
        return least_of(plan.candidate_costs, plan.starts[v], plan.starts[v + 1])
    row = plan.nodes[v].level_row
    return int(plan.level_costs[row, 0]) if row >= 0 else 0


@inlined
def _bound_node(adjacency: Adjacency, plan: Plan, state: State, v: int, room: int) -> None:
    """Bound one node, whose children are bound; entities that cost `room` beyond the least possible are dropped."""
    begun = state.nodes[v].lower_row >= 0 and plan.nodes[v].known != 0
    while True:
        c = _next_child(plan, state, v)
        if c < 0:
            break
        state.nodes[c].sent = 1
        s = plan.nodes[c].step
        costs = plan.relation_costs[plan.steps[s].term]
        edge = least_of(costs, 0, len(costs))
        floor = state.nodes[v].floor + edge + state.nodes[c].floor
        if _hear(adjacency, plan, state, v, c, s, min(floor + room, INFINITE), begun):
            begun = True
        elif begun:
            row = state.nodes[v].lower_row
            for i in range(state.nodes[v].reach):
                state.lower[row, state.reached[row, i]] = max(
                    state.lower[row, state.reached[row, i]] - edge - state.nodes[c].least, 0
                )
        state.nodes[v].floor = floor
        state.nodes[v].below += edge + state.nodes[c].least
    for s in range(len(plan.steps)):
        if plan.eager and plan.steps[s].closes_at == v:
            u = plan.steps[s].near + plan.steps[s].far - v
            begun |= _hear(adjacency, plan, state, v, u, s, min(state.nodes[v].floor + room, INFINITE), begun)
    _finish_node(plan, state, v, begun)


@inlined
def _begin(adjacency: Adjacency, plan: Plan, state: State) -> int:
    """Number the rows, let the known nodes reach their candidates, and return the least that anything may cost."""
    row, total = 0, 0
    for v in range(len(state.nodes)):
        state.nodes[v].lower_row = -1
        state.nodes[v].floor = _own_floor(plan, v)
        total += state.nodes[v].floor
        inner = plan.nodes[v].informs and plan.nodes[v].parent >= 0
        if inner or (plan.eager and (plan.nodes[v].closes or plan.nodes[v].known)):
            state.nodes[v].lower_row = row
            row += 1
            if plan.nodes[v].known:
                for i in range(plan.starts[v], plan.starts[v + 1]):
                    _reach(state, v, plan.candidates[i], plan.candidate_costs[i])
                _weigh(adjacency, state, v)
    for s in range(len(plan.steps)):
        if plan.steps[s].kind != START:
            costs = plan.relation_costs[plan.steps[s].term]
            total += least_of(costs, 0, len(costs))
    return total


@non_allocating
def lower_bounds(adjacency: Adjacency, plan: Plan, state: State) -> None:
    """Bound from below what the subtree of each node costs, unless the search is stopped meanwhile.

    Filled in, of `state.nodes`: `lower_row`, the row of a node in the next ones, -1 where own cost + `below` must do;
    `reach`, how many entities it reaches, and `weight`, how many adjacency entries these have; `below`, the least cost
    of what hangs below it; `least`, the least cost of its subtree; `sent`, 1 once its parent knows. Filled in, of
    `state`: `lower`, `present` and `reached`, the least cost of a node's subtree for each entity, its own cost
    included. Entities that no match below the limit of the search can have are left out.
    """
    room = worst_bound(state) - _begin(adjacency, plan, state)
    for s in range(len(plan.steps) - 1, -1, -1):
        if plan.steps[s].kind != CYCLE:
            _bound_node(adjacency, plan, state, plan.steps[s].far, room)
            if state.counts[STOPPED] != 0:
                return


@non_allocating
def clear_bounds(state: State) -> None:
    """Leave `lower` and `present` as the next search wants them."""
    for v in range(len(state.nodes)):
        row = state.nodes[v].lower_row
        if row >= 0:
            for i in range(state.nodes[v].reach):
                state.lower[row, state.reached[row, i]] = 0
                unmark(state.present, row, state.reached[row, i])


@non_allocating
def add_pending(plan: Plan, state: State) -> None:
    """Write the least cost of what is neither placed before a step nor below it."""
    for s in range(len(plan.steps)):
        for later in range(len(plan.steps)):
            if not plan.outside[s, later]:
                continue
            if plan.steps[later].kind != CYCLE:
                state.steps[s].pending += state.nodes[plan.steps[later].far].least
            if plan.steps[later].kind != START:
                costs = plan.relation_costs[plan.steps[later].term]
                state.steps[s].pending += least_of(costs, 0, len(costs))
