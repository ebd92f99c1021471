"""Training on questions with a graph each: side by side in one graph that nothing joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question, evaluate
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.registry import METHODS, Method
from kg_retrievers.training.dataset import over_one_graph, training_questions

LEARNED = [method for method in METHODS if "model" in method.needs]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """Only its embeddings count."""
    return GraphIndex.build(KnowledgeGraph.from_triples([("x", "y", "z")]), HashedEmbeddings(64))


def film(number: int) -> GraphQuestion:
    """Who directed one of two films that share their people; the answer differs by relation."""
    name, asked = f"Film {number}", ("directed", "wrote")[number % 2]
    graph = KnowledgeGraph.from_triples(
        [
            (name, "directed by", f"Director {number}"),
            (name, "written by", f"Writer {number}"),
            (name, "genre", "Drama"),
            ("Other", "genre", "Drama"),
        ]
    )
    answer = f"{('Director', 'Writer')[number % 2]} {number}"
    seeds = (name,) if number % 3 else ()
    return GraphQuestion(f"Who {asked} {name}?", seed_entities=seeds, answers=(answer,), graph=graph, id=str(number))


def test_graphs_stand_side_by_side(index: GraphIndex) -> None:
    questions = [film(1), film(2), film(1), film(3)]
    questions[2] = GraphQuestion(
        "Which genre?",
        seed_entities=("Film 1",),
        answers=("Drama",),
        triples=(Triple("Film 1", "genre", "Drama"),),
        graph=questions[0].graph,
        id="again",
    )
    joined, learned, validating = over_one_graph("train", index, questions, [film(5)])
    graph = joined.graph
    assert len(graph) == 4 * 4  # two questions share a graph
    assert sorted(graph.relations) == ["directed by", "genre", "written by"]
    assert [graph.label(key) for key in ("0/Drama", "1/Drama", "3/Film 5")] == ["Drama", "Drama", "Film 5"]
    assert [one.text for one in learned][:2] == ["Who wrote Film 1?", "Who directed Film 2?"]
    assert [one.seed_entities for one in learned] == [("0/Film 1",), ("1/Film 2",), ("0/Film 1",), ("2/Film 3",)]
    assert validating is not None
    assert validating[0].answers == ("3/Writer 5",)
    found = training_questions(joined, learned, max_hops=3).usable
    assert [one.text for one in found] == ["Who wrote _?", "Who directed _?", "Which genre?", "Who wrote _?"]
    assert [len(one.triples) for one in found] == [0, 0, 1, 0]
    as_written = training_questions(joined, learned, max_hops=3, mask_entities=False).usable
    assert as_written[0].text == "Who wrote Film 1?"
    assert all(len(one.seeds) == len(one.answers) == 1 for one in found)


def test_questions_without_entities_or_answers_are_left_out(index: GraphIndex) -> None:
    graph = film(1).graph
    lost = [
        GraphQuestion("Who?", answers=("Drama",), graph=graph, id="0"),
        GraphQuestion("Who?", seed_entities=("gone",), answers=("Drama",), graph=graph, id="1"),
        GraphQuestion("Who?", seed_entities=("Film 1",), answers=("gone",), graph=graph, id="2"),
    ]
    joined, learned, _ = over_one_graph("train", index, lost, None)
    found = training_questions(joined, learned, max_hops=3)
    assert (found.usable, found.without_entities, found.without_answers) == ([], 2, 1)


def test_questions_without_graphs_stay(index: GraphIndex) -> None:
    shared = [Question("Who?", answers=("z",))]
    assert over_one_graph("train", index, shared, None) == (index, shared, None)
    with pytest.raises(InvalidArgumentError, match="train: 1 of 2 questions have a graph of their own"):
        over_one_graph("train", index, shared, [film(1)])


@pytest.mark.parametrize("method", LEARNED, ids=lambda method: method.name)
def test_a_model_is_trained_and_asked_over_the_graphs(method: Method, index: GraphIndex, tmp_path: Path) -> None:
    questions = [film(number) for number in range(40)]
    small: dict[str, Any] = {"subgraph-rag": {"hidden": 8, "rank": 4}, "gnn-rag": {"width": 8, "layers": 2}}[
        method.name
    ]
    trained = method.load_trainer()(
        index,
        questions[:24],
        questions[24:30],
        num_examples=96,
        validations=2,
        embedding_cache=tmp_path / "vectors.sqlite",
        **small,
    )
    assert trained.best > trained.history[0]
    assert len(trained.training.usable) == 24
    retriever = method.load_retriever().from_index(index, model=trained.model, granularity="triple", k=1)
    report = evaluate(retriever, questions[30:])
    assert report.metrics["answer_recall"] is not None
    assert {record["triples"] for record in report.records} == {1}
