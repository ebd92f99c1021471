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


def test_the_fact_that_tells_most_of_them_apart() -> None:
    graph = KnowledgeGraph.from_triples(FACTS, labels=LABELS)
    index = GraphIndex.build(graph, HashedEmbeddings())
    assert texts(index, "s1", "s2") == {"s1": "located in: Illinois", "s2": "located in: Ohio"}


def test_the_whole_of_one(index: GraphIndex) -> None:
    found = tell_apart(index, ["s1", "s1", "unknown", "s2", "s3"])
    assert json.loads(json.dumps(found)) == found
    assert [one["key"] for one in found] == ["s1", "s2", "s3"]
    assert found[0]["label"] == "Springfield"
    assert found[0]["types"] == ["Place", "Town"]
    assert found[0]["fact"] == ["Springfield", "located_in", "Illinois"]
    assert found[2]["fact"] == ["Homer", "lives_in", "Springfield"]


def test_neighbors_of_one_name_do_not_tell_apart() -> None:
    graph = KnowledgeGraph.from_triples(
        [("a", "in", "s1"), ("b", "in", "s2")], labels={"a": "A", "b": "A", "s1": "S", "s2": "S"}
    )
    assert texts(GraphIndex.build(graph, HashedEmbeddings()), "a", "b") == {"a": "a", "b": "b"}
