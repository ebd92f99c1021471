"""Question -> Cypher by the first that is sure: an example that is near, a zero-shot pattern, a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

from langchain_core.language_models import BaseLanguageModel

from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError, SearchBudgetError
from kg_retrievers.graph import Pattern
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.sg_rag.llm_writer import LLMCypherWriter
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter, Queries, TemplateCypherWriter
from kg_retrievers.questions.reader import QuestionReader
from kg_retrievers.questions.reading import Reading


class CascadeCypherWriter(GeneratorRunnable[Mapping[str, Any], Queries]):
    """Writes the query of the first that is sure, in the order of `QuestionReader`.

    Where an example is near, `TemplateCypherWriter` fills its template and those of the next nearest; else
    `PatternCypherWriter` writes the zero-shot pattern. If neither is sure, `LLMCypherWriter` asks the language model,
    which is shown the nearest examples; without one, the likelier of the two is taken.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with patterns or answers, if there are some.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or no example has a pattern, or an answer that a walk
            reaches.
        EntityLinkingError: From `invoke`, if no entity is found and there is no language model.
        LowConfidenceError: From `invoke`, if an operation is not understood and there is no language model.
        SearchBudgetError: From `invoke`, if a query takes more than a connected graph or a database gives, and there is
            no language model.
        CypherGenerationError: From `invoke`, if the language model's second reply cannot be used either.
    """

    checks_queries: ClassVar[bool] = True

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
    ) -> None:
        """Make the writers."""
        self.templates = None if examples is None else TemplateCypherWriter(index, examples)
        known = self.templates.generator if self.templates else None
        self.patterns = PatternCypherWriter(index, QuestionReader(index, examples=known))
        self.model = None if llm is None else LLMCypherWriter(index, llm, examples=examples or ())
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the cascade over another graph, with the templates of the same examples."""
        moved = copy(self)
        moved.templates = self.templates and self.templates.with_index(index)
        moved.patterns = self.patterns.with_index(index)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Ask the language model where the others are not sure."""
        try:
            reading: Reading = yield Call(self.patterns.generator, input)
            if self.model is None or reading.is_sure:
                return (yield from self._write(reading.pattern, input))
        except (EntityLinkingError, LowConfidenceError, SearchBudgetError):
            if self.model is None:
                raise
        by_model: Queries = yield Call(self.model, input)
        return by_model

    def _write(self, pattern: Pattern, input: Mapping[str, Any]) -> Body[Queries]:
        if self.templates and pattern.source == "examples":
            filled: Queries = yield Call(self.templates, input)
            return filled
        return list(self.patterns.write(pattern, input["executor"], input["entities"]))
