"""GraphSearch: finds the entities, relations, types and triples of a graph that are nearest to a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.cache import Cache, Immutable
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.name_columns import name_columns
from kg_retrievers.index.name_table import NameTable
from kg_retrievers.index.nearest import EXACT_NAME_MARGIN, find_nearest, ids_by_text, sorted_candidates
from kg_retrievers.index.quantized_search import QuantizedSearch
from kg_retrievers.index.text_vectors import TextVectors
from kg_retrievers.index.triple_vectors import TripleVectors
from kg_retrievers.index.vector_store import ExactSearch, VectorStoreSearch

#: How many labels of entities are embedded at once.
LABEL_BATCH = 1024


class PartNames(ExactSearch):
    """The names of a part of a connected graph: each is embedded when it is needed, and some can be found.

    Args:
        graph: The part.
        found: The ids of the names that a search may find.
        embed: Embeds texts.
    """

    def __init__(self, graph: KnowledgeGraph, found: Array, embed: Callable[[Sequence[str]], Array]) -> None:
        """Begin without vectors."""
        self._graph, self._found, self._embed = graph, found, embed

    def __len__(self) -> int:
        """The number of names that can be found."""
        return len(self._found)

    def vectors_of(self, ids: Array) -> Array:
        """Return the vectors of some names, float32, shape (n, d)."""
        return self._embed([readable(self._graph.names[id]) for id in ids.tolist()])

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest names; see `NameSearch.search`."""
        ids, distances = ExactSearch(self.vectors_of(self._found)).search(vectors, k)
        return self._found[ids], distances


class GraphSearch(Immutable):
    """Finds the parts of a graph that a text may mean, for `GraphIndex`, whose attributes it has.

    Attributes:
        graph: The graph.
        embeddings: What turns texts into vectors.
        dimension: The length of the vectors; 0 for an empty graph.
        derived: What is derived from the index and shared by all that use it, such as its linker.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        embeddings: Embeddings,
        dimension: int,
        names: ExactSearch | QuantizedSearch | VectorStoreSearch,
        relations: ExactSearch,
        types: ExactSearch,
        triples: ExactSearch | None,
    ) -> None:
        """Take what searches each kind of parts."""
        self.graph = graph
        self.embeddings = embeddings
        self.dimension = dimension
        self._names, self._relations, self._types = names, relations, types
        self._texts = TextVectors(embeddings, dimension, lambda: self._held_texts)
        self._triples = TripleVectors(graph, dimension, self._texts.embed_new, triples)
        self._linking: dict[str, Array] | None = None
        self.derived = Cache()

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts in one call of the embeddings, or none for texts of relations and types and those seen lately.

        Returns:
            float32, shape (texts, dimension): unit rows.

        Raises:
            StaleIndexError: If the vectors are not as long as those of the index.
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
        """
        return self._texts.embed(texts)

    def exact_entities(self, texts: Sequence[str]) -> list[Candidates]:
        """Find the entities that are called as each text, or have it as a key; nothing is embedded.

        Returns:
            The candidates that `nearest_entities` gives with k = 1 to a text that is a name; none for other texts.
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
        """Find the entities whose names are nearest to each text; of a name and k = 1, without looking at the others.

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
        for text, names in zip(texts, find_nearest(self._names, graph.names, texts, k, self.embed, exact), strict=True):
            entities, counts = graph.entities_of_names(names.ids)
            distances = np.repeat(names.distances, counts)
            if graph.names.find(text) < 0 <= (key := graph.entities.find(text)):
                entities = np.append(entities, np.int32(key))
                distances = np.append(np.maximum(distances, np.float32(EXACT_NAME_MARGIN)), np.float32(0))
            found.append(sorted_candidates(entities, distances))
        return found

    def nearest_relations(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k relations nearest to each text; written exactly or readably, a relation has a distance of 0.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        relations = self.graph.relations
        return find_nearest(
            self._relations, relations, texts, k, self.embed, lambda text: self._exact_relations.get(text, ())
        )

    def nearest_types(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the k types nearest to each text; written exactly or readably, a type has a distance of 0.

        Raises:
            InvalidArgumentError: If k is less than 1 or `texts` is one text.
            StaleIndexError: If the embeddings do not fit the index.
        """
        return find_nearest(
            self._types, self.graph.types, texts, k, self.embed, lambda text: self._exact_types.get(text, ())
        )

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
        return not isinstance(self._names, VectorStoreSearch)

    @property
    def keeps_triples(self) -> bool:
        """Whether the vectors of all triples are made."""
        return self._triples.search() is not None

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
        if not isinstance(self._names, VectorStoreSearch):
            return self._names.vectors_of(names)
        blocks = (names[start : start + LABEL_BATCH].tolist() for start in range(0, len(names), LABEL_BATCH))
        vectors = [self._texts.embed_new([readable(self.graph.names[name]) for name in block]) for block in blocks]
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
        memory: `4 * dimension` bytes each, and room for as many again.

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
        tables = (self.graph.types, self._types.vectors), (self.graph.relations, self._relations.vectors)
        return {readable(name): row for table, vectors in tables for name, row in zip(table, vectors, strict=True)}

    @cached_property
    def _exact_relations(self) -> dict[str, list[int]]:
        return ids_by_text(self.graph.relations)

    @cached_property
    def _exact_types(self) -> dict[str, list[int]]:
        return ids_by_text(self.graph.types)
