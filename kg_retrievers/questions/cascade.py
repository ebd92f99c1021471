"""Question -> Pattern by the first that is sure: a near example, the form, zero-shot, or a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableLambda

from kg_retrievers.core.other_graph import on_index
from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError, SearchBudgetError
from kg_retrievers.graph import Known, Pattern, readable
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, check_index, linker_of, question_entities
from kg_retrievers.questions.examples import ExamplePatternGenerator, FilledExample
from kg_retrievers.questions.llm import SHOTS, LLMPatternGenerator
from kg_retrievers.questions.question_forms import QuestionFormGenerator
from kg_retrievers.questions.zero_shot import ZeroShotPatternGenerator

#: The distance up to which an example is taken. Chosen by `benchmarks/example_distance.py`: up to .2, examples are
#: right more often than the zero-shot pattern (98 and 95 %), beyond .3 less often (67 and 88 %).
EXAMPLE_DISTANCE = 0.2

#: Ours. The confidence from which on no language model is asked.
SURE = 0.8


def is_near(example: FilledExample) -> bool:
    """Whether an example is taken: its question is at most `EXAMPLE_DISTANCE` away, and the entities fit."""
    return example.fits and example.distance <= EXAMPLE_DISTANCE


def is_sure(pattern: Pattern) -> bool:
    """Whether no language model need be asked: the confidence is `SURE`, and the pattern covers the question."""
    return pattern.confidence is not None and pattern.confidence >= SURE and not pattern.unplaced


class CascadePatternGenerator(GeneratorRunnable[Mapping[str, Any], Pattern]):
    """Takes the pattern of an example where one is near, else the zero-shot one, else that of a language model.

    A question that needs an operation, by its form, is read by `QuestionFormGenerator` in place of the zero-shot one.

    The language model, if there is one, is asked where the pattern is not sure (`is_sure`) or no entity is found; the
    nearest examples are shown to it. Without one, the likelier of the zero-shot pattern and that of a more distant
    example is taken, and its confidence says how likely it is right; where the two agree, they are wrong together only
    if both are wrong. The source of the pattern says who wrote it.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with patterns, or the generator made of them, if there are some.
        linker: Finds the entities of a question where none are given.
        shots: How many worked examples the language model is shown; see `LLMPatternGenerator`.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or `examples` are given and none has a pattern.
        EntityLinkingError: From `invoke`, if no entity is found, or none with facts, and there is no language model.
        LowConfidenceError: From `invoke`, if an operation is not understood, and there is no language model.
        SearchBudgetError: From `invoke`, if the question is about all entities of a type of a connected graph, and
            there is no language model.
        PatternParseError: From `invoke`, if the language model's second reply is unreadable, too.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | ExamplePatternGenerator | None = None,
        linker: EntityLinker | None = None,
        shots: int = SHOTS,
    ) -> None:
        """Make the generators."""
        check_index(type(self).__name__, index)
        self.linker = linker or linker_of(index)
        if examples is not None and not isinstance(examples, ExamplePatternGenerator):
            examples = ExamplePatternGenerator(index, examples, linker=self.linker)
        self.examples = examples
        self.zero_shot: Runnable[Any, Pattern] = ZeroShotPatternGenerator(index, linker=self.linker)
        self.forms = QuestionFormGenerator(index, linker=self.linker)
        self.model = None if llm is None else LLMPatternGenerator(llm, examples=examples, index=index, shots=shots)
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the cascade over another graph, with the patterns of the same examples."""
        moved = copy(self)
        moved.linker = self.linker.with_index(index)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.zero_shot, moved.forms = on_index(self.zero_shot, index), self.forms.with_index(index)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Ask the language model where the others are not sure."""
        try:
            pattern = yield from self._without_model(input)
        except (EntityLinkingError, LowConfidenceError, SearchBudgetError):
            if self.model is None:
                raise
        else:
            if self.model is None or is_sure(pattern):
                return pattern
        by_model: Pattern = yield Call(self.model, input)
        return by_model

    def _without_model(self, input: Mapping[str, Any]) -> Body[Pattern]:
        """Take a near example, else the zero-shot pattern, unless that of a more distant example is likelier."""
        try:
            entities = yield Call(RunnableLambda(self._entities), input)
        except EntityLinkingError:
            named_nothing: Pattern | None = yield Call(RunnableLambda(self._by_form), {**input, "entities": []})
            if named_nothing is None:
                raise
            return named_nothing
        asked = {**input, "entities": entities}
        example: FilledExample | None = None
        if self.examples:
            example = yield Call(RunnableLambda(self._nearest), asked)
        if example and is_near(example):
            return example.pattern
        by_form: Pattern | None = yield Call(RunnableLambda(self._by_form), asked)
        if by_form is not None:
            return by_form
        try:
            zero_shot: Pattern = yield Call(self.zero_shot, asked)
        except EntityLinkingError:
            if example is None:
                raise
            return example.pattern
        return _likelier(zero_shot, example.pattern) if example else zero_shot

    def _entities(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        found: list[QuestionEntity] | None = input.get("entities")
        return found or question_entities(self.linker, input["question"], input.get("seed_entities") or ())

    def _by_form(self, input: Mapping[str, Any]) -> Pattern | None:
        """Return the pattern of a question that needs an operation; None for another one."""
        return self.forms.read(input["question"], input["entities"])

    def _nearest(self, input: Mapping[str, Any]) -> FilledExample | None:
        """Return the nearest example; None where the question has too few entities for any."""
        assert self.examples
        try:
            return next(self.examples.nearest(input))
        except EntityLinkingError:
            return None


def _likelier(zero_shot: Pattern, example: Pattern) -> Pattern:
    """Return the pattern with the higher confidence; where both ask for the same, it is that of both together."""
    first, second = zero_shot.confidence or 0.0, example.confidence or 0.0
    if _facts(zero_shot) == _facts(example):
        return replace(zero_shot, confidence=1 - (1 - first) * (1 - second))
    return example if second > first else zero_shot


def _facts(pattern: Pattern) -> frozenset[tuple[str, ...]]:
    """Return the triples of a pattern as texts, whatever its unknowns are called."""
    texts = ([readable(term.text) if isinstance(term, Known) else "?" for term in triple] for triple in pattern.triples)
    return frozenset(map(tuple, texts))
