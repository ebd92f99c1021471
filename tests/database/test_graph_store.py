"""Queries through the graph stores of LangChain and LlamaIndex."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from bolt_stub import BoltStub, Reply, by_pattern, node, path, relationship

from kg_retrievers.database.graph_store import QueryExecutor
from kg_retrievers.database.rendering import render
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.database.values import Relationship, triples_in
from kg_retrievers.errors import CypherSafetyError, DatabaseError, DatabaseQueryError, InvalidArgumentError
from kg_retrievers.graph import Pattern, Triple, Unknown

SCHEMA = DatabaseSchema(
    (NodeLabel("Film", "title", {}), NodeLabel("Person", "name", {})), (RelationType("DIRECTED", (), {}, "directed"),)
)
HER, JONZE = node(1, ["Film"], title="Her"), node(2, ["Person"], name="Spike Jonze")
DIRECTED = relationship(7, 2, "DIRECTED", 1, year=2013)


class LangChainStore:
    """Returns what `langchain_neo4j.Neo4jGraph` does, by the same call of the driver."""

    def __init__(self, uri: str) -> None:
        self._driver = neo4j.GraphDatabase.driver(uri)

    def query(self, query: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        records, _, _ = self._driver.execute_query(query, params)
        return [record.data() for record in records]


class LlamaIndexStore:
    """The method of LlamaIndex's property graph stores."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.asked: list[tuple[str, dict[str, Any] | None]] = []

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        self.asked.append((query, param_map))
        return self.rows


@pytest.fixture
def store() -> Iterator[LangChainStore]:
    walk = path([HER, JONZE], [(DIRECTED, False)])
    script = by_pattern(
        ("RETURN n, r", Reply(["n", "r", "m", "p"], [[HER, DIRECTED, JONZE, walk]])),
        ("n0, n1$|n0, n1 ORDER|n0, n1\n", Reply(["target", "r0", "n0", "n1"], [["Spike Jonze", DIRECTED, JONZE, HER]])),
        ("RETURN r", Reply(["r"], [[DIRECTED]])),
        (r"CALL db\.labels", Reply(["label"], [["Film"]])),
        (r"CALL db\.relationshipTypes", Reply(["type"], [["DIRECTED"]])),
        (r"RETURN properties\(n\)", Reply(["properties(n)"], [[{"title": "Her", "scores": [1.5]}]])),
        (
            r"RETURN type\(r\) AS name",
            Reply(["name", "heads", "tails", "properties", "found"], [["DIRECTED", ["Person"], ["Film"], [{}], 1]]),
        ),
    )
    with BoltStub(script) as stub:
        store = LangChainStore(stub.uri)
        yield store
        store._driver.close()


def test_langchain(store: LangChainStore) -> None:
    executor = QueryExecutor(store, schema=SCHEMA)
    rows = executor.run("MATCH p = (n)-[r]-(m) RETURN n, r, m, p")
    fact = Relationship(Triple("Spike Jonze", "directed", "Her"), {})
    her, jonze = {"title": "Her"}, {"name": "Spike Jonze"}
    assert rows.columns == ("n", "r", "m", "p")
    assert rows.rows == ((her, fact, jonze, [her, "DIRECTED", jonze]),)
    assert repr(executor) == "QueryExecutor(LangChainStore)"
    executor.close()
    assert executor.dialect == "neo4j"


def test_a_relationship_without_its_nodes_is_no_fact(store: LangChainStore) -> None:
    executor = QueryExecutor(store, schema=SCHEMA)
    assert not triples_in(executor.run("MATCH ()-[r]-() RETURN r").rows)
    pattern = Pattern.of((Unknown("x"), "directed", "Her"), target="x")
    query, parameters = render(pattern, SCHEMA, "neo4j", nodes=True)
    rows = executor.run(query, parameters)
    assert triples_in(rows.rows) == [Triple("Spike Jonze", "directed", "Her")]
    assert rows.column("target") == ["Spike Jonze"]


def test_a_node_with_two_keys_is_in_no_fact() -> None:
    """Whether it is a person is not known, since its labels did not come."""
    one, two, same = {"title": "Her"}, {"title": "Her", "name": "x"}, {"title": "Her", "name": "Her"}
    rows = [{"r": (start, "DIRECTED", {"name": "Ann"})} for start in (one, two, same)]
    found = QueryExecutor(LlamaIndexStore(rows), schema=SCHEMA).run("MATCH ()-[r]->() RETURN r").column("r")
    fact = Relationship(Triple("Her", "directed", "Ann"), {})
    assert found == [fact, [two, "DIRECTED", {"name": "Ann"}], fact]


def test_the_schema_is_read_where_it_is_not_given(store: LangChainStore) -> None:
    executor = QueryExecutor(store, key="title")
    assert executor.schema() == DatabaseSchema(
        (NodeLabel("Film", "title", {"scores": "LIST<FLOAT>", "title": "STRING"}),),
        (RelationType("DIRECTED", (("Person", "Film"),), {}),),
    )
    with pytest.raises(InvalidArgumentError, match=r"^QueryExecutor: no label has"):
        QueryExecutor(store, key="name").schema()


def test_llama_index() -> None:
    store = LlamaIndexStore([{"n.title": "Her", "x": [1, ("a", "b")]}, {"n.title": "Adaptation", "x": None}])
    executor = QueryExecutor(store, schema=SCHEMA)
    rows = executor.run("MATCH (n) WHERE n.title <> $no RETURN n.title, n.x AS x", {"no": "x"}, limit=1)
    assert (rows.columns, rows.rows, rows.truncated) == (("n.title", "x"), (("Her", [1, ["a", "b"]]),), True)
    ((query, parameters),) = store.asked
    assert query.endswith("ORDER BY n.title, x LIMIT 2")
    assert parameters == {"no": "x"}
    nothing = QueryExecutor(LlamaIndexStore([]), schema=SCHEMA).run("MATCH (n) RETURN n.title")
    assert (nothing.columns, nothing.rows) == (("n.title",), ())


def test_it_is_pickled_with_its_store(store: LangChainStore) -> None:
    executor = QueryExecutor(LlamaIndexStore([{"r": "Her"}]), schema=SCHEMA)
    query = "MATCH (n) RETURN n.title AS r"
    again = pickle.loads(pickle.dumps(executor))
    assert again.run(query) == executor.run(query)
    assert (repr(again), again.schema()) == ("QueryExecutor(LlamaIndexStore)", SCHEMA)
    assert copy.deepcopy(executor) is executor
    with pytest.raises(InvalidArgumentError, match=r"LangChainStore\): the store cannot be pickled .* in the other"):
        pickle.dumps(QueryExecutor(store, schema=SCHEMA))


def test_what_is_refused() -> None:
    store = LlamaIndexStore([])
    with pytest.raises(CypherSafetyError):
        QueryExecutor(store, schema=SCHEMA).run("MATCH (n) DELETE n")
    assert not store.asked
    with pytest.raises(InvalidArgumentError, match=r"object has no method query\(cypher, params\)"):
        QueryExecutor(object())
    with pytest.raises(InvalidArgumentError, match="Give schema="):
        QueryExecutor(store, dialect="ladybug")


def test_what_goes_wrong_in_the_store() -> None:
    class Broken:
        def query(self, query: str, params: dict[str, Any]) -> Any:
            raise RuntimeError("no such label")

    with pytest.raises(
        DatabaseQueryError, match=r"QueryExecutor\(Broken\) could not run the query: no such label"
    ) as caught:
        QueryExecutor(Broken(), schema=SCHEMA).run("MATCH (n) RETURN n")
    assert caught.value.reason == "no such label"
    for answer in ("text", [1]):
        with pytest.raises(DatabaseError, match="wanted a list of dictionaries"):
            QueryExecutor(LlamaIndexStore(answer), schema=SCHEMA).run("MATCH (n) RETURN n")
