"""Vectors of triples: all from the build, or those that a question needs when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.changes import triple_texts
from kg_retrievers.index.vector_store import ExactSearch

#: How many triples are embedded at once.
TRIPLE_BATCH = 1024

#: Similarities of triples are rounded to so many decimals. One text embedded in two batches has cosines that differ by
#: up to 2e-7 (MiniLM): of 6 decimals, up to 3 % of them would still differ, of 5 only 0.3 %.
SIMILARITY_DECIMALS = 5


class TripleVectors:
    """The vectors of the triples of a graph, made when they are first needed. Safe to share between threads.

    Args:
        graph: The graph.
        dimension: The length of the vectors.
        embed: Embeds texts.
        search: The vectors of all triples, where they are made.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        dimension: int,
        embed: Callable[[Sequence[str]], Array],
        search: ExactSearch | None,
    ) -> None:
        """Take what is made."""
        self._graph, self._dimension, self._embed = graph, dimension, embed
        # The vectors, and which of them are embedded.
        self._made = None if search is None else (search.vectors, np.broadcast_to(True, len(search.vectors)))
        self._rows = None if search is None else search.rows
        self._lock = LocalLock()

    def search(self) -> ExactSearch | None:
        """Return the vectors of all triples; None unless all are embedded."""
        made = self._made
        return ExactSearch(made[0], self._rows) if made is not None and made[1].all() else None

    def similarities(self, direction: Array, triples: Array | None) -> Array:
        """Return the cosine of a vector and each of the given triples; see `GraphIndex.triple_similarities`.

        Args:
            direction: A unit vector.
            triples: Ids of triples; all where it is None.
        """
        direction = direction.astype(np.float64)
        ids = np.arange(len(self._graph)) if triples is None else triples
        vectors = self._vectors(ids)
        rows = ids if self._rows is None else self._rows[ids]
        # In float64, so that it does not matter which rows are beside a row; BLAS threads would wait for each other.
        if triples is None:
            cosines: Array = np.einsum("ij,j->i", vectors, direction)[rows]
        else:
            cosines = np.einsum("ij,j->i", vectors[rows], direction)
        return (np.round(cosines, SIMILARITY_DECIMALS) + 0.0).astype(np.float32)  # 0.0 instead of -0.0

    def _vectors(self, ids: Array) -> Array:
        """Return the vectors of triples; those of these ids are made where they are missing."""
        made = self._made
        if made is not None and made[1][ids].all():
            return made[0]
        with self._lock:
            if self._made is None:
                size = len(self._graph)
                self._made = np.zeros((size, self._dimension), np.float32), np.zeros(size, np.bool_)
            vectors, embedded = self._made
            new = np.unique(ids[~embedded[ids]])
            for start in range(0, len(new), TRIPLE_BATCH):
                batch = new[start : start + TRIPLE_BATCH]
                vectors[batch] = self._embed(triple_texts(self._graph, batch))
                embedded[batch] = True
            return vectors
