"""Question -> Reading by the first that is sure: a near example, the question's form, its words, a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from math import log
from typing import Any, Literal, Self, get_args

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from pydantic import BaseModel, Field

from kg_retrievers.algorithms.logistic import LogisticPrior, fit_logistic
from kg_retrievers.core.stages import MIN_CONFIDENCE, Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question
from kg_retrievers.errors import (
    EntityLinkingError,
    InvalidArgumentError,
    LowConfidenceError,
    NoEvidenceError,
    PatternError,
    RefusalError,
    ReplyError,
    SearchBudgetError,
    named_arguments,
)
from kg_retrievers.graph import Known, Pattern, readable
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity, check_index, linker_of, question_entities
from kg_retrievers.questions.carried_out import READERS, carried_out
from kg_retrievers.questions.choosing import (
    MOST_LINES,
    MOST_READINGS,
    Choice,
    ReadingChooser,
    in_words,
    reading_in_words,
    sample_answers,
    single_steps,
)
from kg_retrievers.questions.clock import Clock, in_dates, is_relative
from kg_retrievers.questions.examples import ExamplePatternGenerator, FilledExample
from kg_retrievers.questions.left_out import left_out
from kg_retrievers.questions.llm import SHOTS, LLMPatternGenerator
from kg_retrievers.questions.question_forms.generator import QuestionFormGenerator
from kg_retrievers.questions.reading import PatternWalk, Reading, type_nouns, walks_of
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.sentence_encoder import EmbeddingsEncoder

#: The distance up to which an example is taken. Chosen by `benchmarks/example_distance.py`: up to .2, examples are
#: right more often than the zero-shot pattern (98 and 95 %), beyond .3 less often (67 and 88 %).
EXAMPLE_DISTANCE = 0.2

#: The share of the confidence that stays if the pattern leaves out words of the question: less than the default
#: threshold, so that the question is refused.
LEFT_OUT = 0.45

#: When a language model is asked: if nothing else is sure, always or never.
AsksModel = Literal["unsure", "always", "never"]

#: The most times that a language model is asked to choose.
MAX_SAMPLES = 15

#: How many of our readings a language model must choose twice, if we are not sure of the first of them. All others it
#: must choose three times: one that chooses blindly does so for 1 in 144 questions.
LIKELY = 3

#: How likely a reading that a language model means is right: one that is also ours, another one that it chooses again,
#: and one that it writes and then chooses. Of scripted models of six qualities, 488 of 491 and 79 of 86 were right
#: (`benchmarks/language_model_modes.py --fit`). The last one is a guess. No published model was measured.
CHOSEN, CHOSEN_AGAIN, WRITTEN = 0.99, 0.92, 0.8


class _UndatedError(LowConfidenceError):
    """A question names a time relative to today, which nobody knows: a language model neither."""


class ReaderFields(BaseModel):
    """The fields of retrievers that say how a language model reads a question, fixed once the retriever is made."""

    #: When the language model is asked, if there is one: "unsure", if neither an example nor the words of the question
    #: are sure, "always" or "never".
    asks_model: AsksModel = Field(default="unsure", frozen=True)
    #: Whether it first chooses among readings, and writes one only if none is meant.
    chooses: bool = Field(default=True, frozen=True)
    #: How often it is asked to choose, each time in another order. From 2 on, most must agree.
    samples: int = Field(default=1, ge=1, le=MAX_SAMPLES, strict=True, frozen=True)
    #: How many worked examples it is shown to write. Yours come first.
    shots: int = Field(default=SHOTS, ge=1, strict=True, frozen=True)


def reader_arguments(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some fields that are `ReaderFields`, as arguments of `QuestionReader`."""
    return {name: fields[name] for name in ReaderFields.model_fields if name in fields}


class QuestionReader(GeneratorRunnable[Mapping[str, Any], Reading]):
    """Reads questions about a graph as patterns.

    The first that is sure writes the pattern, and `pattern.source` names it:

    1. "examples": your nearest labelled question, if its distance is at most `EXAMPLE_DISTANCE` and the entities fit.
    2. "question-forms": the form of a question that needs an operation, such as "how many".
    3. "zero-shot": the walks that the words of the question ask for. A more distant example is taken if it is likelier.
       If both agree, they are wrong together only if both are wrong.
    4. The language model, if there is one and none of these is sure (`Reading.is_sure`), or no entity is found.
       "chosen": of up to twelve readings in words, each with two answers, it chooses one. Another one than ours, or one
       that we would refuse, counts only if it is chosen again from the list in another order. "llm": only if none is
       meant, the model writes a pattern. It sees the relations and types near the question and the nearest examples.
       The pattern counts if the graph has its names and if the model chooses it from the list. A model that contradicts
       itself, or sends something unusable, changes nothing.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with patterns, or the generator made of them, if there are some.
        linker: Finds the entities of a question if none are given.
        asks_model: When the language model is asked.
        chooses: Whether it chooses before it writes. If not, what it writes is the reading, without a confidence.
        samples: How often it is asked to choose; from 2 on, more than half of the replies must agree.
        shots: How many worked examples the language model is shown; see `LLMPatternGenerator`.
        encoder: Embeddings for sentences in place of the package's encoder, such as `local_embeddings(model)`. Ranking
            and confidence stay fitted to the package's encoder.
        clock: Gives today's date for "last year" and the like, as `datetime.date.today` does. Without it a question
            with such a time is refused.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or `examples` are given and none has a pattern.
        EntityLinkingError: From `invoke`, if no entity is found, or none with facts, and there is no language model.
        LowConfidenceError: From `invoke`, if an operation is not understood, and there is no language model; or if the
            language model finds that no reading is meant.
        SearchBudgetError: From `invoke`, if the question is about all entities of a type of a connected graph, and
            there is no language model.
        PatternParseError: From `invoke`, if `chooses` is False and the second reply is unreadable, too.

    Example:
        >>> from kg_retrievers import GraphIndex, default_embeddings
        >>> from kg_retrievers.sample import load_graph
        >>> reader = QuestionReader(GraphIndex.build(load_graph(), default_embeddings()))
        >>> reader.read("Who directed Her?").pattern.to_dict()["triples"]
        [[{'known': 'Her', 'entity': 'Her'}, 'directed_by', {'unknown': 'entity 1'}]]
    """

    @named_arguments
    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | ExamplePatternGenerator | None = None,
        linker: EntityLinker | None = None,
        asks_model: AsksModel = "unsure",
        chooses: bool = True,
        samples: int = 1,
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
        if asks_model not in get_args(AsksModel):
            raise InvalidArgumentError(
                f"{type(self).__name__}: asks_model is one of {get_args(AsksModel)}, but got {asks_model!r:.100}."
            )
        if type(samples) is not int or not 1 <= samples <= MAX_SAMPLES:
            raise InvalidArgumentError(
                f"{type(self).__name__}: samples is an integer from 1 to {MAX_SAMPLES}, but got {samples!r:.100}."
            )
        read_by = EmbeddingsEncoder(encoder) if encoder else None
        self.zero_shot = ZeroShotPatternGenerator(index, linker=self.linker, encoder=read_by)
        if self.examples and not index.is_connected:
            self.zero_shot.trust = learned_trust(self.zero_shot, self.examples.questions)
        self.forms = QuestionFormGenerator(self.zero_shot)
        self.model = None if llm is None else LLMPatternGenerator(llm, examples=examples, index=index, shots=shots)
        self.chooser = ReadingChooser(llm) if llm is not None and chooses else None
        self.asks_model, self.samples = asks_model, samples
        self.calls_model = llm is not None and asks_model != "never"
        self.prompts = self.model.prompts if self.model else {}
        if self.chooser:
            self.prompts = {"choice": self.chooser.prompt, **self.prompts}

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
        reading: Reading | None = None
        refusal: RefusalError | None = None
        if self.model is None or self.chooser or self.asks_model != "always":
            try:
                reading = yield from self._without_model(input)
            except _UndatedError:
                raise
            except (EntityLinkingError, LowConfidenceError, SearchBudgetError) as error:
                refusal = error
        sure = reading is not None and reading.is_sure and self.asks_model == "unsure"
        if self.model is None or self.asks_model == "never" or sure:
            return _own(reading, refusal)
        if self.chooser is None:
            by_model: Pattern = yield Call(self.model, input)
            return Reading((yield Call(self._in_units, (input, by_model))))
        return (yield from self._with_model(input, reading, refusal))

    def _with_model(
        self, input: Mapping[str, Any], reading: Reading | None, refusal: RefusalError | None
    ) -> Body[Reading]:
        """Return the reading that the language model chooses or writes; ours if its replies cannot be used."""
        patterns: list[Pattern] = yield Call(self._candidates, (input, reading))
        texts: list[str] = yield Call(self._in_words, patterns)
        meant: int | None = (yield from self._chosen(input["question"], texts)) if patterns else -1
        if meant == -1:
            try:
                written = yield from self._written(input, reading, patterns)
            except LowConfidenceError:
                if isinstance(refusal, EntityLinkingError):  # a greeting, say: nothing was asked of the graph
                    raise refusal from None
                raise
            return written or _own(reading, refusal)
        is_ours = meant == 0 and _passes(reading)
        if not is_ours and meant is not None:
            for turn in range(1, 2 if meant < LIKELY else 3):
                again = yield from self._chosen(input["question"], texts, turn)
                meant = meant if again == meant else None
        if meant is None:
            return _own(reading, refusal)
        chosen: Pattern = yield Call(self._checked, (input, patterns.pop(meant)))
        return _meant(chosen, patterns, CHOSEN if is_ours else CHOSEN_AGAIN)

    def _written(
        self, input: Mapping[str, Any], reading: Reading | None, patterns: Sequence[Pattern]
    ) -> Body[Reading | None]:
        """Return the pattern that the language model writes and then chooses; None if its replies cannot be used.

        Raises:
            LowConfidenceError: If the graph lacks what it names, or nothing fits, or none is meant after all.
        """
        slots: list[QuestionEntity] = yield Call(self._slots, input)
        try:
            pattern: Pattern = yield Call(self.model, {**input, "entities": slots})  # type: ignore[arg-type]
            pattern = yield Call(self._checked, (input, pattern))
        except ReplyError:
            return None
        except (PatternError, RefusalError) as error:
            raise self._nothing_meant(input["question"], reading, error) from error
        if slots and not self._names_one_of(pattern, slots):
            raise self._nothing_meant(input["question"], reading)
        others = [one for one in patterns if one.operation or _facts(one) != _facts(pattern)]
        texts: list[str] = yield Call(self._in_words, [pattern, *others])
        again = yield from self._chosen(input["question"], texts, turn=1)
        if again == -1:
            raise self._nothing_meant(input["question"], reading)
        return _meant(pattern, others, WRITTEN) if again == 0 else None

    def _chosen(self, question: str, texts: Sequence[str], turn: int = 0) -> Body[int | None]:
        """Return the position of the text that the language model chooses, -1 for none, None if it does not say."""
        votes = Counter[int | None]()
        for sample in range(self.samples):
            choice = Choice(question, texts, turn * self.samples + sample)
            vote: int | None = yield Call(self.chooser, choice)  # type: ignore[arg-type]
            votes[vote] += 1
        ((most, count),) = votes.most_common(1)
        return most if 2 * count > self.samples else None

    def _candidates(self, asked: tuple[Mapping[str, Any], Reading | None]) -> list[Pattern]:
        """Return the readings to choose from: ours first, then those by the words alone, then single steps.

        The single steps are those by the relations nearest to the question, also by such as its entity lacks. So a
        model can say what is lacking, and one that chooses blindly hits a wrong answer less often.
        """
        input, reading = asked
        found = [] if reading is None else [reading.pattern, *reading.alternatives]
        steps = list[Pattern]()
        with suppress(EntityLinkingError, LowConfidenceError, SearchBudgetError):
            question, entities = self._asked_part((input["question"], self.zero_shot.entities(input)))
            if len(found) < MOST_READINGS and "walks" not in input:
                words = self.zero_shot.read({**input, "question": question, "entities": entities})
                found += [words.pattern, *words.alternatives]
            plain = {_facts(pattern) for pattern in found if pattern.operation is None}
            every = single_steps(self.zero_shot.index, question, entities)
            steps = [step for step in every if _facts(step) not in plain]
        return _different([*_different(found)[:MOST_READINGS], *steps])[:MOST_LINES]

    def guesses(self, input: Mapping[str, Any]) -> list[Pattern]:
        """Return the possible meanings of a refused question's words in the graph's units, without confidence."""
        with suppress(RefusalError):
            question, entities = self._asked_part((input["question"], self.zero_shot.entities(input)))
            reading = self.zero_shot.read({**input, "question": question, "entities": entities})
            self._in_units(({"question": question, "entities": entities}, reading.pattern))
            return [replace(one, confidence=0.0) for one in (reading.pattern, *reading.alternatives)]
        return []

    def _in_words(self, patterns: Sequence[Pattern]) -> list[str]:
        return in_words(self.zero_shot.index, patterns)

    def _slots(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        with suppress(EntityLinkingError):
            return self.zero_shot.entities(input)
        return []

    def _names_one_of(self, pattern: Pattern, slots: Sequence[QuestionEntity]) -> bool:
        """Tell whether a pattern names an entity of the question."""
        graph = self.zero_shot.index.graph
        keys = {key for slot in slots for key in slot.entities}
        names = {slot.name.casefold() for slot in slots} | {graph.label(key).casefold() for key in keys}
        known = [node for node in (*pattern.nodes, *pattern.alone) if isinstance(node, Known)]
        return any(node.entity in keys or node.text in keys or node.text.casefold() in names for node in known)

    def _in_units(self, asked: tuple[Mapping[str, Any], Pattern]) -> Pattern:
        """Return a pattern if the question names no other unit than its numbers have.

        Raises:
            LowConfidenceError: If it does.
        """
        input, pattern = asked
        self.forms.check_units(input["question"], input.get("entities") or self._slots(input), pattern)
        return pattern

    def _checked(self, asked: tuple[Mapping[str, Any], Pattern]) -> Pattern:
        """Return a pattern whose names and units the graph has.

        Directions of a written list count if something fits it so.

        Over a part of a connected graph nothing is checked: what the pattern needs is fetched later.

        Raises:
            RefusalError: If the graph lacks a name or unit, or nothing fits.
        """
        input, pattern = asked
        index = self.zero_shot.index
        if index.is_part:
            return pattern
        carried_out(index, self._in_units(asked))
        is_open = pattern.directed is None and pattern.operation is None and pattern.source not in READERS
        if is_open and sample_answers(index, directed := replace(pattern, directed=True)) != []:
            return directed
        if sample_answers(index, pattern) != []:
            return pattern
        raise NoEvidenceError(f"QuestionReader: nothing in the graph fits the question {input['question']!r:.200}.")

    def _nothing_meant(
        self, question: str, reading: Reading | None, error: Exception | None = None
    ) -> LowConfidenceError:
        """Return the refusal if the language model finds none of the readings, and writes none that the graph fits."""
        why = getattr(error, "message", "") if isinstance(error, RefusalError) else ""
        nearest = getattr(error, "nearest", None) or (reading.pattern.nearest if reading else ())
        return LowConfidenceError(
            f"QuestionReader: the language model finds no reading of {question!r:.200} in this graph. {why}".strip(),
            0.0,
            getattr(error, "unplaced", ()),
            nearest,
            hint_python="Rephrase it with a relation of the graph.",
        )

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
                    f"QuestionReader: {question!r:.200} names classes of the graph, but no entity.",
                    hint_python="Name an entity, or give seed_entities=.",
                    hint_shell="Name an entity, or give --entity.",
                )
            return Reading(named_nothing)
        example: FilledExample | None = None
        if self.examples:
            example = yield Call(self._nearest, asked)
        if example and example.fits and example.distance <= EXAMPLE_DISTANCE:
            return Reading((yield Call(self._in_units, (asked, example.pattern))))
        by_form: Pattern | None = yield Call(self._by_form, asked)
        if by_form is not None:
            return Reading(by_form)
        try:
            zero_shot: Reading = yield Call(self._by_words, asked)
        except EntityLinkingError:
            if example is None:
                raise
            return Reading(example.pattern)
        return _likelier(zero_shot, example.pattern) if example else zero_shot

    def _dated(self, question: str, names: Sequence[tuple[int, int]]) -> str:
        """Return a question with dates in place of times relative to today, but not in the names of its entities."""
        dated = in_dates(question, self.clock(), names) if self.clock else question
        if dated == question:
            raise _UndatedError(
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
        pattern = None if "walks" in input else self.forms.read(input["question"], input["entities"])
        return None if pattern is None else self._doubted(input, pattern, True)

    def _by_words(self, input: Mapping[str, Any]) -> Reading:
        """Return the reading by the words of a question."""
        reading = self.zero_shot.read(input)
        return replace(reading, pattern=self._doubted(input, reading.pattern, False))

    def _doubted(self, input: Mapping[str, Any], pattern: Pattern, by_form: bool) -> Pattern:
        """Return a pattern with less confidence if it leaves out words that limit what is asked for.

        Raises:
            LowConfidenceError: If the question names another unit than the pattern's numbers have.
        """
        self._in_units((input, pattern))
        nouns, schema = type_nouns(self.zero_shot.index), self.zero_shot.words_to_spell
        unread = left_out(input["question"], input["entities"], pattern, nouns, schema, by_form=by_form)
        less = (pattern.confidence or 0.0) * LEFT_OUT
        unplaced = dict.fromkeys([*pattern.unplaced, *unread])
        return replace(pattern, confidence=less, unplaced=tuple(unplaced)) if unread else pattern

    def _nearest(self, input: Mapping[str, Any]) -> FilledExample | None:
        """Return the nearest example; None if the question has too few entities for any."""
        assert self.examples
        try:
            return next(self.examples.nearest(input))
        except EntityLinkingError:
            return None


def _own(reading: Reading | None, refusal: RefusalError | None) -> Reading:
    """Return the reading that was made without a language model, or raise why there is none."""
    if reading is not None:
        return reading
    assert refusal
    raise refusal


def _meant(pattern: Pattern, others: Sequence[Pattern], confidence: float) -> Reading:
    """Return the reading that a language model means."""
    source = "chosen" if pattern.source in READERS else pattern.source
    meant = replace(pattern, source=source, confidence=confidence, unplaced=(), lacking=())
    return Reading(meant, tuple(others))


def _passes(reading: Reading | None) -> bool:
    """Tell whether a reading would not be refused for its confidence."""
    return reading is not None and (reading.confidence is None or reading.confidence >= MIN_CONFIDENCE)


def _different(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return the patterns that differ in words, the first of equal ones."""
    different: dict[str, Pattern] = {}
    for pattern in patterns:
        different.setdefault(reading_in_words(pattern), pattern)
    return [*different.values()]


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
    """Return the addition to the logit of the confidence on a graph, by how many examples are read rightly.

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
