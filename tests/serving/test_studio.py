"""The workflow that `langgraph.json` names."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, Question, train_triple_scorer
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.serving.studio import _built_once, workflow
from kg_retrievers.testing import tiny_graph

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KG_RETRIEVERS_METHOD", "KG_RETRIEVERS_LLM", "KG_RETRIEVERS_MODEL"):
        monkeypatch.delenv(name, raising=False)
    _built_once.cache_clear()
    GraphIndex.build(tiny_graph(), HashedEmbeddings(), tmp_path / "films-index")
    monkeypatch.setenv("KG_RETRIEVERS_INDEX", str(tmp_path / "films-index"))


def test_the_file_is_valid() -> None:
    command = [str(Path(sys.executable).with_name("langgraph")), "validate"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is valid" in done.stdout


async def test_its_graphs_are_modules_that_give_a_workflow() -> None:
    graphs = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    assert graphs
    for spec in graphs.values():
        module, _, name = spec.partition(":")
        make = getattr(import_module(module), name)
        made = await make()
        assert await make() is made
        assert made.invoke({"question": "Who starred in Amélie?"})["answers"][0] == "Audrey Tautou"
        assert made.get_input_jsonschema()["required"] == ["question"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("KG_RETRIEVERS_INDEX", "", "KG_RETRIEVERS_INDEX is not set; .* Save an index: kg-retrievers index"),
        ("KG_RETRIEVERS_INDEX", "nowhere", "nowhere"),
        ("KG_RETRIEVERS_METHOD", "simrag", "KG_RETRIEVERS_METHOD: there is no method 'simrag'; did you mean 'simgrag'"),
        ("KG_RETRIEVERS_METHOD", "subgraph-rag", "To train one on questions with answers: model=train_triple_scorer"),
        ("KG_RETRIEVERS_MODEL", "nowhere", "nowhere: no trained model is here"),
    ],
)
def test_what_the_environment_lacks(monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(KGRetrieversError, match=message):
        workflow()


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The folder of a model of subgraph-rag."""
    index = GraphIndex.build(tiny_graph(), HashedEmbeddings())
    taught = [Question("Who starred in Amélie?", answers=("Audrey Tautou",))]
    train_triple_scorer(index, taught, output=tmp_path / "model", num_examples=8, rounds=1)
    return str(tmp_path / "model")


def test_a_trained_method_gets_its_model(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("KG_RETRIEVERS_METHOD", "subgraph-rag")
    monkeypatch.setenv("KG_RETRIEVERS_MODEL", model)
    made = workflow()
    assert "score_triples" in made.builder.nodes
    assert "Audrey Tautou" in str(made.invoke({"question": "Who starred in Amélie?"})["documents"])
    monkeypatch.delenv("KG_RETRIEVERS_METHOD")
    assert "score_triples" in workflow().builder.nodes


def test_a_model_of_another_method(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("KG_RETRIEVERS_METHOD", "simgrag")
    monkeypatch.setenv("KG_RETRIEVERS_MODEL", model)
    with pytest.raises(InvalidArgumentError, match="is of subgraph-rag, but asked is simgrag"):
        workflow()


def test_a_language_model_needs_a_name_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KG_RETRIEVERS_LLM", "nobody:nothing")
    with pytest.raises((ValueError, InvalidArgumentError), match="nobody"):
        workflow()


def test_a_language_model_writes_patterns_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("KG_RETRIEVERS_LLM", "openai:gpt-4.1-mini")
    nodes = workflow().builder.nodes
    assert [name for name, node in nodes.items() if node.retry_policy] == ["understand", "read_question", "answer"]
