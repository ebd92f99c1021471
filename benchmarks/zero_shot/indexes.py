"""Indexes graphs by the embeddings that are named, with the vectors of names kept on disk over several runs."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from langchain_core.embeddings import Embeddings

from benchmarks.question_splits import minilm
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, default_embeddings, local_embeddings
from kg_retrievers.index import EmbeddingCache, embed

EmbeddingsName = Literal["default", "hashed", "minilm"]

#: Texts by whose vectors a version of the embeddings is known.
PROBES = ("who directed the film", "place of birth", "1984")


def default_cache() -> Path:
    """Return the folder of the user's cache where vectors are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kg-retrievers" / "benchmarks"


class Indexer:
    """Indexes graphs.

    Args:
        name: The embeddings: the package's default, the hashed ones, or all-MiniLM-L6-v2.
        folder: Where vectors are kept.
    """

    def __init__(self, name: EmbeddingsName, folder: Path) -> None:
        """Load the embeddings."""
        self.embeddings = _load(name)
        digest = blake2b(embed(self.embeddings, PROBES).tobytes(), digest_size=8).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        self.cache = EmbeddingCache(folder / f"{name}-{digest}.sqlite")

    def __call__(self, graph: KnowledgeGraph) -> GraphIndex:
        """Return the index of a graph."""
        return GraphIndex.build(graph, self.embeddings, cache=self.cache)


def _load(name: EmbeddingsName) -> Embeddings:
    if name == "minilm":
        return local_embeddings(minilm())
    return HashedEmbeddings() if name == "hashed" else default_embeddings()
