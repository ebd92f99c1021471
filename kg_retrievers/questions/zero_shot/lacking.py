"""The relation that a question asks for where its entity lacks it, and others like this entity have it.

Of the steps around an entity one always fits best. Whether it is what the question asks for shows beside the steps that
the entity might have: those of the entities that share one of its own. They are ranked like walks of one step, and one
that is ranked before all walks there are makes these as much less likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.questions.zero_shot.graph_steps import GraphSteps
from kg_retrievers.questions.zero_shot.ranking import COVERED, coverage, kinds_of_ends, named_ends, walk_features
from kg_retrievers.questions.zero_shot.reading import Word, asked_noun, words_to_cover
from kg_retrievers.questions.zero_shot.scorer import Encoded, Prefixes, RelationScorer
from kg_retrievers.questions.zero_shot.walks import log_shares

#: How many steps that an entity lacks are compared with its walks, the likeliest first.
LACKED_COMPARED = 8


class LackedStep(NamedTuple):
    """A step that an entity lacks.

    Attributes:
        label: The adjacency label.
        score: Its score as a walk beside those of the walks that the entity has.
        words: How well it covers each telling word of the question, (words).
    """

    label: int
    score: float
    words: Array


def lacked_labels(steps: GraphSteps, own: Array) -> Array:
    """Return the labels that an entity lacks and others have that share one of its own, ascending.

    A label of its own the other way round is none of them: whether it is meant is told by `compare_directions`.

    Args:
        steps: The steps of the graph.
        own: The labels of the entity.
    """
    has, shares = np.zeros((2, len(steps.kinds)), bool)
    has[own] = True
    label, other = steps.beside
    shares[other[has[label]]] = True
    shares[label[has[other]]] = True
    shares[own] = shares[reversed_label(own)] = False
    found: Array = np.flatnonzero(shares)
    return found


def best_lacked(
    scorer: RelationScorer,
    question: Encoded,
    words: Sequence[Word],
    steps: GraphSteps,
    own: Array,
    placed: Array,
    asked: str | None,
) -> LackedStep | None:
    """Return the step that an entity lacks and that a question asks for most likely; None where no like entity has one.

    Args:
        scorer: Scores steps.
        question: The question.
        words: Its words.
        steps: The steps of the graph.
        own: The labels of the entity.
        placed: How well the best walk from the entity covers each telling word. A step fits that leaves out none which
            this walk covers.
        asked: The kind of value that the question asks for, if it says one. A step of another kind is taken only where
            none of this kind has a word of the question.
    """
    labels = lacked_labels(steps, own)
    if not len(labels):
        return None
    likeliest, logs = _likeliest(scorer, question, steps, own, labels)
    walks = [(label,) for label in likeliest.tolist()]
    covered = coverage(words, walks, steps)
    kinds, ends_named = kinds_of_ends(asked, walks, steps), named_ends(words, walks, steps)
    features = walk_features(walks, logs.tolist(), covered, kinds, ends_named, asks_for_others=False)
    scores = features @ scorer.walk_weights
    fits = ~_leaves_out(words, placed, covered.ends, kinds > 0)
    of_kind = fits & (kinds >= 0) & (covered.words >= COVERED).any(axis=1)
    compared = np.flatnonzero(of_kind if of_kind.any() else fits)
    if not len(compared):
        return None
    best = int(compared[np.argmax(scores[compared])])
    return LackedStep(walks[best][0], float(scores[best]), covered.words[best])


def _leaves_out(words: Sequence[Word], placed: Array, covered: Array, of_kind: Array) -> Array:
    """Return whether steps leave out a word that the best walk covers; (n).

    A noun such as "year" is left out by none whose values are of the kind that is asked for.
    """
    nouns = asked_noun(words)
    is_noun = np.array([any(word is noun for noun in nouns) for word in words_to_cover(words)], bool)
    is_left = (placed >= COVERED) & (covered < COVERED) & ~(is_noun & of_kind[:, None])
    return np.asarray(is_left.any(axis=1))


def _likeliest(
    scorer: RelationScorer, question: Encoded, steps: GraphSteps, own: Array, lacked: Array
) -> tuple[Array, Array]:
    """Return the likeliest of the labels that an entity lacks, and the logarithms of how likely each is the whole walk.

    They are compared with its own labels too, but scaled as those of walks are, which are compared with these alone.
    """
    begin, labels = scorer.begin(question), np.concatenate([own, lacked])
    decisions = scorer.decide(question, begin, 0, steps.states.take(labels))
    logs = log_shares(decisions, 0, np.arange(len(labels)), 0)
    scale = log_shares(decisions, 0, np.arange(len(own)), 0)[0] - logs[0]
    of_lacked = logs[len(own) : len(labels)] + scale
    first = np.argsort(-of_lacked, kind="stable")[:LACKED_COMPARED]
    states = scorer.extend(begin, decisions, np.zeros(len(first), np.int64), steps.states.take(lacked[first]))
    return lacked[first], of_lacked[first] + _stop_logs(scorer, question, states, steps, lacked[first])


def _stop_logs(scorer: RelationScorer, question: Encoded, states: Prefixes, steps: GraphSteps, labels: Array) -> Array:
    """Return the logarithms of how likely walks of one step end there, rather than go on as from most of their ends."""
    label, other = steps.beside
    onward = [np.unique(other[label == reversed_label(step)]) for step in labels.tolist()]
    offered = np.unique(np.concatenate(onward))
    decisions = scorer.decide(question, states, 1, steps.states.take(offered))
    columns = [np.searchsorted(offered, of_step) for of_step in onward]
    return np.array([log_shares(decisions, row, of_row, 1)[-2] for row, of_row in enumerate(columns)])
