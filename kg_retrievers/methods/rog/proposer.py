"""Question -> relation paths by the first that is sure: examples, the reading of the question, a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel

from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, question_entities
from kg_retrievers.methods.rog.proposals import NEIGHBORS, ExampleRelationPaths, LLMRelationPaths
from kg_retrievers.questions.examples import confidence_at
from kg_retrievers.questions.reader import EXAMPLE_DISTANCE, QuestionReader
from kg_retrievers.questions.reading import SURE, Reading, walks_of

#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class RelationPathProposer(GeneratorRunnable[Mapping[str, Any], Rows]):
    """Proposes relation paths, in the order of `QuestionReader`.

    Those of examples are taken if they are as likely right as an example at `EXAMPLE_DISTANCE`. If not, the walks of
    the question's reading are, unless the former are likelier. If the confidence is below `SURE`, or words of the
    question are left over, the language model is asked, if there is one.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with answers, if there are some.
        neighbors: How many templates of the examples propose relation paths.
        linker: Finds the entities of questions.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or no example has an entity and an answer in the graph.
        RelationPathParseError: From `invoke`, if the language model's second reply is unreadable, too.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        neighbors: int = NEIGHBORS,
        linker: EntityLinker | None = None,
    ) -> None:
        """Make the three."""
        self.examples: ExampleRelationPaths | None = None
        if examples is not None:
            self.examples = ExampleRelationPaths(index, examples, neighbors=neighbors, linker=linker)
        self.reader = QuestionReader(index, linker=linker)
        self.model = None if llm is None else LLMRelationPaths(index, llm)
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph, with the relation paths of the same examples."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.reader = self.reader.with_index(index)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Rows]:
        """Return the relation paths for `{"question", "masked_question", "seed_entities", "beam_width", ...}`."""
        rows: Rows = []
        if self.examples:
            rows = yield Call(self.examples, input)
        if _confidence(rows) < confidence_at(EXAMPLE_DISTANCE):
            try:
                read: Rows = yield Call(self._read, input)
                rows = max(read, rows, key=_confidence)
            except EntityLinkingError:
                pass
            if self.model is not None and (_confidence(rows) < SURE or rows[0].get("unplaced")):
                rows = yield Call(self.model, input)
        return rows

    def _read(self, input: Mapping[str, Any]) -> Rows:
        """Return the walks of the reading as relation paths."""
        question, slots = input["question"], self._slots(input["question"], input["seed_entities"])
        reading: Reading = self.reader.invoke({
            "question": question, "entities": slots, "walks": input["beam_width"], "max_hops": input["max_hops"]
        })  # fmt: skip
        order = [slot.name for slot in sorted(slots, key=lambda slot: slot.start)]
        rows: Rows = []
        for pattern in (reading.pattern, *reading.alternatives):
            score = min(max(pattern.confidence or 0.0, MIN_SCORE), 1.0)
            for start, steps in walks_of(pattern) or ():
                relations = [[relation, "backward" if backward else "forward"] for relation, backward in steps]
                row = {"relations": relations, "score": score, "from": "zero-shot"}
                rows.append(row | ({"entity": order.index(start.text)} if len(slots) > 1 else {}))
        best = reading.pattern
        rows[0] |= {"confidence": best.confidence}
        rows[0] |= {name: list(getattr(best, name)) for name in ("unplaced", "nearest", "lacking")}
        return rows

    def _slots(self, question: str, seeds: Sequence[str]) -> list[QuestionEntity]:
        """Return the entities as the question names them, unless others are given."""
        linker = self.reader.linker
        try:
            found = question_entities(linker, question)
        except EntityLinkingError:
            found = []
        keys = dict.fromkeys(key for entity in found for key in entity.entities[: entity.best])
        return found if list(keys) == list(seeds) else question_entities(linker, question, seeds)


def _confidence(rows: Rows) -> float:
    """Return how sure the best relation path is; 0 if there is none."""
    return rows[0].get("confidence", 0.0) if rows else 0.0
