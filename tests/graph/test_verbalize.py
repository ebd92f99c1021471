"""Triples as words, within a budget."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.types import Path, Triple
from kg_retrievers.graph.verbalize import (
    Style,
    Verbalization,
    approximate_tokens,
    as_data,
    grouped_lines,
    numbered_lines,
    path_lines,
    readable,
    table_lines,
    triple_lines,
    verbalize,
    walk_lines,
)

FACTS = [
    Triple("Her", "starring", "Amy Adams"),
    Triple("Her", "directed_by", "Spike Jonze"),
    Triple("Her", "starring", "Rooney Mara"),
    Triple("Arrival", "starring", "Amy Adams"),
]
LINES: dict[Style, Callable[[list[Triple]], list[str]]] = {
    "triples": triple_lines,
    "grouped": grouped_lines,
    "numbered": numbered_lines,
    "tables": table_lines,
    "paths": walk_lines,
}

awkward = [
    *("", " ", " a ", "0", "007", "1e5", "=1+1", "a,b", 'say "a"', '"', "🎬"),
    *("a\nb", "\r", "a\r\nb", "\n\n", "\u2028", "\x00"),
]
names = st.sampled_from(["a", "b", "Spike Jonze", *awkward]) | st.text()
facts = st.lists(st.builds(Triple, names, st.sampled_from(["r", "s_t", *awkward]) | st.text(), names), max_size=40)
styles = st.sampled_from(list(LINES))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("directed_by", "directed by"),
        ("_hypernym__of_", "hypernym of"),
        ("birthPlace", "birth place"),
        ("hasISBN", "has ISBN"),
        ("/film/director/film", "film director film"),
        ("people.person.nationality", "people person nationality"),
        ("/people/person_x/y_z./award/won", "people person x y z award won"),
        ("St._Louis", "St. Louis"),
    ],
)
def test_readable_makes_words(name: str, words: str) -> None:
    assert readable(name) == words


@pytest.mark.parametrize(
    "name",
    [
        *("Spike Jonze", "AC/DC Live", "snake_case in a title", "a\tb_c", " x_y"),
        *("McDonald", "iPhone", "U.S.A.", "3.14", "example.com", "AC/DC", "/m/027rn", "$", "1984", "___", "", " "),
        *("http://example.org/birthPlace", "https://x.org/a_b"),
    ],
)
def test_readable_leaves_other_names_alone(name: str) -> None:
    assert readable(name) == name


@given(facts, st.dictionaries(names, names))
def test_tables_are_read_back_as_they_are_shown(triples: list[Triple], labels: dict[str, str]) -> None:
    lines = table_lines(triples, lambda key: labels.get(key, key))
    assert all(line.splitlines() == [line] for line in lines if line)
    rows = list(csv.reader(lines))
    if not triples:
        assert rows == []
        return
    keys = list(dict.fromkeys(key for triple in triples for key in (triple.head, triple.tail)))
    nodes = [[str(number), as_data(labels.get(key, key))] for number, key in enumerate(keys)]
    edges = [
        [str(keys.index(head)), as_data(readable(relation)), str(keys.index(tail))] for head, relation, tail in triples
    ]
    assert rows == [["node_id", "node_attr"], *nodes, [], ["src", "edge_attr", "dst"], *edges]


AB, BC, BD = Triple("a", "r", "b"), Triple("b", "s", "c"), Triple("b", "s", "d")


@pytest.mark.parametrize(
    ("triples", "paths", "lines"),
    [
        ([AB, BC], [], ["a -> r -> b", "b -> s -> c"]),
        ([AB, BC], [["a", [0]], ["b", [1]]], ["a -> r -> b", "b -> s -> c"]),
        ([AB, BC], [["c", [1, 0]]], ["c <- s <- b <- r <- a"]),
        ([AB, BC, BD], [["a", [0, 1]], ["a", [0, 2]]], ["a -> r -> b -> s -> c", "a -> r -> b -> s -> d"]),
        ([AB, BC, BD], [["b", [0, 0]]], ["b <- r <- a -> r -> b", "b -> s -> c", "b -> s -> d"]),
        ([AB, BC], [["a", [0, 1]], ["a", [0, 2]], ["c", [0]], "x"], ["a -> r -> b -> s -> c"]),
        ([AB, BC], 2, ["a -> r -> b", "b -> s -> c"]),
    ],
)
def test_walks_that_are_known(triples: list[Triple], paths: object, lines: list[str]) -> None:
    """A triple that is on none has a line of its own."""
    assert walk_lines(triples, paths=paths) == lines
    assert verbalize(triples, style="paths", paths=paths).text == "\n".join(lines)
    assert verbalize(triples, style="triples", paths=paths).text == "\n".join(triple_lines(triples))


@given(
    st.lists(st.builds(Triple, *map(st.sampled_from, ["abc", "rs", "abc"])), max_size=8, unique=True),
    st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 8), max_size=3)), max_size=6),
    st.integers(1, 200),
)
def test_walks_are_whole_and_no_triple_is_lost(triples: list[Triple], rows: list[Any], budget: int) -> None:
    got = verbalize(triples, style="paths", paths=rows, max_tokens=budget, count_tokens=len)
    first = triples[: got.shown]
    whole = [
        Path.along(start, [triples[place] for place in places])
        for start, places in rows
        if places and all(place < got.shown for place in places) and _is_walk(start, [triples[p] for p in places])
    ]
    rest = [triple for triple in first if not any(triple in path.triples for path in whole)]
    lines = path_lines(whole) + triple_lines(rest)
    notice = f"({got.left_out} more {'fact' if got.left_out == 1 else 'facts'} left out)"
    assert got.text in ("\n".join(lines + ([notice] if got.left_out else [])), "")
    assert len(got.text) <= budget


def _is_walk(here: str, triples: list[Triple]) -> bool:
    for head, _, tail in triples:
        if here not in (head, tail):
            return False
        here = tail if here == head else head
    return True


@given(facts)
def test_a_line_is_one_line(triples: list[Triple]) -> None:
    paths = [Path((triple.head, triple.tail), (triple,)) for triple in triples]
    for line in triple_lines(triples) + grouped_lines(triples) + path_lines(paths) + walk_lines(triples):
        assert line.splitlines() == [line]
    assert triple_lines([Triple("a\r\nb", "r\x00s", "\u2028\x85c")]) == ["a b -> r s ->  c"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("Spike Jonze", 3),  # 2 words of 10 letters: 1.5 + 0.8
        ("Who directed Her?", 5),  # 3 of 14, and a mark: 2.25 + 1.12 + 1.25
        ("1,22\n", 5),  # 3 digits, a mark and a line: 2.1 + 1.25 + 1
        ("été", 3),  # a word of 3 letters, 2 of them not ASCII: 0.75 + 0.24 + 1.5
    ],
)
def test_approximate_tokens(text: str, tokens: int) -> None:
    assert approximate_tokens(text) == tokens


def test_verbalize_without_a_limit() -> None:
    assert verbalize(FACTS) == Verbalization("\n".join(grouped_lines(FACTS)), 4, 0)
    for style, lines in LINES.items():
        assert verbalize(FACTS, style=style) == Verbalization("\n".join(lines(FACTS)), 4, 0)
        assert verbalize([], style=style, max_tokens=1) == Verbalization("", 0, 0)


@given(facts, styles, st.integers(1, 200))
def test_the_budget_holds_and_is_used(triples: list[Triple], style: Style, budget: int) -> None:
    got = verbalize(triples, style=style, max_tokens=budget, count_tokens=len)
    assert len(got.text) <= budget
    assert got.shown + got.left_out == len(triples)

    def text(shown: int) -> str:
        more = len(triples) - shown
        notice = [f"({more} more {'fact' if more == 1 else 'facts'} left out)"] if more else []
        apart = [""] if more and shown and style == "tables" else []
        return "\n".join(LINES[style](triples[:shown]) + apart + notice)

    assert got.text == (text(got.shown) if len(text(got.shown)) <= budget else "")
    assert got.text or not got.shown
    assert not got.left_out or len(text(got.shown + 1)) > budget


@pytest.mark.parametrize(
    ("arguments", "wanted"), [({"max_tokens": 0}, "1 or more.*got 0"), ({"style": "x"}, "got 'x'")]
)
def test_bad_arguments(arguments: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidArgumentError, match=wanted):
        verbalize(FACTS, **arguments)
