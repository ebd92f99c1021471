"""Worked examples in the prompts for answers and verdicts, written from labelled questions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from films_and_claims import CLAIMS, INDEX

from benchmarks.papers.worked_examples import with_answer_shots, with_verdict_shots
from kg_retrievers import Question, SimGRAGRetriever
from kg_retrievers.graph import Pattern, Unknown

QUESTIONS = [
    Question(
        f"Who directed Film {number}?",
        answers=(f"Person {number}",),
        pattern=Pattern.of((f"Film {number}", "directed_by", Unknown("x")), target="x"),
    )
    for number in range(14)
]


@pytest.fixture
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(INDEX, preset="paper", k=1)


def shots_in(prompt: Any) -> list[str]:
    text: str = prompt.format(question="?", evidence="none")
    shown = text.split("Examples\n\n", 1)[1].split("\n\nNow the", 1)[0]
    return re.split(r"\n\n(?=Question: |Claim: )", shown)


@pytest.mark.parametrize("shots", [4, 8, 12])
def test_the_answer_prompt_shows_as_many_examples_of_the_user_as_wanted(
    retriever: SimGRAGRetriever, shots: int
) -> None:
    shown = shots_in(with_answer_shots(retriever, QUESTIONS, shots=shots))
    assert len(shown) == shots
    assert shown[3] == (
        "Question: Who directed Film 3?\nEvidence:\n<facts>\n[1]\nFilm 3 -> directed by -> Person 3\n</facts>\n"
        "Reason: So says [1].\nAnswer: Person 3"
    )


def test_the_verdict_prompt_shows_claims_of_the_user(retriever: SimGRAGRetriever) -> None:
    shown = shots_in(with_verdict_shots(retriever, CLAIMS))
    assert len(shown) == 12
    assert shown[0].splitlines()[:4] == [
        "Claim: Person 0 directed Film 0.",
        "Facts:",
        "<facts>",
        "[1] Film 0 -> directed by -> Person 0",
    ]
    verdicts = [json.loads(text.split("JSON: ")[1]) for text in shown]
    assert [one["verdict"] for one in verdicts] == ["supported", "refuted"] * 6
    assert [one["citations"] for one in verdicts[:2]] == [[1], []]
