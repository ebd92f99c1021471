"""Patterns that ask for nothing, or speak of an example instead of the question, are sent back to the model."""

from __future__ import annotations

import json

import pytest

from kg_retrievers import LLMPatternGenerator, Pattern, Unknown
from kg_retrievers.errors import PatternParseError
from kg_retrievers.questions.llm import check_meant
from kg_retrievers.questions.prompts import EXAMPLES, parse_pattern
from kg_retrievers.testing import ScriptedChatModel

CLOSED = Pattern.of(("Her", "directed by", "Spike Jonze"))
OPEN = Pattern.of(("Her", "directed by", Unknown("who")), target="who")
STATING = ["Did Spike Jonze direct Her?", "Spike Jonze directed Her.", "When in Rome, sing."]
GOOD = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]]}'


@pytest.mark.parametrize(
    "question",
    ["Who directed Her?", "who directed her", "In which year was Her made?", "How many films?", "When did she?"],
)
def test_a_question_leaves_something_open(question: str) -> None:
    with pytest.raises(PatternParseError, match="no triple holds an UNKNOWN"):
        check_meant(CLOSED, question, EXAMPLES, "reply")
    check_meant(OPEN, question, EXAMPLES, "reply")


@pytest.mark.parametrize("question", STATING)
def test_a_statement_may_leave_nothing_open(question: str) -> None:
    check_meant(CLOSED, question, EXAMPLES, "reply")


def test_an_unknown_relation_is_open() -> None:
    check_meant(Pattern.of(("Her", Unknown("relation"), "Jonze")), "What joins Her and Jonze?", EXAMPLES, "reply")


@pytest.mark.parametrize(("asked", "reply"), EXAMPLES)
def test_an_example_is_no_pattern_of_another_question(asked: str, reply: dict[str, object]) -> None:
    pattern = parse_pattern(json.dumps(reply))
    check_meant(pattern, asked, EXAMPLES, "")
    with pytest.raises(PatternParseError, match="copied from an example"):
        check_meant(pattern, "Who directed Her?" if pattern.target else "Her is good.", EXAMPLES, "")


def test_an_examples_fact_may_be_meant() -> None:
    shots = [("Who made Her?", {"triples": [["Her", "directed by", "UNKNOWN person 1"]]})]
    check_meant(parse_pattern(GOOD), "who shot her", shots, "")
    with pytest.raises(PatternParseError, match=r"about \['Her'\] is copied"):
        check_meant(parse_pattern(GOOD), "who shot Amélie", shots, "")


def test_a_name_in_other_words_is_no_copy() -> None:
    check_meant(parse_pattern(GOOD), "who shot that film with the voice", EXAMPLES, "")


def test_the_model_is_asked_again() -> None:
    llm = ScriptedChatModel(replies=[json.dumps(EXAMPLES[0][1]), GOOD])
    found = LLMPatternGenerator(llm).invoke({"question": "Who directed Her?"})
    assert found == parse_pattern(GOOD)
    assert "copied from an example" in llm.prompts[1][0].text
    closed = ScriptedChatModel(replies=['{"triples": [["Her", "directed by", "Spike Jonze"]]}'] * 2)
    with pytest.raises(PatternParseError, match="no triple holds"):
        LLMPatternGenerator(closed).invoke({"question": "Who directed Her?"})
