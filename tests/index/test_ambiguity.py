"""What tells entities of one name apart."""

from __future__ import annotations

import json

import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, tell_apart

FACTS = [
    ("s1", "located_in", "Illinois"),
    ("s2", "located_in", "Ohio"),
    ("s3", "located_in", "Ohio"),
    ("s1", "twin", "Ashikaga"),
    ("Homer", "lives_in", "s3"),
    ("Lisa", "lives_in", "s3"),
    ("x1", "part_of", "Ohio"),
    ("x2", "part_of", "Ohio"),
]
LABELS = {"s1": "Springfield", "s2": "Springfield", "s3": "Springfield", "x1": "Twin", "x2": "Twin"}


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    types = {"s1": ["Place", "Town"], "s2": ["Place", "market_town"], "s3": ["Place"]}
    graph = KnowledgeGraph.from_triples(FACTS, labels=LABELS, types=types)
    return GraphIndex.build(graph, HashedEmbeddings())


def texts(index: GraphIndex, *keys: str) -> dict[str, str]:
    return {one["key"]: one["text"] for one in tell_apart(index, keys)}


def test_by_type_then_by_fact_then_by_key(index: GraphIndex) -> None:
    assert texts(index, "s1", "s2", "s3") == {"s1": "Town", "s2": "market town", "s3": "Homer: lives in"}
    assert texts(index, "x2", "x1") == {"x2": "x2", "x1": "x1"}


def test_the_whole_of_one(index: GraphIndex) -> None:
    found = tell_apart(index, ["s1", "s1", "unknown", "s2", "s3"])
    assert json.loads(json.dumps(found)) == found
    assert [one["key"] for one in found] == ["s1", "s2", "s3"]
    assert found[0]["label"] == "Springfield"
    assert found[0]["types"] == ["Place", "Town"]
    assert found[0]["fact"] == ["Springfield", "located_in", "Illinois"]
    assert found[2]["fact"] == ["Homer", "lives_in", "Springfield"]


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ([("a", "year", "1"), ("b", "year", "2"), ("a", "actor", "X")], ["year: 1", "year: 2"]),
        ([("a", "actor", "X"), ("a", "actor", "Y"), ("a", "year", "1"), ("b", "actor", "Z"), ("b", "year", "2")], None),
        ([("X", "actor", "a"), ("a", "year", "1"), ("Y", "actor", "b"), ("b", "year", "2")], None),
        ([("a", "actor", "Y"), ("a", "actor", "X"), ("a", "year", "1"), ("b", "year", "1")], ["actor: X", "b"]),
    ],
    ids=["of most of them", "of few values", "forward", "of one alone"],
)
def test_the_fact_that_tells_most(facts: list[tuple[str, str, str]], wanted: list[str] | None) -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())
    assert [*texts(index, "a", "b").values()] == (wanted or ["year: 1", "year: 2"])
