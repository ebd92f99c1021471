"""Every method of the table over any graph, with drawn weights, and what the tests of methods read from Documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.index import embedding_name
from kg_retrievers.methods.gnn_rag.model import GraphReasonerConfig
from kg_retrievers.methods.registry import Method, find_method
from kg_retrievers.methods.subgraph_rag.model import TripleScorerConfig
from kg_retrievers.testing import tiny_graph

TINY = GraphIndex.build(tiny_graph(), HashedEmbeddings())
Facts = list[tuple[str, str, str]]

CONFIGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gnn-rag": (GraphReasonerConfig, {"width": 8, "instructions": 2, "layers": 2}),
    "subgraph-rag": (TripleScorerConfig, {"hidden": 8, "rank": 4}),
}


def drawn_model(
    method: str, embeddings: Embeddings | None = None, *, seed: int = 0, spread: float = 0.5, **config: Any
) -> Any:
    """Return a model of a method whose weights are all drawn, biases too.

    Args:
        method: The name of the method.
        embeddings: What it is for; None takes hashed ones.
        seed: What is drawn.
        spread: How far the weights are from 0.
        config: What differs from `CONFIGS`.
    """
    embeddings = embeddings or HashedEmbeddings()
    probe = np.array(embeddings.embed_documents([PROBE])[0], np.float32)
    kind, default = CONFIGS[method]
    settings, draw = kind(**({"dimension": len(probe)} | default | config)), np.random.default_rng(seed)
    weights = {name: draw.normal(0, spread, shape).astype(np.float32) for name, shape in settings.shapes.items()}
    model = find_method(method).load_model()
    return model(settings, weights, probe=probe, embeddings=embedding_name(embeddings))


def indexed(facts: Any, embeddings: Embeddings | None = None) -> GraphIndex:
    """Return the index of facts or of a graph; an index is left as it is."""
    if isinstance(facts, GraphIndex):
        return facts
    graph = facts if isinstance(facts, KnowledgeGraph) else KnowledgeGraph.from_triples(facts)
    return GraphIndex.build(graph, embeddings or HashedEmbeddings())


def built(method: Method, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
    """Return the retriever of a method over an index of hashed embeddings."""
    if method.runs_queries:
        pytest.importorskip("ladybug")
    if "model" in method.needs:
        fields["model"] = drawn_model(method.name)
    return method.load_retriever().from_index(index, **fields)


def triples(documents: list[Document]) -> list[Facts]:
    return [[tuple(triple) for triple in document.metadata["triples"]] for document in documents]


def scores(documents: list[Document]) -> list[float]:
    return [document.metadata["score"] for document in documents]


def answers(documents: list[Document]) -> list[list[str]]:
    return [document.metadata["answers"] for document in documents]
