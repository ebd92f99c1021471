"""The executor for Neo4j against a server on loopback that speaks Bolt and follows a script."""

from __future__ import annotations

import copy
import logging
import pickle
import re
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import neo4j
import pytest
from bolt_stub import BoltStub, Reply, Structure, by_pattern, node, path, relationship

from kg_retrievers.database import neo4j as module
from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.database.values import EntityNode, Relationship, triples_in
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseLoginError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
)
from kg_retrievers.graph import KnowledgeGraph, Path, Triple

USER, PASSWORD = "the reader's name", "the reader's password"
KEYS = {"Film": "title", "Person": "name"}

HER = node(1, ["Film"], title="Her", label="Her (2013)")
JONZE = node(2, ["Person", "Director"], name="Spike Jonze")
NOBODY = node(3, ["Thing"], size=1)
DIRECTED = relationship(7, 2, "DIRECTED IT", 1, year=2013)
OWNS = relationship(8, 2, "OWNS", 3)
FACT = Triple("Spike Jonze", "DIRECTED IT", "Her")

NODE = ["key", "place", "labels", "said"]
RELATIONSHIPS = ["name", "heads", "tails", "properties", "found"]

SCHEMA = (
    (r"CALL db\.labels", Reply(["label"], [["Film"], ["Gone"], ["Person"]])),
    (r"CALL db\.relationshipTypes", Reply(["type"], [["DIRECTED IT"], ["LOST"]])),
    (r"MATCH \(n:`Film`\) RETURN properties", Reply(["n"], [[HER.fields[2]], [{"title": "Adaptation", "year": 2002}]])),
    (r"MATCH \(n:`Person`\) RETURN properties", Reply(["n"], [[JONZE.fields[2]]])),
    (r"MATCH \(n:`Gone`\)", Reply(["n"])),
    (
        r"LIMIT \$most RETURN type\(r\)",
        Reply(RELATIONSHIPS, [["DIRECTED IT", ["Person"], ["Film"], [{"year": 2013}], 1]]),
    ),
    (r":`LOST`\]->\(b\)", Reply(RELATIONSHIPS)),
)


def find_nodes(query: str, parameters: dict[str, Any]) -> Reply:
    names = re.findall(r"n\.`(\w+)`", query)
    nodes = {part.fields[3]: part for part in (HER, JONZE, NOBODY)}
    found = [nodes[id].fields for id in parameters["ids"] if id in nodes]
    return Reply(["id", "labels", *names], [[f[3], f[1], *map(f[2].get, names)] for f in found])


def script(*replies: tuple[str, Reply]) -> Callable[[str, dict[str, Any]], Reply | None]:
    """The replies, and the schema."""
    told = by_pattern(*replies, *SCHEMA)

    def answer(query: str, parameters: dict[str, Any]) -> Reply | None:
        return find_nodes(query, parameters) if "elementId(n) IN $ids" in query else told(query, parameters)

    return answer


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_USERNAME", USER)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)


Serve = Callable[..., tuple[BoltStub, Neo4jExecutor]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server with some replies, and connect an executor to it."""
    opened: list[Any] = []

    def start(*replies: tuple[str, Reply], **options: Any) -> tuple[BoltStub, Neo4jExecutor]:
        stub = BoltStub(script(*replies), USER, PASSWORD).__enter__()
        executor = Neo4jExecutor(stub.uri, **{"key": KEYS, **options})
        opened.extend((executor, stub))
        return stub, executor

    yield start
    for each in opened:
        each.__exit__(None, None, None)


# --- results ----------------------------------------------------------------------------------------------------------


def test_values(serve: Serve) -> None:
    walk = path([HER, JONZE, HER], [(DIRECTED, False), (DIRECTED, True)])
    born = Structure(ord("D"), (0,))  # days since 1970
    columns = ["n", "r", "p", "list", "map", "day", "nothing"]
    row = [HER, DIRECTED, walk, [DIRECTED, 1], {"x": JONZE, "y": 1.5}, born, None]
    _, executor = serve(("MATCH p", Reply(columns, [row])))
    rows = executor.run("MATCH p = (n)-[r]-()-[]-() RETURN n, r, p, [r] AS list, {x: 1} AS map, d AS day, z AS nothing")
    fact, director = (
        Relationship(FACT, {"year": 2013}),
        EntityNode("Spike Jonze", ("Director", "Person"), {"name": "Spike Jonze"}),
    )
    assert rows.columns == tuple(columns)
    assert rows.rows == (
        (
            EntityNode("Her", ("Film",), {"title": "Her", "label": "Her (2013)"}),
            fact,
            Path(("Her", "Spike Jonze", "Her"), (FACT, FACT)),
            [fact, 1],
            {"x": director, "y": 1.5},
            "1970-01-01",
            None,
        ),
    )
    assert rows.labels == {"Her": "Her (2013)"}
    assert triples_in(rows.rows) == [FACT]


def test_ends_that_are_not_in_the_rows_are_read(serve: Serve) -> None:
    """A relationship comes with nothing but the ids of its ends; one of them has no key."""
    stub, executor = serve(("RETURN r", Reply(["r"], [[DIRECTED], [OWNS]])))
    rows = executor.run("MATCH ()-[r]->() RETURN r")
    assert [r.triple for (r,) in rows.rows] == [FACT, Triple("Spike Jonze", "OWNS", "4:db:3")]
    assert rows.labels == {"Her": "Her (2013)"}
    ((parameters,),) = ([r.parameters] for r in stub.requests if r.query.startswith("MATCH (n) WHERE elementId"))
    assert parameters == {"ids": ["4:db:2", "4:db:1", "4:db:3"]}


def test_rows_are_bounded_before_and_after_the_wire(serve: Serve) -> None:
    stub, executor = serve(("AS i", Reply(["i"], lambda: ([i] for i in range(1_000_000)))))
    executor.schema()
    tracemalloc.start()
    rows = executor.run("UNWIND $many AS i RETURN i", {"many": [1, 2]}, limit=1500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(rows), rows.truncated) == (1500, True)
    assert stub.queries()[-1] == "UNWIND $many AS i RETURN i ORDER BY i LIMIT 1501"
    assert stub.rows_sent < 4000
    assert peak < 20_000_000


def test_a_read_session_of_the_database_with_a_timeout(serve: Serve) -> None:
    stub, executor = serve(("RETURN 1", Reply(["x"], [[1]])), database="films")
    assert executor.run("RETURN 1 AS x, $x AS y", {"x": 1, "unused": 2}, timeout=2.5).rows == ((1,),)
    explained, ran = stub.requests[-2:]
    assert explained.query == f"EXPLAIN {ran.query}"
    assert explained.parameters == ran.parameters == {"x": 1}
    assert explained.extra == ran.extra == {"mode": "r", "db": "films", "tx_timeout": 2500}


def test_schema(serve: Serve) -> None:
    _, executor = serve()
    assert executor.schema() == DatabaseSchema(
        (
            NodeLabel("Film", "title", {"label": "STRING", "title": "STRING", "year": "INTEGER"}),
            NodeLabel("Person", "name", {"name": "STRING"}),
        ),
        (RelationType("DIRECTED IT", (("Person", "Film"),), {"year": "INTEGER"}),),
        label="label",
    )


def test_types_of_properties(serve: Serve) -> None:
    values = {
        "title": ("Her", "STRING"),
        "born": (Structure(ord("D"), (0,)), "DATE"),
        "local": (Structure(ord("d"), (0, 0)), "LOCAL DATETIME"),
        "zoned": (Structure(ord("I"), (0, 0, 0)), "ZONED DATETIME"),
        "clock": (Structure(ord("t"), (0,)), "LOCAL TIME"),
        "length": (Structure(ord("E"), (0, 1, 2, 3)), "DURATION"),
        "place": (Structure(ord("X"), (4326, 1.0, 2.0)), "POINT"),
        "scores": ([0.5, 1.5], "LIST<FLOAT>"),
        "years": ([2013], "LIST<INTEGER>"),
        "types": (["Film"], "LIST<STRING>"),
        "nothing": ([], "LIST"),
        "late": ([], "LIST<STRING>"),
        "seen": (True, "BOOLEAN"),
    }
    rows = [[{name: value for name, (value, _) in values.items()}], [{"late": ["x"]}]]
    _, executor = serve((r"MATCH \(n:`Film`\) RETURN properties", Reply(["n"], rows)))
    schema = executor.schema()
    assert schema.labels[0].properties == {name: type for name, (_, type) in sorted(values.items())}
    assert (schema.types, schema.aliases, schema.sampled) == ("types", None, False)


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (r"MATCH \(n:`Film`\) RETURN", Reply(["n"], [[{"title": "x"}]] * 100)),
        (r"LIMIT \$most RETURN", Reply(RELATIONSHIPS, [["DIRECTED IT", ["Person"], ["Film"], [{}] * 100, 101]])),
        (r":`LOST`\]->\(b\)", Reply(RELATIONSHIPS, [["LOST", ["Person"], ["Film"], [{}] * 100, 100]])),
    ],
)
def test_schema_of_a_sample(serve: Serve, query: str, reply: Reply) -> None:
    """There may be further properties and ends where there are as many nodes or relationships as are looked at."""
    _, executor = serve((query, reply))
    assert executor.schema().sampled


def test_schema_of_a_database_without_the_procedures(serve: Serve) -> None:
    unknown = Reply(failure=("Neo.ClientError.Procedure.ProcedureNotFound", "There is no procedure."))
    _, executor = serve(
        ("CALL", unknown),
        (r"UNWIND labels\(n\) AS name", Reply(["name"], [["Person"], ["Film"]])),
        (r"type\(r\) AS name RETURN DISTINCT", Reply(["name"], [["DIRECTED IT"]])),
    )
    assert [label.name for label in executor.schema().labels] == ["Film", "Person"]
    assert [relation.name for relation in executor.schema().relations] == ["DIRECTED IT"]


def test_no_label_has_the_key(serve: Serve) -> None:
    _, executor = serve(key="key")
    with pytest.raises(InvalidArgumentError, match=r"no node has .*\['key'\].*'Film': \['label', 'title'.*key='name'"):
        executor.schema()


def test_a_whole_graph(serve: Serve) -> None:
    """Two nodes have the key "Her": the relationships of nodes that are films too are not read again, but others."""
    named_her = Triple("Her", "DIRECTED IT", "Her")
    _, executor = serve(
        (r"size\(labels\(n\)\) = 0", Reply(["labels", "nodes"])),
        (r"count\(\*\) AS nodes", Reply(["nodes"], [[2]])),
        (r"MATCH \(n:`Film`\) .* ORDER BY key", Reply(NODE, [["Her", "1", ["Film", "Person"], HER.fields[2]]])),
        (
            r"MATCH \(n:`Person`\) .* ORDER BY key",
            Reply(NODE, [["Her", "4", ["Person"], {"name": "Her"}], ["Spike Jonze", "2", ["Person"], JONZE.fields[2]]]),
        ),
        (
            r"MATCH \(a:`Person`\)-\[r",
            Reply(
                ["head", "tail", "type", "place", "said"],
                [["Her", "Her", "DIRECTED IT", "8", {}], ["Spike Jonze", "Her", "DIRECTED IT", "9", {"year": 2013}]],
            ),
        ),
        (r"MATCH \(a:`Film`\)-", Reply(["head", "tail", "type", "place", "said"])),
    )
    graph = KnowledgeGraph.from_executor(executor)
    assert list(graph.triples()) == [named_her, FACT]
    assert graph.attributes(FACT) == [{"year": 2013}]
    assert graph.label("Her") == "Her (2013)"
    assert graph.types_of("Her") == ["Film", "Person"]
    assert graph.reading.understood["nodes with the key of another node"] == "1, each taken as that node"
    assert graph.types_of("Spike Jonze") == ["Person"]


class Store:
    """Holds a driver, as LangChain's `Neo4jGraph` and LlamaIndex's `Neo4jPropertyGraphStore` do."""

    def __init__(self, driver: neo4j.Driver) -> None:
        self._driver, self._database = driver, "films"

    def get(self) -> list[Any]:
        """LlamaIndex finds nothing in a graph that it did not write."""
        return []

    get_triplets = get


@pytest.mark.parametrize("wrap", [lambda driver: driver, Store], ids=["driver", "store"])
def test_drivers_and_stores_are_taken_as_they_are(serve: Serve, wrap: Callable[[neo4j.Driver], Any]) -> None:
    """Keys are "name" and "title" here; a node without one is counted, and its relationship too."""
    stub, _ = serve(
        (r"size\(labels\(n\)\) = 0 RETURN", Reply(["labels", "nodes"], [[["Thing"], 1]])),
        (r"WHERE .* RETURN count\(r\) AS found", Reply(["found"], [[1]])),
        (r"count\(\*\) AS nodes", Reply(["nodes"], [[1]])),
        (r"MATCH \(n:`Film`\) .* ORDER BY key", Reply(NODE, [["Her", "1", ["Film"], HER.fields[2]]])),
        (r"MATCH \(n:`Person`\) .* ORDER BY key", Reply(NODE, [["Spike Jonze", "2", ["Person"], JONZE.fields[2]]])),
        (r"\(a:.*\[r", Reply(["head", "tail", "type", "place", "said"], [["Spike Jonze", "", "OWNS", "8", {}]])),
    )
    with neo4j.GraphDatabase.driver(stub.uri, auth=(USER, PASSWORD)) as driver:
        source = wrap(driver)
        graph = KnowledgeGraph.from_executor(source)
        assert {*graph.entities} == {"Her", "Spike Jonze"}
        assert graph.reading.left_out == {"nodes without a key: Thing": 1, "relationships of nodes without a key": 1}
        assert all(request.extra["mode"] == "r" and "tx_timeout" in request.extra for request in stub.requests)
        if isinstance(source, Store):
            assert stub.requests[-1].extra["db"] == "films"
            assert KnowledgeGraph.from_property_graph(source).reading == graph.reading
        driver.verify_connectivity()  # it is not closed
        with Neo4jExecutor(driver=driver) as executor, pytest.raises(InvalidArgumentError, match="made with driver="):
            pickle.dumps(executor)
    with pytest.raises(InvalidArgumentError, match=r"wanted an executor.*Neo4jGraph of LangChain.*but got 'bolt://x'"):
        KnowledgeGraph.from_executor("bolt://x")


def test_names_of_nodes_without_keys(serve: Serve) -> None:
    """None is loaded in silence."""
    _, executor = serve(
        ("max", Reply(["last"], [[None]])), (r"count\(n\) AS nodes", Reply(["nodes"], [[2]])), key="title"
    )
    with pytest.raises(InvalidArgumentError, match=r"no node has .*\['title'\].*'Person': \['name'\].*key='name'"):
        executor.entities_after("", 10)


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_what_does_not_only_read_is_not_run(serve: Serve) -> None:
    stub, executor = serve(("RETURN 1", Reply(["x"], [[1]], type="rw")))
    with pytest.raises(CypherSafetyError, match=r"^check_read_only"):
        executor.run("CREATE (n) RETURN n")
    assert not stub.requests
    with pytest.raises(CypherSafetyError, match=r"of type 'rw', not 'r'.*explain=False"):
        executor.run("RETURN 1 AS x")
    assert stub.queries()[-1] == "EXPLAIN RETURN 1 AS x ORDER BY x LIMIT 1001"


def test_a_database_that_cannot_tell(serve: Serve) -> None:
    stub, executor = serve(("RETURN 1", Reply(["x"], [[1]], type="w")), explain=False)
    assert executor.run("RETURN 1 AS x").rows == ((1,),)
    assert not any("EXPLAIN" in query for query in stub.queries())


@pytest.mark.parametrize("explain", [True, False])
def test_refused_by_the_database(serve: Serve, explain: bool) -> None:
    _, executor = serve(explain=explain)
    with pytest.raises(
        DatabaseQueryError, match=r"refused the query: Invalid .*it was: MATCH \(n\) RETURN m"
    ) as caught:
        executor.run("MATCH (n) RETURN m")
    assert caught.value.reason.startswith("Invalid input")
    assert caught.value.query.startswith("MATCH (n) RETURN m")
    executor.schema()  # the connection is good for more


@pytest.mark.parametrize(
    "behaviour", [Reply(slow=True), Reply(hangs=True)], ids=["the server says so", "it never answers"]
)
def test_timeout(serve: Serve, behaviour: Reply) -> None:
    _, executor = serve(("RETURN 1", behaviour), explain=False)
    executor.schema()
    start = time.monotonic()
    with pytest.raises(DatabaseTimeoutError, match=r"longer than 0.3 s"):
        executor.run("RETURN 1 AS x", timeout=0.3)
    assert time.monotonic() - start < 0.3 + module.GRACE + 10
    assert executor.schema(refresh=True).labels


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        (
            "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
            "The pool is full.",
            r"query now: The pool is full\. Try again, or make .* smaller",
        ),
        (
            "Neo.ClientError.Database.DatabaseNotFound",
            "Database does not exist. Database name: 'x'.",
            r"Database does not exist.*its database's name",
        ),
    ],
)
def test_a_database_that_cannot_answer(serve: Serve, code: str, said: str, told: str) -> None:
    _, executor = serve(("RETURN 1", Reply(failure=(code, said))))
    with pytest.raises(DatabaseUnavailableError, match=told):
        executor.run("RETURN 1 AS x")


@pytest.mark.parametrize(
    "value",
    [*(2**63, -(2**63) - 1, "\ud800", {"\ud800": 1}, {1: 2}, {1}), *([1, "a"], [True, 1], [[1]], [{"a": 1}])],
    ids=repr,
)
def test_values_that_are_no_parameters(serve: Serve, value: object) -> None:
    stub, executor = serve()
    with pytest.raises(InvalidArgumentError, match=r"^Neo4jExecutor\.run: the parameter \$x holds"):
        executor.run("RETURN $x AS x", {"x": value})
    assert not stub.requests


def test_parameters(serve: Serve) -> None:
    stub, executor = serve(("RETURN", Reply(["x"])))
    with pytest.raises(InvalidArgumentError, match="a name that is a text"):
        executor.run("RETURN 1 AS x", {1: 2})  # type: ignore[dict-item]
    executor.run("RETURN $x AS x", {"x": {"b": (1, 2.5, None), "a": None}})
    sent = stub.requests[-1].parameters["x"]
    assert sent == {"a": None, "b": [1, 2.5, None]}
    assert list(sent) == ["a", "b"]  # LadybugDB goes by the order


def test_wrong_password_and_no_secret_anywhere(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # for debugging, the driver itself logs user names, and no passwords
    stub, good = serve(("RETURN 1", Reply(["x"], [[1]])))
    good.run("RETURN 1 AS x")
    monkeypatch.setenv("NEO4J_PASSWORD", "another password")
    with Neo4jExecutor(stub.uri, key=KEYS) as executor, pytest.raises(DatabaseLoginError) as caught:
        executor.run("RETURN 1 AS x")
    assert "NEO4J_USERNAME and NEO4J_PASSWORD" in str(caught.value)
    said = [str(caught.value), repr(caught.value), repr(executor), repr(good), caplog.text, repr(vars(executor))]
    assert not [text for text in said for secret in (USER, PASSWORD, "another password") if secret in text]
    assert repr(executor) == f"Neo4jExecutor({stub.uri!r})"


def test_credentials_handed_in(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEO4J_USERNAME")
    with pytest.raises(InvalidArgumentError, match="NEO4J_USERNAME is not set"):
        serve()
    _, executor = serve(auth=neo4j.basic_auth(USER, PASSWORD))
    assert executor.schema().labels
    monkeypatch.delenv("NEO4J_PASSWORD")
    _, executor = serve()
    with pytest.raises(DatabaseLoginError):
        executor.schema()


# --- pickles ----------------------------------------------------------------------------------------------------------


TITLES = "MATCH (n:Film) RETURN n.title AS title"


@pytest.mark.heavy
def test_a_pickle_holds_no_password(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = (r"MATCH \(n:Film\) RETURN n\.title", Reply(["title"], [["Her"]]))
    stub, executor = serve(titles, database="films", explain=False, connection_timeout=30.0)
    expected = executor.run(TITLES)
    pickled = pickle.dumps(executor)
    assert PASSWORD.encode() not in pickled
    assert USER.encode() not in pickled
    assert copy.deepcopy(executor) is copy.copy(executor) is executor
    assert pickle.loads(pickled)._made_with == executor._made_with
    with ProcessPoolExecutor(1, get_context("spawn")) as process:  # which has the environment of this one
        assert process.submit(executor.run, TITLES).result(60) == expected
    asked = len(stub.queries())
    monkeypatch.delenv("NEO4J_USERNAME")
    monkeypatch.delenv("NEO4J_PASSWORD")
    with pickle.loads(pickled) as again, pytest.raises(DatabaseLoginError, match="Set the environment variables"):
        again.run(TITLES)
    assert len(stub.queries()) == asked


def test_what_was_handed_in_is_not_pickled(serve: Serve) -> None:
    _, executor = serve(auth=neo4j.basic_auth(USER, PASSWORD))
    with pytest.raises(InvalidArgumentError, match=r"made with auth=, which is not written into a pickle\. Set"):
        pickle.dumps(executor)
    assert copy.deepcopy(executor) is executor


# --- threads ----------------------------------------------------------------------------------------------------------


def test_closed(serve: Serve) -> None:
    _, executor = serve(("RETURN 1", Reply(hangs=True)), explain=False)
    executor.schema()
    errors = []

    def work() -> None:
        try:
            executor.run("RETURN 1 AS x", timeout=100)
        except DatabaseUnavailableError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    executor.close()
    executor.close()
    thread.join(30)
    assert errors
    with pytest.raises(DatabaseUnavailableError, match="is closed"):
        executor.run("RETURN 1 AS x")
