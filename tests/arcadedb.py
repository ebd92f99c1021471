"""ArcadeDB, a database that speaks Bolt and openCypher, on loopback."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import neo4j
from server_process import ServerProcess, free_port

from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.database.schema import backticked
from kg_retrievers.graph import KnowledgeGraph

PASSWORD = "for the tests"

#: How many nodes or relationships are sent at a time.
BATCH = 5000


def is_installed() -> bool:
    """Whether there is the package arcadedb-embedded, of the extra `test-heavy`."""
    return importlib.util.find_spec("arcadedb_embedded") is not None


class ArcadeDB(ServerProcess):
    """ArcadeDB in a process of its own while its context is open, with the Java that its package brings.

    Args:
        folder: An empty folder.
        databases: The names of the databases that it has, empty ones.
        memory: The most memory of its heap, in MiB.
    """

    def __init__(self, folder: Path, databases: Sequence[str], memory: int = 512) -> None:
        package = importlib.util.find_spec("arcadedb_embedded")
        assert package is not None
        assert package.origin is not None
        home = Path(package.origin).parent
        port = free_port()
        options = {
            "server.rootPath": folder,
            "server.rootPassword": PASSWORD,
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "server.defaultDatabases": ";".join(f"{name}[root]" for name in databases),
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": free_port(),
            "bolt.host": "127.0.0.1",
            "bolt.port": port,
        }
        self.uri = f"bolt://127.0.0.1:{port}"
        self.driver = neo4j.GraphDatabase.driver(self.uri, auth=("root", PASSWORD))
        command: list[str | Path] = [home / "jre" / "bin" / "java", f"-Xmx{memory}m"]
        command += ["--add-modules=jdk.incubator.vector"]
        command += [f"-Darcadedb.{name}={value}" for name, value in options.items()]
        command += ["-cp", home / "jars" / "*", "com.arcadedb.server.ArcadeDBServer"]
        super().__init__([*map(str, command)], port, folder / "log.txt")

    def _listens(self) -> bool:
        return "ArcadeDB Server started" in self._log.read_text(errors="replace")

    def stop(self) -> None:
        """End the process."""
        self.driver.close()
        super().stop()

    def kill(self) -> None:
        """End the process at once, as a crash does; `start` starts it again, with the same databases."""
        os.kill(self.process_id, signal.SIGKILL)
        super().stop()

    def write(self, database: str, query: str, **parameters: Any) -> None:
        """Run a query that may write."""
        with self.driver.session(database=database) as session:
            session.run(query, parameters).consume()

    def read(self, database: str, query: str) -> list[list[Any]]:
        """Return the rows of a query as the driver itself returns them."""
        with self.driver.session(database=database) as session:
            return [list(row.values()) for row in session.run(query).data()]

    def load(self, graph: KnowledgeGraph, database: str) -> None:
        """Write a graph as nodes `(:Entity {key, label, types, aliases})` and relationships."""
        nodes = [
            {"key": key, "label": graph.label(key), "types": graph.types_of(key), "aliases": graph.aliases(key)}
            for key in graph.entities
        ]
        self.write(database, "CREATE CONSTRAINT IF NOT EXISTS FOR (e:Entity) REQUIRE (e.key) IS UNIQUE")
        self._write_all(database, "CREATE (e:Entity) SET e = row", nodes)
        for relation in graph.relations:
            match = "MATCH (a:Entity {key: row.head}), (b:Entity {key: row.tail})"
            facts = [{"head": head, "tail": tail} for head, _, tail in graph.triples(relation=relation)]
            self._write_all(database, f"{match} CREATE (a)-[:{backticked(relation)}]->(b)", facts)

    def _write_all(self, database: str, query: str, rows: Sequence[dict[str, Any]]) -> None:
        for start in range(0, len(rows), BATCH):
            self.write(database, f"UNWIND $rows AS row {query}", rows=rows[start : start + BATCH])

    def executor(self, database: str, **options: Any) -> Neo4jExecutor:
        """Return an executor for a database."""
        return Neo4jExecutor(self.uri, database=database, auth=neo4j.basic_auth("root", PASSWORD), **options)
