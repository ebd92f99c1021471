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
from plain_evaluator import NOTHING, Plain, evaluate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.errors import PatternError, SearchBudgetError
from kg_retrievers.graph import Evidence, FactAttribute, PatternTriple, Term
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.methods.simgrag.operations import MAX_MATCHES
from kg_retrievers.questions.carried_out import carried_out

RELATIONS = ["owns", "likes", "dated"]
TYPES = ["Person", "Place"]
LABELS = {"Q1": "Ann", "Q2": "Ann", "Q3": "Bob", "Q4": "Q3", "Bern": "Bern"}
VALUES = [
    "1987", "1990", "1987-03", "1987-03-02", "2 March 1987", "12 m", "12", "12.5 ft", "1,250", "1250 m", "-3",
    "true", "no", "yes",
]  # fmt: skip
LITERALS: list[Any] = [*VALUES, 1987, 12, 12.5, 1250, True, False, "Ann", "bern", "May 1990", "1987-01-01"]


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
    graph = random_graph(seed)
    types = st.sampled_from([None, None, None, *graph.types])
    unknowns = {name: Unknown(name, draw(types)) for name in "xyzvw"}
    keys = list(graph.entities)
    known = st.one_of(
        st.sampled_from([*graph.names, *keys]).map(Known), st.sampled_from(keys).map(lambda key: Known("?", None, key))
    )
    relation = st.sampled_from([*(Known(name) for name in graph.relations), Unknown("p")])
    own = st.sampled_from("xyz").map(unknowns.__getitem__)
    node = st.one_of(own, own, own, known)
    triples = draw(st.lists(st.builds(PatternTriple, node, relation, node), min_size=1, max_size=3))
    nodes = Pattern(tuple(triples)).nodes
    inside = [term.name for term in nodes if isinstance(term, Unknown)]
    absent = draw(_absent(unknowns, inside, known, [Known(name) for name in graph.relations])) if inside else []
    ends = [end for head, _, tail in absent for end in (head, tail)]
    attributes = draw(_of_facts(len(dict.fromkeys(triples)), graph.attribute_names))
    inside += dict.fromkeys(one.unknown for one in attributes)
    named = list(dict.fromkeys([*inside, *(end.name for end in ends if isinstance(end, Unknown))]))
    most = draw(st.sampled_from([0, 1, 2]))
    conditions = draw(st.lists(_condition(named, [*graph.names, *keys]), max_size=most)) if named else []
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=1))
    target, operation = draw(st.sampled_from(inside)) if inside else None, draw(_operation(inside))
    first = [*dict.fromkeys(triples)]  # as the pattern keeps them
    if operation and isinstance(operation.whole, int):
        named = {end for head, _, tail in first[: operation.whole] for end in (head, tail)}
        if operation.whole > len(first) or not any(isinstance(end, Unknown) and end.name == target for end in named):
            operation = None
    pattern: dict[str, Any] = {
        "target": target,
        "different": [(a, b) for a, b in pairs if a != b],
        "directed": draw(st.sampled_from([None, None, True, False])),
        "conditions": conditions,
        "operation": operation,
        "attributes": attributes,
    }
    kept = [triple for triple in absent if triple not in triples]
    try:
        return seed, Pattern.of(*triples, absent=kept, **pattern)
    except PatternError:  # a group of absent triples around two unknowns, or a condition on what is gone
        pattern["conditions"] = [one for one in conditions if one.unknown in inside]
        return seed, Pattern.of(*triples, **pattern)


@st.composite
def _of_facts(draw: st.DrawFn, triples: int, names: list[str]) -> list[FactAttribute]:
    """Up to two attributes of facts."""
    if not names:
        return []
    of_fact = st.builds(
        FactAttribute,
        st.integers(0, triples - 1),
        st.sampled_from(names),
        st.sampled_from("ab"),
        st.sampled_from([False, False, True]),
    )
    return draw(st.lists(of_fact, max_size=draw(st.sampled_from([0, 0, 2]))))


@st.composite
def _absent(draw: st.DrawFn, unknowns: dict[str, Unknown], inside: list[str], known: Any, relations: Any) -> Any:
    """Up to two triples: around an unknown of the pattern, and beyond it."""
    root: Term = unknowns[draw(st.sampled_from(inside))]
    further = draw(st.sampled_from([unknowns["w"], unknowns["v"], None, None]))
    there = further or draw(known)
    relation = st.sampled_from([*relations, Unknown("q")])
    triples = [(root, draw(relation), there)]
    if further is not None and draw(st.booleans()):
        end = draw(st.one_of(known, st.sampled_from([unknowns["v"], unknowns["w"], root])))
        triples.append((further, draw(st.sampled_from(relations)), end))
    turned = [(tail, name, head) if draw(st.booleans()) else (head, name, tail) for head, name, tail in triples]
    return [PatternTriple(*triple) for triple in turned] if draw(st.booleans()) else []


@st.composite
def _condition(draw: st.DrawFn, named: list[str], names: list[str]) -> Condition:
    unknown = draw(st.sampled_from(named))
    operator: Any = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "between", "contains", "in"]))
    if operator == "in":
        value: Any = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    elif operator == "contains":
        value = draw(st.sampled_from(["an", "19", "Q", "m"]))
    elif operator in ("=", "!="):
        value = draw(st.sampled_from(LITERALS))
    else:
        numbers = st.sampled_from([*VALUES[:-3], 1987, 12, 12.5])
        value = [draw(numbers), draw(numbers)] if operator == "between" else draw(numbers)
    return Condition(unknown, operator, value)


@st.composite
def _operation(draw: st.DrawFn, inside: list[str]) -> Operation | None:
    kinds = [
        "count", "list", "max", "min", "order", "sum", "mean", "range", "share", "table", "compare", None,
    ] if inside else [None]  # fmt: skip
    kind: Any = draw(st.sampled_from([*kinds, "exists"]))
    if kind is None:
        return None
    group = draw(st.sampled_from([None, None, *inside]))
    if kind in ("count", "exists"):
        return Operation(kind, group=group if kind == "count" else None)
    by = (draw(st.sampled_from(inside)),)
    if kind in ("share", "table"):
        if kind == "share" and draw(st.booleans()):
            return Operation(kind, whole=draw(st.integers(1, 2)))
        return Operation(kind, by if kind == "share" else (*by, draw(st.sampled_from(inside))))
    of: Any = draw(st.sampled_from(["value", "count"]))
    comparison: Any = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    if kind == "list":
        number = draw(st.integers(1, 3))
        plain = Operation("list", group=group)
        return draw(st.sampled_from([plain, Operation("list", by, of, comparison, number)]))
    if kind == "compare":
        return Operation("compare", (*by, draw(st.sampled_from(inside))), of, comparison)
    if kind == "order":
        limit, descending = draw(st.sampled_from([None, 1, 2])), draw(st.booleans())
        return Operation("order", by, of, limit=limit, descending=descending, offset=draw(st.integers(0, 2)))
    period = draw(st.sampled_from([None, "day", "month", "year", "decade", "century"])) if group else None
    return Operation(kind, by, of, group=group, period=period)


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
    "limits",
    [
        {"absent": [(Unknown("x"), "born in", "England")]},
        {"conditions": [Condition("x", "contains", "Har")]},
    ],
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
