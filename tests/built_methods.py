"""Every method of the table over any graph; models have drawn weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, UnionRetriever
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.methods.gnn_rag.config import GraphReasonerConfig
from kg_retrievers.methods.registry import METHODS, UNION, Method
from kg_retrievers.methods.subgraph_rag.config import TripleScorerConfig

CONFIGS: dict[str, Any] = {
    "gnn-rag": GraphReasonerConfig(dimension=512, width=8, instructions=2, layers=2),
    "subgraph-rag": TripleScorerConfig(dimension=512, hidden=8, rank=4),
}


def drawn_model(method: Method) -> Any:
    """Return a model of a method for hashed embeddings, with drawn weights."""
    config, draw = CONFIGS[method.name], np.random.default_rng(0)
    weights = {name: draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in config.shapes.items()}
    probe = np.array(HashedEmbeddings().embed_documents([PROBE])[0], np.float32)
    return method.load_model()(config, weights, probe=probe, embeddings="hashed")


def built(method: Method, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
    """Return the retriever of a method over an index of hashed embeddings."""
    if method is UNION:
        members = (built(one, index) for one in METHODS if one.name in ("simgrag", "kaping"))
        return UnionRetriever.of(*members, **{"k": 3, **fields})
    if method.runs_queries:
        pytest.importorskip("ladybug")
    if "model" in method.needs:
        fields["model"] = drawn_model(method)
    return method.load_retriever().from_index(index, **fields)
