"""The schema of a graph: its relations, and the types that they join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True)
class RelationSchema:
    """What one relation joins: its number of triples and the types seen at its heads and tails, sorted."""

    relation: str
    triples: int
    head_types: tuple[str, ...]
    tail_types: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """The shape of a graph: relations by falling number of triples, and the number of entities of each type."""

    entities: int
    triples: int
    relations: tuple[RelationSchema, ...]
    types: Mapping[str, int]


def schema_of(graph: KnowledgeGraph) -> Schema:
    """Count relations and types, and say which types each relation joins."""
    edges = graph.edges
    counts = np.bincount(edges[:, 1], minlength=len(graph.relations))
    by_relation = np.split(edges[np.argsort(edges[:, 1], kind="stable")], np.cumsum(counts)[:-1])
    relations = []
    for relation in np.argsort(-counts, kind="stable").tolist():
        heads, _, tails = by_relation[relation].T
        ends = _types_at(graph, np.unique(heads).tolist()), _types_at(graph, np.unique(tails).tolist())
        relations.append(RelationSchema(graph.relations[relation], int(counts[relation]), *ends))
    sizes = {name: len(graph.type_entities(kind)) for kind, name in enumerate(graph.types)}
    types = dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))
    return Schema(len(graph.entities), len(graph), tuple(relations), types)


def _types_at(graph: KnowledgeGraph, entities: Iterable[int]) -> tuple[str, ...]:
    """Return the types of any of some entities, sorted."""
    kinds: set[int] = set()
    for entity in entities:
        kinds.update(graph.entity_types(entity))
    return tuple(sorted(graph.types[kind] for kind in kinds))
