"""The executor for Neo4j and rendered patterns against ArcadeDB, a database that speaks Bolt and openCypher."""

from __future__ import annotations

import importlib.util
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import neo4j
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_matches import brute_force, found_by, has_all_relations, patterns, random_graph

from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.database.schema import backticked
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseLoginError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
)
from kg_retrievers.graph import KnowledgeGraph, Pattern, Triple, Unknown

pytestmark = pytest.mark.heavy

PASSWORD = "for the tests"
GRAPHS = 4


class Server:
    """ArcadeDB in a process of its own, with the Java that its package brings."""

    def __init__(self, folder: Path) -> None:
        package = importlib.util.find_spec("arcadedb_embedded")
        if package is None or package.origin is None:
            pytest.skip("arcadedb-embedded is not installed")
        home = Path(package.origin).parent
        with closing(socket.socket()) as bolt, closing(socket.socket()) as http:
            bolt.bind(("127.0.0.1", 0))
            http.bind(("127.0.0.1", 0))
            port, http_port = bolt.getsockname()[1], http.getsockname()[1]
        names = [f"g{number}" for number in range(GRAPHS)] + ["films"]
        options = {
            "server.rootPath": folder,
            "server.rootPassword": PASSWORD,
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "server.defaultDatabases": ";".join(f"{name}[root]" for name in names),
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": http_port,
            "bolt.host": "127.0.0.1",
            "bolt.port": port,
        }
        self.uri = f"bolt://127.0.0.1:{port}"
        self.driver = neo4j.GraphDatabase.driver(self.uri, auth=("root", PASSWORD))
        command = [home / "jre" / "bin" / "java", "-Xmx512m", "--add-modules=jdk.incubator.vector"]
        command += [f"-Darcadedb.{name}={value}" for name, value in options.items()]
        self.log = folder / "log.txt"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*command, "-cp", home / "jars" / "*", "com.arcadedb.server.ArcadeDBServer"],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 180
        while "ArcadeDB Server started" not in self.log.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(self.log.read_text(errors="replace"))
            time.sleep(0.2)

    def stop(self) -> None:
        self.driver.close()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def load(self, graph: KnowledgeGraph, database: str) -> None:
        nodes = [
            {"key": key, "label": graph.label(key), "types": graph.types_of(key), "aliases": graph.aliases(key)}
            for key in graph.entities
        ]
        with self.driver.session(database=database) as session:
            session.run("UNWIND $nodes AS n CREATE (e:Entity) SET e = n", nodes=nodes).consume()
            for head, relation, tail in graph.triples():
                match = "MATCH (a:Entity {key: $head}), (b:Entity {key: $tail})"
                session.run(f"{match} CREATE (a)-[:{backticked(relation)}]->(b)", head=head, tail=tail).consume()

    def executor(self, database: str, **options: Any) -> Neo4jExecutor:
        return Neo4jExecutor(self.uri, database=database, auth=neo4j.basic_auth("root", PASSWORD), **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("arcadedb"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def databases(server: Server) -> Iterator[list[tuple[KnowledgeGraph, Neo4jExecutor]]]:
    graphs = [random_graph(seed) for seed in range(GRAPHS)]
    executors = [server.executor(f"g{number}", explain=False) for number in range(GRAPHS)]
    for number, graph in enumerate(graphs):
        server.load(graph, f"g{number}")
    yield list(zip(graphs, executors, strict=True))
    for executor in executors:
        executor.close()


modes = {
    "distinct": st.sampled_from(["known", "nodes", "none"]),
    "direction": st.sampled_from(["ignore", "respect"]),
    "nodes": st.booleans(),
}


@settings(max_examples=150)
@given(st.integers(0, GRAPHS - 1), patterns(), st.fixed_dictionaries(modes))
def test_it_finds_what_brute_force_finds(
    databases: list[tuple[KnowledgeGraph, Neo4jExecutor]], number: int, pattern: Pattern, mode: dict[str, Any]
) -> None:
    graph, executor = databases[number]
    if has_all_relations(graph, pattern):
        found = set(found_by(executor, pattern, **mode))
        assert found == brute_force(graph, pattern, mode["distinct"], mode["direction"])


def test_whole_graphs_come_back(databases: list[tuple[KnowledgeGraph, Neo4jExecutor]]) -> None:
    for graph, executor in databases:
        back = KnowledgeGraph.from_executor(executor, page_size=3)
        assert set(back.triples()) == set(graph.triples())
        assert {key: back.types_of(key) for key in back.entities} == {
            key: graph.types_of(key) for key in graph.entities
        }


def test_keys_by_label(server: Server, data_dir: Path) -> None:
    """The films that come with Neo4j: `Movie(title)`, `Person(name)`."""
    script = (data_dir / "cypher" / "movies.cypher").read_text("utf-8")
    with server.driver.session(database="films") as session:
        for statement in re.split(r";\s*\n", script):
            if re.match(r"\s*(CREATE|MERGE)\s*\(", statement):
                session.run(statement).consume()
    with server.executor("films", key={"Movie": "title", "Person": "name"}, explain=False) as executor:
        graph = KnowledgeGraph.from_executor(executor)
        assert len(graph.entities) == 171
        pattern = Pattern.of(
            ("Tom Hanks", "ACTED_IN", Unknown("film")), (Unknown("who"), "DIRECTED", Unknown("film")), target="who"
        )
        found = found_by(executor, pattern, direction="respect")
        assert found
        assert {target for target, _ in found} == {target for target, _ in brute_force_walk(graph)}


def brute_force_walk(graph: KnowledgeGraph) -> set[tuple[str, tuple[Triple, ...]]]:
    return {
        (directed.head, (acted, directed))
        for acted in graph.triples("Tom Hanks", "ACTED_IN")
        for directed in graph.triples(relation="DIRECTED", tail=acted.tail)
        if directed.head != "Tom Hanks"
    }


def test_what_goes_wrong(server: Server) -> None:
    with server.executor("g0") as executor, pytest.raises(CypherSafetyError, match="explain=False"):
        executor.run("MATCH (n) RETURN n.key")
    with server.executor("g0", explain=False) as executor:
        with pytest.raises(DatabaseQueryError, match="not defined"):
            executor.run("MATCH (n) RETURN m.key")
        start = time.monotonic()
        with pytest.raises(DatabaseTimeoutError):
            executor.run(
                "UNWIND range(1, 3000) AS i UNWIND range(1, 3000) AS j RETURN sum(i * j) AS total", timeout=0.2
            )
        assert time.monotonic() - start < 20
    wrong = neo4j.basic_auth("root", "wrong")
    with Neo4jExecutor(server.uri, database="g0", auth=wrong) as executor, pytest.raises(DatabaseLoginError):
        executor.schema()
    unavailable = pytest.raises((DatabaseUnavailableError, DatabaseQueryError))
    with server.executor("nowhere", explain=False) as executor, unavailable:
        executor.schema()
