"""Question -> relation paths without examples and without a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, linker_of, question_entities
from kg_retrievers.patterns.zero_shot import ZeroShotPatternGenerator

#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class ZeroShotRelationPaths(Runnable[Mapping[str, Any], Rows]):
    """Takes the walks that the question most likely asks for: see `ZeroShotPatternGenerator.understand`.

    The score of a relation path is the probability of its walk, in (0, 1]. The first one says how sure it is, which
    words of the question it leaves out, and which relations came nearest. Where the zero-shot pattern joins several
    entities of the question in its target, each gets the relation path that leads there, with one score.

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

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Rows:
        """Return the relation paths for `{"question", "seed_entities", "beam_width", "max_hops"}`."""
        return self._call_with_config(self._propose, input, config)

    def _propose(self, input: Mapping[str, Any]) -> Rows:
        slots = self._slots(input["question"], input["seed_entities"])
        if len(slots) > 1:
            pattern = self.generator.invoke({"question": input["question"], "entities": slots})
            if joined := self._joined(pattern, slots, input["max_hops"]):
                return joined
        understood = self.generator.understand(input["question"], slots, max_hops=input["max_hops"])
        order = sorted(slots, key=lambda slot: slot.start)
        rows: Rows = [
            {"relations": self._steps(walk.labels), "score": min(walk.probability, 1.0), "from": "zero-shot"}
            | ({"entity": order.index(walk.slot)} if len(slots) > 1 else {})
            for walk in understood.walks
            if walk.probability > 0
        ]
        best = sorted(rows, key=lambda row: -row["score"])[: input["beam_width"]]
        return _saying(best, understood.confidence, understood.unplaced, understood.nearest)

    def _joined(self, pattern: Pattern, slots: Sequence[QuestionEntity], max_hops: int) -> Rows:
        """Return a relation path from each of several entities to the target of a pattern; none where one has none."""
        score = pattern.confidence or MIN_SCORE
        rows: Rows = []
        for position, slot in enumerate(sorted(slots, key=lambda slot: slot.start)):
            named = [node for node in pattern.nodes if isinstance(node, Known) and node.text == slot.name]
            if named:
                steps = _steps_to_target(pattern, named[0])
                if not 1 <= len(steps) <= max_hops:
                    return []
                rows.append({"relations": steps, "score": score, "from": "zero-shot", "entity": position})
        return _saying(rows, score, pattern.unplaced, pattern.nearest) if len(rows) > 1 else []

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


def _saying(rows: Rows, confidence: float, unplaced: Sequence[str], nearest: Sequence[str]) -> Rows:
    """Let the first relation path say how sure all are."""
    said = {"confidence": confidence, "unplaced": list(unplaced), "nearest": list(nearest)}
    return [rows[0] | said, *rows[1:]] if rows else []


def _steps_to_target(pattern: Pattern, start: Known) -> list[list[str]]:
    """Return the steps of the walk from a node to the target of a pattern without cycles; none if there is no walk."""
    waiting: list[tuple[Term, list[list[str]]]] = [(start, [])]
    seen: set[Term] = {start}
    for here, steps in waiting:
        if isinstance(here, Unknown) and here.name == pattern.target:
            return steps
        for head, relation, tail in pattern.triples:
            there = tail if here == head else head
            if here in (head, tail) and there not in seen and isinstance(relation, Known):
                seen.add(there)
                step = [relation.text, "forward" if here == head else "backward"]
                waiting.append((there, [*steps, step]))
    return []
