"""Cut out the part of a graph around the seeds, by personalised PageRank if it is too large.

Source: C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning.
arXiv:2405.20139, appendix D: the 2,000 entities first by PageRank from the question's entities, after G. He
et al.: Improving Multi-hop Knowledge Base Question Answering by Learning Intermediate Supervision Signals. WSDM 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kg_retrievers.algorithms.compiled import compiled_entry
from kg_retrievers.algorithms.local_walk import Int32s, triples_between, walk_around
from kg_retrievers.algorithms.pagerank import Floats, Ids, Seeds, distinct_seeds, personalized_pagerank
from kg_retrievers.graph import Adjacency

#: Up to this number of adjacency entries, a neighborhood is cut by the PageRank of the whole graph, and beyond by the
#: PageRank of a walk around the seeds. The first takes 8 ms of one core on MetaQA (0.27 million entries) and 54 ms on a
#: synthetic graph of 2 million. The second takes some ms on any larger one. On one of 8.6 million entries, the 2,000
#: entities within 3 hops that the walk keeps hold 99.4 % or more of the PageRank of the true first 2,000 from each of
#: six random seeds. From the five hubs tried, they hold 95 % (degree 46,379, with most neighbors all but equal) to
#: 99.6 % (713).
MAX_POWER_ENTRIES = 1_000_000

#: How exact the PageRank of the whole graph is that cuts a neighborhood. With 5e-3, 2,000 nodes within 3 hops of 30
#: films of MetaQA are 99.99 % the same as with 1e-12, for half the CPU time of 1e-7 (8 and 16 ms in all). 1e-3 takes 9
#: ms for 100 %, and 1e-2 takes 7.5 ms for 99.97 %.
CUT_TOLERANCE = 5e-3

#: How many adjacency entries a walk around the seeds looks at in addition to theirs, at least, and for each node that
#: is kept. With three times as many, the entities kept around the greatest hub above hold 98 % instead of 95 %, for
#: four times the CPU time.
MIN_ENTRIES, ENTRIES_A_NODE = 100_000, 50


class Neighborhood(NamedTuple):
    """An induced subgraph around the seeds.

    Attributes:
        nodes: int32, shape (m): ids of entities, ascending.
        triples: int32, shape (e): ids of all triples with both ends among the nodes, ascending, each once, with
            self-loops and parallel triples.
        hops: int32, shape (m): how many triples lie between each node and the nearest seed, in the whole graph and in
            either direction. 0 for a seed. If a large graph is cut, as far as the walk followed them: never too few.
        truncated: Whether `max_nodes` left out entities within `max_hops`.
    """

    nodes: Int32s
    triples: Int32s
    hops: Int32s
    truncated: bool


def neighborhood(
    adjacency: Adjacency, seeds: Seeds, *, max_hops: int | None = None, max_nodes: int | None = None
) -> Neighborhood:
    """Return at most `max_nodes` entities within `max_hops` of a seed, and all triples between them.

    If there are more, the seeds stay, and so do the others with the highest personalised PageRank from the seeds. At
    equal values the lower id stays. On graphs of up to `MAX_POWER_ENTRIES` adjacency entries, PageRank is computed on
    the whole graph, so that `max_hops` does not change the order. On larger ones `walk_around` computes it, within the
    limits of entries of this module. A node may stay while the nodes that join it to the seeds do not (1 % of 2,000
    nodes within 3 hops on MetaQA, 3 % of 500).

    Cost: linear in the adjacency entries of the entities within `max_hops`, and the PageRank if some are left out. With
    `max_nodes` on a large graph, it is linear in the entries of the seeds and of the walk, and the triples whose head
    is kept.

    Args:
        adjacency: The graph, both directions.
        seeds: Ids of entities, at least one. Repeated ones count once.
        max_hops: How far from the nearest seed, 0 or more, whichever way triples point. None for any distance.
            Entities that cannot be reached from a seed are never in.
        max_nodes: The most nodes, 1 or more. None for no limit. Seeds beyond it stay all the same.

    Raises:
        InvalidArgumentError: If there are no seeds, or one is no id of an entity.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> around = neighborhood(graph.adjacency, [graph.entities.find("Her")], max_hops=1)
        >>> [graph.entities[node] for node in around.nodes], [graph.triple(triple) for triple in around.triples]
        (['Her', 'Jonze'], [Triple(head='Her', relation='directed_by', tail='Jonze')])
    """
    starts = distinct_seeds(adjacency, seeds)
    size = len(adjacency.indptr) - 1
    pagerank: Floats | None = None
    hops = size if max_hops is None else min(max_hops, size)
    most = size if max_nodes is None else max(max_nodes, len(starts))
    if most == size or len(adjacency.neighbors) <= MAX_POWER_ENTRIES:
        steps, reached = np.zeros(size, np.int32), np.empty(size, np.int32)
        nodes = reached[: _reach(adjacency, starts, hops, steps, reached)]
        distances = steps[nodes] - 1
    else:
        entries = max(MIN_ENTRIES, ENTRIES_A_NODE * most)
        nodes, distances, pagerank = walk_around(adjacency, starts, max_hops=hops, most=most, max_entries=entries)
    truncated = len(nodes) > most
    if truncated:
        if pagerank is None:
            pagerank = personalized_pagerank(adjacency, starts, tolerance=CUT_TOLERANCE)[nodes]
        is_kept = distances == 0
        is_kept[~is_kept] = _highest(pagerank[~is_kept], most - len(starts), nodes[~is_kept])
        nodes, distances = nodes[is_kept], distances[is_kept]
    order = np.argsort(nodes)
    nodes = nodes[order]
    return Neighborhood(nodes, triples_between(adjacency, nodes), distances[order], truncated)


def hops_from(adjacency: Adjacency, seeds: Seeds, max_hops: int) -> Int32s:
    """Return how many triples lie between each entity and the nearest seed, whichever way they point.

    Cost: linear in the adjacency entries of the entities within `max_hops`, and a pass over the entities.

    Args:
        adjacency: The graph, both directions.
        seeds: Ids of entities, at least one.
        max_hops: How far to look, 0 or more.

    Returns:
        int32, shape (entities): 0 for a seed, -1 for entities further away than `max_hops`.

    Raises:
        InvalidArgumentError: If there are no seeds, or one is no id of an entity.
    """
    starts, size = distinct_seeds(adjacency, seeds), len(adjacency.indptr) - 1
    steps = np.zeros(size, np.int32)
    _reach(adjacency, starts, min(max_hops, size), steps, np.empty(size, np.int32))
    return steps - 1


def _highest(values: Floats, count: int, ids: Int32s) -> npt.NDArray[np.bool_]:
    """Mark the `count` highest, 0 or more but not all of them. Of equal ones, mark the lowest ids."""
    dropped = -np.partition(-values, count)[count]  # partitions of many equal highest ones take ten times as long
    highest: npt.NDArray[np.bool_] = values > dropped
    equal, lacking = np.flatnonzero(values == dropped), count - np.count_nonzero(highest)
    highest[equal[np.argpartition(ids[equal], lacking)[:lacking]]] = True
    return highest


@compiled_entry
def _reach(adjacency: Adjacency, seeds: Ids, max_hops: int, steps: Int32s, reached: Int32s) -> int:
    """Fill in `steps` with 1 + hops if it is 0, and `reached`, nearest first. Return the number of entities reached."""
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
