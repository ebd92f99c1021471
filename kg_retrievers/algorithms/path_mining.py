"""Mines the relation paths that lead from the entities of labelled questions to their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from kg_retrievers.algorithms.relation_paths import follow_relation_path, joining_relation_paths
from kg_retrievers.graph import Adjacency

#: How many relation paths are tried on the first of alike questions, and how many of these on the others.
PATHS_TRIED, PATHS_KEPT = 200, 10

#: The most walks of a relation path that is tried, at every hop; one with more is not what a question asks for.
WALKS_TRIED = 20_000

#: The most adjacency entries that are looked at for one more hop where relation paths are mined.
MAX_ENTRIES = 200_000

#: Fits of answers that differ by less are equal.
SAME_FIT = 1e-9


class LabelledQuestion(NamedTuple):
    """What is known of a labelled question, by ids.

    Attributes:
        seeds: The entities that it names, at least one.
        answers: Those of its answers that the graph holds, at least one.
        size: How many answers it has in all.
    """

    seeds: Sequence[int]
    answers: Sequence[int]
    size: int


class MinedPath(NamedTuple):
    """A relation path that leads to answers of alike questions.

    Attributes:
        labels: One a hop.
        f1: The mean F1 over the questions, in (0, 1].
        revisits: Whether its walks may return to where they start, judged by the answers; None where it is all the
            same.
    """

    labels: tuple[int, ...]
    f1: float
    revisits: bool | None


def mine_relation_paths(
    adjacency: Adjacency, questions: Sequence[LabelledQuestion], *, max_hops: int
) -> list[MinedPath]:
    """Return the relation paths that lead from the entities of alike questions to their answers, with their F1.

    Tried are those that join an entity to the first or the last answer, in most questions first, however long: of the
    first `PATHS_TRIED`, the `PATHS_KEPT` best on the first question are tried on the others. The F1 of a question is
    2 * hits / (ends + answers), where ends are all entities to which walks lead; 0 where there are more than
    `WALKS_TRIED` walks. Walks may return to where they start, or not, whichever has the higher F1.

    Args:
        adjacency: The graph, both directions.
        questions: The questions.
        max_hops: The most triples of a walk, 1 or more.

    Returns:
        Best first, of equal ones the shortest.
    """
    joining: Counter[tuple[int, ...]] = Counter()
    for seeds, answers, _ in questions:
        for seed, answer in product(seeds, dict.fromkeys((answers[0], answers[-1]))):
            joining.update(joining_relation_paths(adjacency, seed, answer, max_hops=max_hops, max_entries=MAX_ENTRIES))
    paths = sorted(joining, key=lambda path: (-joining[path], len(path), path))[:PATHS_TRIED]
    sums = {path: [0.0, 0.0] for path in paths}  # of walks that may not return, and of those that may
    for question in questions:
        for path in paths:
            for may_return in (False, True):
                sums[path][may_return] += _f1(adjacency, path, question, may_return)
        paths = sorted(paths, key=lambda path: (-max(sums[path]), len(path), path))[:PATHS_KEPT]
    return [
        MinedPath(path, max(sums[path]) / len(questions), learned_revisits(*sums[path]))
        for path in paths
        if max(sums[path]) > 0
    ]


def learned_revisits(onward: float, back: float) -> bool | None:
    """Return whether walks that may return fit answers better; None where both fit equally well.

    Args:
        onward: How well walks that may not return fit.
        back: How well walks that may return fit.
    """
    return None if abs(back - onward) < SAME_FIT else back > onward


def _f1(adjacency: Adjacency, path: tuple[int, ...], question: LabelledQuestion, may_return: bool) -> float:
    ends: set[int] = set()
    for seed in question.seeds:
        hops = [[label] for label in path]
        walks = follow_relation_path(adjacency, seed, hops, max_walks=WALKS_TRIED, may_return=may_return)
        if walks.truncated:
            return 0.0
        ends.update(walks.ends.tolist())
    return 2 * len(ends.intersection(question.answers)) / (len(ends) + question.size)
