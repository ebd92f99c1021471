"""What pattern generators without a language model share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from langchain_core.runnables import RunnableConfig

from kg_retrievers.core.untraced import UntracedRunnable
from kg_retrievers.graph import Pattern
from kg_retrievers.index import (
    EntityLinker,
    GraphIndex,
    QuestionEntity,
    check_index,
    linker_of,
    question_entities,
)


class LinkingGenerator(UntracedRunnable[Mapping[str, Any], Pattern]):
    """A generator without a language model, which starts from the entities of a question."""

    calls_model = False

    def __init__(self, index: GraphIndex, linker: EntityLinker | None) -> None:
        """Take the index and what finds entities in it."""
        check_index(type(self).__name__, index)
        self.index = index
        self.linker = linker or linker_of(index)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph."""
        moved = copy(self)
        moved.index, moved.linker = index, self.linker.with_index(index)
        return moved

    def run_untraced(self, input: Mapping[str, Any], config: RunnableConfig) -> Pattern:
        """Return the pattern of `{"question", "seed_entities"}`; "entities" may hold them as they were found."""
        return self._generate(input)

    @abstractmethod
    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        """Return the pattern of the input of `invoke`."""

    def _slots(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        """Return the entities of a question, the likeliest first: those given, else those found in it."""
        found: list[QuestionEntity] | None = input.get("entities")
        return found or question_entities(self.linker, input["question"], input.get("seed_entities") or ())
