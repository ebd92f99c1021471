"""Names of a question that are read as entities of another name."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.core.documents import tell_readings
from kg_retrievers.methods.registry import find_method

GRAPH = KnowledgeGraph.from_triples(
    [("Q1", "owned_by", "Team Ruby"), ("Checkout", "owned_by", "Team Opal")],
    labels={"Q1": "Payments"},
    aliases={"Q1": ["Paygate"]},
)
INDEX = GraphIndex.build(GRAPH, default_embeddings())


@pytest.mark.parametrize("method", ["simgrag", "rog", "neighborhood", "sg-rag", "g-retriever"])
@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Who owns Paymnets?", "Paymnets"),
        ("Who owns Paygate?", "Paygate"),
        ("Who owns Payments?", None),
        ("who owns payments?", None),
        ("Who owns Q1?", None),
    ],
)
def test_what_is_read_as_another_name_stands_in_the_details(method: str, question: str, read: str | None) -> None:
    retriever: Any = find_method(method).load_retriever()
    documents = retriever.from_index(INDEX).invoke(question)
    told = documents[0].metadata["details"].get("read_as")
    assert told == ([{"text": read, "key": "Q1", "label": "Payments"}] if read else None)
    assert tell_readings(documents) == (f"'{read}' is read as 'Payments'." if read else "")


@pytest.mark.parametrize("method", ["simgrag", "sg-rag"])
@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How many people work for Tocul Systems?", 2),
        ("How many people born after 1990 work for Tocul Systems?", 0),
        ("Does Cid Fox work for Tocul Systems?", False),
        ("Which people do not work for Tocul Systems?", None),
    ],
)
def test_an_operation_says_of_which_entity_it_is(method: str, question: str, value: int | None) -> None:
    facts = [
        (person, relation, what)
        for person, year, firm in [("Ann Lee", 1970, "Tohul"), ("Bob Ray", 1980, "Tohul"), ("Cid Fox", 1985, "Zorba")]
        for relation, what in [("born in", str(year)), ("works for", f"{firm} Systems")]
    ]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
    retriever: Any = find_method(method).load_retriever()
    documents = retriever.from_index(index).invoke(question)
    assert documents[0].metadata["value"] == value
    assert tell_readings(documents) == "'Tocul Systems' is read as 'Tohul Systems'."
