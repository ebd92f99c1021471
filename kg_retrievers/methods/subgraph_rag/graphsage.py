"""Passes what leads to an entity on to it, once: the GraphSAGE layer that SubgraphRAG is compared with, without torch.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, appendix B.1, equations 3 to 5; after W. Hamilton,
Z. Ying, J. Leskovec: Inductive Representation Learning on Large Graphs. NeurIPS 2017, arXiv:1706.02216.
"""

from __future__ import annotations

import numpy as np

from kg_retrievers.graph.columns import Array

#: How many numbers of triples are gathered at once.
GATHERED = 1 << 20


def mean_of_incoming(heads: Array, relations: Array, tails: Array, of_entities: Array, of_relations: Array) -> Array:
    """Return the mean of `of_entities[u] + of_relations[r]` over all triples (u, r, v) that lead to each entity v.

    The layer's first product is linear, so the mean of products is the product of the mean (equation 3).

    Args:
        heads: int, shape (m): rows of `of_entities`, as are the tails.
        relations: int, shape (m): rows of `of_relations`.
        tails: int, shape (m).
        of_entities: float32, shape (n, width).
        of_relations: float32, shape (relations, width).

    Returns:
        float32, shape (n, width): 0 for an entity that no triple leads to. Summed up with twice the precision, so that
        the order of triples hardly matters.

    Example:
        >>> entities, relations = np.array([[1.0], [3.0], [0.0]]), np.array([[10.0]])
        >>> films, directors = np.array([0, 1]), np.array([2, 2])
        >>> mean_of_incoming(films, np.array([0, 0]), directors, entities, relations).tolist()
        [[0.0], [0.0], [12.0]]
    """
    width = of_entities.shape[1]
    means = np.zeros((len(of_entities), width), np.float32)
    if not len(tails):
        return means
    order = np.argsort(tails, kind="stable")
    reached, starts, counts = np.unique(tails[order], return_index=True, return_counts=True)
    heads, relations = heads[order], relations[order]
    step = max(1, GATHERED // len(tails))
    for first in range(0, width, step):
        columns = slice(first, first + step)
        gathered = of_entities[heads, columns] + of_relations[relations, columns]
        means[reached, columns] = np.add.reduceat(gathered, starts, axis=0, dtype=np.float64) / counts[:, None]
    return means


def multiply_distinct(rows: Array, weights: Array) -> Array:
    """Return `rows @ weights`, with equal rows multiplied once: BLAS would round them by their positions."""
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    product: Array = (distinct @ weights)[places.reshape(-1)]
    return product
