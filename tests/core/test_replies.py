"""The one reader of replies: good, ragged, empty and hostile ones."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kg_retrievers.core.replies import (
    MAX_REPLY,
    NO_ANSWER,
    NO_TARGET,
    is_abstention,
    listed_answers,
    marked_answers,
    parse_object,
    plain_answers,
    read_nodes,
    without_reasoning,
)
from kg_retrievers.errors import AnswerParseError

# --- objects ----------------------------------------------------------------------------------------------------------


class Reply(BaseModel):
    method: str
    names: list[str] = []


GOOD = '{"method": "joins", "names": ["a", "b"]}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure, here it is: {GOOD} I hope that {{this}} helps.",
        f"<think>{{'method': 'other', 'names': []}}</think>{GOOD}",
        f"{{'method': 'other'}}</think> {GOOD}",
        GOOD.replace('"', "'"),
        GOOD.replace('"', "\u201d"),
        '{method: joins, names: ["a", "b"]}',
        '{"method": "joins", "names": ["a", "b",],}',
        '{"names": ["a", "b"] "method": "joins"}',
        '{"method": "joins", // the second\n "names": ["a", "b"]}',
        '{"method": "joins", "names": ("a", "b")}',
        GOOD[:-1],
        GOOD[:-1] + "\n",
        GOOD[:-2] + "}",
        '{"names": ["a", "b"], "method": "joins"',
        f'{{"x": 1}} {GOOD}',
        f'{{"reply": {GOOD}}}',
        f"[{GOOD}]",
    ],
)
def test_objects_that_are_read(text: str) -> None:
    assert parse_object(text, Reply) == Reply(method="joins", names=["a", "b"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the reply is empty"),
        (" \n", "the reply is empty"),
        ("<think>" + GOOD, "the reply is empty"),
        ("joins", "no complete JSON object"),
        ("{joins}", "no complete JSON object"),
        ("{}", "no complete JSON object"),
        ("[]", "no complete JSON object"),
        ('{"method": "jo', "no complete JSON object"),
        ('{"method": "joins", "names": ["a", "b', "no complete JSON object"),
        ('{"x": {"method": ["a"]', r"method: Input should be a valid string\."),
        ('{"names": [["a"]], "method": "x"} {"y": 1}', r"names\.0: Input should be a valid string\."),
        ('{"y": 1} {"names": [["a"]], "method": "x"}', r"names\.0: Input should be a valid string\."),
    ],
)
def test_objects_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(AnswerParseError, match=reason) as caught:
        parse_object(text, Reply)
    assert caught.value.reply == text
    assert caught.value.reason.endswith("Wanted one JSON object with ['method', 'names'].")


def test_every_beginning_of_a_reply_is_whole_or_refused() -> None:
    """A part of a reply says something else: only the last brace may be missing."""

    class Both(Reply):
        names: list[str]

    for end in range(len(GOOD) - 1):
        with pytest.raises(AnswerParseError):
            parse_object(GOOD[:end], Both)


HOSTILE = [
    "{",
    "[",
    "{[",
    '{"a":',
    '{"method":[',
    '"',
    "\\",
    '{"',
    "{'",
    ":",
    "}",
    "{}",
    '{"a":{}}',
    "//",
    "#",
    ",",
    "\u201c",
]


@pytest.mark.parametrize("piece", [*HOSTILE[:2], *(pytest.param(one, marks=pytest.mark.heavy) for one in HOSTILE[2:])])
def test_a_megabyte_takes_no_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    with suppress(AnswerParseError):
        parse_object(text, Reply)
    half = text[: MAX_REPLY // 2]
    with suppress(AnswerParseError):
        parse_object(half + "}]" * (len(half) // 2), Reply)
    for read in (marked_answers, listed_answers, plain_answers):
        read(text)
    assert time.process_time() - began < 10


def test_nothing_is_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    call = "__import__('os').system('echo evaluated')"
    for text in (f'{{"method": {call}}}', f"{{'method': 'x', **{call}}}", f'{{"method": "{call}"}}', f"Answer: {call}"):
        with suppress(AnswerParseError):
            assert isinstance(parse_object(text, Reply).method, str)
        assert marked_answers(text)
    assert capsys.readouterr() == ("", "")


texts = st.text(max_size=20)
values = st.recursive(
    texts, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=8
)


@given(st.text(max_size=300))
def test_no_text_breaks_the_readers(text: str) -> None:
    with suppress(AnswerParseError):
        parse_object(text, Reply)
    for read in (marked_answers, listed_answers, plain_answers):
        answers = read(text)
        assert all(answer.strip() for answer in answers)
        assert len(answers) == len(set(answers))


def test_escapes_are_read() -> None:
    text = r'{"query": "a\d \"b\" \u00e9 \ud83d\ude00 \\w"}'
    (node,), _ = read_nodes(text)
    assert node.values == [r'ad "b" é 😀 \w']


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("Because.\nAnswer: Her", ["Her"]),
        ("Because.\nAnswer: Her; Dune; Her", ["Her", "Dune"]),
        ("Because.\n**Answer:** Her; **Dune**", ["Her", "Dune"]),
        ("Because. Answer: Her; Dune", ["Her", "Dune"]),
        ("<think>Answer: no</think>\nAnswer: Her", ["Her"]),
        ("Answer: no</think>\nAnswer: Her", ["Her"]),
        ("Answer:\n- Her\n- Dune", ["Her", "Dune"]),
        ("Answers:\n1. Her\n2. Dune\n\nI hope it helps.", ["Her", "Dune"]),
        ("Answer: The films are:\n* Her\n* Dune", ["Her", "Dune"]),
        ("Answer: 2. Bundesliga", ["2. Bundesliga"]),
        ("Answer: Her\nReason: It says so; see [1].", ["Her"]),
        ("Answer: Her\n\nQuestion: Who?\nAnswer: Dune", ["Her"]),
        ('Answer: ["Her", "Dune"]', ["Her", "Dune"]),
        ("Answer: Nelahozeves, Bohemia", ["Nelahozeves, Bohemia"]),
        ("Answer: Unknown", ["Unknown"]),
        ("Answer: Spike Jonze. The facts do not name more.", ["Spike Jonze. The facts do not name more."]),
        ("Her", ["Her"]),
        ("Her; Dune", ["Her", "Dune"]),
        ("These are:\n- Her\n- Dune\nThat is all.", ["Her", "Dune"]),
        ("It is Her.\nIt says so.", ["It is Her.\nIt says so."]),
        ("Answer:", []),
        ("", []),
        ("<think>Answer: Her", []),
        ("Because.\nAnswer: not available", []),
        ("Because.\nAnswer: The evidence does not say.", []),
        ("Because.\nAnswer: The facts do not say; they tell only its year.", []),
        ("The evidence does not mention it.", []),
        (NO_ANSWER, []),
        (NO_TARGET, []),
        (f"{NO_ANSWER} No entity of the graph was found.", []),
    ],
)
def test_marked_answers(reply: str, answers: list[str]) -> None:
    assert marked_answers(reply) == answers


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("Steps.\nans: Her\nans: Dune", ["Her", "Dune"]),
        ("Steps.\n- ans: Her\n- ans: Dune\n\nDone.", ["Her", "Dune"]),
        ("Steps.\n**ans:** Her", ["Her"]),
        ("Steps.\nANS: Her; or not", ["Her; or not"]),
        ("Steps.\nans: not available", []),
        ("Steps.\nans: Her\nans: not available", ["Her"]),
        ("Steps.\nans: Her\n\nFacts:\n[1]\nQuestion: x\nSteps: y\nans: Dune", ["Her"]),
        ("Steps lead to Her.", ["Steps lead to Her."]),
        ("Her; Dune", ["Her", "Dune"]),
    ],
)
def test_each_mark_has_one_answer(reply: str, answers: list[str]) -> None:
    assert marked_answers(reply, separator=None) == answers


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("Her\nDune", ["Her", "Dune"]),
        ("\nHer\nDune\n\nThese are films.", ["Her", "Dune"]),
        ("1. Her\n2. Dune", ["Her", "Dune"]),
        ("The answers are:\nHer\nDune", ["Her", "Dune"]),
        ("Answers: Her\nDune", ["Her", "Dune"]),
        ("<think>Dune?</think>Her", ["Her"]),
        ("Her; Dune", ["Her", "Dune"]),
        ("Her\nDune\nHer", ["Her", "Dune"]),
        ("Answers:\nHer\nQuestion: Who?\nAnswers:\nDune", ["Her"]),
        ("not available", []),
        ("No path answers the question.", []),
        ("", []),
    ],
)
def test_listed_answers(reply: str, answers: list[str]) -> None:
    assert listed_answers(reply) == answers


def test_plain_answers() -> None:
    assert plain_answers(" Her; Dune\nand more ") == ["Her; Dune\nand more"]
    assert plain_answers("<think>x</think> ") == plain_answers("The facts do not say.") == []


names = st.from_regex(r"[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8}){0,2}", fullmatch=True).filter(
    lambda name: not is_abstention(name)
)


@given(st.lists(names, min_size=1, max_size=5, unique=True))
def test_answers_that_were_joined_are_read_as_they_were(answers: list[str]) -> None:
    """What a chain answers is read like the reply it came from, whichever method's reader reads it."""
    joined = "; ".join(answers)
    assert marked_answers(joined) == marked_answers(joined, separator=None) == listed_answers(joined) == answers


@pytest.mark.parametrize(
    "text",
    [
        "not available",
        "**Not available.**",
        "None.",
        "The evidence does not say.",
        "The facts do not say.",
        "The graph doesn\u2019t answer the question.",
        "There is no information on this.",
        "The evidence is insufficient.",
        "I don't know.",
        "Unfortunately, the evidence does not mention its composer.",
        "Based on the facts, the composer of Rusalka cannot be determined.",
        "The composer of Rusalka is not mentioned.",
    ],
)
def test_abstentions(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize(
    "text",
    [
        "Unknown",
        "No",
        "The Answer",
        "No Country for Old Men",
        "The Facts of Life",
        "It Is Not the Homosexual Who Is Perverse",
        "support",
        "None But the Brave",
    ],
)
def test_names_are_no_abstentions(text: str) -> None:
    assert not is_abstention(text)


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    """No file, hash or client takes them."""
    for half in ("\ud800", "\udfff", "\ud800\ud800"):
        assert without_reasoning(f"a {half} b").encode()
        assert all(answer.encode() for answer in marked_answers(f"Answer: Am{half}lie; Her"))
    assert without_reasoning("\ud83d\ude00") == "\U0001f600"
