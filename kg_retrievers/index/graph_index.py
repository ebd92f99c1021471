"""Build, save, open, change and connect indexed graphs.

`GraphIndex` may connect to a graph in its database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.bulk import Workers
from kg_retrievers.datasets import check_length
from kg_retrievers.errors import (
    GraphLoadError,
    Guided,
    IndexLoadError,
    InvalidArgumentError,
    ModelMismatchError,
    named_arguments,
)
from kg_retrievers.graph import KnowledgeGraph, Triple, readable
from kg_retrievers.graph.adjacency import FACTS
from kg_retrievers.graph.attributes import VALID_FROM, VALID_TO, Where, no_fact_left
from kg_retrievers.graph.cache import Cache, Immutable, Recent, check_picklable
from kg_retrievers.graph.changes.changing import Changes, GraphChange, change_graph, narrow_graph
from kg_retrievers.graph.columns import Array, fingerprint
from kg_retrievers.graph.parts import executor_of
from kg_retrievers.graph.storage.parts import FolderWriter, Part, is_saved, open_parts, saved_meta
from kg_retrievers.index.connected_graph import (
    FRESH_SECONDS,
    MAX_FACTS,
    TIMEOUT,
    ConnectedGraph,
    GraphPart,
    PartRequest,
    said_in,
)
from kg_retrievers.index.embeddings import EmbeddingCache, embed, embed_batches, embedding_name
from kg_retrievers.index.exact_search import SLACK, ExactSearch
from kg_retrievers.index.graph_search import (
    EXACT_NAME_MARGIN,
    PartNames,
    TextVectors,
    TripleVectors,
    find_nearest,
    ids_by_text,
    sorted_candidates,
)
from kg_retrievers.index.names import NAME_COLUMNS, NameTable, name_columns
from kg_retrievers.index.parts import (
    IndexChange,
    Search,
    check_model,
    check_name_table,
    check_vectors,
    embed_graph,
    graph_of,
    identity,
    make_searches,
    tables_of,
)
from kg_retrievers.index.static_embeddings import default_embeddings
from kg_retrievers.index.vector_store import VectorStoreSearch

if TYPE_CHECKING:
    from kg_retrievers.graph.parts import PartReader

Item = TypeVar("Item")

#: How many views an index keeps.
VIEWS_KEPT = 16

#: The facts of how many entities are read for the outline of a connected graph.
OUTLINE_ENTITIES = 2_000

#: For how many items one part of a connected graph is fetched.
ITEMS_OF_PART = 1_000

#: The most facts of a connected graph from which the pattern of some examples is learned.
LEARNED_FACTS = 200_000

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


@named_arguments
class GraphIndex(Immutable, Guided):
    """Finds the parts of a graph that a text may mean. Safe to share between threads.

    Every label, alias, relation and type is embedded, with blanks for underscores and the like. A text that equals one
    of them has a distance of 0 from it and at least `EXACT_NAME_MARGIN` from the others. Triples are embedded too, at
    build or when they are first needed.

    A copy is the index itself. An index that was opened from a folder is pickled as this folder as long as the folder
    holds the index, so that another process maps the same files. Any other index is pickled with all of its vectors.
    Its embeddings are pickled with it.

    Attributes:
        graph: The graph.
        embeddings: The model that turns texts into vectors.
        dimension: The length of the vectors, or 0 for an empty graph.
        searches: The searches of names, relations and types, by kind, and of triples if all of them were embedded.
        derived: Objects made from the index and shared by all that use it, such as its linker.
        connected: The graph in a database, of which the index fetches parts or is a part. None for a graph in memory.
        origin: The connected index of which this is a part, or the index itself if it is not a part.
        truncated: Whether facts are missing in this part of a connected graph.
        narrowed: Whether this part of a connected graph has only the facts of some relations.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> [graph.entities[id] for id in index.nearest_entities(["spike jonez"], k=1)[0].ids]
        ['Spike Jonze']
    """

    guide = (
        "Make an index with build(graph), and open a saved one with open(folder). KGRetriever.from_index(index) asks "
        "it, and EntityLinker(index).link(text) finds the entities of a text."
    )

    def __init__(
        self, graph: KnowledgeGraph, embeddings: Embeddings, dimension: int, searches: Mapping[str, Search]
    ) -> None:
        """Take the parts as `build` or `open` made them.

        Use `build` or `open` instead.
        """
        self.graph = graph
        self.embeddings = embeddings
        self.dimension = dimension
        self.searches = searches
        self._texts = TextVectors(embeddings, dimension, lambda: self._held_texts)
        self._triples = TripleVectors(graph, dimension, self._texts.embed_new, searches.get("triples"))
        self._linking: dict[str, Array] | None = None
        self._views: Recent[GraphIndex] = Recent(VIEWS_KEPT)
        self.derived = Cache()
        self._folder: Path | None = None
        self.connected: ConnectedGraph | None = None
        self.origin: GraphIndex = self
        self.truncated = self.narrowed = False

    @classmethod
    def build(
        cls,
        graph: KnowledgeGraph,
        embeddings: Embeddings | None = None,
        path: str | Path | None = None,
        *,
        triples: bool = False,
        cache: EmbeddingCache | str | Path | None = None,
        batch_size: int = 1024,
        progress: bool = False,
        workers: Workers | None = None,
        embeddings_name: str = "",
    ) -> GraphIndex:
        """Embed the names, relations and types of a graph.

        Args:
            graph: The graph.
            embeddings: Any LangChain embeddings. By default, `default_embeddings()`.
            path: A folder for the graph and the index, which `open` needs. By default, nothing is saved. Its contents
                are replaced in one step when all is written. Nobody else can write there before.
            triples: Whether to embed every triple now. Otherwise the triples of a question are embedded when it is
                asked.
            cache: Keeps vectors over several builds, so that only new names are embedded.
            batch_size: How many texts the embeddings get at once.
            progress: Whether to show a progress bar on stderr.
            workers: Processes that embed, `LocalWorkers` or `RayWorkers`, with the same result. By default, this
                process.
            embeddings_name: The shell's name of the embeddings (`--embeddings`), kept in the folder.

        Raises:
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text, or the
                folder holds a `manifest.json` of something else.
            IndexLoadError: If the cache is damaged.
            FileWriteError: If another process writes to the folder, the disk is full, or this user may not write there.
        """
        embeddings = default_embeddings() if embeddings is None else embeddings
        for given, wanted in (graph, KnowledgeGraph), (embeddings, Embeddings):
            if not isinstance(given, wanted):
                raise InvalidArgumentError(
                    f"GraphIndex.build: wanted {wanted.__name__}, but got {given!r:.100}.",
                    hint_python="Give a KnowledgeGraph, such as KnowledgeGraph.from_file(path), and LangChain "
                    'Embeddings, such as local_embeddings("all-MiniLM-L6-v2"), or nothing.',
                )
        if isinstance(cache, str | Path):
            cache = EmbeddingCache(cache)
        options: dict[str, Any] = {"cache": cache, "progress": progress, "workers": workers}
        embed_texts = partial(embed_batches, embeddings, batch_size=batch_size, **options)
        with nullcontext() if path is None else FolderWriter(path) as writer:
            columns, files, dimension = embed_graph(graph, embed_texts, triples=triples, writer=writer)
            if writer:
                linking = {_LINKING + name: column for name, column in name_columns(graph).items()}
                meta = identity(graph, embeddings, dimension)
                meta |= {"embeddings_name": embeddings_name} if embeddings_name else {}
                writer.replace({"graph": graph.to_part(), "index": Part({**columns, **files, **linking}, meta)})
        return cls(graph, embeddings, dimension, make_searches(columns))

    @classmethod
    def open(
        cls, path: str | Path, embeddings: Embeddings | None = None, *, graph: KnowledgeGraph | None = None
    ) -> GraphIndex:
        """Open a folder that `build` wrote.

        Its vectors stay on disk and are mapped into memory.

        Args:
            path: The folder.
            embeddings: The embeddings that it was built with. By default, `default_embeddings()`.
            graph: The graph, if it is at hand. By default, the one in the folder.

        Raises:
            IndexLoadError: If the folder holds no complete index.
            StaleIndexError: If the graph or the embeddings are others than at build.
        """
        embeddings = default_embeddings() if embeddings is None else embeddings
        if not isinstance(path, str | PathLike):
            got = f"{path!r:.100} and {embeddings!r:.100}"
            raise InvalidArgumentError(f"GraphIndex.open: wanted a folder, then embeddings, but got {got}.")
        wanted = ["index"] if graph else ["index", "graph"]
        parts = open_parts(path, wanted, IndexLoadError)
        columns, meta = parts["index"].columns, parts["index"].meta
        try:
            check_model(path, meta, embeddings)
            graph = graph_of(path, meta["graph"], graph, parts.get("graph"))
            check_vectors(columns, graph, meta["dimension"])
            index = cls(graph, embeddings, meta["dimension"], make_searches(columns))
            if len(graph.relations):
                index._texts.probe = (readable(graph.relations[0]), columns["relations"][0])
            index._linking = {name: columns[_LINKING + name] for name in NAME_COLUMNS}
            check_name_table(index._linking, graph)
        except KeyError as cause:
            raise IndexLoadError(f"{cause} is missing. Build the index again.", path) from cause
        except ValueError as cause:
            raise IndexLoadError(f"the index is damaged: {cause}. Build the index again.", path) from cause
        except GraphLoadError as cause:
            raise IndexLoadError(f"the graph of the index cannot be read: {cause}", path) from cause
        index._folder = Path(path).absolute()
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder that the index was opened from.

        If the folder does not hold the index any more, pickle the vectors.
        """
        if self.connected is not None and not self.is_part:
            hint = "Connect in the other process: GraphIndex.connect(executor, embeddings)."
            for part in (self.connected.reader, self.embeddings, self.connected.store):
                check_picklable(part, "GraphIndex", hint)
            return _over, (self.connected, self.embeddings)
        hint = "Open it in the other process: GraphIndex.open(path, embeddings)."
        check_picklable(self.embeddings, "GraphIndex", hint)
        own = identity(self.graph, self.embeddings, self.dimension)
        if self._folder and own.items() <= saved_meta(self._folder, "index").items():
            return partial(GraphIndex.open, graph=self.graph), (self._folder, self.embeddings)
        return GraphIndex, (self.graph, self.embeddings, self.dimension, self._all_searches())

    @classmethod
    def connect(
        cls,
        reader: PartReader | Any,
        embeddings: Embeddings,
        vectors: VectorStoreSearch | None = None,
        *,
        max_facts: int = MAX_FACTS,
        fresh_seconds: float = FRESH_SECONDS,
        timeout: float = TIMEOUT,
    ) -> GraphIndex:
        """Connect to a graph that stays in its database.

        Each question fetches the part that it needs.

        Only the schema is read now. The graph of the index holds the relations and no facts. A retriever fetches the
        facts around the entities of a question, in one query for each hop, and works on this part as on any other
        graph. Evidence of a part that `max_facts` cut is marked as truncated.

        Args:
            reader: An executor: `Neo4jExecutor`, `LadybugExecutor` or `SparqlExecutor`. Or a driver of neo4j,
                LangChain's `Neo4jGraph` or LlamaIndex's `Neo4jPropertyGraphStore`.
            embeddings: Any LangChain embeddings, and the same as for the vectors of the store.
            vectors: The store that holds the names, filled by `load_names` or `kg-retrievers index`. Without it,
                entities are found only if a question names them exactly, except for capitals.
            max_facts: The most facts that a question fetches.
            fresh_seconds: How long read facts count as current.
            timeout: The most seconds of one query.

        Raises:
            InvalidArgumentError: If a number is out of range.
            StaleIndexError: If the store was filled with other embeddings.
            DatabaseError: If the database cannot be reached, or refuses a request.
        """
        reader = executor_of(reader, "GraphIndex.connect", "facts_of")
        connected = ConnectedGraph(
            reader, embeddings, vectors, max_facts=max_facts, fresh_seconds=fresh_seconds, timeout=timeout
        )
        return _over(connected, embeddings)

    @classmethod
    def update(
        cls,
        path: str | Path,
        embeddings: Embeddings,
        *,
        cache: EmbeddingCache | str | Path | None = None,
        batch_size: int = 1024,
        progress: bool = False,
        **changes: Unpack[Changes],
    ) -> IndexUpdate:
        """Change the graph and the index in a folder.

        Only new texts are embedded, and vectors are added to the file.

        A process that opened the folder before goes on with the old index.

        Args:
            path: The folder that `build` wrote.
            embeddings: The embeddings that it was built with.
            cache: As of `build`.
            batch_size: As of `build`.
            progress: As of `build`.
            **changes: As of `KnowledgeGraph.with_changes`.

        Raises:
            IndexLoadError: If the folder holds no complete index.
            StaleIndexError: If the embeddings are others than at build.
            InvalidArgumentError: As of `KnowledgeGraph.with_changes`. Nothing is changed then.
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
        if not isinstance(path, str | PathLike) or not is_saved(Path(path)):
            cls.open(path, embeddings)  # raises its errors before the folder is made and locked
        with FolderWriter(path) as writer:
            index = cls.open(path, embeddings)
            changed = index._changed(embed_texts, change_graph(index.graph, **changes))
            graph = changed.graph
            columns = changed.saved_columns()
            linking = changed.name_columns(index._linking)
            columns |= {_LINKING + name: column for name, column in linking.items()}
            meta = {**saved_meta(Path(path), "index"), **identity(graph, embeddings, changed.dimension)}
            writer.replace({"graph": graph.to_part(), "index": Part(columns, meta)})
        return IndexUpdate(cls.open(path, embeddings), *changed.counts())

    def with_changes(self, **changes: Unpack[Changes]) -> GraphIndex:
        """Return an index of the changed graph in memory.

        Only new texts are embedded.

        Args:
            **changes: As of `KnowledgeGraph.with_changes`.

        Raises:
            InvalidArgumentError: As of `KnowledgeGraph.with_changes`.
            StaleIndexError: If the embeddings do not fit the index.
        """
        change = change_graph(self.graph, **changes)
        return self._over_change(self._changed(partial(embed, self.embeddings), change))

    def view(
        self,
        where: Where | None = None,
        *,
        as_of: date | str | None = None,
        validity: tuple[str, str] = (VALID_FROM, VALID_TO),
    ) -> GraphIndex:
        """Return an index of only the facts whose attributes satisfy conditions.

        Nothing of the other facts is in it.

        The index keeps its last `VIEWS_KEPT` views. Only relations that get another name are embedded again. If the
        graph stays in its database, the conditions are part of all queries.

        Args:
            where: As of `KnowledgeGraph.view`.
            as_of: As of `KnowledgeGraph.view`.
            validity: As of `KnowledgeGraph.view`.

        Raises:
            InvalidArgumentError: As of `KnowledgeGraph.view`, or if the reader of a connected graph cannot narrow it.
            DatabaseError: If the database cannot be reached, or refuses a request.

        Example:
            >>> from kg_retrievers.index import default_embeddings
            >>> facts = [("Ann", "knows", "Bob", {"tenant": "a"}), ("Ann", "knows", "Eve", {"tenant": "b"})]
            >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
            >>> list(index.view({"tenant": "a"}).graph.names)
            ['Ann', 'Bob']
        """
        if self.is_connected:
            return self._view_in_database(where or {}, as_of, validity) if where or as_of is not None else self
        sets = self.graph.attribute_sets.satisfying({} if where is None else where, as_of, validity)

        def narrowed(keys: list[bytes]) -> dict[bytes, GraphIndex]:
            changed = self._changed(partial(embed, self.embeddings), narrow_graph(self.graph, sets))
            return dict.fromkeys(keys, self._over_change(changed))

        key = sets.tobytes()
        return self if sets.all() else self._views.get_or_make([key], narrowed)[key]

    def _view_in_database(self, *wanted: Any) -> GraphIndex:
        """Return the view of a connected graph.

        Its reader sees only facts that satisfy conditions.
        """
        connected = self.connected
        assert connected is not None
        narrow = getattr(connected.reader, "view", None)
        if narrow is None:
            raise InvalidArgumentError(
                f"GraphIndex.view: {connected.reader!r:.200} cannot be narrowed. Databases of Cypher and "
                "SPARQL endpoints can, each once: give all conditions in one call.",
                hint_python="Else read the graph and narrow that: KnowledgeGraph.from_executor(executor).view(...).",
            )

        def narrowed(keys: list[str]) -> dict[str, GraphIndex]:
            limits = {name: getattr(connected, name) for name in ("max_facts", "fresh_seconds", "timeout")}
            view = ConnectedGraph(narrow(*wanted), self.embeddings, connected.store, **limits)
            if not view.relations:
                raise no_fact_left()
            return dict.fromkeys(keys, _over(view, self.embeddings, self.embed))

        return self._views.get_or_make([key := repr(wanted)], narrowed)[key]

    def _changed(self, embed_texts: Callable[[Sequence[str]], Array], change: GraphChange) -> IndexChange:
        """Embed the new texts of a changed graph.

        Raises:
            StaleIndexError: If the embeddings do not fit the index.
        """
        before = self.graph, self.dimension, self._all_searches(), change
        if not self.dimension:
            return IndexChange(*before, embed_texts)
        self.embed([])  # compares the model
        return IndexChange(*before, lambda texts: self._texts.checked(embed_texts(texts)))

    def _over_change(self, changed: IndexChange) -> GraphIndex:
        """Return the index of a changed graph, with its table of names.

        It has the table if the table of the graph before is at hand.
        """
        index = GraphIndex(changed.graph, self.embeddings, changed.dimension, changed.searches())
        index._linking = changed.name_columns(self._linking) if self._linking else None
        return index

    def _all_searches(self) -> dict[str, Search]:
        """Return the search of each kind of parts.

        The search of triples is among them if all of them are embedded by now.
        """
        triples = self._triples.search()
        return {**self.searches, "triples": triples} if triples else {**self.searches}

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with the graph, the embedding model and the dimension."""
        return fingerprint({}, identity(self.graph, self.embeddings, self.dimension))

    # --- what a text means --------------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts in at most one call of the embeddings.

        Texts of relations and types, and texts seen lately, need no call.

        Returns:
            float32, shape (texts, dimension): unit rows.

        Raises:
            StaleIndexError: If the vectors differ in length from the vectors of the index.
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
        """
        return self._texts.embed(texts)

    def exact_entities(self, texts: Sequence[str]) -> list[Candidates]:
        """Find the entities with each text as a name or key.

        Nothing is embedded.

        Returns:
            For a text that is a name, these are the candidates that `nearest_entities` gives with k = 1. For other
                texts, there are none.
        """
        found = []
        for text in texts:
            names = np.array([name for name in (self.graph.names.find(text),) if name >= 0], np.int64)
            entities, _ = self.graph.entities_of_names(names)
            if not len(entities) and (key := self.graph.entities.find(text)) >= 0:
                entities = np.array([key])
            found.append(Candidates(entities.astype(np.int32), np.zeros(len(entities), np.float32)))
        return found

    def nearest_entities(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the entities whose names are nearest to each text.

        For a name and k = 1, the other names are not examined.

        Args:
            texts: The texts. A name or an entity key written exactly is always among its own candidates.
            k: How many names to find for each text. Every entity with one of these names is a candidate, at the least
                distance of its names. All entities of an ambiguous label are thus found together.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        graph = self.graph

        def exact(text: str) -> Sequence[int]:
            return [name] if (name := graph.names.find(text)) >= 0 else ()

        found = []
        for text, names in zip(
            texts, find_nearest(self.searches["names"], graph.names, texts, k, self.embed, exact), strict=True
        ):
            entities, counts = graph.entities_of_names(names.ids)
            distances = np.repeat(names.distances, counts)
            if graph.names.find(text) < 0 <= (key := graph.entities.find(text)):
                entities = np.append(entities, np.int32(key))
                distances = np.append(np.maximum(distances, np.float32(EXACT_NAME_MARGIN)), np.float32(0))
            found.append(sorted_candidates(entities, distances))
        return found

    def nearest_relations(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k relations nearest to each text.

        A relation that is written exactly or readably has a distance of 0.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        return self._nearest("relations", texts, k)

    def nearest_types(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k types nearest to each text.

        A type that is written exactly or readably has a distance of 0.

        A part of a connected graph finds its own types among the k nearest types of the whole graph.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        found = self._nearest("types", texts, k)
        if not self.is_part or not len(self.graph.types) or not texts or self.whole is self:
            return found
        return [
            _nearer(own, elsewhere, k) for own, elsewhere in zip(found, self.whole.nearest_types(texts, k), strict=True)
        ]

    def _nearest(self, kind: str, texts: Sequence[str], k: int) -> list[Candidates]:
        exact, table = self._exact[kind], tables_of(self.graph)[kind]
        return find_nearest(self.searches[kind], table, texts, k, self.embed, lambda text: exact.get(text, ()))

    @property
    def name_table(self) -> NameTable:
        """The table that finds names in questions.

        It is made now unless the folder holds it.
        """

        def make() -> NameTable:
            self._linking = self._linking or name_columns(self.graph)
            return NameTable(self.graph, self._linking)

        return self.derived.get("names", (), make)

    @property
    def keeps_triples(self) -> bool:
        """Whether the vectors of all triples are made."""
        return self._triples.search() is not None

    def entity_vectors(self, entities: Array) -> Array:
        """Return the vectors of the labels of entities.

        Args:
            entities: Ids of entities, integers of shape (n).

        Returns:
            float32, shape (n, dimension): unit rows.
        """
        return self.searches["names"].vectors_of(self.graph.labels[entities])

    @property
    def relation_vectors(self) -> Array:
        """The vectors of the relations, float32, shape (relations, dimension): unit rows."""
        return self.searches["relations"].vectors

    def triple_similarities(self, text: str, triples: Array | None = None) -> Array:
        """Return the cosine of a text and each given triple.

        Cosines are in [-1, 1], rounded to `SIMILARITY_DECIMALS` decimals.

        The text of a triple is the label of its head, its relation and the label of its tail, each in words
        (`readable`) as all that is embedded: "Her directed by Spike Jonze", the linear verbalization of KAPING
        (arXiv:2306.04136).

        If the index was built without triples, the triples that no earlier call needed are embedded now. They stay in
        memory, with `4 * dimension` bytes each and room for as many again.

        Args:
            text: The text, which is embedded as it is.
            triples: Ids of triples, integers of shape (m). By default, all triples.

        Returns:
            float32, shape (m), in the order of `triples`.

        Raises:
            InvalidArgumentError: If no triple has one of the ids, or the embeddings return something else than one
                finite vector for each text. Triples that were embedded before are kept.
            StaleIndexError: If the embeddings do not fit the index.
        """
        check_length(text, "GraphIndex.triple_similarities: the text")
        ids = None if triples is None else np.asarray(triples, np.int64)
        if not (len(self.graph) if ids is None else len(ids)):
            return np.empty(0, np.float32)
        if ids is not None and (ids.min() < 0 or ids.max() >= len(self.graph)):
            raise InvalidArgumentError(
                f"GraphIndex.triple_similarities: wanted ids of triples, 0 to {len(self.graph) - 1}, but got "
                f"{ids.min()} to {ids.max()}."
            )
        return self._triples.similarities(self.embed([text])[0], ids)

    @cached_property
    def _held_texts(self) -> dict[str, Array]:
        """The vectors of relations and types by their texts."""
        tables, kinds = tables_of(self.graph), ("types", "relations")
        rows = (zip(tables[kind], self.searches[kind].vectors, strict=True) for kind in kinds)
        return {readable(name): row for name, row in chain.from_iterable(rows)}

    @cached_property
    def _exact(self) -> dict[str, dict[str, list[int]]]:
        """The ids of relations and types by their texts."""
        return {kind: ids_by_text(table) for kind, table in tables_of(self.graph).items() if kind != "names"}

    # --- graphs in databases ------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether each question fetches a part from a database.

        See `connect`.
        """
        return self.connected is not None and not self.is_part

    @property
    def is_part(self) -> bool:
        """Whether this is a part of a connected graph."""
        return self.origin is not self

    @property
    def finds_near_names(self) -> bool:
        """Whether the search finds names that are written in another way.

        A connected graph finds such names only by a store.
        """
        return self.connected is None or self.connected.names is not None

    @property
    def reader(self) -> PartReader | None:
        """The reader of a connected graph, or None for a graph in memory."""
        return None if self.connected is None else self.connected.reader

    @property
    def triple_count(self) -> int | None:
        """How many triples the whole graph has.

        None if it is in a database that does not count them.
        """
        return len(self.graph) if self.connected is None else self.connected.triple_count

    def has_graph_of(self, other: GraphIndex) -> bool:
        """Tell whether another index is of the same graph."""
        if self.reader is not None or other.reader is not None:
            return self.reader is other.reader
        return other is self or self.graph.fingerprint == other.graph.fingerprint

    def part(self, request: PartRequest) -> GraphIndex:
        """Fetch a part of a connected graph as an index in memory.

        A graph in memory is its own part.

        Parts are kept by their requests, as long as they are fresh.

        Raises:
            DatabaseError: If the database or the store of names cannot be reached, or refuses a query.
        """
        connected = self.connected
        if connected is None:
            return self

        def fetch(_: list[PartRequest]) -> dict[PartRequest, GraphIndex]:
            return {request: self._as_part(connected.fetch(request, self.origin.embed))}

        part: GraphIndex = connected.parts.get_or_make([request], fetch)[request]
        return part

    def parts(
        self, items: Sequence[Item], request: Callable[[Sequence[Item]], PartRequest]
    ) -> Iterator[tuple[GraphIndex, Sequence[Item]]]:
        """Yield parts of a connected graph for many items, each with its items.

        For a graph in memory, the part is the whole graph.

        A part that is too large for several items is fetched for each half of them. The part of one item may be
        truncated.

        Args:
            items: The items, such as examples.
            request: Returns the request for some of the items.

        Example:
            >>> from kg_retrievers.index import HashedEmbeddings
            >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
            >>> index = GraphIndex.build(graph, HashedEmbeddings())
            >>> parts = index.parts(["Her"], lambda keys: PartRequest(tuple(keys), hops=1))
            >>> [(len(part.graph), keys) for part, keys in parts]
            [(1, ['Her'])]
        """
        if not self.is_connected:
            yield self, items
            return
        waiting = [items[first : first + ITEMS_OF_PART] for first in range(0, len(items), ITEMS_OF_PART)]
        while waiting:
            some = waiting.pop(0)
            part = self.part(request(some))
            if part.truncated and len(some) > 1:
                half = len(some) // 2
                waiting[:0] = [some[:half], some[half:]]
            else:
                yield part, some

    def holding(self, keys: Iterable[str], facts: Iterable[Triple] = ()) -> GraphIndex:
        """Return a part that also holds some entities and facts.

        The part belongs to a connected graph, and its database supplies them.

        Returns:
            The index itself if it holds them, or if its graph is in memory.
        """
        connected = self.connected
        missing = {key for key in keys if key not in self.graph.entities}
        unread = {triple for triple in facts if triple not in self.graph}
        if connected is None or not (missing or unread):
            return self
        return self._as_part(connected.with_facts(self.graph, unread, missing))

    def _as_part(self, found: GraphPart) -> GraphIndex:
        """Return an index of a part, which shares the vectors of relations and texts."""
        origin, graph = self.origin, found.graph
        ids = sorted({id for name in found.names if (id := graph.names.find(name)) >= 0})
        names = PartNames(graph, np.array(ids, np.int64), origin._embed_names)
        types = ExactSearch(origin._embed_names([readable(name) for name in graph.types]))
        searches = {**origin.searches, "names": names, "types": types}
        part = GraphIndex(graph, self.embeddings, self.dimension, searches)
        part.origin, part.connected, part._texts = origin, origin.connected, origin._texts
        part.truncated, part.narrowed = found.truncated, found.narrowed
        return part

    def _embed_names(self, texts: Sequence[str]) -> Array:
        """Embed some texts, or none, and keep none of them."""
        return self._texts.embed_new(texts) if texts else np.empty((0, self.dimension), np.float32)

    @property
    def whole(self) -> GraphIndex:
        """The index of the whole graph.

        For a connected graph, it is an index of some facts of each relation.
        """
        if self.reader is None:
            return self
        return self.origin.derived.get("outline", (), self.origin._outline)

    def _outline(self) -> GraphIndex:
        """Read some facts of each relation and facts around them.

        Of a small graph, all facts are read.
        """
        connected = self.connected
        assert connected is not None
        count = connected.triple_count
        is_small = count is not None and count <= connected.max_facts
        most = max(count or 1, 1) if is_small else FACTS
        facts, is_cut = connected.sample(most)
        is_small = is_small and not is_cut
        if not is_small:
            around = self.part(PartRequest(tuple(sorted(self._ends_of_samples(facts))), 1)).graph
            facts = said_in(around) | facts
        ends = {end for triple in facts for end in (triple.head, triple.tail)}
        return self._as_part(GraphPart(connected.graph_of(dict(sorted(facts.items())), sorted(ends)), not is_small))

    def _ends_of_samples(self, facts: Iterable[Triple]) -> set[str]:
        """Return the ends of some facts of each relation, about `OUTLINE_ENTITIES` in all."""
        each = max(OUTLINE_ENTITIES // (2 * max(len(self.graph.relations), 1)), 1)
        counts, ends = Counter[str](), set[str]()
        for head, relation, tail in sorted(facts):
            counts[relation] += 1
            if counts[relation] <= each:
                ends |= {head, tail}
        return ends

    def __repr__(self) -> str:
        """The graph, or the reader of a connected one, and the embeddings."""
        if self.is_connected:
            return f"GraphIndex.connect({self.reader!r}, {embedding_name(self.embeddings)})"
        return f"GraphIndex({self.graph!r}, {embedding_name(self.embeddings)})"


def _over(
    connected: ConnectedGraph, embeddings: Embeddings, embed_texts: Callable[[Sequence[str]], Array] | None = None
) -> GraphIndex:
    """Return the index of a connected graph.

    Its own graph holds the relations and no facts.
    """
    texts = [readable(name) for name in connected.relations] or [""]
    vectors = embed_texts(texts) if embed_texts else embed(embeddings, texts, batch_size=1024)
    graph, dimension = connected.graph_of({}, []), vectors.shape[1]
    nothing, relations = ExactSearch(vectors[:0]), ExactSearch(vectors[: len(connected.relations)])
    index = GraphIndex(graph, embeddings, dimension, {"names": nothing, "relations": relations, "types": nothing})
    index.connected = connected
    return index


def _nearer(own: Candidates, elsewhere: Candidates, k: int) -> Candidates:
    """Return the part's types among the k nearest of the whole graph."""
    farthest = elsewhere.distances[k - 1] if len(elsewhere.distances) >= k else np.inf
    kept = own.distances <= farthest + SLACK
    return Candidates(own.ids[kept], own.distances[kept])


def check_index(who: str, index: object) -> None:
    """Check that an index was given, and not its folder or its graph.

    Raises:
        InvalidArgumentError: If not. The message begins with `who`.
    """
    if not isinstance(index, GraphIndex):
        raise InvalidArgumentError(
            f"{who}: wanted a GraphIndex, but got {index!r:.100}.",
            hint_python="Make one: GraphIndex.build(graph), or GraphIndex.open(folder). Or begin with a file: "
            "from_file(path) in place of from_index(index).",
        )


def check_same_embeddings(who: str, index: GraphIndex, other: GraphIndex) -> None:
    """Check that two indexes can compare their vectors.

    They need the same embeddings.

    Raises:
        ModelMismatchError: If not. The message begins with `who`.
    """
    name, got = embedding_name(index.embeddings), embedding_name(other.embeddings)
    if name != got:
        raise ModelMismatchError(
            f"{who}: its examples were embedded with {name}, and the other graph with {got}. Index that with the "
            "former."
        )


def check_at_hand(who: str, index: GraphIndex) -> None:
    """Check that the graph of an index is at hand as a whole.

    Raises:
        InvalidArgumentError: If it stays in its database. The message begins with `who`.
    """
    if index.is_connected:
        raise InvalidArgumentError(
            f"{who}: it goes over the whole graph, but this one stays in its database.",
            hint_python="Read it and index it: KnowledgeGraph.from_executor(executor). A model that is trained on that "
            "can be used over the connected graph.",
        )
