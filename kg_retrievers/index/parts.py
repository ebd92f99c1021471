"""Handle the parts of an index.

These are its searches, its files, its vectors, and the texts that a change embeds again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.quantization import words_of
from kg_retrievers.errors import IndexLoadError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.graph.changes.changing import GraphChange
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.storage.bounds import check_ids, check_shape, check_starts
from kg_retrievers.graph.storage.parts import CHECKED, Column, ColumnFile, FolderWriter, Grown, OpenedPart
from kg_retrievers.index.embeddings import HashedEmbeddings, embedding_name
from kg_retrievers.index.exact_search import ExactSearch
from kg_retrievers.index.names import EarlierNames, name_columns
from kg_retrievers.index.quantized_search import QUANTIZED_FROM, QuantizedSearch
from kg_retrievers.index.static_embeddings import default_embeddings

#: A search of the vectors of one kind: exact, or with quantized vectors if they are many.
Search = ExactSearch | QuantizedSearch

#: The greatest share of the rows of a column of vectors that may belong to nothing.
MOST_UNUSED = 0.25


class VectorChange(NamedTuple):
    """The vectors of one kind after a change.

    Attributes:
        rows: The row that each vector had, -1 if it is new: int64, shape (n).
        new: The new vectors in the order of their ids: float32, shape (m, d).
    """

    rows: Array
    new: Array

    @property
    def is_new(self) -> Array:
        """Which vectors are new."""
        return self.rows < 0

    def whole(self, before: Array, new: Array) -> Array:
        """Return a column of all vectors from the old and the new column."""
        column = np.empty((len(self.rows), new.shape[1]), new.dtype)
        if not self.is_new.all():
            column[~self.is_new] = before[self.rows[~self.is_new]]
        column[self.is_new] = new
        return column

    def grown_rows(self, before: int) -> Array:
        """Return the rows of vectors if new ones follow so many: int64."""
        rows = self.rows.copy()
        rows[self.is_new] = before + np.arange(len(self.new))
        return rows

    def wastes(self, before: int) -> bool:
        """Tell whether too many rows belong to nothing.

        The new ones would follow so many.
        """
        count = before + len(self.new)
        return count - len(self.rows) > MOST_UNUSED * count


class IndexChange:
    """The effect of a graph's change on an index.

    Args:
        before: The graph before.
        dimension: The length of the vectors, or 0 for an empty graph.
        searches: The search of each kind of parts.
        change: The changed graph.
        embed_texts: Embeds texts and checks the vectors.

    Attributes:
        graph: The changed graph.
        dimension: The length of the vectors.
    """

    def __init__(
        self,
        before: KnowledgeGraph,
        dimension: int,
        searches: Mapping[str, Search],
        change: GraphChange,
        embed_texts: Callable[[Sequence[str]], Array],
    ) -> None:
        """Embed the new texts."""
        self.graph = change.graph
        self._before, self._searches, self._change = before, searches, change
        self._vectors = self._embedded(embed_texts, dimension)
        self.dimension = dimension or self._vectors["names"].new.shape[1]

    def searches(self) -> dict[str, Search]:
        """Return the search of each kind, in memory. Quantized vectors are not copied if none is new."""
        found = dict[str, Search]()
        for kind, before in self._searches.items():
            rows = self._vectors[kind].rows
            if isinstance(before, QuantizedSearch) and (rows >= 0).all():
                found[kind] = QuantizedSearch(before.vectors, before.bits, rows.astype(np.int32))
            else:
                found |= make_searches(self._whole(kind))
        return found

    def name_columns(self, before: Mapping[str, Array] | None) -> dict[str, Array]:
        """Return the columns of the table of names, given the earlier columns."""
        earlier = EarlierNames(before, self._before, self._change) if before else None
        return name_columns(self.graph, earlier)

    def saved_columns(self) -> dict[str, Column]:
        """Return the columns of vectors for the folder that holds the earlier ones.

        Long columns grow.
        """
        columns: dict[str, Column] = {}
        for kind, before in self._searches.items():
            change = self._vectors[kind]
            size = len(before.vectors)
            if kind not in ("names", "triples") or not size or change.wastes(size):
                columns |= self._whole(kind)
            else:
                columns |= {kind + end: Grown(new) for end, new in before.encoded(change.new).items()}
                columns |= _row_columns(kind, change.grown_rows(size), size + len(change.new))
        return columns

    def _whole(self, kind: str) -> dict[str, Array]:
        """Return the columns of all vectors of a kind."""
        change, before = self._vectors[kind], self._searches[kind]
        new = before.encoded(change.new)
        return {kind + end: change.whole(column, new[end]) for end, column in before.columns.items()}

    def counts(self) -> tuple[int, int, int, int]:
        """Return the counts of a change.

        They say how many facts are new, were to be added and there already, and are gone, and how many texts were
        embedded.
        """
        before, origins = self._before, self._change.triples
        added, kept = int((origins < 0).sum()), int((origins >= 0).sum())
        embedded = sum(len(vectors.new) for vectors in self._vectors.values())
        return added, self.graph.duplicates - before.duplicates, len(before) - kept, embedded

    def _embedded(self, embed_texts: Callable[[Sequence[str]], Array], dimension: int) -> dict[str, VectorChange]:
        """Embed the new texts, all in one call."""
        before, graph = self._before, self.graph
        origins = {
            "names": self._change.names,
            "relations": before.relations.ids_of(graph.relations),
            "types": before.types.ids_of(graph.types),
        }
        if "triples" in self._searches:
            origins["triples"] = np.where(_is_reworded(before, self._change), -1, self._change.triples)
        new = {kind: np.flatnonzero(origin < 0) for kind, origin in origins.items()}
        texts = [text for kind, ids in new.items() for text in _texts(graph, kind, ids)]
        vectors = embed_texts(texts) if texts else np.empty((0, dimension), np.float32)
        ends = np.cumsum([len(ids) for ids in new.values()])[:-1]
        parts = zip(origins.items(), np.split(vectors, ends), strict=True)
        return {kind: VectorChange(_rows_of(self._searches[kind].rows, origin), part) for (kind, origin), part in parts}


def triple_texts(graph: KnowledgeGraph, ids: Array) -> list[str]:
    """Return the texts of triples for embedding.

    Each has the words of the head's label, the relation and the tail's label.
    """
    label = cache(lambda entity: readable(graph.label(graph.entities[entity])))
    words = cache(lambda relation: readable(graph.relations[relation]))
    return [f"{label(head)} {words(relation)} {label(tail)}" for head, relation, tail in graph.edges[ids].tolist()]


def tables_of(graph: KnowledgeGraph) -> dict[str, StringTable]:
    """Return the names, relations and types of a graph."""
    return {"names": graph.names, "relations": graph.relations, "types": graph.types}


def _texts(graph: KnowledgeGraph, kind: str, ids: Array) -> list[str]:
    """Return the texts for embedding of some ids of a kind."""
    if kind == "triples":
        return triple_texts(graph, ids)
    table = tables_of(graph)[kind]
    return [readable(table[id]) for id in ids.tolist()]


def _row_columns(kind: str, rows: Array, count: int) -> dict[str, Array]:
    """Return the column of the rows of a kind.

    There is none if each of `count` rows belongs to the id of the same number.
    """
    plain = len(rows) == count and np.array_equal(rows, np.arange(count))
    return {} if plain else {f"{kind}_rows": rows.astype(np.int32)}


def _rows_of(rows: Array | None, origins: Array) -> Array:
    """Return the row of each earlier id, -1 if there was none."""
    if rows is None or not len(rows):
        return origins.astype(np.int64)
    return np.where(origins < 0, -1, rows[origins])


def _is_reworded(before: KnowledgeGraph, change: GraphChange) -> Array:
    """Return which triples are new or have an end or a relation with another name: bool."""
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
    """Return the identity of an index: its graph, its embeddings and their dimension."""
    return {"graph": graph.fingerprint, "embeddings": embedding_name(embeddings), "dimension": dimension}


def make_searches(columns: Mapping[str, Array]) -> dict[str, Search]:
    """Return the searches of names, relations and types, by kind.

    The search of triples is among them if all of them are embedded.
    """
    searches = dict[str, Search]()
    for kind in ("names", "relations", "types", "triples"):
        vectors, bits, rows = (columns.get(f"{kind}{end}") for end in ("", "_bits", "_rows"))
        if vectors is not None:
            searches[kind] = ExactSearch(vectors, rows) if bits is None else QuantizedSearch(vectors, bits, rows)
    return searches


def check_model(path: str | Path, meta: Mapping[str, Any], embeddings: Embeddings) -> None:
    """Check that a saved index was built with such embeddings.

    Raises:
        StaleIndexError: If it was built with other embeddings.
    """
    name, given = meta["embeddings"], embedding_name(embeddings)
    if name != given:
        first, second = embeddings_option(name, meta.get("embeddings_name")), embeddings_option(given)
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built with {name}, but got {given}.",
            hint_python="Open it with the first, or build it again with the second: GraphIndex.build(graph, "
            "embeddings, path).",
            hint_shell=f"Open it with the first: {first}, or build it again with the second: "
            f"kg-retrievers index ... --output {path} {second}",
        )


def embeddings_option(name: str, recorded: str | None = None) -> str:
    """Return the shell's option for embeddings.

    It follows from their `embedding_name` and the shell's own record.
    """
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
    """Return the given graph, or else the one saved with the index.

    The index must have been built from it.

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


def check_vectors(columns: Mapping[str, Array], graph: KnowledgeGraph, dimension: int) -> None:
    """Check that the vectors of an index are complete.

    There is one for each name, relation and type, and for each triple if triples are embedded.

    Raises:
        ValueError: If not. The message names the column.
    """
    sizes = {kind: len(table) for kind, table in tables_of(graph).items()} | {"triples": len(graph)}
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
    """Check the result of `name_columns`.

    The check covers lengths, and in short columns that each id belongs to a name or an entity.

    The table checks the ids of long columns when it reads them.

    Raises:
        ValueError: If something does not fit. The message names the column.
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


def embed_graph(
    graph: KnowledgeGraph,
    embed_texts: Callable[[Sequence[str]], Iterator[Array]],
    *,
    triples: bool,
    writer: FolderWriter | None,
) -> tuple[dict[str, Array], dict[str, ColumnFile], int]:
    """Embed the names, relations and types of a graph.

    Its triples are embedded if they are wanted.

    Args:
        graph: The graph.
        embed_texts: Yields the vectors of each batch of texts.
        triples: Whether to embed the triples.
        writer: Vectors are written to its folder while they are made.

    Returns:
        The columns of the vectors, by name, the files that hold them, by the same names, and the length of the vectors,
            0 if nothing was embedded.

    Raises:
        FileWriteError: If the disk is full, or this user may not write there.
    """
    texts, made, done, dimension = _GraphTexts(graph, triples), dict[str, _Memory | ColumnFile](), 0, 0
    try:
        for vectors in embed_texts(texts):
            dimension, begin = vectors.shape[1], done
            for kind, ids in texts.parts(begin, begin + len(vectors)):
                rows = vectors[done - begin :][: len(ids)]
                done += len(ids)
                search = QuantizedSearch if kind == "names" and len(graph.names) >= QUANTIZED_FROM else ExactSearch
                for end, column in search.encoded(rows).items():
                    name, width = kind + end, column.shape[1]
                    if name not in made and writer:
                        made[name] = ColumnFile(writer.folder, f"index.{name}", column.dtype, width)
                    elif name not in made:
                        made[name] = _Memory(texts.sizes[kind], column.dtype, width)
                    made[name].append(column)
    except BaseException:
        for sink in made.values():
            sink.remove()
        raise
    columns = {kind: np.empty((0, dimension), np.float32) for kind in texts.sizes}
    columns |= {name: sink.array() for name, sink in made.items()}
    return columns, {name: sink for name, sink in made.items() if isinstance(sink, ColumnFile)}, dimension


class _GraphTexts(Sequence[str]):
    """All texts that are embedded: names, relations, types, triples.

    Each is made when it is asked for.
    """

    def __init__(self, graph: KnowledgeGraph, triples: bool) -> None:
        self._graph = graph
        self.sizes = {kind: len(table) for kind, table in tables_of(graph).items()}
        self.sizes |= {"triples": len(graph)} if triples else {}

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def __getitem__(self, wanted: slice) -> list[str]:  # type: ignore[override]
        parts = self.parts(wanted.start, wanted.stop)
        return [text for kind, ids in parts for text in _texts(self._graph, kind, ids)]

    def parts(self, start: int, stop: int) -> Iterator[tuple[str, Array]]:
        """Yield the ids of each kind in a range of all kinds.

        The kinds stand one behind the other.
        """
        for kind, size in self.sizes.items():
            ids = np.arange(max(start, 0), min(stop, size))
            if len(ids):
                yield kind, ids
            start, stop = start - size, stop - size


class _Memory:
    """Rows in memory, for so many."""

    def __init__(self, size: int, dtype: np.dtype[np.generic], width: int) -> None:
        self._rows, self._array = 0, np.empty((size, width), dtype)

    def append(self, rows: Array) -> None:
        self._array[self._rows : self._rows + len(rows)] = rows
        self._rows += len(rows)

    def array(self) -> Array:
        return self._array

    def remove(self) -> None:
        """Do nothing: memory goes by itself."""
