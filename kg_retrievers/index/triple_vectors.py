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
        self._whole = search
        # The vectors that are made, in the order in which they were needed; behind them is room for more.
        self._vectors, self._count = np.empty((0, dimension), np.float32), 0
        # The row of each triple, counted from 1; 0 where it is not made. The system keeps what is never written.
        self._rows = np.zeros(len(graph) if search is None else 0, np.int32)
        self._lock = LocalLock()

    def search(self) -> ExactSearch | None:
        """Return the vectors of all triples; None unless all are embedded."""
        if self._whole is None and 0 < len(self._graph) == self._count:
            self._whole = ExactSearch(self._vectors[: self._count], self._rows - 1)
        return self._whole

    def similarities(self, direction: Array, triples: Array | None) -> Array:
        """Return the cosine of a vector and each of the given triples; see `GraphIndex.triple_similarities`.

        Args:
            direction: A unit vector.
            triples: Ids of triples; all where it is None.
        """
        direction = direction.astype(np.float64)
        ids = np.arange(len(self._graph)) if triples is None else triples
        vectors, rows = self._made(ids)
        # In float64, so that it does not matter which rows are beside a row; BLAS threads would wait for each other.
        if triples is None:
            cosines: Array = np.einsum("ij,j->i", vectors, direction)[rows]
        else:
            cosines = np.einsum("ij,j->i", vectors[rows], direction)
        return (np.round(cosines, SIMILARITY_DECIMALS) + 0.0).astype(np.float32)  # 0.0 instead of -0.0

    def _made(self, ids: Array) -> tuple[Array, Array]:
        """Return vectors, and the rows of some triples among them; those that are missing are made."""
        if (whole := self.search()) is not None:
            return whole.vectors, ids if whole.rows is None else whole.rows[ids]
        rows = self._rows[ids]
        if rows.all():  # nobody waits for a model that makes others
            return self._vectors, rows - 1
        with self._lock:
            new = np.unique(ids[self._rows[ids] == 0])
            if len(new):
                self._reserve(self._count + len(new))
            for start in range(0, len(new), TRIPLE_BATCH):
                batch = new[start : start + TRIPLE_BATCH]
                end = self._count + len(batch)
                self._vectors[self._count : end] = self._embed(triple_texts(self._graph, batch))
                self._rows[batch] = np.arange(self._count, end) + 1
                self._count = end
            return self._vectors[: self._count], self._rows[ids] - 1

    def _reserve(self, count: int) -> None:
        """Make room for so many vectors, and for as many again where the graph has them."""
        if count > len(self._vectors):
            larger = np.empty((min(len(self._graph), 2 * count), self._dimension), np.float32)
            larger[: self._count] = self._vectors[: self._count]
            self._vectors = larger
