"""The schema of a graph: its relations, and the types that they join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kg_retrievers.graph.attributes import SOURCE
from kg_retrievers.graph.building import Pairs
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.value_columns import value_range

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True)
class RelationSchema:
    """The ends of one relation.

    Attributes:
        relation: Its name.
        triples: The number of its triples.
        head_types: The types seen at its heads, sorted.
        tail_types: The types seen at its tails, sorted.
        least: The least of its tails as text, if most of them are numbers or dates. Otherwise None.
        greatest: The greatest of them.
    """

    relation: str
    triples: int
    head_types: tuple[str, ...]
    tail_types: tuple[str, ...]
    least: str | None = None
    greatest: str | None = None


@dataclass(frozen=True)
class Schema:
    """The shape of a graph.

    Attributes:
        entities: The number of entities.
        triples: The number of triples.
        relations: The ends of each relation, by falling number of triples.
        types: The number of entities of each type, the most frequent first.
        datatypes: The number of literals of each datatype or language, the most frequent first. Empty if none has one.
        sources: The number of triples from each source, the most frequent first. Empty if none has one.
        attributes: The number of triples with each other attribute, by name. Empty if none has any.
    """

    entities: int
    triples: int
    relations: tuple[RelationSchema, ...]
    types: Mapping[str, int]
    datatypes: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, int] = field(default_factory=dict)


def _count_values(graph: KnowledgeGraph, name: str) -> dict[str, int]:
    """Return how many triples have each value of an attribute, the most frequent first."""
    pairs, values = Pairs.named(graph._columns, "triple_attributes"), dict[str, list[int]]()
    for id, value in graph.attribute_sets.values(name).items():
        values.setdefault(str(value), []).append(id)
    of_set = np.full(len(graph.attribute_sets.texts), -1)
    for position, sets in enumerate(values.values()):
        of_set[sets] = position
    has, size = of_set[pairs.values] >= 0, max(len(values), 1)
    said = distinct(pairs.owners[has].astype(np.int64) * size + of_set[pairs.values[has]])
    counts = np.bincount(said % size, minlength=len(values)).tolist()
    return dict(sorted(zip(values, counts, strict=False), key=lambda item: (-item[1], item[0])))


def _count_names(names: Sequence[str] | None, ids: Array | None) -> dict[str, int]:
    """Return how often each name has its id among `ids`.

    The most frequent comes first. Ids below 0 and "" are no names.
    """
    if names is None or ids is None:
        return {}
    counts = np.bincount(ids[ids >= 0], minlength=len(names)).tolist()
    counted = ((name, count) for name, count in zip(names, counts, strict=True) if name)
    return dict(sorted(counted, key=lambda item: (-item[1], item[0])))


def schema_of(graph: KnowledgeGraph) -> Schema:
    """Return the schema of a graph."""
    kinds, heads, tails = graph.edges.relations, graph.edges.heads, graph.edges.tails
    counts = np.bincount(kinds, minlength=len(graph.relations))
    by_relation = np.split(np.argsort(kinds, kind="stable"), np.cumsum(counts)[:-1])

    def types_at(entities: Array) -> tuple[str, ...]:
        return tuple(sorted(graph.types[kind] for kind in graph.types_among(entities)))

    def count_with(name: str) -> int:
        pairs = Pairs.named(graph._columns, "triple_attributes")
        return len(distinct(pairs.owners[np.isin(pairs.values, [*graph.attribute_sets.values(name)])]))

    schemas = []
    for relation in np.argsort(-counts, kind="stable").tolist():
        facts = by_relation[relation]
        ends = value_range(graph.lazy_values, tails[facts]) or ()
        least_and_greatest = [graph.names[int(graph.labels[entity])] for entity in ends]
        joined = types_at(heads[facts]), types_at(tails[facts])
        schemas.append(RelationSchema(graph.relations[relation], int(counts[relation]), *joined, *least_and_greatest))
    return Schema(
        entities=len(graph.entities),
        triples=len(graph),
        relations=tuple(schemas),
        types=_count_names(graph.types, graph._columns["entity_types.values"]),
        datatypes=_count_names(graph.datatype_names, graph._columns.get("datatypes")),
        sources=_count_values(graph, SOURCE),
        attributes={name: count_with(name) for name in graph.attribute_names if name != SOURCE},
    )
