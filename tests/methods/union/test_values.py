"""A union of which a member carries out an operation."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Pattern,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    UnionRetriever,
    Unknown,
    answer_chain,
)
from kg_retrievers.graph.operations import Condition, Operation

FACTS = [("Her", "directed_by", "Spike Jonze"), ("Adaptation", "directed_by", "Spike Jonze")]
COUNT = Pattern.of((Unknown("film"), "directed_by", "Spike Jonze"), target="film", operation=Operation("count"))
NONE = Pattern.of(
    ("Her", "directed_by", Unknown("who")),
    conditions=[Condition("who", "contains", "Gondry")],
    operation=Operation("exists"),
)


def union(pattern: Pattern, **fields: Any) -> UnionRetriever:
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
    generator: Any = RunnableLambda(lambda _: pattern)
    simgrag = SimGRAGRetriever.from_index(index, pattern_generator=generator)
    return UnionRetriever.of(TripleSimilarityRetriever.from_index(index), simgrag, **fields)


@pytest.mark.parametrize(("pattern", "value", "answer"), [(COUNT, 2, "2"), (NONE, False, "no")])
@pytest.mark.parametrize("fields", [{}, {"granularity": "triple"}], ids=str)
def test_the_value_is_that_of_the_member_that_gives_one(
    pattern: Pattern, value: Any, answer: str, fields: dict[str, Any]
) -> None:
    retriever = union(pattern, **fields)
    documents = retriever.invoke("How many films did Spike Jonze direct?")
    assert {document.metadata["value"] for document in documents} == {value}
    assert all([*document.metadata["details"]["found_by"]] == ["SimGRAGRetriever"] for document in documents)
    assert answer_chain(retriever).invoke("How many films did Spike Jonze direct?") == answer


def test_a_union_carries_out_operations_where_a_member_does() -> None:
    both = union(COUNT)
    assert both.operations
    assert not UnionRetriever.of(both.retrievers[0]).operations
    assert UnionRetriever.of(both).operations


def test_rows_with_a_value_may_have_no_triples() -> None:
    row = {"triples": [], "score": 1.0, "value": 0}
    (document,) = union(COUNT).invoke("?", found={"SimGRAGRetriever": [row]})
    assert (document.metadata["value"], document.page_content) == (0, "Result: 0")
