"""The executor for Neo4j and rendered patterns against ArcadeDB, a database that speaks Bolt and openCypher."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from arcadedb import ArcadeDB, is_installed
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parts_of_graphs import KEY_OF, Part, StoredGraph, check_parts, parts, stored_graph
from pattern_matches import MODES, brute_force, found_by, has_all_relations, patterns, random_graph

from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.database.schema import backticked
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseError,
    DatabaseLoginError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
)
from kg_retrievers.graph import KnowledgeGraph, Pattern, Triple
from kg_retrievers.graph.parts import Facts

pytestmark = pytest.mark.heavy

GRAPHS = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcadeDB]:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    names = [f"g{number}" for number in range(GRAPHS)]
    parts = [f"p{number}" for number in range(GRAPHS)]
    with ArcadeDB(tmp_path_factory.mktemp("arcadedb"), [*names, *parts, "films", "hub", "stars"]) as server:
        yield server


@pytest.fixture(scope="module")
def databases(server: ArcadeDB) -> Iterator[list[tuple[KnowledgeGraph, Neo4jExecutor]]]:
    graphs = [random_graph(seed) for seed in range(GRAPHS)]
    executors = [server.executor(f"g{number}", explain=False) for number in range(GRAPHS)]
    for number, graph in enumerate(graphs):
        server.load(graph, f"g{number}")
    yield list(zip(graphs, executors, strict=True))
    for executor in executors:
        executor.close()


@settings(max_examples=150)
@given(st.integers(0, GRAPHS - 1), patterns(), st.fixed_dictionaries(MODES))
def test_it_finds_what_brute_force_finds(
    databases: list[tuple[KnowledgeGraph, Neo4jExecutor]], number: int, pattern: Pattern, mode: dict[str, Any]
) -> None:
    graph, executor = databases[number]
    if has_all_relations(graph, pattern):
        found = set(found_by(executor, pattern, **mode))
        assert found == brute_force(graph, pattern, mode["direction"])


def test_whole_graphs_come_back(databases: list[tuple[KnowledgeGraph, Neo4jExecutor]]) -> None:
    for graph, executor in databases:
        back = KnowledgeGraph.from_executor(executor, page_size=3)
        assert set(back.triples()) == set(graph.triples())
        assert {key: back.types_of(key) for key in back.entities} == {
            key: graph.types_of(key) for key in graph.entities
        }


def test_what_goes_wrong(server: ArcadeDB) -> None:
    with server.executor("g0") as executor, pytest.raises(CypherSafetyError, match="explain=False"):
        executor.run("MATCH (n) RETURN n.key")
    with server.executor("g0", explain=False) as executor:
        with pytest.raises(DatabaseQueryError, match="not defined"):
            executor.run("MATCH (n) RETURN m.key")
        query = "UNWIND $many AS i UNWIND $many AS j RETURN sum(i * j) AS total"
        start = time.monotonic()
        with pytest.raises(DatabaseTimeoutError):
            executor.run(query, {"many": list(range(3000))}, timeout=0.2)
        assert time.monotonic() - start < 20
    wrong = neo4j.basic_auth("root", "wrong")
    with Neo4jExecutor(server.uri, database="g0", auth=wrong) as executor, pytest.raises(DatabaseLoginError):
        executor.schema()
    unavailable = pytest.raises((DatabaseUnavailableError, DatabaseQueryError))
    with server.executor("nowhere", explain=False) as executor, unavailable:
        executor.schema()


def write(server: ArcadeDB, database: str, graph: StoredGraph) -> None:
    """Write a graph of several labels."""
    for place, (labels, key, label, aliases) in enumerate(graph.nodes):
        properties = {KEY_OF[name]: key for name in labels} | {"label": label, "aliases": aliases, "place": place}
        tags = "".join(f":{backticked(name)}" for name in labels)
        server.write(database, f"CREATE (n{tags}) SET n = $properties", properties=properties)
    for head, relation, tail in graph.facts:
        match = "MATCH (a {place: $head}), (b {place: $tail})"
        server.write(database, f"{match} CREATE (a)-[:{backticked(relation)}]->(b)", head=head, tail=tail)
    server.write(database, "MATCH (n) REMOVE n.place")


@pytest.fixture(scope="module")
def stored(server: ArcadeDB) -> Iterator[list[tuple[StoredGraph, Neo4jExecutor]]]:
    graphs = [stored_graph(seed, several_labels=True) for seed in range(GRAPHS)]
    for number, graph in enumerate(graphs):
        write(server, f"p{number}", graph)
    executors = [server.executor(f"p{number}", key=KEY_OF, explain=False) for number in range(GRAPHS)]
    yield list(zip(graphs, executors, strict=True))
    for executor in executors:
        executor.close()


@settings(max_examples=60)
@given(st.integers(0, GRAPHS - 1), parts)
@example(0, Part(["$keys"], ["$names", "$keys"], None, 30, 3))  # ArcadeDB takes {key: "$keys"} for the parameter
def test_parts_are_what_plain_filters_find(
    stored: list[tuple[StoredGraph, Neo4jExecutor]], number: int, part: Part
) -> None:
    graph, executor = stored[number]
    check_parts(executor, graph, part)


# --- what goes wrong while parts are read: the server ends, it changes, others write ----------------------------------

FACTS = sorted(Triple(f"e{i:03}", f"r{i % 3}", f"e{i * 7 % 200:03}") for i in range(200))


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcadeDB]:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(tmp_path_factory.mktemp("faults"), ["steady", "changing"]) as server:
        for database in ("steady", "changing"):
            server.load(KnowledgeGraph.from_triples(FACTS), database)
        yield server


def facts_of(key: str) -> tuple[list[Triple], bool]:
    return [fact for fact in FACTS if key in (fact.head, fact.tail)], False


def test_a_server_that_stops_between_and_within_questions(mortal: ArcadeDB) -> None:
    with mortal.executor("steady", explain=False) as executor:
        assert executor.facts_of(["e001"])[:2] == facts_of("e001")
        mortal.kill()
        with pytest.raises(DatabaseUnavailableError, match="does not answer"):
            executor.facts_of(["e001"], timeout=5)
        mortal.start()
        # connections of the old server are still in the pool
        assert executor.facts_of(["e001"])[:2] == facts_of("e001")
        mortal.kill()
        starting = threading.Thread(target=mortal.start)
        starting.start()
        outcomes = list[Facts | None]()
        until = time.monotonic() + 60
        while not outcomes or (outcomes[-1] is None and time.monotonic() < until):
            try:
                outcomes.append(executor.facts_of(["e002"], timeout=5))
            except DatabaseError:  # of the starting server's many ways to say it
                outcomes.append(None)
        starting.join()
        assert outcomes[-1] is not None
        assert outcomes[-1][:2] == facts_of("e002")


def test_rows_that_change_while_pages_are_read(mortal: ArcadeDB) -> None:
    """What stays is on one page exactly."""
    with mortal.executor("changing", explain=False) as executor, mortal.executor("changing", explain=False) as again:
        page = executor.entities_after("", 50)
        found = list(page.entities)
        mortal.write("changing", "MATCH (n:Entity) WHERE n.key IN ['e010', 'e120'] DETACH DELETE n")
        mortal.write("changing", "CREATE (:Entity {key: 'e0105'}), (:Entity {key: 'e1205'})")
        while page.position is not None:
            page = again.entities_after(page.position, 50)  # another client goes on
            found += page.entities
        keys = [entity.key for entity in found]
        assert keys == sorted(set(keys))
        assert {f"e{i:03}" for i in range(200)} - {"e120"} <= set(keys)
        assert "e1205" in keys
