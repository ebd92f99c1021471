"""What a question asks for: walks from its entities, with how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.zero_shot.ranking import COVERED, confidence_features, softmax
from kg_retrievers.questions.zero_shot.walks import LackedStep
from kg_retrievers.questions.zero_shot.words import Word


@dataclass(frozen=True)
class RankedWalk:
    """A walk from an entity of the question.

    Attributes:
        slot: The entity it starts from.
        labels: The adjacency labels of its steps.
        probability: How likely the question asks for its ends, of all walks found from the entity; in [0, 1].
    """

    slot: QuestionEntity
    labels: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class Understanding:
    """What a question asks for.

    Attributes:
        arms: The walks that together lead to what is asked for: one, or one from each of several entities.
        walks: All walks found from the first of these entities, the likeliest first.
        confidence: How likely the arms are right, in [0, 1].
        unplaced: The words of the question that they do not cover.
        nearest: The relations that came nearest, the nearest first.
        lacked: The adjacency label of the step that the entity lacks and the question asks for, while others have it.
        lacking: A clause that says so, if there is one.
    """

    arms: tuple[RankedWalk, ...]
    walks: tuple[RankedWalk, ...]
    confidence: float
    unplaced: tuple[str, ...]
    nearest: tuple[str, ...]
    lacked: int | None
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Arm:
    """The walks from one entity of a question, the best first.

    Attributes:
        slot: The entity.
        walks: Their adjacency labels.
        features: Their features, (n, `len(WALK_FEATURES)`).
        scores: Their scores, (n).
        words: How well they cover each telling word of the question, (n, words).
        ends: The ids of the entities where the first of them end.
        nothing: How likely nothing around the entity fits, by the scorer.
        direction: How likely the question asks for the first step of the best walk, compared with its opposite.
        lacked: The step that the entity lacks and that the question asks for most likely, if like entities have one.
    """

    slot: QuestionEntity
    walks: list[tuple[int, ...]]
    features: Array
    scores: Array
    words: Array
    ends: list[Array]
    nothing: float
    direction: float
    lacked: LackedStep | None

    @property
    def possession(self) -> float:
        """How likely the question asks for the best walk, compared with the step that the entity lacks; at most 1."""
        if self.lacked is None:
            return 1.0
        return math.exp(min(float(self.scores[0]) - self.lacked.score, 0.0))

    @property
    def is_named_lacked(self) -> bool:
        """Whether words of the question name the step that the entity lacks, rather than its best walk."""
        if self.lacked is None:
            return False
        named = self.lacked.words >= COVERED
        return bool(named.any() if self.possession < 1 else (named & (self.words[0] < COVERED)).any())

    def share(self, chosen: int) -> float:
        """Return how likely the question asks for the ends of a walk."""
        shares = softmax(self.scores)
        alike = [i for i, ends in enumerate(self.ends) if np.array_equal(ends, self.ends[chosen])]
        return float(shares[alike].sum())


@dataclass(frozen=True)
class Choice:
    """One walk from each of some entities.

    Attributes:
        arms: The walks to choose from.
        walks: The position of the one chosen of each arm.
    """

    arms: Sequence[Arm]
    walks: Sequence[int]

    @property
    def pairs(self) -> list[tuple[Arm, int]]:
        """Each arm with the position of its walk."""
        return list(zip(self.arms, self.walks, strict=True))

    @cached_property
    def ends(self) -> Array:
        """The ids of the entities where all of the walks end, ascending."""
        return reduce(np.intersect1d, [arm.ends[walk] for arm, walk in self.pairs])

    @cached_property
    def covered(self) -> Array:
        """How well the walks together cover each telling word of the question, (words)."""
        covered: Array = np.max([arm.words[walk] for arm, walk in self.pairs], axis=0)
        return covered

    def features(self, words: Sequence[Word]) -> Array:
        """Return what tells how sure it is that the question asks for the walks."""
        rows = np.stack([arm.features[walk] for arm, walk in self.pairs])
        share = min(arm.share(walk) for arm, walk in self.pairs)
        return confidence_features(rows, share, self.covered, words, max(arm.nothing for arm in self.arms))


def meeting_walks(arms: Sequence[Arm]) -> Choice | None:
    """Return walks that all lead to a common entity, with the highest sum of scores; None where none do."""
    logs = [np.log(softmax(arm.scores)[: len(arm.ends)]) for arm in arms]
    combinations = product(*(range(len(of_arm)) for of_arm in logs))
    ranked = sorted(
        (-sum(of_arm[i] for of_arm, i in zip(logs, chosen, strict=True)), chosen) for chosen in combinations
    )
    choices = (Choice(arms, chosen) for _, chosen in ranked)
    return next((choice for choice in choices if len(choice.ends)), None)
