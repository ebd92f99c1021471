"""The values in the rows of a query: plain values, nodes, relationships and paths, by entity key."""

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
        key: Its key; the database's own id of the node where the node lacks the property that holds keys.
        labels: Its node labels.
        properties: Its properties, as JSON-safe values.
    """

    key: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Relationship:
    """A fact, in the direction in which the database stores it, with its properties as JSON-safe values."""

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
        labels: The labels of the entities in the rows, by key, where a label differs from the key.
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
    """Return the facts in a row, a value or a list of them, in order, each once."""
    return list(dict.fromkeys(_triples_in(value)))


def _triples_in(value: Any) -> Iterator[Triple]:
    if isinstance(value, Relationship):
        yield value.triple
    elif isinstance(value, Path):
        yield from value.triples
    elif isinstance(value, Mapping):
        yield from _triples_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _triples_in(part)


@dataclass(frozen=True)
class StoredNode:
    """A node as a driver returns it, with the database's own `id`."""

    id: Hashable
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class StoredRelationship:
    """A relationship as a driver returns it; `start` and `end` are the ids of nodes that may not be at hand."""

    type: str
    start: Hashable
    end: Hashable
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class StoredPath:
    """A path as a driver returns it: n + 1 nodes and the n relationships between them."""

    nodes: tuple[StoredNode, ...]
    relationships: tuple[StoredRelationship, ...]


def resolve(
    rows: Sequence[Sequence[Any]],
    schema: DatabaseSchema,
    find_nodes: Callable[[list[Hashable]], Iterable[StoredNode]],
) -> tuple[tuple[tuple[Any, ...], ...], dict[str, str]]:
    """Turn stored values into values by entity key.

    Args:
        rows: The rows, with nodes, relationships and paths in their stored forms.
        schema: Says which properties are keys and labels.
        find_nodes: Reads nodes by id; called once, for the ends of relationships whose nodes are not in the rows.

    Returns:
        The rows, and the labels of their entities that are not their keys, by key.
    """
    keys = {label.name: label.key for label in schema.labels}
    nodes = {id: _node(node, keys, schema.keys) for id, node in _stored_nodes(rows, find_nodes).items()}
    values = _Resolved(nodes, schema)
    resolved = tuple(tuple(map(values.of, row)) for row in rows)
    return resolved, _labels_of(nodes.values(), schema.label)


def _stored_nodes(
    rows: Sequence[Sequence[Any]], find_nodes: Callable[[list[Hashable]], Iterable[StoredNode]]
) -> dict[Hashable, StoredNode]:
    """Return the nodes in the rows and at the ends of their relationships, by the database's ids."""
    found: dict[Hashable, StoredNode] = {}
    ends: dict[Hashable, None] = {}
    for part in _stored_in(rows):
        if isinstance(part, StoredNode):
            found[part.id] = part
        else:
            ends |= {part.start: None, part.end: None}
    if missing := [end for end in ends if end not in found]:
        found |= {node.id: node for node in find_nodes(missing)}
    return found


def _stored_in(value: Any) -> Iterator[StoredNode | StoredRelationship]:
    if isinstance(value, StoredNode | StoredRelationship):
        yield value
    elif isinstance(value, StoredPath):
        yield from value.nodes
        yield from value.relationships
    elif isinstance(value, dict):
        yield from _stored_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _stored_in(part)


def _node(node: StoredNode, keys: Mapping[str, str], any_key: Sequence[str]) -> EntityNode:
    of_labels = [keys[label] for label in node.labels if label in keys]
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


class _Resolved:
    """Turns stored values into values by entity key, with the nodes at hand by id."""

    def __init__(self, nodes: Mapping[Hashable, EntityNode], schema: DatabaseSchema) -> None:
        self._nodes, self._schema = nodes, schema

    def of(self, value: Any) -> Any:
        """Return a value by entity key."""
        match value:
            case StoredNode():
                return self._nodes[value.id]
            case StoredRelationship():
                return Relationship(self._fact(value), value.properties)
            case StoredPath():
                entities = tuple(self._nodes[node.id].key for node in value.nodes)
                return Path(entities, tuple(map(self._fact, value.relationships)))
            case list():
                return [self.of(part) for part in value]
            case dict():
                return {name: self.of(part) for name, part in value.items()}
            case _:
                return value

    def _fact(self, relationship: StoredRelationship) -> Triple:
        head, tail = (
            self._nodes[end].key if end in self._nodes else str(end) for end in (relationship.start, relationship.end)
        )
        return Triple(head, self._schema.relation_of(relationship.type), tail)
