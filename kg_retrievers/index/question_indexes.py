"""Index many small graphs, each in some milliseconds.

An example is questions that have a graph each.
"""

from __future__ import annotations

from pathlib import Path

from langchain_core.embeddings import Embeddings

from kg_retrievers.graph.cache import LocalLock, Recent
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.embeddings import EmbeddingCache
from kg_retrievers.index.graph_index import GraphIndex

#: How many vectors of names stay in memory, the latest ones: 0.3 GB with 384 numbers each.
KEPT_VECTORS = 200_000

#: How many indexes are kept, those made last, since neighbouring questions may share a graph.
KEPT_INDEXES = 8


class QuestionIndexes:
    """Index one graph after the other.

    A text that several graphs hold is embedded once.

    The cost of an index is the embedding of names that no earlier graph had. Without any, it takes 3 to 5 ms for 1,000
    triples.

    Args:
        embeddings: Any LangChain embeddings.
        cache: A file that keeps vectors from one run to the next. It is made if it is missing.

    Attributes:
        cache: The vectors of names, with the latest ones in memory.

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

    def __init__(self, embeddings: Embeddings, cache: str | Path | None = None) -> None:
        """Open the cache."""
        self.embeddings, self.cache = embeddings, EmbeddingCache(cache, KEPT_VECTORS)
        self._recent: Recent[GraphIndex] = Recent(KEPT_INDEXES)
        self._lock = LocalLock()

    def __reduce__(self) -> tuple[type[QuestionIndexes], tuple[Embeddings, Path | None]]:
        """Copy and pickle without the indexes."""
        return QuestionIndexes, (self.embeddings, self.cache.path)

    def of(self, graph: KnowledgeGraph) -> GraphIndex:
        """Return the index of a graph."""

        def build(_: list[KnowledgeGraph]) -> dict[KnowledgeGraph, GraphIndex]:
            return {graph: GraphIndex.build(graph, self.embeddings, cache=self.cache)}

        with self._lock:  # else two threads may build the same one
            return self._recent.get_or_make([graph], build)[graph]
