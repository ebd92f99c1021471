"""Questions that a graph writes about itself: their patterns give their answers, whatever the graph."""

from __future__ import annotations

from typing import Any

import pytest
from hash_seeds import outputs_under_hash_seeds

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever, generate_questions
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import find_name
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.questions.self_questions.shapes import MAX_ANSWERS
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import tiny_graph

#: Graphs that trip up who writes about them.
ODD = {
    "one triple": KnowledgeGraph.from_triples([("a", "b", "c")]),
    "self-loop": KnowledgeGraph.from_triples([("a", "likes", "a"), ("a", "likes", "b")]),
    "URIs": KnowledgeGraph.from_triples(
        [
            ("http://x.org/Ann", "http://x.org/ns#birthPlace", "http://x.org/Rome"),
            ("http://x.org/Bob", "http://x.org/ns#birthPlace", "http://x.org/Rome"),
            ("http://x.org/Bob", "http://y.org/ns#birthPlace", "http://x.org/Oslo"),
            ("http://x.org/Ann", "http://x.org/ns#%20", "http://x.org/Bob"),
        ],
        labels={"http://x.org/Ann": "Ann", "http://x.org/Bob": "Bob", "http://x.org/Rome": "Rome"},
    ),
    "any script": KnowledgeGraph.from_triples(
        [("千と千尋の神隠し", "監督", "宮崎駿"), ("Её", "режиссёр", "宮崎駿"), ("É {0} \\1 ?", "%s {x}", "it's 50 %.")]
    ),
    "marriages": KnowledgeGraph.from_triples(
        [("Ann", "spouse", "Bob"), ("Bob", "spouse", "Ann"), ("Ann", "parent", "Cid"), ("Eve", "parent", "Cid")]
    ),
    "the same in other letters": KnowledgeGraph.from_triples(
        [("her", "directed_by", "x"), ("Her", "directed by", "y"), ("Her", "Written_By", "y"), ("y", "likes", "x")]
    ),
    "films of all sorts": tiny_graph(),
}

each_odd_graph = pytest.mark.parametrize("graph", ODD.values(), ids=list(ODD))


def answers_of(questions: list[Question], graph: KnowledgeGraph) -> list[set[str]]:
    """Return what the best match of each pattern proposes, facts taken in stored direction."""
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()), direction="respect")
    return [set(retriever.match(question.pattern, 1)[0].answers) for question in questions if question.pattern]


@each_odd_graph
def test_patterns_give_the_answers(graph: KnowledgeGraph) -> None:
    questions = generate_questions(graph, 60)
    assert answers_of(questions, graph) == [set(question.answers) for question in questions]


@each_odd_graph
def test_questions_name_their_entities(graph: KnowledgeGraph) -> None:
    for question in generate_questions(graph, 60):
        assert 1 <= len(question.answers) <= MAX_ANSWERS
        for key in question.seed_entities:
            names = [graph.label(key), *graph.aliases(key)]
            assert any(find_name(name, question.text) for name in names), question.text


def test_kinds_come_in_turn() -> None:
    kinds = [question.kind for question in generate_questions(load_graph(), 8)]
    assert kinds == ["1-hop", "2-hop", "3-hop", "conjunction"] * 2
    assert {question.kind for question in generate_questions(load_graph(), 9, max_hops=1)} == {"1-hop", "conjunction"}


def test_a_walk_that_turns_leaves_out_where_it_starts() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Adaptation", "directed_by", "Jonze")])
    turned = [question for question in generate_questions(graph, 60) if question.kind == "2-hop"]
    assert {(*question.seed_entities, *question.answers) for question in turned} == {
        ("Her", "Adaptation"),
        ("Adaptation", "Her"),
    }
    assert all(" other " in question.text for question in turned)


def test_a_name_of_several_entities_names_none() -> None:
    graph = KnowledgeGraph.from_triples(
        [("Q1", "capital", "Q2"), ("Q3", "capital", "Q4")],
        labels={"Q1": "Georgia", "Q2": "Tbilisi", "Q3": "georgia", "Q4": "Atlanta"},
        aliases={"Q3": ["Peach State"]},
    )
    questions = generate_questions(graph, 60)
    assert {question.seed_entities[0] for question in questions} == {"Q2", "Q3", "Q4"}
    assert all("Peach State" in question.text for question in questions if question.seed_entities == ("Q3",))


@pytest.mark.heavy
def test_questions_without_end_are_left_out() -> None:
    many = [(f"film {number}", "genre", "Drama") for number in range(MAX_ANSWERS + 2)]
    questions = generate_questions(KnowledgeGraph.from_triples(many), 60)
    assert {question.answers for question in questions} == {("Drama",)}


def test_equal_seeds_give_equal_questions() -> None:
    one, same, other = (generate_questions(load_graph(), 40, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len({question.text for question in one}) == 40


@pytest.mark.heavy
def test_hash_seeds_change_nothing() -> None:
    code = (
        "from kg_retrievers import generate_questions as g; from kg_retrievers.sample import load_graph as l\n"
        "print([(q.text, q.answers) for q in g(l(), 40)])"
    )
    found = outputs_under_hash_seeds(code)
    assert len(found) == 1


def test_they_serve_as_examples() -> None:
    graph = load_graph()
    questions = generate_questions(graph, 80, seed=4)
    generator = ExamplePatternGenerator(GraphIndex.build(graph, HashedEmbeddings()), questions)
    for question in questions:
        if question.kind in ("1-hop", "2-hop", "3-hop"):
            pattern = generator.invoke({"question": question.text, "seed_entities": question.seed_entities})
            assert question.pattern is not None
            wanted = [triple.relation for triple in question.pattern.triples]
            assert [triple.relation for triple in pattern.triples] == wanted, question.text


# --- what cannot be ---


@pytest.mark.parametrize(
    "graph",
    [
        KnowledgeGraph.from_triples([]),
        KnowledgeGraph.from_triples([("a", "likes", "a")]),
        KnowledgeGraph.from_triples([("Q1", "likes", "Q2")], labels={"Q1": "Ann", "Q2": "ann"}),
        KnowledgeGraph.from_triples([("a", "likes it", "b"), ("c", "likes_it", "d")]),
        KnowledgeGraph.from_triples([("?", "likes", "!"), ("x" * 99, "likes", "one\ntwo")]),
    ],
    ids=["empty", "self-loop", "one name", "relations alike", "no names"],
)
def test_a_graph_with_nothing_to_ask(graph: KnowledgeGraph) -> None:
    with pytest.raises(InvalidArgumentError, match="no triple to ask about"):
        generate_questions(graph)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"graph": "films.csv"}, "wanted a KnowledgeGraph, as index.graph, but got 'films.csv'"),
        ({"count": 0}, "count must be an integer from 1 to 100,000, but got 0"),
        ({"count": 1.5}, "count must be an integer from 1 to 100,000, but got 1.5"),
        ({"count": 2**31}, "count must be an integer from 1 to 100,000, but got 2147483648"),
        ({"seed": -1}, "seed must be an integer of 0 or more, but got -1"),
        ({"max_hops": 4}, "max_hops must be an integer from 1 to 3, but got 4"),
    ],
    ids=str,
)
def test_wrong_arguments(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        generate_questions(**{"graph": tiny_graph(), **fields})
