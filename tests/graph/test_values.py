"""Each rule by which names are values, and how values are compared."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers import KnowledgeGraph
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.operations import Condition
from kg_retrievers.graph.value_columns import ValueColumns, ranked_values
from kg_retrievers.graph.values import Comparison, Value, holds, read_value

DATES = {
    "1987": (date(1987, 1, 1), date(1987, 12, 31)),
    "2999": (date(2999, 1, 1), date(2999, 12, 31)),
    "1987-03": (date(1987, 3, 1), date(1987, 3, 31)),
    "1988/02": (date(1988, 2, 1), date(1988, 2, 29)),
    "Sept. 1987": (date(1987, 9, 1), date(1987, 9, 30)),
} | dict.fromkeys(
    [
        "1987-03-02", "1987/3/2", "1987.03.02", "2.3.1987", "02/03/1987", "2-3-1987", "2 March 1987", "2nd mar 1987",
        "March 2, 1987", "MAR 2nd 1987", "1987-03-02T10:15:00Z", "1987-03-02 10:15", " 1987-03-02 ",
    ],
    (date(1987, 3, 2), date(1987, 3, 2)),
)  # fmt: skip


@pytest.mark.parametrize(("text", "days"), DATES.items())
def test_dates(text: str, days: tuple[date, date]) -> None:
    value = read_value(text)
    assert value is not None
    assert (value.first, value.last, value.text) == (*days, text)


NUMBERS = {
    "84": (84, ""),
    "-1.5": (-1.5, ""),
    "+2": (2, ""),
    ".5": (0.5, ""),
    "1,250,000": (1_250_000, ""),
    "1.250.000": (1_250_000, ""),
    "1\u202f250,5": (1250.5, ""),
    "1,5": (1.5, ""),
    "1,250": (1250, ""),
    "1.250": (1.25, ""),
    "3e5": (300_000, ""),
    "2.5E-1": (0.25, ""),
    "84 m": (84, "m"),
    "12 %": (12, "%"),
    "30 km/h": (30, "km/h"),
    "20 m²": (20, "m²"),
    "€ 12.50": (12.5, "€"),
    "USD 3": (3, "USD"),
    "410 million €": (410e6, "€"),
    "2 thousand": (2000, ""),
    "0.0": (0, ""),
    "0,125": (0.125, ""),
    "$5m": (5e6, "$"),
    "CHF 2.5 m": (2.5e6, "CHF"),
    "£5k": (5000, "£"),
    "5 bn €": (5e9, "€"),
    "$5 m²": (5, "m²"),
    "12 monkeys": (12, "monkeys"),
    "30 Miles/Hour": (30, "Miles/Hour"),
    "999999999999999": (999_999_999_999_999, ""),
    "0999": (999, ""),
    "3000": (3000, ""),
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_numbers(text: str, number: tuple[float, str]) -> None:
    value = read_value(text)
    assert value is not None
    assert (value.number, value.unit, value.first) == (*number, None)


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("YES", True), ("False", False), (" no ", False)])
def test_truth_values(text: str, truth: bool) -> None:
    assert read_value(text) == Value(text, truth=truth)


NO_VALUES = [
    "", "   ", "Apollo 13", "13 Monkeys Street", "1987-13", "1987-00-01", "1987-02-30", "31.4.1987", "0 March 1987",
    "1987-03-00", "1987-03/02", "0987-03-02", "3000-01-01", "12-34", "1e999", "1e-999", "9e308 million",
    "1234567890123456", "1,2,3", "12,34,56", "nan", "inf", "Infinity", "-", "1_000", "0x10", "٣", "½", "m 84",
    "84 m high", "12 Monkeys", "12 MONKEYS", "0,125,000", "0.125.000",
    "9" * 400, "1" * 10**6, "tt0111161", "127.0.0.1", "2 Mayday 1987",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_VALUES, ids=lambda text: text[:20])
def test_what_is_no_value(text: str) -> None:
    assert read_value(text) is None


def value_of(text: str) -> Value:
    return read_value(text) or Value(text)


HELD = {
    ("1987", "1990"): {"<", "<=", "!="},
    ("1987", "1987"): {"=", "<=", ">="},
    ("1987-03-02", "1987"): {"=", "<=", ">="},  # a day is in its year
    ("1987", "1987-03-02"): set(),  # a year may be any of its days
    ("1987", "1987-01-01"): {">="},
    ("1987-03", "March 1988"): {"<", "<=", "!="},
    ("84 m", "85 metres"): {"<", "<=", "!="},
    ("84 m", "84 ft"): {"!="},  # units that differ
    ("5 MW", "5 mW"): {"!="},
    ("5 MW", "5 megawatts"): {"=", "<=", ">="},
    ("$5m", "$4,000,000"): {">", ">=", "!="},
    ("0,125", "1"): {"<", "<=", "!="},
    ("1987 m", "1987"): {"=", "<=", ">="},  # no date: numbers
    ("yes", "true"): {"=",},
    ("yes", "no"): {"!="},
    ("Ann", " ANN "): {"="},
    ("Ann", "Bob"): {"!="},
}  # fmt: skip


@pytest.mark.parametrize(("texts", "held"), HELD.items())
def test_comparisons(texts: tuple[str, str], held: set[Comparison]) -> None:
    comparisons: list[Comparison] = ["=", "!=", "<", "<=", ">", ">="]
    assert {one for one in comparisons if holds(value_of(texts[0]), one, value_of(texts[1]))} == held


# --- columns ---

TEXTS = st.one_of(
    st.sampled_from([*DATES, *NUMBERS, *(text for text in NO_VALUES if len(text) < 500), "yes", "no", "TRUE", "Ann"]),
    st.dates(date(1000, 1, 1), date(2999, 12, 31)).map(str),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.tuples(st.integers(0, 40), st.sampled_from([" m", "m", " ft", " %", " MW", " mW"])).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    ),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(
    labels=st.lists(TEXTS.filter(str.strip), min_size=1, max_size=12),
    operator=st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "between"]),
    literals=st.tuples(TEXTS, TEXTS),
)
def test_columns_hold_as_values_do(labels: list[str], operator: Any, literals: tuple[str, str]) -> None:
    read = [read_value(text) for text in literals]
    ordered = operator not in ("=", "!=")
    if any(value is None or (ordered and value.number is None and value.first is None) for value in read):
        return
    graph = KnowledgeGraph.from_triples(
        [(str(at), "is", str(at)) for at in range(len(labels))],
        labels={str(at): label for at, label in enumerate(labels)},
    )
    low, high = (value_of(text) for text in literals)
    if operator == "between":
        condition = Condition("x", "between", literals)
        wanted = [holds(value_of(label), ">=", low) and holds(value_of(label), "<=", high) for label in labels]
    else:
        condition = Condition("x", operator, literals[0])
        wanted = [holds(value_of(label), operator, low) for label in labels]
    assert ValueColumns(graph).where(condition, np.arange(len(labels))).tolist() == wanted


def test_contained_text_is_looked_for_in_all_names() -> None:
    graph = KnowledgeGraph.from_triples([("Q1", "in", "Q2")], labels={"Q1": "Genf"}, aliases={"Q1": ["GENEVA"]})
    where = ValueColumns(graph).where(Condition("x", "contains", "neva"), np.arange(2))
    assert where.tolist() == [True, False]


def test_ranked_values() -> None:
    labels = ["1987", "1987-03-02", "12 m", "8", "300 ft", "14 metres", "Ann"]
    columns = ValueColumns(KnowledgeGraph.from_triples([(label, "is", label) for label in labels]))

    def rank_keys(*entities: int) -> list[tuple[float, ...] | None]:
        ranked, keys = ranked_values(columns, np.array(entities, np.int64))
        return [tuple(key) if kept else None for kept, key in zip(ranked.tolist(), keys.tolist(), strict=True)]

    day = float(date(1987, 3, 2).toordinal())
    year = (float(date(1987, 1, 1).toordinal()), float(date(1987, 12, 31).toordinal()))
    assert rank_keys(0, 1, 6) == [year, (day, day), None]  # more dates than numbers
    assert rank_keys(2, 3, 4, 5, 6) == [(12, 12), (8, 8), None, (14, 14), None]  # metres are more frequent
    assert rank_keys(4, 3) == [(300, 300), (8, 8)]
    assert rank_keys() == []


# --- graphs ---


def houses(**more: Any) -> KnowledgeGraph:
    facts = [("Mill", "opened in", "1987"), ("Barn", "opened in", "March 1901"), ("Barn", "height", "1,250 m")]
    facts += [("Mill", "height", "84 m"), ("Mill", "code", "1987"), ("Barn", "code", "0815"), ("Mill", "near", "Barn")]
    return KnowledgeGraph.from_triples(facts, **more)


def ranges(graph: KnowledgeGraph) -> dict[str, tuple[str | None, str | None]]:
    return {row.relation: (row.least, row.greatest) for row in graph.schema().relations}


def test_value_of_an_entity() -> None:
    graph = KnowledgeGraph.from_triples([("Q1", "opened in", "Q2")], labels={"Q2": "1987"})
    value = graph.value("Q2")
    assert value is not None
    assert value.first == date(1987, 1, 1)
    assert graph.value("Q1") is None
    with pytest.raises(InvalidArgumentError, match="no entity with the key '1987'"):
        graph.value("1987")


def test_schema_shows_ranges() -> None:
    assert ranges(houses()) == {
        "opened in": ("March 1901", "1987"),
        "height": ("84 m", "1,250 m"),
        "code": ("0815", "1987"),
        "near": (None, None),
    }
    mixed = KnowledgeGraph.from_triples([("a", "r", "12"), ("a", "r", "Ann"), ("a", "s", "12"), ("a", "s", "3")])
    assert ranges(mixed) == {"r": (None, None), "s": ("3", "12")}


def test_tails_of_text_relations_alone_are_no_values(tmp_path: Path) -> None:
    graph = houses(text_relations=["code"])
    assert graph.value("0815") is None
    assert graph.value("1987") is not None  # it is a year, too
    assert ranges(graph)["code"] == (None, None)
    where = ValueColumns(graph).where(Condition("x", "<", 1000), np.arange(len(graph.entities)))
    assert [graph.entities[entity] for entity in np.flatnonzero(where).tolist()] == ["84 m"]
    graph.save(tmp_path)
    opened = KnowledgeGraph.open(tmp_path)
    for other in (opened, pickle.loads(pickle.dumps(graph)), graph.with_changes(added=[("Mill", "code", "7")])):
        assert other.text_relations == ("code",)
        assert other.value("0815") is None
    assert houses(text_relations=["code", "opened in"]).value("1987") is None


def test_every_reader_takes_text_relations(tmp_path: Path) -> None:
    path = tmp_path / "graph.tsv"
    path.write_text("Mill\tcode\t0815\n", encoding="utf-8")
    graph = KnowledgeGraph.from_file(path, text_relations=["code"])
    again = KnowledgeGraph.from_networkx(graph.to_networkx(), text_relations="code")
    assert graph.value("0815") is again.value("0815") is None
    assert again.text_relations == ("code",)
    with pytest.raises(InvalidArgumentError, match="no text relation 'codes'; did you mean 'code'"):
        houses(text_relations=["code", "codes"])
