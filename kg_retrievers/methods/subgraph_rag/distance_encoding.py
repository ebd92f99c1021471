"""Encodes how far entities are from the seeds, and labels triples by the shortest paths from seeds to answers.

Sources: M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in
Knowledge-Graph-Based Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 (directional distance
encoding) and 4 (shortest paths), and the code published with it. J. Shi, S. Cao, L. Hou, J. Li, H. Zhang: TransferNet:
An Effective and Transparent Framework for Multi-hop Question Answering over Relation Graph. EMNLP 2021,
arXiv:2104.07302, and the code published with it (scores of entities that pass along weighted relations).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kg_retrievers.graph.columns import Array


def encode_distances(
    heads: Array,
    tails: Array,
    seeds: Array,
    *,
    nodes: int,
    rounds: int = 2,
    reverse_rounds: int = 2,
    directed: bool = True,
    pair: bool = False,
) -> npt.NDArray[np.float32]:
    """Return the directional distance encoding (DDE) of each entity.

    Column 0, s(0), is 1 for a seed and 0 for others. `rounds` columns follow: s(l + 1) of v is the mean of s(l) over
    the heads u of all triples (u, r, v), 0 where there is none. Then `reverse_rounds` columns, which start again from
    s(0), with the mean over the tails u of all triples (v, r, u). Parallel triples count each. So s(l) of v is the
    probability that a random walk of l steps against the triples, in the reverse columns along them, ends at a seed.

    With `directed=False` each mean is over both, where a self-loop counts twice, and there are only `rounds`. Where no
    triple has an inverse, as in MetaQA, directed walks cannot get from a film by its director to another film.

    With `pair=True`, s(0) is the paper's pair, (1 - s, s), and so is all that follows: two columns for each of those
    above. The two of a pair add up to the probability o(l) that such a walk does not get stuck, whatever the seeds.

    *Differs from the paper* by default, where s stands alone. With `directed=False` o(l) is 1 at both ends of every
    triple, so that a linear layer with a bias can do as much with one number as with the pair; with `directed=True`
    o(l) is less where a dead end is near, and that is left out.

    Cost: O((rounds + reverse_rounds) * m) for m triples.

    Args:
        heads: int, shape (m): entities in 0 ... nodes - 1.
        tails: int, shape (m).
        seeds: int, shape (s): entities; repeated ones count once. From none, all is 0.
        nodes: The number of entities.
        rounds: How many steps from head to tail, or either way with `directed=False`; 0 or more.
        reverse_rounds: How many steps from tail to head; 0 or more, and 0 with `directed=False`.
        directed: Whether the two directions are told apart.
        pair: Whether each column stands behind one for what is no seed.

    Returns:
        float32, shape (nodes, 1 + rounds + reverse_rounds), or twice as many columns with `pair`: in [0, 1].

    Example:
        >>> heads, tails, her = np.array([0, 2]), np.array([1, 1]), np.array([0])  # two films by one director
        >>> encode_distances(heads, tails, her, nodes=3, rounds=1, reverse_rounds=1).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]
        >>> encode_distances(heads, tails, her, nodes=3, rounds=2, reverse_rounds=0, directed=False).tolist()
        [[1.0, 0.0, 0.5], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    """
    start = np.zeros(nodes)
    start[seeds] = 1
    steps = list(zip(_ways(heads, tails, directed), (rounds, reverse_rounds), strict=False))
    columns = _means(start, steps)
    if pair:
        pairs = zip(_means(1 - start, steps), columns, strict=True)
        columns = [column for both in pairs for column in both]
    return np.stack(columns, axis=1).astype(np.float32)


def _means(start: Array, steps: list[tuple[tuple[Array, Array], int]]) -> list[Array]:
    """Return the start, then the means after each round of each way, which begins with the start again."""
    columns, nodes = [start], len(start)
    for (here, there), count in steps:
        degrees, values = np.maximum(np.bincount(there, minlength=nodes), 1), start
        for _ in range(count):
            values = np.bincount(there, values[here], nodes) / degrees
            columns.append(values)
    return columns


def follow_relations(
    heads: Array, relations: Array, tails: Array, seeds: Array, weights: Array, *, nodes: int
) -> npt.NDArray[np.float64]:
    """Return how well each entity is reached from the seeds by relations that are worth following, hop by hop.

    x(0) is 1 for a seed and 0 for others. x(h + 1) = 1 - exp(-y), where y of v is the sum of weights[h, 0, r] * x(h)(u)
    over all triples (u, r, v) and of weights[h, 1, r] * x(h)(u) over all triples (v, r, u). One good way is enough,
    more add little, and what else an entity has takes nothing away. Parallel triples count each, a self-loop once per
    direction.

    Ours: a distance encoding that minds the relations, which are all alike to DDE. That scores of entities pass along
    weighted relations is TransferNet's idea. *Differs from it*: y is cut smoothly rather than at 1, and the scores of
    all hops are features of entities; there their mean, weighted by the question, is the answer.

    Cost: O(hops * m) for m triples.

    Args:
        heads: int, shape (m): entities in 0 ... nodes - 1.
        relations: int, shape (m): positions on the last axis of `weights`.
        tails: int, shape (m).
        seeds: int, shape (s): entities; repeated ones count once. From none, all is 0.
        weights: float, shape (hops, 2, relations): in [0, 1]. How much hop h follows relation r, [h, 0, r] from head to
            tail and [h, 1, r] from tail to head.
        nodes: The number of entities.

    Returns:
        float64, shape (hops + 1, nodes): x(0) ... x(hops), in [0, 1].

    Example:
        >>> films, directed_by, directors, her = np.array([0, 2]), np.array([0, 0]), np.array([1, 1]), np.array([0])
        >>> there_and_back = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
        >>> follow_relations(films, directed_by, directors, her, there_and_back, nodes=3).round(2).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.63, 0.0], [0.47, 0.0, 0.47]]
    """
    reached = np.zeros((len(weights) + 1, nodes))
    reached[0, seeds] = 1
    for hop, (along, against) in enumerate(weights):
        x = reached[hop]
        y = np.bincount(tails, along[relations] * x[heads], nodes)
        y += np.bincount(heads, against[relations] * x[tails], nodes)
        reached[hop + 1] = -np.expm1(-y)
    return reached


def shortest_path_triples(
    heads: Array, tails: Array, seeds: Array, answers: Array, *, nodes: int, directed: bool = False, max_hops: int = 4
) -> npt.NDArray[np.bool_]:
    """Mark the triples on the shortest paths between seeds and answers.

    Every shortest path of each pair of a seed and an answer counts, whichever way its triples point, with all parallel
    triples; a self-loop is on none, and none leads from a seed to itself as an answer.

    With `directed=True` a path follows its triples, from seed to answer or from answer to seed, whichever is shorter
    for the pair, both where they are as long. *Differs from the published code*, which always does so: where no triple
    has an inverse that finds little, and for MetaQA's 2-hop questions nothing. There, only the last of parallel triples
    counts, and a path may have any length.

    Cost: O(s * max_hops * m) for s seeds and m triples, however many answers.

    Args:
        heads: int, shape (m): entities in 0 ... nodes - 1.
        tails: int, shape (m).
        seeds: int, shape (s): entities; repeated ones count once.
        answers: int, shape (a): entities.
        nodes: The number of entities.
        directed: Whether a path follows its triples.
        max_hops: The most triples in a path; 0 or more.

    Returns:
        bool, shape (m): the weak labels for a scorer of triples.

    Example:
        >>> heads, tails = np.array([0, 2, 2]), np.array([1, 1, 3])  # two films by one director, a genre
        >>> shortest_path_triples(heads, tails, np.array([0]), np.array([2]), nodes=4).tolist()
        [True, True, False]
    """
    far = max_hops + 1
    positive = np.zeros(len(heads), np.bool_)
    for seed in np.unique(seeds):
        ways = _ways(heads, tails, directed)
        distances = [_distances(*way, seed, answers, nodes, max_hops) for way in ways]
        shortest = np.min([distance[answers] for distance in distances], axis=0)
        for (here, there), distance in zip(ways, distances, strict=True):
            marked = np.zeros(nodes, np.bool_)
            marked[answers[(distance[answers] == shortest) & (shortest < far)]] = True
            for hop in range(distance[marked].max(initial=0), 0, -1):
                steps = np.flatnonzero(marked[there] & (distance[there] == hop) & (distance[here] == hop - 1))
                positive[steps % len(heads)] = True
                marked[here[steps]] = True
    return positive


def _ways(heads: Array, tails: Array, directed: bool) -> list[tuple[Array, Array]]:
    """Return where steps leave and arrive: those along the triples and those against them, or all in this order."""
    if directed:
        return [(heads, tails), (tails, heads)]
    return [(np.concatenate([heads, tails]), np.concatenate([tails, heads]))]


def _distances(here: Array, there: Array, seed: int, wanted: Array, nodes: int, max_hops: int) -> Array:
    """Return the steps from the seed to those wanted and all nearer ones, max_hops + 1 where it is further."""
    distance = np.full(nodes, max_hops + 1)
    distance[seed] = 0
    for hop in range(max_hops):
        reached = there[(distance[here] == hop) & (distance[there] > max_hops)]
        if not len(reached) or distance[wanted].max(initial=0) <= max_hops:
            break
        distance[reached] = hop + 1
    return distance
