"""The parts of an index: its searches, its files, its vectors, and the texts that a change embeds again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.quantization import quantized, rotated_bits, words_of
from kg_retrievers.bulk import Workers
from kg_retrievers.errors import IndexLoadError, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.changes.changing import GraphChange
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.bounds import check_ids, check_shape, check_starts
from kg_retrievers.graph.storage.parts import CHECKED, Column, ColumnFile, FolderWriter, Grown, OpenedPart
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import HashedEmbeddings, VectorCache, embed_batches, embedding_name
from kg_retrievers.index.quantized_search import QUANTIZED_FROM, QuantizedSearch
from kg_retrievers.index.static_embeddings import default_embeddings
from kg_retrievers.index.vector_store import ExactSearch, VectorStoreSearch, stale_store

#: The greatest share of the rows of a column of vectors that may belong to nothing.
MOST_UNUSED = 0.25


class VectorChange(NamedTuple):
    """The vectors of one kind after a change.

    Attributes:
        rows: The row that each vector had, -1 where it is new: int64, shape (n).
        new: The new vectors in the order of their ids: float32, shape (m, d).
    """

    rows: Array
    new: Array

    @property
    def is_new(self) -> Array:
        """Which vectors are new."""
        return self.rows < 0

    def whole(self, before: Array, new: Array) -> Array:
        """Return a column of all vectors, given that of before and that of the new ones."""
        column = np.empty((len(self.rows), new.shape[1]), new.dtype)
        if not self.is_new.all():
            column[~self.is_new] = before[self.rows[~self.is_new]]
        column[self.is_new] = new
        return column

    def grown_rows(self, before: int) -> Array:
        """Return the row of each vector if the new ones are put behind so many: int64."""
        rows = self.rows.copy()
        rows[self.is_new] = before + np.arange(len(self.new))
        return rows

    def wastes(self, before: int) -> bool:
        """Whether too many rows belong to nothing if the new ones are put behind so many."""
        count = before + len(self.new)
        return count - len(self.rows) > MOST_UNUSED * count


class IndexParts(NamedTuple):
    """What a change needs of an index.

    Attributes:
        graph: The graph.
        dimension: The length of the vectors; 0 for an empty graph.
        searches: What searches names, relations and types, and triples where all of them are embedded, by kind.
    """

    graph: KnowledgeGraph
    dimension: int
    searches: Mapping[str, ExactSearch | QuantizedSearch | VectorStoreSearch]


class IndexChange:
    """What a change of the graph does to an index.

    Args:
        index: The index before.
        change: The changed graph.
        embed_texts: Embeds texts and checks what comes back.

    Attributes:
        graph: The changed graph.
        dimension: The length of the vectors.
        store: The vector store of the names, if there is one, with the numbers that names have in it.
    """

    def __init__(self, index: IndexParts, change: GraphChange, embed_texts: Callable[[Sequence[str]], Array]) -> None:
        """Embed what is new."""
        self.graph = change.graph
        self._index, self._change = index, change
        names = index.searches["names"]
        self._before = {kind: one for kind, one in index.searches.items() if not isinstance(one, VectorStoreSearch)}
        self._vectors = self._embedded(embed_texts)
        self.dimension = index.dimension or self._vectors["names"].new.shape[1]
        self.store: VectorStoreSearch | None = None
        if isinstance(names, VectorStoreSearch):
            rows = np.arange(len(index.graph.names)) if names.rows is None else names.rows
            self._first = int(rows.max(initial=-1)) + 1
            self.store = names.with_rows(self._vectors["names"].grown_rows(self._first))
            self._gone = np.setdiff1d(rows, self._vectors["names"].rows)

    def whole_columns(self) -> dict[str, Array]:
        """Return all vectors by kind, in memory, and the numbers of names in a store."""
        columns = self._numbers()
        for kind in self._before:
            columns |= self._whole(kind)
        return columns

    def saved_columns(self, grows: bool) -> dict[str, Column]:
        """Return the columns of vectors as they are saved.

        Args:
            grows: Whether the columns of before are saved, so that they can grow.
        """
        columns: dict[str, Column] = {**self._numbers()}
        for kind, before in self._before.items():
            change = self._vectors[kind]
            size = len(before.vectors)
            if kind not in ("names", "triples") or not grows or not self._index.dimension or change.wastes(size):
                columns |= self._whole(kind)
            else:
                columns |= {kind + end: Grown(new) for end, new in before.encoded(change.new).items()}
                columns |= _row_columns(kind, change.grown_rows(size), size + len(change.new))
        return columns

    def _whole(self, kind: str) -> dict[str, Array]:
        """Return the columns of all vectors of a kind."""
        change, before = self._vectors[kind], self._before[kind]
        new = before.encoded(change.new)
        return {kind + end: change.whole(column, new[end]) for end, column in before.columns.items()}

    def add_to_store(self) -> None:
        """Add new names to the vector store, if there is one."""
        if self.store is not None:
            new = self._vectors["names"].new
            names = _texts(self.graph, "names", np.flatnonzero(self._vectors["names"].is_new))
            self.store.add(range(self._first, self._first + len(new)), names, new)

    def remove_from_store(self) -> None:
        """Remove the names that are gone from the vector store, if there is one."""
        if self.store is not None and len(self._gone):
            self.store.remove(self._gone.tolist())

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many facts are new, were to be added and there already, and are gone, and what was embedded."""
        before, origins = self._index.graph, self._change.triples
        added, kept = int((origins < 0).sum()), int((origins >= 0).sum())
        embedded = sum(len(vectors.new) for vectors in self._vectors.values())
        return added, self.graph.duplicates - before.duplicates, len(before) - kept, embedded

    def _numbers(self) -> dict[str, Array]:
        if self.store is None or self.store.rows is None:
            return {}
        return _row_columns("names", self.store.rows, self._first + len(self._vectors["names"].new))

    def _embedded(self, embed_texts: Callable[[Sequence[str]], Array]) -> dict[str, VectorChange]:
        """Embed what is new, all in one call."""
        index, graph = self._index, self.graph
        origins = {
            "names": self._change.names,
            "relations": index.graph.relations.ids_of(graph.relations),
            "types": index.graph.types.ids_of(graph.types),
        }
        if "triples" in index.searches:
            origins["triples"] = np.where(_is_reworded(index.graph, self._change), -1, self._change.triples)
        new = {kind: np.flatnonzero(origin < 0) for kind, origin in origins.items()}
        texts = [text for kind, ids in new.items() for text in _texts(graph, kind, ids)]
        vectors = embed_texts(texts) if texts else np.empty((0, index.dimension), np.float32)
        ends = np.cumsum([len(ids) for ids in new.values()])[:-1]
        parts = zip(origins.items(), np.split(vectors, ends), strict=True)
        return {kind: VectorChange(_rows_of(index.searches[kind].rows, origin), part) for (kind, origin), part in parts}


def triple_texts(graph: KnowledgeGraph, ids: Array) -> list[str]:
    """Return what is embedded of triples: the words of the head's label, the relation and the tail's label."""
    label = cache(lambda entity: readable(graph.label(graph.entities[entity])))
    words = cache(lambda relation: readable(graph.relations[relation]))
    return [f"{label(head)} {words(relation)} {label(tail)}" for head, relation, tail in graph.edges[ids].tolist()]


def _texts(graph: KnowledgeGraph, kind: str, ids: Array) -> list[str]:
    """Return what is embedded of some ids of a kind."""
    if kind == "triples":
        return triple_texts(graph, ids)
    table = {"names": graph.names, "relations": graph.relations, "types": graph.types}[kind]
    return [readable(table[id]) for id in ids.tolist()]


def _row_columns(kind: str, rows: Array, count: int) -> dict[str, Array]:
    """Return the column of the rows of a kind; none where each of `count` rows is that of the id of the same number."""
    plain = len(rows) == count and np.array_equal(rows, np.arange(count))
    return {} if plain else {f"{kind}_rows": rows.astype(np.int32)}


def _rows_of(rows: Array | None, origins: Array) -> Array:
    """Return the row of each earlier id, -1 where there was none."""
    if rows is None or not len(rows):
        return origins.astype(np.int64)
    return np.where(origins < 0, -1, rows[origins])


def _is_reworded(before: KnowledgeGraph, change: GraphChange) -> Array:
    """Return which triples are new or have an end or a relation that is called otherwise: bool."""
    graph, found = change.graph, change.triples < 0
    ids = np.flatnonzero(~found)
    edges, earlier = graph.edges[ids], before.edges[change.triples[ids]]
    different = before.relations.ids_of(graph.relations)[edges[:, 1]] != earlier[:, 1]
    for end in (0, 2):
        different |= change.names[graph.labels[edges[:, end]]] != before.labels[earlier[:, end]]
    found[ids[different]] = True
    return found


# The model in the `embedding_name` of LangChain's embeddings of a provider, and of those of sentence-transformers.
_MODEL = re.compile(
    r"(?:langchain_(?!community|core)(?P<provider>\w+)\.|kg_retrievers\.index\.embeddings\.SentenceTransformer)"
    r"[\w.]+\((?:model|model_name)='(?P<model>[^']+)'"
)


def identity(graph: KnowledgeGraph, embeddings: Embeddings, dimension: int) -> dict[str, str | int]:
    """Return what an index is of: its graph, its embeddings and their dimension."""
    return {"graph": graph.fingerprint, "embeddings": embedding_name(embeddings), "dimension": dimension}


def make_searches(
    graph: KnowledgeGraph, columns: Mapping[str, Array], store: VectorStoreSearch | None
) -> tuple[ExactSearch | QuantizedSearch | VectorStoreSearch, ExactSearch, ExactSearch, ExactSearch | None]:
    """Return what searches names, relations and types, and the vectors of triples if there are some.

    A store is told all numbers, so that names that an update adds to it later are not found.
    """
    names: ExactSearch | QuantizedSearch | VectorStoreSearch
    if store:
        rows = columns.get("names_rows")
        names = store.with_rows(np.arange(len(graph.names)) if rows is None else rows)
    elif "names_bits" in columns:
        names = QuantizedSearch(columns["names"], columns["names_bits"], columns.get("names_rows"))
    else:
        names = _search(columns, "names")
    triples = _search(columns, "triples") if "triples" in columns else None
    return names, ExactSearch(columns["relations"]), ExactSearch(columns["types"]), triples


def _search(columns: Mapping[str, Array], kind: str) -> ExactSearch:
    return ExactSearch(columns[kind], columns.get(f"{kind}_rows"))


def check_model(
    path: str | Path, meta: Mapping[str, Any], embeddings: Embeddings, store: VectorStoreSearch | None
) -> None:
    """Check that a saved index was built with such embeddings, and with a vector store where there is one.

    Raises:
        StaleIndexError: If it was built with other embeddings.
        InvalidArgumentError: If `store` is missing, or the index was built without one.
    """
    name, given, stored = meta["embeddings"], embedding_name(embeddings), meta["store"]
    if name != given:
        first, second = embeddings_option(name, meta.get("embeddings_name")), embeddings_option(given)
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built with {name}, but got {given}.",
            hint_python="Open it with the first, or build it again with the second: GraphIndex.build(graph, "
            "embeddings, path).",
            hint_shell=f"Open it with the first: {first}, or build it again with the second: "
            f"kg-retrievers index ... --output {path} {second}",
        )
    if stored != bool(store):
        advice = "with a vector store; hand it in" if stored else "without a vector store; leave it out"
        raise InvalidArgumentError(
            f"GraphIndex.open: {path} was built {advice}: store=...",
            hint_shell="The shell opens no vector stores; build an index without one.",
        )


def embeddings_option(name: str, recorded: str | None = None) -> str:
    """Return the option of the shell for embeddings, by their `embedding_name` and what the shell recorded."""
    own = {embedding_name(default_embeddings()): "static", embedding_name(HashedEmbeddings()): "hashed"}
    option = own.get(name)
    if option is None and recorded not in own.values():
        option = recorded
    if option is None and (found := _MODEL.match(name)):
        option = f"{found['provider'] or 'local'}:{found['model']}"
    return f"--embeddings {'...' if option is None else shlex.quote(option)}"


def graph_of(
    path: str | Path, fingerprint: str, graph: KnowledgeGraph | None, part: OpenedPart | None
) -> KnowledgeGraph:
    """Return the graph that was given, or else the one saved beside the index, if the index was built from it.

    Raises:
        IndexLoadError: If the graph was saved without its index.
        StaleIndexError: If the index was built from another graph.
    """
    if part is not None:
        saved = KnowledgeGraph.from_part(path, part)
        if saved.fingerprint != fingerprint:
            raise IndexLoadError("the graph was saved without its index. Build the index again.", path)
        return saved
    assert graph is not None
    if graph.fingerprint != fingerprint:
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built from a graph other than the one given, {graph!r}.",
            hint_python="Build it again: GraphIndex.build(graph, embeddings, path).",
            hint_shell=f"Build it again: kg-retrievers index ... --output {path}",
        )
    return graph


def check_store(store: VectorStoreSearch, graph: KnowledgeGraph) -> None:
    """Check some names that a store holds.

    Raises:
        StaleIndexError: If they are others.
    """
    ids = range(len(graph.names))
    sample = sorted({*ids[:: len(ids) // 16 + 1], *ids[-1:]})
    numbers = sample if store.rows is None else store.rows[sample].tolist()
    if not store.holds(numbers, [readable(graph.names[id]) for id in sample]):
        raise stale_store()


def check_vectors(columns: Mapping[str, Array], graph: KnowledgeGraph, dimension: int) -> None:
    """Check that there is a vector for each name, relation and type, and for each triple where triples are embedded.

    Raises:
        ValueError: If not; the message names the column.
    """
    sizes = {
        "names": len(graph.names),
        "relations": len(graph.relations),
        "types": len(graph.types),
        "triples": len(graph),
    }
    for name, size in sizes.items():
        rows = columns.get(f"{name}_rows")
        if rows is not None:
            check_shape(f"{name}_rows", rows, (size,))
        if name in columns:
            count = size if rows is None else len(columns[name])
            check_shape(name, columns[name], (count, dimension))
            _check_type(name, columns[name], "i1" if f"{name}_bits" in columns else "f4")
            if rows is not None:
                check_ids(f"{name}_rows", rows, count)

    if "names_bits" in columns:
        check_shape("names_bits", columns["names_bits"], (len(columns["names"]), words_of(dimension)))
        _check_type("names_bits", columns["names_bits"], "u8")


def _check_type(name: str, column: Array, dtype: str) -> None:
    if column.dtype != np.dtype(dtype):
        raise ValueError(f"{name} has numbers of the type {column.dtype}, wanted {np.dtype(dtype)}")


def check_name_table(columns: Mapping[str, Array], graph: KnowledgeGraph) -> None:
    """Check what `name_columns` returned: lengths, and in short columns that each id is that of a name or an entity.

    The table checks the ids of long columns when it reads them.

    Raises:
        ValueError: If something does not fit; the message names the column.
    """
    names = len(graph.names)
    check_shape("ids", columns["ids"], columns["hashes"].shape)
    check_shape("word_starts", columns["word_starts"], (len(columns["words"]) + 1,))
    check_shape("longest", columns["longest"], (1,))
    if columns["ids"].nbytes <= CHECKED:
        check_ids("ids", columns["ids"], names + len(graph.entities))
    if columns["word_names"].nbytes <= CHECKED:
        check_starts("word_starts", columns["word_starts"], len(columns["words"]), len(columns["word_names"]))
        check_ids("word_names", columns["word_names"], names)


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
