"""Passes messages along the triples around some entities; each depends on its relation and its sender's probability.

The sum over the triples of a relation adds single numbers, so that the work with vectors goes with the distinct
relations at an entity, and not with its triples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.compiled import compiled_entry
from kg_retrievers.algorithms.local_walk import triples_between
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import Edges
from kg_retrievers.graph.columns import Array


class LocalAdjacency(NamedTuple):
    """The adjacency entries between some entities of a graph, whose ids here are their positions; see `Adjacency`.

    Attributes:
        indptr: int64, shape (n + 1): row v is `indptr[v]:indptr[v + 1]`.
        neighbors: int32, shape (entries): positions of the entities at the other end.
        labels: int32, shape (entries): the labels of the graph's adjacency; equal ones stand together in a row.
    """

    indptr: Array
    neighbors: Array
    labels: Array


def local_adjacency(adjacency: Adjacency, nodes: Array) -> LocalAdjacency:
    """Return the adjacency entries between some entities.

    Cost: linear in the triples of which one of the entities is the head, and sorts those between them.

    Args:
        adjacency: The graph, both directions.
        nodes: Ids of entities, int, shape (n), each once.
    """
    order = np.argsort(nodes)
    ascending = nodes[order]
    edges = Edges(adjacency)[triples_between(adjacency, ascending)]
    for column in (0, 2):
        edges[:, column] = order[np.searchsorted(ascending, edges[:, column])]
    local = Adjacency.of_edges(edges, len(nodes))
    return LocalAdjacency(local.indptr.astype(np.int64), local.neighbors, local.labels.astype(np.int32))


@compiled_entry
def pass_messages(adjacency: LocalAdjacency, weights: Array, messages: Array, received: Array) -> None:
    """Add to each entity the messages of its neighbors: `received[v] += sum(weights[u] * messages[label])`.

    Cost: an addition an entry, and `width` of them a distinct label at an entity whose neighbors have weights.

    Args:
        adjacency: The entries; `labels` are rows of `messages`.
        weights: float32, shape (n): that of each sender.
        messages: float32, shape (labels, width).
        received: float32, shape (n, width); added to.
    """
    indptr, neighbors, labels = adjacency.indptr, adjacency.neighbors, adjacency.labels
    width = messages.shape[1]
    for v in range(len(indptr) - 1):
        i, end = indptr[v], indptr[v + 1]
        while i < end:
            label = labels[i]
            total = np.float64(weights[neighbors[i]])  # twice as precise, so that the order of triples hardly matters
            i += 1
            while i < end and labels[i] == label:
                total += weights[neighbors[i]]
                i += 1
            weight = np.float32(total)
            if weight != 0:
                for j in range(width):
                    received[v, j] += weight * messages[label, j]


@compiled_entry
def add_products(states: Array, weights: Array, sums: Array) -> None:
    """Add `states @ weights` to `sums`; equal rows get equal results, which BLAS rounds by their positions.

    Args:
        states: float32, shape (n, width).
        weights: float32, shape (width, m).
        sums: float32, shape (n, m); added to.
    """
    for v in range(states.shape[0]):
        for k in range(states.shape[1]):
            state = states[v, k]
            if state != 0:
                for j in range(weights.shape[1]):
                    sums[v, j] += state * weights[k, j]
