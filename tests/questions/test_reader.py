"""The reader: an example that is near, else the zero-shot pattern, else a language model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from choosing_model import choosing

from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, LowConfidenceError, RefusalError
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.questions.choosing import ReadingChooser
from kg_retrievers.questions.examples import ExamplePatternGenerator, confidence_at
from kg_retrievers.questions.reader import CHOSEN_AGAIN, WRITTEN, QuestionReader
from kg_retrievers.questions.reading import SURE, Reading, walks_of
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

X = Unknown("x")
INDEX = GraphIndex.build(tiny_graph(), HashedEmbeddings())
DIRECTED = Question("Who directed Her?", pattern=Pattern.of(("Her", "directed by", X), target="x"))
WROTE = Question("Who wrote Her?", pattern=Pattern.of(("Her", "written by", X), target="x"))
STARRED = Question("Which actors does Her star?", pattern=Pattern.of(("Her", "starring", X), target="x"))
EXAMPLES = [DIRECTED, WROTE, STARRED]
REPLY = '{"triples": [["Amélie", "directed by", "?x"]], "target": "?x"}'
NEAR, FAR = "Who directed Amélie?", "Tell everybody all about who had the making of Amélie"


def cascade(
    *replies: str, examples: Any = EXAMPLES, confidence: float | None = None, **said: Any
) -> tuple[QuestionReader, ScriptedChatModel]:
    """Return a cascade and its language model; with a confidence, that of a zero-shot pattern made up for the test."""
    llm = ScriptedChatModel(replies=list(replies))
    made = QuestionReader(INDEX, llm=llm if replies else None, examples=examples)
    if confidence is not None:
        pattern = Pattern.of(("Amélie", "starring", X), target="x", source="zero-shot", confidence=confidence, **said)
        made.zero_shot.read = lambda _: Reading(pattern)  # type: ignore[method-assign]
    return made, llm


def meaning(reader: QuestionReader, wanted: str, written: str) -> ScriptedChatModel:
    """Give a reader a model that means the line that begins so, or else the pattern that it writes."""
    llm = choosing(wanted, written)
    made = QuestionReader(INDEX, llm=llm, examples=EXAMPLES)
    reader.model, reader.chooser = made.model, ReadingChooser(llm)
    return llm


def test_a_near_example_asks_no_model() -> None:
    made, llm = cascade(REPLY, confidence=0.0)
    pattern = made.read(NEAR).pattern
    assert (pattern.source, pattern) == ("examples", Pattern.of(("Amélie", "directed by", X), target="x"))
    assert pattern.confidence == pytest.approx(confidence_at(0.0), abs=0.01)
    assert llm.prompts == []


def test_a_distant_example_leaves_the_question_to_a_sure_zero_shot_pattern() -> None:
    made, llm = cascade(REPLY, confidence=SURE)
    assert made.read(FAR).pattern.source == "zero-shot"
    assert llm.prompts == []


@pytest.mark.parametrize(
    ("confidence", "said"), [(SURE - 0.01, {}), (1.0, {"unplaced": ["oldest"]})], ids=["unsure", "words left over"]
)
def test_the_model_is_asked_with_the_nearest_examples_as_shots(confidence: float, said: dict[str, Any]) -> None:
    made, _ = cascade(REPLY, confidence=confidence, **said)
    llm = meaning(made, "none", REPLY)
    pattern = made.read(FAR).pattern
    assert (pattern.source, pattern.confidence) == ("llm", WRITTEN)
    _, (message,), _ = llm.prompts
    assert "directed_by: Amélie -> directed_by -> Jean-Pierre Jeunet" in message.text
    shown = [line.removeprefix("Question: ") for line in message.text.splitlines() if line.startswith("Question: ")]
    assert shown[-1] == FAR
    assert sorted(shown[-4:-1]) == sorted(example.text for example in EXAMPLES)


def test_without_a_model_a_distant_example_needs_the_higher_confidence() -> None:
    for confidence, source in ((0.0, "examples"), (0.3, "zero-shot")):
        made, _ = cascade(confidence=confidence)
        pattern = made.read(FAR).pattern
        assert pattern.source == source
        assert pattern.confidence is not None
        assert not Reading(pattern).is_sure


def test_two_that_agree_are_surer_than_one() -> None:
    """1 - (1 - confidence of one) * (1 - that of the other)."""
    star = Question("Which actors does Her star?", pattern=Pattern.of(("Her", "starring", X), target="x"))
    made, _ = cascade(examples=[star], confidence=0.5)
    alone = ExamplePatternGenerator(INDEX, [star]).invoke({"question": FAR}).confidence or 0.0
    pattern = made.read(FAR).pattern
    assert pattern.source == "zero-shot"
    assert pattern.confidence == pytest.approx(0.5 + 0.5 * alone)
    assert alone > 0


def test_an_example_whose_relations_the_entity_lacks_is_not_near() -> None:
    """Nobody wrote Amélie in the graph."""
    made, _ = cascade(examples=[WROTE], confidence=0.2)
    assert made.read("Who wrote Amélie?").pattern.source == "zero-shot"


def test_a_question_without_an_entity_goes_to_the_model() -> None:
    made, _ = cascade(REPLY)
    llm = meaning(made, "Amélie -> directed_by -> ?", REPLY)
    assert made.read("Who directed Xyzzyplugh?").pattern.source == "llm"
    assert len(llm.prompts) == 2
    without, _ = cascade()
    with pytest.raises(EntityLinkingError, match="No entity of the graph"):
        without.read("Who directed Xyzzyplugh?")


def test_entities_that_are_given_are_used_by_all() -> None:
    made, _ = cascade(examples=[STARRED])
    pattern = made.read("Who directed it?", ["Amélie"]).pattern
    assert pattern.source == "zero-shot"
    assert pattern.triples[0].head.entity == "Amélie"  # type: ignore[union-attr]


@pytest.mark.parametrize("arguments", [{"llm": "openai:any"}, {"examples": [Question("Who?")]}], ids=str)
def test_what_cannot_write_patterns_is_refused(arguments: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        QuestionReader(INDEX, **arguments)


@pytest.mark.parametrize("question", [NEAR, FAR])
def test_sync_equals_async(question: str) -> None:
    """One body for both, with the model and without."""
    for replies in ([], [REPLY, REPLY]):
        made, _ = cascade(*replies)
        assert asyncio.run(made.ainvoke({"question": question})) == made.invoke({"question": question})


def test_walks_come_with_alternatives_of_falling_confidence() -> None:
    """Relation paths are walks from the entities to the target; operations are not read."""
    reading = QuestionReader(INDEX).read("How many films did Spike Jonze direct?", walks=3, max_hops=1)
    patterns = [reading.pattern, *reading.alternatives]
    assert reading.pattern.operation is None
    walks = [walks_of(pattern) for pattern in patterns]
    assert walks[0] == [(Known("Spike Jonze", entity="Spike Jonze"), [("directed_by", True)])]
    assert 1 < len(patterns) <= 3
    confidences = [pattern.confidence or 0.0 for pattern in patterns]
    assert confidences == sorted(confidences, reverse=True)


def test_a_model_may_be_asked_always() -> None:
    llm = ScriptedChatModel(replies=[REPLY])
    reader = QuestionReader(INDEX, llm=llm, examples=EXAMPLES, asks_model="always", chooses=False)
    assert reader.read(NEAR).pattern.source == "llm"
    reader = QuestionReader(INDEX, llm=choosing("Amélie -> starring"), examples=EXAMPLES, asks_model="always")
    assert reader.read(NEAR).pattern.source == "chosen"
    reader = QuestionReader(INDEX, llm=ScriptedChatModel(replies=[]), asks_model="never")
    assert (reader.read(NEAR).pattern.source, reader.calls_model) == ("zero-shot", False)


def test_a_kind_in_the_words_of_a_model_hides_no_answer() -> None:
    reply = '{"triples": [["Amélie", "directed_by", "UNKNOWN mastermind 1"]], "target": "UNKNOWN mastermind 1"}'
    made, _ = cascade(REPLY, confidence=0.0)
    meaning(made, "none", reply)
    assert made.read(FAR).pattern.source == "llm"


@pytest.mark.parametrize("replies", [["None", "no", "no"], ['{"choice": 99}'], ["{}", "{}", "{}"]], ids=str)
def test_a_model_of_no_use_changes_nothing(replies: list[str]) -> None:
    llm = ScriptedChatModel(replies=replies, cycle=True)
    with_model = QuestionReader(INDEX, llm=llm, asks_model="always").read(NEAR)
    assert with_model == QuestionReader(INDEX).read(NEAR)


def test_most_of_several_replies_count() -> None:
    llm = choosing("Amélie -> starring -> ?")
    reading = QuestionReader(INDEX, llm=llm, asks_model="always", samples=3).read(NEAR)
    assert (reading.pattern.source, reading.confidence, len(llm.prompts)) == ("chosen", CHOSEN_AGAIN, 6)
    with pytest.raises(InvalidArgumentError, match="samples is an integer from 1 to 15, but got 0"):
        QuestionReader(INDEX, samples=0)


def test_a_chosen_reading_without_answers_is_refused() -> None:
    llm = choosing("Amélie -> written_by -> ?")
    with pytest.raises(RefusalError, match="nothing in the graph fits"):
        QuestionReader(INDEX, llm=llm, asks_model="always").read(NEAR)


def test_a_written_pattern_names_what_the_question_names() -> None:
    reply = '{"triples": [["Her", "directed_by", "?x"]], "target": "?x"}'
    made, _ = cascade(REPLY, confidence=0.0)
    meaning(made, "none", reply)
    with pytest.raises(LowConfidenceError, match="the language model finds no reading"):
        made.read(FAR)


def test_our_reading_stays_the_first_of_equal_ones() -> None:
    """The words alone may give it second. One choice of it is enough."""
    llm = choosing("Amélie -> directed by -> ?")
    made = QuestionReader(INDEX, llm=llm, examples=EXAMPLES, asks_model="always")
    ours = QuestionReader(INDEX, examples=EXAMPLES).read(NEAR).pattern
    other = Pattern.of(("Amélie", "starring", X), target="x", source="zero-shot", confidence=0.9)
    made.zero_shot.read = lambda _: Reading(other, (ours,))  # type: ignore[method-assign]
    assert made.read(NEAR).pattern == ours
    assert len(llm.prompts) == 1
