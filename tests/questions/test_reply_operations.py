"""Conditions, absent triples and operations in a model's reply."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kg_retrievers import LLMPatternGenerator, Pattern, Unknown
from kg_retrievers.datasets import Question
from kg_retrievers.errors import PatternParseError
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.llm import as_shot
from kg_retrievers.questions.prompts import EXAMPLES, parse_pattern
from kg_retrievers.testing import ScriptedChatModel

FILM, YEAR = "UNKNOWN film 1", "UNKNOWN year 1"
TRIPLES = [[FILM, "directed by", "Spike Jonze"], [FILM, "released in", YEAR]]


def read(**more: Any) -> Pattern:
    return parse_pattern(json.dumps({"triples": TRIPLES, "target": FILM, **more}))


@pytest.mark.parametrize(("question", "reply"), EXAMPLES, ids=[question for question, _ in EXAMPLES])
def test_our_examples_are_read_whole(question: str, reply: dict[str, Any]) -> None:
    pattern = parse_pattern(json.dumps(reply))
    assert len(pattern.conditions) == len(reply.get("conditions", []))
    assert len(pattern.absent) == len(reply.get("absent", []))
    assert (pattern.operation is not None) == ("operation" in reply)


CONDITIONS: list[tuple[Any, list[Condition]]] = [
    ([[YEAR, "<", "1970"]], [Condition("year 1", "<", "1970")]),
    ([[YEAR, "<", 1970]], [Condition("year 1", "<", "1970")]),
    ([YEAR, "<", "1970"], [Condition("year 1", "<", "1970")]),
    ([{"unknown": "year 1", "operator": ">=", "value": "1970"}], [Condition("year 1", ">=", "1970")]),
    ([[YEAR, "between", ["1970", "1980"]]], [Condition("year 1", "between", ("1970", "1980"))]),
    ([[FILM, "in", ["Her", "Adaptation"]]], [Condition("film 1", "in", ("Her", "Adaptation"))]),
    ([[YEAR, "=", True]], [Condition("year 1", "=", "true")]),
    ([], []),
    (None, []),
]


@pytest.mark.parametrize(("said", "conditions"), CONDITIONS)
def test_conditions(said: Any, conditions: list[Condition]) -> None:
    assert list(read(conditions=said).conditions) == conditions


OPERATIONS: list[tuple[Any, Operation | None]] = [
    ("count", Operation("count")),
    ({"kind": "exists"}, Operation("exists")),
    ({"kind": "max", "by": YEAR}, Operation("max", ("year 1",))),
    ({"kind": "max", "by": [YEAR], "of": "count", "limit": None}, Operation("max", ("year 1",), "count")),
    (
        {"kind": "order", "by": YEAR, "limit": 3, "descending": False},
        Operation("order", ("year 1",), limit=3, descending=False),
    ),
    (
        {"kind": "list", "by": [YEAR], "of": "count", "comparison": ">=", "number": "2"},
        Operation("list", ("year 1",), "count", ">=", 2),
    ),
    (None, None),
    ("null", None),
]


@pytest.mark.parametrize(("said", "operation"), OPERATIONS)
def test_operation(said: Any, operation: Operation | None) -> None:
    assert read(operation=said).operation == operation


def test_absent_triples_share_the_unknowns() -> None:
    film, prize = Unknown("film 1", "film"), Unknown("prize 1", "prize")
    pattern = read(absent=[[FILM, "prize", "UNKNOWN prize 1"], ["UNKNOWN prize 1", "country", "France"]])
    assert (pattern.absent[0].head, pattern.absent[0].tail) == (film, prize)
    assert read(absent=[FILM, "prize", "Oscar"]) == read(absent=[[FILM, "prize", "Oscar"]])
    assert read(absent=[]).absent == read(absent=None).absent == ()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"conditions": "none"}, "'conditions' must be a list"),
    ({"conditions": [[YEAR, "<"]]}, "a condition must be"),
    ({"conditions": [[YEAR, "like", "1970"]]}, "operator must be '=', '!='"),
    ({"conditions": [["UNKNOWN city 1", "<", "1970"]]}, "a condition names 'city 1'"),
    ({"conditions": [[YEAR, "<", "soon"]]}, "takes a number or a date"),
    ({"absent": [[FILM, "prize"]]}, "triple 1 must be three texts"),
    ({"absent": [["Her", "prize", "Oscar"]]}, "must name one unknown"),
    ({"operation": "median"}, "kind must be 'list', 'count'"),
    ({"operation": {"kind": "max"}}, "'max' takes 1 unknowns"),
    ({"operation": {"kind": "max", "by": "UNKNOWN city 1"}}, "the operation names ['city 1']"),
    ({"operation": {"kind": "order", "by": YEAR, "limit": "ten"}}, "limit must be a valid integer"),
    ({"operation": {"kind": "order", "by": YEAR, "limit": "9" * 5000}}, "limit must be a valid integer"),
    (
        {"operation": {"kind": "list", "by": YEAR, "of": "count", "comparison": ">", "number": "9" * 5000}},
        "number must be a valid integer",
    ),
    ({"operation": ["count"]}, "must be a dictionary or an instance of Operation"),
]


@pytest.mark.parametrize(("said", "message"), REFUSED)
def test_what_does_not_fit_is_refused_for_repair(said: dict[str, Any], message: str) -> None:
    with pytest.raises(PatternParseError, match=re.escape(message)):
        read(**said)
    good = json.dumps({"triples": TRIPLES, "target": FILM, "operation": "count"})
    model = ScriptedChatModel(replies=[json.dumps({"triples": TRIPLES, "target": FILM, **said}), good])
    pattern = LLMPatternGenerator(model).invoke({"question": "How many?"})
    assert pattern.operation == Operation("count")
    assert message in model.prompts[1][0].text


def test_shots_say_all_of_a_pattern() -> None:
    film, year = Unknown("film 1", "film"), Unknown("year 1", "year")
    pattern = Pattern.of(
        (film, "directed by", "Spike Jonze"),
        (film, "released in", year),
        target="film 1",
        conditions=[Condition("year 1", "between", ("1970", "1980"))],
        absent=[(film, "prize", Unknown("prize 1", "prize")), (Unknown("prize 1", "prize"), "country", "France")],
        operation=Operation("order", ("year 1",), limit=2, descending=False),
    )
    _, reply = as_shot(Question("Which?", pattern=pattern))
    assert parse_pattern(json.dumps(reply)) == pattern
