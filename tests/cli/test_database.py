"""Graph databases on the command line: the method sg-rag, and graphs that are in a database."""

from __future__ import annotations

import json
import logging
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from math import floor
from pathlib import Path

import ladybug
import pytest
from bolt_stub import BoltStub, Reply, by_pattern, relationship
from shell_mistakes import Run, mistake

from kg_retrievers import KnowledgeGraph, LadybugExecutor
from kg_retrievers.cli import sources
from kg_retrievers.errors import install_command

USER, PASSWORD = "the-reader", "a-secret"
HER = "Who directed Her?"
ASK = ("ask", "films.csv", HER)
CYPHER = ("--method", "cypher")
KEYS = ("--key", "Movie=title", "--key", "Person=name")

FILES = {
    "films.csv": "head,relation,tail\nHer,directed_by,Spike Jonze\nHer,starring,Amy Adams\n"
    "Adaptation,directed_by,Spike Jonze\n",
    "more.csv": "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\nHer,starring,Rooney Mara\n"
    "Adaptation,directed_by,Spike Jonze\n",
    "lbug.csv": "LBUG,is_a,database\n",
    "asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n',
    "taught.jsonl": '{"question": "Who starred in Adaptation?", "answers": ["Nobody"]}\n'
    '{"question": "Which films did the director of Adaptation direct?", "answers": ["Her", "Adaptation"]}\n'
    '{"question": "Who was Adaptation directed by?", "answers": ["Spike Jonze"]}\n',
    "movies.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n',
}
FILMS = ("--graph", "films.csv", "--data", "asked.jsonl", "--format", "jsonl")

#: A database of one fact, whose nodes have no property `key`.
MOVIES = by_pattern(
    (r"CALL db\.labels", Reply(["label"], [["Movie"], ["Person"]])),
    (r"CALL db\.relationshipTypes", Reply(["type"], [["DIRECTED"]])),
    (r"\(n:`Movie`\) RETURN properties", Reply(["n"], [[{"title": "Her", "year": 2013}]])),
    (r"\(n:`Person`\) RETURN properties", Reply(["n"], [[{"name": "Spike Jonze"}]])),
    (
        r"LIMIT \$most RETURN type",
        Reply(["name", "heads", "tails", "properties", "found"], [["DIRECTED", ["Person"], ["Movie"], [{}], 1]]),
    ),
    (r"size\(labels\(n\)\) = 0", Reply(["labels", "nodes"])),
    (r"count", Reply(["nodes"], [[1]])),
    (r"\(n:`Movie`\) .*ORDER BY key", Reply(["key", "place", "labels", "said"], [["Her", "1", ["Movie"], {}]])),
    (
        r"\(n:`Person`\) .*ORDER BY key",
        Reply(["key", "place", "labels", "said"], [["Spike Jonze", "2", ["Person"], {}]]),
    ),
    (
        r"\(a:`Person`\)-",
        Reply(["head", "tail", "type", "place", "said"], [["Spike Jonze", "Her", "DIRECTED", "3", {}]]),
    ),
    (r"\(a:`Movie`\)-", Reply(["head", "tail", "type", "place", "said"])),
    (
        r"elementId\(n\) IN",
        Reply(
            ["id", "labels", "name", "title"],
            [["4:db:1", ["Movie"], None, "Her"], ["4:db:2", ["Person"], "Spike Jonze", None]],
        ),
    ),
    (
        r"\[r0:`DIRECTED`\]",
        Reply(
            ["target", "r0"],
            [["Spike Jonze", relationship(7, 2, "DIRECTED", 1)]],
            notifications=[("Neo.ClientNotification.Statement.FeatureDeprecationWarning", "This is old.")],
        ),
    ),
)


@pytest.fixture(autouse=True)
def environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `temporary` for what is there for a while, and a user of the databases."""
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    monkeypatch.setenv("NEO4J_USERNAME", USER)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)


@pytest.fixture
def movies() -> Iterator[BoltStub]:
    """The database of movies on loopback, which knows one user."""
    with BoltStub(MOVIES, USER, PASSWORD) as stub:
        yield stub


@pytest.fixture
def own(folder: Path) -> str:
    """A LadybugDB file that another program made, with primary keys of its own."""
    with ladybug.Database("own.lbug", max_db_size=1 << 30) as made, ladybug.Connection(made) as connection:
        connection.execute("CREATE NODE TABLE Movie(title STRING PRIMARY KEY)")
        connection.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY)")
        connection.execute("CREATE REL TABLE DIRECTED(FROM Person TO Movie)")
        connection.execute("CREATE (:Person {name: 'Spike Jonze'})-[:DIRECTED]->(:Movie {title: 'Her'})")
        connection.execute("MATCH (p:Person), (m:Movie) CREATE (p)-[:DIRECTED]->(m)")
    return "own.lbug"


def closed() -> bool:
    """Whether no connection to a Neo4j database is left, or is soon."""
    for thread in threading.enumerate():
        if thread.name == "Neo4jExecutor":
            thread.join(10)
    return not any(thread.name == "Neo4jExecutor" for thread in threading.enumerate())


# --- the method -------------------------------------------------------------------------------------------------------


def test_ask_shows_the_query(run: Run, folder: Path) -> None:
    code, out, err = run(*ASK, *CYPHER)
    assert (code, err) == (0, "")
    metadata = json.loads(run(*ASK, *CYPHER, "--json")[1])["documents"][0]["metadata"]
    first, *more = metadata["details"]["query"].split("\n")
    assert out.splitlines() == [
        "Question  Who directed Her?",
        "Answer    Spike Jonze",
        f"Query     {first}",
        *(f"          {line}" for line in more),
        '          $n0 = "Her"',
        "          read by its entities and words",
        "",
        f"Evidence 1: confidence {floor(100 * metadata['confidence']) / 100:.2f}, score 1.000, 1 triple",
        " #  head  relation     tail",
        " 1  Her   directed_by  Spike Jonze",
    ]
    assert not list((folder / "temporary").iterdir())  # the database is gone


@pytest.mark.heavy
def test_a_missing_package_is_told(run_without: Callable[..., list[tuple[str, int]]]) -> None:
    embedded, other, compared, each = run_without(
        ["ladybug", "neo4j"],
        ("ask", "films.csv", HER, *CYPHER),
        ("ask", "films.csv", HER, *CYPHER, "--database", "bolt://x"),
        ("compare", *FILMS, *CYPHER),
        ("compare", *FILMS, "--method", "all", "--output", "out.json"),
    )
    for (told, code), extra in ((embedded, "ladybug"), (other, "neo4j"), (compared, "ladybug")):
        assert (code, told.endswith(f"Run: {install_command(extra)}\n")) == (2, True), told
    told, code = each
    assert code == 0
    assert "kg-retrievers: sg-rag is left out: LadybugExecutor needs an optional package. " in told
    assert "simgrag" in [one["method"] for one in json.loads(Path("out.json").read_text("utf-8"))["runs"]]


# --- a LadybugDB file -------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_file_is_made_once(run: Run, folder: Path) -> None:
    asked = ("ask", "films.csv", HER, *CYPHER)
    _, alone, _ = run(*asked, "--json")
    code, out, err = run(*asked, "--json", "--database", "films.lbug")
    assert (code, out) == (0, alone)
    assert err == (
        "kg-retrievers: the graph was loaded into the new database films.lbug, which is there for the next time\n"
    )
    made = (folder / "films.lbug").read_bytes()
    assert run(*asked, "--json", "--database", "films.lbug") == (0, alone, "")
    assert (folder / "films.lbug").read_bytes() == made


def test_a_graph_in_a_file(run: Run) -> None:
    LadybugExecutor.from_graph(KnowledgeGraph.from_file("films.csv"), "films.database").close()
    _, of_text, _ = run("info", "films.csv", "--json")
    code, out, err = run("info", "films.database", "--json")
    assert (code, err) == (0, "")
    told, wanted = json.loads(out), json.loads(of_text)
    assert (told["entities"], told["triples"], told["names"]) == (4, 3, 4) == (
        wanted["entities"], wanted["triples"], wanted["names"],
    )  # fmt: skip
    code, out, err = run("index", "films.database", "--output", "films.index")
    assert (code, err) == (0, "")
    assert out.startswith("Indexed 4 entities, 2 relations, 3 triples in films.index")
    code, out, err = run("ask", "films.index", HER, *CYPHER, "--database", "films.database")
    assert (code, err) == (0, "")
    assert "Answer    Spike Jonze\n" in out


def test_a_file_of_another_program(run: Run, own: str) -> None:
    """Primary keys are keys; facts that are there twice are one."""
    keys = ("--key", "name")
    code, out, err = run("ask", own, HER, *CYPHER, *keys)
    assert (code, err) == (0, "")
    assert "Answer    Spike Jonze\n" in out
    assert "n1.`title` = $n1" in out
    assert run("index", own, "--output", "own.index", *keys)[0] == 0
    code, again, err = run("ask", "own.index", HER, *CYPHER, "--database", own, *keys)
    assert (code, again, err) == (0, out, "")


# --- a Neo4j database -------------------------------------------------------------------------------------------------


def test_index_a_database_and_ask_it(run: Run, movies: BoltStub) -> None:
    code, out, err = run("index", movies.uri, *KEYS, "--output", "movies.index")
    assert (code, err) == (0, "")
    assert out.startswith("Indexed 2 entities, 1 relations, 1 triples in movies.index")
    code, out, err = run("ask", "movies.index", HER, *CYPHER, "--database", movies.uri, *KEYS)
    assert (code, err) == (0, "")
    assert sources._SILENT in logging.getLogger("neo4j").handlers  # else its warnings were on stderr
    assert "Answer    Spike Jonze\nQuery     MATCH (n0)-[r0:`DIRECTED`]->(n1)\n" in out
    assert closed()
    for uri in (movies.uri, movies.uri.replace("bolt://", "NEO4J://")):
        assert run("ask", uri, HER, *CYPHER, *KEYS) == (0, out, "")
    assert all(request.extra["mode"] == "r" for request in movies.requests)
    code, out, _ = run("ask", movies.uri, HER, *KEYS)  # another method, of the same graph
    assert code == 0
    assert "Answer    Spike Jonze\nPattern   " in out
    assert closed()


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([*ASK, "--database", "films.lbug"], "--database is for sg-rag, but asked is kg. Leave it out, or: --"),
        ([*ASK, *CYPHER, "--database", "films.csv"], "a LadybugDB file or a new one, but got 'films.csv'. See: kg-ret"),
        ([*ASK, *CYPHER, "--database", "localhost:7687"], "--database: wanted a URI such as bolt://localhost:7687, a"),
        ([*ASK, *CYPHER, "--database", "bolt://"], "--database: Neo4jExecutor: wanted a URI as in 'neo4j://localhost"),
        (["info", "ftp://localhost:7474"], "GRAPH: wanted a file, or a URI such as bolt://localhost:7687 that be"),
        ([*ASK, "--key", "title"], "--key is for a graph database, but none is given."),
        ([*ASK, "--key", "=title"], "--key: wanted PROPERTY or LABEL=PROPERTY, such as Person=name, but got '=title'"),
        (["info", "own.lbug", "--key", "Movie=title"], "own.lbug: LadybugDB has a primary key for each label, or"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("own")
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ((), "Nodes have, for example, {'Movie': ['title', 'year'], 'Person': ['name']}. Name it, by label if need "),
        (("--key", "name", "--key", "Movie=title"), "--key PROPERTY is for all nodes. Give it once, or --key LABEL="),
    ],
)  # fmt: skip
def test_keys_that_are_not_there(run: Run, movies: BoltStub, keys: tuple[str, ...], told: str) -> None:
    assert told in mistake(run("info", movies.uri, *keys))


@pytest.mark.heavy
def test_nobody_is_there(run: Run) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for argv in (
        ("ask", f"neo4j://127.0.0.1:{port}", HER),
        (*ASK, *CYPHER, "--database", f"bolt://127.0.0.1:{port}"),
        ("compare", *FILMS, "--method", "all", "--database", f"bolt://127.0.0.1:{port}"),
    ):
        assert f"127.0.0.1:{port} does not answer: " in mistake(run(*argv))


def test_no_secret_is_shown(run: Run, movies: BoltStub, monkeypatch: pytest.MonkeyPatch) -> None:
    address = movies.uri.removeprefix("bolt://")
    with_secret = f"bolt://{USER}:{PASSWORD}@{address}"
    refused = [
        ("info", with_secret),
        ("info", with_secret.replace("bolt", "https")),
        ("index", with_secret, "--output", "x"),
        ("ask", with_secret, HER),
        (*ASK, *CYPHER, "--database", with_secret),
        (*ASK, *CYPHER, "--database", with_secret.removeprefix("bolt://")),
        (*ASK, *CYPHER, "--databse", with_secret),
        (with_secret,),
        ("evaluate", *FILMS, *CYPHER, "--database", with_secret),
        ("compare", *FILMS, "--method", "all", "--graph", with_secret),
        ("train", "gnn-rag", "--graph", with_secret, "--questions", "asked.jsonl", "--output", "x"),
    ]
    done = [mistake(run(*argv)) for argv in refused]
    done += [run(*argv, "--debug")[2] for argv in refused]
    assert sum("NEO4J_USERNAME and NEO4J_PASSWORD" in err for err in done) == 14
    assert not movies.connections
    argv = ("ask", movies.uri, HER, *CYPHER, *KEYS)
    done += run(*argv, "--json")[1:]
    monkeypatch.setenv("NEO4J_PASSWORD", "another-secret")
    told = mistake(run(*argv))
    assert told.endswith(
        f"{movies.uri} does not let this user in (Neo.ClientError.Security.Unauthorized). Set the environment "
        "variables NEO4J_USERNAME and NEO4J_PASSWORD to a user who may read there.\n"
    )
    done += [told, run(*argv, "--debug")[2]]
    monkeypatch.delenv("NEO4J_PASSWORD")
    told = mistake(run(*argv))
    assert "the environment variable NEO4J_PASSWORD is not set. Set it, or neither." in told
    assert not [text for text in [*done, told] for secret in (USER, "secret") if secret in text]
