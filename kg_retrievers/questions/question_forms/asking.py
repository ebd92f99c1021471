"""Asks the zero-shot generator for the parts of a question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kg_retrievers.graph.adjacency import reversed_label
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.question_forms.classes import MEMBERS, GraphClasses
from kg_retrievers.questions.question_forms.tokens import Token, question_of
from kg_retrievers.questions.zero_shot import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.ranking import softmax

#: The most steps of a walk between two things that a form joins.
MAX_STEPS = 2

#: How much less likely it makes a walk to come to a class again.
DETOUR_COST = 2.0


@dataclass(frozen=True)
class Way:
    """A walk that a part of a question may ask for.

    Attributes:
        labels: The adjacency labels of its steps.
        log: The logarithm of how likely it is.
        confidence: How likely the first walk of all is right, by the zero-shot generator; in [0, 1].
        share: How likely it is among the walks that lead where it must, in [0, 1].
        start: The class where it starts; -1 for an entity.
    """

    labels: tuple[int, ...]
    log: float
    confidence: float
    share: float = 1.0
    start: int = -1

    @property
    def back(self) -> tuple[int, ...]:
        """The adjacency labels of the way back."""
        return tuple(reversed_label(label) for label in reversed(self.labels))


class Asker:
    """Asks for walks from entities, and from all members of a class.

    Args:
        zero_shot: Ranks the walks.
        classes: The classes of its graph.
    """

    def __init__(self, zero_shot: ZeroShotPatternGenerator, classes: GraphClasses) -> None:
        """Keep both."""
        self.zero_shot, self.classes = zero_shot, classes
        self.graph = zero_shot.index.graph

    def from_entity(
        self, tokens: Sequence[Token], at: int, *, max_steps: int = 3, starts: Array | None = None
    ) -> list[Way]:
        """Return the walks from the entity at a position of a text, the likeliest first.

        Args:
            tokens: The text.
            at: The position.
            max_steps: The most steps of a walk.
            starts: The ids of entities that the entity stands for.
        """
        text, slots = question_of(tokens)
        topic = slots[sum(bool(token.slot) for token in tokens[:at])]
        understood = self.zero_shot.understand_from(text, slots, topic, max_hops=max_steps, starts=starts)
        if understood is None:
            return []
        return [
            Way(walk.labels, float(np.log(max(walk.probability, 1e-9))), understood.confidence)
            for walk in understood.walks
        ]

    def from_class(
        self, tokens: Sequence[Token], span: tuple[int, int], group: int, *, max_steps: int = MAX_STEPS
    ) -> list[Way]:
        """Return the walks from the members of a class that some words of a text stand for."""
        some = spread(self.classes.members[group], MEMBERS)
        name = " ".join(token.text for token in tokens[span[0] : span[1]]) or "it"
        slot = Token(name, QuestionEntity(0, 1, name, (), 0, True))
        whole = [*tokens[: span[0]], slot, *tokens[span[1] :]]
        ways = self.from_entity(whole, span[0], max_steps=max_steps, starts=some)
        return [replace(way, start=group) for way in ways]

    def noun_nearness(self, noun: Sequence[Token]) -> Array:
        """Return how near a noun is to each class; zeros for none."""
        words = " ".join(token.word for token in noun if token.word)
        return self.classes.nearness(words) if words else np.zeros(len(self.classes.labels))


def best_by_class(ways: Sequence[Way], classes: GraphClasses) -> dict[int, Way]:
    """Return the likeliest walk to each class."""
    by_class: dict[int, list[Way]] = defaultdict(list)
    for way in ways:
        by_class[classes.end_of(way.labels)].append(replace(way, log=way.log - detour_cost(way, classes)))
    return {group: likeliest(of_one) for group, of_one in by_class.items()}


def detour_cost(way: Way, classes: GraphClasses) -> float:
    """Return how much less likely it makes a walk that it leads to things of one class more than once."""
    ends = classes.of_label[list(way.labels)].tolist()
    return DETOUR_COST * (len(ends) - len({*ends}))


def likeliest(ways: Sequence[Way]) -> Way:
    """Return the likeliest of some walks, with its share among them."""
    shares = softmax(np.array([way.log for way in ways]))
    best = int(np.argmax(shares))
    return replace(ways[best], share=float(shares[best]))


def likeliest_classes(near: Array, most: int, margin: float = 0.5) -> list[int]:
    """Return the classes nearest to a noun, the nearest first."""
    order = np.argsort(-near, kind="stable")[:most].tolist()
    return [group for group in order if near[group] >= near[order[0]] - margin and near[group] > 0]
