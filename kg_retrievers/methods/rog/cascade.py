"""Question -> relation paths: by the first that is sure of examples, walks, a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel

from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.index import EntityLinker, GraphIndex
from kg_retrievers.methods.rog.proposals import NEIGHBORS, ExampleRelationPaths, LLMRelationPaths
from kg_retrievers.methods.rog.zero_shot import ZeroShotRelationPaths
from kg_retrievers.questions.cascade import EXAMPLE_DISTANCE, SURE
from kg_retrievers.questions.examples import confidence_at

Rows = list[dict[str, Any]]


class CascadeRelationPaths(GeneratorRunnable[Mapping[str, Any], Rows]):
    """Proposes relation paths by the first that is sure, in the order of `CascadePatternGenerator`.

    Those of examples are taken if they are as likely right as an example at `EXAMPLE_DISTANCE`, else the zero-shot
    ones, unless the former are likelier. If the confidence is below `SURE`, or words of the question are left over, the
    language model is asked, if there is one.

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
        self.zero_shot = ZeroShotRelationPaths(index, linker=linker)
        self.model = None if llm is None else LLMRelationPaths(index, llm)
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the cascade over another graph, with what the examples taught."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.zero_shot = self.zero_shot.with_index(index)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Rows]:
        """Ask the language model where the others are not sure."""
        rows = yield from self._without_model(input)
        if self.model is None or (_confidence(rows) >= SURE and not rows[0].get("unplaced")):
            return rows
        by_model: Rows = yield Call(self.model, input)
        return by_model

    def _without_model(self, input: Mapping[str, Any]) -> Body[Rows]:
        by_examples: Rows = []
        if self.examples:
            by_examples = yield Call(self.examples, input)
        if _confidence(by_examples) >= confidence_at(EXAMPLE_DISTANCE):
            return by_examples
        try:
            zero_shot: Rows = yield Call(self.zero_shot, input)
        except EntityLinkingError:
            return by_examples
        return max(zero_shot, by_examples, key=_confidence)


def _confidence(rows: Rows) -> float:
    """Return how sure the best relation path is; 0 where there is none."""
    return rows[0].get("confidence", 0.0) if rows else 0.0
