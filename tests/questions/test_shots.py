"""Examples in the words of a reply to the prompt for a pattern."""

from __future__ import annotations

import json

import pytest

from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.questions.llm import as_shot
from kg_retrievers.questions.prompts import parse_pattern

FILM = Unknown("film 7", type="film")


@pytest.mark.parametrize(
    ("pattern", "triples", "target"),
    [
        (
            Pattern.of(("Her", "directed_by", Unknown("x")), target="x"),
            [["Her", "directed_by", "UNKNOWN x 1"]],
            "UNKNOWN x 1",
        ),
        (
            Pattern.of((FILM, "directed_by", Known("Unknown")), (FILM, "starring", Unknown("film 2")), target="film 2"),
            [["UNKNOWN film 1", "directed_by", '"Unknown"'], ["UNKNOWN film 1", "starring", "UNKNOWN film 2"]],
            "UNKNOWN film 2",
        ),
        (Pattern.of(("Her", Unknown("r"), Unknown("1"))), [["Her", "UNKNOWN relation 1", "UNKNOWN thing 1"]], None),
    ],
    ids=["one hop", "kinds", "relation"],
)
def test_shot_by_hand(pattern: Pattern, triples: list[list[str]], target: str | None) -> None:
    text, reply = as_shot(Question("Who?", pattern=pattern))
    assert (text, reply["triples"], reply["target"]) == ("Who?", triples, target)
    assert len(reply["segments"]) == len(triples)


def test_a_shot_is_read_as_the_same_graph() -> None:
    pattern = Pattern.of(
        (Unknown("film 1", "film"), "directed_by", "UNKNOWN Artists"),
        (Unknown("film 1", "film"), "starring", Unknown("person 1", "person")),
        target="person 1",
    )
    assert parse_pattern(json.dumps(as_shot(Question("Who?", pattern=pattern))[1])) == pattern


def test_an_example_without_a_pattern_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'Who\?' has no pattern"):
        as_shot(Question("Who?"))
