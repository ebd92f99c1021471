"""The vectors of a graph: made in batches, in memory, in files or in a vector store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.quantization import quantized, rotated_bits, words_of
from kg_retrievers.bulk import Workers
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.parts import ColumnFile, FolderWriter
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import VectorCache, embed_batches
from kg_retrievers.index.parts import triple_texts
from kg_retrievers.index.quantized_search import QUANTIZED_FROM
from kg_retrievers.index.vector_store import VectorStoreSearch


class GraphVectors(NamedTuple):
    """What was made.

    Attributes:
        columns: The vectors by kind, and the bits of names where these are many.
        files: The files that hold some of the columns, by the same names.
        dimension: The length of the vectors; 0 where nothing was embedded.
    """

    columns: dict[str, Array]
    files: dict[str, ColumnFile]
    dimension: int


def embed_graph(
    graph: KnowledgeGraph,
    embeddings: Embeddings,
    *,
    triples: bool,
    store: VectorStoreSearch | None,
    cache: VectorCache | None,
    batch_size: int,
    progress: bool,
    workers: Workers | None,
    writer: FolderWriter | None,
) -> GraphVectors:
    """Embed the names, relations and types of a graph, and its triples where they are wanted.

    Args:
        graph: The graph.
        embeddings: The model.
        triples: Whether to embed the triples.
        store: Takes the vectors of names, which are then no column.
        cache: As of `GraphIndex.build`.
        batch_size: As of `GraphIndex.build`.
        progress: As of `GraphIndex.build`.
        workers: As of `GraphIndex.build`.
        writer: Vectors are written to its folder while they are made, unless there is a store.

    Raises:
        FileWriteError: If the disk is full, or this user may not write there.
    """
    texts = _GraphTexts(graph, triples)
    sinks = _Sinks(texts, store, writer, batch_size)
    try:
        for vectors in embed_batches(
            embeddings, texts, batch_size=batch_size, cache=cache, progress=progress, workers=workers
        ):
            sinks.append(vectors)
    except BaseException:
        for file in sinks.files.values():
            file.remove()
        raise
    return GraphVectors(sinks.arrays(), sinks.files, sinks.dimension)


class _GraphTexts(Sequence[str]):
    """All texts that are embedded: names, relations, types, triples; each is made when it is asked for."""

    def __init__(self, graph: KnowledgeGraph, triples: bool) -> None:
        self._graph = graph
        self._tables = {"names": graph.names, "relations": graph.relations, "types": graph.types}
        self.sizes = {kind: len(table) for kind, table in self._tables.items()}
        self.sizes |= {"triples": len(graph)} if triples else {}

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def __getitem__(self, wanted: slice) -> list[str]:  # type: ignore[override]
        parts = _parts(self.sizes, wanted.start, min(wanted.stop, len(self)))
        return [text for kind, part in parts for text in self.of(kind, part)]

    def of(self, kind: str, part: slice) -> list[str]:
        """Return some texts of a kind."""
        if kind == "triples":
            return triple_texts(self._graph, np.arange(part.start, part.stop))
        return [readable(name) for name in self._tables[kind][part]]


class _Memory:
    """Rows in memory, for so many."""

    def __init__(self, size: int, dtype: np.dtype[np.generic], width: int) -> None:
        self.rows = 0
        self._array = np.empty((size, width), dtype)

    def append(self, rows: Array) -> None:
        self._array[self.rows : self.rows + len(rows)] = rows
        self.rows += len(rows)

    def array(self) -> Array:
        return self._array


class _Stored:
    """Names in a vector store."""

    def __init__(self, store: VectorStoreSearch, texts: _GraphTexts, batch_size: int) -> None:
        self.rows = 0
        self._store, self._texts, self._batch_size = store, texts, batch_size

    def append(self, rows: Array) -> None:
        part = slice(self.rows, self.rows + len(rows))
        self._store.add(range(part.start, part.stop), self._texts.of("names", part), rows, self._batch_size)
        self.rows = part.stop


class _Sinks:
    """Where the vectors of each kind go, in the order of the kinds.

    Args:
        texts: The texts of all kinds.
        store: Takes the vectors of names, if there is one.
        writer: Its folder takes the others; memory does if there is none, or there is a store.
        batch_size: How many names one call of the store takes.
    """

    def __init__(
        self, texts: _GraphTexts, store: VectorStoreSearch | None, writer: FolderWriter | None, batch_size: int
    ) -> None:
        self._sizes, self._rows = texts.sizes, 0
        self._writer = None if store else writer
        #: Whether vectors of names are kept as 8-bit numbers and bits.
        self._is_large = store is None and texts.sizes["names"] >= QUANTIZED_FROM
        self._bits: Array | None = None
        self._made: dict[str, _Memory | _Stored | ColumnFile] = {}
        if store is not None:
            self._made["names"] = _Stored(store, texts, batch_size)
        self.dimension = 0

    @property
    def files(self) -> dict[str, ColumnFile]:
        """The kinds that are in files."""
        return {kind: sink for kind, sink in self._made.items() if isinstance(sink, ColumnFile)}

    def append(self, vectors: Array) -> None:
        """Take the vectors of the next texts."""
        self.dimension = vectors.shape[1]
        parts = _parts(self._sizes, self._rows, self._rows + len(vectors))
        self._rows += len(vectors)
        for kind, part in parts:
            rows, vectors = vectors[: part.stop - part.start], vectors[part.stop - part.start :]
            if kind not in self._made:
                self._made[kind] = self._make(kind)
            if self._is_large and kind == "names":
                rows = quantized(rows)
                if self._bits is None:
                    self._bits = np.empty((self._sizes[kind], words_of(self.dimension)), np.uint64)
                self._bits[part] = rotated_bits(rows)
            self._made[kind].append(rows)

    def arrays(self) -> dict[str, Array]:
        """Return the vectors by kind; those in a store are left out."""
        empty = _Memory(0, np.dtype(np.float32), self.dimension)
        sinks = {kind: self._made.get(kind, empty) for kind in self._sizes}
        arrays = {kind: sink.array() for kind, sink in sinks.items() if not isinstance(sink, _Stored)}
        return arrays if self._bits is None else arrays | {"names_bits": self._bits}

    def _make(self, kind: str) -> _Memory | ColumnFile:
        dtype = np.dtype(np.int8 if self._is_large and kind == "names" else np.float32)
        if self._writer is None:
            return _Memory(self._sizes[kind], dtype, self.dimension)
        return ColumnFile(self._writer.folder, f"index.{kind}", dtype, self.dimension)


def _parts(sizes: Mapping[str, int], start: int, stop: int) -> list[tuple[str, slice]]:
    """Return which parts of each kind a range of all kinds, one behind the other, holds."""
    parts, first = [], 0
    for kind, size in sizes.items():
        part = slice(max(start - first, 0), min(stop - first, size))
        if part.start < part.stop:
            parts.append((kind, part))
        first += size
    return parts
