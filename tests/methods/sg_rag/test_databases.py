"""Cypher retrieval over several databases: the same found on each, and what users see when a database fails."""

from __future__ import annotations

import asyncio
import pickle
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import neo4j
import pytest
from arcadedb import ArcadeDB, is_installed
from bolt_stub import BoltStub, Reply, by_pattern, node, relationship

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.errors import (
    DatabaseLoginError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    KGRetrieversError,
    StaleIndexError,
    StaleSchemaError,
)
from kg_retrievers.methods.sg_rag import CypherRetriever
from kg_retrievers.sample import load_graph, load_questions

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from cypher_databases import ROWS, Answers, drawn, in_ladybug, rows_as_sent, rows_of_driver, run, translated
from cypher_safety import read_queries

# --- the same is found ------------------------------------------------------------------------------------------------


def differing(answers: Answers, questions: Sequence[Question], executor: Executor) -> tuple[list[str], int]:
    """The questions to which a database and the memory have other answers, and to how many there are some."""
    found = []
    other = []
    for question in questions:
        for topic_given in (True, False):
            by_database = answers.by_retriever("database", question, topic_given)
            found.append(bool(by_database.triples))
            if by_database != answers.in_memory(executor):
                other.append(question.text)
    return other, sum(found)


def test_the_sample_graph_in_memory_and_on_ladybug() -> None:
    index = GraphIndex.build(load_graph(), HashedEmbeddings())
    questions = [replace(question, pattern=None) for question in load_questions()]
    with LadybugExecutor.from_graph(index.graph) as executor:
        answers = Answers(index, questions, {"database": executor})
        other, found = differing(answers, questions, executor)
        assert not other
        assert found > 0.9 * 2 * len(questions)


@pytest.mark.real
@pytest.mark.heavy  # the sample graph shows the same in seconds
def test_60_questions_of_metaqa_in_memory_and_on_ladybug(data_dir: Path, metaqa_graph: KnowledgeGraph) -> None:
    index = GraphIndex.build(metaqa_graph, HashedEmbeddings())
    sets = [random.Random(hop).sample(read_metaqa(data_dir / "metaqa", hop), 220) for hop in (1, 2, 3)]
    examples = [question for questions in sets for question in questions[20:]]
    with LadybugExecutor.from_graph(metaqa_graph) as executor:
        answers = Answers(index, examples, {"database": executor})
        for questions in sets:
            other, found = differing(answers, questions[:20], executor)
            assert (other, found > 35) == ([], True)
        answers.matcher.distinct = "none"  # walks may turn back, which the comparison sees
        assert differing(answers, sets[2][:20], executor)[0]


FILMS = {"Movie": "title", "Person": "name"}


@pytest.mark.real
@pytest.mark.heavy
def test_queries_for_neo4j_on_ladybug(data_dir: Path, tmp_path: Path) -> None:
    """Nearly all run, as they are or translated, and they have rows where the set says that they do on Neo4j."""
    script = (data_dir / "cypher" / "movies.cypher").read_text("utf-8")
    queries = {query.text: query for query in read_queries() if query.good}
    with ExitStack() as opened:
        database = in_ladybug(opened, script, tmp_path / "films.lbdb")
        assert {label.name: label.key for label in database.executor.schema().labels} == FILMS
        found, failed = run(database.executor, list(queries), translated)
        assert len(found) > 0.98 * len(queries)
        others = [reason for reason in failed.values() if "property" not in reason]
        assert len(others) < 5
        votes = {text for text in queries if "votes" in text}  # not in the script
        assert [text for text in found if text not in votes and queries[text].has_rows != bool(found[text].rows)] == []
        for text in list(found)[::10]:
            as_sent, as_it_is = rows_as_sent((database, translated), text), rows_of_driver((database, translated), text)
            if as_sent != as_it_is:
                assert "LIMIT" in text
                assert as_sent.total() == as_it_is.total()


@pytest.mark.parametrize(
    ("query", "for_ladybug"),
    [
        ("MATCH ()-[r]->() RETURN TYPE(r), 'type(r)'", "MATCH ()-[r]->() RETURN label(r), 'type(r)'"),
        ("MATCH (a) WHERE EXISTS {(a)-->(b)} RETURN a", "MATCH (a) WHERE EXISTS { MATCH(a)-->(b)} RETURN a"),
        ("MATCH (a) RETURN COUNT { MATCH (a)-->() }", "MATCH (a) RETURN COUNT { MATCH (a)-->() }"),
        ("MATCH (a) WHERE exists((a)-->()) RETURN a", "MATCH (a) WHERE EXISTS { MATCH (a)-->() } RETURN a"),
        ("MATCH (a) WHERE exists(a.key) RETURN size(a.key)", "MATCH (a) WHERE exists(a.key) RETURN size(a.key)"),
        ("MATCH (a) RETURN size([(a)-->(b) | b]) AS n", "MATCH (a) RETURN COUNT { MATCH (a)-->(b) } AS n"),
        (
            "MATCH (a) WITH a ORDER BY a.x SKIP 1 RETURN a",
            f"MATCH (a) WITH a ORDER BY a.x SKIP 1 LIMIT {ROWS} RETURN a",
        ),
        ("MATCH (a) WITH a ORDER BY a.x LIMIT 1 RETURN a ORDER BY a", ""),
        ("MATCH (a) RETURN a.list[0], a.list[0..1]", "MATCH (a) RETURN a.list[1], a.list[0..1]"),
    ],
)
def test_translated(query: str, for_ladybug: str) -> None:
    assert translated(query) == (for_ladybug or query)


# --- what goes wrong --------------------------------------------------------------------------------------------------

KEYS = ["Her", "Adaptation", "Jonze", "Adams"]
FACTS = [("Her", "directed_by", "Jonze"), ("Adaptation", "directed_by", "Jonze"), ("Her", "starring", "Adams")]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
EXAMPLES = [Question("Which films did Jonze direct?", answers=("Her", "Adaptation"))]
QUESTION = "Which films did Jonze direct?"

NODES = {key: node(number, ["Entity"], key=key) for number, key in enumerate([*KEYS, "Arrival"])}
ROWS_OF = {
    key: [key, relationship(10 + number, number, "directed_by", KEYS.index("Jonze"))]
    for number, key in enumerate(NODES)
}
COLUMNS = ["target", "r0"]
FILMS_OF_JONZE = Reply(COLUMNS, [ROWS_OF["Adaptation"], ROWS_OF["Her"]])
#: A million rows, and 900 million that are added up.
DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
MILLION = " ".join(f"UNWIND {DIGITS} AS i{number}" for number in range(6))
MILLION_FACTS = f"MATCH (x)-[r0:starring]->(y) {MILLION} RETURN y.key AS target, r0, i0"
HEAVY = {
    "query": "MATCH (x)-[r0:directed_by]->(y) UNWIND $many AS i UNWIND $many AS j RETURN r0, sum(i * j) AS total",
    "parameters": {"many": list(range(30_000))},
}


def script(reply: Reply) -> Callable[[str, dict[str, Any]], Reply | None]:
    """What a server says that has the graph, and this reply to questions."""
    told = by_pattern(
        (r"CALL db\.labels", Reply(["label"], [["Entity"]])),
        (r"CALL db\.relationshipTypes", Reply(["type"], [["directed_by"], ["starring"]])),
        (r"MATCH \(n:`Entity`\) RETURN properties", Reply(["n"], [[{"key": "Her"}]])),
        (
            r"LIMIT \$most RETURN type",
            Reply(
                ["name", "heads", "tails", "properties", "found"],
                [[name, ["Entity"], ["Entity"], [{}], 1] for name in ("directed_by", "starring")],
            ),
        ),
        (r"AS target", reply),
    )

    def answer(query: str, parameters: dict[str, Any]) -> Reply | None:
        if "elementId(n) IN $ids" not in query:
            return told(query, parameters)
        found = [part.fields for part in NODES.values() if part.fields[3] in parameters["ids"]]
        return Reply(["id", "labels", "key"], [[fields[3], fields[1], fields[2]["key"]] for fields in found])

    return answer


Serve = Callable[..., tuple[BoltStub, CypherRetriever]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a server with a reply to questions, and a retriever over it."""
    monkeypatch.setenv("NEO4J_USERNAME", "reader")
    monkeypatch.setenv("NEO4J_PASSWORD", "right")
    with ExitStack() as opened:

        def start(reply: Reply = FILMS_OF_JONZE, **fields: Any) -> Any:
            stub = opened.enter_context(BoltStub(script(reply), "reader", "right"))
            return stub, over(opened.enter_context(Neo4jExecutor(stub.uri)), **fields)

        yield start


@pytest.fixture
def ladybug() -> Iterator[LadybugExecutor]:
    with LadybugExecutor.from_graph(INDEX.graph) as executor:
        yield executor


def over(executor: Executor, **fields: Any) -> CypherRetriever:
    return CypherRetriever.from_index(INDEX, examples=EXAMPLES, executor=executor, **fields)


def fails(retriever: CypherRetriever, error: type[KGRetrieversError], words: str, **given: Any) -> None:
    """Ask in both ways; each must fail with the error, and soon."""
    for ask in (retriever.invoke, lambda *args, **named: asyncio.run(retriever.ainvoke(*args, **named))):
        start = time.monotonic()
        with pytest.raises(error, match=words):
            ask(QUESTION, **given)
        assert time.monotonic() - start < 30


def test_all_is_well(serve: Serve, ladybug: LadybugExecutor) -> None:
    for retriever in (serve()[1], over(ladybug)):
        (document,) = retriever.invoke(QUESTION)
        assert document.metadata["answers"] == ["Adaptation", "Her"]
        assert document.metadata["triples"] == [list(FACTS[1]), list(FACTS[0])]
        assert not document.metadata["truncated"]


def test_a_retriever_over_bolt_is_pickled_without_the_password(serve: Serve) -> None:
    _, retriever = serve()
    pickled = pickle.dumps(retriever)
    assert b"right" not in pickled
    again = pickle.loads(pickled)
    assert again.invoke(QUESTION) == retriever.invoke(QUESTION)
    again.executor.close()
    logged_in = Neo4jExecutor("bolt://localhost", auth=neo4j.basic_auth("reader", "right"))
    with logged_in, pytest.raises(InvalidArgumentError, match="make the executor in the other process"):
        pickle.dumps(over(logged_in))


def test_the_database_is_down(serve: Serve, ladybug: LadybugExecutor) -> None:
    stub, running = serve()
    assert running.invoke(QUESTION)
    stub.stop()
    fails(running, DatabaseUnavailableError, "(?s)does not answer.*Is it running")
    stub, never_asked = serve()
    stub.stop()
    fails(never_asked, DatabaseUnavailableError, "(?s)does not answer.*Is it running")
    retriever = over(ladybug)
    assert retriever.invoke(QUESTION)
    ladybug.close()
    fails(retriever, DatabaseUnavailableError, "is closed. Open it again")


def test_a_wrong_password(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_PASSWORD", "wrong")
    stub, _ = serve()
    with Neo4jExecutor(stub.uri) as executor:
        fails(over(executor), DatabaseLoginError, "does not let this user in .*NEO4J_PASSWORD")
    assert not stub.queries()


@pytest.mark.parametrize("reply", [Reply(slow=True), Reply(hangs=True)], ids=["the server says so", "it says nothing"])
def test_a_timeout_over_bolt(serve: Serve, reply: Reply) -> None:
    _, retriever = serve(reply, timeout=0.2)
    fails(retriever, DatabaseTimeoutError, "longer than 0.2 s and was stopped. Make it smaller, or raise timeout")


def test_a_timeout_on_ladybug(ladybug: LadybugExecutor) -> None:
    retriever = over(ladybug, timeout=0.2)
    fails(retriever, DatabaseTimeoutError, "longer than 0.2 s and was stopped", cypher=HEAVY, seed_entities=["Jonze"])
    retriever.timeout = 20.0
    assert retriever.invoke(QUESTION)


def test_an_async_question_is_cancelled_on_ladybug(ladybug: LadybugExecutor) -> None:
    retriever = over(ladybug, timeout=100.0)

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(retriever.ainvoke(QUESTION, cypher=HEAVY, seed_entities=["Jonze"]), 1.0)

    start = time.monotonic()
    asyncio.run(ask())  # waits for the threads that it started
    assert time.monotonic() - start < 30
    assert retriever.invoke(QUESTION)


def test_facts_have_changed_since_the_graph_was_indexed(serve: Serve) -> None:
    _, retriever = serve(Reply(COLUMNS, [ROWS_OF["Her"], ROWS_OF["Arrival"]]))
    fails(retriever, StaleIndexError, "'Arrival'.*Index the graph of this database again")
    changed = INDEX.graph.with_changes(added=[("Arrival", "directed_by", "Jonze")])
    with LadybugExecutor.from_graph(changed) as executor:
        fails(over(executor), StaleIndexError, "'Arrival'.*Index the graph of this database again")


def test_a_relation_has_gone_since_the_schema_was_read(serve: Serve) -> None:
    note = "One of the relationship types is not available (the missing relationship type is: directed_by)"
    code = "Neo.ClientNotification.Statement.UnknownRelationshipTypeWarning"
    _, retriever = serve(Reply(COLUMNS, notifications=[(code, note)]))
    fails(retriever, StaleSchemaError, r"no \['directed_by'\] any longer.*refresh=True")


def test_a_relation_has_gone_since_the_graph_was_indexed() -> None:
    changed = INDEX.graph.with_changes(removed=[fact for fact in FACTS if fact[1] == "directed_by"])
    with LadybugExecutor.from_graph(changed) as executor:
        fails(over(executor), StaleIndexError, "relation 'directed_by', the database has not.*ndex the graph")


def test_a_file_changed_while_it_is_open(tmp_path: Path) -> None:
    """Whoever has opened it sees what was in it then."""
    path = tmp_path / "films.lbdb"
    statements = ["DROP TABLE directed_by", "MATCH (n:Entity) DETACH DELETE n", "CHECKPOINT"]
    with LadybugExecutor.from_graph(INDEX.graph, path) as executor:
        before = over(executor).invoke(QUESTION)
        change = (
            "import ladybug, sys\n"
            "with ladybug.Database(sys.argv[1], max_db_size=1 << 40) as base, ladybug.Connection(base) as connection:\n"
            "    for statement in sys.argv[2:]: connection.execute(statement)"
        )
        subprocess.run([sys.executable, "-c", change, path, *statements], check=True, timeout=60)
        executor.schema(refresh=True)
        assert over(executor).invoke(QUESTION) == before
    with LadybugExecutor(path) as executor:
        fails(over(executor), StaleIndexError, "relation 'directed_by', the database has not.*ndex the graph")


def test_a_million_rows_over_bolt(serve: Serve) -> None:
    stub, retriever = serve(Reply(COLUMNS, lambda: (ROWS_OF["Her"] for _ in range(1_000_000))), max_rows=1500)
    answers_at_most(retriever, 1500)
    assert stub.rows_sent < 10_000


def test_a_million_rows_on_ladybug(ladybug: LadybugExecutor) -> None:
    answers_at_most(over(ladybug, max_rows=1500), 1500, cypher=MILLION_FACTS, seed_entities=["Adams"])


def answers_at_most(retriever: CypherRetriever, rows: int, **given: Any) -> None:
    retriever.invoke(QUESTION)  # so that all is loaded
    tracemalloc.start()
    (document,) = retriever.invoke(QUESTION, **given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert document.metadata["truncated"]
    assert document.metadata["details"]["rows"] == rows
    assert document.metadata["triples"]
    assert peak < 20_000_000


# --- a real server ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arcadedb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcadeDB]:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(tmp_path_factory.mktemp("arcadedb"), ["metaqa", "films"], memory=1024) as server:
        server.load(INDEX.graph, "films")
        yield server


@pytest.mark.heavy
def test_300_questions_of_metaqa_in_memory_and_over_bolt(arcadedb: ArcadeDB, metaqa_graph: KnowledgeGraph) -> None:
    index = GraphIndex.build(metaqa_graph, HashedEmbeddings())
    arcadedb.load(metaqa_graph, "metaqa")
    examples, measured = drawn(100)
    with arcadedb.executor("metaqa", explain=False) as executor:
        answers = Answers(index, examples, {"database": executor})
        for questions in measured.values():
            assert differing(answers, questions, executor) == ([], 200)  # with the topic given, and without


@pytest.mark.heavy
def test_what_goes_wrong_over_bolt(arcadedb: ArcadeDB) -> None:
    with arcadedb.executor("films", explain=False) as executor:
        retriever = over(executor, max_rows=1500, timeout=300.0)
        assert retriever.invoke(QUESTION)[0].metadata["answers"] == ["Adaptation", "Her"]
        answers_at_most(retriever, 1500, cypher=MILLION_FACTS, seed_entities=["Adams"])
        some = {**HEAVY, "parameters": {"many": list(range(3000))}}  # which the server goes on with
        fails(
            over(executor, timeout=0.2), DatabaseTimeoutError, "longer than 0.2 s", cypher=some, seed_entities=["Her"]
        )
    wrong = neo4j.basic_auth("root", "wrong")
    with Neo4jExecutor(arcadedb.uri, database="films", auth=wrong) as executor:
        fails(over(executor), DatabaseLoginError, "does not let this user in")
    with arcadedb.executor("films", explain=False) as executor:
        executor.schema()
        arcadedb.write("films", "MATCH (n:Entity {key: 'Jonze'}) CREATE (:Entity {key: 'New'})-[:directed_by]->(n)")
        fails(over(executor), StaleIndexError, "'New'.*Index the graph of this database again")
        arcadedb.write("films", "MATCH ()-[r:directed_by]->() DELETE r")
        assert over(executor).invoke(QUESTION) == []  # ArcadeDB does not say that the type has gone
        executor.schema(refresh=True)
        fails(over(executor), StaleIndexError, "relation 'directed_by', the database has not")


@pytest.mark.heavy
def test_a_server_that_is_killed(tmp_path: Path) -> None:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(tmp_path, ["films"]) as server:
        server.load(INDEX.graph, "films")
        with server.executor("films", explain=False) as executor:
            retriever = over(executor)
            assert retriever.invoke(QUESTION)
            server.kill()
            fails(retriever, DatabaseUnavailableError, "(?s)does not answer.*Is it running")
