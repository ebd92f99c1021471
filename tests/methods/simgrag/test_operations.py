"""What the matcher gives for conditions, absent triples and operations, against a plain evaluator."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda
from operation_patterns import VALUES, operation_patterns
from plain_evaluator import NOTHING, Plain, evaluate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.errors import PatternError, SearchBudgetError
from kg_retrievers.graph import Evidence
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.methods.simgrag.operations import MAX_MATCHES
from kg_retrievers.questions.carried_out import carried_out

RELATIONS = ["owns", "likes", "dated"]
TYPES = ["Person", "Place"]
LABELS = {"Q1": "Ann", "Q2": "Ann", "Q3": "Bob", "Q4": "Q3", "Bern": "Bern"}


@lru_cache(maxsize=512)
def random_graph(seed: int) -> KnowledgeGraph:
    """A small graph with namesakes, values, types, self-loops and parallel relations."""
    choose = random.Random(seed)
    keys = choose.sample([*LABELS, *VALUES], choose.randint(3, 8))
    size = choose.randint(4, 20)
    facts: list[Any] = [(choose.choice(keys), choose.choice(RELATIONS), choose.choice(keys)) for _ in range(size)]
    facts = [(*fact, _attributes(choose)) for fact in facts]
    typed = choose.random() < 0.5
    types = {key: choose.sample(TYPES, choose.randint(0, 2)) for key in keys} if typed else {}
    aliases = {key: ["Berne", "Ann"] for key in keys if key == "Bern"}
    labels = {key: label for key, label in LABELS.items() if key in keys}
    return KnowledgeGraph.from_triples(facts, labels=labels, aliases=aliases, types=types)


def _attributes(choose: random.Random) -> dict[str, Any]:
    """What is said of a fact: nothing, or a text, a number, a date or several."""
    values: list[Any] = ["Ann", "Neo", 1987, 12.5, True, "1987-03-02", ["Neo", "ann"], [1987, "12 m"]]
    return {name: choose.choice(values) for name in ("role", "since", "note") if choose.random() < 0.4}


@lru_cache(maxsize=512)
def retriever(seed: int, distinct: str, direction: str) -> SimGRAGRetriever:
    index = GraphIndex.build(random_graph(seed), HashedEmbeddings(64))
    fields: dict[str, Any] = {"distinct": distinct, "direction": direction}
    return SimGRAGRetriever(
        index=index, pattern_generator=RunnableLambda(Pattern.from_dict), max_distance=0, k=1000, **fields
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, Pattern]:
    """A graph by its seed, and a pattern over its names."""
    seed = draw(st.integers(0, 399))
    return seed, draw(operation_patterns(random_graph(seed)))


def found(evidence: list[Evidence], pattern: Pattern) -> Plain:
    """Return what evidence says, as the evaluator does."""
    if pattern.operation is not None or pattern.attributes:
        answers = evidence[0].answers if evidence else ()
        in_order = list(answers) if pattern.operation else sorted(answers)
        return Plain(evidence[0].value, in_order) if evidence else NOTHING
    answers = {answer for one in evidence for answer in one.answers}
    return Plain(None, sorted(answers)) if evidence else NOTHING


def check(case: tuple[int, Pattern], distinct: str, direction: str) -> None:
    """Check that matcher and evaluator agree on a case."""
    seed, pattern = case
    try:
        evidence = retriever(seed, distinct, direction).match(pattern)
    except PatternError as error:  # what is not supported is said
        if "everything in the pattern is unknown" in str(error) or "form a cycle" in str(error):
            return
        raise
    index = retriever(seed, distinct, direction).index
    carried = carried_out(index, pattern).pattern
    plain = evaluate(random_graph(seed), carried, distinct=distinct, direction=direction)
    if pattern.operation is None:
        plain = plain._replace(answers=sorted(plain.answers))
    assert found(evidence, pattern) == plain, list(random_graph(seed).triples())
    for triple in (triple for one in evidence for triple in one.triples):
        assert triple in random_graph(seed)


MODES: dict[str, Any] = {
    "distinct": st.sampled_from(["auto", "known", "nodes", "none"]),
    "direction": st.sampled_from(["ignore", "respect"]),
}
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(RELAXED, max_examples=1_000)
@given(case=cases(), **MODES)
def test_matcher_agrees_with_plain_evaluator(case: tuple[int, Pattern], distinct: str, direction: str) -> None:
    check(case, distinct, direction)


@settings(RELAXED, max_examples=500)
@given(case=cases())
def test_no_pattern_that_is_found_as_written_is_turned(case: tuple[int, Pattern]) -> None:
    seed, pattern = case
    triples = replace(pattern, different=(), conditions=(), absent=(), directed=True, operation=Operation("exists"))
    found = evaluate(random_graph(seed), triples, distinct="none", direction="respect").value
    carried = carried_out(retriever(seed, "none", "respect").index, pattern).pattern
    if found:
        assert carried.triples == pattern.triples
    if pattern.directed is not None:
        assert carried == pattern


@pytest.mark.heavy
def test_matcher_agrees_with_plain_evaluator_on_many_cases() -> None:
    settings(RELAXED, max_examples=20_000, database=None)(given(case=cases(), **MODES)(check))()


# --- hostile input ---


def opened_in(years: list[str]) -> SimGRAGRetriever:
    graph = KnowledgeGraph.from_triples([(f"house {at}", "opened in", year) for at, year in enumerate(years)])
    index = GraphIndex.build(graph, HashedEmbeddings(64))
    return SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(Pattern.from_dict))


@pytest.mark.parametrize(("part", "most"), [("conditions", 64), ("absent", 64), ("triples", 256)])
def test_too_many_parts_are_refused(part: str, most: int) -> None:
    x = Unknown("x")
    for size in (most, most + 1):
        parts: dict[str, Any] = {"triples": [(x, "likes", "Ann")], "conditions": [], "absent": []}
        conditions = [Condition("x", "!=", number) for number in range(size)]
        parts[part] = conditions if part == "conditions" else [(x, "owns", f"house {at}") for at in range(size)]
        triples = parts.pop("triples")
        if size == most:
            assert len(getattr(Pattern.of(*triples, **parts), part)) == most
        else:
            with pytest.raises(PatternError, match=f"{part} must have at most {most} items.*, not {size}"):
                Pattern.of(*triples, **parts)


@pytest.mark.parametrize("operation", ["max", "min", "order"])
def test_absurd_values_are_left_out(operation: Any) -> None:
    houses = opened_in(["1987", "99999-12-31", "1987-02-30", "nan", "1e400", "inf", "1" * 400, "x" * 10**5, "-1e300"])
    pattern = Pattern.of(
        (Unknown("house"), "opened in", Unknown("year")),
        target="house",
        directed=True,
        operation=Operation(operation, ("year",)),
    )
    (document,) = houses.invoke("?", pattern=pattern)
    best = ["house 0", "house 8"] if operation == "order" else ["house 0" if operation == "max" else "house 8"]
    assert document.metadata["answers"] == best
    assert document.metadata["details"]["without_value"] == 7


def test_absent_triples_in_a_circle_are_refused() -> None:
    x, v, w = Unknown("house"), Unknown("v"), Unknown("w")
    circle = [(x, "opened in", v), (v, "opened in", w), (w, "opened in", x)]
    with pytest.raises(PatternError, match="form a cycle; that is not supported"):
        Pattern.of((x, "opened in", "1987"), target="house", absent=circle)


# --- what names and relations mean ---


FILMS = KnowledgeGraph.from_triples(
    [
        ("Inception", "directed by", "Nolan"),
        ("Inception", "starring", "Hardy"),
        ("Tenet", "directed by", "Nolan"),
        ("Her", "directed by", "Jonze"),
        ("Nolan", "born in", "England"),
        ("Hardy", "born in", "Wales"),
        ("Nolan", "directed by", "Nobody"),
    ]
)


def films(**fields: Any) -> SimGRAGRetriever:
    index = GraphIndex.build(FILMS, HashedEmbeddings())
    return SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(Pattern.from_dict), **fields)


@pytest.mark.parametrize(
    "limits", [{"absent": [(Unknown("x"), "born in", "England")]}, {"conditions": [Condition("x", "contains", "Har")]}]
)
def test_what_is_excluded_is_not_replaced_by_what_is_farther(limits: dict[str, Any]) -> None:
    pattern = Pattern.of(("Inception", "directed by", Unknown("x")), target="x", **limits)
    assert films(direction="respect").match(pattern) == []


@pytest.mark.parametrize(("directed", "number"), [(None, 1), (True, 1), (False, 3)])
@pytest.mark.parametrize("direction", ["ignore", "respect"])
def test_operation_respects_directions(directed: bool | None, number: int, direction: Any) -> None:
    x = Unknown("x")
    count = Pattern.of(("Nolan", "directed by", x), target="x", directed=directed, operation=Operation("count"))
    (evidence,) = films(direction=direction, distinct="none").match(count)
    assert evidence.value == number
    assert evidence.details["pattern"] == count.to_dict()


# --- limits ---


def test_operations_are_over_all_bindings() -> None:
    x, y = Unknown("x"), Unknown("y")
    most = Pattern.of((x, "directed by", y), target="y", operation=Operation("max", by=("x",), of="count"))
    assert [evidence.answers for evidence in films(max_bindings=1).match(most)] == [("Nolan",)]


def test_operations_are_over_all_namesakes() -> None:
    size = MAX_MATCHES + 1
    facts = [(f"id {number}", "directed by", f"person {number}") for number in range(size)]
    labels = {f"id {number}": "Film" for number in range(size)}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, labels=labels), HashedEmbeddings(64))
    retriever = SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(Pattern.from_dict))
    count = Pattern.of(("Film", "directed by", Unknown("x")), target="x", operation=Operation("count"))
    assert retriever.match(count)[0].value == size


@pytest.mark.parametrize("scans", [20, 60])
def test_a_search_that_ended_names_its_limits(scans: int) -> None:
    facts = [(f"film {number}", "directed by", f"person {number % 9}") for number in range(300)]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings(64))
    retriever = SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(Pattern.from_dict), max_scans=scans)
    x, y = Unknown("x"), Unknown("y")
    most = Pattern.of((x, "directed by", y), target="y", operation=Operation("max", by=("x",), of="count"))
    with pytest.raises(SearchBudgetError, match="max_scans") as error:
        retriever.match(most)
    assert f"Try twice as much, max_scans={2 * scans}, max_seconds=" in str(error.value)
    assert f"--field max_scans={2 * scans} --field max_seconds=" in error.value.on_shell
