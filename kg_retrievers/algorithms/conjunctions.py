"""Conjunctions: one walk from each of several entities, whose ends are intersected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.relation_paths import path_ends, path_turns, relation_path_ends
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array

#: How many of alike questions conjunctions are looked for in; those found are then compared on all of them.
QUESTIONS_SEARCHED = 3

#: How many walks of an entity, and how many conjunctions of a question, are kept while they are looked for.
KEPT = 12

#: Walks are not followed further once they have crossed more adjacency entries than this.
MAX_ENTRIES = 50_000

#: A relation path from each of the entities that a question names, in the order of its text.
Conjunction = tuple[tuple[int, ...], ...]


class NamedQuestion(NamedTuple):
    """What is known of a labelled question that names several entities, by ids.

    Attributes:
        entities: What each name may mean, in the order of the text.
        answers: Those of its answers that the graph holds.
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
    """Return the conjunctions that find answers of alike questions, with the sum of their F1 over the questions.

    F1 = 2 * hits / (found + answers), where those entities are found at which a walk from each named entity ends. A
    walk that has both a forward and a backward step does not return to where it starts. Of each entity, the walks that
    reach the most answers are tried, of these the ones with the fewest ends.

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
            sums[paths] += _f1(reduce(_common, ends), question)
    return {paths: total for paths, total in sums.items() if total > 0}


def _common(some: Array, others: Array) -> Array:
    return np.intersect1d(some, others, assume_unique=True)


def _ends(adjacency: Adjacency, starts: Sequence[int], path: Sequence[int]) -> Array:
    may_return = not path_turns([[label] for label in path])
    ends = [path_ends(adjacency, start, path, may_return=may_return) for start in starts]
    return np.unique(np.concatenate(ends)) if ends else np.empty(0, np.int64)


def _walks(adjacency: Adjacency, starts: Sequence[int], question: NamedQuestion, max_hops: int) -> list[_Joined]:
    """Return the walks of one entity that reach the most answers, those with the fewest ends first."""
    ranked = []
    for start in starts:
        for path, ends in relation_path_ends(
            adjacency, np.array([start]), max_hops=max_hops, max_entries=MAX_ENTRIES, without=start
        ):
            if hits := int(np.isin(question.answers, ends).sum()):
                ranked.append(((-hits, len(ends), len(path), path), ends))
    ranked.sort(key=lambda row: row[0])
    return [_Joined((rank[3],), ends) for rank, ends in ranked[:KEPT]]


def _join(here: Sequence[_Joined], more: Sequence[_Joined], question: NamedQuestion) -> list[_Joined]:
    """Return the best conjunctions of those so far with the walks of one more entity."""
    joined = [_Joined(one.paths + other.paths, _common(one.ends, other.ends)) for one in here for other in more]
    joined.sort(key=lambda one: (-_f1(one.ends, question), sum(map(len, one.paths)), one.paths))
    return joined[:KEPT]


def _f1(ends: Array, question: NamedQuestion) -> float:
    return 2 * int(np.isin(question.answers, ends).sum()) / max(len(ends) + question.size, 1)
