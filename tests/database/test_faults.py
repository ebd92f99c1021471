"""What goes wrong with a database while parts of its graph are read: the server ends, it changes, others write."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from arcadedb import ArcadeDB, is_installed

from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.errors import (
    DatabaseError,
    DatabaseUnavailableError,
)
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.parts import Facts

pytestmark = pytest.mark.heavy

FACTS = sorted(Triple(f"e{i:03}", f"r{i % 3}", f"e{i * 7 % 200:03}") for i in range(200))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcadeDB]:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(tmp_path_factory.mktemp("faults"), ["steady", "changing"]) as server:
        for database in ("steady", "changing"):
            server.load(KnowledgeGraph.from_triples(FACTS), database)
        yield server


def facts_of(key: str) -> tuple[list[Triple], bool]:
    return [fact for fact in FACTS if key in (fact.head, fact.tail)], False


def test_a_server_that_stops_between_and_within_questions(server: ArcadeDB) -> None:
    with server.executor("steady", explain=False) as executor:
        assert executor.facts_of(["e001"])[:2] == facts_of("e001")
        server.kill()
        with pytest.raises(DatabaseUnavailableError, match="does not answer"):
            executor.facts_of(["e001"], timeout=5)
        server.restart()
        # connections of the old server are still in the pool
        assert executor.facts_of(["e001"])[:2] == facts_of("e001")
        server.kill()
        starting = threading.Thread(target=server.restart)
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


def test_a_server_that_ends_within_a_query(server: ArcadeDB) -> None:
    """All of an answer comes, or an error; the next question is answered."""
    with server.executor("steady", explain=False) as executor:
        keys = [fact.head for fact in FACTS]
        answers = [executor.facts_of(keys, limit=1000)]
        killing = threading.Timer(0.3, server.kill)
        killing.start()
        with suppress(DatabaseUnavailableError):
            while len(answers) < 10_000:
                answers.append(executor.facts_of(keys, limit=1000))
        killing.join()
        server.restart()
        assert len(answers) < 10_000
        assert all(answer[:2] == (FACTS, False) for answer in answers)
        assert executor.facts_of(keys, limit=1000)[:2] == (FACTS, False)


def test_rows_that_change_while_pages_are_read(server: ArcadeDB) -> None:
    """What stays is on one page exactly."""
    with server.executor("changing", explain=False) as executor, server.executor("changing", explain=False) as again:
        page = executor.entities_after("", 50)
        found = list(page.entities)
        server.write("changing", "MATCH (n:Entity) WHERE n.key IN ['e010', 'e120'] DETACH DELETE n")
        server.write("changing", "CREATE (:Entity {key: 'e0105'}), (:Entity {key: 'e1205'})")
        while page.position is not None:
            page = again.entities_after(page.position, 50)  # another client goes on
            found += page.entities
        keys = [entity.key for entity in found]
        assert keys == sorted(set(keys))
        assert {f"e{i:03}" for i in range(200)} - {"e120"} <= set(keys)
        assert "e1205" in keys


def test_two_clients_while_a_third_writes(server: ArcadeDB) -> None:
    """Each reads whole facts, before or after a change."""
    with server.executor("changing", explain=False) as one, server.executor("changing", explain=False) as other:

        def read(executor: Neo4jExecutor) -> list[int]:
            return [len(executor.facts_of(["e150"]).triples) for _ in range(40)]

        before = len(one.facts_of(["e150"]).triples)
        with ThreadPoolExecutor(2) as threads:
            counts = [threads.submit(read, executor) for executor in (one, other)]
            for number in range(5):
                match = "MATCH (a:Entity {key: 'e150'}), (b:Entity {key: $to})"
                server.write("changing", f"{match} CREATE (a)-[:added]->(b)", to=f"e{160 + number}")
        for counted in counts:
            assert counted.result() == sorted(counted.result())
            assert set(counted.result()) <= set(range(before, before + 6))
        assert len(one.facts_of(["e150"]).triples) == len(other.facts_of(["e150"]).triples) == before + 5
        assert "added" not in one.relations()  # of its schema, read before
        one.schema(refresh=True)
        assert "added" in one.relations()
