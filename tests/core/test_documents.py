"""Documents say where their facts are from, and so does what is made of them."""

from __future__ import annotations

import json

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    SimGRAGRetriever,
    cited_answer_chain,
    fact_verification_chain,
    flat_metadata,
)
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.testing import ScriptedChatModel

QUESTION = "Who directed Her?"
DIRECTED = ["Her", "directed_by", "Spike Jonze"]
SOURCES = ["credits.csv", "https://example.org/films"]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    """A graph with a fact of two sources, one of one source and one of none."""
    builder = GraphBuilder()
    for source in SOURCES:
        builder.add("Her", "directed_by", "Spike Jonze", {"source": source})
    builder.add("Adaptation", "directed_by", "Spike Jonze", {"source": "credits.csv"})
    builder.add("Her", "starring", "Amy Adams")
    return KnowledgeGraph._from_builder(builder)


@pytest.fixture(scope="module")
def retriever(graph: KnowledgeGraph) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()), min_confidence=0)


def test_sources_stand_beside_the_triples(retriever: SimGRAGRetriever) -> None:
    metadata = retriever.invoke(QUESTION)[0].metadata
    assert metadata["triples"] == [DIRECTED]
    assert metadata["sources"] == [SOURCES]
    assert retriever.invoke("Who starred in Her?")[0].metadata["sources"] == [[]]


def test_a_graph_without_sources_gives_documents_without(retriever: SimGRAGRetriever, graph: KnowledgeGraph) -> None:
    plain = GraphIndex.build(KnowledgeGraph.from_triples(graph.triples()), HashedEmbeddings())
    found = SimGRAGRetriever.from_index(plain, min_confidence=0).invoke(QUESTION)[0]
    with_sources = retriever.invoke(QUESTION)[0]
    assert "sources" not in found.metadata
    assert found.id == with_sources.id
    assert found.page_content == with_sources.page_content


def test_single_triples_have_their_own_sources(retriever: SimGRAGRetriever) -> None:
    by_triple = retriever.model_copy(update={"granularity": "triple"})
    found = by_triple.invoke("Which films did Spike Jonze direct?", k=2)
    by_head = {document.metadata["triples"][0][0]: document.metadata["sources"] for document in found}
    assert by_head == {"Her": [SOURCES], "Adaptation": [["credits.csv"]]}


def test_citations_say_where_their_facts_are_from(retriever: SimGRAGRetriever) -> None:
    cited = cited_answer_chain(retriever).invoke(QUESTION)
    assert [one["sources"] for one in cited["citations"]] == [SOURCES]
    reply = json.dumps({"explanation": "", "answers": ["Spike Jonze"], "citations": [1]})
    cited = cited_answer_chain(retriever, ScriptedChatModel(replies=[reply])).invoke(QUESTION)
    assert [one["sources"] for one in cited["citations"]] == [SOURCES]
    reply = json.dumps({"explanation": "", "verdict": "supported", "citations": [1]})
    verdict = fact_verification_chain(retriever, ScriptedChatModel(replies=[reply])).invoke("Spike Jonze directed Her.")
    assert [one["sources"] for one in verdict["citations"]] == [SOURCES]


def test_flat_metadata_holds_what_vector_stores_take(retriever: SimGRAGRetriever) -> None:
    document = retriever.invoke(QUESTION)[0]
    flat = flat_metadata(document)
    assert {type(value) for value in flat.metadata.values()} <= {str, int, float, bool}
    assert json.loads(flat.metadata["triples"]) == document.metadata["triples"]
    assert (flat.id, flat.page_content) == (document.id, document.page_content)
