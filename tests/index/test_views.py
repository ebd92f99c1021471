"""Views of an index: the same as an index of a graph that never had the hidden facts."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from benchmarks.views import compare
from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.index.embeddings import HashedEmbeddings

FACTS = [
    ("Ann Lee", "works for", "Acme", {"tenant": "a", "valid_to": "2003"}),
    ("Eve Stone", "works for", "Zed Works", {"tenant": "b"}),
    ("Eve Stone", "hides", "Ann Lee", {"tenant": "b"}),
]


def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())


def test_every_reply_equals_that_over_a_graph_without_the_hidden_facts() -> None:
    count, found, differ = compare(questions=75, seed=3)
    assert (count, differ) == (75, [])
    assert found > 50


def test_a_view_is_kept_and_can_be_pickled() -> None:
    whole = index()
    view = whole.view({"tenant": "a"})
    assert whole.view({"tenant": ["a"]}) is view
    assert whole.view() is whole
    again = pickle.loads(pickle.dumps(view))
    assert list(again.graph.entities) == list(view.graph.entities) == ["Ann Lee", "Acme"]
    assert view.view(as_of="2002").graph.fingerprint == view.graph.fingerprint


def test_a_view_embeds_nothing_again() -> None:
    class Counting(HashedEmbeddings):
        calls = 0

        def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
            Counting.calls += 1
            return super().embed_documents(list(texts))

    whole = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), Counting(16))
    before = Counting.calls
    view = whole.view({"tenant": "b"})
    assert Counting.calls - before <= 1  # the model is compared by one text
    assert [view.graph.entities[id] for id in view.nearest_entities(["Eve Stone"], 1)[0].ids] == ["Eve Stone"]


def test_hidden_names_are_in_no_answer_and_no_message() -> None:
    retriever = SimGRAGRetriever.from_index(index().view({"tenant": "a"}), on_refusal="raise")
    for question in (
        "Who hides Ann Lee?",
        "Who works for Zed Works?",
        "Tell me about Eve Ston",
        "What is in this graph?",
    ):
        try:
            said = "".join(document.page_content for document in retriever.invoke(question))
        except KGRetrieversError as error:
            said = str(error)
        assert not any(hidden in said for hidden in ("Eve Stone", "Zed Works", "hides") if hidden not in question)
    assert retriever.invoke("Who works for Acme?")[0].metadata["answers"] == ["Ann Lee"]


def test_evidence_shows_attributes() -> None:
    found = SimGRAGRetriever.from_index(index()).invoke("Who works for Acme?")[0]
    assert found.metadata["attributes"] == [[{"tenant": "a", "valid_to": "2003"}]]
    assert "Ann Lee -> works for (tenant: a; valid to: 2003) -> Acme" in found.page_content


def test_conditions_without_facts_are_an_error() -> None:
    with pytest.raises(KGRetrieversError, match="no fact satisfies these conditions"):
        index().view({"tenant": "c"})
