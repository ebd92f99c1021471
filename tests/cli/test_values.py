"""Questions whose answer is a value, on the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kg_retrievers import Pattern, Question, Unknown
from kg_retrievers.cli import main
from kg_retrievers.datasets import write_questions
from kg_retrievers.graph.operations import Condition, Operation

FILES = {"films.csv": "Her,directed_by,Spike Jonze\nAdaptation,directed_by,Spike Jonze\nHer,released,2013\n"}
MANY, POLAR = "How many films did Spike Jonze direct?", "Was Her released after 2020?"
EXAMPLES = [
    Question(
        MANY,
        ("Spike Jonze",),
        value=2,
        pattern=Pattern.of(
            (Unknown("film"), "directed_by", "Spike Jonze"), target="film", operation=Operation("count")
        ),
    ),
    Question(
        POLAR,
        ("Her",),
        value=False,
        pattern=Pattern.of(
            ("Her", "released", Unknown("year")),
            conditions=[Condition("year", ">", 2020)],
            operation=Operation("exists"),
        ),
    ),
]


@pytest.fixture(autouse=True)
def examples(folder: Path) -> None:
    write_questions("examples.jsonl", EXAMPLES)


def ask(capsys: pytest.CaptureFixture[str], question: str, *more: str) -> str:
    assert main(["ask", "films.csv", question, "--examples", "examples.jsonl", *more]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("question", "answer", "value"), [(MANY, "2", 2), (POLAR, "no", False)])
def test_ask_answers_with_the_value(capsys: pytest.CaptureFixture[str], question: str, answer: str, value: Any) -> None:
    found = json.loads(ask(capsys, question, "--json"))
    assert (found["answer"], found["value"], found["supported"]) == (answer, value, True)
    assert found["documents"][0]["metadata"]["value"] == value
    assert f"Answer    {answer}\n" in ask(capsys, question)


def test_ask_shows_the_operation_and_what_was_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert "count: ?film\n" in ask(capsys, MANY)
    out = ask(capsys, POLAR)
    assert "?year > 2020\n" in out
    assert "Result: no. Looked for and not found: Her -> released -> ?year; ?year > 2020\n" in out
