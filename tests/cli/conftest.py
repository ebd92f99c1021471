"""Fixtures that the tests of the command share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from openai_server import OpenAIServer, Reply

WITHOUT = """
import json, sys
packages, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(packages))
from kg_retrievers.cli import main
for command in commands:
    print("exit code", main(command), file=sys.stderr, flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder to work in, with the `FILES` of the test's module."""
    for name, content in getattr(request.module, "FILES", {}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_without() -> Callable[..., list[tuple[str, int]]]:
    """Run commands one after the other where packages are missing; return what each says on stderr, and its code."""

    def call(packages: list[str], *commands: tuple[str, ...]) -> list[tuple[str, int]]:
        argv = [sys.executable, "-c", WITHOUT, json.dumps([packages, commands])]
        done = subprocess.run(argv, cwd=Path.cwd(), capture_output=True, text=True, timeout=300)
        *parts, rest = done.stderr.split("exit code ")
        assert len(parts) == len(commands), done.stderr
        codes = [int(part.split()[0]) for part in [*parts[1:], rest]]
        texts = [parts[0], *(part.partition("\n")[2] for part in parts[1:])]
        return list(zip(texts, codes, strict=True))

    return call


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OpenAIServer]:
    """Return a server of replies that the real `openai` client finds through the environment."""

    def serve(*replies: str) -> OpenAIServer:
        made = OpenAIServer(*map(Reply, replies))
        monkeypatch.setenv("OPENAI_BASE_URL", made.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        return made

    return serve


@pytest.fixture
def unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no pattern be sure, so that a language model is asked for each."""
    monkeypatch.setattr("kg_retrievers.questions.reading.SURE", 2.0)
