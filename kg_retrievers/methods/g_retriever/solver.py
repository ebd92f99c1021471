"""Prize-collecting Steiner trees (PCST): a connected part of a graph that is worth more than its edges cost.

Sources: M. Goemans, D. Williamson: A General Approximation Technique for Constrained Forest Problems. SIAM J. Comput.
24 (1995), the growth; D. Johnson, M. Minkoff, S. Phillips: The Prize Collecting Steiner Tree Problem. SODA 2000, the
unrooted growth and strong pruning; P. Feofiloff, C. Fernandes, C. Ferreira, J. de Pina: A Note on Johnson, Minkoff and
Phillips' Algorithm for the Prize-Collecting Steiner Tree Problem. arXiv:1004.1437, what unrooted growth guarantees; C.
Hegde, P. Indyk, L. Schmidt: A Nearly-Linear Time Framework for Graph-Structured Sparsity. ICML 2015, several trees, and
A Fast, Adaptive Variant of the Goemans-Williamson Scheme for the Prize-Collecting Steiner Tree Problem. DIMACS
Challenge 2014, the two halves of each edge.

Differs from the last: a node without a prize costs nothing before the growth reaches it, so that the work goes with
the part of the graph around the prizes, not with the graph; and ties are broken by id.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array

#: Two clusters meet where what is left of an edge is at most this share of its cost; far above what rounding leaves.
EPSILON = 1e-9

#: ... or this share of the time by then: where an edge costs next to nothing beside the prizes, rounding could put a
#: meeting off forever.
ROUNDING = 1e-14

#: The most nodes or edges: halves of edges, from 1, are int32.
MAX_SIZE = 2**30 - 1

# What the next event of a cluster is; at equal times, clusters fall asleep before edges are looked at.
_SLEEPS, _EDGE = 0, 1


class SteinerForest(NamedTuple):
    """Trees that were found.

    Attributes:
        nodes: int64, ascending: the nodes of all trees; a tree may be one node.
        edges: int64, ascending: their edges.
    """

    nodes: Array
    edges: Array


def solve_pcst(
    heads: Array,
    tails: Array,
    costs: Array,
    prizes: Array,
    *,
    root: int | None = None,
    trees: int = 1,
    pruning: Literal["strong", "gw"] = "strong",
) -> SteinerForest:
    """Find trees whose cost and missed prizes together are at most twice the least that is possible.

    The cost of trees T is the sum over their edges; the prizes of all nodes that are not in T are missed. Against any
    trees F that were allowed, this holds:

    - "gw": cost(T) + 2 * missed(T) <= 2 * (cost(F) + missed(F)); Goemans and Williamson with a root, Feofiloff et al.
      for one tree anywhere, Hegde, Indyk and Schmidt (2015) for several.
    - "strong": cost(T) + missed(T) <= 2 * (cost(F) + missed(F)), and cost(T) + missed(T) is never more than with "gw":
      both prune the same trees, and this finds the best part of each (Johnson, Minkoff, Phillips). Missed prizes count
      once here, for it cuts what costs more than its prizes.

    Ties are broken by id: of the clusters, nodes first, or of the edges. With equal costs, other ids may
    find other trees, better or worse ones, for which the same holds.

    Cost: O(d * m log n) time for m edges, n nodes and d bits of precision (Hegde, Indyk, Schmidt), of which the part of
    the graph that no prize reaches has only O(m + n) simple steps. Compiled at the first call; safe to call from any
    thread.

    Args:
        heads: int, shape (m): one end of each edge; direction does not matter. Parallel edges and loops are welcome.
        tails: int, shape (m): the other end.
        costs: float, shape (m): 0 or more.
        prizes: float, shape (n): 0 or more.
        root: A node that the one tree must hold, whatever its prize; None for trees anywhere.
        trees: The most trees, where there is no root.
        pruning: How the trees are cut after the growth; see above.

    Returns:
        The trees. With "strong", none holds a smaller one (with the root) that is worth more, prizes less costs.
        Nothing where all prizes are zero and there is no root.

    Raises:
        InvalidArgumentError: If a shape, a value or an end of an edge is out of range, there is no such pruning, or
            `root` is given with several trees.
    """
    heads, tails, costs, prizes = (np.asarray(array) for array in (heads, tails, costs, prizes))
    _check(heads, tails, costs, prizes, root, trees)
    # Always of the same types, of read-only arrays and NumPy's scalars too: each other type would be compiled anew.
    heads, tails = np.require(heads, np.int32, ("C", "W")), np.require(tails, np.int32, ("C", "W"))
    costs, prizes = np.require(costs, np.float64, ("C", "W")), np.require(prizes, np.float64, ("C", "W"))
    if pruning not in ("strong", "gw"):
        raise InvalidArgumentError(f'solve_pcst: pruning must be "strong" or "gw", but got {pruning!r}.')
    where = (-1, min(int(trees), prizes.size)) if root is None else (int(root), 0)
    nodes, edges = _run(heads, tails, costs, prizes, *where, pruning == "strong")
    return SteinerForest(nodes, np.sort(edges))


def _check(heads: Array, tails: Array, costs: Array, prizes: Array, root: int | None, trees: int) -> None:
    n, m = prizes.size, heads.size
    if prizes.ndim != 1 or not heads.shape == tails.shape == costs.shape == (m,):
        shapes = [array.shape for array in (heads, tails, costs, prizes)]
        raise InvalidArgumentError(f"solve_pcst: heads, tails and costs must be as long as each other, got {shapes}.")
    if max(n, m) > MAX_SIZE:
        raise InvalidArgumentError(f"solve_pcst: at most {MAX_SIZE:,} nodes or edges, but got {n:,} and {m:,}.")
    integers = heads.dtype.kind in "iu" and tails.dtype.kind in "iu"
    if m and not (integers and 0 <= min(heads.min(), tails.min()) <= max(heads.max(), tails.max()) < n):
        raise InvalidArgumentError(
            f"solve_pcst: the ends of edges must be integers in 0 ... {n - 1}, the number of prizes - 1."
        )
    for name, values in (("costs", costs), ("prizes", prizes)):
        if values.size and not 0 <= values.min() <= values.max() < np.inf:  # also where one is not a number
            got = f"{values.min()} ... {values.max()}"
            raise InvalidArgumentError(f"solve_pcst: {name} must be 0 or more and finite, but got {got}.")
    if root is not None and not 0 <= root < n:
        raise InvalidArgumentError(f"solve_pcst: root must be a node in 0 ... {n - 1}, but got {root}.")
    if trees < 1 or (root is not None and trees > 1):
        raise InvalidArgumentError(f"solve_pcst: trees must be 1 or more, and 1 with a root, but got {trees}.")


# --- the halves of edges, in one pairing heap for each cluster -------------------------------------------------------
#
# Edge e has the halves 2e + 1, at its head, and 2e + 2, at its tail; 0 is none. A heap is the half at its root.


class _Halves(NamedTuple):
    time: Array  # float64: when the cluster at its end has grown over it, less what the halves above it add
    added: Array  # float64: what it adds to the times of all below it
    child: Array  # int32: the first half below it
    after: Array  # int32: the next one below the same half
    before: Array  # int32: the one before, or the half above where it is the first
    length: Array  # float64: how much of the edge the half covers


@compiled
def _opposite(half: int) -> int:
    return half + 1 if half % 2 else half - 1


@compiled
def _meld(halves: _Halves, a: int, b: int) -> int:
    if a == 0 or b == 0:
        return a + b
    if halves.time[b] < halves.time[a] or (halves.time[b] == halves.time[a] and b < a):
        a, b = b, a
    halves.time[b] -= halves.added[a]
    halves.added[b] -= halves.added[a]
    first = halves.child[a]
    halves.after[b], halves.before[b] = first, a
    if first:
        halves.before[first] = b
    halves.child[a] = b
    return a


@compiled
def _without_first(halves: _Halves, top: int) -> int:
    """Return the heap below a root: pairs from the left are melded, then all from the right."""
    stack, rest = 0, halves.child[top]
    while rest:
        pair = 0
        for _ in range(2):
            half = rest
            if half:
                rest = halves.after[half]
                halves.after[half] = halves.before[half] = 0
                halves.time[half] += halves.added[top]
                halves.added[half] += halves.added[top]
                pair = _meld(halves, pair, half)
        halves.after[pair] = stack
        stack = pair
    heap = 0
    while stack:
        pair, stack = stack, halves.after[stack]
        halves.after[pair] = 0
        heap = _meld(halves, heap, pair)
    halves.child[top] = 0
    halves.added[top] = 0.0
    return heap


@compiled
def _lowered(halves: _Halves, heap: int, half: int, time: float, to: float) -> int:
    """Return the heap with an earlier time of a half; `time` is its time with all that is added above it."""
    if half == heap:
        halves.time[half] = to
        return heap
    before, after = halves.before[half], halves.after[half]
    if halves.child[before] == half:
        halves.child[before] = after
    else:
        halves.after[before] = after
    if after:
        halves.before[after] = before
    halves.after[half] = halves.before[half] = 0
    halves.added[half] += time - halves.time[half]
    halves.time[half] = to
    return _meld(halves, heap, half)


# --- the clusters that are awake, in a binary heap by their next event -----------------------------------------------


class _Queue(NamedTuple):
    order: Array  # int32: the clusters, as a binary heap
    position: Array  # int32: the position of each cluster in it, from 1; 0 where it is not
    time: Array  # float64: by cluster
    kind: Array  # int8: by cluster
    size: Array  # int64, shape (1)


@compiled
def _is_before(queue: _Queue, a: int, b: int) -> bool:
    if queue.time[a] != queue.time[b]:
        return bool(queue.time[a] < queue.time[b])
    if queue.kind[a] != queue.kind[b]:
        return bool(queue.kind[a] < queue.kind[b])
    return a < b


@compiled
def _settle(queue: _Queue, cluster: int) -> None:
    """Move a cluster to where it belongs."""
    order, position = queue.order, queue.position
    at = position[cluster]
    while at > 1 and _is_before(queue, cluster, order[at // 2]):
        order[at] = order[at // 2]
        position[order[at]] = at
        at //= 2
    while 2 * at <= queue.size[0]:
        below = 2 * at
        if below < queue.size[0] and _is_before(queue, order[below + 1], order[below]):
            below += 1
        if _is_before(queue, cluster, order[below]):
            break
        order[at] = order[below]
        position[order[at]] = at
        at = below
    order[at], position[cluster] = cluster, at


@compiled
def _leave(queue: _Queue, cluster: int) -> None:
    at, last = queue.position[cluster], queue.order[queue.size[0]]
    queue.position[cluster] = 0
    queue.size[0] -= 1
    if last != cluster:
        queue.order[at], queue.position[last] = last, at
        _settle(queue, last)


# --- growth ----------------------------------------------------------------------------------------------------------


class _Clusters(NamedTuple):
    awake: Array  # bool: whether it grows
    reached: Array  # bool: whether the growth has reached it; all but nodes without prize
    begin: Array  # float64: when it began to grow
    budget: Array  # float64: how much it may grow
    moat: Array  # float64: how much it has grown, once it sleeps
    heap: Array  # int32: its halves
    into: Array  # int32: the cluster that it became a part of, 1 more; 0 for none
    parent: Array  # int32: some cluster that holds it, 1 more; 0 for none
    above: Array  # float64: the moats of the clusters from it to below the parent


@compiled
def _holder(clusters: _Clusters, cluster: int) -> tuple[int, float]:
    """Return the largest cluster that holds one, and the moats below that; paths are made short on the way."""
    top, total = cluster, 0.0
    while clusters.parent[top]:
        total += clusters.above[top]
        top = clusters.parent[top] - 1
    rest = total
    while clusters.parent[cluster] and clusters.parent[cluster] - 1 != top:
        following, part = clusters.parent[cluster] - 1, clusters.above[cluster]
        clusters.parent[cluster], clusters.above[cluster] = top + 1, rest
        rest -= part
        cluster = following
    return top, total


@compiled
def _plan(clusters: _Clusters, halves: _Halves, queue: _Queue, cluster: int) -> None:
    """Put the next event of a cluster that is awake into the queue."""
    sleeps = clusters.begin[cluster] + clusters.budget[cluster]
    half = clusters.heap[cluster]
    by_edge = half != 0 and halves.time[half] < sleeps
    queue.time[cluster] = halves.time[half] if by_edge else sleeps
    queue.kind[cluster] = _EDGE if by_edge else _SLEEPS
    if not queue.position[cluster]:
        queue.size[0] += 1
        queue.order[queue.size[0]], queue.position[cluster] = cluster, queue.size[0]
    _settle(queue, cluster)


@compiled
def _rows(heads: Array, tails: Array, n: int) -> tuple[Array, Array]:
    """Return where the halves of each node begin, and the halves."""
    indptr = np.zeros(n + 2, np.int64)
    for e in range(len(heads)):
        indptr[heads[e] + 2] += 1
        indptr[tails[e] + 2] += 1
    for v in range(n):
        indptr[v + 2] += indptr[v + 1]
    row = np.empty(2 * len(heads), np.int32)
    for e in range(len(heads)):
        row[indptr[heads[e] + 1]] = 2 * e + 1
        indptr[heads[e] + 1] += 1
        row[indptr[tails[e] + 1]] = 2 * e + 2
        indptr[tails[e] + 1] += 1
    return indptr, row


class _Growth(NamedTuple):
    """The graph, and where the growth stands; arrays that are changed in place."""

    heads: Array
    tails: Array
    costs: Array
    prizes: Array
    indptr: Array  # int64: where the halves of each node begin
    row: Array  # int32: the halves
    halves: _Halves
    clusters: _Clusters
    queue: _Queue
    met: Array  # int64, (n, 2): see `_grow`
    counts: Array  # int64: see below


#: Positions in `_Growth.counts`: how often clusters met, the id of the next cluster, the cluster that holds the root.
_MET, _NEXT, _ROOTED = range(3)


@compiled
def _fresh_growth(heads: Array, tails: Array, costs: Array, prizes: Array, root: int) -> _Growth:
    n, m = len(prizes), len(heads)
    indptr, row = _rows(heads, tails, n)
    halves = _Halves(
        np.zeros(2 * m + 1),
        np.zeros(2 * m + 1),
        np.zeros(2 * m + 1, np.int32),
        np.zeros(2 * m + 1, np.int32),
        np.zeros(2 * m + 1, np.int32),
        np.zeros(2 * m + 1),
    )
    clusters = _Clusters(
        np.zeros(2 * n, np.bool_),
        np.zeros(2 * n, np.bool_),
        np.zeros(2 * n),
        np.zeros(2 * n),
        np.zeros(2 * n),
        np.zeros(2 * n, np.int32),
        np.zeros(2 * n, np.int32),
        np.zeros(2 * n, np.int32),
        np.zeros(2 * n),
    )
    queue = _Queue(
        np.zeros(n + 1, np.int32),
        np.zeros(2 * n, np.int32),
        np.zeros(2 * n),
        np.zeros(2 * n, np.int8),
        np.zeros(1, np.int64),
    )
    counts = np.array([0, n, root])
    return _Growth(
        heads, tails, costs, prizes, indptr, row, halves, clusters, queue, np.zeros((n, 2), np.int64), counts
    )


@compiled
def _wake_nodes(growth: _Growth, root: int) -> None:
    """Make each node with a prize, other than the root, a cluster that is awake."""
    heads, tails, costs, prizes = growth.heads, growth.tails, growth.costs, growth.prizes
    halves, clusters = growth.halves, growth.clusters
    for v in range(len(prizes)):
        if v == root or prizes[v] > 0:
            clusters.reached[v] = True
            clusters.budget[v] = prizes[v]
    for v in range(len(prizes)):
        if prizes[v] > 0 and v != root:
            heap = 0
            for half in growth.row[growth.indptr[v] : growth.indptr[v + 1]]:
                e = (half - 1) // 2
                other = heads[e] + tails[e] - v
                grows = prizes[other] > 0 and other != root
                halves.length[half] = halves.time[half] = costs[e] / 2 if grows else costs[e]
                heap = _meld(halves, heap, half)
            clusters.heap[v], clusters.awake[v] = heap, True
            _plan(clusters, halves, growth.queue, v)


@compiled
def _put_to_sleep(clusters: _Clusters, queue: _Queue, cluster: int, now: float) -> None:
    clusters.moat[cluster] = now - clusters.begin[cluster]
    clusters.awake[cluster] = False
    _leave(queue, cluster)


@compiled
def _reach_node(growth: _Growth, node: int, now: float) -> None:
    """Give a node without a prize, which the growth has just reached, its halves."""
    halves, clusters = growth.halves, growth.clusters
    clusters.reached[node] = True
    heap = 0
    for own in growth.row[growth.indptr[node] : growth.indptr[node + 1]]:
        edge = (own - 1) // 2
        other = growth.heads[edge] + growth.tails[edge] - node
        if other != node:
            taken = halves.length[_opposite(own)] if clusters.reached[other] else 0.0
            halves.length[own] = max(growth.costs[edge] - taken, 0.0)
            halves.time[own] = now + halves.length[own]
            heap = _meld(halves, heap, own)
    clusters.heap[node] = heap


@compiled
def _put_off(
    growth: _Growth, half: int, here: int, there: int, now: float, near_grown: float, far_grown: float, left: float
) -> None:
    """Let two clusters go on growing over an edge of which something is left."""
    halves, clusters, queue = growth.halves, growth.clusters, growth.queue
    opposite = _opposite(half)
    part = left / 2 if clusters.awake[there] else left
    halves.length[half], halves.time[half] = near_grown + part, now + part
    clusters.heap[here] = _meld(halves, clusters.heap[here], half)
    _plan(clusters, halves, queue, here)
    if clusters.reached[there] and there != growth.counts[_ROOTED]:
        # An edge's two halves cover it: what this one takes, the other one leaves.
        rest = halves.length[opposite] - far_grown
        clock = now if clusters.awake[there] else clusters.begin[there] + clusters.moat[there]
        halves.length[opposite] = far_grown + left - part
        clusters.heap[there] = _lowered(halves, clusters.heap[there], opposite, clock + rest, clock + left - part)
        if clusters.awake[there]:
            _plan(clusters, halves, queue, there)


@compiled
def _unite(growth: _Growth, half: int, here: int, there: int, now: float) -> None:
    """Make one cluster of two that meet."""
    halves, clusters, queue, counts = growth.halves, growth.clusters, growth.queue, growth.counts
    rooted = there == counts[_ROOTED]
    growth.met[counts[_MET], 0], growth.met[counts[_MET], 1] = half, -1 if clusters.awake[there] or rooted else there
    new = counts[_NEXT]
    counts[_MET] += 1
    counts[_NEXT] += 1
    clusters.reached[new] = True
    _put_to_sleep(clusters, queue, here, now)
    if clusters.awake[there]:
        _put_to_sleep(clusters, queue, there, now)
    elif not clusters.reached[there]:
        _reach_node(growth, there, now)
    elif not rooted and clusters.heap[there]:
        slept = now - clusters.begin[there] - clusters.moat[there]
        halves.time[clusters.heap[there]] += slept
        halves.added[clusters.heap[there]] += slept
    clusters.into[here] = clusters.into[there] = clusters.parent[here] = clusters.parent[there] = new + 1
    clusters.above[here], clusters.above[there] = clusters.moat[here], clusters.moat[there]
    if rooted:
        counts[_ROOTED] = new
        return
    clusters.heap[new] = _meld(halves, clusters.heap[here], clusters.heap[there])
    clusters.begin[new], clusters.awake[new] = now, True
    clusters.budget[new] = (
        clusters.budget[here] - clusters.moat[here] + max(clusters.budget[there] - clusters.moat[there], 0.0)
    )
    _plan(clusters, halves, queue, new)


@compiled
def _look_at_edge(growth: _Growth, here: int, now: float) -> None:
    """Let a cluster meet what is at the other end of its next edge, or go on growing."""
    halves, clusters = growth.halves, growth.clusters
    half = clusters.heap[here]
    clusters.heap[here] = _without_first(halves, half)
    e = (half - 1) // 2
    near, far = (growth.heads[e], growth.tails[e]) if half % 2 else (growth.tails[e], growth.heads[e])
    there, far_below = _holder(clusters, far)
    if there == here:
        _plan(clusters, halves, growth.queue, here)
        return
    _, near_below = _holder(clusters, near)
    near_grown = near_below + now - clusters.begin[here]
    far_grown = far_below + (now - clusters.begin[there] if clusters.awake[there] else clusters.moat[there])
    left = growth.costs[e] - near_grown - far_grown
    if left > max(EPSILON * growth.costs[e], ROUNDING * now) and now + left / 2 > now:
        _put_off(growth, half, here, there, now, near_grown, far_grown, left)
    else:
        _unite(growth, half, here, there, now)


@compiled
def _grow_clusters(growth: _Growth, root: int, trees: int) -> None:
    """Let clusters grow, meet and fall asleep until no more are awake than `trees`."""
    clusters, queue = growth.clusters, growth.queue
    _wake_nodes(growth, root)
    while queue.size[0] > trees:
        here = queue.order[1]
        now = queue.time[here]
        if queue.kind[here] == _SLEEPS:
            _put_to_sleep(clusters, queue, here, now)
        else:
            _look_at_edge(growth, here, now)
    if root >= 0:
        clusters.awake[growth.counts[_ROOTED]] = True  # it stands for the tree that is wanted


@compiled
def _grow(heads: Array, tails: Array, costs: Array, prizes: Array, root: int, trees: int) -> tuple[_Clusters, Array]:
    """Return the clusters, and where they met, in order.

    A meeting is the half that grew to its end, and the cluster that slept at the other end; -1 if that was awake or
    has the root.
    """
    growth = _fresh_growth(heads, tails, costs, prizes, root)
    _grow_clusters(growth, root, trees)
    return growth.clusters, growth.met[: growth.counts[_MET]]


# --- pruning ---------------------------------------------------------------------------------------------------------


class _Trees(NamedTuple):
    """The trees that hold the root, or a cluster that was awake at the end; nodes and edges have new ids."""

    nodes: Array  # int64, ascending
    edges: Array  # int64, in the order in which clusters met
    ends: Array  # int64, (2, edges): their nodes, that of the half that grew first
    slept: Array  # int64: by edge: the cluster that slept at its second end, -1 if it was awake
    indptr: Array  # int64: where the halves of each node begin
    row: Array  # int32: the halves


@compiled
def _trees(heads: Array, tails: Array, clusters: _Clusters, met: Array) -> _Trees:
    new_id = np.zeros(len(clusters.awake) // 2, np.int32)  # of a node, from 1
    nodes = np.empty(len(new_id), np.int64)
    count = 0
    for v in range(len(new_id)):
        if clusters.reached[v] and clusters.awake[_holder(clusters, v)[0]]:
            nodes[count] = v
            count += 1
            new_id[v] = count
    edges, slept = np.empty(len(met), np.int64), np.empty(len(met), np.int64)
    ends = np.empty((2, len(met)), np.int64)
    size = 0
    for half, sleeper in met:
        e = (half - 1) // 2
        if new_id[heads[e]]:
            near, far = (heads[e], tails[e]) if half % 2 else (tails[e], heads[e])
            edges[size], slept[size] = e, sleeper
            ends[0, size], ends[1, size] = new_id[near] - 1, new_id[far] - 1
            size += 1
    indptr, row = _rows(ends[0, :size], ends[1, :size], count)
    return _Trees(nodes[:count], edges[:size], ends[:, :size], slept[:size], indptr, row)


@compiled
def _top_down(root: int, trees: _Trees) -> tuple[Array, Array, Array]:
    """Return the nodes, each after the one above it; the edge to that; and where each tree begins among the nodes.

    The edge is -1 at the top of a tree, which is the root, or else its lowest node.
    """
    count = len(trees.nodes)
    order = np.empty(count, np.int64)
    above = np.full(count, -2, np.int64)  # -2 where not yet seen
    first = np.empty(count + 1, np.int64)
    seen, tops = 0, 0
    for node in range(count):
        start = np.searchsorted(trees.nodes, root) if root >= 0 else node
        if above[start] != -2:
            continue
        first[tops] = seen
        tops += 1
        above[start], order[seen] = -1, start
        at, seen = seen, seen + 1
        while at < seen:
            v = order[at]
            at += 1
            for half in trees.row[trees.indptr[v] : trees.indptr[v + 1]]:
                i = (half - 1) // 2
                w = trees.ends[0, i] + trees.ends[1, i] - v
                if above[w] == -2:
                    above[w], order[seen] = i, w
                    seen += 1
    first[tops] = seen
    return order, above, first[: tops + 1]


@compiled
def _prune_strongly(costs: Array, prizes: Array, root: int, trees: _Trees) -> tuple[Array, Array]:
    """Return which nodes and edges stay: those of the part of each tree, with the root, that is worth most."""
    order, above, first = _top_down(root, trees)
    worth = prizes[trees.nodes]  # of the best part of a tree whose top is that node
    nodes, edges = np.zeros(len(trees.nodes), np.bool_), np.zeros(len(trees.edges), np.bool_)
    for tree in range(len(first) - 1):
        best = top = order[first[tree]]
        for at in range(first[tree + 1] - 1, first[tree] - 1, -1):
            v, i = order[at], above[order[at]]
            if worth[v] >= worth[best]:
                best = v
            if i >= 0:
                worth[trees.ends[0, i] + trees.ends[1, i] - v] += max(worth[v] - costs[trees.edges[i]], 0.0)
        nodes[top if root >= 0 else best] = True
    for v in order:
        i = above[v]
        if i >= 0 and nodes[trees.ends[0, i] + trees.ends[1, i] - v] and worth[v] > costs[trees.edges[i]]:
            nodes[v] = edges[i] = True
    return nodes, edges


@compiled
def _prune_by_growth(trees: _Trees, clusters: _Clusters) -> tuple[Array, Array]:
    """Return which nodes and edges stay: no cluster that slept when it was met, unless something behind it needs it."""
    nodes, edges = np.ones(len(trees.nodes), np.bool_), np.zeros(len(trees.edges), np.bool_)
    needed = np.zeros(len(clusters.awake), np.bool_)
    stack = np.empty(len(trees.nodes), np.int64)
    for i in range(len(trees.edges) - 1, -1, -1):
        near, far, sleeper = trees.ends[0, i], trees.ends[1, i], trees.slept[i]
        if not nodes[near] and not nodes[far]:
            continue
        if sleeper < 0 or needed[sleeper]:
            edges[i] = True
            for end in (near, far):
                cluster = trees.nodes[end]
                while not needed[cluster]:
                    needed[cluster] = True
                    if clusters.into[cluster]:
                        cluster = clusters.into[cluster] - 1
            continue
        nodes[far] = False
        stack[0], size = far, 1
        while size:
            size -= 1
            v = stack[size]
            for half in trees.row[trees.indptr[v] : trees.indptr[v + 1]]:
                other = (half - 1) // 2
                w = trees.ends[0, other] + trees.ends[1, other] - v
                if other != i and nodes[w]:
                    nodes[w] = False
                    stack[size] = w
                    size += 1
    return nodes, edges


@compiled_entry
def _run(
    heads: Array, tails: Array, costs: Array, prizes: Array, root: int, trees: int, strong: bool
) -> tuple[Array, Array]:
    """Return the nodes and edges of the trees."""
    clusters, met = _grow(heads, tails, costs, prizes, root, trees)
    grown = _trees(heads, tails, clusters, met)
    stay = _prune_strongly(costs, prizes, root, grown) if strong else _prune_by_growth(grown, clusters)
    return grown.nodes[stay[0]], grown.edges[stay[1]]
