"""`train rog`: a language model is tuned to plan relation paths; then `ask` with it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from small_language_model import build

from kg_retrievers import cli
from kg_retrievers.methods.rog.tuned_prompts import write_planning
from kg_retrievers.sample import load_graph, load_questions

HOME = TemporaryDirectory()
SMALL = ("--num-examples", "16", "--field", "validations=1", "--field", "learning_rate=0.01")


@cache
def language_model() -> str:
    texts = [write_planning(question.text) + " -> directed by" for question in load_questions()[:8]]
    return str(build(HOME.name, texts, hidden=16, layers=1, heads=2, vocabulary=300, pretrain_steps=12))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["\t".join(triple) + "\n" for triple in load_graph().triples()]
    (tmp_path / "graph.tsv").write_text("".join(lines), "utf-8")
    rows = [json.dumps(question.to_dict()) + "\n" for question in load_questions()[:8]]
    (tmp_path / "taught.jsonl").write_text("".join(rows), "utf-8")
    monkeypatch.chdir(tmp_path)


def train(*more: str) -> list[str]:
    return ["train", "rog", "--graph", "graph.tsv", "--questions", "taught.jsonl", "--output", "planner", *more]


def test_train_then_ask(capsys: pytest.CaptureFixture[str]) -> None:
    lm = ("--llm", language_model())
    assert cli.main(train(*lm, *SMALL, "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["method"] == "rog"
    assert told["training"]["used"] > 0
    assert len(told["history"]) == 2
    assert 0 < told["trained_weights"] < told["weights"]
    assert cli.main(["ask", "graph.tsv", "Who directed Her?", "--model", "planner", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    (document, *_) = json.loads(shown.out)["documents"]
    assert document["metadata"]["retriever"] == "RelationPathRetriever"
    assert document["metadata"]["details"]["relation_paths"][0]["from"] == "planner"


def test_people_are_told_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(train("--llm", language_model(), *SMALL, "--field", 'lora_targets=["q_proj"]')) == 0
    out = capsys.readouterr().out
    assert "Loss of relation paths" in out
    assert "ask graph.tsv 'Who ...?' --model planner" in out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "rog needs a causal language model of Hugging Face: --llm NAME_OR_FOLDER"),
        (("--llm", "nowhere"), "no such folder"),
        (("--setting", "lora"), "--setting is for graph-prompt, but trained is rog"),
        (("--llm", "nowhere", "--field", "width=3"), "the training of rog has no field 'width'"),
    ],
)
def test_mistakes_are_one_line(more: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(train(*more)) == 2
    err = capsys.readouterr().err
    assert told in err
    assert "Traceback" not in err


def test_other_methods_take_no_language_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word if word != "rog" else "gnn-rag" for word in train("--llm", "lm")]) == 2
    assert "--llm is for graph-prompt, but trained is gnn-rag. Leave it out." in capsys.readouterr().err
