"""The embedded database LadybugDB, the real one."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ladybug
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers import CypherRetriever, GraphIndex
from kg_retrievers.database import ladybug as module
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.database.values import EntityNode, Relationship, triples_in
from kg_retrievers.errors import CypherSafetyError, DatabaseQueryError, DatabaseUnavailableError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph import Path as Walk
from kg_retrievers.graph.building import Reading
from kg_retrievers.testing import tiny_graph
from kg_retrievers.testing.other_process import call_in_other_process

HER = ("Her", "directed by", "Spike Jonze")
FACTS = [HER, ("Her", "starring", "Amy Adams"), ("Her", "written by", "Spike Jonze"), ("Her", "sequel of", "Her")]
#: Many numbers, and all products of two of them added up.
HEAVY = "UNWIND $many AS i UNWIND $many AS j RETURN sum(i * j) AS total"
MANY = {"many": list(range(30_000))}


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(
        FACTS,
        labels={"Her": "Her (2013)", "alone": "alone"},
        aliases={"Spike Jonze": ["Adam Spiegel"]},
        types={"Her": ["Film", "Comedy"], "Amy Adams": ["Person"]},
    )


@pytest.fixture(scope="module")
def executor(graph: KnowledgeGraph) -> Iterator[LadybugExecutor]:
    with LadybugExecutor.from_graph(graph) as executor:
        yield executor


def contents(graph: KnowledgeGraph) -> dict[str, Any]:
    """All of a graph but the order."""
    return {
        "triples": set(graph.triples()),
        "labels": {key: graph.label(key) for key in graph.entities},
        "aliases": {key: graph.aliases(key) for key in graph.entities},
        "types": {key: graph.types_of(key) for key in graph.entities},
    }


# --- in and out -------------------------------------------------------------------------------------------------------


def test_a_graph_comes_back(graph: KnowledgeGraph, executor: LadybugExecutor) -> None:
    for page_size in (1, 2, 100):
        assert contents(KnowledgeGraph.from_executor(executor, page_size=page_size)) == contents(graph)
    with pytest.raises(InvalidArgumentError, match="page_size is 0"):
        KnowledgeGraph.from_executor(executor, page_size=0)
    with pytest.raises(InvalidArgumentError, match="wanted an executor"):
        KnowledgeGraph.from_executor("films.lbdb")  # type: ignore[arg-type]


ODD = [
    *("NULL", "a.b", "A.B", "a_b", "entity", "Entity", "\ufeff", "e\u0301", "é", " x ", '"', "''"),
    *("\\", "\r\n", "a,b", "`"),
]
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.sampled_from(ODD)


@pytest.mark.heavy
@settings(max_examples=8)
@given(
    st.lists(st.tuples(texts, texts, texts), max_size=8),
    st.dictionaries(texts, texts, max_size=3),
    st.dictionaries(texts, st.lists(texts, unique=True, max_size=3), max_size=3),
    st.dictionaries(texts, st.lists(texts, unique=True, max_size=3), max_size=3),
)
def test_any_text_comes_back(
    triples: list[tuple[str, str, str]],
    labels: dict[str, str],
    aliases: dict[str, list[str]],
    types: dict[str, list[str]],
) -> None:
    graph = KnowledgeGraph.from_triples(triples, labels=labels, aliases=aliases, types=types)
    with LadybugExecutor.from_graph(graph) as executor:
        assert contents(KnowledgeGraph.from_executor(executor, page_size=3)) == contents(graph)
        facts = [relationship.triple for (relationship,) in executor.run("MATCH ()-[r]->() RETURN r").rows]
        assert sorted(facts) == sorted(graph.triples())
        for relation in graph.relations:
            name = executor.schema().type_of(relation)
            query = "MATCH (a)-[:`{}`]->(b) RETURN a.key, b.key".format(name.replace("`", "``"))
            found = {Triple(head, relation, tail) for head, tail in executor.run(query).rows}
            assert found == set(graph.triples(relation=relation))


@pytest.mark.parametrize("count", [40, pytest.param(150, marks=pytest.mark.heavy)])
def test_many_relations(count: int) -> None:
    triples = [(f"e{i % 7}", f"domain.type.relation {i}", f"e{i % 5}") for i in range(count)]
    graph = KnowledgeGraph.from_triples(triples)
    with LadybugExecutor.from_graph(graph, max_memory=1 << 28) as executor:
        assert len(executor.schema().relations) == count
        assert set(KnowledgeGraph.from_executor(executor).triples()) == set(graph.triples())


@pytest.mark.heavy
def test_rows_of_several_loads_are_in_the_same_order() -> None:
    graph = KnowledgeGraph.from_triples(
        (f"film {i}", "starring", f"actor {i * j % 41}") for i in range(4000) for j in b"abc"
    )
    found = set()
    for _ in range(4):
        with LadybugExecutor.from_graph(graph) as executor:
            found.add(str(executor.run("MATCH (:Entity {key: 'actor 7'})<-[r]-() RETURN r", limit=50).rows))
    assert len(found) == 1


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_file_is_kept_and_opened_again(graph: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "it's mine.lbdb"
    with LadybugExecutor.from_graph(graph, path) as first, LadybugExecutor(path) as second:
        assert first.run("MATCH (n) RETURN n").rows == second.run("MATCH (n) RETURN n").rows
        assert repr(first) == f"LadybugExecutor({str(path)!r})"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidArgumentError, match=r"exists\. Open it by LadybugExecutor"):
        LadybugExecutor.from_graph(graph, path)


def test_too_little_memory_is_refused_before_a_file_is_written(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="max_memory is 1000"):
        LadybugExecutor.from_graph(graph, tmp_path / "graph.lbdb", max_memory=1000)
    assert not list(tmp_path.iterdir())


@pytest.mark.heavy
def test_what_a_file_does_not_hold_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frame = [{"head": "Her", "relation": "director", "tail": "Spike Jonze", "source": "credits"}]
    graph = KnowledgeGraph.from_frame(frame, text_relations=["director"])
    LadybugExecutor.from_graph(graph).close()
    assert caplog.messages == []
    LadybugExecutor.from_graph(graph, tmp_path / "films.lbdb").close()
    assert [text.partition("films.lbdb ")[2] for text in caplog.messages] == [
        "does not hold sources of facts, text relations."
    ]


def test_a_file_of_its_own_goes(graph: KnowledgeGraph) -> None:
    executor = LadybugExecutor.from_graph(graph)
    assert executor.path.exists()
    executor.close()
    executor.close()
    assert not executor.path.parent.exists()
    with pytest.raises(DatabaseUnavailableError, match="is closed"):
        executor.run("MATCH (n) RETURN n")


STARS = "MATCH (film)-[:starring]->(person) RETURN film.key, person.key, person.label"


@pytest.mark.heavy
def test_a_pickle_opens_the_file_again(graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with LadybugExecutor.from_graph(graph, "graph.lbdb") as executor:
        executor.path.rename("moved.lbdb")
    with LadybugExecutor("moved.lbdb", key="label", max_memory=1 << 28) as executor:
        expected = executor.run(STARS)
        schema = executor.schema()
        assert schema.keys == ("label",)
        pickled = pickle.dumps(executor)
        assert call_in_other_process(executor.run, STARS) == expected
        assert call_in_other_process(executor.schema) == schema
    monkeypatch.chdir("/")
    with pickle.loads(pickled) as again:
        assert (again.run(STARS), again.schema()) == (expected, schema)
    (tmp_path / "moved.lbdb").unlink()
    with pytest.raises(DatabaseUnavailableError, match=r"moved\.lbdb' is not there\. Make one"):
        pickle.loads(pickled)


@pytest.mark.heavy
def test_a_pickle_of_a_database_of_its_own_holds_the_graph(graph: KnowledgeGraph) -> None:
    with LadybugExecutor.from_graph(graph, max_memory=1 << 28) as executor:
        expected = executor.run(STARS)
        pickled = pickle.dumps(executor)
        assert call_in_other_process(executor.run, STARS) == expected
    assert not executor.path.exists()
    with pickle.loads(pickled) as again:
        assert again.path != executor.path
        assert again.run(STARS) == expected


def test_nothing_is_left_of_what_failed(graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "load_graph", fail)
    with pytest.raises(KeyboardInterrupt):
        LadybugExecutor.from_graph(graph, tmp_path / "new.lbdb")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_opened(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailableError, match=r"nowhere\.lbdb' is not there"):
        LadybugExecutor(tmp_path / "nowhere.lbdb")
    with pytest.raises(DatabaseUnavailableError, match="is a folder"):
        LadybugExecutor(tmp_path)
    (tmp_path / "text").write_text("This is no database." * 1000)
    with pytest.raises(DatabaseUnavailableError, match="cannot be opened"):
        LadybugExecutor(tmp_path / "text")
    with pytest.raises(DatabaseUnavailableError, match="cannot write to"):
        LadybugExecutor.from_graph(graph, tmp_path / "nowhere" / "new.lbdb")


def test_a_database_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "other.lbdb"
    with ladybug.Database(path, max_db_size=1 << 40) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Film(title STRING PRIMARY KEY, year DATE, cut BLOB, rated MAP(STRING, INT64))",
            "CREATE NODE TABLE Person(name STRING PRIMARY KEY, title STRING)",
            "CREATE REL TABLE STARS(FROM Film TO Person, FROM Film TO Film, role STRING)",
            "COMMENT ON TABLE STARS IS 'who plays in it'",
            "CREATE (f:Film {title: 'Her', year: date('2013-10-12'), cut: blob('\\\\xAA'), rated: map(['x'], [5])})"
            "-[:STARS {role: 'Amy'}]->(:Person {name: 'Amy Adams', title: 'Ms'})",
        ):
            connection.execute(statement)
    with LadybugExecutor(path) as executor:
        assert [(label.name, label.key) for label in executor.schema().labels] == [
            ("Film", "title"),
            ("Person", "name"),
        ]
        assert executor.schema().relations[0].ends == (("Film", "Film"), ("Film", "Person"))
        film, stars = executor.run("MATCH (f:Film)-[s]->() RETURN f, s").rows[0]
        assert film == EntityNode(
            "Her", ("Film",), {"title": "Her", "year": "2013-10-12", "cut": "aa", "rated": {"x": 5}}
        )
        assert stars == Relationship(Triple("Her", "STARS", "Amy Adams"), {"role": "Amy"})
        graph = KnowledgeGraph.from_executor(executor)
        assert sorted(graph.triples()) == [("Her", "STARS", "Amy Adams"), ("Her", "year", "2013-10-12")]
        assert graph.attributes(("Her", "STARS", "Amy Adams")) == [{"role": "Amy"}]
        assert (graph.datatype("2013-10-12"), graph.label("Amy Adams")) == ("xsd:date", "Ms")
        assert graph.types_of("Amy Adams") == ["Person"]
        assert graph.reading == Reading(
            "LadybugDB",
            {
                "keys": "Film.title, Person.name",
                "types": "the labels of nodes",
                "names and types": "node attributes 'types' 2, 'label' 1",
                "facts from node attributes": "'year' 1",
                "attributes of facts": "edge attributes 'role' 1",
            },
            {f"node attribute {name!r} with nested values or vectors": 1 for name in ("cut", "rated")},
        )
    with LadybugExecutor(path, label="title") as executor:
        assert executor.run("MATCH ()-[s]->() RETURN s").labels == {"Amy Adams": "Ms"}
        assert KnowledgeGraph.from_executor(executor).label("Amy Adams") == "Ms"


# --- results ----------------------------------------------------------------------------------------------------------


def test_values(executor: LadybugExecutor) -> None:
    rows = executor.run(
        "MATCH p = (a)-[r:`directed by`]->(b) OPTIONAL MATCH (b)-[s]->(c) "
        "RETURN p, r, b, c, [r] AS list, {x: 1.5} AS map, a.label AS text, date('2013-10-12') AS day"
    )
    fact = Triple(*HER)
    assert rows.columns == ("p", "r", "b", "c", "list", "map", "text", "day")
    ((path, relationship, director, nothing, facts, plain, text, day),) = rows.rows
    assert path == Walk(("Her", "Spike Jonze"), (fact,))
    assert (relationship, facts) == (Relationship(fact, {}), [Relationship(fact, {})])
    assert director.key == "Spike Jonze"
    assert director.labels == ("Entity",)
    assert director.properties["aliases"] == ["Adam Spiegel"]
    assert (nothing, plain, text, day) == (None, {"x": 1.5}, "Her (2013)", "2013-10-12")
    assert rows.labels == {"Her": "Her (2013)"}
    assert triples_in(rows.rows) == [fact]
    assert rows.column("text") == ["Her (2013)"]
    assert len(rows) == 1


def test_paths_of_any_length_and_against_the_arrow(executor: LadybugExecutor) -> None:
    query = "MATCH (a {key: $key})-[r*1..2]-(b) WHERE b.key <> a.key RETURN r, b.key"
    rows = executor.run(query, {"key": "Amy Adams"})
    facts = [[part.triple for part in row[0]] for row in rows.rows if row[1] == "Spike Jonze"]
    assert sorted(facts) == [[FACTS[1], HER], [FACTS[1], FACTS[2]]]
    rows = executor.run("MATCH p = (a {key: 'Amy Adams'})-[*2..2]-(b {key: 'Spike Jonze'}) RETURN p")
    assert {row[0].entities for row in rows.rows} == {("Amy Adams", "Her", "Spike Jonze")}


def test_what_only_looks_like_a_relationship_is_none(executor: LadybugExecutor) -> None:
    id = "{`offset`: 0, `table`: 0}"
    forged = f"{{_SRC: {id}, _DST: {id}, _LABEL: 'starring', _ID: {id}}}"
    rows = executor.run(f"RETURN {forged} AS r")
    assert isinstance(rows.rows[0][0], dict)
    assert not triples_in(rows.rows)


def test_rows_are_the_same_and_cut_off_is_said(executor: LadybugExecutor) -> None:
    everything = executor.run("MATCH (a)-[r]->(b) RETURN r")
    assert not everything.truncated
    for limit in range(1, len(FACTS) + 1):
        rows = executor.run("MATCH (a)-[r]->(b) RETURN r", limit=limit)
        assert rows.rows == everything.rows[:limit]
        assert rows.truncated is (limit < len(FACTS))


# --- what is refused --------------------------------------------------------------------------------------------------

WRITES = [
    "CREATE (:Entity {key: 'x'})",
    "MATCH (n) SET n.label = 'x'",
    "MATCH (n) DETACH DELETE n",
    "DROP TABLE Entity",
]


@pytest.mark.parametrize("query", WRITES)
def test_neither_the_check_nor_the_database_lets_writes_pass(executor: LadybugExecutor, query: str) -> None:
    with pytest.raises(CypherSafetyError):
        executor.run(query)
    with pytest.raises(DatabaseQueryError, match="read-only"):
        executor._fetch(query, {}, 10, 10.0)


def test_refused_by_the_database(executor: LadybugExecutor) -> None:
    with pytest.raises(DatabaseQueryError, match=r"LadybugDB refused the query: .*Cannot find property born") as caught:
        executor.run("MATCH (n:Entity) RETURN n.born")
    assert caught.value.reason.endswith("Cannot find property born for n.")
    assert caught.value.query.startswith("MATCH (n:Entity) RETURN n.born")
    with pytest.raises(DatabaseQueryError, match="Table Nobody does not exist"):
        executor.run("MATCH (n:Nobody) RETURN n")


def test_arguments(executor: LadybugExecutor) -> None:
    with pytest.raises(InvalidArgumentError, match="0 are asked for"):
        executor.run("MATCH (n) RETURN n", limit=0)
    for timeout in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(InvalidArgumentError, match="timeout is"):
            executor.run("MATCH (n) RETURN n", timeout=timeout)
    rows = executor.run(
        "MATCH (n) WHERE n.key IN $keys RETURN n.key", {"keys": ("Her", "x"), "map": {"a": [None, 1.0]}}
    )
    assert rows.rows == (("Her",),)


# --- time and threads -------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_several_threads(graph: KnowledgeGraph) -> None:
    with LadybugExecutor.from_graph(graph) as executor, ThreadPoolExecutor(8) as threads:
        query = "MATCH (n {key: $key})-[r]->(m) RETURN r, m"
        keys = ["Her", "Amy Adams", "alone", "nobody"] * 15
        alone = {key: executor.run(query, {"key": key}) for key in set(keys)}
        together = list(threads.map(lambda key: executor.run(query, {"key": key}), keys))
        assert together == [alone[key] for key in keys]


@pytest.mark.heavy
def test_closed_while_a_query_runs(graph: KnowledgeGraph) -> None:
    executor = LadybugExecutor.from_graph(graph)
    executor.schema()
    errors = []

    def work() -> None:
        try:
            executor.run(HEAVY, MANY, timeout=100)
        except DatabaseUnavailableError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not executor._pool._busy:
        time.sleep(0.001)
    executor.close()
    thread.join(30)
    assert "closed while it ran" in str(errors[0])


def test_a_large_database_is_not_made_again_in_each_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tiny_graph()
    monkeypatch.setattr(module, "MAX_TEMPORARY", len(graph) - 1)
    with pytest.raises(InvalidArgumentError, match=r"from_graph\(graph, path\)") as refused:
        CypherRetriever.from_index(GraphIndex.build(graph)).invoke("Who directed Her?", on_refusal="raise")
    assert "--database FILE" in refused.value.on_shell
    with LadybugExecutor.from_graph(graph, tmp_path / "films.lbdb") as executor:
        assert CypherRetriever.from_index(GraphIndex.build(graph), executor=executor).invoke("Who directed Her?")
