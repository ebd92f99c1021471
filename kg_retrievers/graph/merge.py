"""Merge: which ids the parts of one graph get in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array, StringTable

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


class Merge(NamedTuple):
    """A graph, what is added to it, and which ids this gets: those of the graph, or new ones behind them.

    Attributes:
        graph: The graph.
        addition: What is added, as a graph.
        entities: The id of each entity of the addition.
        relations: The id of each relation of the addition.
    """

    graph: KnowledgeGraph
    addition: KnowledgeGraph
    entities: Array
    relations: Array

    @classmethod
    def of(cls, graph: KnowledgeGraph, addition: KnowledgeGraph) -> Merge:
        """Look up what is added."""
        entities = numbered(graph.entities.ids_of(addition.entities), len(graph.entities))
        relations = numbered(find_relations(graph, addition), len(graph.relations))
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
    def entity_count(self) -> int:
        """How many entities both have."""
        return len(self.graph.entities) + int(self.is_new_entity.sum())

    @property
    def relation_count(self) -> int:
        """How many relations both have."""
        return len(self.graph.relations) + int(self.is_new_relation.sum())

    def edges(self) -> tuple[Array, Array]:
        """Return the added triples, each once, and which of them each triple of the addition is."""
        heads, relations, tails = self.addition.edges.T
        edges = np.stack([self.entities[heads], self.relations[relations], self.entities[tails]], axis=1)
        if len(np.unique(self.relations)) == len(self.relations):
            return edges, np.arange(len(edges))
        _, first, inverse = np.unique(edges, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return edges[first[order]], np.argsort(order)[inverse.reshape(-1)]


def written_relations(graph: KnowledgeGraph) -> StringTable:
    """Return how the source of a graph wrote its relations."""
    return graph.relations if graph.relation_ids is None else graph.relation_ids


def find_relations(graph: KnowledgeGraph, other: KnowledgeGraph) -> Array:
    """Return the id here of each relation of another graph, -1 where it is missing.

    A relation is found by how its source wrote it, else by its name here.
    """
    texts = written_relations(other)
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
