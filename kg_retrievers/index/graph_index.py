"""GraphIndex: the entities, relations and types of a graph that are nearest to a text, and how near its triples are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import GraphLoadError, IndexLoadError, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.cache import Cache, Immutable, LocalLock, check_picklable
from kg_retrievers.graph.changes.changing import Changes, change_graph
from kg_retrievers.graph.columns import Array, StringTable, fingerprint
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.parts import FolderWriter, OpenedPart, Part, open_parts, saved_meta
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.bounds import check_name_table, check_vectors
from kg_retrievers.index.changes import IndexChange, IndexParts, triple_texts
from kg_retrievers.index.embedding_cache import EmbeddingCache
from kg_retrievers.index.embeddings import embed, embedding_name
from kg_retrievers.index.name_table import NAME_COLUMNS, VERSION, NameTable, name_columns
from kg_retrievers.index.vector_store import ExactSearch, NameSearch, VectorStoreSearch

#: How far every other name is at least from a text that equals a name. Embeddings may be blind to case, and MetaQA has
#: 3,081 groups of names that differ by case only; rounding alone gives equal texts distances of up to 5e-4.
EXACT_NAME_MARGIN = 1e-3

#: The largest distance between two embeddings of one text by the same model: machines and batches round differently.
#: Other models are at a distance of about 1.
SAME_VECTOR = 0.05

#: How many vectors of recent texts are kept, since questions repeat the texts of relations.
RECENT_TEXTS = 1024

#: How many triples, or labels of entities, are embedded at once.
TRIPLE_BATCH = LABEL_BATCH = 1024

#: Similarities of triples are rounded to so many decimals. One text embedded in two batches has cosines that differ by
#: up to 2e-7 (MiniLM): of 6 decimals, up to 3 % of them would still differ, of 5 only 0.3 %.
SIMILARITY_DECIMALS = 5

# Begins the names of the columns of the table of names.
_LINKING = "linking."


@dataclass(frozen=True)
class IndexUpdate:
    """What `GraphIndex.update` did.

    Attributes:
        index: The index as it is now, opened from the folder.
        added: How many facts are new.
        present: How many of the facts to add were there already, or were repeated.
        removed: How many facts are gone.
        embedded: How many texts were embedded.
    """

    index: GraphIndex
    added: int
    present: int
    removed: int
    embedded: int


class GraphIndex(Immutable):
    """Finds the parts of a graph that a text may mean. Safe to share between threads.

    Every label, alias, relation and type is embedded, with blanks for underscores and the like. A text that equals one
    of them has a distance of 0 from it and at least `EXACT_NAME_MARGIN` from the others. Triples are embedded too, at
    build or when they are first needed.

    A copy is the index itself. An index that was opened from a folder is pickled as this folder as long as it holds the
    index, so that another process maps the same files; any other index is pickled with all of its vectors. Its
    embeddings are pickled with it; a vector store too, if it can be.

    Attributes:
        graph: The graph.
        embeddings: What turns texts into vectors.
        dimension: The length of the vectors; 0 for an empty graph.
        fingerprint: 32 hexadecimal digits that change with the graph, the embedding model and the dimension.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> [graph.entities[id] for id in index.nearest_entities(["spike jonez"], k=1)[0].ids]
        ['Spike Jonze']
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        embeddings: Embeddings,
        dimension: int,
        names: NameSearch,
        relations: ExactSearch,
        types: ExactSearch,
        triples: ExactSearch | None = None,
    ) -> None:
        """Take the parts as `build` or `open` made them; use one of these instead."""
        self.graph = graph
        self.embeddings = embeddings
        self.dimension = dimension
        self.fingerprint = fingerprint({}, _identity(graph, embeddings, dimension))
        self._names, self._relations, self._types = names, relations, types
        self._folder: Path | None = None
        self._recent: dict[str, Array] = {}
        self._probe: tuple[str, Array] | None = None
        self._linking: dict[str, Array] | None = None
        #: What is derived from the index and shared by all that use it, such as its linker.
        self.derived = Cache()
        self._lock = LocalLock()
        # Their vectors, and which of them are embedded.
        self._triples = None if triples is None else (triples.vectors, np.broadcast_to(True, len(triples.vectors)))
        self._triple_rows = None if triples is None else triples.rows
        self._triples_lock = LocalLock()

    @classmethod
    def build(
        cls,
        graph: KnowledgeGraph,
        embeddings: Embeddings,
        path: str | Path | None = None,
        *,
        triples: bool = False,
        store: VectorStoreSearch | None = None,
        cache: EmbeddingCache | str | Path | None = None,
        batch_size: int = 1024,
        progress: bool = False,
        embeddings_name: str = "",
    ) -> GraphIndex:
        """Embed the names, relations and types of a graph.

        Args:
            graph: The graph.
            embeddings: Any LangChain embeddings.
            path: A folder for the graph and the index, which `open` needs; nothing is saved by default. What it holds
                is replaced in one step when all is written; nobody else can write there before.
            triples: Whether to embed every triple now, rather than those that a question needs when it is asked.
            store: A vector store for the names, empty or holding names of this graph; an exact search by default.
            cache: Keeps vectors over several builds, so that only new names are embedded.
            batch_size: How many texts the embeddings get at once.
            progress: Whether to show a progress bar on stderr.
            embeddings_name: What the shell calls the embeddings (`--embeddings`), kept in the folder.

        Raises:
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text, or the
                folder holds a `manifest.json` of something else.
            IndexLoadError: If the cache is damaged.
            FileWriteError: If another process writes to the folder, the disk is full, or this user may not write there.
        """
        if not isinstance(graph, KnowledgeGraph) or not isinstance(embeddings, Embeddings):
            raise InvalidArgumentError(
                f"GraphIndex.build: wanted a KnowledgeGraph and LangChain Embeddings, got {graph!r} and {embeddings!r}."
            )
        if isinstance(cache, str | Path):
            cache = EmbeddingCache(cache)
        with nullcontext() if path is None else FolderWriter(path) as writer:
            columns = _embedded(graph, embeddings, triples, batch_size, cache, progress)
            dimension = columns["names"].shape[1]
            if store:
                names = [readable(name) for name in graph.names]
                store.add(range(len(names)), names, columns.pop("names"), batch_size)
            if writer:
                linking = {_LINKING + name: column for name, column in name_columns(graph).items()}
                meta = _identity(graph, embeddings, dimension) | {"store": bool(store), "linking": VERSION}
                meta |= {"embeddings_name": embeddings_name} if embeddings_name else {}
                writer.replace({"graph": graph.to_part(), "index": Part(columns | linking, meta)})
        return cls(graph, embeddings, dimension, *_searches(graph, columns, store))

    @classmethod
    def open(
        cls,
        path: str | Path,
        embeddings: Embeddings,
        *,
        graph: KnowledgeGraph | None = None,
        store: VectorStoreSearch | None = None,
    ) -> GraphIndex:
        """Open a folder that `build` wrote; its vectors stay on disk and are mapped into memory.

        Args:
            path: The folder.
            embeddings: The embeddings that it was built with.
            graph: The graph, where it is at hand; the one in the folder by default.
            store: The vector store that it was built with, if it was.

        Raises:
            IndexLoadError: If the folder holds no complete index.
            StaleIndexError: If the graph, the embeddings or the names in the store are others than at build.
            InvalidArgumentError: If `store` is missing, or the index was built without one.
        """
        wanted = ["index"] if graph else ["index", "graph"]
        parts = open_parts(path, wanted, IndexLoadError)
        columns, meta = parts["index"].columns, parts["index"].meta
        try:
            _check_parts(path, meta, embeddings, store)
            graph = _graph_of(path, meta["graph"], graph, parts.get("graph"))
            if store:
                _check_store(store.with_rows(columns.get("names_rows")), graph)
            check_vectors(columns, graph, meta["dimension"])
            index = cls(graph, embeddings, meta["dimension"], *_searches(graph, columns, store))
            if len(graph.relations):
                index._probe = (readable(graph.relations[0]), columns["relations"][0])
            if meta.get("linking") == VERSION:
                index._linking = {name: columns[_LINKING + name] for name in NAME_COLUMNS}
                check_name_table(index._linking, graph)
        except KeyError as cause:
            raise IndexLoadError(f"{cause} is missing. Build the index again.", path) from cause
        except InvalidArgumentError:
            raise
        except ValueError as cause:
            raise IndexLoadError(f"the index is damaged: {cause}. Build the index again.", path) from cause
        except GraphLoadError as cause:
            raise IndexLoadError(f"the graph of the index cannot be read: {cause}", path) from cause
        index._folder = Path(path).absolute()
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder that the index was opened from, or the vectors where it does not hold them any more."""
        hint = "Open it in the other process: GraphIndex.open(path, embeddings)."
        check_picklable(self.embeddings, "GraphIndex", hint)
        if self._folder and self._is_saved_in(self._folder):
            store = self._names if isinstance(self._names, VectorStoreSearch) else None
            return partial(GraphIndex.open, graph=self.graph, store=store), (self._folder, self.embeddings)
        searches = (self._names, self._relations, self._types)
        return GraphIndex, (self.graph, self.embeddings, self.dimension, *searches, self._all_triples())

    @classmethod
    def update(
        cls,
        path: str | Path,
        embeddings: Embeddings,
        *,
        store: VectorStoreSearch | None = None,
        cache: EmbeddingCache | str | Path | None = None,
        batch_size: int = 1024,
        progress: bool = False,
        **changes: Unpack[Changes],
    ) -> IndexUpdate:
        """Change the graph and the index in a folder; only what is new is embedded, and vectors are added to the file.

        Whoever has opened the folder goes on with what was opened; only names that are removed from a vector store are
        not found there any more.

        Args:
            path: The folder that `build` wrote.
            embeddings: The embeddings that it was built with.
            store: The vector store that it was built with, if it was. New names are added to it, others removed.
            cache: As of `build`.
            batch_size: As of `build`.
            progress: As of `build`.
            **changes: As of `KnowledgeGraph.with_changes`.

        Raises:
            IndexLoadError: If the folder holds no complete index.
            StaleIndexError: If the embeddings or the names in the store are others than at build.
            InvalidArgumentError: As of `KnowledgeGraph.with_changes`; nothing is changed then.
            FileWriteError: If another process writes to the folder, the disk is full, or this user may not write there.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> from kg_retrievers.index import default_embeddings
            >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
            >>> with TemporaryDirectory() as folder:
            ...     index = GraphIndex.build(graph, default_embeddings(), folder)
            ...     update = GraphIndex.update(folder, default_embeddings(), added=[("Her", "starring", "Amy Adams")])
            ...     update.added, update.embedded, list(update.index.graph.names)
            (1, 2, ['Her', 'Spike Jonze', 'Amy Adams'])
        """
        cache = EmbeddingCache(cache) if isinstance(cache, str | Path) else cache
        embed_texts = partial(embed, embeddings, batch_size=batch_size, cache=cache, progress=progress)
        with FolderWriter(path) as writer:
            index = cls.open(path, embeddings, store=store)
            changed = index._change(embed_texts, changes)
            graph = changed.graph
            columns = changed.saved_columns(grows="index" in writer.before.parts)
            columns |= {_LINKING + name: column for name, column in (changed.linking() or name_columns(graph)).items()}
            meta = {**saved_meta(Path(path), "index"), **_identity(graph, embeddings, changed.dimension)}
            changed.add_to_store()
            writer.replace({"graph": graph.to_part(), "index": Part(columns, meta | {"linking": VERSION})})
            changed.remove_from_store()
        return IndexUpdate(cls.open(path, embeddings, store=store), *changed.counts())

    def with_changes(self, **changes: Unpack[Changes]) -> GraphIndex:
        """Return an index of the changed graph in memory; only what is new is embedded.

        A vector store is changed: new names are added to it, and others removed, which this index then lacks.

        Args:
            **changes: As of `KnowledgeGraph.with_changes`.

        Raises:
            InvalidArgumentError: As of `KnowledgeGraph.with_changes`.
            StaleIndexError: If the embeddings do not fit the index.
        """
        changed = self._change(partial(embed, self.embeddings), changes)
        changed.add_to_store()
        searches = _searches(changed.graph, changed.whole_columns(), changed.store)
        index = GraphIndex(changed.graph, self.embeddings, changed.dimension, *searches)
        index._linking = changed.linking()
        changed.remove_from_store()
        return index

    def _change(self, embed_texts: Callable[[Sequence[str]], Array], changes: Changes) -> IndexChange:
        """Change the graph, and embed what is new.

        Raises:
            StaleIndexError: If the embeddings do not fit the index.
        """
        change = change_graph(self.graph, **changes)
        searches = {"names": self._names, "relations": self._relations, "types": self._types}
        if triples := self._all_triples():
            searches["triples"] = triples
        parts = IndexParts(self.graph, self.dimension, searches, self._linking)
        if not self.dimension:
            return IndexChange(parts, change, embed_texts)
        self.embed([])  # compares the model
        return IndexChange(parts, change, lambda texts: self._checked(embed_texts(texts)))

    def _all_triples(self) -> ExactSearch | None:
        """Return the vectors of all triples; None unless all are embedded."""
        made = self._triples
        return ExactSearch(made[0], self._triple_rows) if made is not None and made[1].all() else None

    def _is_saved_in(self, folder: Path) -> bool:
        meta = saved_meta(folder, "index")
        return _identity(self.graph, self.embeddings, self.dimension).items() <= meta.items()

    def __repr__(self) -> str:
        """The graph and the embeddings."""
        return f"GraphIndex({self.graph!r}, {embedding_name(self.embeddings)})"

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts in one call of the embeddings, or none for texts seen lately.

        Returns:
            float32, shape (texts, dimension): unit rows.

        Raises:
            StaleIndexError: If the vectors are not as long as those of the index.
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
        """
        with self._lock:
            rows = {text: self._recent[text] for text in texts if text in self._recent}
        probe = self._probe
        wanted = [*texts, probe[0]] if probe else texts
        if new := [text for text in dict.fromkeys(wanted) if text not in rows]:
            rows |= zip(new, self._embed(new), strict=True)
        if probe and np.linalg.norm(rows[probe[0]] - probe[1]) > SAME_VECTOR:
            raise StaleIndexError(
                f"GraphIndex: {embedding_name(self.embeddings)} gives another vector for {probe[0]!r} than the index "
                "holds: another model of that class. Open it with the one it was built with, or build it again."
            )
        self._probe = None  # once is enough
        with self._lock:
            for text, row in rows.items():
                self._recent.pop(text, None)
                self._recent[text] = row
            while len(self._recent) > RECENT_TEXTS:
                del self._recent[next(iter(self._recent))]
        return np.array([rows[text] for text in texts], np.float32).reshape(-1, self.dimension)

    def _embed(self, texts: Sequence[str]) -> Array:
        return self._checked(embed(self.embeddings, texts, batch_size=len(texts)))

    def _checked(self, vectors: Array) -> Array:
        """Return vectors of the embeddings as they are.

        Raises:
            StaleIndexError: If they are not as long as those of the index.
        """
        if vectors.shape[1] != self.dimension:
            raise StaleIndexError(
                f"GraphIndex: its vectors have {self.dimension} numbers, but {embedding_name(self.embeddings)} "
                f"gives {vectors.shape[1]}. Open it with the embeddings it was built with, or build it again."
            )
        return vectors

    def nearest_entities(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the entities whose names are nearest to each text.

        Args:
            texts: The texts; a name or an entity key written exactly is always among its own candidates.
            k: How many names to find for each text. Every entity with one of these names is a candidate, at the least
                distance of its names, so that all entities of an ambiguous label are found together.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings or the store do not fit the index.
        """
        graph = self.graph

        def exact(text: str) -> Sequence[int]:
            return [name] if (name := graph.names.find(text)) >= 0 else ()

        found = []
        for text, names in zip(texts, self._nearest(self._names, graph.names, texts, k, exact), strict=True):
            rows = [graph.name_entities(name) for name in names.ids.tolist()]
            entities = np.array(list(chain.from_iterable(rows)), np.int32)
            distances = np.repeat(names.distances, [len(row) for row in rows])
            if graph.names.find(text) < 0 <= (key := graph.entities.find(text)):
                entities = np.append(entities, np.int32(key))
                distances = np.append(np.maximum(distances, np.float32(EXACT_NAME_MARGIN)), np.float32(0))
            found.append(_sorted(entities, distances))
        return found

    def nearest_relations(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k relations nearest to each text; written exactly or readably, a relation has a distance of 0.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        relations = self.graph.relations
        return self._nearest(self._relations, relations, texts, k, lambda text: self._exact_relations.get(text, ()))

    def nearest_types(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k types nearest to each text; written exactly or readably, a type has a distance of 0.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        return self._nearest(self._types, self.graph.types, texts, k, lambda text: self._exact_types.get(text, ()))

    @property
    def name_table(self) -> NameTable:
        """The names of the graph by what a question may call them; made now where no folder holds it."""

        def make() -> NameTable:
            self._linking = self._linking or name_columns(self.graph)
            return NameTable(self.graph, self._linking)

        return self.derived.get("names", (), make)

    @property
    def keeps_names(self) -> bool:
        """Whether the vectors of names are here, and not in a vector store."""
        return isinstance(self._names, ExactSearch)

    def entity_vectors(self, entities: Array) -> Array:
        """Return the vectors of the labels of entities; they are embedded anew where a vector store holds them.

        Args:
            entities: Ids of entities, integers of shape (n).

        Returns:
            float32, shape (n, dimension): unit rows.

        Raises:
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        names = self.graph.labels[entities]
        if isinstance(self._names, ExactSearch):
            return self._names.vectors_of(names)
        blocks = (names[start : start + LABEL_BATCH].tolist() for start in range(0, len(names), LABEL_BATCH))
        vectors = [self._embed([readable(self.graph.names[name]) for name in block]) for block in blocks]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *vectors])

    @property
    def relation_vectors(self) -> Array:
        """The vectors of the relations, float32, shape (relations, dimension): unit rows."""
        return self._relations.vectors

    def triple_similarities(self, text: str, triples: Array | None = None) -> Array:
        """Return the cosine of a text and each of the given triples, in [-1, 1], to `SIMILARITY_DECIMALS` decimals.

        The text of a triple is the label of its head, its relation and the label of its tail, each in words
        (`readable`) as all that is embedded: "Her directed by Spike Jonze", the linear verbalization of KAPING
        (arXiv:2306.04136).

        Where the index was built without triples, those that no earlier call needed are embedded now, and kept in
        memory: `4 * dimension` bytes a triple, reserved for all of them and used for these.

        Args:
            text: The text; it is embedded as it is.
            triples: Ids of triples, integers of shape (m); all triples by default.

        Returns:
            float32, shape (m), in the order of `triples`.

        Raises:
            InvalidArgumentError: If an id is that of no triple, or the embeddings return something else than one
                finite vector for each text; triples that were embedded before are kept.
            StaleIndexError: If the embeddings do not fit the index.
        """
        ids = np.arange(len(self.graph)) if triples is None else np.asarray(triples, np.int64)
        if not len(ids):
            return np.empty(0, np.float32)
        if ids.min() < 0 or ids.max() >= len(self.graph):
            raise InvalidArgumentError(
                f"GraphIndex.triple_similarities: wanted ids of triples, 0 to {len(self.graph) - 1}, but got "
                f"{ids.min()} to {ids.max()}."
            )
        direction = self.embed([text])[0].astype(np.float64)
        vectors = self._triple_vectors(ids)
        rows = ids if self._triple_rows is None else self._triple_rows[ids]
        # In float64, so that it does not matter which rows are beside a row; BLAS threads would wait for each other.
        if triples is None:
            cosines: Array = np.einsum("ij,j->i", vectors, direction)[rows]
        else:
            cosines = np.einsum("ij,j->i", vectors[rows], direction)
        return (np.round(cosines, SIMILARITY_DECIMALS) + 0.0).astype(np.float32)  # 0.0 instead of -0.0

    def _triple_vectors(self, ids: Array) -> Array:
        """Return the vectors of triples; those of these ids are made where they are missing."""
        made = self._triples
        if made is not None and made[1][ids].all():
            return made[0]
        with self._triples_lock:
            if self._triples is None:
                size = len(self.graph)
                self._triples = np.zeros((size, self.dimension), np.float32), np.zeros(size, np.bool_)
            vectors, embedded = self._triples
            new = np.unique(ids[~embedded[ids]])
            for start in range(0, len(new), TRIPLE_BATCH):
                batch = new[start : start + TRIPLE_BATCH]
                vectors[batch] = self._embed(triple_texts(self.graph, batch))
                embedded[batch] = True
            return vectors

    @cached_property
    def _exact_relations(self) -> dict[str, list[int]]:
        return _by_text(self.graph.relations)

    @cached_property
    def _exact_types(self) -> dict[str, list[int]]:
        return _by_text(self.graph.types)

    def _nearest(
        self,
        search: NameSearch,
        table: StringTable,
        texts: Sequence[str],
        k: int,
        exact: Callable[[str], Sequence[int]],
    ) -> list[Candidates]:
        if isinstance(texts, str):
            raise InvalidArgumentError(f"GraphIndex: wanted a list of texts, but got the text {texts!r}.")
        if k < 1:
            raise InvalidArgumentError(f"GraphIndex: k must be 1 or more, but got {k}.")
        if not len(table) or not texts:
            return [Candidates(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in texts]
        ids, distances = search.search(self.embed([readable(text) for text in texts]), min(k, len(table)))
        if not ids.size or ids.min() < 0 or ids.max() >= len(table):
            raise _stale_store()
        rows = zip(texts, ids, distances, strict=True)
        return [_exact_first(row, distance, exact(text)) for text, row, distance in rows]


def _identity(graph: KnowledgeGraph, embeddings: Embeddings, dimension: int) -> dict[str, str | int]:
    return {"graph": graph.fingerprint, "embeddings": embedding_name(embeddings), "dimension": dimension}


def _embedded(
    graph: KnowledgeGraph,
    embeddings: Embeddings,
    triples: bool,
    batch_size: int,
    cache: EmbeddingCache | None,
    progress: bool,
) -> dict[str, Array]:
    """Return the vectors of names, relations and types, and of triples where they are wanted."""
    tables = {"names": graph.names, "relations": graph.relations, "types": graph.types}
    texts = {kind: [readable(name) for name in table] for kind, table in tables.items()}
    if triples:
        texts["triples"] = triple_texts(graph, np.arange(len(graph)))
    vectors = embed(embeddings, list(chain(*texts.values())), batch_size=batch_size, cache=cache, progress=progress)
    ends = np.cumsum([len(of_kind) for of_kind in texts.values()])[:-1]
    return dict(zip(texts, np.split(vectors, ends), strict=True))


def _searches(
    graph: KnowledgeGraph, columns: Mapping[str, Array], store: VectorStoreSearch | None
) -> tuple[NameSearch, ExactSearch, ExactSearch, ExactSearch | None]:
    """Return what searches names, relations and types, and the vectors of triples if there are some.

    A store is told all numbers, so that names that an update adds to it later are not found.
    """
    every = np.arange(len(graph.names))
    names = store.with_rows(columns.get("names_rows", every)) if store else _search(columns, "names")
    triples = _search(columns, "triples") if "triples" in columns else None
    return names, ExactSearch(columns["relations"]), ExactSearch(columns["types"]), triples


def _search(columns: Mapping[str, Array], kind: str) -> ExactSearch:
    return ExactSearch(columns[kind], columns.get(f"{kind}_rows"))


def _check_parts(
    path: str | Path, meta: Mapping[str, Any], embeddings: Embeddings, store: VectorStoreSearch | None
) -> None:
    """Check that a saved index was built with such embeddings, and with a vector store where there is one."""
    name, stored = meta["embeddings"], meta["store"]
    if name != embedding_name(embeddings):
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built with {name}, but got {embedding_name(embeddings)}.",
            hint_python="Open it with the first, or build it again with the second: GraphIndex.build(graph, "
            "embeddings, path).",
            hint_shell="Open it with the first (--embeddings ...), or build it again with the second: "
            f"kg-retrievers index ... --output {path} --embeddings ...",
        )
    if stored != bool(store):
        advice = "with a vector store; hand it in" if stored else "without a vector store; leave it out"
        raise InvalidArgumentError(
            f"GraphIndex.open: {path} was built {advice}: store=...",
            hint_shell="The shell opens no vector stores; build an index without one.",
        )


def _graph_of(
    path: str | Path, fingerprint: str, graph: KnowledgeGraph | None, part: OpenedPart | None
) -> KnowledgeGraph:
    """Return the graph that was given, or else the one saved beside the index, if the index was built from it."""
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


def _check_store(store: VectorStoreSearch, graph: KnowledgeGraph) -> None:
    """Check some names that a store holds."""
    ids = range(len(graph.names))
    sample = sorted({*ids[:: len(ids) // 16 + 1], *ids[-1:]})
    numbers = sample if store.rows is None else store.rows[sample].tolist()
    if not store.holds(numbers, [readable(graph.names[id]) for id in sample]):
        raise _stale_store()


def _stale_store() -> StaleIndexError:
    return StaleIndexError(
        "GraphIndex: the vector store does not hold the names of this graph. Empty it and build the index again."
    )


def _by_text(table: StringTable) -> dict[str, list[int]]:
    """Map each string, and its readable form unless that is another string of the table, to its ids."""
    ids: dict[str, list[int]] = {}
    for id, string in enumerate(table):
        ids.setdefault(readable(string), []).append(id)
    return ids | {string: [id] for id, string in enumerate(table)}


def _exact_first(ids: Array, distances: Array, exact: Sequence[int]) -> Candidates:
    """Give exact matches a distance of 0, in place of the last where they are missing, and others the margin."""
    if exact:
        others = ~np.isin(ids, exact)
        rest = max(len(ids) - len(exact), 0)
        far = np.maximum(distances[others][:rest], np.float32(EXACT_NAME_MARGIN))
        ids = np.concatenate([exact, ids[others][:rest]])
        distances = np.concatenate([np.zeros(len(exact), np.float32), far])
    return _sorted(ids, distances)


def _sorted(ids: Array, distances: Array) -> Candidates:
    """Sort by distance, then id, and keep each id once."""
    order = np.lexsort((ids, distances))
    _, first = np.unique(ids[order], return_index=True)
    kept = order[np.sort(first)]
    return Candidates(ids[kept].astype(np.int32), distances[kept])


def check_index(who: str, index: object) -> None:
    """Check that an index was given, and not its folder or its graph.

    Raises:
        InvalidArgumentError: If not; `who` begins the message.
    """
    if not isinstance(index, GraphIndex):
        raise InvalidArgumentError(
            f"{who}: wanted a GraphIndex, but got {index!r:.100}.",
            hint_python="Make one: GraphIndex.build(graph, embeddings), or GraphIndex.open(folder, embeddings).",
        )
