"""LangGraph's server on `langgraph.json`: runs, threads, interrupts, streams and MCP.

It is installed into an environment of its own: its licence, Elastic-2.0, is none for a dependency of this package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_process import ServerProcess, free_port

from kg_retrievers import GraphIndex, default_embeddings
from kg_retrievers.sample import load_graph

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
GRAPH = "knowledge_graph"
QUESTION = "Who directed Her?"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the server and this package, without extras, from a copy of the repository."""
    folder = tmp_path_factory.mktemp("langgraph-server")
    copy = folder / "repository"
    shutil.copytree(ROOT / "kg_retrievers", copy / "kg_retrievers", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "langgraph.json"):
        shutil.copy(ROOT / name, copy)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=120)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "langgraph-cli[inmem]", str(copy)]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(folder / "venv" / "bin" / "python"), *install], capture_output=True, text=True, env=clean, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def server(environment: Path) -> Iterator[httpx.Client]:
    """A client of the server, while it runs."""
    GraphIndex.build(load_graph(), default_embeddings(), environment / "index")
    port = free_port()
    options = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    config = ["--config", str(environment / "repository" / "langgraph.json")]
    command = [str(environment / "venv" / "bin" / "langgraph"), "dev", *config, *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(environment)  # where the server keeps its threads
        for name in ("PYTHONPATH", "KG_RETRIEVERS_METHOD", "KG_RETRIEVERS_LLM", "KG_RETRIEVERS_MODEL"):
            patch.delenv(name, raising=False)
        patch.setenv("KG_RETRIEVERS_INDEX", str(environment / "index"))
        patch.setenv("LANGGRAPH_CLI_NO_ANALYTICS", "1")
        patch.setenv("LANGSMITH_TRACING", "false")
        with ServerProcess(command, port, environment / "server.log"):
            yield httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)


def ask(server: httpx.Client, path: str, question: str | None, **more: Any) -> dict[str, Any]:
    """Return what a run gives; it goes on where the thread stopped if there is no question."""
    given = {"question": question} if question else None
    response = server.post(f"{path}/runs/wait", json={"assistant_id": GRAPH, "input": given, **more})
    assert response.status_code == 200, response.text
    output: dict[str, Any] = response.json()
    return output


def new_thread(server: httpx.Client) -> str:
    """Return the path of a new thread."""
    return f"/threads/{server.post('/threads', json={}).json()['thread_id']}"


def test_a_run_is_answered(server: httpx.Client) -> None:
    output = ask(server, "", QUESTION)
    assert output["answers"] == ["Spike Jonze"]
    assert output["citations"][0]["triple"] == ["Her", "directed_by", "Spike Jonze"]


def test_each_question_of_a_thread_starts_clean(server: httpx.Client) -> None:
    thread = new_thread(server)
    assert ask(server, thread, QUESTION)["answers"] == ["Spike Jonze"]
    refused = ask(server, thread, "Who directed Xyzzyplugh?")
    assert (refused["answers"], refused["documents"]) == ([], [])
    assert "Xyzzyplugh" in refused["reason"]
    assert ask(server, thread, "Who directed Inception?")["answers"] == ["Christopher Nolan"]


def test_a_person_edits_the_pattern_of_an_interrupted_run(server: httpx.Client) -> None:
    thread = new_thread(server)
    assert ask(server, thread, QUESTION, interrupt_before=["match_subgraphs"])["answers"] is None
    state = server.get(f"{thread}/state").json()
    assert state["next"] == ["match_subgraphs"]
    assert state["values"]["pattern"]["triples"][0][1] == "directed_by"
    wrong = server.post(f"{thread}/state", json={"values": {"pattern": {"triples": "all of them"}}})
    assert wrong.status_code == 400
    assert "triples must be a list" in wrong.json()["detail"]
    edited = {"triples": [["Her", "written by", {"unknown": "who"}]], "target": "who"}
    assert server.post(f"{thread}/state", json={"values": {"pattern": edited}}).status_code == 200
    assert ask(server, thread, None)["citations"][0]["triple"] == ["Her", "written_by", "Spike Jonze"]


def test_a_run_is_streamed_stage_by_stage(server: httpx.Client) -> None:
    asked = {"assistant_id": GRAPH, "input": {"question": QUESTION}, "stream_mode": ["custom"]}
    with server.stream("POST", "/runs/stream", json=asked) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith('data: {"node"')]
    nodes = [json.loads(line)["node"] for line in lines]
    assert nodes == ["understand", "generate_pattern", "match_subgraphs", "answer"]


def test_a_wrong_input_is_told(server: httpx.Client) -> None:
    output = ask(server, "", " ")
    assert output["__error__"]["error"] == "InvalidArgumentError"
    assert "the question is empty" in output["__error__"]["message"]


def test_it_is_a_tool_over_mcp(server: httpx.Client) -> None:
    def call(method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = server.post("/mcp", json=message, headers={"Accept": "application/json, text/event-stream"})
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    client = {"name": "a test", "version": "1"}
    begun = call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    assert begun["capabilities"]["tools"] is not None
    (tool,) = call("tools/list")["tools"]
    assert (tool["name"], tool["inputSchema"]["required"]) == (GRAPH, ["question"])
    answered = call("tools/call", name=GRAPH, arguments={"question": QUESTION})
    assert not answered.get("isError")
    assert "Spike Jonze" in answered["content"][0]["text"]
