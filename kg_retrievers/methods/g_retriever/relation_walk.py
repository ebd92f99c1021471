"""Weighs all paths from the seeds at once: how often a walk that prefers some relations takes each triple."""

from __future__ import annotations

import numpy as np

from kg_retrievers.graph.adjacency import label_count, label_of, relation_of
from kg_retrievers.graph.columns import Array


def walk_triples(
    heads: Array, relations: Array, tails: Array, seeds: Array, weights: Array, *, hops: int, entities: int
) -> Array:
    """Return how often a random walk takes each triple, in expectation.

    The walk starts at a seed, each as likely as the other. At an entity it picks one of the relations there, each
    direction apart, with a probability that goes with its weight, and then one of its triples, all as likely; so a hub
    shares among its triples what one relation gets. It never goes straight back by the triple that it came by: that
    share is lost.

    Cost: O(m log m + hops * m) for m triples.

    Args:
        heads: int, shape (m): entities in 0 ... entities - 1.
        relations: int, shape (m): positions in `weights`.
        tails: int, shape (m).
        seeds: int, shape (s): entities; repeated ones count once. From none, no triple is taken.
        weights: float, shape (relations): above 0.
        hops: How many triples the walk takes; 0 or more.
        entities: The number of entities.

    Returns:
        float64, shape (m): 0 or more; the sum is at most `hops`.

    Example:
        >>> line = np.array([0, 1]), np.array([0, 0]), np.array([1, 2])
        >>> walk_triples(*line, np.array([0]), np.ones(1), hops=2, entities=3).tolist()
        [1.0, 0.5]
    """
    m, seeds = len(heads), np.unique(seeds)
    # Every triple twice: [0, m) from head to tail, [m, 2m) back.
    here, there = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    labels = np.concatenate([label_of(relations, False), label_of(relations, True)]).astype(np.int64)
    width = label_count(len(weights))
    kinds, kind, count = np.unique(here.astype(np.int64) * width + labels, return_inverse=True, return_counts=True)
    weight = weights[relation_of(kinds % width)]
    total = np.bincount(kinds // width, weight, entities)
    chance = weight[kind] / (total[here] * count[kind])
    mass: Array = np.bincount(seeds, minlength=entities) / max(len(seeds), 1)
    taken, came = np.zeros(m), np.zeros(2 * m)
    for _ in range(hops):
        back = np.concatenate([came[m:], came[:m]])  # the share of those here that came by the same triple
        came = chance * np.maximum(mass[here] - back, 0)
        taken += came[:m] + came[m:]
        mass = np.bincount(there, came, entities)
    return taken
