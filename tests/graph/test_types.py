"""Triple, Path, Pattern and Evidence."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import InvalidArgumentError, PatternError
from kg_retrievers.graph import Known, Path, Pattern, Term, Triple, Unknown
from kg_retrievers.graph.types import path_rows, read_paths

X, Y = Unknown("x"), Unknown("y")
HER = Triple("Her", "directed_by", "Spike Jonze")
ADAPTATION = Triple("Adaptation", "directed_by", "Spike Jonze")
EDGE = ("Her", "directed by", X)


# --- triples, paths and evidence ---


def test_path_crosses_triples_either_way() -> None:
    path = Path(("Her", "Spike Jonze", "Adaptation"), (HER, ADAPTATION))
    assert path.relations == ("directed_by", "directed_by")
    loop = Triple("a", "r", "a")
    assert Path(("a", "a"), (loop,)).relations == ("r",)
    assert Path(("a",), ()).relations == ()


@pytest.mark.parametrize(
    ("entities", "triples", "words"),
    [
        (("Her",), (HER,), "1 triples join 2 entities, but got 1"),
        (("Her", "Adaptation"), (HER,), "does not join 'Her' and 'Adaptation'"),
        (("Spike Jonze", "Her", "Adaptation"), (HER, ADAPTATION), "does not join 'Her' and 'Adaptation'"),
    ],
)
def test_path_that_does_not_hold_together(entities: tuple[str, ...], triples: tuple[Triple, ...], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Path(entities, triples)


@pytest.mark.parametrize(
    "rows",
    [
        *(None, 2, "Her", {"Her": [0]}, [[]], [None], ["Her"], [["Her"]], [["Her", 0]], [["Her", []]], [["Her", "0"]]),
        *([["Her", [0], 1]], [[7, [0]]], [[None, [0]]], [["Her", ["0"]]], [["Her", [True]]], [["Her", [0.0]]]),
        *([["Her", [-1]]], [["Her", [2]]], [["Her", [10**30]]], [["Her", [[0]]]], [["Her", [1]]], [["Nobody", [0]]]),
        *([["Her", [0, None]]], [["Her", [0, 1, 0]]]),
    ],
    ids=repr,
)
def test_rows_that_are_no_paths_among_the_triples_are_left_out(rows: object) -> None:
    assert read_paths(rows, [HER, ADAPTATION]) == []
    if isinstance(rows, list):
        assert read_paths([*rows, ["Her", (0, 1)]], [HER, ADAPTATION]) == [Path.along("Her", [HER, ADAPTATION])]


@given(st.lists(st.builds(Triple, *map(st.sampled_from, ["abc", "rs", "abc"])), min_size=1, unique=True), st.data())
def test_paths_are_read_back_from_their_rows(triples: list[Triple], data: st.DataObject) -> None:
    paths = []
    for _ in range(data.draw(st.integers(0, 4))):
        start = here = data.draw(st.sampled_from("abc"))
        crossed: list[Triple] = []
        for triple in data.draw(st.lists(st.sampled_from(triples), max_size=6)):
            if here in (triple.head, triple.tail):
                crossed.append(triple)
                here = triple.tail if here == triple.head else triple.head
        paths += [Path.along(start, crossed)] if crossed else []
        assert not crossed or paths[-1].entities[-1] == here
    rows = path_rows(paths, triples)
    assert read_paths(json.loads(json.dumps(rows)), triples) == paths


# --- patterns ---


def test_strings_are_known_and_repeated_triples_count_once() -> None:
    pattern = Pattern.of(EDGE, ("Her", "directed by", X), (X, "born in", Unknown("y", "city")), target="y")
    assert pattern.nodes == (Known("Her"), X, Unknown("y", "city"))
    assert len(pattern.triples) == 2
    assert pattern == Pattern((EDGE, pattern.triples[1]), target="y")  # type: ignore[arg-type]


def test_source_is_no_part_of_equality() -> None:
    by_model = Pattern.of(EDGE, source="llm")
    assert by_model == Pattern.of(EDGE)
    assert by_model.to_dict()["source"] == "llm"
    assert hash(by_model) == hash(Pattern.of(EDGE))


def test_a_film_may_be_called_unknown() -> None:
    pattern = Pattern.of(("Unknown", "directed by", Unknown("Unknown")), target="Unknown")
    assert pattern.to_dict() == {"triples": [["Unknown", "directed by", {"unknown": "Unknown"}]], "target": "Unknown"}
    assert Pattern.from_dict(pattern.to_dict()) == pattern


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pattern.of((X, "r", Unknown("x", "film"))), "two different types"),
        (lambda: Pattern.of(EDGE, target="y"), "the target 'y' is none of the unknowns"),
        (lambda: Pattern.of(EDGE, different=[(X, "Adaptation")]), "are not two of its nodes"),
        (lambda: Pattern.of(EDGE, different=[(X, X)]), "are not two of its nodes"),
        (lambda: Pattern.of(("Her", Known("r", type="film"), X)), "is a relation"),
        (lambda: Pattern.of(("Her", Known("r", entity="Her"), X)), "is a relation"),
        (lambda: Pattern.of(("Her", 3, X)), 'a term is a text or {"unknown": name}.*got 3'),  # type: ignore[arg-type]
        (lambda: Pattern.of(("Her", " ", X)), "empty text"),
    ],
)
def test_bad_pattern(make: Any, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        make()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "must be a dictionary or an instance of Pattern, but got []"),
        ({}, "got no triples; a pattern needs at least one"),
        ({"triples": []}, "no triples"),
        ({"triples": ["Her"]}, "triples.0 must be a tuple, list"),
        ({"triples": [["Her", "r"]]}, "triples.0.2 is missing in ['Her', 'r']"),
        ({"triples": [["Her", "r", 3]]}, "a term is a text or"),
        ({"triples": [["Her", "r", {"unknown": 3}]]}, "a term is a text or"),
        ({"triples": [["Her", "r", {"unknown": "x", "entity": "Her"}]]}, "a term is a text or"),
        ({"triples": [["Her", "r", "x"]], "targets": ["x"]}, "targets must be left out: there is no such key"),
        ({"triples": [["Her", "r", "x"]], "target": ["x"]}, "target must be a valid string"),
        ({"triples": [["Her", "r", "x"]], "truncated": 1}, "truncated must be a valid boolean"),
        ({"triples": [["Her", "r", "x"]], "confidence": True}, "confidence must be a valid number"),
        ({"triples": [["Her", "r", "x"]], "confidence": 2}, "confidence must be less than or equal to 1"),
        ({"triples": [["Her", "r", "x"]], "different": [["Her"]]}, "different.0.1 is missing in ['Her']"),
    ],
    ids=str,
)
def test_bad_dictionary(data: Any, words: str) -> None:
    with pytest.raises(PatternError, match=re.escape(words)):
        Pattern.from_dict(data)


names = st.text(min_size=1).filter(str.strip)
kinds = st.none() | names
known = st.builds(Known, names, kinds, kinds)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Any pattern: nodes with types and keys, relations without, a target and inequalities among the nodes."""
    unknown = [Unknown(name, draw(kinds)) for name in draw(st.lists(names, max_size=3, unique=True))]
    node: st.SearchStrategy[Term] = st.sampled_from([*unknown, *draw(st.lists(known, min_size=1, max_size=3))])
    relation = st.builds(Known, names) | st.builds(Unknown, names)
    edges = draw(st.lists(st.tuples(node, relation, node), min_size=1, max_size=4))
    pattern = Pattern.of(*edges)
    targets = [node.name for node in pattern.nodes if isinstance(node, Unknown)]
    pairs = [(a, b) for a in pattern.nodes for b in pattern.nodes if a != b]
    return Pattern.of(
        *edges,
        target=draw(st.sampled_from([None, *targets])),
        different=draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else (),
        source=draw(st.sampled_from([None, "llm", "examples", "zero-shot"])),
        truncated=draw(st.booleans()),
    )


@given(patterns())
def test_round_trip(pattern: Pattern) -> None:
    data = pattern.to_dict()
    assert json.loads(json.dumps(data)) == data
    again = Pattern.from_dict(data)
    assert (again, again.source, again.nodes) == (pattern, pattern.source, pattern.nodes)
    assert again.truncated == pattern.truncated
    assert again.to_dict() == data
