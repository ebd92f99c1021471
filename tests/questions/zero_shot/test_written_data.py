"""The data in the repository that the relation scorer is trained and fitted on: what it says of itself is true."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
GRAPHS = sorted((BENCHMARKS / "own_graphs" / "fit").iterdir())
WORDS = BENCHMARKS / "relation_scorer" / "words"
PHRASINGS, CHAINS = (sorted((WORDS / name).glob("*.jsonl")) for name in ("phrasings", "chains"))


def test_there_are_data() -> None:
    assert len(GRAPHS) == 14
    assert len(PHRASINGS) == 10
    assert len(CHAINS) == 7


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("folder", GRAPHS, ids=lambda folder: folder.name)
def test_answers_are_where_the_walks_lead(folder: Path) -> None:
    """A walk is a list of relations, "-" before one that is crossed from tail to head; several walks meet."""
    across: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for line in (folder / "graph.tsv").read_text("utf-8").splitlines():
        head, relation, tail = line.split("\t")
        across[relation][head].add(tail)
        across[f"-{relation}"][tail].add(head)
    for row in rows(folder / "questions.jsonl"):
        seeds, walks = row["seed_entities"], row["walks"]
        assert isinstance(seeds, list)
        assert isinstance(walks, list)
        ends = []
        for seed, walk in zip(seeds, walks, strict=True):
            here = {seed}
            for relation in walk:
                here = {there for entity in here for there in across[relation][entity]} - {seed}
            ends.append(here)
        assert row["answers"]
        assert set.intersection(*ends) - set(seeds) == set(row["answers"]), row["question"]  # type: ignore[call-overload]


@pytest.mark.parametrize("folder", GRAPHS, ids=lambda folder: folder.name)
def test_unanswerable_questions_are_about_entities_of_the_graph(folder: Path) -> None:
    facts = [line.split("\t") for line in (folder / "graph.tsv").read_text("utf-8").splitlines()]
    entities = {end for head, _, tail in facts for end in (head, tail)}
    for row in rows(folder / "unanswerable.jsonl"):
        assert isinstance(row["seed_entities"], list)
        assert row["seed_entities"]
        assert entities.issuperset(row["seed_entities"])
        assert row["answers"] == []


@pytest.mark.parametrize("path", PHRASINGS, ids=lambda path: path.stem)
def test_phrasings_name_their_entity(path: Path) -> None:
    for row in rows(path):
        assert row["kind"] in ("", "date", "number")
        assert row["names"]
        assert row["subjects"]
        assert row["objects"]
        for key in ("forward", "backward", "forward_phrases", "backward_phrases"):
            texts = row[key]
            assert isinstance(texts, list)
            assert all(re.search(r"\bX\b", text) for text in texts), row["names"]


@pytest.mark.parametrize("path", CHAINS, ids=lambda path: path.stem)
def test_chains_ask_for_the_end_of_two_or_three_steps(path: Path) -> None:
    for row in rows(path):
        steps, questions = row["steps"], row["questions"]
        assert isinstance(steps, list)
        assert isinstance(questions, list)
        assert len(steps) in (2, 3)
        assert row["start"]
        for step in steps:
            assert step["kind"] in ("", "date", "number")
            assert step["names"]
            assert step["end"]
        assert not any(step["kind"] for step in steps[:-1])
        assert all(len(re.findall(r"\bX\b", text)) == 1 for text in questions), steps
