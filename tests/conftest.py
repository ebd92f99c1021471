"""Fixtures that several test files share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from kg_retrievers.graph import KnowledgeGraph

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")

settings.register_profile("fast", deadline=None, max_examples=25)  # a busy machine is no failure
settings.register_profile("thorough", deadline=None, max_examples=200)  # `make test-all` names it
settings.load_profile("fast")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs and questions; the test is skipped where there is none."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("KG_RETRIEVERS_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; name its folder in KG_RETRIEVERS_DATA")
    return folder


@pytest.fixture(scope="session")
def metaqa_graph(data_dir: Path) -> KnowledgeGraph:
    """The graph of MetaQA."""
    return KnowledgeGraph.from_file(data_dir / "metaqa" / "kb.txt")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command kg-retrievers; return its exit code, stdout and stderr."""
    from kg_retrievers.cli import main  # here, so that other tests do not load all of it

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(argv)
        return code, *capsys.readouterr()

    return call
