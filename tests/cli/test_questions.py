"""The command questions, and what takes its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell_mistakes import Run, mistake

import kg_retrievers
from kg_retrievers import generate_questions, read_questions
from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.sample import load_graph

GRAPH = str(Path(kg_retrievers.__file__).parent / "sample" / "graph.jsonl")
QUESTIONS = ("questions", GRAPH, "--output", "questions.jsonl")


def test_it_writes_what_python_writes(run: Run) -> None:
    code, out, err = run(*QUESTIONS, "--count", "30", "--seed", "7")
    assert (code, err) == (0, "")
    assert out.startswith("Wrote 30 questions to questions.jsonl, such as: ")
    assert read_questions("questions.jsonl") == generate_questions(load_graph(), 30, seed=7)


def test_it_tells_programs_and_says_what_the_graph_lacks(run: Run) -> None:
    Path("one.tsv").write_text("Her\tdirected_by\tJonze\n", "utf-8")
    code, out, err = run("questions", "one.tsv", "--output", "few.jsonl", "--json")
    told = json.loads(out)
    assert (code, told["output"], told["kinds"]) == (0, "few.jsonl", {"1-hop": told["questions"]})
    assert err == (
        f"kg-retrievers: 1,000 questions were asked for, but the graph gives no more than {told['questions']}\n"
    )


def test_its_file_serves_for_training_and_as_examples(run: Run) -> None:
    assert run(*QUESTIONS, "--count", "40")[0] == 0
    train = ("train", "subgraph-rag", "--graph", GRAPH, "--questions", "questions.jsonl", "--output", "model")
    code, out, _ = run(*train, "--num-examples", "24", "--field", "rounds=2", "--json")
    assert code == 0
    assert json.loads(out)["training"]["used"] == 36
    assert holds_model(Path("model"))
    for method in ("simgrag", "rog"):
        asked = ("ask", GRAPH, "Who directed Her?", "--method", method, "--entity", "Her", "--min-confidence", "0")
        assert run(*asked, "--examples", "questions.jsonl")[0] == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("questions", "empty.tsv", "--output", "new.jsonl"), "no triple to ask about"),
        (("questions", GRAPH, "--output", "there.jsonl"), "there.jsonl is there already. Name a new file: --output"),
        (("questions", GRAPH, "--output", "no/new.jsonl"), "'no/new.jsonl' cannot be written"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_told_on_one_line(run: Run, argv: tuple[str, ...], message: str) -> None:
    Path("empty.tsv").write_text("a\tlikes\ta\n", "utf-8")
    Path("there.jsonl").write_text("mine\n", "utf-8")
    assert message in mistake(run(*argv))
    assert Path("there.jsonl").read_text("utf-8") == "mine\n"
    assert not Path("new.jsonl").exists()
