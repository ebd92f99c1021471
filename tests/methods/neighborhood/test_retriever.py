"""The k-hop neighbourhood under the contract of all retrievers, and its facts by hand."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, NeighborhoodRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.testing import RetrieverContract

#: A chain of four facts, and a fact between two entities at the rim of the first hop.
FACTS = [
    ("Alpha", "joins", "Beta"),
    ("Alpha", "joins", "Gamma"),
    ("Beta", "likes", "Gamma"),
    ("Gamma", "joins", "Delta"),
    ("Epsilon", "joins", "Delta"),
]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())


class TestNeighborhood(RetrieverContract):
    retriever_class = NeighborhoodRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"granularity": "triple", "max_hops": 2}
    takes_llm = False


def around(**fields: Any) -> NeighborhoodRetriever:
    return NeighborhoodRetriever.from_index(INDEX, **fields)


@pytest.mark.parametrize(
    ("max_hops", "facts"), [(1, FACTS[:2]), (2, [*FACTS[:2], *FACTS[2:4]]), (3, FACTS)], ids=["one", "two", "three"]
)
def test_facts_come_by_distance(max_hops: int, facts: list[tuple[str, str, str]]) -> None:
    (document,) = around(max_hops=max_hops).invoke("What is Alpha?")
    assert [tuple(triple) for triple in document.metadata["triples"]] == facts
    assert document.metadata["score"] == 1
    assert not document.metadata["truncated"]


def test_single_facts_are_scored_by_distance() -> None:
    documents = around(max_hops=3, granularity="triple", k=10).invoke("What is Alpha?")
    assert [document.metadata["score"] for document in documents] == [1, 1, 1 / 2, 1 / 2, 1 / 3]


def test_several_entities() -> None:
    documents = around(granularity="triple", k=10).invoke("What have Alpha and Epsilon in common?")
    triples = {tuple(document.metadata["triples"][0]) for document in documents}
    assert triples == {FACTS[0], FACTS[1], FACTS[4]}


def test_seed_entities_are_taken() -> None:
    (document,) = around().invoke("What is it?", seed_entities=["Delta"])
    assert [tuple(triple) for triple in document.metadata["triples"]] == FACTS[3:]


def test_limits_are_told() -> None:
    (document,) = around(max_hops=3, max_triples=2).invoke("What is Alpha?")
    assert len(document.metadata["triples"]) == 2
    assert document.metadata["truncated"]
    (document,) = around(max_hops=3, max_nodes=2).invoke("What is Alpha?")
    assert document.metadata["truncated"]


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="it is not trained"):
        around(model="folder")
    with pytest.raises(InvalidArgumentError, match="max_hops"):
        around(max_hops=0)
    with pytest.raises(EntityLinkingError):
        around(on_refusal="raise").invoke("What is Omega?")
