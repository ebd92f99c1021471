"""Question -> Reading by the first that is sure: a near example, the question's form, its words, a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import log
from typing import Any, Literal, Self

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel

from kg_retrievers.algorithms.logistic import LogisticPrior, fit_logistic
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError, SearchBudgetError
from kg_retrievers.graph import Known, Pattern, readable
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, check_index, linker_of, question_entities
from kg_retrievers.questions.clock import Clock, in_dates, is_relative
from kg_retrievers.questions.examples import ExamplePatternGenerator, FilledExample
from kg_retrievers.questions.llm import SHOTS, LLMPatternGenerator
from kg_retrievers.questions.question_forms.generator import QuestionFormGenerator
from kg_retrievers.questions.reading import PatternWalk, Reading, walks_of
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.sentence_encoder import EmbeddingsEncoder

#: The distance up to which an example is taken. Chosen by `benchmarks/example_distance.py`: up to .2, examples are
#: right more often than the zero-shot pattern (98 and 95 %), beyond .3 less often (67 and 88 %).
EXAMPLE_DISTANCE = 0.2

#: When a language model is asked for the pattern: if nothing else is sure, or always.
AsksModel = Literal["unsure", "always"]


class QuestionReader(GeneratorRunnable[Mapping[str, Any], Reading]):
    """Reads questions about a graph as patterns.

    The first that is sure writes the pattern, and `pattern.source` names it:

    1. "examples": your nearest labelled question, if its distance is at most `EXAMPLE_DISTANCE` and the entities fit.
    2. "question-forms": the form of a question that needs an operation, such as "how many".
    3. "zero-shot": the walks that the words of the question ask for. A more distant example is taken if it is likelier.
       If both agree, they are wrong together only if both are wrong.
    4. "llm": the language model, if there is one and none of these is sure (`Reading.is_sure`), or no entity is found.
       It is shown the nearest examples.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with patterns, or the generator made of them, if there are some.
        linker: Finds the entities of a question if none are given.
        asks_model: When the language model is asked.
        shots: How many worked examples the language model is shown; see `LLMPatternGenerator`.
        encoder: Embeddings for sentences in place of the package's encoder, such as `local_embeddings(model)`. Ranking
            and confidence stay fitted to the package's encoder.
        clock: Gives today's date for "last year" and the like, as `datetime.date.today` does. Without it a question
            with such a time is refused.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or `examples` are given and none has a pattern.
        EntityLinkingError: From `invoke`, if no entity is found, or none with facts, and there is no language model.
        LowConfidenceError: From `invoke`, if an operation is not understood, and there is no language model.
        SearchBudgetError: From `invoke`, if the question is about all entities of a type of a connected graph, and
            there is no language model.
        PatternParseError: From `invoke`, if the language model's second reply is unreadable, too.

    Example:
        >>> from kg_retrievers import GraphIndex, default_embeddings
        >>> from kg_retrievers.sample import load_graph
        >>> reader = QuestionReader(GraphIndex.build(load_graph(), default_embeddings()))
        >>> reader.read("Who directed Her?").pattern.to_dict()["triples"]
        [[{'known': 'Her', 'entity': 'Her'}, 'directed_by', {'unknown': 'entity 1'}]]
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | ExamplePatternGenerator | None = None,
        linker: EntityLinker | None = None,
        asks_model: AsksModel = "unsure",
        shots: int = SHOTS,
        encoder: Embeddings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make the generators."""
        check_index(type(self).__name__, index)
        self.clock = clock
        self.linker = linker or linker_of(index)
        if examples is not None and not isinstance(examples, ExamplePatternGenerator):
            examples = ExamplePatternGenerator(index, examples, linker=self.linker)
        self.examples = examples
        read_by = EmbeddingsEncoder(encoder) if encoder else None
        self.zero_shot = ZeroShotPatternGenerator(index, linker=self.linker, encoder=read_by)
        if self.examples and not index.is_connected:
            self.zero_shot.trust = learned_trust(self.zero_shot, self.examples.questions)
        self.forms = QuestionFormGenerator(self.zero_shot)
        self.model = None if llm is None else LLMPatternGenerator(llm, examples=examples, index=index, shots=shots)
        self.asks_model = asks_model
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the reader over another graph, with the patterns of the same examples."""
        moved = copy(self)
        moved.linker = self.linker.with_index(index)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.zero_shot = self.zero_shot.with_index(index)
        moved.forms = QuestionFormGenerator(moved.zero_shot)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def read(self, question: str, seed_entities: Sequence[str] = (), **walks: int) -> Reading:
        """Return the reading of a question.

        Args:
            question: The question.
            seed_entities: The keys of its entities; found in the question if none are given.
            **walks: `walks`, to read walks alone without operations, and so many of them in pattern and alternatives;
                `max_hops`, the most steps of these.
        """
        return self.invoke({"question": question, "seed_entities": list(seed_entities), **walks})

    def body(self, input: Mapping[str, Any]) -> Body[Reading]:
        """Ask the language model if the others are not sure."""
        if self.model is None or self.asks_model == "unsure":
            try:
                reading = yield from self._without_model(input)
            except (EntityLinkingError, LowConfidenceError, SearchBudgetError):
                if self.model is None:
                    raise
            else:
                if self.model is None or reading.is_sure:
                    return reading
        by_model: Pattern = yield Call(self.model, input)
        return Reading(by_model)

    def _without_model(self, input: Mapping[str, Any]) -> Body[Reading]:
        """Take a near example, else the zero-shot pattern, unless that of a more distant example is likelier."""
        unlinked: EntityLinkingError | None = None
        try:
            entities = yield Call(self.zero_shot.entities, input)
        except EntityLinkingError as error:
            entities, unlinked = [], error
        question, entities = yield Call(self._asked_part, (input["question"], entities))
        names = [(slot.start, slot.end) for slot in entities]
        if is_relative(question, names):
            return (yield from self._without_model({**input, "question": self._dated(question, names)}))
        asked = {**input, "question": question, "entities": entities}
        if not entities:
            named_nothing: Pattern | None = yield Call(self._by_form, asked)
            if named_nothing is None:
                raise unlinked or EntityLinkingError(
                    f"QuestionReader: {question!r:.200} names classes of the graph, but no entity. Name an entity, or "
                    "give seed_entities=."
                )
            return Reading(named_nothing)
        example: FilledExample | None = None
        if self.examples:
            example = yield Call(self._nearest, asked)
        if example and example.fits and example.distance <= EXAMPLE_DISTANCE:
            return Reading(example.pattern)
        by_form: Pattern | None = yield Call(self._by_form, asked)
        if by_form is not None:
            return Reading(by_form)
        try:
            zero_shot: Reading = yield Call(self.zero_shot.read, asked)
        except EntityLinkingError:
            if example is None:
                raise
            return Reading(example.pattern)
        return _likelier(zero_shot, example.pattern) if example else zero_shot

    def _dated(self, question: str, names: Sequence[tuple[int, int]]) -> str:
        """Return a question with dates in place of times relative to today, but not in the names of its entities."""
        dated = in_dates(question, self.clock(), names) if self.clock else question
        if dated == question:
            raise LowConfidenceError(
                f"QuestionReader: {question!r:.200} names a time relative to today"
                f"{', which is not understood' if self.clock else ', and there is no clock'}.",
                0.0,
                hint_python="Write the date, or give clock=datetime.date.today to QuestionReader.",
                hint_shell="Write the date.",
            )
        return dated

    def _asked_part(self, asked: tuple[str, list[QuestionEntity]]) -> tuple[str, list[QuestionEntity]]:
        return self.zero_shot.asked_part(*asked)

    def _by_form(self, input: Mapping[str, Any]) -> Pattern | None:
        """Return the pattern of a question that needs an operation; None for another one, or if walks are wanted."""
        return None if "walks" in input else self.forms.read(input["question"], input["entities"])

    def _nearest(self, input: Mapping[str, Any]) -> FilledExample | None:
        """Return the nearest example; None if the question has too few entities for any."""
        assert self.examples
        try:
            return next(self.examples.nearest(input))
        except EntityLinkingError:
            return None


def _likelier(zero_shot: Reading, example: Pattern) -> Reading:
    """Return the reading with the higher confidence; if both ask for the same, it is that of both together."""
    first, second = zero_shot.confidence or 0.0, example.confidence or 0.0
    if _facts(zero_shot.pattern) == _facts(example):
        surer = replace(zero_shot.pattern, confidence=1 - (1 - first) * (1 - second))
        return replace(zero_shot, pattern=surer)
    return Reading(example, (zero_shot.pattern,)) if second > first else zero_shot


def _facts(pattern: Pattern) -> frozenset[tuple[str, ...]]:
    """Return the triples of a pattern as texts, whatever its unknowns are called."""
    texts = ([readable(term.text) if isinstance(term, Known) else "?" for term in triple] for triple in pattern.triples)
    return frozenset(map(tuple, texts))


def _steps(walks: Sequence[PatternWalk], index: GraphIndex) -> list[list[tuple[int, bool]]]:
    """Return the steps of walks by the ids of the nearest relations, sorted."""
    names = [name for walk in walks for name, _ in walk.steps]
    ids = iter([nearest.ids[0] if len(nearest.ids) else -1 for nearest in index.nearest_relations(names, 1)])
    return sorted([(int(next(ids)), backward) for _, backward in walk.steps] for walk in walks)


#: How many examples tell how well the zero-shot generator reads a graph, and the fewest that tell anything.
TRUSTED, FEWEST = 30, 5

#: How much the logits of its confidence differ between graphs, as a variance, and the greatest shift.
VARIANCE, MOST_TRUST = 0.5, 5.0


def learned_trust(zero_shot: ZeroShotPatternGenerator, examples: Sequence[Question]) -> float:
    """Return what is to be added to the logit of the confidence on a graph, by how many examples are read rightly.

    Args:
        zero_shot: The generator of the graph.
        examples: Labelled questions. Those whose pattern is more than walks are passed over.
    """
    logits, rights = list[float](), list[bool]()
    for example in examples[:TRUSTED]:
        wanted = walks_of(example.pattern) if example.pattern else None
        try:
            slots = question_entities(zero_shot.linker, example.text, example.seed_entities)
            text, slots = zero_shot.asked_part(example.text, slots)
            read = zero_shot.read({"question": text, "entities": slots}) if wanted and slots else None
        except EntityLinkingError:
            continue
        if read and wanted and read.confidence and read.confidence < 1:
            logits.append(log(read.confidence / (1 - read.confidence)))
            found = walks_of(read.pattern) or []
            rights.append(_steps(found, zero_shot.index) == _steps(wanted, zero_shot.index))
    if len(logits) < FEWEST:
        return 0.0
    prior = LogisticPrior([0.0], [VARIANCE])
    (shift,) = fit_logistic(np.ones((len(logits), 1)), np.array(rights, float), prior, known=np.array(logits))
    return max(-MOST_TRUST, min(float(shift), MOST_TRUST))
