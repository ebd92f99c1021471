"""Lower bounds: distances flow from the known nodes of a pattern towards its root (min-sum messages).

Filled in, by node:

- `lower`: the start of its row in `gains` and `reached`, or -1 if own cost + `below` must do.
- `reach` and `weight`: the number of entities that it reaches, and of their adjacency entries.
- `below`: the least cost of the subtrees that hang below it.
- `least`: the least cost of its subtree.
- `sent`: 1 once its parent knows.

Filled in, by entity: INFINITE less the least cost of a node's subtree with it, its own cost included, in `gains`, and a
bit in `present`. Entities that no match below the limit of the search can have are left out.
"""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import Graph, compiled, wide
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching.layout import CYCLE, START
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, Layout
from kg_retrievers.methods.simgrag.matching.pointers import Progress, end_of_run, own_cost, part_of, spend, ways

#: A message is not sent through more than this share of the graph's adjacency entries. A constant serves instead.
MESSAGE_SHARE = 0.5


# --- messages --------------------------------------------------------------------------------------------------------


@compiled
def _keep_below(state: Progress, row: int, kept: int, entity: int, cost: int, most: int) -> int:
    """Keep an entity that is reached at its new cost, if that is below `most`. Return how many are kept then."""
    at = row + entity
    if cost < most:
        state.gains[at] = INFINITE - cost
        state.reached[row + kept] = entity
        return kept + 1
    state.gains[at] = 0
    state.present[at >> 3] &= ~(1 << (at & 7))
    return kept


@compiled
def _tell(
    graph: Graph, plan: Layout, state: Progress, v: int, c: int, s: int, side: int, most: int, begun: bool
) -> int:
    """Write the cost of the other end of a step, by entity of a node, in `message`, reading the rows of the other end.

    Args:
        graph: The graph.
        plan: The pattern.
        state: The state of the search.
        v: The node.
        c: The node at the other end.
        s: The step. If it closes a cycle, only the relation counts, by its cost beyond the cheapest one.
        side: Its direction, seen from the other end.
        most: Entities that cost this or more are left out.
        begun: Whether the node reaches something already. The message then holds nothing else.

    Returns:
        How many entities the message holds. They are in `touched`.
    """
    row, other_row, costs = state.lower[v], state.lower[c], plan.term[s] * plan.relations
    closes = plan.kind[s] == CYCLE
    floor = plan.least_relation_costs[plan.term[s]] if closes else 0
    anything, count = wide(-1), wide(0)
    first, last = ways(anything, side)
    for j in range(state.reach[c]):
        x = wide(state.reached[other_row + j])
        base = -floor if closes else INFINITE - state.gains[other_row + x]
        for way in range(first, last):
            i, end = part_of(graph, x, anything, way)
            if spend(state, end - i):
                return count
            while i < end:
                cost = plan.relation_costs[costs + relation_of(graph.labels[i])]
                if cost == INFINITE or cost + base >= most:
                    i = end_of_run(graph.labels, i, end)
                    continue
                a = graph.neighbors[i]
                at = row + a
                i += 1
                if begun and not (state.present[at >> 3] >> (at & 7)) & 1:
                    continue
                if state.message[a] == 0:
                    state.touched[count] = a
                    count += 1
                state.message[a] = max(state.message[a], INFINITE - cost - base)
    return count


@compiled
def _take_message(graph: Graph, plan: Layout, state: Progress, v: int, count: int, most: int, begun: bool) -> None:
    """Join a message to the entities that a node reaches, or let them begin with it. Then forget the message."""
    row, kept = state.lower[v], wide(0)
    if begun:
        for i in range(state.reach[v]):
            a = wide(state.reached[row + i])
            gain = state.message[a]
            cost = 2 * INFINITE - state.gains[row + a] - gain if gain > 0 else INFINITE
            kept = _keep_below(state, row, kept, a, cost, most)
    else:
        for i in range(count):
            a = wide(state.touched[i])
            cost = own_cost(graph, plan, v, a) + INFINITE - state.message[a] + state.below[v]
            if cost < most:
                at = row + a
                state.present[at >> 3] |= 1 << (at & 7)
                kept = _keep_below(state, row, kept, a, cost, most)
    state.reach[v] = kept
    for i in range(count):
        state.message[state.touched[i]] = 0


@compiled
def _hear(graph: Graph, plan: Layout, state: Progress, v: int, c: int, s: int, most: int, begun: bool) -> bool:
    """Bound a node by the entities at another end of a step. Return whether this was possible and not too costly."""
    side = plan.side[s] ^ 1 if plan.near[s] == v else plan.side[s]
    if state.lower[v] < 0 or state.lower[c] < 0 or state.weight[c] > MESSAGE_SHARE * 2 * graph.triples:
        return False
    count = _tell(graph, plan, state, v, c, s, side, most - state.floor[v], begun)
    _take_message(graph, plan, state, v, count, most, begun)
    _weigh(graph, state, v)
    return True


@compiled
def _weigh(graph: Graph, state: Progress, v: int) -> None:
    """Write how many adjacency entries the entities have that a node reaches."""
    weight = 0
    for i in range(state.lower[v], state.lower[v] + state.reach[v]):
        entity = state.reached[i]
        weight += graph.indptr[entity + 1] - graph.indptr[entity]
    state.weight[v] = weight


# --- the bounds of all nodes -----------------------------------------------------------------------------------------


@compiled
def _own_floor(plan: Layout, v: int) -> int:
    """Return the least that an entity costs at a node."""
    if plan.known[v]:
        least = INFINITE
        for i in range(plan.starts[v], plan.starts[v + 1]):
            least = min(least, plan.candidate_costs[i])
        return least
    row = plan.level_row[v]
    return wide(plan.level_costs[row * plan.level_count]) if row >= 0 else 0


@compiled
def _next_child(plan: Layout, state: Progress, v: int) -> int:
    """Return the lightest child that has sent nothing, or -1 if all have.

    It comes first, since those after it need to answer only for the entities that it reaches.
    """
    c = wide(-1)
    for child in range(plan.nodes):
        if plan.parent[child] == v and state.sent[child] == 0 and (c < 0 or state.weight[child] < state.weight[c]):
            c = child
    return c


@compiled
def bound_node(graph: Graph, plan: Layout, state: Progress, v: int, room: int) -> None:
    """Bound one node, whose children are bound. Entities that cost `room` beyond the least possible are dropped."""
    begun = state.lower[v] >= 0 and plan.known[v] != 0
    while True:
        c = _next_child(plan, state, v)
        if c < 0:
            break
        state.sent[c] = 1
        edge = plan.least_relation_costs[plan.term[plan.placed_by[c]]]
        floor = state.floor[v] + edge + state.floor[c]
        if _hear(graph, plan, state, v, c, plan.placed_by[c], min(floor + room, INFINITE), begun):
            begun = True
        elif begun:
            row = state.lower[v]
            for i in range(state.reach[v]):
                at = row + state.reached[row + i]
                state.gains[at] = max(state.gains[at] - edge - state.least[c], 0)
        state.floor[v] = floor
        state.below[v] += edge + state.least[c]
    for s in range(plan.steps):
        if plan.eager and plan.closes_at[s] == v:
            u = plan.near[s] + plan.far[s] - v
            if _hear(graph, plan, state, v, u, s, min(state.floor[v] + room, INFINITE), begun):
                begun = True
    _finish_node(plan, state, v, begun)


@compiled
def _finish_node(plan: Layout, state: Progress, v: int, begun: bool) -> None:
    """Write the least cost of a node's subtree."""
    if not begun:
        state.lower[v] = -1
        state.least[v] = state.below[v] + _own_floor(plan, v)
        return
    row, least = state.lower[v], INFINITE
    for i in range(state.reach[v]):
        least = min(least, INFINITE - state.gains[row + state.reached[row + i]])
    state.least[v] = least


@compiled
def begin_bounds(graph: Graph, plan: Layout, state: Progress) -> int:
    """Number the rows, let the known nodes reach their candidates, and return the least that anything may cost."""
    row, total = 0, 0
    for v in range(plan.nodes):
        state.lower[v] = -1
        state.floor[v] = _own_floor(plan, v)
        total += state.floor[v]
        inner = plan.informs[v] and plan.parent[v] >= 0
        if inner or (plan.eager and (plan.closes[v] or plan.known[v])):
            state.lower[v] = row
            if plan.known[v]:
                for i in range(plan.starts[v], plan.starts[v + 1]):
                    at = row + plan.candidates[i]
                    state.gains[at] = INFINITE - plan.candidate_costs[i]
                    state.present[at >> 3] |= 1 << (at & 7)
                    state.reached[row + state.reach[v]] = plan.candidates[i]
                    state.reach[v] += 1
                _weigh(graph, state, v)
            row += graph.entities
    for s in range(plan.steps):
        if plan.kind[s] != START:
            total += plan.least_relation_costs[plan.term[s]]
    return total


@compiled
def add_pending(plan: Layout, state: Progress) -> None:
    """Write the least cost of the nodes that are neither placed before a step nor below it."""
    for s in range(plan.steps):
        for later in range(plan.steps):
            if not plan.outside[s * plan.steps + later]:
                continue
            if plan.kind[later] != CYCLE:
                state.pending[s] += state.least[plan.far[later]]
            if plan.kind[later] != START:
                state.pending[s] += plan.least_relation_costs[plan.term[later]]


@compiled
def clear_bounds(plan: Layout, state: Progress) -> None:
    """Leave `gains` and `present` as the next search wants them, and no bounds to this one."""
    for v in range(plan.nodes):
        row = state.lower[v]
        if row >= 0:
            for i in range(state.reach[v]):
                at = row + state.reached[row + i]
                state.gains[at] = 0
                state.present[at >> 3] &= ~(1 << (at & 7))
        state.lower[v] = -1
        state.reach[v] = state.below[v] = state.least[v] = 0
