"""Find prize-collecting Steiner trees (PCST): a connected part of a graph that is worth more than its edges cost.

Sources:

- The growth: M. Goemans, D. Williamson: A General Approximation Technique for Constrained Forest Problems. SIAM J.
  Comput. 24 (1995).
- The unrooted growth and strong pruning: D. Johnson, M. Minkoff, S. Phillips: The Prize Collecting Steiner Tree
  Problem. SODA 2000.
- The guarantee of unrooted growth: P. Feofiloff, C. Fernandes, C. Ferreira, J. de Pina: A Note on Johnson, Minkoff and
  Phillips' Algorithm for the Prize-Collecting Steiner Tree Problem. arXiv:1004.1437.
- The two halves of each edge: C. Hegde, P. Indyk, L. Schmidt: A Fast, Adaptive Variant of the Goemans-Williamson Scheme
  for the Prize-Collecting Steiner Tree Problem. DIMACS Challenge 2014.

Differs from the last: a node without a prize costs nothing before the growth reaches it, so that the work depends on
the part of the graph around the prizes, not on the whole graph. Ties are broken by id.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import FloatPointer, Pointer, compiled, compiled_entry, pointers, wide
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array

#: Two clusters meet if the rest of an edge is at most this share of its cost. It is far above the error of rounding.
EPSILON = 1e-9

#: ... or this share of the time by then: if an edge costs next to nothing compared to the prizes, rounding could put a
#: meeting off forever.
ROUNDING = 1e-14

#: The most nodes or edges: halves of edges, from 1, are int32.
MAX_SIZE = 2**30 - 1

# What the next event of a cluster is; at equal times, clusters fall asleep before edges are looked at.
_SLEEPS, _EDGE = 0, 1


class SteinerTree(NamedTuple):
    """A tree that was found.

    Attributes:
        nodes: int64, ascending: its nodes. It may be one node.
        edges: int64, ascending: its edges.
    """

    nodes: Array
    edges: Array


def solve_pcst(
    heads: Array, tails: Array, costs: Array, prizes: Array, *, pruning: Literal["strong", "gw"] = "strong"
) -> SteinerTree:
    """Find a tree whose cost and missed prizes are nearly the least.

    The cost of a tree T is the sum over its edges. The prizes of all nodes that are not in T are missed. Against any
    tree F, this holds:

    - "gw": cost(T) + 2 * missed(T) <= 2 * (cost(F) + missed(F)) (Feofiloff et al.).
    - "strong": cost(T) + missed(T) <= 2 * (cost(F) + missed(F)), and cost(T) + missed(T) is never more than with "gw":
      both prune the same tree, and this finds its best part (Johnson, Minkoff, Phillips). Missed prizes count once
      here, since it cuts parts that cost more than their prizes.

    Ties are broken by id: of the clusters, nodes first, or of the edges. With equal costs, other ids may
    find other trees, better or worse ones, for which the same holds.

    Cost: O(d * m log n) time for m edges, n nodes and d bits of precision (Hegde, Indyk, Schmidt), of which the part of
    the graph that no prize reaches has only O(m + n) simple steps. Compiled at the first call. Safe to call from any
    thread.

    Args:
        heads: int, shape (m): one end of each edge. Direction does not matter. Parallel edges and loops are welcome.
        tails: int, shape (m): the other end.
        costs: float, shape (m): 0 or more.
        prizes: float, shape (n): 0 or more.
        pruning: How the tree is cut after the growth, see above.

    Returns:
        The tree. With "strong", it holds no smaller one that is worth more, prizes less costs. Nothing if all prizes
        are zero.

    Raises:
        InvalidArgumentError: If a shape, a value or an end of an edge is out of range.
    """
    heads, tails, costs, prizes = (np.asarray(array) for array in (heads, tails, costs, prizes))
    _check(heads, tails, costs, prizes)
    # Always of the same types, of read-only arrays and NumPy's scalars too: each other type would be compiled anew.
    heads, tails = np.require(heads, np.int32, ("C", "W")), np.require(tails, np.int32, ("C", "W"))
    costs, prizes = np.require(costs, np.float64, ("C", "W")), np.require(prizes, np.float64, ("C", "W"))
    nodes, edges = _run(_fresh_growth(heads, tails, costs, prizes), pruning == "strong")
    return SteinerTree(nodes, np.sort(edges))


def _check(heads: Array, tails: Array, costs: Array, prizes: Array) -> None:
    n, m = prizes.size, heads.size
    if prizes.ndim != 1 or not heads.shape == tails.shape == costs.shape == (m,) or max(n, m) > MAX_SIZE:
        shapes = [array.shape for array in (heads, tails, costs, prizes)]
        raise InvalidArgumentError(
            f"solve_pcst: heads, tails and costs must be as long as each other, and at most {MAX_SIZE:,}, got {shapes}."
        )
    integers = heads.dtype.kind in "iu" and tails.dtype.kind in "iu"
    if m and not (integers and 0 <= min(heads.min(), tails.min()) <= max(heads.max(), tails.max()) < n):
        raise InvalidArgumentError(
            f"solve_pcst: the ends of edges must be integers in 0 ... {n - 1}, the number of prizes - 1."
        )
    for name, values in (("costs", costs), ("prizes", prizes)):
        if values.size and not 0 <= values.min() <= values.max() < np.inf:  # also where one is not a number
            got = f"{values.min()} ... {values.max()}"
            raise InvalidArgumentError(f"solve_pcst: {name} must be 0 or more and finite, but got {got}.")


# --- growth ----------------------------------------------------------------------------------------------------------
#
# Edge e has the halves 2e + 1, at its head, and 2e + 2, at its tail; 0 is none. The halves of a cluster are a pairing
# heap by the time at which the cluster has grown over them, and the heap is the half at its root. The clusters that are
# awake are a binary heap, the queue, by their next event.


class _Growth(NamedTuple):
    """The graph and the state of the growth: arrays in Python, pointers to them in compiled code."""

    heads: Pointer
    tails: Pointer
    costs: FloatPointer
    prizes: FloatPointer
    indptr: Pointer  # where the halves of each node begin
    row: Pointer  # the halves
    # By half:
    time: FloatPointer  # when the cluster at its end has grown over it, less what the halves above it add
    added: FloatPointer  # what it adds to the times of all below it
    length: FloatPointer  # how much of the edge the half covers
    child: Pointer  # the first half below it
    after: Pointer  # the next one below the same half
    before: Pointer  # the one before, or the half above where it is the first
    # By cluster:
    begin: FloatPointer  # when it began to grow
    budget: FloatPointer  # how much it may grow
    moat: FloatPointer  # how much it has grown, once it sleeps
    above: FloatPointer  # the moats of the clusters from it to below the parent
    event: FloatPointer  # when its next event is
    awake: Pointer  # whether it grows
    reached: Pointer  # whether the growth has reached it; all but nodes without prize
    heap: Pointer  # its halves
    into: Pointer  # the cluster that it became a part of, 1 more; 0 for none
    parent: Pointer  # some cluster that holds it, 1 more; 0 for none
    position: Pointer  # its position in the queue, from 1; 0 where it is not
    kind: Pointer  # the kind of its next event
    order: Pointer  # the queue
    met: Pointer  # by meeting: the half that grew to its end
    slept: Pointer  # by meeting: the cluster that slept at the other end; -1 if that was awake
    counts: Pointer  # see below
    nodes: int


#: Positions in `_Growth.counts`: how often clusters met, the id of the next cluster, and how many clusters are in the
#: queue.
_MET, _NEXT, _QUEUED = range(3)


@compiled
def _meld(growth: _Growth, a: int, b: int) -> int:
    if a == 0 or b == 0:
        return a + b
    if growth.time[b] < growth.time[a] or (growth.time[b] == growth.time[a] and b < a):
        a, b = b, a
    growth.time[b] -= growth.added[a]
    growth.added[b] -= growth.added[a]
    first = growth.child[a]
    growth.after[b], growth.before[b] = first, a
    if first:
        growth.before[first] = b
    growth.child[a] = b
    return a


@compiled
def _without_first(growth: _Growth, top: int) -> int:
    """Return the heap below a root: pairs from the left are melded, then all from the right."""
    stack, rest, heap = wide(0), wide(growth.child[top]), wide(0)
    while rest:
        pair = wide(0)
        for _ in range(2):
            half = rest
            if half:
                rest = wide(growth.after[half])
                growth.after[half] = growth.before[half] = 0
                growth.time[half] += growth.added[top]
                growth.added[half] += growth.added[top]
                pair = _meld(growth, pair, half)
        growth.after[pair] = stack
        stack = pair
    while stack:
        pair, stack = stack, wide(growth.after[stack])
        growth.after[pair] = 0
        heap = _meld(growth, heap, pair)
    growth.child[top] = 0
    growth.added[top] = 0.0
    return heap


@compiled
def _lowered(growth: _Growth, heap: int, half: int, time: float, to: float) -> int:
    """Return the heap with an earlier time of a half. `time` is its time with all that is added above it."""
    if half == heap:
        growth.time[half] = to
        return heap
    before, after = growth.before[half], growth.after[half]
    if growth.child[before] == half:
        growth.child[before] = after
    else:
        growth.after[before] = after
    if after:
        growth.before[after] = before
    growth.after[half] = growth.before[half] = 0
    growth.added[half] += time - growth.time[half]
    growth.time[half] = to
    return _meld(growth, heap, half)


@compiled
def _is_before(growth: _Growth, a: int, b: int) -> bool:
    """Tell which cluster has the next event: the earlier one, at equal times a sleep, then the lower id."""
    if growth.event[a] != growth.event[b]:
        return growth.event[a] < growth.event[b]
    if growth.kind[a] != growth.kind[b]:
        return growth.kind[a] < growth.kind[b]
    return a < b


@compiled
def _settle(growth: _Growth, cluster: int) -> None:
    """Move a cluster to its place in the queue."""
    at, size = wide(growth.position[cluster]), growth.counts[_QUEUED]
    while at > 1 and _is_before(growth, cluster, wide(growth.order[at // 2])):
        growth.order[at] = growth.order[at // 2]
        growth.position[growth.order[at]] = at
        at //= 2
    while 2 * at <= size:
        below = 2 * at
        if below < size and _is_before(growth, wide(growth.order[below + 1]), wide(growth.order[below])):
            below += 1
        if _is_before(growth, cluster, wide(growth.order[below])):
            break
        growth.order[at] = growth.order[below]
        growth.position[growth.order[at]] = at
        at = below
    growth.order[at], growth.position[cluster] = cluster, at


@compiled
def _holder(growth: _Growth, cluster: int) -> tuple[int, float]:
    """Return the largest cluster that holds one, and the moats below that. Paths are made short on the way."""
    top, total = cluster, 0.0
    while growth.parent[top]:
        total += growth.above[top]
        top = wide(growth.parent[top] - 1)
    rest = total
    while growth.parent[cluster] and growth.parent[cluster] - 1 != top:
        following, part = wide(growth.parent[cluster] - 1), growth.above[cluster]
        growth.parent[cluster], growth.above[cluster] = top + 1, rest
        rest -= part
        cluster = following
    return top, total


@compiled
def _plan(growth: _Growth, cluster: int) -> None:
    """Put the next event of a cluster that is awake into the queue."""
    sleeps = growth.begin[cluster] + growth.budget[cluster]
    half = growth.heap[cluster]
    by_edge = half != 0 and growth.time[half] < sleeps
    growth.event[cluster] = growth.time[half] if by_edge else sleeps
    growth.kind[cluster] = _EDGE if by_edge else _SLEEPS
    if not growth.position[cluster]:
        growth.counts[_QUEUED] += 1
        growth.order[growth.counts[_QUEUED]], growth.position[cluster] = cluster, growth.counts[_QUEUED]
    _settle(growth, cluster)


@compiled
def _wake_nodes(growth: _Growth) -> None:
    """Make each node with a prize a cluster that is awake."""
    for v in range(growth.nodes):
        if growth.prizes[v] > 0:
            growth.reached[v] = growth.awake[v] = 1
            growth.budget[v] = growth.prizes[v]
            heap = wide(0)
            for i in range(growth.indptr[v], growth.indptr[v + 1]):
                half = wide(growth.row[i])
                e = (half - 1) // 2
                other = growth.heads[e] + growth.tails[e] - v
                part = growth.costs[e] / 2 if growth.prizes[other] > 0 else growth.costs[e]
                growth.length[half] = growth.time[half] = part
                heap = _meld(growth, heap, half)
            growth.heap[v] = heap
            _plan(growth, v)


@compiled
def _put_to_sleep(growth: _Growth, cluster: int, now: float) -> None:
    growth.moat[cluster] = now - growth.begin[cluster]
    growth.awake[cluster] = 0
    at, last = growth.position[cluster], wide(growth.order[growth.counts[_QUEUED]])
    growth.position[cluster] = 0
    growth.counts[_QUEUED] -= 1
    if last != cluster:
        growth.order[at], growth.position[last] = last, at
        _settle(growth, last)


@compiled
def _reach_node(growth: _Growth, node: int, now: float) -> None:
    """Give a node without a prize, which the growth has just reached, its halves."""
    growth.reached[node] = 1
    heap = wide(0)
    for i in range(growth.indptr[node], growth.indptr[node + 1]):
        own = wide(growth.row[i])
        edge, opposite = (own - 1) // 2, own + 1 if own % 2 else own - 1
        other = growth.heads[edge] + growth.tails[edge] - node
        if other != node:
            taken = growth.length[opposite] if growth.reached[other] else 0.0
            growth.length[own] = max(growth.costs[edge] - taken, 0.0)
            growth.time[own] = now + growth.length[own]
            heap = _meld(growth, heap, own)
    growth.heap[node] = heap


@compiled
def _put_off(
    growth: _Growth, half: int, here: int, there: int, now: float, near_grown: float, far_grown: float, left: float
) -> None:
    """Let two clusters go on growing over an edge of which something is left."""
    opposite = half + 1 if half % 2 else half - 1
    part = left / 2 if growth.awake[there] else left
    growth.length[half], growth.time[half] = near_grown + part, now + part
    growth.heap[here] = _meld(growth, wide(growth.heap[here]), half)
    _plan(growth, here)
    if growth.reached[there]:
        # An edge's two halves cover it: what this one takes, the other one leaves.
        rest = growth.length[opposite] - far_grown
        clock = now if growth.awake[there] else growth.begin[there] + growth.moat[there]
        growth.length[opposite] = far_grown + left - part
        heap = wide(growth.heap[there])
        growth.heap[there] = _lowered(growth, heap, opposite, clock + rest, clock + left - part)
        if growth.awake[there]:
            _plan(growth, there)


@compiled
def _unite(growth: _Growth, half: int, here: int, there: int, now: float) -> None:
    """Make one cluster of two that meet."""
    counts = growth.counts
    growth.met[counts[_MET]], growth.slept[counts[_MET]] = half, -1 if growth.awake[there] else there
    new = counts[_NEXT]
    counts[_MET] += 1
    counts[_NEXT] += 1
    growth.reached[new] = 1
    _put_to_sleep(growth, here, now)
    if growth.awake[there]:
        _put_to_sleep(growth, there, now)
    elif not growth.reached[there]:
        _reach_node(growth, there, now)
    elif growth.heap[there]:
        slept = now - growth.begin[there] - growth.moat[there]
        growth.time[growth.heap[there]] += slept
        growth.added[growth.heap[there]] += slept
    growth.into[here] = growth.into[there] = growth.parent[here] = growth.parent[there] = new + 1
    growth.above[here], growth.above[there] = growth.moat[here], growth.moat[there]
    growth.heap[new] = _meld(growth, wide(growth.heap[here]), wide(growth.heap[there]))
    growth.begin[new], growth.awake[new] = now, 1
    growth.budget[new] = growth.budget[here] - growth.moat[here] + max(growth.budget[there] - growth.moat[there], 0.0)
    _plan(growth, new)


@compiled
def _look_at_edge(growth: _Growth, here: int, now: float) -> None:
    """Let a cluster meet the other end of its next edge, or go on growing."""
    half = wide(growth.heap[here])
    growth.heap[here] = _without_first(growth, half)
    e = (half - 1) // 2
    near, far = wide(growth.heads[e]), wide(growth.tails[e])
    if half % 2 == 0:
        near, far = far, near
    there, far_below = _holder(growth, far)
    if there == here:
        _plan(growth, here)
        return
    _, near_below = _holder(growth, near)
    near_grown = near_below + now - growth.begin[here]
    far_grown = far_below + (now - growth.begin[there] if growth.awake[there] else growth.moat[there])
    left = growth.costs[e] - near_grown - far_grown
    if left > max(EPSILON * growth.costs[e], ROUNDING * now) and now + left / 2 > now:
        _put_off(growth, half, here, there, now, near_grown, far_grown, left)
    else:
        _unite(growth, half, here, there, now)


def _fresh_growth(heads: Array, tails: Array, costs: Array, prizes: Array) -> _Growth:
    n, m = len(prizes), len(heads)
    edges = [heads, tails, costs, prizes, np.zeros(n + 2, np.int64), np.empty(2 * m, np.int32)]
    halves = [*np.zeros((3, 2 * m + 1)), *np.zeros((3, 2 * m + 1), np.int32)]
    clusters = [*np.zeros((5, 2 * n)), *np.zeros((7, 2 * n), np.int32)]
    meetings = [np.zeros(n + 1, np.int32), *np.empty((2, n), np.int32), np.zeros(3, np.int64)]
    parts: tuple[Any, ...] = (*edges, *halves, *clusters, *meetings, n)
    return _Growth(*parts)


@compiled
def _fill_rows(heads: Array, tails: Array, n: int, indptr: Array, row: Array) -> None:
    """Write the starts of the halves of each of n nodes in `indptr`, which is 0, and the halves."""
    for e in range(len(heads)):
        indptr[heads[e] + 2] += 1
        indptr[tails[e] + 2] += 1
    for v in range(n):
        indptr[v + 2] += indptr[v + 1]
    for e in range(len(heads)):
        row[indptr[heads[e] + 1]] = 2 * e + 1
        indptr[heads[e] + 1] += 1
        row[indptr[tails[e] + 1]] = 2 * e + 2
        indptr[tails[e] + 1] += 1


@compiled
def _grow(growth: _Growth) -> None:
    """Let clusters grow, meet and fall asleep until at most one is awake.

    In the end, `awake` says of each node whether it is in the tree: whether its cluster is awake.
    """
    counts = growth.counts
    counts[_NEXT] = growth.nodes
    _wake_nodes(growth)
    while counts[_QUEUED] > 1:
        here = wide(growth.order[1])
        now = growth.event[here]
        if growth.kind[here] == _SLEEPS:
            _put_to_sleep(growth, here, now)
        else:
            _look_at_edge(growth, here, now)
    for v in range(growth.nodes):
        if growth.reached[v]:
            growth.awake[v] = growth.awake[_holder(growth, v)[0]]


# --- pruning ---------------------------------------------------------------------------------------------------------


class _Tree(NamedTuple):
    """The tree of the cluster that was awake at the end. Nodes and edges have new ids."""

    nodes: Array  # int64, ascending
    edges: Array  # int64, in the order in which clusters met
    ends: Array  # int32, (2, edges): their nodes, that of the half that grew first
    slept: Array  # int64: by edge: the cluster that slept at its second end, -1 if it was awake
    indptr: Array  # int64: where the halves of each node begin
    row: Array  # int32: the halves


@compiled
def _tree(growth: _Growth) -> _Tree:
    heads, tails, meetings = growth.heads, growth.tails, growth.counts[_MET]
    new_id = np.zeros(growth.nodes, np.int32)  # of a node, from 1
    nodes = np.empty(growth.nodes, np.int64)
    count = 0
    for v in range(growth.nodes):
        if growth.awake[v]:
            nodes[count] = v
            count += 1
            new_id[v] = count
    edges, slept = np.empty(meetings, np.int64), np.empty(meetings, np.int64)
    ends = np.empty((2, meetings), np.int32)
    size = 0
    for meeting in range(meetings):
        half = growth.met[meeting]
        e = (half - 1) // 2
        if new_id[heads[e]]:
            near, far = (heads[e], tails[e]) if half % 2 else (tails[e], heads[e])
            edges[size], slept[size] = e, growth.slept[meeting]
            ends[0, size], ends[1, size] = new_id[near] - 1, new_id[far] - 1
            size += 1
    indptr, row = np.zeros(count + 2, np.int64), np.empty(2 * size, np.int32)
    _fill_rows(ends[0, :size], ends[1, :size], count, indptr, row)
    return _Tree(nodes[:count], edges[:size], ends[:, :size], slept[:size], indptr, row)


@compiled
def _top_down(tree: _Tree) -> tuple[Array, Array]:
    """Return the nodes, each after the one above it, and the edge to that. -1 at the top, which is the lowest node."""
    count = len(tree.nodes)
    order = np.zeros(count, np.int64)
    above = np.full(count, -2, np.int64)  # -2 where not yet seen
    above[:1] = -1
    at, seen = 0, min(count, 1)
    while at < seen:
        v = order[at]
        at += 1
        for half in tree.row[tree.indptr[v] : tree.indptr[v + 1]]:
            i = (half - 1) // 2
            w = tree.ends[0, i] + tree.ends[1, i] - v
            if above[w] == -2:
                above[w], order[seen] = i, w
                seen += 1
    return order, above


@compiled
def _prune_strongly(costs: Array, prizes: Array, tree: _Tree) -> tuple[Array, Array]:
    """Return which nodes and edges stay: the part of the tree that is worth most."""
    order, above = _top_down(tree)
    worth = prizes[tree.nodes]  # of the best part of a tree whose top is that node
    nodes, edges = np.zeros(len(tree.nodes), np.bool_), np.zeros(len(tree.edges), np.bool_)
    best = 0
    for v in order[::-1]:
        i = above[v]
        if worth[v] >= worth[best]:
            best = v
        if i >= 0:
            worth[tree.ends[0, i] + tree.ends[1, i] - v] += max(worth[v] - costs[tree.edges[i]], 0.0)
    nodes[best : best + 1] = True
    for v in order:
        i = above[v]
        if i >= 0 and nodes[tree.ends[0, i] + tree.ends[1, i] - v] and worth[v] > costs[tree.edges[i]]:
            nodes[v] = edges[i] = True
    return nodes, edges


@compiled
def _prune_by_growth(tree: _Tree, into: Array) -> tuple[Array, Array]:
    """Return which nodes and edges stay: no cluster that slept when it was met, unless something behind it needs it."""
    nodes, edges = np.ones(len(tree.nodes), np.bool_), np.zeros(len(tree.edges), np.bool_)
    needed = np.zeros(len(into), np.bool_)
    stack = np.empty(len(tree.nodes), np.int64)
    for i in range(len(tree.edges) - 1, -1, -1):
        near, far, sleeper = tree.ends[0, i], tree.ends[1, i], tree.slept[i]
        if not nodes[near] and not nodes[far]:
            continue
        if sleeper < 0 or needed[sleeper]:
            edges[i] = True
            for end in (near, far):
                cluster = tree.nodes[end]
                while not needed[cluster]:
                    needed[cluster] = True
                    if into[cluster]:
                        cluster = into[cluster] - 1
            continue
        nodes[far] = False
        stack[0], size = far, 1
        while size:
            size -= 1
            v = stack[size]
            for half in tree.row[tree.indptr[v] : tree.indptr[v + 1]]:
                other = (half - 1) // 2
                w = tree.ends[0, other] + tree.ends[1, other] - v
                if other != i and nodes[w]:
                    nodes[w] = False
                    stack[size] = w
                    size += 1
    return nodes, edges


@compiled_entry
def _run(arrays: Any, strong: bool) -> tuple[Array, Array]:
    """Return the nodes and the edges of a tree, from a growth of arrays that has not begun."""
    growth: _Growth = pointers(arrays)
    _fill_rows(arrays.heads, arrays.tails, growth.nodes, arrays.indptr, arrays.row)
    _grow(growth)
    grown = _tree(growth)
    stay = _prune_strongly(arrays.costs, arrays.prizes, grown) if strong else _prune_by_growth(grown, arrays.into)
    return grown.nodes[stay[0]], grown.edges[stay[1]]
