"""The folders of examples/ do what their READMEs say."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import arcadedb
import httpx
import ladybug
import pytest
from langchain_core.messages import AIMessage

from kg_retrievers import LadybugExecutor
from kg_retrievers.errors import DatabaseUnavailableError
from kg_retrievers.testing import ScriptedChatModel

EXAMPLES = Path(__file__).parents[1] / "examples"
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())

#: A graph as it is in Neo4j: labels, and a property that names a node.
MOVIES = (
    "CREATE (p:Person {name: 'Spike Jonze'}), (m:Movie {title: 'Her'}), (o:Movie {title: 'Adaptation'}), "
    "(p)-[:DIRECTED]->(m), (p)-[:DIRECTED]->(o)"
)


def load(folder: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / folder / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_readme_is_short(folder: Path) -> None:
    assert len((folder / "README.md").read_text("utf-8").split()) <= 150


# --- the service ------------------------------------------------------------------------------------------------------


async def ask(app: Any, question: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        return await client.get("/ask", params={"question": question})


async def test_the_service_answers_with_facts_or_a_reason(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    with ladybug.Database(tmp_path / "movies.lbdb") as database, ladybug.Connection(database) as connection:
        connection.execute("CREATE NODE TABLE Movie(title STRING PRIMARY KEY)")
        connection.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY)")
        connection.execute("CREATE REL TABLE DIRECTED(FROM Person TO Movie)")
        connection.execute(MOVIES)
    with LadybugExecutor(tmp_path / "movies.lbdb") as executor:
        app = load("service", "app").create_app(executor)
        answered = (await ask(app, "Who directed Her?")).json()
        assert (answered["answers"], answered["facts"]) == (["Spike Jonze"], [["Spike Jonze", "DIRECTED", "Her"]])
        refused = (await ask(app, "Who directed Alien?")).json()
        assert (refused["answers"], "Alien" in refused["explanation"]) == ([], True)
        assert (await ask(app, " ")).status_code == 422


@pytest.mark.heavy
async def test_the_service_asks_a_database_over_bolt(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    if not arcadedb.is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with arcadedb.ArcadeDB(tmp_path, ["movies"]) as server:
        server.write("movies", MOVIES)
        with server.executor("movies", key=None, explain=False) as executor:
            app = load("service", "app").create_app(executor)
            assert (await ask(app, "Who directed Her?")).json()["answers"] == ["Spike Jonze"]


def test_the_service_names_the_database_that_it_cannot_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    with pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1:1"):
        load("service", "app").from_environment()


# --- the agent --------------------------------------------------------------------------------------------------------


async def test_the_agent_answers_from_the_file_of_rdf(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("agent", "agent")
    asked = {"name": "ask", "args": {"question": "Who painted the Mona Lisa?"}, "id": "1", "type": "tool_call"}
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[asked]), "Leonardo da Vinci [1]."])
    monkeypatch.setattr(module, "load_chat_model", lambda name: model)
    monkeypatch.setenv("MODEL", "scripted:model")
    agent = await module.agent()
    messages = (await agent.ainvoke({"messages": [("user", "Who painted the Mona Lisa?")]}))["messages"]
    assert "[1] Mona Lisa -> painted by -> Leonardo da Vinci" in messages[-2].content
    assert messages[-1].content == "Leonardo da Vinci [1]."
    assert await module.agent() is agent


def test_studio_finds_the_agent() -> None:
    command = [str(Path(sys.executable).with_name("langgraph")), "validate"]
    done = subprocess.run(command, cwd=EXAMPLES / "agent", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (graph,) = json.loads((EXAMPLES / "agent" / "langgraph.json").read_text("utf-8"))["graphs"].values()
    assert graph == "./agent.py:agent"


# --- the nightly update -----------------------------------------------------------------------------------------------


def test_a_lower_hit_is_an_exit_code(tmp_path: Path) -> None:
    for name, hit in (("earlier", 0.9), ("now", 0.8)):
        (tmp_path / name).write_text(json.dumps({"metrics": {"hit": hit}}), "utf-8")

    def compared(*names: str) -> tuple[int, str]:
        command = [sys.executable, str(EXAMPLES / "nightly" / "compare_hit.py"), *names]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    assert compared("earlier", "now") == (1, "hit: 0.900 before, 0.800 now\n")
    assert compared("now", "earlier") == (0, "hit: 0.800 before, 0.900 now\n")
    assert compared("now", "now")[0] == 0


@pytest.mark.heavy
def test_a_night_that_loses_answers_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    shutil.copytree(EXAMPLES / "nightly", folder)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(*command: str) -> tuple[int, str]:
        given = {**os.environ, "PATH": path}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=given)
        return done.returncode, done.stdout

    ask = ("kg-retrievers", "ask", "films-index")
    code, out = run("bash", "nightly.sh", "2026-01-01")
    assert (code, "hit: 1.000 before, 1.000 now" in out) == (0, True)
    assert "Answer    Denis Villeneuve" in run(*ask, "Who directed Dune?")[1]
    (folder / "removed.csv").write_text("head,relation,tail\nHer,directed_by,Spike Jonze\n", "utf-8")
    code, out = run("bash", "nightly.sh", "2026-01-02")
    assert (code, "hit: 1.000 before, 0.667 now" in out) == (1, True)
    assert "Answer    Spike Jonze" in run(*ask, "Who directed Her?")[1]
