"""Ranks walks by how well their words and those of the question cover each other, and rates how sure that is.

The scorer decides step by step; here whole walks are compared. Two small linear models, fitted by
`benchmarks/relation_scorer` on questions that are not reported: the score of a walk, whose softmax over all walks found
is its probability; and the logit of the confidence that the first walk is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.questions.zero_shot.scorer import KINDS
from kg_retrievers.questions.zero_shot.steps import GraphSteps
from kg_retrievers.questions.zero_shot.words import Word, asked_noun, words_to_cover

#: A word of the question is covered by a relation whose nearest word is this near, as a cosine.
COVERED = 0.35


class Coverage(NamedTuple):
    """How well walks and a question cover each other, one row a walk.

    Attributes:
        words: The cosine of each telling word of the question with the nearest word of the relations; (n, words).
        ends: As `words`, but with the words for what the steps lead to as well; (n, words).
        steps: For each walk, the mean cosine of each step's words with the nearest word of the question.
        cosine: Of the mean of the question's words with that of the walk's text, which knows its direction; (n).
    """

    words: Array
    ends: Array
    steps: list[Array]
    cosine: Array


def coverage(question: Sequence[Word], walks: Sequence[Sequence[int]], steps: GraphSteps) -> Coverage:
    """Compare the words of a question with those of walks, given by their adjacency labels."""
    telling = [word.vector for word in words_to_cover(question)]
    rows = np.stack(telling) if telling else np.zeros((1, steps.vectors.shape[1]), np.float32)
    labels = {label for walk in walks for label in walk}
    cosines = {relation: rows @ steps.words[relation].T for relation in {relation_of(label) for label in labels}}
    best = {relation: of_words.max(axis=1) for relation, of_words in cosines.items()}
    named = {relation: float(of_words.max(axis=0).mean()) for relation, of_words in cosines.items()}
    of_ends = {label: (rows @ steps.end_words[label].T).max(axis=1) for label in labels}
    words = np.stack([np.max([best[relation_of(label)] for label in walk], axis=0) for walk in walks])
    ends = np.stack([np.max([of_ends[label] for label in walk], axis=0) for walk in walks])
    of_steps = [np.array([named[relation_of(label)] for label in walk]) for walk in walks]
    mean = _unit(rows.mean(axis=0))
    means = [mean @ _unit(steps.text_sums[list(walk)].sum(axis=0)) for walk in walks]
    return Coverage(words, np.maximum(words, ends), of_steps, np.array(means))


def named_ends(question: Sequence[Word], walks: Sequence[Sequence[int]], steps: GraphSteps) -> Array:
    """Return how near what a question asks for is to what the ends of each walk are, (n).

    The nearest cosine of a word such as "towns" in "which towns" with the types of the ends and the names of their
    further relations; 0 where either says nothing.
    """
    asked = [word.vector for word in asked_noun(question)]
    if not asked:
        return np.zeros(len(walks))
    rows = np.stack(asked)
    nearest = {label: _nearest(rows, steps.end_words[label]) for label in {walk[-1] for walk in walks}}
    return np.array([nearest[walk[-1]] for walk in walks])


def kinds_of_ends(asked: str | None, walks: Sequence[Sequence[int]], steps: GraphSteps) -> Array:
    """Return 1 for walks whose ends are of the kind that is asked for, else -1; 0 where no kind is asked for."""
    if asked is None:
        return np.zeros(len(walks))
    return np.where(steps.kinds[[walk[-1] for walk in walks]] == KINDS.index(asked), 1.0, -1.0)


def _nearest(rows: Array, others: Array) -> float:
    return float(np.clip((rows @ others.T).max(initial=0.0), 0, 1))


#: What `walk_features` returns, column by column.
WALK_FEATURES = (
    "log probability", "words covered", "words or ends covered", "steps named", "least step named", "cosine",
    "two steps", "three steps", "kind", "ends named", "relations repeated", "turns back", "turns back as asked",
)  # fmt: skip


def walk_features(
    walks: Sequence[Sequence[int]],
    log_probabilities: Sequence[float],
    covered: Coverage,
    kinds: Array,
    ends_named: Array,
    asks_for_others: bool,
) -> Array:
    """Return the features of walks, (n, `len(WALK_FEATURES)`).

    Args:
        walks: Their adjacency labels.
        log_probabilities: Of each walk, by the scorer.
        covered: How well walks and question cover each other.
        kinds: 1 where the ends are of the kind that the question asks for, -1 where not, 0 where it does not say.
        ends_named: See `named_ends`.
        asks_for_others: Whether words of the question ask for others that are like its entity.
    """
    lengths = np.array([len(walk) for walk in walks])
    turns_back = np.array([_turns_back(walk) for walk in walks])
    repeated = np.array([len(walk) - len(set(map(relation_of, walk))) for walk in walks])
    columns = [
        np.array(log_probabilities),
        np.clip(covered.words, 0, 1).sum(axis=1),
        np.clip(covered.ends, 0, 1).sum(axis=1),
        np.array([of_steps.mean() for of_steps in covered.steps]),
        np.array([of_steps.min() for of_steps in covered.steps]),
        covered.cosine,
        lengths == 2,
        lengths == 3,
        kinds,
        ends_named,
        repeated,
        turns_back,
        turns_back & asks_for_others,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _turns_back(walk: Sequence[int]) -> bool:
    """Return whether a walk crosses a relation and then goes back along it."""
    return any(following == reversed_label(step) for step, following in pairwise(walk))


#: What `confidence_features` returns.
CONFIDENCE_FEATURES = (
    "one", "log probability a step", "log share", "words covered", "least word covered", "least step named", "cosine",
    "function words", "known words", "several entities", "log of nothing that fits", "kind",
)  # fmt: skip


def confidence_features(walks: Array, share: float, covered: Array, question: Sequence[Word], nothing: float) -> Array:
    """Return what tells how sure it is that a question asks for some walks.

    Args:
        walks: The `walk_features` of each of them, (entities, f).
        share: The probability of the least likely of them among all walks from its entity.
        covered: The cosine of each telling word of the question with the nearest word of the walks.
        question: The words.
        nothing: How likely nothing in the graph fits, by the scorer.
    """
    feature = dict(zip(WALK_FEATURES, walks.T, strict=True))
    lengths = 1 + feature["two steps"] + 2 * feature["three steps"]
    texts = [word for word in question if word.text[0].isalnum()]
    function = np.mean([not word.telling for word in texts]) if texts else 0.5
    known = np.mean([word.known for word in texts]) if texts else 1.0
    clipped = np.clip(covered, 0, 1)
    return np.array([
        1.0,
        (feature["log probability"] / lengths).min(),
        np.log(max(share, 1e-6)),
        clipped.mean(),
        clipped.min(initial=1.0),
        feature["least step named"].min(),
        feature["cosine"].min(),
        function,
        known,
        float(len(walks) > 1),
        np.log(max(nothing, 1e-6)),
        feature["kind"].min(),
    ])  # fmt: skip


def softmax(scores: Array) -> Array:
    """Return shares that sum to 1."""
    raised = np.exp(scores - scores.max())
    shares: Array = raised / raised.sum()
    return shares


def _unit(vector: Array) -> Array:
    unit: Array = vector / (np.linalg.norm(vector) + 1e-9)
    return unit
