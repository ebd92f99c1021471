"""What is shipped for tests."""

from __future__ import annotations

import sys

import pytest

from kg_retrievers import testing
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.testing import tiny_graph


def test_tiny_graph_holds_what_trips_retrievers_up() -> None:
    graph = tiny_graph()
    triples = list(graph.triples())
    assert len(triples) == 16
    assert [triple for triple in triples if triple.head == triple.tail]
    pairs = [(triple.head, triple.tail) for triple in triples]
    assert len(set(pairs)) < len(pairs)
    assert graph.entities_named("Dune") == ["Dune (1984)", "Dune (2021)"]
    assert not all(graph.label(key).isascii() for key in graph.entities)
    assert any(graph.label(key) != key for key in graph.entities)
    assert [key for key in graph.entities if not any(key in (triple.head, triple.tail) for triple in triples)]
    assert any(graph.types_of(key) for key in graph.entities)
    assert not all(graph.types_of(key) for key in graph.entities)
    assert graph.fingerprint == tiny_graph().fingerprint


def test_contract_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kg_retrievers.testing.contract")
    monkeypatch.setitem(sys.modules, "langchain_tests.integration_tests", None)
    assert testing.ScriptedChatModel(replies=["yes"]).invoke("?").text == "yes"
    with pytest.raises(MissingExtraError, match=r"pip install .*\[test\]") as caught:
        testing.__getattr__("RetrieverContract")
    assert caught.value.extra == "test"
