"""Cuts out the part of a graph around the seeds, by personalised PageRank where it is too large.

Source: C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning.
arXiv:2405.20139, appendix D: the 2,000 entities first by PageRank from the question's entities, after G. He
et al.: Improving Multi-hop Knowledge Base Question Answering by Learning Intermediate Supervision Signals. WSDM 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_retrievers.algorithms.compiled import compiled, compiled_entry, source_checksum
from kg_retrievers.algorithms.pagerank import (
    Floats,
    Ids,
    Seeds,
    distinct_seeds,
    personalized_pagerank,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import is_backward

#: Up to so many adjacency entries the PageRank is computed by "power": it is the faster method there as a rule, and
#: exact. Measured at the default arguments from 30 seeds each, CPU ms of one core for power and for push, and the share
#: of the true first 2,000 entities among those of push: MetaQA (0.27 million entries) 15, 34, 99.4 %; FB15k-237 (0.54)
#: 16, 36, 98.7 %. On larger graphs only the plain power iteration was measured, which takes 3 to 4 times as long:
#: random graphs with hubs (2.0) 250, 220, 96 %; (4.0) 510, 150, 92 %; (8.6) 3,200, 140, 90 %.
MAX_POWER_ENTRIES = 2_000_000

#: How exact the PageRank is that cuts a neighborhood, by the way it is computed. With 5e-3, 2,000 nodes within 3 hops
#: of 30 films of MetaQA are 99.99 % of those with 1e-12, for half the CPU time of 1e-7 (8 and 16 ms in all; 1e-3: 9 ms,
#: 100 %; 1e-2: 7.5 ms, 99.97 %); the error of a push goes with the degree.
CUT_TOLERANCE: dict[Literal["power", "push"], float] = {"power": 5e-3, "push": 1e-7}

Int32s: TypeAlias = npt.NDArray[np.int32]


class Neighborhood(NamedTuple):
    """An induced subgraph around the seeds.

    Attributes:
        nodes: int32, shape (m): ids of entities, ascending.
        triples: int32, shape (e): ids of all triples with both ends among the nodes, ascending, each once;
            self-loops and parallel triples included.
        hops: int32, shape (m): how many triples lie between each node and the nearest seed, in the whole graph and in
            either direction; 0 for a seed.
        truncated: Whether `max_nodes` left out entities within `max_hops`.
    """

    nodes: Int32s
    triples: Int32s
    hops: Int32s
    truncated: bool


def neighborhood(
    adjacency: Adjacency, seeds: Seeds, *, max_hops: int | None = None, max_nodes: int | None = None
) -> Neighborhood:
    """Return the entities within `max_hops` of a seed, at most `max_nodes` of them, and all triples between them.

    Where there are more, the seeds stay and those of the others with the highest personalised PageRank from the
    seeds, computed by `personalized_pagerank` on the whole graph, so that `max_hops` does
    not change the order; at equal values the lower id stays. A node may stay while those that join it to the seeds
    do not (1 % of 2,000 nodes within 3 hops on MetaQA, 3 % of 500).

    Cost: linear in the adjacency entries of the entities within `max_hops`, and the PageRank where some are left out.

    Args:
        adjacency: The graph, both directions.
        seeds: Ids of entities, at least one; repeated ones count once.
        max_hops: How far from the nearest seed, 0 or more, whichever way triples point; None for any distance.
            Entities that cannot be reached from a seed are never in.
        max_nodes: The most nodes, 1 or more; None for no limit. Seeds beyond it stay all the same.

    Raises:
        InvalidArgumentError: If an argument is out of range.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> around = neighborhood(graph.adjacency, [graph.entities.find("Her")], max_hops=1)
        >>> [graph.entities[node] for node in around.nodes], [graph.triple(triple) for triple in around.triples]
        (['Her', 'Jonze'], [Triple(head='Her', relation='directed_by', tail='Jonze')])
    """
    for name, value, least in (("max_hops", max_hops, 0), ("max_nodes", max_nodes, 1)):
        if value is not None and value < least:
            raise InvalidArgumentError(f"neighborhood: {name} must be {least} or more, or None, but got {value}.")
    starts = distinct_seeds("neighborhood", adjacency, seeds)
    indptr, size = adjacency.indptr, len(adjacency.indptr) - 1
    steps, reached = np.zeros(size, np.int32), np.empty(size, np.int32)
    count = _reach(adjacency, starts, size if max_hops is None else min(max_hops, size), steps, reached)
    nodes = np.sort(reached[:count])
    most = count if max_nodes is None else max(max_nodes, len(starts))
    if count > most:
        others = nodes[steps[nodes] > 1]
        way: Literal["power", "push"] = "power" if len(adjacency.neighbors) <= MAX_POWER_ENTRIES else "push"
        pagerank = personalized_pagerank(adjacency, starts, tolerance=CUT_TOLERANCE[way], method=way)
        steps[others[~_highest(pagerank[others], most - len(starts))]] = 0
        nodes = nodes[steps[nodes] > 0]
    triples = np.empty(int((indptr[nodes + 1] - indptr[nodes]).sum()), np.int32)
    triples = np.sort(triples[: _induce(adjacency, nodes, steps, triples)])
    return Neighborhood(nodes, triples, steps[nodes] - 1, count > most)


def hops_from(adjacency: Adjacency, seeds: Seeds, max_hops: int) -> Int32s:
    """Return how many triples lie between each entity and the nearest seed, whichever way they point.

    Cost: linear in the adjacency entries of the entities within `max_hops`, and a pass over the entities.

    Args:
        adjacency: The graph, both directions.
        seeds: Ids of entities, at least one.
        max_hops: How far to look, 0 or more.

    Returns:
        int32, shape (entities): 0 for a seed, -1 for what is further away than `max_hops`.

    Raises:
        InvalidArgumentError: If an argument is out of range.
    """
    if max_hops < 0:
        raise InvalidArgumentError(f"hops_from: max_hops must be 0 or more, but got {max_hops}.")
    starts, size = distinct_seeds("hops_from", adjacency, seeds), len(adjacency.indptr) - 1
    steps = np.zeros(size, np.int32)
    _reach(adjacency, starts, min(max_hops, size), steps, np.empty(size, np.int32))
    return steps - 1


def _highest(values: Floats, count: int) -> npt.NDArray[np.bool_]:
    """Mark the `count` highest, 0 or more but not all of them; the first of equal ones."""
    last = len(values) - 1 - count
    dropped = np.partition(values, last)[last]  # the highest that is not among them
    highest: npt.NDArray[np.bool_] = values > dropped
    highest[np.flatnonzero(values == dropped)[: count - np.count_nonzero(highest)]] = True
    return highest


@compiled
def _breadth_first(adjacency: Adjacency, seeds: Ids, max_hops: int, steps: Int32s, reached: Int32s) -> int:
    """Fill in `steps`, 1 + hops where it is 0, and the entities `reached`, nearest first; return their number."""
    indptr, neighbors = adjacency.indptr, adjacency.neighbors
    first, count = 0, len(seeds)
    for i in range(count):
        reached[i] = seeds[i]
        steps[seeds[i]] = 1
    while first < count and steps[reached[first]] <= max_hops:
        u = reached[first]
        first += 1
        for i in range(indptr[u], indptr[u + 1]):
            v = neighbors[i]
            if steps[v] == 0:
                steps[v] = steps[u] + 1
                reached[count] = v
                count += 1
    return count


@compiled
def _between(adjacency: Adjacency, nodes: Int32s, steps: Int32s, triples: Int32s) -> int:
    """Fill in the `triples` between the nodes, which have `steps` above 0; return their number."""
    indptr, neighbors, labels = adjacency.indptr, adjacency.neighbors, adjacency.labels
    count = 0
    for u in nodes:
        for i in range(indptr[u], indptr[u + 1]):
            if not is_backward(labels[i]) and steps[neighbors[i]] > 0:  # so each triple once
                triples[count] = adjacency.triples[i]
                count += 1
    return count


def _entries(
    sources: int,
) -> tuple[Callable[[Adjacency, Ids, int, Int32s, Int32s], int], Callable[[Adjacency, Int32s, Int32s, Int32s], int]]:
    """Return `_breadth_first` and `_between` for Python to call; `sources` as `compiled_entry` asks for."""

    def reach(adjacency: Adjacency, seeds: Ids, max_hops: int, steps: Int32s, reached: Int32s) -> int:
        return _breadth_first(adjacency, seeds, max_hops, steps, reached) if sources > 0 else 0

    def induce(adjacency: Adjacency, nodes: Int32s, steps: Int32s, triples: Int32s) -> int:
        return _between(adjacency, nodes, steps, triples) if sources > 0 else 0

    return compiled_entry(reach), compiled_entry(induce)


_reach, _induce = _entries(source_checksum(Path(__file__)))
