"""Fixtures that several test files share."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from postgres import Postgres

from kg_retrievers import GraphIndex, HashedEmbeddings, SimGRAGRetriever
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.testing import tiny_graph

#: The examples that a property test draws in `make test`, at least.
EXAMPLES = 25

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}  # a proxy is kept away from loopback

settings.register_profile("fast", deadline=None, max_examples=EXAMPLES)  # a busy machine is no failure
settings.register_profile("thorough", deadline=None, max_examples=200)  # `make test-all` names it
settings.load_profile("fast")


@pytest.hookimpl(tryfirst=True)  # before items are selected by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need real data. In the fast profile, property tests draw a quarter of their stated examples."""
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("real")
    if config.getoption("--hypothesis-profile", default=None) == "thorough":
        return
    tests = [getattr(item, "obj", None) for item in items]
    functions = {id(function): function for function in (getattr(test, "__func__", test) for test in tests)}
    for function in functions.values():  # each once, however many parameters it is called with
        stated = getattr(function, "_hypothesis_internal_use_settings", None)
        if stated is not None and stated.max_examples > EXAMPLES:
            fewer = max(EXAMPLES, stated.max_examples // 4)
            function._hypothesis_internal_use_settings = settings(stated, max_examples=fewer)


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


@pytest.fixture(scope="session")
def index() -> GraphIndex:
    """The tiny graph with hashed embeddings, where a file names no other."""
    return GraphIndex.build(tiny_graph(), HashedEmbeddings())


@pytest.fixture(scope="session")
def retriever(index: GraphIndex) -> SimGRAGRetriever:
    """SimGRAG over the tiny graph, where a file names no other."""
    return SimGRAGRetriever.from_index(index)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """PostgreSQL with pgvector; each test takes a table or a database of its own."""
    with Postgres() as server:
        yield server


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command kg-retrievers; return its exit code, stdout and stderr."""
    from kg_retrievers.cli import main  # here, so that other tests do not load all of it

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(argv)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def loggers_stay() -> Iterator[None]:
    """Undo the changes that a page or a notebook makes to the package's loggers, which other tests read."""
    loggers = [logging.getLogger(name) for name in ("kg_retrievers", "kg_retrievers.refusals")]
    before = [(logger.level, [*logger.handlers]) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers
