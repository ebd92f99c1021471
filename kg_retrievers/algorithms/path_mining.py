"""Mines the relation paths that lead from the entities of labelled questions to their answers, and conjunctions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.relation_paths import (
    follow_relation_path,
    joining_relation_paths,
    path_ends,
    path_turns,
    relation_path_ends,
)
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array, distinct

#: How many relation paths are tried on the first of similar questions, and how many of them on the others.
PATHS_TRIED, PATHS_KEPT = 200, 10

#: The most walks of a relation path that is tried, at every hop. A path with more is not meant by a question.
WALKS_TRIED = 20_000

#: The most adjacency entries that are looked at for one more hop when relation paths are mined.
MAX_ENTRIES = 200_000

#: Fits of answers that differ by less are equal.
SAME_FIT = 1e-9


class LabelledQuestion(NamedTuple):
    """A labelled question, by ids.

    Attributes:
        seeds: The entities that it names, at least one.
        answers: Its answers that the graph holds, at least one.
        size: How many answers it has in all.
    """

    seeds: Sequence[int]
    answers: Sequence[int]
    size: int


class MinedPath(NamedTuple):
    """A relation path that leads to answers of similar questions.

    Attributes:
        labels: One per hop.
        f1: The mean F1 over the questions, in (0, 1].
        revisits: Whether its walks may return to their start, judged by the answers. None if it makes no difference.
    """

    labels: tuple[int, ...]
    f1: float
    revisits: bool | None


def mine_relation_paths(
    adjacency: Adjacency, questions: Sequence[LabelledQuestion], *, max_hops: int
) -> list[MinedPath]:
    """Return the relation paths from the entities of similar questions to their answers, with F1.

    It tries the paths that join an entity to the first or the last answer, in most questions first, however long. Of
    the first `PATHS_TRIED`, the `PATHS_KEPT` best on the first question are tried on the others. The F1 of a question
    is 2 * hits / (ends + answers). Ends are all entities to which walks lead. The F1 is 0 if there are more than
    `WALKS_TRIED` walks. Walks may return to their start, or not, whichever has the higher F1.

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
    """Return whether walks that may return fit answers better, or None if both fit equally well.

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


# --- conjunctions: one walk from each of several entities, whose ends are intersected ---------------------------------

#: In how many of similar questions conjunctions are looked for. The conjunctions found are then compared on all of
#: them.
QUESTIONS_SEARCHED = 3

#: How many walks of an entity, and how many conjunctions of a question, are kept while they are looked for.
KEPT = 12

#: Walks are not followed further once they have crossed more adjacency entries than this.
WALK_ENTRIES = 50_000

#: A relation path from each of the entities that a question names, in the order of its text.
Conjunction = tuple[tuple[int, ...], ...]


class NamedQuestion(NamedTuple):
    """A labelled question that names several entities, by ids.

    Attributes:
        entities: The entities that each name may mean, in the order of the text.
        answers: Its answers that the graph holds.
        size: How many answers it has in all.
    """

    entities: Sequence[Sequence[int]]
    answers: Sequence[int]
    size: int


class _Joined(NamedTuple):
    """The relation paths from the first entities of a question, and the ends that they have in common."""

    paths: Conjunction
    ends: Array


def mine_conjunctions(
    adjacency: Adjacency, questions: Sequence[NamedQuestion], *, max_hops: int
) -> dict[Conjunction, float]:
    """Return the conjunctions that find answers of similar questions, with the sum of their F1.

    F1 = 2 * hits / (found + answers), summed over the questions. An entity is found if a walk from each named entity
    ends at it. A walk that has both a forward and a backward step does not return to its start. Of each entity, the
    walks that reach the most answers are tried, of these the ones with the fewest ends.

    Cost: `QUESTIONS_SEARCHED` times all relation paths around the entities, and `KEPT` ** 2 intersections for each
    further entity.

    Args:
        adjacency: The graph, both directions.
        questions: Questions that name equally many entities, two or more.
        max_hops: The most triples of a walk, 1 or more.
    """
    found: dict[Conjunction, None] = {}
    for question in questions[:QUESTIONS_SEARCHED]:
        walks = [_walks(adjacency, starts, question, max_hops) for starts in question.entities]
        joined = reduce(lambda here, more: _join(here, more, question), walks[1:], walks[0])
        found |= dict.fromkeys(one.paths for one in joined)
    sums = dict.fromkeys(found, 0.0)
    for question in questions:
        for paths in sums:
            ends = [_ends(adjacency, *one) for one in zip(question.entities, paths, strict=True)]
            sums[paths] += _conjunction_f1(reduce(_common, ends), question)
    return {paths: total for paths, total in sums.items() if total > 0}


def _common(some: Array, others: Array) -> Array:
    return np.intersect1d(some, others, assume_unique=True)


def _ends(adjacency: Adjacency, starts: Sequence[int], path: Sequence[int]) -> Array:
    may_return = not path_turns([[label] for label in path])
    ends = [path_ends(adjacency, start, path, may_return=may_return) for start in starts]
    return distinct(np.concatenate(ends)) if ends else np.empty(0, np.int64)


def _walks(adjacency: Adjacency, starts: Sequence[int], question: NamedQuestion, max_hops: int) -> list[_Joined]:
    """Return the walks of one entity that reach the most answers, walks with the fewest ends first."""
    ranked = []
    for start in starts:
        for path, ends in relation_path_ends(
            adjacency, np.array([start]), max_hops=max_hops, max_entries=WALK_ENTRIES, without=start
        ):
            if hits := int(np.isin(question.answers, ends).sum()):
                ranked.append(((-hits, len(ends), len(path), path), ends))
    ranked.sort(key=lambda row: row[0])
    return [_Joined((rank[3],), ends) for rank, ends in ranked[:KEPT]]


def _join(here: Sequence[_Joined], more: Sequence[_Joined], question: NamedQuestion) -> list[_Joined]:
    """Return the best conjunctions of the ones so far with the walks of one more entity."""
    joined = [_Joined(one.paths + other.paths, _common(one.ends, other.ends)) for one in here for other in more]
    joined.sort(key=lambda one: (-_conjunction_f1(one.ends, question), sum(map(len, one.paths)), one.paths))
    return joined[:KEPT]


def _conjunction_f1(ends: Array, question: NamedQuestion) -> float:
    return 2 * int(np.isin(question.answers, ends).sum()) / max(len(ends) + question.size, 1)
