"""Graphs that stay in their databases, on the command line: names in vector stores, and questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from oxigraph_server import Oxigraph
from postgres import PASSWORD, Postgres
from shell_mistakes import Run, mistake

from kg_retrievers import KnowledgeGraph, LadybugExecutor
from kg_retrievers.database.sparql.vocabulary import PRESETS
from kg_retrievers.serving.loading import PUBLIC

HER = "Who directed Her?"
FILMS = "head,relation,tail\nHer,directed_by,Spike Jonze\nHer,starring,Amy Adams\nAdaptation,directed_by,Spike Jonze\n"
FILES = {
    "films.csv": FILMS,
    "asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n'
    '{"question": "Who starred in Her?", "answers": ["Amy Adams"]}\n',
}
IRIS = "@prefix ex: <http://example.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
TURTLE = (
    f'{IRIS}ex:her rdfs:label "Her"@en ; ex:directedBy ex:jonze ; ex:starring ex:adams .\n'
    'ex:jonze rdfs:label "Spike Jonze"@en . ex:adams rdfs:label "Amy Adams"@en .\n'
    'ex:directedBy rdfs:label "directed by"@en . ex:starring rdfs:label "starring"@en .\n'
)

#: Sends the signal of Ctrl-C after the first page of entities.
INTERRUPTED = """
import os, signal, sys
from kg_retrievers import LadybugExecutor
read, pages = LadybugExecutor.entities_after, []
def one_by_one(executor, position, page_size, **more):
    if pages:
        os.kill(os.getpid(), signal.SIGINT)
    pages.append(position)
    return read(executor, position, 1, **more)
LadybugExecutor.entities_after = one_by_one
from kg_retrievers.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def database(folder: Path) -> None:
    """The graph in a LadybugDB database."""
    LadybugExecutor.from_graph(KnowledgeGraph.from_file("films.csv"), "films.lbdb").close()


@pytest.fixture
def vectors(postgres: Postgres, request: pytest.FixtureRequest) -> str:
    """The address of a table that is not there yet."""
    table = "".join(letter for letter in request.node.name if letter.isalnum())[-40:].lower()
    return f"{postgres.url()}?table=t{table}"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The address of an endpoint that holds the graph as RDF."""
    (tmp_path / "films.ttl").write_text(TURTLE, "utf-8")
    (tmp_path / "oxigraph").mkdir()
    with Oxigraph(tmp_path / "oxigraph", tmp_path / "films.ttl") as server:
        yield server.url


# --- names in a vector store ------------------------------------------------------------------------------------------


def test_names_are_loaded_and_found(run: Run, vectors: str) -> None:
    code, out, err = run("index", "films.lbdb", "--vectors", vectors)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"Read 4 entities of films.lbdb and embedded 4 names with static embeddings; {vectors} now holds 4 names.",
        f"Ask it: kg-retrievers ask films.lbdb 'Who ...?' --vectors '{vectors}'",
    ]
    for method in ("simgrag", "kaping"):
        code, out, err = run("ask", "films.lbdb", HER, "--vectors", vectors, "--method", method)
        assert code == 0, err
        assert "Her" in out
        assert "Spike Jonze" in out


@pytest.mark.heavy
def test_a_load_goes_on_after_ctrl_c(run: Run, vectors: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, "index", "films.lbdb", "--vectors", vectors]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines() == [
        f"kg-retrievers: what was loaded is in {vectors}; the same command goes on from there",
        "kg-retrievers: interrupted",
    ]
    code, out, err = run("ask", "films.lbdb", HER, "--vectors", vectors)
    load = f"kg-retrievers index films.lbdb --vectors '{vectors}'"
    assert err.startswith(f"kg-retrievers: not all names are in {vectors} yet; the rest of them: {load}\n")
    code, out, err = run("index", "films.lbdb", "--vectors", vectors)
    assert code == 0
    assert err == f"kg-retrievers: {vectors} holds 1 name of a load that was broken off; going on from there\n"
    assert out.startswith("Read 3 entities of films.lbdb and embedded 3 names")
    assert out.splitlines()[0].endswith("now holds 4 names.")


def test_a_file_of_milvus_lite(run: Run) -> None:
    pytest.importorskip("milvus_lite")
    assert run("index", "films.lbdb", "--vectors", "names.db")[0] == 0
    code, out, _ = run("ask", "films.lbdb", HER, "--vectors", "names.db")
    assert (code, "Answer    Spike Jonze\n" in out) == (0, True)


# --- questions --------------------------------------------------------------------------------------------------------


def test_a_limit_of_facts_leaves_the_graph_in_its_database(run: Run) -> None:
    code, out, err = run("ask", "films.lbdb", HER, "--max-facts", "9")
    assert (code, err) == (0, "")
    assert "Spike Jonze" in out


@pytest.mark.parametrize("method", ["simgrag", "sg-rag"])
def test_ask_without_a_vector_store(run: Run, method: str) -> None:
    """What the connected graph gives is what the graph in memory gives."""
    code, out, err = run("ask", "films.lbdb", HER, "--connect", "--method", method)
    assert (code, err) == (0, "")
    assert (0, out, "") == run("ask", "films.lbdb", HER, "--method", method)
    assert "Answer    Spike Jonze\n" in out


def test_facts_are_bounded(run: Run) -> None:
    asked = ("ask", "films.lbdb", "What is about Spike Jonze?", "--connect", "--method", "neighborhood", "--json")
    code, out, _ = run(*asked)
    whole = json.loads(out)["documents"]
    assert (code, any(one["metadata"]["truncated"] for one in whole)) == (0, False)
    code, out, _ = run(*asked, "--max-facts", "1")
    cut = json.loads(out)["documents"]
    assert (code, all(one["metadata"]["truncated"] for one in cut), bool(cut)) == (0, True, True)


@pytest.mark.heavy
def test_measure_a_connected_graph(run: Run) -> None:
    asked = ("--data", "asked.jsonl", "--format", "jsonl", "--method", "simgrag", "--json")
    found = []
    for graph in (("films.csv",), ("films.lbdb", "--connect")):
        code, out, err = run("evaluate", "--graph", *graph, *asked)
        assert (code, err) == (0, "")
        found.append(json.loads(out))
    assert found[0]["metrics"]["hit"] == found[1]["metrics"]["hit"] == 1
    assert (found[1]["settings"]["vectors"], found[1]["settings"]["max_facts"]) == (None, None)
    code, out, err = run("compare", "--graph", "films.lbdb", "--connect", *asked, "--method", "sg-rag")
    assert (code, err) == (0, "")
    runs = json.loads(out)["runs"]
    assert [one["metrics"]["hit"] for one in runs] == [1, 1]
    assert {one["method"]: one["settings"]["database"] for one in runs} == {"simgrag": None, "sg-rag": "films.lbdb"}


# --- info -------------------------------------------------------------------------------------------------------------


def test_info_asks_few_queries(run: Run, vectors: str) -> None:
    code, out, err = run("info", "films.lbdb", "--connect", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["entities"], told["triples"], told["relations"]) == (4, 3, ["directed_by", "starring"])
    assert "names" not in told
    assert run("index", "films.lbdb", "--vectors", vectors)[0] == 0
    code, out, err = run("info", "films.lbdb", "--vectors", vectors)
    assert (code, err) == (0, "")
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert ["Triples", "3"] in lines
    assert ["Names", f"4 in {vectors}"] in lines


# --- SPARQL -----------------------------------------------------------------------------------------------------------


def test_an_endpoint_is_asked_where_it_is(run: Run, endpoint: str, vectors: str) -> None:
    for graph in (endpoint, f"sparql+{endpoint}"):
        code, out, err = run("ask", graph, HER, "--connect")
        assert (code, err) == (0, "")
        assert "Answer    Spike Jonze\n" in out
    assert run("index", endpoint, "--vectors", vectors)[0] == 0
    code, out, _ = run("ask", endpoint, "Which films did Spike Jonez direct?", "--vectors", vectors)
    assert (code, "Answer    Her\n" in out) == (0, True)
    code, out, err = run("info", endpoint, "--connect")
    assert (code, err) == (0, "")
    assert "SPARQL" in out
    assert "directed by" in out


def test_public_endpoints_are_those_of_the_presets() -> None:
    assert set(PUBLIC) == set(PRESETS)


# --- mistakes ---------------------------------------------------------------------------------------------------------

STORE = "postgresql://ann@127.0.0.1:1/none"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["index", "films.lbdb"], "a vector store for its names: --vectors postgresql://user@host/database"),
        (["index", "films.lbdb", "--vectors", STORE, "--output", "x"], "--output is for an index in a folder. Leave "),
        (["index", "films.csv", "--vectors", STORE], "--vectors: for a graph that stays in a database, but films.csv"),
        (["ask", "films.csv", HER, "--connect"], "that stays in a database, but films.csv is no LadybugDB file. Leave"),
        (["questions", "films.lbdb", "--output", "x", "--connect"], "No such option: --connect"),
        (["ask", "films.lbdb", HER, "--connect", "--method", "sg-rag", "--database", "y"], "is queried there. Leave"),
        (["ask", "films.lbdb", HER, "--vectors", "postgresql://ann:s3cret@h/d"], "an address holds no password or to"),
        (["ask", "films.lbdb", HER, "--vectors", STORE], "cannot connect to the server"),
        (["ask", "http://ann:s3cret@h/query", HER], "GRAPH: SparqlExecutor: wanted a URL as in 'http://localhost:78"),
        (["ask", "http://127.0.0.1:1/query", HER, "--connect", "--key", "x"], "a SPARQL endpoint names its entities"),
        (["ask", "http://127.0.0.1:1/q", HER, "--read", "database=x"], "--read database is for a Neo4j database"),
        (["index", "wikidata", "--output", "x"], "wikidata is too large to be read as a whole. Ask it: kg-retrievers"),
        (["evaluate", "--graph", "films.lbdb", "--connect", "--data", "asked.jsonl", "--format", "jsonl",
          "--unanswerable", "2"], "--unanswerable is for a graph that is read, but this one stays in its database."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    said = mistake(run(*argv))
    assert told in said
    assert "s3cret" not in said


def test_a_wrong_password(run: Run, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = f"{postgres.url(user='ann')}?table=none"
    monkeypatch.setenv("PGPASSWORD", "not it")
    said = mistake(run("index", "films.lbdb", "--vectors", vectors))
    assert "the server does not let this user in" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "command",
    [
        ("ask", "films.lbdb", HER),
        ("info", "films.lbdb"),
        ("compare", "--graph", "films.lbdb", "--data", "asked.jsonl", "--format", "jsonl", "--method", "pcst"),
    ],
)
def test_a_misspelt_table_is_told_and_not_made(
    run: Run, postgres: Postgres, command: tuple[str, ...], vectors: str
) -> None:
    assert run("index", "films.lbdb", "--vectors", vectors)[0] == 0
    tables = postgres.run("SELECT tablename FROM pg_tables")
    said = mistake(run(*command, "--vectors", f"{vectors}x"))
    name = vectors.rpartition("=")[2]
    load = f"kg-retrievers index films.lbdb --vectors '{vectors}x'"
    assert f"there is no table '{name}x' in the schema 'public'. Check the address, or load the names first:" in said
    assert said.endswith(f" {load}\n")
    assert postgres.run("SELECT tablename FROM pg_tables") == tables


@pytest.mark.heavy
def test_a_store_of_other_embeddings(run: Run, vectors: str) -> None:
    assert run("index", "films.lbdb", "--vectors", vectors)[0] == 0
    for command in (("ask", "films.lbdb", HER), ("index", "films.lbdb")):
        said = mistake(run(*command, "--vectors", vectors, "--embeddings", "hashed"))
        assert "the names in the store were embedded by" in said
        assert "Name the first, --embeddings static, or another table or collection: --vectors ..." in said


BRIDGES = "head,relation,tail\nFirth,length,91 m\nFirth,opened,1990\nForth,length,91 m\nForth,opened,1890\n"


@pytest.fixture
def bridges() -> str:
    """A graph that shares values, and no entities, with the films."""
    Path("bridges.csv").write_text(BRIDGES, "utf-8")
    Path("films.csv").write_text(f"{FILMS}Her,opened,1990\nHer,length,91 m\nAdaptation,opened,1890\n", "utf-8")
    Path("films.lbdb").unlink()
    for name in ("films", "bridges"):
        LadybugExecutor.from_graph(KnowledgeGraph.from_file(f"{name}.csv"), f"{name}.lbdb").close()
    return "bridges.lbdb"


@pytest.mark.heavy
def test_a_store_of_another_graph(run: Run, vectors: str, bridges: str) -> None:
    """Values that both graphs have tell nothing; the command that is named loads into another table."""
    assert run("index", bridges, "--vectors", vectors)[0] == 0
    for command in (("ask", "films.lbdb", HER), ("index", "films.lbdb"), ("info", "films.lbdb")):
        said = mistake(run(*command, "--vectors", vectors))
        assert " holds names of another graph, such as '" in said
        assert said.endswith("collection: kg-retrievers index GRAPH --vectors ADDRESS\n")
    assert run("index", "films.lbdb", "--vectors", f"{vectors}_2")[0] == 0
    code, out, _ = run("ask", "films.lbdb", HER, "--vectors", f"{vectors}_2")
    assert (code, "Answer    Spike Jonze\n" in out) == (0, True)
