"""Questions with a graph each: rows of WebQSP, and the examples that they become."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from question_files import triples, write

from kg_retrievers.datasets import GraphQuestion, Question, read_webqsp, write_questions
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample


def test_a_question_with_a_graph_is_a_question(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("a", "causes", "b")])
    question = GraphQuestion("Support or counter?", answers=("support",), graph=graph, id="0")
    assert isinstance(question, Question)
    write_questions(tmp_path / "out.jsonl", [question])
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"question": question.text, "answers": ["support"]}


# --- WebQSP -----------------------------------------------------------------------------------------------------------

BIEBER = {
    "id": "WebQTest-0",
    "question": "what is the name of justin bieber brother",
    "answer": ["Jaxon Bieber", "Jaxon Bieber"],
    "q_entity": ["Justin Bieber"],
    "a_entity": ["Jaxon Bieber"],
    "graph": [
        ["Justin Bieber", "people.person.parents", "Jeremy Bieber"],
        ["Jeremy Bieber", "people.person.children", "Jaxon Bieber"],
        ["Jeremy Bieber", "people.person.children", "Jaxon Bieber"],
        ["Justin Bieber", "common.topic.article", ""],
    ],
    "choices": [],
}


def test_webqsp_rows(tmp_path: Path) -> None:
    empty = BIEBER | {"id": "é", "graph": [], "answer": []}
    text = f"\ufeff{json.dumps(BIEBER)}\n\n{json.dumps(empty, ensure_ascii=False)}"
    first, second = read_webqsp(write(tmp_path / "test.jsonl", text))
    assert (first.id, first.text) == ("WebQTest-0", "what is the name of justin bieber brother")
    assert (first.seed_entities, first.answers) == (("Justin Bieber",), ("Jaxon Bieber",))
    assert triples(first) == [tuple(triple) for triple in BIEBER["graph"][:2]]
    assert (second.id, second.answers, len(second.graph), len(second.graph.entities)) == ("é", (), 0, 0)


def test_webqsp_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    questions = read_webqsp(write(tmp_path / "test.jsonl", f"{json.dumps(BIEBER)}\n{{"))
    assert isinstance(questions, Iterator)
    assert next(questions).id == "WebQTest-0"
    with pytest.raises(QuestionsLoadError) as caught:
        next(questions)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"{", "no valid JSON at column 2"),
        (b"[" * 100_000, "recursion"),
        (b'{"question": "\xe8"}', "in UTF-8, but got other bytes"),
        ([1], "must be a valid dictionary, but got [1]"),
        (BIEBER | {"question": " "}, "the question is empty"),
        (BIEBER | {"graph": [["a", "r"]]}, "graph.0.2 is missing in ['a', 'r']"),
        (BIEBER | {"graph": [["a", "r", "\ud800"]]}, "half a surrogate pair"),
        ({key: value for key, value in BIEBER.items() if key != "q_entity"}, "q_entity is missing in"),
    ],
)
def test_malformed_webqsp_row(tmp_path: Path, row: Any, message: str) -> None:
    path = tmp_path / "test.jsonl"
    bad = row if isinstance(row, bytes) else json.dumps(row).encode()
    path.write_bytes(json.dumps(BIEBER).encode() + b"\n\n" + bad + b"\n")
    with pytest.raises(QuestionsLoadError) as caught:
        list(read_webqsp(path))
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


# --- examples of graph prompts ----------------------------------------------------------------------------------------


def test_the_evidence_of_an_example() -> None:
    first = Document("", metadata={"triples": [["a", "r", "b"]], "labels": {"a": "A"}})
    second = Document("", metadata={"triples": (("b", "r", "c"), ("a", "r", "b"))})
    example = GraphPromptExample.of_documents("Why?", ["x"], [first, second])
    assert example.triples == (Triple("a", "r", "b"), Triple("b", "r", "c"))
    assert example.labels == {"a": "A"}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"triples": "abc"},
        {"triples": [["a", "b"]]},
        {"triples": [["a", "r", None]]},
        {"triples": [], "labels": {"a": 5}},
    ],
)
def test_evidence_that_is_none(metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="graph prompt: wanted Evidence, a Path, or a Document"):
        GraphPromptExample.of_documents("Why?", ["x"], [Document("", metadata=metadata)])
