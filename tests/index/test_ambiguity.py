"""What tells entities of one name apart."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import is_backward
from kg_retrievers.index import GraphIndex, HashedEmbeddings, ambiguity, tell_apart

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


def plain_own_links(graph: KnowledgeGraph, keys: list[str]) -> list[tuple[int, str] | None]:
    """Find the best fact of each entity that no other has, fact by fact."""
    adjacency, links = graph.adjacency, []
    for key in keys:
        row = adjacency.row(graph.entities.find(key))
        entries = range(row.start, min(row.stop, row.start + ambiguity.MAX_FACTS))
        links.append(
            [(int(adjacency.labels[at]), graph.label(graph.entities[adjacency.neighbors[at]])) for at in entries]
        )
    bearers = Counter(link for of_one in links for link in set(of_one))
    own = [[link for link in of_one if bearers[link] == 1] for of_one in links]
    told, shared = (
        Counter(label for of_one in some for label in {link[0] for link in of_one}) for some in (own, links)
    )
    values = Counter(link[0] for of_one in links for link in of_one)

    def cost(link: tuple[int, str]) -> tuple[object, ...]:
        return -told[link[0]], -shared[link[0]], is_backward(link[0]), values[link[0]], link

    return [min(of_one, key=cost) if of_one else None for of_one in own]


ENDS = st.sampled_from("abcdef")


@given(
    st.lists(st.tuples(ENDS, st.sampled_from(["r", "s", "t"]), ENDS), min_size=1, max_size=40),
    st.dictionaries(ENDS, st.sampled_from(["A", "B", "é"])),
    st.sampled_from([2, 1024]),
)
def test_as_fact_by_fact(facts: list[tuple[str, str, str]], labels: dict[str, str], most: int) -> None:
    keys = {key for head, _, tail in facts for key in (head, tail)}
    graph = KnowledgeGraph.from_triples(facts, labels={key: labels[key] for key in labels.keys() & keys})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ambiguity, "MAX_FACTS", most)
        for some in (list(graph.entities), list(graph.entities)[:2], []):
            ids = np.array([graph.entities.find(key) for key in some], np.int64)
            assert ambiguity._own_links(graph, ids) == plain_own_links(graph, some)
