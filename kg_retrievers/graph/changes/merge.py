"""Merge: which ids the parts of one graph get in another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.edges import Edges
from kg_retrievers.graph.reading import Reading
from kg_retrievers.graph.types import Triple


class Graph(Protocol):
    """What a change needs of a graph: `KnowledgeGraph` has all of it, and says what it is."""

    entities: StringTable
    relations: StringTable
    types: StringTable
    names: StringTable
    edges: Edges
    adjacency: Adjacency
    duplicates: int
    skipped: int
    text_relations: tuple[str, ...]
    prefixes: dict[str, str]
    reading: Reading
    type_ids: dict[str, str]
    _columns: dict[str, Array]

    def __init__(
        self,
        columns: Mapping[str, Array],
        duplicates: int = 0,
        skipped: int = 0,
        text_relations: Iterable[str] = (),
        prefixes: Mapping[str, str] | None = None,
        reading: Reading | None = None,
        type_ids: Mapping[str, str] | None = None,
    ) -> None:
        """Take columns."""

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[Sequence[str]],
        *,
        labels: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """Build a graph of texts."""

    @property
    def labels(self) -> Array:
        """The label of each entity."""

    @property
    def relation_ids(self) -> StringTable | None:
        """How the source wrote each relation."""

    @property
    def source_names(self) -> StringTable | None:
        """The sources of all facts."""

    @property
    def datatype_names(self) -> StringTable | None:
        """The datatypes of all literals."""

    def __len__(self) -> int:
        """The number of triples."""

    def triple(self, id: int) -> Triple:
        """Return a triple by its id."""

    def triples(
        self, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Iterator[Triple]:
        """Yield the triples with some parts."""

    def entities_named(self, name: str) -> list[str]:
        """Return the keys of the entities with a name."""


class Merge(NamedTuple):
    """A graph, what is added to it, and which ids this gets: those of the graph, or new ones behind them.

    Attributes:
        graph: The graph.
        addition: What is added, as a graph.
        entities: The id of each entity of the addition.
        relations: The id of each relation of the addition.
    """

    graph: Graph
    addition: Graph
    entities: Array
    relations: Array

    @classmethod
    def of(cls, graph: Graph, addition: Graph) -> Merge:
        """Look up what is added."""
        entities = numbered(graph.entities.ids_of(addition.entities), len(graph.entities))
        relations = numbered(find_relations(graph, written_relations(addition)), len(graph.relations))
        return cls(graph, addition, entities, relations)

    @property
    def is_new_entity(self) -> Array:
        """Which entities of the addition the graph lacks."""
        return self.entities >= len(self.graph.entities)

    @property
    def is_new_relation(self) -> Array:
        """Which relations of the addition the graph lacks."""
        return self.relations >= len(self.graph.relations)

    @property
    def are_names_keys(self) -> bool:
        """Whether the entities of both are called by their keys alone."""
        return "labels" not in self.graph._columns and "labels" not in self.addition._columns

    @property
    def entity_count(self) -> int:
        """How many entities both have."""
        return len(self.graph.entities) + int(self.is_new_entity.sum())

    @property
    def relation_count(self) -> int:
        """How many relations both have."""
        return len(self.graph.relations) + int(self.is_new_relation.sum())

    def edges(self) -> tuple[Array, Array]:
        """Return the added triples, each once, and which of them each triple of the addition is."""
        heads, relations, tails = self.addition.edges[:].T
        edges = np.stack([self.entities[heads], self.relations[relations], self.entities[tails]], axis=1)
        if len(np.unique(self.relations)) == len(self.relations):
            return edges, np.arange(len(edges))
        _, first, inverse = np.unique(edges, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return edges[first[order]], np.argsort(order)[inverse.reshape(-1)]


def written_relations(graph: Graph) -> StringTable:
    """Return how the source of a graph wrote its relations."""
    return graph.relations if graph.relation_ids is None else graph.relation_ids


def written_types(graph: Graph) -> list[str]:
    """Return how the source of a graph wrote its types."""
    return [graph.type_ids.get(name, name) for name in graph.types]


def find_relations(graph: Graph, texts: StringTable) -> Array:
    """Return the id of each relation that is written so by the source, or else called so; -1 where it is missing."""
    found = written_relations(graph).ids_of(texts)
    return np.where(found < 0, graph.relations.ids_of(texts), found)


def numbered(found: Array, count: int) -> Array:
    """Return ids with those that are missing (-1) numbered from `count` on.

    Example:
        >>> numbered(np.array([4, -1, 0, -1]), 5).tolist()
        [4, 5, 0, 6]
    """
    ids, missing = found.copy(), found < 0
    ids[missing] = count + np.arange(int(missing.sum()))
    return ids
