"""Lower bounds: distances flow from the known nodes of a pattern towards its root (min-sum messages)."""

from __future__ import annotations

from kg_retrievers.algorithms.compiled import inlined, non_allocating
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import half_of, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching.plan import CYCLE, INFINITE, Plan

#: A message is not sent through more than this share of the graph's adjacency entries; a constant serves instead.
MESSAGE_SHARE = 0.5


@non_allocating
def first_not_below(values: Array, low: int, high: int, wanted: int) -> int:
    """Return the first position in `values[low:high]`, ascending, whose value is not below `wanted`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@non_allocating
def ways(side: int) -> tuple[int, int]:
    """Return the directions that a step may take, as a range: 0 is forward, 1 is backward."""
    return (1 if side > 0 else 0), (1 if side == 0 else 2)


@non_allocating
def other_side(side: int) -> int:
    """Return the direction that a step wants, seen from its other end."""
    return side if side < 0 else 1 - side


@non_allocating
def least_of(costs: Array, low: int, high: int) -> int:
    """Return the least of `costs[low:high]`; INFINITE if there is none."""
    least = INFINITE
    for i in range(low, high):
        least = min(least, costs[i])
    return least


@non_allocating
def own_cost(plan: Plan, node: int, entity: int) -> int:
    """Return what an entity costs at a node; INFINITE if it is no candidate."""
    if plan.nodes[node].known:
        high = plan.starts[node + 1]
        position = first_not_below(plan.candidates, plan.starts[node], high, entity)
        if position < high and plan.candidates[position] == entity:
            return int(plan.candidate_costs[position])
        return INFINITE
    row = plan.nodes[node].level_row
    if row >= 0:
        level = plan.levels[row, entity]
        return int(plan.level_costs[row, level]) if level >= 0 else INFINITE
    return 0


@non_allocating
def weight_of(adjacency: Adjacency, reached: Array, row: int, reach: int) -> int:
    """Return how many adjacency entries the entities in a row of `reached` have."""
    weight = 0
    for i in range(reach):
        weight += adjacency.indptr[reached[row, i] + 1] - adjacency.indptr[reached[row, i]]
    return weight


@inlined
def _next_child(plan: Plan, nodes: Array, v: int) -> int:
    """Return the child with the fewest edges of those that have sent nothing; -1 where all have.

    It comes first, since those after it need to answer only for the entities that it reaches.
    """
    c = -1
    for other in range(len(nodes)):
        if plan.nodes[other].parent == v and nodes[other].sent == 0:
            c = other if c < 0 or nodes[other].weight < nodes[c].weight else c
    return c


@inlined
def _begin_with_candidates(plan: Plan, nodes: Array, lower: Array, reached: Array, v: int) -> None:
    """Let a known node reach its candidates, at their own costs."""
    row, low, high = nodes[v].lower_row, plan.starts[v], plan.starts[v + 1]
    for i in range(low, high):
        lower[row, plan.candidates[i]] = plan.candidate_costs[i]
        reached[row, i - low] = plan.candidates[i]
    nodes[v].reach = high - low


@inlined
def _begin_with_message(
    plan: Plan,
    nodes: Array,
    lower: Array,
    reached: Array,
    message: Array,
    touched: Array,
    v: int,
    count: int,
    more: int,
) -> None:
    """Let an unknown node reach what the first message says, at its cost, the own cost and `more`."""
    row = nodes[v].lower_row
    for i in range(count):
        a = touched[i]
        price = own_cost(plan, v, a)
        if price < INFINITE:
            lower[row, a] = price + message[a] + more
            reached[row, nodes[v].reach] = a
            nodes[v].reach += 1


@inlined
def _join_message(nodes: Array, lower: Array, reached: Array, message: Array, v: int) -> None:
    """Keep what a node reaches and the message says too, with the costs of both."""
    row, kept = nodes[v].lower_row, 0
    for i in range(nodes[v].reach):
        a = reached[row, i]
        if message[a] < INFINITE:
            lower[row, a] += message[a]
            reached[row, kept] = a
            kept += 1
        else:
            lower[row, a] = INFINITE
    nodes[v].reach = kept


@inlined
def _send_message(
    adjacency: Adjacency,
    plan: Plan,
    nodes: Array,
    lower: Array,
    reached: Array,
    message: Array,
    touched: Array,
    c: int,
    from_parent: bool,
) -> int:
    """Write in `message` what a child costs by entity of its parent, and these entities in `touched`.

    The edges are read at what the parent reaches, or at what the child reaches. Returns how many are `touched`.
    """
    s = plan.nodes[c].step
    costs, from_row = plan.relation_costs[plan.steps[s].term], nodes[c].lower_row
    reader = plan.nodes[c].parent if from_parent else c
    side = plan.steps[s].side if from_parent else other_side(plan.steps[s].side)
    first, last = ways(side)
    count = 0
    for j in range(nodes[reader].reach):
        x = reached[nodes[reader].lower_row, j]
        for way in range(first, last):
            i, end = half_of(adjacency, x, way)
            while i < end:
                label = adjacency.labels[i]
                cost = costs[relation_of(label)]
                if cost == INFINITE:
                    i = first_not_below(adjacency.labels, i, end, label + 1)
                    continue
                a, below = adjacency.neighbors[i], x
                if from_parent:
                    a, below = x, a
                i += 1
                if lower[from_row, below] == INFINITE:
                    continue
                if message[a] == INFINITE:
                    touched[count] = a
                    count += 1
                message[a] = min(message[a], cost + lower[from_row, below])
    return count


@inlined
def _finish_node(
    adjacency: Adjacency, plan: Plan, nodes: Array, lower: Array, reached: Array, v: int, begun: bool
) -> None:
    """Write the least cost of a node's subtree, and the weight of what it reaches."""
    if not begun:
        nodes[v].lower_row = -1
        nodes[v].least = nodes[v].below
        if plan.nodes[v].known:
            nodes[v].least += least_of(plan.candidate_costs, plan.starts[v], plan.starts[v + 1])
        elif plan.nodes[v].level_row >= 0:
            nodes[v].least += plan.level_costs[plan.nodes[v].level_row, 0]
        return
    row = nodes[v].lower_row
    nodes[v].least = INFINITE
    for i in range(nodes[v].reach):
        nodes[v].least = min(nodes[v].least, lower[row, reached[row, i]])
    nodes[v].weight = weight_of(adjacency, reached, row, nodes[v].reach)


@inlined
def _bound_node(
    adjacency: Adjacency,
    plan: Plan,
    nodes: Array,
    lower: Array,
    reached: Array,
    message: Array,
    touched: Array,
    v: int,
) -> int:
    """Bound one node, whose children are bound; return the number of adjacency entries looked at."""
    row, scans = nodes[v].lower_row, 0
    begun = row >= 0 and plan.nodes[v].known != 0
    if begun:
        _begin_with_candidates(plan, nodes, lower, reached, v)
    while True:
        c = _next_child(plan, nodes, v)
        if c < 0:
            break
        nodes[c].sent = 1
        costs = plan.relation_costs[plan.steps[plan.nodes[c].step].term]
        cheapest = nodes[c].least + least_of(costs, 0, len(costs))
        asked = weight_of(adjacency, reached, row, nodes[v].reach) if begun else INFINITE
        read = min(nodes[c].weight, asked)
        if row < 0 or nodes[c].lower_row < 0 or read > MESSAGE_SHARE * len(adjacency.neighbors):
            if begun:
                for i in range(nodes[v].reach):
                    lower[row, reached[row, i]] += cheapest
            nodes[v].below += cheapest
            continue
        scans += read
        from_parent = asked < nodes[c].weight
        count = _send_message(adjacency, plan, nodes, lower, reached, message, touched, c, from_parent)
        if begun:
            _join_message(nodes, lower, reached, message, v)
        else:
            _begin_with_message(plan, nodes, lower, reached, message, touched, v, count, nodes[v].below)
            begun = True
        nodes[v].below += cheapest
        for i in range(count):
            message[touched[i]] = INFINITE
    _finish_node(adjacency, plan, nodes, lower, reached, v, begun)
    return scans


@non_allocating
def lower_bounds(
    adjacency: Adjacency, plan: Plan, nodes: Array, lower: Array, reached: Array, message: Array, touched: Array
) -> int:
    """Bound from below what the subtree of each node costs.

    Args:
        adjacency: The graph.
        plan: The pattern.
        nodes: (v) filled in: `lower_row`, the row of a node in the next two, -1 where own cost + `below` must do;
            `reach`, how many entities it reaches, and `weight`, how many adjacency entries these have; `below`, the
            least cost of what hangs below it; `least`, the least cost of its subtree; `sent`, 1 once its parent knows.
        lower: int32, (informing nodes, entities), INFINITE; filled in: the least cost of a node's subtree for each
            entity, its own cost included.
        reached: int32, (informing nodes, entities); filled in: the entities that are not INFINITE.
        message: int32, (entities), INFINITE, and so again afterwards.
        touched: int32, (entities), scratch.

    Returns:
        The number of adjacency entries looked at.
    """
    row = 0
    for v in range(len(nodes)):
        nodes[v].lower_row = -1
        if plan.nodes[v].informs and plan.nodes[v].parent >= 0:
            nodes[v].lower_row = row
            row += 1
    scans = 0
    for s in range(len(plan.steps) - 1, -1, -1):
        if plan.steps[s].kind != CYCLE:
            far = plan.steps[s].far
            scans += _bound_node(adjacency, plan, nodes, lower, reached, message, touched, far)
    return scans
