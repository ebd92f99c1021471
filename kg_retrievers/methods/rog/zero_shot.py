"""Question -> relation paths without examples and without a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, linker_of, question_entities
from kg_retrievers.questions.zero_shot import ZeroShotPatternGenerator

#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class ZeroShotRelationPaths(Runnable[Mapping[str, Any], Rows]):
    """Takes the walks that the question most likely asks for: see `ZeroShotPatternGenerator.understand`.

    From one entity, the score of a relation path is the probability of its walk, in (0, 1]. Where walks from several
    entities meet, each entity gets one path, whose score is the confidence. The first path says how sure all are, which
    words of the question they leave out, which relations came nearest, and what the entity lacks.

    Args:
        index: The indexed graph.
        linker: Finds the entities of questions.

    Raises:
        EntityLinkingError: From `invoke`, if the entities of the question have no facts.
    """

    calls_model = False

    def __init__(self, index: GraphIndex, *, linker: EntityLinker | None = None) -> None:
        """Take the index and what ranks walks in it."""
        self.index = index
        self.linker = linker or linker_of(index)
        self.generator = ZeroShotPatternGenerator(index, linker=self.linker)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph."""
        return type(self)(index, linker=self.linker.with_index(index))

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Rows:
        """Return the relation paths for `{"question", "seed_entities", "beam_width", "max_hops"}`."""
        return self._call_with_config(self._propose, input, config)

    def _propose(self, input: Mapping[str, Any]) -> Rows:
        slots = self._slots(input["question"], input["seed_entities"])
        understood = self.generator.understand(
            input["question"], slots, max_hops=input["max_hops"], max_walks=input["beam_width"]
        )
        order = sorted(slots, key=lambda slot: slot.start)
        joined = len(understood.arms) > 1
        rows: Rows = []
        for walk in understood.arms if joined else understood.walks:
            score = understood.confidence if joined else walk.probability
            row = {"relations": self._steps(walk.labels), "score": min(max(score, MIN_SCORE), 1.0), "from": "zero-shot"}
            rows.append(row | ({"entity": order.index(walk.slot)} if len(slots) > 1 else {}))
        rows[0] |= {
            "confidence": understood.confidence,
            "unplaced": list(understood.unplaced),
            "nearest": list(understood.nearest),
            "lacking": list(understood.lacking),
        }
        return rows

    def _slots(self, question: str, seeds: Sequence[str]) -> list[QuestionEntity]:
        """Return the entities as the question names them, unless others are given."""
        try:
            found = question_entities(self.linker, question)
        except EntityLinkingError:
            found = []
        keys = dict.fromkeys(key for entity in found for key in entity.entities[: entity.best])
        return found if list(keys) == list(seeds) else question_entities(self.linker, question, seeds)

    def _steps(self, labels: Sequence[int]) -> list[list[str]]:
        relations = self.index.graph.relations
        return [[relations[relation_of(label)], "backward" if is_backward(label) else "forward"] for label in labels]
