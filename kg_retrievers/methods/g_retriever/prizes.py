"""Prizes for nodes and edges, by their ranks or by walks, and the connected subgraph they are worth.

Source: X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 5.3, and the
code published with it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kg_retrievers.graph.adjacency import label_count, label_of, relation_of
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.methods.g_retriever.solver import SteinerTree, solve_pcst

#: The published code's constant `c`: by which share at least the prize falls from one rank to the next, and the cost of
#: an edge lies below the highest prize.
STEP = 0.01


def prize_nodes(ranked: Array, size: int, k: int) -> Array:
    """Return k for the first node, k - 1 for the second, ..., 1 for the k-th and 0 for all others (equation 6).

    Args:
        ranked: int, shape (r): distinct nodes, best first.
        size: The number of nodes.
        k: How many get a prize.

    Returns:
        float64, shape (size).

    Example:
        >>> prize_nodes(np.array([3, 0]), 4, k=3).tolist()
        [2.0, 0.0, 0.0, 3.0]
    """
    prizes = np.zeros(size)
    ranked = ranked[:k]
    prizes[ranked] = k - np.arange(len(ranked))
    return prizes


def prize_edges(relations: Array, ranked: Array, k: int, rule: Literal["paper", "published"]) -> Array:
    """Return the prizes of edges whose relations are ranked. All edges of a relation are tied.

    "paper": k for each edge of the first relation, k - 1 for the second ... (equation 6, "edge prizes are assigned
    similarly"). "published", as in the code: all edges of the i-th relation share its prize in the paper, and the share
    is at most `1 - STEP` of the prize before. So an edge of a frequent relation gets next to nothing.

    Differs from the published code: edges are tied by the id of their relation, not by equal floating-point
    similarities, which rounding tears apart.

    Args:
        relations: int, shape (m): the relation of each edge.
        ranked: int, shape (r): distinct relations, best first. Relations without an edge are passed over.
        k: How many of them get a prize.
        rule: See above.

    Returns:
        float64, shape (m).

    Example:
        >>> relations = np.array([0, 0, 1, 2])
        >>> prize_edges(relations, np.array([0, 1]), 2, "paper").tolist()
        [2.0, 2.0, 1.0, 0.0]
        >>> prize_edges(relations, np.array([0, 1]), 2, "published").tolist()
        [1.0, 1.0, 0.99, 0.0]
    """
    size = 1 + max(int(relations.max(initial=0)), int(ranked.max(initial=0)))
    counts, of_relation = np.bincount(relations, minlength=size), np.zeros(size)
    last = float(k)
    for rank, relation in enumerate(ranked[counts[ranked] > 0][:k].tolist()):
        prize = float(k - rank)
        if rule == "published":
            prize = min(prize / counts[relation], last)
            last = prize * (1 - STEP)
        of_relation[relation] = prize
    prizes: Array = of_relation[relations]
    return prizes


def walk_triples(
    heads: Array, relations: Array, tails: Array, seeds: Array, weights: Array, *, hops: int, entities: int
) -> Array:
    """Return how often a random walk takes each triple, in expectation.

    The walk starts at a seed, each as likely as the other. At an entity it picks one of the relations there, each
    direction apart, with a probability that goes with its weight, and then one of its triples, all as likely. So the
    triples of a hub share the probability of one relation. It never goes straight back by the triple that it came by:
    that share is lost.

    Cost: O(m log m + hops * m) for m triples.

    Args:
        heads: int, shape (m): entities in 0 ... entities - 1.
        relations: int, shape (m): positions in `weights`.
        tails: int, shape (m).
        seeds: int, shape (s): entities. Repeated ones count once. From none, no triple is taken.
        weights: float, shape (relations): above 0.
        hops: How many triples the walk takes, 0 or more.
        entities: The number of entities.

    Returns:
        float64, shape (m): 0 or more. The sum is at most `hops`.

    Example:
        >>> line = np.array([0, 1]), np.array([0, 0]), np.array([1, 2])
        >>> walk_triples(*line, np.array([0]), np.ones(1), hops=2, entities=3).tolist()
        [1.0, 0.5]
    """
    m, seeds = len(heads), distinct(seeds)
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


def solve_prizes(
    heads: Array,
    tails: Array,
    node_prizes: Array,
    edge_prizes: Array,
    cost: float,
    *,
    pruning: Literal["strong", "gw"] = "strong",
) -> SteinerTree:
    """Return the connected subgraph whose prizes are worth more than the cost of its edges (equations 7 and 8).

    An edge with a prize up to the cost costs the rest. One with a higher prize becomes a virtual node that is worth the
    rest, with a free edge to each end (section 5.3). A virtual node that is found is its edge again, with both ends, so
    that the result may hold cycles.

    Args:
        heads: int, shape (m): one end of each edge.
        tails: int, shape (m): the other end.
        node_prizes: float, shape (n): 0 or more.
        edge_prizes: float, shape (m): 0 or more.
        cost: Of each edge, 0 or more.
        pruning: See `solve_pcst`.

    Returns:
        Nodes and edges, each ascending.

    Raises:
        InvalidArgumentError: As `solve_pcst`.

    Example:
        >>> heads, tails = np.array([0, 1]), np.array([1, 2])
        >>> found = solve_prizes(heads, tails, np.array([2.0, 0, 0]), np.array([3.0, 0]), cost=0.5)
        >>> found.nodes.tolist(), found.edges.tolist()
        ([0, 1], [0])
    """
    n = len(node_prizes)
    pays = edge_prizes > cost
    plain, virtual = np.flatnonzero(~pays), np.flatnonzero(pays)
    added = n + np.arange(len(virtual))
    found = solve_pcst(
        np.concatenate([heads[plain], heads[virtual], tails[virtual]]),
        np.concatenate([tails[plain], added, added]),
        np.concatenate([cost - edge_prizes[plain], np.zeros(2 * len(virtual))]),
        np.concatenate([node_prizes, edge_prizes[virtual] - cost]),
        pruning=pruning,
    )
    first = np.searchsorted(found.nodes, n)
    edges = np.concatenate([plain[found.edges[found.edges < len(plain)]], virtual[found.nodes[first:] - n]])
    nodes = distinct(np.concatenate([found.nodes[:first], heads[edges], tails[edges]]))
    return SteinerTree(nodes, np.sort(edges))
