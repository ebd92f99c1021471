"""Tracing by OpenInference, which reads LangChain's callbacks."""

from __future__ import annotations

import json

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kg_retrievers import GraphIndex, HashedEmbeddings, SimGRAGRetriever
from kg_retrievers.testing import tiny_graph


@pytest.fixture
def exporter():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


async def test_the_span_of_a_retriever_carries_its_documents(exporter: InMemorySpanExporter) -> None:
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()))
    documents = await retriever.ainvoke("Who directed Amélie?")
    spans = exporter.get_finished_spans()
    (found,) = (span for span in spans if span.name == "SimGRAGRetriever")
    told = dict(found.attributes or {})
    assert told["openinference.span.kind"] == "RETRIEVER"
    assert documents
    for place, document in enumerate(documents):
        assert told[f"retrieval.documents.{place}.document.content"] == document.page_content
        metadata = json.loads(str(told[f"retrieval.documents.{place}.document.metadata"]))
        assert metadata["triples"] == [list(triple) for triple in document.metadata["triples"]]
    stages = [span for span in spans if span.parent and span.parent.span_id == found.context.span_id]
    assert [span.name for span in stages] == ["generate_pattern", "match_subgraphs"]
