"""Questions with graphs of their own: each is asked over its graph, whatever graph the retriever was built on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
    evaluate,
)
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.errors import InvalidArgumentError


def film(name: str, director: str, key: str | None = None) -> GraphQuestion:
    labels = {key: director} if key else {}
    graph = KnowledgeGraph.from_triples(
        [(name, "directed_by", key or director), (name, "genre", "Drama")], labels=labels
    )
    return GraphQuestion(
        f"Who directed {name}?", seed_entities=(name,), answers=(director,), graph=graph, id=f"0{name}"
    )


QUESTIONS = [film("Her", "Spike Jonze"), film("Alien", "Ridley Scott"), film("Arrival", "Denis Villeneuve", "Q1")]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """The graph that the retrievers are built on, which answers none of the questions."""
    return GraphIndex.build(KnowledgeGraph.from_triples([("Jaws", "directed_by", "Spielberg")]), HashedEmbeddings())


@pytest.mark.parametrize("kind", [SimGRAGRetriever, RelationPathRetriever])
@pytest.mark.parametrize("topic", ["given", "linked"])
def test_each_question_is_asked_over_its_graph(index: GraphIndex, kind: Any, topic: Any) -> None:
    report = evaluate(kind.from_index(index), QUESTIONS, topic=topic)
    assert report.metrics["hit"] == report.metrics["answer_recall"] == 1.0
    assert [record["answers"] for record in report.records] == [["Spike Jonze"], ["Ridley Scott"], ["Q1"]]
    assert report.records[2]["gold"] == ["Q1"]  # whose name stands in the set
    assert report.records[2]["labels"] == {"Q1": "Denis Villeneuve"}


def test_questions_over_the_shared_graph_may_stand_beside_them(index: GraphIndex) -> None:
    shared = Question("Who directed Jaws?", answers=("Spielberg",))
    report = evaluate(SimGRAGRetriever.from_index(index), [*QUESTIONS, shared])
    assert report.metrics["hit"] == 1.0


def test_records_belong_to_the_graphs(index: GraphIndex, tmp_path: Path) -> None:
    records, retriever = tmp_path / "records.jsonl", NeighborhoodRetriever.from_index(index)
    evaluate(retriever, QUESTIONS[:1], records=records)
    evaluate(retriever, QUESTIONS[:1], records=records)
    question = QUESTIONS[0]
    more = KnowledgeGraph.from_triples([*question.graph.triples(), ("Her", "genre", "Romance")])
    changed = GraphQuestion(
        question.text, seed_entities=question.seed_entities, answers=question.answers, graph=more, id="0"
    )
    with pytest.raises(InvalidArgumentError, match="questions was"):
        evaluate(retriever, [changed], records=records)


def test_answers_that_a_graph_lacks_are_told_of(index: GraphIndex) -> None:
    lost = film("Her", "Spike Jonze")
    lost = GraphQuestion(lost.text, seed_entities=("Her",), answers=("Nobody",), graph=lost.graph, id="1")
    with pytest.warns(UserWarning, match="^evaluate: 1 of 2 gold answers .*: 'Nobody' \\(of 'Who"):
        evaluate(NeighborhoodRetriever.from_index(index), [QUESTIONS[1], lost])


def test_an_empty_graph_is_a_refusal(index: GraphIndex) -> None:
    empty = GraphQuestion("Who?", seed_entities=("Her",), graph=KnowledgeGraph.from_triples([]), id="1")
    report = evaluate(NeighborhoodRetriever.from_index(index), [empty])
    assert report.records[0]["refused"]


def test_names_become_keys() -> None:
    graph = KnowledgeGraph.from_triples([("m1", "r", "m2"), ("m1", "r", "m3")], labels={"m2": "Rome", "m3": "Rome"})
    question = GraphQuestion("Where?", seed_entities=("m1", "gone"), answers=("Rome", "yes"), graph=graph, id="1")
    keyed = question.with_keys()
    assert (keyed.seed_entities, keyed.answers) == (("m1",), ("m2", "m3", "yes"))
    assert GraphQuestion("Where?", seed_entities=("gone",), graph=graph, id="1").with_keys().seed_entities == ("gone",)


def test_answers_in_words_are_not_compared_by_key(index: GraphIndex) -> None:
    graph = KnowledgeGraph.from_triples([("cats", "capable of", "hiss")])
    question = GraphQuestion("Do cats purr?", answers=("counter",), graph=graph, id="0", in_words=True)
    report = evaluate(NeighborhoodRetriever.from_index(index), [question])
    by_key = ("hit", "hits@1", "f1_macro", "exact_match", "answer_recall", "coverage")
    assert [report.metrics[name] for name in by_key] == [None] * len(by_key)
    assert report.metrics["compared"] == 0
