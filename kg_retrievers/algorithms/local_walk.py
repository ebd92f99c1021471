"""Search a part of a large graph, in time that depends on the part.

It runs a breadth-first search and personalised PageRank. Source: R. Andersen, F. Chung, K. Lang: Local Graph
Partitioning using PageRank Vectors. FOCS 2006, section 3 (push). Entities that are met get positions in the order of
their discovery. One array has the size of the graph and holds these positions. The system gives memory only for the
pages that are written to.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_retrievers.algorithms.compiled import Graph, compiled, compiled_entry, graph_pointers, pointers, wide
from kg_retrievers.algorithms.pagerank import RESTART
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import half_of
from kg_retrievers.graph.columns import Array, entries_between

Int32s: TypeAlias = npt.NDArray[np.int32]

#: The tolerance of the first pushes, and the least one. Each stage halves it.
FIRST_TOLERANCE, LEAST_TOLERANCE = 1e-4, 1e-9


class NearEntities(NamedTuple):
    """The entities that a walk finds around the seeds.

    Attributes:
        ids: int32, shape (n): entities within the hops, the seeds first. All of them if there are no more than wanted.
        hops: int32, shape (n): how many triples lie between each and the nearest seed, as far as the walk has followed
            them: never too low.
        pagerank: float64, shape (n): 0 or more. All 0 if there are no more entities than wanted.
    """

    ids: Int32s
    hops: Int32s
    pagerank: npt.NDArray[np.float64]


class _Met(NamedTuple):
    """The entities that are met so far, by position: arrays, or pointers to them, that are changed in place."""

    positions: Any  # 1 + the position of each entity of the graph, 0 for none
    ids: Any
    hops: Any
    degrees: Any  # -1 where nobody asked yet
    queue: Any  # a ring of positions
    queued: Any
    settled: Any  # the mass that stays
    waiting: Any  # the mass that is to be moved on
    size: Any  # how many there are, at position 0
    room: int  # the most there may be


def walk_around(adjacency: Adjacency, seeds: Array, *, max_hops: int, most: int, max_entries: int) -> NearEntities:
    """Return the entities within `max_hops` of the seeds, or the ones that a walk reaches.

    It walks if there are more than `most`. The walk is the one of `personalized_pagerank` with its `RESTART`, but goes
    on only from entities that are less than `max_hops` away. Mass is pushed on from the seeds, then from any entity at
    which more than tolerance * degree waits. The tolerance is halved from `FIRST_TOLERANCE` on, as long as the entities
    that wait have no more entries than are left of `max_entries`. Without a limit of hops, 0 <= x(v) - p(v) <=
    tolerance * degree(v) for the last tolerance that was finished, with x as the personalised PageRank.

    At least `most` entities and one more are found if the graph has them.

    Cost: linear in the entries of the seeds, the entries between the first `most` entities, and 2 * `max_entries`,
    whatever the size of the graph.

    Args:
        adjacency: The graph, both directions.
        seeds: int, shape (s): ids of entities, each once.
        max_hops: How far to go, 0 or more.
        most: How many entities are wanted, s or more.
        max_entries: How many adjacency entries may be looked at before a stage, in addition to the seeds' entries. The
            last stage may go on to twice as many.
    """
    size = len(adjacency.indptr) - 1
    own = int((adjacency.indptr[seeds + 1].astype(np.int64) - adjacency.indptr[seeds]).sum())
    room = min(size, len(seeds) + own + 2 * max_entries + most + 1)
    ids, hops, degrees, queue, queued = np.empty((5, room), np.int32)
    positions = np.frombuffer(mmap(-1, 4 * size), np.int32)  # only the pages that are written to take memory
    settled, waiting = np.empty(room), np.empty(room)
    met = _Met(positions, ids, hops, degrees, queue, queued, settled, waiting, np.zeros(1, np.int64), room)
    _walk(adjacency, seeds.astype(np.int64), min(max_hops, size), most, max_entries, RESTART, met)
    count = int(met.size[0])
    pagerank = settled[:count] + RESTART * waiting[:count]
    return NearEntities(ids[:count].copy(), hops[:count].copy(), pagerank)


def triples_between(adjacency: Adjacency, nodes: Array) -> Int32s:
    """Return the ids of all triples whose ends are both among some entities, ascending.

    Cost: linear in the triples of which one of them is the head.

    Args:
        adjacency: The graph, both directions.
        nodes: Ids of entities, int, shape (n), ascending, each once.
    """
    inside = np.zeros(len(adjacency.indptr) - 1, np.bool_)
    inside[nodes] = True
    firsts, lasts = half_of(adjacency, nodes, False)  # so each triple once
    entries, owners = entries_between(firsts, lasts)
    is_between = inside[adjacency.neighbors[entries]]
    ids: Int32s = adjacency.triples_of(entries[is_between], nodes[owners[is_between]])
    return ids


@compiled
def _meet(met: _Met, entity: int, hops: int) -> int:
    """Add an entity. Return its position."""
    position: int = met.size[0]
    met.size[0] += 1
    met.positions[entity] = position + 1
    met.ids[position], met.hops[position], met.degrees[position], met.queued[position] = entity, hops, -1, 0
    met.settled[position] = met.waiting[position] = 0.0
    return position


@compiled
def _breadth_first(graph: Graph, seeds: Array, max_hops: int, most: int, met: _Met) -> None:
    """Meet the entities within `max_hops`, nearest first, until they are more than `most`."""
    at = wide(0)
    for seed in seeds:
        _meet(met, seed, at)
    while at < met.size[0] and met.hops[at] < max_hops:
        u = met.ids[at]
        for i in range(graph.indptr[u], graph.indptr[u + 1]):
            v = wide(graph.neighbors[i])
            if met.positions[v] == 0:
                _meet(met, v, met.hops[at] + 1)
                if met.size[0] > most:
                    return
        at += 1


@compiled
def _is_due(graph: Graph, met: _Met, position: int, tolerance: float, max_hops: int) -> bool:
    """Return whether so much waits that it is pushed on. Most entities have too little for any degree."""
    mass = met.waiting[position]
    if mass <= tolerance or met.hops[position] >= max_hops:
        return False
    if met.degrees[position] < 0:
        u = met.ids[position]
        met.degrees[position] = graph.indptr[u + 1] - graph.indptr[u]
    is_due: bool = mass > tolerance * met.degrees[position]
    return is_due


@compiled
def _push(
    graph: Graph, met: _Met, position: int, restart: float, tolerance: float, max_hops: int, first: int, size: int
) -> int:
    """Push on the mass that waits at an entity. Queue entities that then have too much. Return how many are queued."""
    u, hops = met.ids[position], wide(met.hops[position]) + 1
    begin, end = graph.indptr[u], graph.indptr[u + 1]
    met.settled[position] += restart * met.waiting[position]
    mass = (1 - restart) * met.waiting[position] / (end - begin)
    met.waiting[position] = 0.0
    for i in range(begin, end):
        v = wide(graph.neighbors[i])
        there = met.positions[v] - 1 if met.positions[v] else _meet(met, v, hops)
        met.waiting[there] += mass
        if hops < met.hops[there]:
            met.hops[there] = hops
        if not met.queued[there] and _is_due(graph, met, there, tolerance, max_hops):
            met.queue[(first + size) % met.room] = there
            met.queued[there] = 1
            size += 1
    return size


@compiled
def _enqueue(graph: Graph, met: _Met, tolerance: float, max_hops: int) -> tuple[int, int]:
    """Queue all entities with too much waiting. Return how many, and how many entries they have."""
    size, entries = 0, 0
    for position in range(met.size[0]):
        due = _is_due(graph, met, position, tolerance, max_hops)
        met.queued[position] = due
        if due:
            met.queue[size] = position
            size += 1
            entries += met.degrees[position]
    return size, entries


@compiled
def _spread(graph: Graph, seeds: int, max_hops: int, max_entries: int, restart: float, met: _Met) -> None:
    """Push mass on from the seeds, which are met first, with ever lower tolerance.

    A stage begins if no more entries wait than are left of `max_entries`. All ends if twice as many are pushed.
    """
    left, first, tolerance = max_entries, wide(0), np.inf
    for position in range(seeds):
        met.waiting[position] = 1.0 / seeds
    for position in range(seeds):
        if graph.indptr[met.ids[position] + 1] > graph.indptr[met.ids[position]]:
            _push(graph, met, position, restart, tolerance, max_hops, first, first)
    tolerance = FIRST_TOLERANCE
    while tolerance > LEAST_TOLERANCE:
        size, entries = _enqueue(graph, met, tolerance, max_hops)
        if entries > left:
            return
        first = wide(0)
        while size > 0:
            position = wide(met.queue[first])
            left -= met.degrees[position]
            if left < -max_entries:
                return
            first = (first + 1) % met.room
            met.queued[position] = 0
            size = _push(graph, met, position, restart, tolerance, max_hops, first, size - 1)
        tolerance /= 2


@compiled_entry
def _walk(
    adjacency: Adjacency, seeds: Array, max_hops: int, most: int, max_entries: int, restart: float, arrays: _Met
) -> None:
    """Fill in the entities that are met and the masses. `positions` holds zeros."""
    graph = graph_pointers(adjacency)
    met: _Met = pointers(arrays)
    _breadth_first(graph, seeds, max_hops, most, met)
    if met.size[0] > most:
        _spread(graph, len(seeds), max_hops, max_entries, restart, met)
