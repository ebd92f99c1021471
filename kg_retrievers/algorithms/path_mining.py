"""Mines the relation paths that lead from the entities of labelled questions to their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from kg_retrievers.algorithms.relation_paths import Walks, follow_further, joining_relation_paths, walks_from
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
        followed = [_Followed(adjacency, seed) for seed in question.seeds]
        for path in paths:
            for may_return in (False, True):
                sums[path][may_return] += _f1(followed, path, question, may_return)
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


class _Followed:
    """The walks from an entity along many relation paths; what these begin with is followed once."""

    def __init__(self, adjacency: Adjacency, seed: int) -> None:
        self._adjacency, self._seed = adjacency, seed
        self._walks: dict[tuple[tuple[int, ...], bool], Walks] = {
            ((), may_return): walks_from(seed) for may_return in (False, True)
        }

    def walks(self, path: tuple[int, ...], may_return: bool) -> Walks:
        """Return the walks along a relation path, which cross no triple twice."""
        if (path, may_return) not in self._walks:
            if not may_return and not self._comes_back(path):
                return self.walks(path, True)
            before, without = self.walks(path[:-1], may_return), -1 if may_return else self._seed
            self._walks[path, may_return] = follow_further(
                self._adjacency, before, [path[-1]], max_walks=WALKS_TRIED, without=without, may_repeat=False
            )
        return self._walks[path, may_return]

    def _comes_back(self, path: tuple[int, ...]) -> bool:
        return any((self.walks(path[:hops], True).ends == self._seed).any() for hops in range(1, len(path) + 1))


def _f1(followed: Sequence[_Followed], path: tuple[int, ...], question: LabelledQuestion, may_return: bool) -> float:
    ends: set[int] = set()
    for of_seed in followed:
        walks = of_seed.walks(path, may_return)
        if walks.truncated:
            return 0.0
        ends.update(walks.ends.tolist())
    return 2 * len(ends.intersection(question.answers)) / (len(ends) + question.size)
