"""How many facts a question joins, where its set does not say it."""

from __future__ import annotations

import pytest

from kg_retrievers import KnowledgeGraph, Question
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.evaluation.hops import hops_of
from kg_retrievers.graph import Triple

GRAPH = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("c", "r", "b"), ("c", "r", "d"), ("x", "r", "y"), ("a", "r", "a")]
)


@pytest.mark.parametrize(
    ("seeds", "answers", "hops"),
    [
        ("a", "b", 1),
        ("a", "c", 2),  # against the direction of a fact
        ("a", "bd", 3),  # the farthest answer
        ("ac", "bd", 1),  # from the nearest entity
        ("a", "y", None),  # no path
        ("a", "a", None),
        ("", "b", None),
        ("a", "", None),
    ],
)
def test_hops_are_those_of_the_farthest_answer(seeds: str, answers: str, hops: int | None) -> None:
    asked = GraphQuestion("q", seed_entities=(*seeds,), answers=(*answers,), graph=GRAPH, id="0")
    assert hops_of(asked) == hops


def test_hops_that_a_set_states_stay() -> None:
    facts = (Triple("a", "r", "b"), Triple("b", "r", "c"))
    assert hops_of(GraphQuestion("q", ("a",), ("b",), triples=facts, graph=GRAPH, id="0")) == 2
    assert hops_of(Question("q", ("a",), ("b",))) is None
