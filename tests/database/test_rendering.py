"""Patterns as queries: LadybugDB and a SPARQL endpoint find what brute force finds; and the text for Neo4j."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import ladybug
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oxigraph_server import Oxigraph
from pattern_matches import MODES, brute_force, found_by, has_all_relations, patterns, random_graph

from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.database.rendering import render
from kg_retrievers.database.safety import check_read_only
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import InvalidArgumentError, PatternError, SearchBudgetError
from kg_retrievers.graph import FactAttribute, KnowledgeGraph, Known, Pattern, Triple, Unknown
from kg_retrievers.graph.operations import Condition

Databases = Sequence[tuple[KnowledgeGraph, LadybugExecutor | SparqlExecutor]]

FILM, PERSON = NodeLabel("Film", "title", {"title": "STRING"}), NodeLabel("a `Person`", "name", {"name": "STRING"})
SCHEMA = DatabaseSchema((FILM, PERSON), (RelationType("DIRECTED", (("a `Person`", "Film"),), {}, "directed it"),))
HER = Pattern.of((Unknown("who"), "directed it", "Her"), target="who")


@pytest.fixture(scope="module", params=[range(4), pytest.param(range(4, 8), marks=pytest.mark.heavy)], ids=str)
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """Graphs, and the same graphs in databases."""
    graphs = [random_graph(seed) for seed in request.param]
    executors = [LadybugExecutor.from_graph(graph) for graph in graphs]
    yield list(zip(graphs, executors, strict=True))
    for executor in executors:
        executor.close()


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Graphs, and the same graphs behind endpoints."""
    with ExitStack() as servers:
        found = []
        for seed in range(4):
            folder = tmp_path_factory.mktemp("oxigraph")
            file = folder / "graph.nt"
            random_graph(seed).write(file)
            executor = servers.enter_context(Oxigraph(folder, file)).executor()
            found.append((KnowledgeGraph.from_file(file), executor))
        yield found


def check_found(databases: Databases, number: int, pattern: Pattern, mode: dict[str, Any]) -> None:
    graph, executor = databases[number]
    if not has_all_relations(graph, pattern):
        with pytest.raises(InvalidArgumentError, match="has no relationship type"):
            render(pattern, executor.schema(), executor.dialect)
        return
    found = found_by(executor, pattern, **mode)
    assert len(found) == len(set(found))
    assert set(found) == brute_force(graph, pattern, mode["direction"])
    targets = [target or "" for target, _ in found]
    assert targets == sorted(targets, key=str.encode)


@settings(max_examples=150)
@given(st.integers(0, 3), patterns(), st.fixed_dictionaries(MODES))
def test_a_database_finds_what_brute_force_finds(
    databases: Databases, number: int, pattern: Pattern, mode: dict[str, Any]
) -> None:
    check_found(databases, number, pattern, mode)


@pytest.mark.heavy
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3), patterns(), st.fixed_dictionaries(MODES))
def test_an_endpoint_finds_what_brute_force_finds(
    endpoints: Databases, number: int, pattern: Pattern, mode: dict[str, Any]
) -> None:
    check_found(endpoints, number, pattern, mode)


@pytest.fixture
def films(tmp_path: Path) -> Iterator[LadybugExecutor]:
    """A database that somebody else made: with a node table for each type, and keys of different names."""
    path = tmp_path / "films.lbdb"
    with ladybug.Database(path, max_db_size=1 << 40) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Film(title STRING PRIMARY KEY, name STRING)",
            "CREATE NODE TABLE `a ``Person```(name STRING PRIMARY KEY)",
            "CREATE REL TABLE DIRECTED(FROM `a ``Person``` TO Film)",
            'COMMENT ON TABLE DIRECTED IS \'{"relation": "directed it"}\'',
            "CREATE (:`a ``Person``` {name: 'Spike Jonze'})-[:DIRECTED]->(:Film {title: 'Her', name: 'Spike Jonze'})",
            "CREATE (:`a ``Person``` {name: 'Her'})-[:DIRECTED]->(:Film {title: 'Spike Jonze'})",
        ):
            connection.execute(statement)
    with LadybugExecutor(path) as executor:
        yield executor


def test_keys_by_label(films: LadybugExecutor) -> None:
    assert films.schema().keys == ("name", "title")
    fact = Triple("Spike Jonze", "directed it", "Her")
    assert found_by(films, HER, direction="respect") == [("Spike Jonze", (fact,))]
    both = [("Spike Jonze", (fact,)), ("Spike Jonze", (Triple("Her", "directed it", "Spike Jonze"),))]
    assert sorted(found_by(films, HER), key=str) == sorted(both, key=str)
    graph = KnowledgeGraph.from_executor(films, page_size=1)
    assert set(graph.triples()) == {triple for _, (triple,) in both}
    typed = Pattern.of((Unknown("who", "a `Person`"), "directed it", Unknown("what", "Film")), target="what")
    assert [target for target, _ in found_by(films, typed)] == ["Her", "Spike Jonze"]
    backwards = Pattern.of((Unknown("x", "Film"), "directed it", Unknown("y")))
    assert len(found_by(films, backwards)) == 2
    assert not found_by(films, backwards, direction="respect")


def test_text_for_neo4j() -> None:
    x, y, r = Unknown("x", "Film"), Unknown("y"), Unknown("r")
    triples = (x, r, y), (Known("Her", entity="her"), "DIRECTED", x), (y, r, "Ann")
    pattern = Pattern.of(*triples, target="y", different=[(x, y)], revisits=True)
    query, parameters = render(pattern, SCHEMA, "neo4j", direction="respect")
    assert query == (
        "MATCH (n2)-[r1:`DIRECTED`]->(n0)\n"
        "WHERE n0:`Film` AND (n2:`Film` AND n2.`title` = $n2 OR n2:`a ``Person``` AND n2.`name` = $n2)\n"
        "MATCH (n0)-[r0]->(n1)\n"
        "WHERE n0 <> n1\n"
        "MATCH (n1)-[r2]->(n3)\n"
        "WHERE (n3:`Film` AND n3.`title` = $n3 OR n3:`a ``Person``` AND n3.`name` = $n3) AND type(r0) = type(r2)\n"
        "RETURN coalesce(CASE WHEN n1:`Film` THEN n1.`title` END, "
        "CASE WHEN n1:`a ``Person``` THEN n1.`name` END) AS target, "
        "r0, r1, r2\n"
        "ORDER BY target, elementId(r0), elementId(r1), elementId(r2)"
    )
    assert parameters == {"n2": "her", "n3": "Ann"}
    check_read_only(query, parameters=parameters, labels=["Film", "a `Person`"], relations=["DIRECTED"])


def test_each_condition_on_an_attribute_has_a_parameter_of_its_own() -> None:
    person, film = Unknown("person"), Unknown("film")
    attributes = [
        FactAttribute(0, "role", "role"),
        FactAttribute(0, "scenes", "scenes"),
        FactAttribute(1, "budget", "cost"),
    ]
    conditions = [Condition("role", "=", "Neo"), Condition("scenes", ">", "20"), Condition("cost", ">", "100")]
    triples = (person, "DIRECTED", film), (Known("Ann"), "DIRECTED", film)
    pattern = Pattern.of(*triples, target="film", attributes=attributes, conditions=conditions)
    query, parameters = render(pattern, SCHEMA, "neo4j", attributes=True)
    limits = {name: value for name, value in parameters.items() if name.startswith("limit")}
    assert sorted(limits.values()) == [20.0, 100.0]
    assert all(query.count(f"${name} ") + query.count(f"${name}\n") >= 1 for name in limits)


def test_what_cannot_be_rendered() -> None:
    with pytest.raises(InvalidArgumentError, match=r"has no relationship type 'directed'\. It has.*directed it"):
        render(Pattern.of(("a", "directed", "b")), SCHEMA, "neo4j")
    with pytest.raises(InvalidArgumentError, match=r"no node label 'Series'. It has \['Film'"):
        render(Pattern.of((Unknown("x", "Series"), "DIRECTED", "b")), SCHEMA, "neo4j")
    with pytest.raises(InvalidArgumentError, match="no nodes"):
        render(HER, DatabaseSchema((), ()), "neo4j")


def test_conditions_and_absent_triples_for_neo4j() -> None:
    who, other, film = Unknown("who"), Unknown("other"), Unknown("film", "Film")
    schema = DatabaseSchema((FILM,), SCHEMA.relations)
    pattern = Pattern.of(
        (who, "directed it", "Her"),
        target="who",
        directed=True,
        conditions=[Condition("other", "contains", "a")],
        absent=[(who, "directed it", film), (other, "directed it", film), (who, Unknown("r"), "Ann")],
    )
    query, parameters = render(pattern, schema, "neo4j", allowed={"other": ["Ann", "Eva"]}, bindings={"target": "who"})
    assert query == (
        "MATCH (n0)-[r0:`DIRECTED`]-(n1)\n"
        "WHERE n1:`Film` AND n1.`title` = $n1 AND "
        "NOT EXISTS { MATCH (n0)-[:`DIRECTED`]->(a0) WHERE a0:`Film` AND "
        "EXISTS { MATCH (a1)-[:`DIRECTED`]->(a0) WHERE a1:`Film` AND a1.`title` IN $a1 } } AND "
        "NOT EXISTS { MATCH (n0)-[]->(a2) WHERE a2:`Film` AND a2.`title` = $a2 }\n"
        "RETURN DISTINCT n0.`title` AS target\n"
        "ORDER BY target"
    )
    assert parameters == {"n1": "Her", "a1": ["Ann", "Eva"], "a2": "Ann"}
    check_read_only(query, parameters=parameters, labels=["Film"], relations=["DIRECTED"])


def test_what_of_conditions_and_absent_triples_cannot_be_rendered() -> None:
    who, film = Unknown("who"), Unknown("film")
    limited = replace(HER, conditions=(Condition("who", "contains", "a"),))
    with pytest.raises(InvalidArgumentError, match="has a condition on 'who'"):
        render(limited, SCHEMA, "neo4j")
    with pytest.raises(SearchBudgetError, match="leave 100001 entities"):
        render(limited, SCHEMA, "neo4j", allowed={"who": ["Ann"] * 100_001})
    with pytest.raises(PatternError, match="'nobody' is none of the unknown nodes"):
        render(HER, SCHEMA, "neo4j", bindings={"target": "nobody"})
    with pytest.raises(PatternError, match="form a cycle"):
        Pattern.of(
            (who, "directed it", "Her"), target="who", absent=[(who, "directed it", film), (film, "directed it", who)]
        )


@pytest.mark.parametrize(
    "count", [101, *(pytest.param(count, marks=pytest.mark.heavy) for count in (0, 1, 100, 4_000))]
)
def test_as_many_allowed_keys_as_there_may_be(count: int) -> None:
    facts = [Triple(f"film {number % 50}", "released", f"day {number}") for number in range(5_000)]
    pattern = Pattern.of((Unknown("film"), "released", Unknown("day")), target="film")
    keys = [f"day {number}" for number in range(count)]
    with LadybugExecutor.from_graph(KnowledgeGraph.from_triples(facts)) as executor:
        found = found_by(executor, pattern, allowed={"day": keys, "film": ["film 1", "film 2"]})
    wanted = {fact for fact in facts[:count] if fact.head in ("film 1", "film 2")}
    assert {fact for _, (fact,) in found} == wanted
    assert len(found) == len(wanted)
