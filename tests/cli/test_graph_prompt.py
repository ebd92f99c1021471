"""Graph prompts in ask, evaluate and compare, as a person or a script calls them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shell_mistakes import Run, mistake
from small_language_model import build

import kg_retrievers
from kg_retrievers import (
    GraphIndex,
    GraphPromptModel,
    HashedEmbeddings,
    PCSTRetriever,
    SubgraphRAGRetriever,
    default_embeddings,
    graph_prompt_examples,
    train_graph_prompt,
    train_triple_scorer,
)
from kg_retrievers.core.checkpoint import read_header
from kg_retrievers.errors import install_command
from kg_retrievers.sample import load_graph, load_questions

GRAPH = str(Path(kg_retrievers.__file__).parent / "sample" / "graph.jsonl")
HER = "Who directed Her?"
SIZES: dict[str, Any] = {"epochs": 1, "width": 8, "heads": 2, "projection": 8, "layers": 2}
ASK = ("ask", GRAPH, HER, "--model")
FILES = {"asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n'}
ASKED = ("--graph", GRAPH, "--data", "asked.jsonl", "--format", "jsonl")


def index() -> GraphIndex:
    return GraphIndex.build(load_graph(), default_embeddings())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the language model `lm`, the graph prompts `model` and `narrow`, and a `scorer`."""
    home = tmp_path_factory.mktemp("home")
    taught = load_questions()[:4]
    texts = [f"Question: {question.text}\nAnswer:{'|'.join(question.answers)}" for question in taught]
    build(home / "lm", texts, hidden=16, layers=1, heads=2, vocabulary=300, pretrain_steps=1)
    train_triple_scorer(index(), taught, taught, output=home / "scorer", num_examples=4, rounds=1)
    examples = graph_prompt_examples(PCSTRetriever.from_index(index()), taught)
    for name, embeddings in (("model", default_embeddings()), ("narrow", HashedEmbeddings(32))):
        train_graph_prompt(home / "lm", embeddings, examples, examples, output=home / name, **SIZES)
    return home


@pytest.fixture(autouse=True)
def models(folder: Path, home: Path) -> None:
    """The models."""
    shutil.copytree(home, folder, dirs_exist_ok=True)


def test_a_graph_prompt_answers_from_evidence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers from that of G-Retriever, of another method, or of a trained model."""
    asked = []

    def invoke(model: GraphPromptModel, value: Any, config: Any = None) -> str:
        asked.append(value)
        return "Spike Jonze"

    monkeypatch.setattr(GraphPromptModel, "invoke", invoke)
    scorer = SubgraphRAGRetriever.from_index(index(), model="scorer")
    for more, retriever in (([], PCSTRetriever.from_index(index())), (["--model", "scorer"], scorer)):
        code, out, err = run(*ASK, "model", *more)
        assert (code, err) == (0, "")
        assert out.startswith("Question  Who directed Her?\nAnswer    Spike Jonze\n\nEvidence")
        assert asked[-1] == {"question": HER, "documents": retriever.invoke(HER)}
    assert run(*ASK, "model", "--method", "simgrag")[0] == 0
    assert asked[-1]["documents"][0].metadata["retriever"] == "SimGRAGRetriever"


def test_records_know_the_graph_prompt(run: Run) -> None:
    code, out, _ = run("evaluate", *ASKED, "--model", "model", "--json")
    settings = json.loads(out)["settings"]
    assert (code, settings["model"]) == (0, {"graph-prompt": read_header("model").digest})
    assert settings["answerer"] == "graph-prompt"


@pytest.mark.heavy
def test_without_the_extra(run_without: Callable[..., list[tuple[str, int]]]) -> None:
    (told, code), asked = run_without(["peft"], (*ASK, "model"), (*ASK, "scorer"))
    assert (code, told.endswith(f"Run: {install_command('graph-prompt')}\n")) == (2, True), told
    assert asked[1] == 0


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([*ASK, "model", "--model", "narrow"], "model and narrow are both models of graph-prompt. Name one of them."),
        ([*ASK, "narrow"], "whose vectors have 32 numbers, but got "),
        ([*ASK, "lm"], "lm: no trained model is here: "),
        (["compare", *ASKED, "--method", "pcst", "--model", "narrow"], "whose vectors have 32 numbers"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


def test_a_language_model_that_is_not_there_is_told(run: Run) -> None:
    home = Path(read_header("model").config["language_model"]["name"])
    moved = home.rename(home.with_name("moved"))
    try:
        assert f"{home}: there is no such folder, and" in mistake(run(*ASK, "model"))
    finally:
        moved.rename(home)
