"""The relations of a graph as steps: those that say the same, and what they lead to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.zero_shot.scorer import relation_scorer
from kg_retrievers.questions.zero_shot.steps import INVERSE, GraphSteps, same_labels, step_phrase

#: Labels of the first two relations, forward and backward.
FIRST, FIRST_BACK, SECOND, SECOND_BACK = range(4)

HOSTS = [(f"host {number}", "hosts", f"guest {number}") for number in range(5)]
HOSTED_BY = [(guest, "hosted by", host) for host, _, guest in HOSTS]
NEAR = [(one, "near", other) for pair in ("AB", "CD") for one, other in (pair, pair[::-1])]

FILMS = KnowledgeGraph.from_triples(
    [
        *((film, "made by", "Ann") for film in ("Her", "Up", "Dot", "Nameless")),
        *(("Her", "released in", "2013"), ("Ann", "likes", "Her"), ("Ann", "likes", "Dot")),
        ("Short", "rdfs:subClassOf", "Film"),
    ],
    types={"Her": ["Film"], "Up": ["Film", "Short"], "Dot": ["Short"], "Ann": ["Person"]},
)


def steps_of(facts: list[tuple[str, str, str]]) -> GraphSteps:
    """Return the steps of a graph."""
    return GraphSteps(KnowledgeGraph.from_triples(facts), relation_scorer(), token_table())


STEPS = GraphSteps(FILMS, relation_scorer(), token_table())


def label(relation: str, backward: bool = False) -> int:
    """Return the label of a relation of the films."""
    return int(label_of(FILMS.relations.find(relation), backward))


INVERSES, DIFFERENT = [FIRST, FIRST_BACK, FIRST_BACK, FIRST], [FIRST, FIRST_BACK, SECOND, SECOND_BACK]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        *((HOSTS + HOSTED_BY, INVERSES), (HOSTS + HOSTED_BY[:4], INVERSES), (HOSTS + HOSTED_BY[:3], DIFFERENT)),
        *((NEAR, [FIRST, FIRST]), ([*NEAR, ("A", "near", "C"), ("A", "near", "D")], [FIRST, FIRST_BACK])),
        *(([("A", "knows", "B"), ("A", "likes", "B")], DIFFERENT), ([], [])),
    ],
)
def test_labels_that_say_the_same(facts: list[tuple[str, str, str]], expected: list[int]) -> None:
    assert same_labels(KnowledgeGraph.from_triples(facts)).tolist() == expected


def test_inverses_of_an_entity_with_many_facts_are_found() -> None:
    works = [(f"person {number}", "works for", "Acme") for number in range(200)]
    graph = KnowledgeGraph.from_triples([*works, *((tail, "employs", head) for head, _, tail in works)])
    assert same_labels(graph).tolist() == INVERSES


@given(st.lists(st.tuples(*map(st.sampled_from, ["abc", "rst", "abc"])), min_size=1, max_size=25, unique=True))
def test_labels_that_say_the_same_join_mostly_the_same(facts: list[tuple[str, str, str]]) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    pairs = list[set[tuple[str, str]]]()
    for relation in graph.relations:
        pairs += [{(head, tail) for head, name, tail in facts if name == relation}]
        pairs += [{(tail, head) for head, tail in pairs[-1]}]
    for one, first in enumerate(same_labels(graph).tolist()):
        assert first <= one
        assert len(pairs[one] & pairs[first]) >= INVERSE * max(len(pairs[one]), len(pairs[first]))


def test_a_step_in_words_keeps_the_order_of_the_fact() -> None:
    assert step_phrase("made by", "film", "person", False) == "film x made by person ?"
    assert step_phrase("made by", "person", "film", True) == "film ? made by person x"
    assert STEPS.phrases[label("released in")] == "Film x released in date ?"


@pytest.mark.parametrize(
    ("facts", "undone"),
    [(HOSTS, [FIRST_BACK]), (HOSTS + HOSTED_BY, [FIRST_BACK, SECOND]), (NEAR, [FIRST, FIRST_BACK])],
    ids=["one way", "inverse", "symmetric"],
)
def test_steps_that_undo_a_step(facts: list[tuple[str, str, str]], undone: list[int]) -> None:
    assert steps_of(facts).turned_back(FIRST).tolist() == undone


def test_a_walk_turns_back_where_a_step_undoes_the_one_before() -> None:
    steps = steps_of(HOSTS + HOSTED_BY)
    turning = [(FIRST, FIRST_BACK), (FIRST, SECOND), (FIRST, FIRST, SECOND)]
    onward = [(FIRST,), (FIRST, FIRST), (FIRST, SECOND_BACK), (SECOND, FIRST_BACK, SECOND)]
    assert [walk for walk in [*turning, *onward] if steps.turns_back(walk)] == turning


@pytest.mark.parametrize(
    ("kind", "relation", "backward", "expected"),
    [
        ("Film", "made by", True, 0.75),  # three films, two of them short ones, and one without a type
        *(("Short", "made by", True, 0.25), ("Person", "made by", False, 1), ("Boat", "made by", False, -1)),
        *(("Film", "likes", False, 1), ("Short", "likes", False, 0), ("Film", "released in", False, -1)),
        ("Film", "rdfs:subClassOf", False, 0),  # nothing is known
    ],
)
def test_shares_of_a_type(kind: str, relation: str, backward: bool, expected: float) -> None:
    assert STEPS.type_shares(kind)[label(relation, backward)] == pytest.approx(expected)
