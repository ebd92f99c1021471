"""The vectors of all that is embedded of a graph: made in batches, in memory or in files that survive a break."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.quantization import quantized, rotated_bits, words_of
from kg_retrievers.bulk import Workers
from kg_retrievers.errors import FileWriteError
from kg_retrievers.file_writing import FULL, write_error
from kg_retrievers.graph.columns import Array, fingerprint
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.column_file import ColumnFile
from kg_retrievers.graph.storage.writer import FolderWriter
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.changes import triple_texts
from kg_retrievers.index.embedding_cache import VectorCache
from kg_retrievers.index.embeddings import embed_batches, embedding_name, names_its_model
from kg_retrievers.index.quantized_search import QUANTIZED_FROM
from kg_retrievers.index.vector_store import VectorStoreSearch

_LOGGER = logging.getLogger(__name__)

#: How many bytes the table of names takes for each, about.
_NAME_BYTES = 24


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
        writer: Vectors are written to its folder while they are made, unless there is a store. If the model tells its
            name, those that a build of the same graph wrote there before it was broken off are not made again; the
            log tells how many.

    Raises:
        FileWriteError: If the disk is full; the message says how much is still to be written.
    """
    texts = _GraphTexts(graph, triples)
    is_large = store is None and len(graph.names) >= QUANTIZED_FROM
    sinks = _Sinks(texts.sizes, is_large)
    resumes = names_its_model(embeddings)
    if store is not None:
        sinks.made["names"] = _Stored(store, texts, batch_size)
    elif writer is not None:
        about = {"graph": graph.fingerprint, "model": embedding_name(embeddings), "before": writer.before.version}
        sinks.write_to(writer.folder, fingerprint({}, about | {"large": is_large}), resumes)
        writer.sweep({file.name for file in sinks.files.values()})
        if sinks.rows:
            _LOGGER.info(
                "%s: goes on with %s of %s vectors of an interrupted run",
                writer.folder,
                f"{sinks.rows:,}",
                f"{len(texts):,}",
            )
    try:
        batches = embed_batches(
            embeddings,
            texts,
            start=sinks.rows,
            width=sinks.dimension,
            batch_size=batch_size,
            cache=cache,
            progress=progress,
            workers=workers,
        )
        for vectors in batches:
            sinks.append(vectors)
    except BaseException as error:
        for file in sinks.files.values():
            file.close() if resumes else file.remove()
        if writer is not None and isinstance(error, FileWriteError) and error.errno in FULL:
            needed = sinks.size - (sinks.written if resumes else 0) + _size_beside(graph)
            raise write_error(writer.folder, str(error.strerror), error.errno, needed) from error
        raise
    return GraphVectors(sinks.arrays(), sinks.files, sinks.dimension)


def _size_beside(graph: KnowledgeGraph) -> int:
    """Return how many bytes the graph and the table of names take beside the vectors, about."""
    columns = graph.to_part().columns.values()
    return sum(column.nbytes for column in columns if isinstance(column, np.ndarray)) + _NAME_BYTES * len(graph.names)


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
        self.rows, self.width = 0, width
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
        sizes: How many texts each kind has.
        is_large: Whether vectors of names are kept as 8-bit numbers and bits.
    """

    def __init__(self, sizes: Mapping[str, int], is_large: bool) -> None:
        self._sizes, self._is_large = sizes, is_large
        self._bits: Array | None = None
        self.made: dict[str, _Memory | _Stored | ColumnFile] = {}
        self.dimension = 0
        self._folder: tuple[Path, str] | None = None

    def write_to(self, folder: Path, key: str, resumes: bool) -> None:
        """Write to files with this key; go on with those that are there, as far as each kind before is complete."""
        self._folder = folder, key
        goes_on = resumes
        for kind, size in self._sizes.items():
            file = ColumnFile.found(folder, f"index.{kind}", key, self._dtype(kind))
            if file is None:
                goes_on = goes_on and not size
                continue
            if not goes_on:  # its vectors may be those of another model, and of another length
                file.remove()
                continue
            file.cut(min(file.rows, size))
            goes_on = file.rows == size
            self.made[kind], self.dimension = file, file.width
            if self._is_large and kind == "names":
                self._keep_bits(0, file.array())

    @property
    def rows(self) -> int:
        """How many vectors are made."""
        return sum(sink.rows for sink in self.made.values())

    @property
    def files(self) -> dict[str, ColumnFile]:
        """The kinds that are in files."""
        return {kind: sink for kind, sink in self.made.items() if isinstance(sink, ColumnFile)}

    @property
    def size(self) -> int:
        """How many bytes all vectors take, and the bits of names."""
        bits = self._sizes["names"] * words_of(self.dimension) * 8 if self._is_large else 0
        return sum(size * self.dimension * self._dtype(kind).itemsize for kind, size in self._sizes.items()) + bits

    @property
    def written(self) -> int:
        """How many bytes of them are in files."""
        return sum(file.rows * file.width * file.dtype.itemsize for file in self.files.values())

    def append(self, vectors: Array) -> None:
        """Take the vectors of the next texts."""
        self.dimension = self.dimension or vectors.shape[1]
        start = self.rows
        for kind, part in _parts(self._sizes, start, start + len(vectors)):
            rows, vectors = vectors[: part.stop - part.start], vectors[part.stop - part.start :]
            if kind not in self.made:
                self.made[kind] = self._make(kind)
            if self._is_large and kind == "names":
                rows = quantized(rows)
                self._keep_bits(part.start, rows)
            self.made[kind].append(rows)

    def arrays(self) -> dict[str, Array]:
        """Return the vectors by kind; those in a store are left out."""
        empty = _Memory(0, np.dtype(np.float32), self.dimension)
        sinks = {kind: self.made.get(kind, empty) for kind in self._sizes}
        arrays = {kind: sink.array() for kind, sink in sinks.items() if not isinstance(sink, _Stored)}
        return arrays if self._bits is None else arrays | {"names_bits": self._bits}

    def _keep_bits(self, first: int, rows: Array) -> None:
        if self._bits is None:
            self._bits = np.empty((self._sizes["names"], words_of(self.dimension)), np.uint64)
        self._bits[first : first + len(rows)] = rotated_bits(rows)

    def _dtype(self, kind: str) -> np.dtype[np.generic]:
        return np.dtype(np.int8 if self._is_large and kind == "names" else np.float32)

    def _make(self, kind: str) -> _Memory | ColumnFile:
        if self._folder is None:
            return _Memory(self._sizes[kind], self._dtype(kind), self.dimension)
        folder, key = self._folder
        return ColumnFile(folder, f"index.{kind}", key, self._dtype(kind), self.dimension)


def _parts(sizes: Mapping[str, int], start: int, stop: int) -> list[tuple[str, slice]]:
    """Return which parts of each kind a range of all kinds, one behind the other, holds."""
    parts, first = [], 0
    for kind, size in sizes.items():
        part = slice(max(start - first, 0), min(stop - first, size))
        if part.start < part.stop:
            parts.append((kind, part))
        first += size
    return parts
