"""Rivals side by side: what fits a budget, what is gold, and a small set from the command to the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.rivals.__main__ import main
from benchmarks.rivals.measuring import BUDGETS, outcome, taken
from benchmarks.rivals.page import draw_charts, table
from benchmarks.rivals.sets import Asked, gold_facts
from kg_retrievers import KnowledgeGraph, Pattern, Triple, Unknown
from kg_retrievers.graph.verbalize import approximate_tokens

FACTS = [
    Triple("Her", "directed_by", "Spike Jonze"),
    Triple("Her", "has_genre", "Drama"),
    Triple("Adaptation", "directed_by", "Spike Jonze"),
    Triple("Arrival", "directed_by", "Denis Villeneuve"),
]


def test_facts_are_taken_while_their_text_is_within_the_budget() -> None:
    lines = [f"Film {number} -> directed by -> Person {number}" for number in range(100)]
    for budget in BUDGETS:
        count = taken(lines, budget)
        assert approximate_tokens("\n".join(lines[:count])) <= budget
        assert count == len(lines) or approximate_tokens("\n".join(lines[: count + 1])) > budget


def test_gold_facts_are_those_of_walks_that_reach_an_answer() -> None:
    pattern = Pattern.of(
        ("Her", "directed_by", Unknown("director")),
        (Unknown("film"), "directed_by", Unknown("director")),
        target="film",
    )
    graph = KnowledgeGraph.from_triples(FACTS)
    assert gold_facts(graph, pattern, ["Adaptation"]) == {FACTS[0], FACTS[2]}
    assert gold_facts(graph, pattern, ["Arrival"]) == set()


def test_answers_count_at_either_end_of_a_fact_and_nothing_found_counts_zero() -> None:
    asked = Asked("?", ("Drama", "Adaptation"), frozenset(FACTS[:2]))
    found = outcome([FACTS[1:3]] * 4, " ".join, asked)
    assert (found.answers, found.facts) == ((1.0,) * 4, (0.5,) * 4)
    assert outcome([[]] * 4, " ".join, asked).answers == (0.0,) * 4
    alone = outcome([["Drama"]] * 4, str, asked)
    assert (alone.answers, alone.facts) == ((0.5,) * 4, (0.0,) * 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One hand-made graph, of which two labels are shared."""
    home = tmp_path / "graphs" / "films"
    home.mkdir(parents=True)
    (home / "graph.tsv").write_text("\n".join("\t".join(fact) for fact in FACTS) + "\n", "utf-8")
    (home / "entities.tsv").write_text("Her\tFilm\nArrival\tFilm\n", "utf-8")
    questions = [
        {"question": "who directed Adaptation", "answers": ["Spike Jonze"], "walks": [["directed_by"]]},
        {"question": "how many films are there", "answers": [], "value": 3, "walks": []},
    ]
    for row in questions:
        row["seed_entities"] = ["Adaptation"]
    (home / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)) + "\n", "utf-8")
    return tmp_path / "graphs"


def test_a_small_set_is_measured_and_shown(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["SimGRAG", "Neighborhood, 1 hop", "Cosine", "PageRank from entities", "Ego graph"]
    results = tmp_path / "rivals.json"
    main(
        ["--sets", "own", "--folder", str(folder), "--methods", *names, "--without", "minilm", "--output", str(results)]
    )
    found = json.loads(results.read_text("utf-8"))
    rows = {row["method"]: row for row in found["rows"] if row["set"] == "films"}
    assert rows.keys() >= set(names)
    for row in rows.values():
        assert row["n"] == 1  # the question for a number has no gold answers
        assert row["answer_recall"]["1500"] == row["triple_recall"]["1500"] == 1.0
    assert "Ego graph †" in capsys.readouterr().out
    assert all(name in table(found["rows"]) for name in names)
    assert [name for name, _ in draw_charts(found, tmp_path / "pictures")] == ["Hand-made graphs"]
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["evidence-hand-made-graphs.svg"]


def test_a_rival_whose_package_is_missing_is_left_out_with_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.rivals.__main__._is_installed", lambda package: package != "networkx")
    main(["--sets", "own", "--folder", str(folder), "--methods", "ego", "cosine", "--without", "minilm"])
    said = capsys.readouterr()
    assert "Ego graph: left out, since networkx is not installed." in said.err
    assert "Cosine" in said.out
    assert "Ego" not in said.out
