"""A triple that can only be meant the other way round is turned, and said to be; other ones are not."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda
from plain_evaluator import NOTHING, Plain, evaluate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.errors import NoEvidenceError
from kg_retrievers.graph import PatternTriple, Term
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.carried_out import carried_out

COUNT = Operation("count")
X, Y, Z = Unknown("x"), Unknown("y"), Unknown("z")

FACTS = [
    ("Her", "directed by", "Jonze"),
    ("Tenet", "directed by", "Nolan"),
    ("Inception", "directed by", "Nolan"),
    ("Tenet", "released", "2020"),
    ("Tenet", "won", "Oscar"),
    ("Nolan", "born in", "London"),
    ("Anna", "parent of", "Berta"),
    ("Berta", "parent of", "Carla"),
    ("Doris", "parent of", "Emma"),
]
TYPES = {"Her": ["film"], "Tenet": ["film"], "Inception": ["film"], "Jonze": ["person"], "Nolan": ["person"]}
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS, types=TYPES), HashedEmbeddings())


def turned(*triples: Any, target: str | None = "x", operation: Operation | None = COUNT, **more: Any) -> list[Any]:
    pattern = Pattern.of(*triples, target=target, operation=operation, **more)
    carried = carried_out(INDEX, pattern)
    there = [*carried.pattern.triples, *carried.pattern.absent]
    for written, now in zip((*pattern.triples, *pattern.absent), there, strict=True):
        assert now == (PatternTriple(*written[::-1]) if written in carried.turned else written)
    return [[getattr(term, "text", getattr(term, "name", "")) for term in triple] for triple in carried.turned]


def test_known_entity_tells_the_direction() -> None:
    assert turned(("Nolan", "directed by", X)) == [["Nolan", "directed by", "x"]]
    assert turned((X, "directed by", "Nolan")) == []
    assert turned((Known("?", entity="Nolan"), "directed by", X))
    assert turned(("Oscar", "directed by", X)) == []  # neither way
    assert turned(("Nolan", "directed by", X), operation=Operation("list"))
    assert turned(("Nolan", "directed by", X), operation=None, conditions=[Condition("x", "contains", "e")])


def test_type_tells_the_direction() -> None:
    film, person = Unknown("x", "film"), Unknown("y", "person")
    assert turned((person, "directed by", film)) == [["y", "directed by", "x"]]
    assert turned((film, "directed by", person)) == []
    assert turned((Y, "directed by", film)) == [["y", "directed by", "x"]]


def test_neighbouring_triples_tell_the_direction() -> None:
    assert turned((X, "directed by", Y), ("Tenet", "released", Z), (X, "released", Z)) == []
    assert turned((Y, "directed by", X), (X, "released", "2020")) == [["y", "directed by", "x"]]
    assert turned((X, "directed by", Y), ("London", "born in", Y)) == [["London", "born in", "y"]]
    assert turned((Y, "directed by", X)) == []  # either way
    assert turned((X, "directed by", Y), (Y, "directed by", Z)) == []  # one of the two, but which?


def test_things_of_one_kind_are_not_turned() -> None:
    assert turned((X, "parent of", "Doris")) == []  # nobody is
    assert turned(("Emma", "parent of", X)) == []


def test_what_is_left_alone() -> None:
    reversed_one = ("Nolan", "directed by", X)
    assert turned(reversed_one, directed=True) == []
    assert turned(reversed_one, directed=False) == []
    assert turned(reversed_one, operation=None) == []
    assert turned(("Nolan", Unknown("r"), X)) == []


def test_condition_tells_no_direction() -> None:
    """That no city is called so leaves nobody who was born in one."""
    assert turned((X, "born in", Y), conditions=[Condition("y", "contains", "Nolan")]) == []


def test_absent_triples() -> None:
    by_nolan = (X, "directed by", "Nolan")
    assert turned(by_nolan, absent=[("Oscar", "won", X)]) == [["Oscar", "won", "x"]]
    assert turned(by_nolan, absent=[(Y, "won", X)]) == [["y", "won", "x"]]
    assert turned(by_nolan, absent=[(X, "won", Y)]) == []
    assert turned((by_nolan[::-1]), absent=[(Y, "won", X)]) == [["Nolan", "directed by", "x"], ["y", "won", "x"]]


def test_nothing_is_turned_into_what_is_said_to_be_absent() -> None:
    by_nolan = (X, "directed by", "Nolan")
    assert turned(by_nolan, absent=[by_nolan[::-1]]) == []
    assert turned(by_nolan[::-1], absent=[by_nolan]) == []


def test_each_side_of_a_comparison_by_itself() -> None:
    sides = Operation("compare", by=("x", "y"), of="count", comparison="<")
    triples = ("Jonze", "directed by", X), ("Oscar", "directed by", Y)  # nothing says of the Oscar which way
    assert turned(*triples, target=None, operation=sides) == [["Jonze", "directed by", "x"]]


def test_linked_text_means_its_entities() -> None:
    pattern = Pattern.of(("he", "directed by", X), target="x", operation=COUNT)
    assert carried_out(INDEX, pattern, {"he": ["Nolan"]}).turned == pattern.triples
    assert carried_out(INDEX, pattern, {"he": ["Tenet"]}).turned == ()


@pytest.mark.parametrize("shared", [1, 2])
def test_few_names_of_both_kinds(shared: int) -> None:
    facts = [(f"film {number}", "directed by", f"person {number}") for number in range(600)]
    facts += [(f"person {number}", "directed by", "a namesake") for number in range(shared)]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings(64))
    for number, turns in ((0, False), (9, shared == 1)):
        pattern = Pattern.of((f"person {number}", "directed by", X), target="x", operation=COUNT)
        assert bool(carried_out(index, pattern).turned) == turns


def test_few_tails_of_which_one_is_a_head() -> None:
    facts = [(f"place {number}", "in", f"land {number % 2}") for number in range(600)]
    index = GraphIndex.build(KnowledgeGraph.from_triples([*facts, ("land 0", "in", "world")]), HashedEmbeddings(64))
    pattern = Pattern.of(("place 7", "in", X), (X, "in", Y), target="x", operation=COUNT)
    assert carried_out(index, pattern).turned == ()
    assert carried_out(index, Pattern.of((X, "in", "place 7"), target="x", operation=COUNT)).turned == ()


def test_type_of_many_entities() -> None:
    facts = [(f"film {number}", "directed by", f"person {number}") for number in range(150)]
    types = {name: [name.split()[0]] for head, _, tail in facts for name in (head, tail)}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, types=types), HashedEmbeddings(64))
    pattern = Pattern.of((Y, "directed by", Unknown("x", "film")), target="x", operation=COUNT)
    assert carried_out(index, pattern).turned == pattern.triples


def test_evidence_says_what_is_turned() -> None:
    written = Pattern.of(("Nolan", "directed by", X), target="x", operation=COUNT)
    retriever = SimGRAGRetriever(index=INDEX, pattern_generator=RunnableLambda(lambda _: written))
    details = retriever.invoke("?")[0].metadata["details"]
    assert details["turned"] == [["Nolan", "directed by", {"unknown": "x"}]]
    assert details["pattern"]["triples"] == [[{"unknown": "x"}, "directed by", "Nolan"]]
    right = Pattern.of((X, "directed by", "Nolan"), target="x", operation=COUNT)
    assert "turned" not in retriever.invoke("?", pattern=right)[0].metadata["details"]


# --- random patterns, some of whose triples are turned ---

FILMS, PEOPLE = [f"Film {letter}" for letter in "ABCDE"], [f"Person {letter}" for letter in "PQRS"]
YEARS, CITIES, PRIZES = ["1987", "1990", "2013"], ["Bern", "Rome"], ["Oscar", "Bear"]
ENDS = {
    "directed by": (FILMS, PEOPLE),
    "starring": (FILMS, PEOPLE),
    "released": (FILMS, YEARS),
    "born in": (PEOPLE, CITIES),
    "won": (FILMS, PRIZES),
}
SEEDS = 6


@cache
def film_index(seed: int) -> GraphIndex:
    """A small graph whose relations join things of two kinds; those of an even seed have types."""
    choose = random.Random(seed)
    facts = [
        (choose.choice(heads), name, choose.choice(tails)) for name, (heads, tails) in ENDS.items() for _ in "1234567"
    ]
    known = [*FILMS, *PEOPLE, *YEARS, *CITIES, *PRIZES]
    types = {key: ["film" if key in FILMS else "other"] for key in known} if seed % 2 == 0 else {}
    listed = [("a list", "mentions", key) for key in known]  # each name of a pattern is in the graph
    return GraphIndex.build(KnowledgeGraph.from_triples([*facts, *listed], types=types), HashedEmbeddings(64))


@st.composite
def written(draw: st.DrawFn) -> tuple[int, Pattern, Pattern]:
    """A graph, a pattern around a film that is typed or has a known neighbour, and one with some triples turned."""
    seed = draw(st.integers(0, SEEDS - 1))
    film = Unknown("film", "film" if seed % 2 == 0 else None)

    def end(relation: str, *others: Term) -> Term:
        return draw(st.sampled_from([*others, *map(Known, ENDS[relation][1])]))

    if draw(st.integers(0, 4)) == 0:
        one, other = draw(st.permutations(FILMS))[:2]
        relation = draw(st.sampled_from(["starring", "released"]))
        triples: list[Any] = [(one, relation, X), (other, relation, Y)]
        more: dict[str, Any] = {"operation": draw(_comparisons())}
    else:
        triples = (
            [] if film.type and draw(st.booleans()) else [(film, "directed by", Known(draw(st.sampled_from(PEOPLE))))]
        )
        triples += draw(
            st.sampled_from([[], [(film, "starring", X)], [(film, "starring", X), (X, "born in", end("born in", Y))]])
        )
        triples += [(film, "released", end("released", Z))] if not triples or draw(st.booleans()) else []
        absent = [(film, "won", end("won", Unknown("w")))] if draw(st.booleans()) else []
        names = [node.name for node in Pattern.of(*triples).nodes if isinstance(node, Unknown)]
        more = {"operation": draw(_operations(names)), "target": "film", "absent": absent}
    as_meant = Pattern.of(*triples, **more)

    def some_turned(part: tuple[PatternTriple, ...]) -> list[PatternTriple]:
        return [PatternTriple(*triple[::-1]) if draw(st.booleans()) else triple for triple in part]

    more["absent"] = some_turned(as_meant.absent)
    return seed, as_meant, Pattern.of(*some_turned(as_meant.triples), **more)


def _comparisons() -> st.SearchStrategy[Operation]:
    of, signs = st.sampled_from(["value", "count"]), st.sampled_from(["<", "=", "!="])
    return st.builds(lambda of, sign: Operation("compare", by=("x", "y"), of=of, comparison=sign), of, signs)


def _operations(names: list[str]) -> st.SearchStrategy[Operation]:
    by, of = st.sampled_from(names), st.sampled_from(["value", "count"])
    return st.one_of(
        st.sampled_from([COUNT, Operation("exists"), Operation("list")]),
        st.builds(lambda kind, by, of: Operation(kind, by=(by,), of=of), st.sampled_from(["max", "order"]), by, of),
    )


def check(retriever: Any, case: tuple[int, Pattern, Pattern]) -> None:
    """Check that a retriever finds for a pattern with turned triples what the evaluator finds for the one meant."""
    seed, as_meant, given_one = case
    try:
        documents = retriever.invoke("?", on_refusal="raise")
    except NoEvidenceError:
        documents, found = [], NOTHING
    else:
        found = Plain(documents[0].metadata["value"], documents[0].metadata["answers"])
    plain = evaluate(film_index(seed).graph, as_meant, distinct="auto", direction="respect")
    assert found == plain
    if found.value or found.answers:
        both = zip((*given_one.triples, *given_one.absent), (*as_meant.triples, *as_meant.absent), strict=True)
        wrong = {one for one, meant in both if one != meant}
        assert {*map(str, carried_out(film_index(seed), given_one).turned)} <= {*map(str, wrong)}
        shown = documents[0].metadata["details"].get("turned", [])
        assert len(shown) == len(carried_out(film_index(seed), given_one).turned)


@pytest.mark.heavy
@settings(max_examples=300, deadline=None)
@given(written())
def test_turned_triples_change_no_result_of_the_matcher(case: tuple[int, Pattern, Pattern]) -> None:
    index = film_index(case[0])
    check(SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(lambda _: case[2])), case)
