"""Represent the values in the rows of a query.

Values are plain values, nodes, relationships and paths, by entity key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.graph import Path, Triple


@dataclass(frozen=True)
class EntityNode:
    """A node of a row, by the key of its entity.

    Args:
        key: Its key. If the node lacks the property that holds keys, the database's own id of the node.
        labels: Its node labels.
        properties: Its properties, as JSON-safe values.
    """

    key: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Relationship:
    """A fact, in the direction in which the database stores it.

    Its properties are JSON-safe values.
    """

    triple: Triple
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """The result of a query.

    Args:
        columns: The names of the columns.
        rows: The rows. A value is None, a bool, number, text, list or dict of such, an `EntityNode`, a `Relationship`,
            or a `Path` with its triples in stored direction.
        truncated: True if there are more rows than were asked for.
        labels: The labels of the entities in the rows, by key, if a label differs from the key.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return the values of one column, in the order of the rows."""
        position = self.columns.index(name)
        return [row[position] for row in self.rows]


def triples_in(value: Any) -> list[Triple]:
    """Return the facts in a row, a value or a list of them.

    They come in order, each once.
    """
    found: dict[Triple, None] = {}
    for part in _walk(value):
        found |= dict.fromkeys(part.triples if isinstance(part, Path) else ())
        found |= {part.triple: None} if isinstance(part, Relationship) else {}
    return [*found]


@dataclass(frozen=True)
class StoredNode:
    """A node as a driver returns it, with the database's own `id`."""

    id: Hashable
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class StoredRelationship:
    """A relationship as a driver returns it.

    `start` and `end` are the ids of nodes that may not be at hand.
    """

    type: str
    start: Hashable
    end: Hashable
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class StoredPath:
    """A path as a driver returns it, with n + 1 nodes and n relationships."""

    nodes: tuple[StoredNode, ...]
    relationships: tuple[StoredRelationship, ...]


def resolve(
    rows: Sequence[Sequence[Any]], schema: DatabaseSchema, find_nodes: Callable[[list[Hashable]], Iterable[StoredNode]]
) -> tuple[tuple[tuple[Any, ...], ...], dict[str, str]]:
    """Turn stored values into values by entity key.

    Args:
        rows: The rows, with nodes, relationships and paths in their stored forms.
        schema: Says which properties are keys and labels.
        find_nodes: Reads nodes by id. It is called once, for the ends of relationships whose nodes are not in the rows.

    Returns:
        The rows, and the labels of their entities that are not their keys, by key.
    """
    parts = [part for part in _walk(rows) if isinstance(part, StoredNode | StoredRelationship)]
    stored = {part.id: part for part in parts if isinstance(part, StoredNode)}
    ends = (end for part in parts if isinstance(part, StoredRelationship) for end in (part.start, part.end))
    if missing := [end for end in dict.fromkeys(ends) if end not in stored]:
        stored |= {node.id: node for node in find_nodes(missing)}
    key_of_label = {label.name: label.key for label in schema.labels}
    nodes = {id: _node(node, key_of_label, schema.keys) for id, node in stored.items()}

    def fact(relationship: StoredRelationship) -> Triple:
        head, tail = (nodes[end].key if end in nodes else str(end) for end in (relationship.start, relationship.end))
        return Triple(head, schema.relation_of(relationship.type), tail)

    def resolved(value: Any) -> Any:
        match value:
            case StoredNode():
                return nodes[value.id]
            case StoredRelationship():
                return Relationship(fact(value), value.properties)
            case StoredPath():
                entities = tuple(nodes[node.id].key for node in value.nodes)
                return Path(entities, tuple(map(fact, value.relationships)))
            case list():
                return [resolved(part) for part in value]
            case dict():
                return {name: resolved(part) for name, part in value.items()}
        return value

    return tuple(tuple(map(resolved, row)) for row in rows), _labels_of(nodes.values(), schema.label)


def _walk(value: Any) -> Iterator[Any]:
    """Yield a value, and all values inside of it."""
    yield value
    if isinstance(value, Mapping):
        value = [*value.values()]
    elif isinstance(value, StoredPath):
        value = [*value.nodes, *value.relationships]
    for part in value if isinstance(value, list | tuple) else ():
        yield from _walk(part)


def _node(node: StoredNode, key_of_label: Mapping[str, str], any_key: Sequence[str]) -> EntityNode:
    of_labels = [key_of_label[label] for label in node.labels if label in key_of_label]
    held = (node.properties.get(name) for name in (*of_labels, *any_key))
    key = next((value for value in held if value is not None), node.id)
    return EntityNode(str(key), node.labels, node.properties)


def _labels_of(nodes: Iterable[EntityNode], label_property: str | None) -> dict[str, str]:
    """Return the labels that are not keys, by key."""
    labels = {}
    for node in nodes:
        label = node.properties.get(label_property) if label_property else None
        if isinstance(label, str) and label and label != node.key:
            labels[node.key] = label
    return labels
