"""Questions that a graph cannot answer."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kg_retrievers import (
    EntityLinker,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Known,
    Pattern,
    Question,
    SimGRAGRetriever,
    Triple,
    Unknown,
    evaluate,
    read_question_set,
    unanswerable_questions,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.sample import load_graph, load_questions


@cache
def _facts(graph: KnowledgeGraph, relation: str) -> list[Triple]:
    return list(graph.triples(relation=relation))


def walks(graph: KnowledgeGraph, question: Question) -> tuple[set[str], set[str]]:
    """Return where the first triple of a pattern leads from the topic, and where all of them do; by plain walking."""
    assert question.pattern is not None
    (topic,) = (node for node in question.pattern.nodes if isinstance(node, Known))
    at: dict[Any, set[str]] = {topic: set(question.seed_entities)}
    first: set[str] | None = None
    for head, relation, tail in question.pattern.triples:
        assert isinstance(relation, Known)
        facts = _facts(graph, relation.text)
        if head in at:
            at[tail] = {fact.tail for fact in facts if fact.head in at[head]}
            first = at[tail] if first is None else first
        else:
            at[head] = {fact.head for fact in facts if fact.tail in at[tail]}
            first = at[head] if first is None else first
    assert first is not None
    return first, at[Unknown(question.pattern.target or "")]


@pytest.mark.real
@pytest.mark.heavy
def test_questions_that_metaqa_cannot_answer(data_dir: Path, metaqa_graph: KnowledgeGraph) -> None:
    answerable = read_question_set(data_dir / "metaqa", "metaqa", limit=50)
    made = unanswerable_questions(answerable, metaqa_graph, 31, seed=5)
    assert made == unanswerable_questions(answerable, metaqa_graph, 31, seed=5)
    assert made != unanswerable_questions(answerable, metaqa_graph, 31, seed=6)
    assert Counter(one.kind for one in made) == {"absent entity": 11, "absent relation": 10, "empty result": 10}
    templates = {one.text.replace(one.seed_entities[0], "_") for one in answerable}
    for question in made:
        assert (question.answers, question.answerable) == ((), False)
        assert question.pattern is not None
        (name,) = (node.text for node in question.pattern.nodes if isinstance(node, Known))
        assert question.text.replace(name, "_") in templates
        if question.kind == "absent entity":
            assert question.seed_entities == ()
            assert name.casefold() not in {known.casefold() for known in metaqa_graph.names}
        else:
            assert question.seed_entities == (name,)
            first, reached = walks(metaqa_graph, question)
            assert (not first) == (question.kind == "absent relation")
            assert reached <= {name}


def test_names_are_spliced_between_words() -> None:
    triples = [("Tom Hanks", "acted in", "Big"), ("snow_white", "acted in", "Up"), ("Cher", "acted in", "Moonstruck")]
    graph = KnowledgeGraph.from_triples(triples)
    questions = [Question(f"what did {topic} act in?", seed_entities=(topic,)) for topic, _, _ in triples]
    made = {one.text for one in unanswerable_questions(questions, graph, 3, seed=2)}
    halves = [("Tom", " Hanks"), ("snow", "_white"), ("Ch", "er")]
    spliced = {f"what did {one}{other} act in?" for one, _ in halves for _, other in halves}
    assert made < spliced - {question.text for question in questions}


def test_only_questions_that_name_their_topic_serve() -> None:
    graph = load_graph()
    x = Unknown("x")
    pattern = Pattern.of(("Her", "directed_by", x), target="x")
    useless = [
        Question("Who directed it?", seed_entities=("Her",), pattern=pattern),
        Question("Who directed Her?", pattern=pattern),
        Question("Who directed Herr?", seed_entities=("Herr",), pattern=pattern),
        Question("Who directed Hers?", seed_entities=("Her",), pattern=pattern),
        Question("Who directed Her?", seed_entities=("Her",), pattern=pattern, answerable=False),
    ]
    with pytest.raises(InvalidArgumentError, match="wanted 1, but only 0 can be made of 5 questions"):
        unanswerable_questions(useless, graph, 1)
    for number in (0, 2**64):
        with pytest.raises(InvalidArgumentError, match=f"number must be an integer from 1 to .*, but got {number}"):
            unanswerable_questions(load_questions(), graph, number)
    named = Question("who directed HER?", seed_entities=("Her",))
    films = Question("and who Arrival?", seed_entities=("Arrival",))
    kinds = {one.kind for one in unanswerable_questions([named, films], graph, 2)}
    assert kinds == {"absent entity"}  # there is no pattern to walk along


@pytest.mark.parametrize(
    "triples",
    [
        [("Her", "directed by", Unknown("x"))],  # in other words than the graph's
        [("Her", Unknown("r"), Unknown("x"))],
        [("Her", "directed_by", Unknown("x")), ("Arrival", "directed_by", Unknown("x"))],
        [(Unknown("y"), "directed_by", Unknown("x")), ("Her", "directed_by", Unknown("x"))],
    ],
)
def test_patterns_that_are_no_walk_serve_for_absent_entities_only(triples: list[Any]) -> None:
    other = Question("who directed Arrival?", seed_entities=("Arrival",))
    question = Question("who directed Her?", seed_entities=("Her",), pattern=Pattern.of(*triples, target="x"))
    made = unanswerable_questions([question, other], load_graph(), 2)
    assert {one.kind for one in made} == {"absent entity"}
    assert all("Her" not in [getattr(node, "text", "") for node in one.pattern.nodes] for one in made if one.pattern)


def test_a_careful_retriever_refuses_them() -> None:
    """A pattern in the words of the graph that must fit exactly: what the questions want cannot be had."""
    graph = load_graph()
    index = GraphIndex.build(graph, HashedEmbeddings())
    made = unanswerable_questions(load_questions(), graph, 6)
    linker = EntityLinker(index)
    assert len({one.kind for one in made}) == 3
    for question in made:
        retriever = SimGRAGRetriever.from_index(index, max_distance=0.0, direction="respect")
        if question.kind == "absent entity":
            continue
        assert linker.resolve(question.seed_entities) == list(question.seed_entities)
        documents = retriever.invoke(question.text, pattern=question.pattern, seed_entities=[*question.seed_entities])
        assert not documents
    report = evaluate(SimGRAGRetriever.from_index(index), made)
    assert set(report.by("kind")) <= {"absent entity", "absent relation", "empty result"}
    assert report.metrics["hit"] is report.metrics["false_refusals"] is None
