"""The sample graph and its questions, against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from kg_retrievers.datasets import Question
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.pattern import Known, Pattern, PatternTriple, Term
from kg_retrievers.sample import load_graph, load_questions

#: The relation of the graph that each relation text of the patterns stands for.
RELATIONS = {
    "directed by": "directed_by",
    "written by": "written_by",
    "starring": "starring",
    "genre": "has_genre",
    "release year": "release_year",
    "country of origin": "country_of_origin",
    "born in": "born_in",
    "married to": "married_to",
}

GRAPH = load_graph()
QUESTIONS = load_questions()

each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)


def bindings(graph: KnowledgeGraph, pattern: Pattern) -> Iterator[dict[Term, str]]:
    """Yield every assignment of entities to nodes under which all triples of the pattern are facts."""
    known = [node for node in pattern.nodes if isinstance(node, Known)]
    for keys in product(*(graph.entities_named(node.text) for node in known)):
        yield from extensions(graph, pattern.triples, dict(zip(known, keys, strict=True)), set(keys))


def extensions(
    graph: KnowledgeGraph, triples: tuple[PatternTriple, ...], bound: dict[Term, str], taken: set[str]
) -> Iterator[dict[Term, str]]:
    if not triples:
        yield bound
        return
    (head, relation, tail), *rest = triples
    assert isinstance(relation, Known)
    for fact in graph.triples(bound.get(head), RELATIONS[relation.text], bound.get(tail)):
        new = {node: key for node, key in ((head, fact.head), (tail, fact.tail)) if node not in bound}
        if taken.isdisjoint(new.values()):
            yield from extensions(graph, tuple(rest), bound | new, taken)


def reachable(graph: KnowledgeGraph, seeds: tuple[str, ...], hops: int) -> set[str]:
    found = set(seeds)
    for _ in range(hops):
        found |= {end for triple in graph.triples() if found & {triple.head, triple.tail} for end in triple[::2]}
    return found


def test_every_entity_has_one_type_and_every_triple_is_there_once() -> None:
    assert GRAPH.duplicates == 0
    assert GRAPH.skipped == 0
    assert {tuple(GRAPH.types_of(key)) for key in GRAPH.entities} == {
        ("film",), ("person",), ("genre",), ("year",), ("country",)
    }  # fmt: skip
    assert set(GRAPH.relations) == set(RELATIONS.values())


def test_each_relation_joins_the_types_it_should() -> None:
    joined = {row.relation: (row.head_types, row.tail_types) for row in GRAPH.schema().relations}
    assert joined == {
        "directed_by": (("film",), ("person",)),
        "written_by": (("film",), ("person",)),
        "starring": (("film",), ("person",)),
        "has_genre": (("film",), ("genre",)),
        "release_year": (("film",), ("year",)),
        "country_of_origin": (("film",), ("country",)),
        "born_in": (("person",), ("country",)),
        "married_to": (("person",), ("person",)),
    }


def test_hazards_are_there() -> None:
    assert [triple.tail for triple in GRAPH.triples("Unknown", "directed_by")] == ["Jaume Collet-Serra"]
    assert GRAPH.entities_named("Dune") == ["Dune (1984)", "Dune (2021)"]
    assert GRAPH.entities_named("Sen to Chihiro no kamikakushi") == ["Spirited Away"]


def test_questions_differ_and_use_every_relation() -> None:
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)
    patterns = [question.pattern for question in QUESTIONS if question.pattern]
    assert {triple.relation for pattern in patterns for triple in pattern.triples} == set(map(Known, RELATIONS))
    assert {len(pattern.triples) for pattern in patterns} == {1, 2, 3}


@each_question
def test_answers_are_those_of_brute_force(question: Question) -> None:
    assert question.pattern is not None
    target = next(node for node in question.pattern.nodes if getattr(node, "name", None) == question.pattern.target)
    assert question.answers == tuple(sorted({bound[target] for bound in bindings(GRAPH, question.pattern)}))


@each_question
def test_seeds_are_named_in_the_question_and_reach_the_answers(question: Question) -> None:
    assert question.pattern is not None
    known = {node for node in question.pattern.nodes if isinstance(node, Known)}
    assert all(node.text.casefold() in question.text.casefold() for node in known)
    seeds = {key for found in bindings(GRAPH, question.pattern) for node, key in found.items() if node in known}
    assert set(question.seed_entities) == seeds <= set(GRAPH.entities)
    assert question.answers
    assert set(question.answers) <= reachable(GRAPH, question.seed_entities, len(question.pattern.triples))
