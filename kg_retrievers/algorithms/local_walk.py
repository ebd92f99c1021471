"""Looks at a part of a large graph: breadth-first search and personalised PageRank in time that goes with the part.

Sources: R. Andersen, F. Chung, K. Lang: Local Graph Partitioning using PageRank Vectors. FOCS 2006, section 3 (push).
Entities that are met get positions in the order of their discovery; an open hash table finds them, so that no array has
the size of the graph.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.algorithms.pagerank import RESTART
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import half_of, triple_of
from kg_retrievers.graph.columns import Array

Int32s: TypeAlias = npt.NDArray[np.int32]

#: The tolerance of the first pushes, and the least one; each stage halves it.
FIRST_TOLERANCE, LEAST_TOLERANCE = 1e-4, 1e-9


class NearEntities(NamedTuple):
    """What a walk finds around the seeds.

    Attributes:
        ids: int32, shape (n): entities within the hops, the seeds first; all of them where no more than wanted.
        hops: int32, shape (n): how many triples lie between each and the nearest seed, as far as the walk has followed
            them: never too low.
        pagerank: float64, shape (n): 0 or more. All 0 where the entities are no more than wanted.
    """

    ids: Int32s
    hops: Int32s
    pagerank: npt.NDArray[np.float64]


class _Met(NamedTuple):
    """The entities that are met so far, by position; changed in place."""

    slots: Int32s  # a hash table: 1 + a position, 0 for none
    ids: Int32s
    hops: Int32s
    degrees: Array  # int64; -1 where nobody asked yet
    settled: Array  # float64: the mass that stays
    waiting: Array  # float64: the mass that is to be moved on
    queue: Int32s  # a ring of positions
    queued: Array  # bool
    size: Array  # int64, (1): how many there are


def walk_around(adjacency: Adjacency, seeds: Array, *, max_hops: int, most: int, max_entries: int) -> NearEntities:
    """Return the entities within `max_hops` of the seeds; where they are more than `most`, those that a walk reaches.

    The walk is that of `personalized_pagerank` with its `RESTART`, but goes on only from entities that are less than
    `max_hops` away. Mass is pushed on from the seeds, then from any entity where more than tolerance * degree waits;
    the tolerance is halved from `FIRST_TOLERANCE` on, as long as the entities that wait have no more entries than are
    left of `max_entries`. Without a limit of hops, 0 <= x(v) - p(v) <= tolerance * degree(v) for the last tolerance
    that was finished, where x is the personalised PageRank.

    At least `most` entities and one more are found where the graph has them.

    Cost: linear in the entries of the seeds, those between the first `most` entities, and 2 * `max_entries`, whatever
    the size of the graph.

    Args:
        adjacency: The graph, both directions.
        seeds: int, shape (s): ids of entities, each once.
        max_hops: How far to go, 0 or more.
        most: How many entities are wanted, s or more.
        max_entries: How many adjacency entries may be looked at before a stage, besides those of the seeds; the last
            stage may go on to twice as many.
    """
    size = len(adjacency.indptr) - 1
    own = int((adjacency.indptr[seeds + 1].astype(np.int64) - adjacency.indptr[seeds]).sum())
    room = min(size, len(seeds) + own + 2 * max_entries + most + 1)
    met = _Met(
        np.zeros(_table_size(room), np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(room, np.int32),
        np.empty(room, np.bool_),
        np.zeros(1, np.int64),
    )
    _walk(adjacency, seeds.astype(np.int64), min(max_hops, size), most, max_entries, RESTART, met)
    count = int(met.size[0])
    pagerank = met.settled[:count] + RESTART * met.waiting[:count]
    return NearEntities(met.ids[:count].copy(), met.hops[:count].copy(), pagerank)


def triples_between(adjacency: Adjacency, nodes: Array) -> Int32s:
    """Return the ids of all triples whose ends are both among some entities, ascending.

    Cost: linear in the triples of which one of them is the head.

    Args:
        adjacency: The graph, both directions.
        nodes: Ids of entities, int, shape (n), ascending, each once.
    """
    first = adjacency.first_triples
    most = int((first[nodes + 1].astype(np.int64) - first[nodes]).sum())
    slots, triples = np.zeros(_table_size(len(nodes)), np.int32), np.empty(most, np.int32)
    return triples[: _induce(adjacency, nodes.astype(np.int32), slots, triples)].copy()


def _table_size(keys: int) -> int:
    """Return a power of 2 that leaves half of the table or more empty."""
    return 1 << max(4, (2 * keys).bit_length())


@compiled
def _slot(slots: Int32s, ids: Int32s, entity: int) -> int:
    """Return where an entity is in a table, or where it would be."""
    last = len(slots) - 1
    slot = (np.int64(entity) * 0x9E3779B1 >> 12) & last  # Knuth's multiplicative hashing
    while slots[slot] != 0 and ids[slots[slot] - 1] != entity:
        slot = (slot + 1) & last
    return int(slot)


@compiled
def _meet(met: _Met, slot: int, entity: int, hops: int) -> int:
    """Add an entity; return its position."""
    position = int(met.size[0])
    met.size[0] += 1
    met.slots[slot] = position + 1
    met.ids[position], met.hops[position], met.degrees[position] = entity, hops, -1
    met.settled[position] = met.waiting[position] = 0.0
    met.queued[position] = False
    return position


@compiled
def _breadth_first(adjacency: Adjacency, seeds: Array, max_hops: int, most: int, met: _Met) -> None:
    """Meet the entities within `max_hops`, nearest first, until they are more than `most`."""
    for seed in seeds:
        _meet(met, _slot(met.slots, met.ids, seed), seed, 0)
    at = 0
    while at < met.size[0] and met.hops[at] < max_hops:
        u = met.ids[at]
        for i in range(adjacency.indptr[u], adjacency.indptr[u + 1]):
            v = adjacency.neighbors[i]
            slot = _slot(met.slots, met.ids, v)
            if met.slots[slot] == 0:
                _meet(met, slot, v, met.hops[at] + 1)
                if met.size[0] > most:
                    return
        at += 1


@compiled
def _degree(adjacency: Adjacency, met: _Met, position: int) -> int:
    if met.degrees[position] < 0:
        u = met.ids[position]
        met.degrees[position] = adjacency.indptr[u + 1] - adjacency.indptr[u]
    return int(met.degrees[position])


@compiled
def _is_due(adjacency: Adjacency, met: _Met, position: int, tolerance: float, max_hops: int) -> bool:
    """Tell whether so much waits that it is pushed on; most have too little for any degree."""
    mass = met.waiting[position]
    if mass <= tolerance or met.hops[position] >= max_hops:
        return False
    return bool(mass > tolerance * _degree(adjacency, met, position))


@compiled
def _push(
    adjacency: Adjacency,
    met: _Met,
    position: int,
    restart: float,
    tolerance: float,
    max_hops: int,
    first: int,
    size: int,
) -> int:
    """Move on what waits at an entity; queue those where it becomes too much, and return how many are queued."""
    u, hops, room = met.ids[position], met.hops[position] + 1, len(met.queue)
    met.settled[position] += restart * met.waiting[position]
    mass = (1 - restart) * met.waiting[position] / _degree(adjacency, met, position)
    met.waiting[position] = 0.0
    for i in range(adjacency.indptr[u], adjacency.indptr[u + 1]):
        v = adjacency.neighbors[i]
        slot = _slot(met.slots, met.ids, v)
        there = met.slots[slot] - 1 if met.slots[slot] else _meet(met, slot, v, hops)
        met.waiting[there] += mass
        met.hops[there] = min(met.hops[there], hops)
        if not met.queued[there] and _is_due(adjacency, met, there, tolerance, max_hops):
            met.queue[(first + size) % room] = there
            met.queued[there] = True
            size += 1
    return size


@compiled
def _enqueue(adjacency: Adjacency, met: _Met, tolerance: float, max_hops: int) -> tuple[int, int]:
    """Queue all entities where too much waits; return how many, and how many entries they have."""
    size, entries = 0, 0
    for position in range(met.size[0]):
        due = _is_due(adjacency, met, position, tolerance, max_hops)
        met.queued[position] = due
        if due:
            met.queue[size] = position
            size += 1
            entries += met.degrees[position]
    return size, entries


@compiled
def _spread(adjacency: Adjacency, seeds: int, max_hops: int, max_entries: int, restart: float, met: _Met) -> None:
    """Push mass on from the seeds, which are met first, with ever lower tolerance.

    A stage begins where no more entries wait than are left of `max_entries`; all ends where twice as many are pushed.
    """
    left = max_entries
    for position in range(seeds):
        met.waiting[position] = 1.0 / seeds
    for position in range(seeds):
        if _degree(adjacency, met, position) > 0:
            _push(adjacency, met, position, restart, np.inf, max_hops, 0, 0)
    tolerance = FIRST_TOLERANCE
    while tolerance > LEAST_TOLERANCE:
        size, entries = _enqueue(adjacency, met, tolerance, max_hops)
        if entries > left:
            return
        first = 0
        while size > 0:
            position = met.queue[first]
            left -= met.degrees[position]
            if left < -max_entries:
                return
            first = (first + 1) % len(met.queue)
            met.queued[position] = False
            size = _push(adjacency, met, position, restart, tolerance, max_hops, first, size - 1)
        tolerance /= 2


@compiled_entry
def _induce(adjacency: Adjacency, nodes: Int32s, slots: Int32s, triples: Int32s) -> int:
    """Fill in the `triples` between the nodes; return their number. `slots` is an empty table."""
    for position in range(len(nodes)):
        slots[_slot(slots, nodes, nodes[position])] = position + 1
    count = 0
    for u in nodes:
        begin, end = half_of(adjacency, u, False)  # so each triple once
        for i in range(begin, end):
            if slots[_slot(slots, nodes, adjacency.neighbors[i])] > 0:
                triples[count] = triple_of(adjacency, u, i)
                count += 1
    return count


@compiled_entry
def _walk(
    adjacency: Adjacency, seeds: Array, max_hops: int, most: int, max_entries: int, restart: float, met: _Met
) -> None:
    _breadth_first(adjacency, seeds, max_hops, most, met)
    if met.size[0] > most:
        _spread(adjacency, len(seeds), max_hops, max_entries, restart, met)
