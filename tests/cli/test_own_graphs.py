"""Questions with a graph each, on the shell: measured, compared and trained on without --graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell_mistakes import Run, mistake

ASKED = ("--format", "webqsp", "--embeddings", "hashed")


def row(number: int) -> dict[str, Any]:
    name = f"Film {number}"
    asked, answer = (("directed", "Director"), ("wrote", "Writer"))[number % 2]
    graph = [[name, "directed by", f"Director {number}"], [name, "written by", f"Writer {number}"]]
    graph.append([name, "genre", "Drama"])
    return {
        "id": str(number),
        "question": f"Who {asked} {name}?",
        "answer": [f"{answer} {number}"],
        "q_entity": [name],
        "graph": graph,
    }


@pytest.fixture(autouse=True)
def questions(folder: Path) -> None:
    """A small set in the layout of RoG."""
    (folder / "set").mkdir()
    for name, numbers in {"train": range(20), "validation": range(20, 26), "test": range(26, 30)}.items():
        (folder / "set" / f"{name}.jsonl").write_text("".join(json.dumps(row(one)) + "\n" for one in numbers))


def test_a_set_is_measured_without_a_graph(run: Run) -> None:
    asked = ("--data", "set", "--split", "test", *ASKED)
    code, out, err = run("evaluate", *asked, "--method", "kaping", "--embedding-cache", "v.sqlite", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert (report["questions"], report["metrics"]["answer_recall"]) == (4, 1.0)
    assert Path("v.sqlite").is_file()
    code, out, _ = run("evaluate", *asked, "--split", "dev", "--method", "kaping", "--json")
    assert (code, json.loads(out)["questions"]) == (0, 6)


def test_methods_are_compared_and_learn_from_examples(run: Run) -> None:
    methods = [part for name in ("kaping", "rog", "sg-rag") for part in ("--method", name)]
    pytest.importorskip("ladybug")
    code, out, _ = run(
        *("compare", "--data", "set", "--split", "test", "--limit", "2", *ASKED, *methods),
        *("--examples", "set", "--json"),
    )
    assert code == 0
    runs = {one["method"]: one["metrics"] for one in json.loads(out)["runs"]}
    assert runs["rog"]["hit"] == 1.0
    assert len(runs) == 3


def test_a_method_is_trained_and_measured(run: Run) -> None:
    code, out, err = run(
        *("train", "subgraph-rag", "--questions", "set", "--split", "train", "--validation", "set", *ASKED),
        *("--num-examples", "60", "--field", "hidden=8", "--output", "m", "--json"),
    )
    assert code == 0, err
    assert json.loads(out)["training"]["used"] == 20
    assert json.loads(out)["command"].startswith("kg-retrievers ask GRAPH")
    code, out, _ = run("evaluate", "--data", "set", "--split", "test", *ASKED, "--model", "m", "--json")
    assert (code, json.loads(out)["questions"]) == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["evaluate", "--data", "set", *ASKED], "Name one of its splits: --split test or train or validation."),
        (["evaluate", "--data", "set", *ASKED, "--graph", "g.csv"], "--graph is for questions about one graph"),
    ],
)
def test_mistakes(run: Run, arguments: list[str], told: str) -> None:
    assert told in mistake(run(*arguments))
