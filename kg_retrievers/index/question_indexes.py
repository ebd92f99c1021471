"""An index for each of many small graphs, as of questions that have a graph each, in some milliseconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from langchain_core.embeddings import Embeddings

from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.embeddings import EmbeddingCache
from kg_retrievers.index.graph_index import GraphIndex

#: How many vectors of names stay in memory, those used last: 0.3 GB with 384 numbers each.
KEPT_VECTORS = 200_000

#: How many indexes are kept, those used last, since neighbouring questions may share a graph.
KEPT_INDEXES = 8


class KeptVectors:
    """Vectors in memory by text, those used last, before a cache on disk. Safe to share between threads.

    Args:
        cache: The cache on disk, if there is one.
        most: How many vectors stay in memory.
    """

    def __init__(self, cache: EmbeddingCache | None = None, most: int = KEPT_VECTORS) -> None:
        """Start empty."""
        self._cache, self._most = cache, most
        self._vectors: OrderedDict[tuple[str, str], Array] = OrderedDict()
        self._lock = LocalLock()

    def __reduce__(self) -> tuple[type[KeptVectors], tuple[EmbeddingCache | None, int]]:
        """Copy and pickle without the vectors in memory."""
        return KeptVectors, (self._cache, self._most)

    def get(self, name: str, texts: Sequence[str]) -> dict[str, Array]:
        """Return the vectors that are known, float32 of shape (d), by text."""
        with self._lock:
            found = {text: self._vectors[name, text] for text in texts if (name, text) in self._vectors}
            for text in found:
                self._vectors.move_to_end((name, text))
        missing = [text for text in texts if text not in found]
        if self._cache and missing:
            read = self._cache.get(name, missing)
            self._keep(name, read)
            found |= read
        return found

    def put(self, name: str, vectors: Mapping[str, Array]) -> None:
        """Keep vectors, float32 of shape (d), by text; on disk, too, where there is a cache."""
        self._keep(name, vectors)
        if self._cache:
            self._cache.put(name, vectors)

    def _keep(self, name: str, vectors: Mapping[str, Array]) -> None:
        with self._lock:
            self._vectors |= {(name, text): vector for text, vector in vectors.items()}
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)


class QuestionIndexes:
    """Indexes one graph after the other; a text that several graphs hold is embedded once.

    Cost of an index: that of embedding the names that no earlier graph had; without any, 3 to 5 ms for 1,000 triples.

    Args:
        embeddings: Any LangChain embeddings.
        cache: A file that keeps vectors from one run to the next, which is made where there is none; or vectors that
            are shared with others.

    Raises:
        IndexLoadError: If the file is damaged.
        FileWriteError: If it cannot be written.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> indexes = QuestionIndexes(default_embeddings())
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> indexes.of(graph) is indexes.of(graph)
        True
    """

    def __init__(self, embeddings: Embeddings, cache: KeptVectors | str | Path | None = None) -> None:
        """Open the cache."""
        self.embeddings = embeddings
        kept = None if cache is None or isinstance(cache, KeptVectors) else EmbeddingCache(cache)
        self._vectors = cache if isinstance(cache, KeptVectors) else KeptVectors(kept)
        self._recent: list[GraphIndex] = []
        self._lock = LocalLock()

    def __reduce__(self) -> tuple[type[QuestionIndexes], tuple[Embeddings, KeptVectors]]:
        """Copy and pickle without the indexes."""
        return QuestionIndexes, (self.embeddings, self._vectors)

    def of(self, graph: KnowledgeGraph) -> GraphIndex:
        """Return the index of a graph."""
        with self._lock:
            index = next((one for one in self._recent if one.graph is graph), None)
            if index is None:
                index = GraphIndex.build(graph, self.embeddings, cache=self._vectors)
            self._recent = [index, *(one for one in self._recent if one is not index)][:KEPT_INDEXES]
            return index
