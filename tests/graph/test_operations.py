"""Conditions and operations of patterns: round trips, what is refused, and hostile values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers import Pattern, Unknown
from kg_retrievers.errors import PatternError
from kg_retrievers.graph.operations import MAX_TEXT, MAX_TEXTS, Condition, Operation, literal_value

X, Y, W = Unknown("x"), Unknown("y"), Unknown("w")

CONDITIONS = [
    Condition("x", "=", "Ann"),
    Condition("x", "!=", True),
    Condition("x", "<", 1970),
    Condition("x", "between", ("1970", "May 1980")),
    Condition("x", "contains", "an"),
    Condition("x", "in", ("Ann", "Bob")),
]
OPERATIONS = [
    Operation("list"),
    Operation("list", ("x",), "count", ">=", 2),
    Operation("count"),
    Operation("exists"),
    Operation("max", ("x",)),
    Operation("order", ("x",), limit=3, descending=False),
    Operation("compare", ("x", "y"), comparison=">"),
]


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_condition_round_trip(condition: Condition) -> None:
    assert Condition.from_dict(through_json(condition.to_dict())) == condition
    pattern = Pattern.of((X, "r", Y), target="y", conditions=[condition], absent=[(X, "s", W), (W, "t", "A")])
    assert Pattern.from_dict(through_json(pattern.to_dict())) == pattern


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_operation_round_trip(operation: Operation) -> None:
    assert Operation.from_dict(through_json(operation.to_dict())) == operation
    pattern = Pattern.of((X, "r", Y), target="y", operation=operation)
    assert Pattern.from_dict(through_json(pattern.to_dict())) == pattern


def test_short_forms() -> None:
    assert Operation.from_dict("count") == Operation("count")
    assert Operation.from_dict({"kind": "max", "by": "x"}) == Operation("max", ("x",))
    assert Condition("x", "between", [1, 2]).value == (1, 2)  # type: ignore[arg-type]


REFUSED_CONDITIONS: dict[str, tuple[Any, str]] = {
    "no object": (3, "must be a dictionary or an instance of Condition, but got 3"),
    "strange key": ({"unknown": "x", "operator": "=", "value": 1, "or": 2}, "or must be left out"),
    "missing": ({"unknown": "x", "operator": "="}, "value is missing in"),
    "operator": ({"unknown": "x", "operator": ["like"], "value": 1}, "operator must be '=', '!='"),
    "no name": ({"unknown": " ", "operator": "=", "value": 1}, "unknown: must name an unknown node"),
    "null": ({"unknown": "x", "operator": "=", "value": None}, "wanted a text, number or truth value"),
    "list": ({"unknown": "x", "operator": "=", "value": [1]}, "'=' takes one text, number or truth value"),
    "no list": ({"unknown": "x", "operator": "in", "value": "Ann"}, "'in' takes a list"),
    "in of numbers": ({"unknown": "x", "operator": "in", "value": [1]}, "'in' takes texts"),
    "in of many": ({"unknown": "x", "operator": "in", "value": ["a"] * 1001}, f"a list of 1 ... {MAX_TEXTS} names"),
    "between of three": ({"unknown": "x", "operator": "between", "value": [1, 2, 3]}, "takes a list of two values"),
    "empty": ({"unknown": "x", "operator": "contains", "value": " "}, f"a text of 1 ... {MAX_TEXT} characters"),
    "long": ({"unknown": "x", "operator": "=", "value": "a" * 10**6}, f"a text of 1 ... {MAX_TEXT} characters"),
    "below a name": ({"unknown": "x", "operator": "<", "value": "Ann"}, "'<' takes a number or a date, but got 'Ann'"),
    "NaN": ({"unknown": "x", "operator": "=", "value": float("nan")}, "wanted a finite number"),
    "10^400": ({"unknown": "x", "operator": ">", "value": 10**400}, "wanted a finite number of at most 308 digits"),
    "absurd date": ({"unknown": "x", "operator": ">", "value": "1987-02-30"}, "takes a number or a date"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED_CONDITIONS.values(), ids=REFUSED_CONDITIONS.keys())
def test_refused_condition(data: Any, message: str) -> None:
    with pytest.raises(PatternError, match=re.escape(message)) as caught:
        Condition.from_dict(data)
    assert len(str(caught.value)) < 600


REFUSED_OPERATIONS: dict[str, tuple[Any, str]] = {
    "no object": (3, "must be a dictionary or an instance of Operation"),
    "no kind": ({}, "kind is missing in {}"),
    "strange key": ({"kind": "count", "distinct": True}, "distinct must be left out: there is no such key"),
    "max of nothing": ("max", "'max' takes 1 unknowns in 'by', but got []"),
    "compare of one": ({"kind": "compare", "by": ["x"], "comparison": ">"}, "'compare' takes 2 unknowns"),
    "compare how": ({"kind": "compare", "by": ["x", "y"]}, "'compare' takes a comparison, such as '>='"),
    "comparison of a count": ({"kind": "count", "comparison": ">"}, "'count' takes no comparison, but got '>'"),
    "of": ({"kind": "max", "by": "x", "of": "sum"}, "of must be 'value' or 'count'"),
    "limit of a count": ({"kind": "count", "limit": 2}, "only 'connect', 'describe', 'order' takes a 'limit'"),
    "limit of 0": ({"kind": "order", "by": "x", "limit": 0}, "limit must be greater than or equal to 1"),
    "number of a count": ({"kind": "count", "number": 2}, "only 'list' takes a 'number'"),
    "none of it": (
        {"kind": "list", "by": "x", "of": "count", "comparison": "=", "number": 0},
        "say so by 'absent' triples instead",
    ),
    "period of nothing": ({"kind": "count", "period": "year"}, "the period 'year' needs a 'group'"),
    "strange period": ({"kind": "count", "group": "y", "period": "week"}, "period must be 'day', 'month', 'year'"),
    "descending": ({"kind": "order", "by": "x", "descending": 1}, "descending must be a valid boolean"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), REFUSED_OPERATIONS.values(), ids=REFUSED_OPERATIONS.keys())
def test_refused_operation(data: Any, message: str) -> None:
    with pytest.raises(PatternError, match=re.escape(message)) as caught:
        Operation.from_dict(data)
    assert len(str(caught.value)) < 600


REFUSED_PATTERNS: dict[str, tuple[Callable[[], Pattern], str]] = {
    "condition on nothing": (
        lambda: Pattern.of((X, "r", Y), conditions=[Condition("z", "=", 1)]),
        "a condition names 'z', none of the unknown nodes ['x', 'y']",
    ),
    "operation on nothing": (
        lambda: Pattern.of((X, "r", Y), target="x", operation=Operation("max", ("z",))),
        "the operation names ['z'], none of the unknown nodes ['x', 'y']",
    ),
    "operation on what is absent": (
        lambda: Pattern.of((X, "r", Y), target="x", absent=[(X, "s", W)], operation=Operation("max", ("w",))),
        "the operation names ['w']",
    ),
    "count of nothing": (
        lambda: Pattern.of((X, "r", Y), operation=Operation("count")),
        "the operation 'count' needs a target",
    ),
    "share of more triples": (
        lambda: Pattern.of((X, "r", Y), target="x", operation=Operation("share", whole=2)),
        "'share' takes a 'whole' of at most 1 triples, got 2",
    ),
    "share of others": (
        lambda: Pattern.of((Y, "r", "A"), (X, "r", Y), target="x", operation=Operation("share", whole=1)),
        "the first 1 triples, the whole of 'share', do not name the target",
    ),
    "absent and present": (lambda: Pattern.of((X, "r", Y), absent=[(X, "r", Y)]), "to be absent, and to be present"),
    "absent elsewhere": (lambda: Pattern.of((X, "r", "A"), absent=[(W, "s", "B")]), "must name one unknown"),
    "absent between two": (lambda: Pattern.of((X, "r", Y), absent=[(X, "s", Y)]), "must name one unknown"),
    "absent relation twice": (
        lambda: Pattern.of((X, Unknown("p"), "A"), absent=[(X, Unknown("p"), "B")]),
        "the relation 'p' of an absent triple is any relation, but another triple names it too",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED_PATTERNS.values(), ids=REFUSED_PATTERNS.keys())
def test_refused_pattern(make: Callable[[], Pattern], message: str) -> None:
    with pytest.raises(PatternError, match=re.escape(message)):
        make()


def deep(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value]
    return value


HOSTILE = [
    deep("a", 10**5),
    {"a": deep(1, 10**5)},
    10**400,
    10**5000,
    float("nan"),
    float("inf"),
    "a" * 10**6,
    b"a",
    None,
    True,
    [],
]


@pytest.mark.parametrize("value", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_hostile_values_are_refused_or_read(value: Any) -> None:
    for key in ("conditions", "absent", "operation"):
        for data in (value, [value], {"kind": value}, {"unknown": "x", "operator": "=", "value": value}):
            for one in (data, [data]):
                with suppress(PatternError):
                    Pattern.from_dict({"triples": [[{"unknown": "x"}, "r", "A"]], key: one})
    with suppress(PatternError):
        Pattern.from_dict({"triples": [[value, "r", "A"]]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["x", "max", "<"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["unknown", "kind", "by"]), inner),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None)
@given(
    condition=JSON | st.fixed_dictionaries({"unknown": st.just("x"), "operator": JSON, "value": JSON}),
    operation=JSON | st.fixed_dictionaries({"kind": JSON}, optional={"by": JSON, "of": JSON, "limit": JSON}),
)
def test_any_json_is_read_or_refused(condition: Any, operation: Any) -> None:
    data = {"triples": [[{"unknown": "x"}, "r", "A"]], "target": "x", "conditions": [condition], "operation": operation}
    with suppress(PatternError):
        pattern = Pattern.from_dict(data)
        assert Pattern.from_dict(through_json(pattern.to_dict())) == pattern


def test_literals() -> None:
    assert literal_value(True).truth is True
    assert literal_value(1987).first is not None  # an integer of four digits is a year, too
    assert literal_value(1987.0).first is None
    assert literal_value(10**300).number == 1e300
    assert literal_value("Ann").text == "Ann"
