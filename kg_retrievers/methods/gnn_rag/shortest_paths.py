"""Find all shortest paths from an entity to others, and back to itself: a bounded number of paths to each.

Source: C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning.
arXiv:2405.20139, section 4.3: the shortest paths from a question's entities to the candidates for an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.neighborhood import hops_from
from kg_retrievers.algorithms.pagerank import Seeds
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array


class PathIds(NamedTuple):
    """A path of n triples, each followed from its head or from its tail.

    Attributes:
        entities: The ids of the n + 1 entities on it, from the seed to the target. All are different, unless the seed
            is the target.
        triples: The ids of the n triples between them.
    """

    entities: tuple[int, ...]
    triples: tuple[int, ...]


class PathsTo(NamedTuple):
    """The shortest paths from the seed to one target.

    Attributes:
        target: The id of the entity they lead to.
        paths: Ascending by the ids of their triples, compared from the target back to the seed. Empty if the target is
            further away than `max_hops`, or out of reach.
        truncated: Whether there are more than `max_paths`.
    """

    target: int
    paths: list[PathIds]
    truncated: bool


def shortest_paths(adjacency: Adjacency, seed: int, targets: Seeds, *, max_hops: int, max_paths: int) -> list[PathsTo]:
    """Return the shortest paths from the seed to each target, the first `max_paths` of each.

    Triples are followed either way. Parallel triples make different paths. A self-loop is on none to another entity.

    Paths from the seed to itself, of which the paper has none, are its self-loops. Without a self-loop they lead to a
    neighbor and back by another triple, or otherwise to a neighbor and back by the same triple.

    Cost: the adjacency entries of the entities up to twice as far as the farthest target, within `max_hops`. For each
    target, at most `max_paths` + 1 paths with the adjacency entries of the entities on them. Each row is read once per
    call, and the seed's row once per path to itself.

    Args:
        adjacency: The graph, both directions.
        seed: The id of the entity where all paths begin.
        targets: Ids of entities, any number of them. Repeated ones are answered again.
        max_hops: The most triples of a path, 0 or more.
        max_paths: The most paths to one target, 1 or more.

    Returns:
        One for each target, in the order of `targets`. None depends on the others.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> her, jackass = graph.entities.find("Her"), graph.entities.find("Jackass")
        >>> [found] = shortest_paths(graph.adjacency, her, [jackass], max_hops=3, max_paths=10)
        >>> [[graph.entities[entity] for entity in path.entities] for path in found.paths]
        [['Her', 'Jonze', 'Jackass']]
        >>> [graph.triple(triple).head for triple in found.paths[0].triples]
        ['Her', 'Jackass']
    """
    hops = _hops_to(adjacency, seed, np.asarray(targets, np.int64), max_hops)
    rows: dict[int, list[tuple[int, int]]] = {}
    found = []
    for target in np.asarray(targets).tolist():
        if target == seed:
            every = _closed_paths(seed, adjacency, max_hops)
        else:
            every = _paths_to(target, adjacency, hops, max_paths + 1, rows)
        paths = list(islice(every, max_paths + 1))
        found.append(PathsTo(target, paths[:max_paths], len(paths) > max_paths))
    return found


def _hops_to(adjacency: Adjacency, seed: int, targets: Array, max_hops: int) -> Array:
    """Return the hops from the seed to the targets and to all nearer entities, or -1 if one is not reached."""
    far = 1
    while True:
        hops = hops_from(adjacency, [seed], min(far, max_hops))
        if far >= max_hops or (hops[targets] >= 0).all():
            return hops
        far *= 2


def _paths_to(
    target: int, adjacency: Adjacency, hops: Array, most: int, rows: dict[int, list[tuple[int, int]]]
) -> Iterator[PathIds]:
    """Yield the paths to the target, at least the first `most`. `rows` keeps the results of `_nearer`."""
    unfinished = [PathIds((target,), ())] if hops[target] > 0 else []
    while unfinished:
        entities, triples = unfinished.pop()
        first = entities[0]
        if hops[first] == 0:
            yield PathIds(entities, triples)
            continue
        if first not in rows:
            rows[first] = _nearer(first, adjacency, hops, most)
        unfinished += [PathIds((entity, *entities), (triple, *triples)) for entity, triple in rows[first]]


def _closed_paths(seed: int, adjacency: Adjacency, max_hops: int) -> Iterator[PathIds]:
    """Yield the paths from the seed to itself."""
    row_triples = adjacency.row_triples(seed)
    order = row_triples.argsort(kind="stable")
    neighbors, triples = adjacency.neighbors[adjacency.row(seed)][order], row_triples[order]
    loops = np.unique(triples[neighbors == seed]).tolist()  # each is in the row twice
    if loops and max_hops > 0:
        yield from (PathIds((seed, seed), (loop,)) for loop in loops)
    elif max_hops > 1:
        _, group, sizes = np.unique(neighbors, return_inverse=True, return_counts=True)
        parallel = sizes[group] > 1
        by_another = bool(parallel.any())
        ways = parallel if by_another else ~parallel
        for there, back in zip(neighbors[ways].tolist(), triples[ways].tolist(), strict=True):
            for out in triples[neighbors == there].tolist():
                if (out != back) is by_another:
                    yield PathIds((seed, there, seed), (out, back))


def _nearer(entity: int, adjacency: Adjacency, hops: Array, most: int) -> list[tuple[int, int]]:
    """Return the neighbors one hop nearer to the seed, each with a triple that joins it, falling by triple.

    Each is the last step of one path or more, so that the `most` lowest triples suffice for as many paths.
    """
    row = adjacency.row(entity)
    nearer = row.start + (hops[adjacency.neighbors[row]] == hops[entity] - 1).nonzero()[0]
    triples = adjacency.triples_of(nearer, entity)
    order = triples.argsort()[:most][::-1]
    return list(zip(adjacency.neighbors[nearer[order]].tolist(), triples[order].tolist(), strict=True))
