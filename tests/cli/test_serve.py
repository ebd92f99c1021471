"""The command `serve`, in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from server_process import ServerProcess, free_port
from shell_mistakes import Run

from kg_retrievers import GraphIndex, default_embeddings

FILES = {"films.txt": "Her|directed_by|Spike Jonze\nHer|starring|Amy Adams\nArrival|starring|Amy Adams\n"}


@pytest.fixture
def graph(folder: Path) -> Path:
    return folder / "films.txt"


def command(place: Path, port: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "kg_retrievers.cli", "serve", str(place), "--port", str(port), *more]


@pytest.mark.heavy
def test_a_saved_index_is_served_until_the_process_ends(graph: Path, tmp_path: Path, run: Run) -> None:
    folder, port, log = tmp_path / "films.index", free_port(), tmp_path / "log"
    assert run("index", str(graph), "--output", str(folder))[0] == 0
    with ServerProcess(command(folder, port), port, log):
        address = f"http://127.0.0.1:{port}/"
        assert "text/html" in httpx.get(address, timeout=60).headers["content-type"]
        assert httpx.get(address + "api/about", timeout=60).json()["graph"] == "films.index"
        body = {"question": "Who directed Her?"}
        events = httpx.post(address + "api/ask", json=body, timeout=120).text.splitlines()
        assert json.loads(events[-1])["answers"] == ["Spike Jonze"]
        assert httpx.get(address + "healthz", timeout=60).json()["status"] == "ok"
        httpx.post(address + "api/ask", json={"question": "Who directed Xyzzyplugh?"}, timeout=120)
        changed = {"added": [("Her", "directed_by", "Ann")], "removed": [("Her", "directed_by", "Spike Jonze")]}
        GraphIndex.update(folder, default_embeddings(), **changed)
        for method in ("simgrag", "rog"):  # those that are built after the update, too
            events = httpx.post(address + "api/ask", json=body | {"method": method}, timeout=120).text.splitlines()
            assert json.loads(events[-1])["answers"] == ["Spike Jonze"], "the server has the index of its start"
    said = log.read_text("utf-8")
    assert address in said
    assert "Traceback" not in said
    assert "Who directed" not in said
    with ServerProcess(command(folder, port), port, log):
        events = httpx.post(address + "api/ask", json=body, timeout=120).text.splitlines()
        assert json.loads(events[-1])["answers"] == ["Ann"]


def test_a_graph_file_is_served_with_a_token(graph: Path, tmp_path: Path) -> None:
    token, port, log = tmp_path / "token", free_port(), tmp_path / "log"
    token.write_text("0123456789abcdef\n", "utf-8")
    with ServerProcess(command(graph, port, "--token-file", str(token)), port, log):
        address = f"http://127.0.0.1:{port}/api/about"
        assert httpx.get(address, timeout=60).status_code == 401
        with_token = {"Authorization": "Bearer 0123456789abcdef"}
        assert httpx.get(address, headers=with_token, timeout=60).json()["graph"] == "films.txt"
    assert "0123456789abcdef" not in log.read_text("utf-8")


@pytest.mark.heavy
def test_without_the_extra_the_line_that_installs_it_is_told(run_without: Callable[..., list[tuple[str, int]]]) -> None:
    [(said, code)] = run_without(["starlette", "uvicorn"], ("serve", "films.txt"))
    assert code == 2
    assert "[serve]" in said
