"""What the page about servers tells to do is done here, as far as there are such servers; `compose.yaml` is sound."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import neo4j
import pytest
import yaml
from arcadedb import PASSWORD as ROOT_PASSWORD
from arcadedb import ArcadeDB, is_installed
from postgres import Postgres
from shell_mistakes import Run

from kg_retrievers import KnowledgeGraph, LadybugExecutor

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "server-setup.md").read_text("utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
    return found


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_is_pinned_checked_and_kept(name: str) -> None:
    service = services()[name]
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", service["image"]), "an image is named with its full version"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    volumes = [volume.partition(":")[0] for volume in service["volumes"]]
    assert set(volumes) <= yaml.safe_load(COMPOSE)["volumes"].keys()
    assert "privileged" not in service


def test_passwords_come_from_the_environment() -> None:
    said = [(key, value) for service in services().values() for key, value in service["environment"].items()]
    secrets = [value for key, value in said if re.search("PASSWORD|AUTH$", key)]
    assert len(secrets) == 2
    for value in secrets:
        assert re.fullmatch(r"(neo4j/)?\$\{[A-Z0-9_]+_PASSWORD:\?[^}]+\}", value), "required, and without a default"
    assert not re.search(r"(?i)(password|secret|token)\s*[:=]\s*[\"']?\w+[\"']?\s*$", COMPOSE, re.MULTILINE)


def test_the_compose_file_says_that_it_was_not_run() -> None:
    assert "not run" in COMPOSE
    assert "it was not run here" in PAGE


@pytest.mark.heavy
def test_the_users_of_the_page_may_do_their_work_and_no_more(
    run: Run, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader makes and fills the table; the reader finds names, and can neither add one nor make a table."""
    monkeypatch.chdir(tmp_path)
    LadybugExecutor.from_graph(KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]), "f.lbdb").close()
    database = "the_page_of_servers"
    postgres.make_database(database)
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for statement in re.sub("--.*", "", statements).split(";"):
        if statement.strip():
            postgres.run(statement, database)
    loader, reader = (postgres.url(database, user) for user in ("loader", "reader"))
    assert run("index", "f.lbdb", "--vectors", loader)[0] == 0
    code, out, err = run("ask", "f.lbdb", "Which films did Spike Jonez direct?", "--vectors", reader)
    assert (code, err, "Answer    Her\n" in out) == (0, "", True)
    more = [("Her", "directed_by", "Spike Jonze"), ("Dune", "directed_by", "X")]
    LadybugExecutor.from_graph(KnowledgeGraph.from_triples(more), "g.lbdb").close()
    for vectors in (reader, f"{reader}?table=another"):
        code, out, err = run("index", "g.lbdb", "--vectors", vectors)
        assert (code, out) == (2, "")
        assert "does not let this user in, or do this" in err


@pytest.mark.heavy
def test_arcadedb_is_asked_by_a_user_of_the_page(
    run: Run, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root loads the names, a user of the group on the page asks and writes nothing."""
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    (groups,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "server-groups.json").write_text(groups, "utf-8")
    vectors = f"{postgres.make_database('names_of_arcadedb')}?table=names"
    with ArcadeDB(tmp_path, ["graph"]) as server:
        server.load(KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]), "graph")
        graph = (server.uri, "--read", "database=graph")
        login(monkeypatch, "root", ROOT_PASSWORD)
        assert run("index", *graph, "--vectors", vectors)[0] == 0
        make_user(tmp_path / "log.txt", "reader", "who only reads")
        login(monkeypatch, "reader", "who only reads")
        for method in ("simgrag", "sg-rag"):
            given = ("--vectors", vectors, "--method", method, "--read", "explain=false")
            asked = ("Which films did Spike Jonez direct?", *given)
            code, out, err = run("ask", *graph, *asked)
            assert (code, err, "Answer    Her\n" in out) == (0, "", True)
        code, out, _ = run("info", *graph, "--vectors", vectors, "--read", "explain=false", "--json")
        told = json.loads(out)
        assert (code, told["entities"], told["triples"], told["names"]["count"]) == (0, 2, 1, 2)
        as_reader = neo4j.GraphDatabase.driver(server.uri, auth=("reader", "who only reads"))
        with as_reader, pytest.raises(neo4j.exceptions.ClientError, match="not allowed to create"):
            as_reader.execute_query("CREATE (n:Entity {key: 'x'})", database_="graph")
        login(monkeypatch, "reader", "not this")
        code, out, err = run("ask", *graph, "Who directed Her?", "--connect")
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert "does not let this user in" in err


def login(monkeypatch: pytest.MonkeyPatch, name: str, password: str) -> None:
    monkeypatch.setenv("NEO4J_USERNAME", name)
    monkeypatch.setenv("NEO4J_PASSWORD", password)


def make_user(log: Path, name: str, password: str) -> None:
    """Send ArcadeDB the command of the page, as root."""
    port = re.search(r"HTTP Server started \(host=127\.0\.0\.1 port=(\d+)", log.read_text("utf-8"))
    assert port is not None
    (command,) = re.findall(r"`(create user \{.*?)`", PAGE)
    command = command.replace('"..."', json.dumps(password)).replace('"reader", "password"', f'"{name}", "password"')
    url = f"http://127.0.0.1:{port[1]}/api/v1/server"
    reply = httpx.post(url, auth=("root", ROOT_PASSWORD), json={"command": command}, timeout=60, trust_env=False)
    assert reply.status_code == 200, reply.text
