"""Describe the schema of a graph database.

It holds labels, relationship types and properties, and the roles of the properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.readers.frameworks.attributes import NODE_ATTRIBUTES, VECTOR_SIZE

#: The types of integers of 64 bits or less.
_WHOLE = re.compile(r"INTEGER|SERIAL|INT(8|16|32|64)")

#: The types of values that no graph holds: bytes, points, nested values and vectors.
_UNREAD = re.compile(r"VECTOR|BYTES|BLOB|POINT|MAP\b|STRUCT\b|UNION\b|.*\[\d*\]\[")

#: The type of a list of numbers of one length.
_ARRAY = re.compile(r"(?:FLOAT|DOUBLE)\[(\d+)\]")

#: Which Cypher a database understands, or SPARQL.
Dialect = Literal["ladybug", "neo4j", "sparql"]


@dataclass(frozen=True)
class NodeLabel:
    """A label that nodes have.

    Args:
        name: The label.
        key: The property that holds the key of such an entity.
        properties: The names and types of its properties. Types are written as the database writes them.
    """

    name: str
    key: str
    properties: Mapping[str, str]

    @property
    def least(self) -> str | int:
        """Return a lower bound of all keys.

        It is the least integer, or the empty text for all other keys, which are sorted as text.
        """
        return -(2**63) if _WHOLE.fullmatch(self._key_type) else ""

    @property
    def has_text_key(self) -> bool:
        """Whether its keys are texts."""
        return self._key_type == "STRING"

    @property
    def _key_type(self) -> str:
        return self.properties.get(self.key, "STRING")

    def key_text(self, name: str, dialect: Dialect) -> str:
        """Return the expression for the key of a node with this label, as a text."""
        held = f"{name}.{backticked(self.key)}"
        if self.has_text_key:
            return held
        return f"CAST({held} AS STRING)" if dialect == "ladybug" else f"toString({held})"

    def key_order(self, name: str, dialect: Dialect) -> str:
        """Return the expression that nodes are sorted by.

        It is the key as it is indexed, if it is a text or integer.
        """
        return f"{name}.{backticked(self.key)}" if self.least != "" else self.key_text(name, dialect)


@dataclass(frozen=True)
class RelationType:
    """A type that relationships have.

    Args:
        name: The type, as it stands in queries between back-ticks.
        ends: The labels of head and tail that it joins, as pairs.
        properties: The names and types of its properties.
        relation: Its name in triples, if the database cannot have that name. Empty if it is `name`.
    """

    name: str
    ends: tuple[tuple[str, str], ...]
    properties: Mapping[str, str]
    relation: str = ""


@dataclass(frozen=True)
class DatabaseSchema:
    """The contents of a graph database, and the roles of its properties.

    Properties hold the keys, labels, types and aliases of entities.

    Args:
        labels: The labels of nodes, sorted by name.
        relations: The types of relationships, sorted by name.
        label: The property that holds the label of an entity. None if there is none.
        types: The property that holds the list of types of an entity. None if its node labels are its types.
        aliases: The property that holds the list of further names of an entity. None if there is none.
        sampled: Whether ends and properties come from a sample, so that there may be more.
        type_labels: The types of entities that a query may name like labels, if all entities have one label.
        pattern_writer: The `PatternWriter` if it is not Cypher's.

    Example:
        >>> film = NodeLabel("Film", "title", {"title": "STRING"})
        >>> schema = DatabaseSchema((film,), (RelationType("SEQUEL_OF", (("Film", "Film"),), {}, "sequel of"),))
        >>> schema.type_of("sequel of"), schema.relation_of("SEQUEL_OF")
        ('SEQUEL_OF', 'sequel of')
    """

    labels: tuple[NodeLabel, ...]
    relations: tuple[RelationType, ...]
    label: str | None = None
    types: str | None = None
    aliases: str | None = None
    sampled: bool = False
    type_labels: tuple[str, ...] = ()
    pattern_writer: Callable[..., Any] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The properties that hold keys, each once, sorted."""
        return tuple(sorted({label.key for label in self.labels}))

    @cached_property
    def relation_names(self) -> Mapping[str, str]:
        """The names of relationship types in triples."""
        return {found.name: found.relation or found.name for found in self.relations}

    @cached_property
    def value_relations(self) -> frozenset[str]:
        """The properties of nodes that are relations to their values."""
        return frozenset(name for label in self.labels for name in facts_in(label, self))

    def relation_of(self, name: str) -> str:
        """Return the name in triples of the relationship type `name`."""
        return self.relation_names.get(name, name)

    def type_of(self, relation: str) -> str:
        """Return the relationship type with this name in triples or of its own.

        Raises:
            InvalidArgumentError: If there is none.
        """
        names = {found.name: found.name for found in self.relations}
        names |= {found.relation: found.name for found in self.relations if found.relation}
        if relation not in names:
            near = get_close_matches(relation, names) or sorted(names)[:10]
            raise InvalidArgumentError(
                f"DatabaseSchema: the database has no relationship type {relation!r}. It has, for example, {near}.",
                hint_python="If it was added lately, read the schema again: schema(refresh=True).",
                hint_shell="Index the graph of this database again.",
            )
        return names[relation]


def unread(properties: Mapping[str, str]) -> list[str]:
    """Return the properties that no graph holds, by their types.

    These types are vectors, bytes, points and nested values.
    """
    arrays = {one for one, type in properties.items() if (found := _ARRAY.match(type)) and int(found[1]) > VECTOR_SIZE}
    return sorted(name for name, type in properties.items() if name in arrays or _UNREAD.match(type))


def names_in(label: NodeLabel, schema: DatabaseSchema) -> dict[str, list[str]]:
    """Return the properties of a label's nodes that are their names.

    Each comes with the properties that go before it.
    """
    held = [name for name in dict.fromkeys((schema.label or "label", "label", "name")) if name in label.properties]
    names: dict[str, list[str]] = {name: [] for name in held if name != label.key}
    titled = {"title": [*names]} if "title" in label.properties and label.key != "title" else {}
    return titled | names


def facts_in(label: NodeLabel, schema: DatabaseSchema) -> list[str]:
    """Return the properties of a label's nodes that are facts.

    There are none if the nodes have no key.
    """
    if label.key not in label.properties:
        return []
    names = {*label.properties} - {label.key}
    titled = set[str]() if names & {"label", "name", schema.label} else {"title"}
    not_facts = {*NODE_ATTRIBUTES, *unread(label.properties), schema.label, *titled}
    return sorted(names - not_facts)


def descriptions_in(
    labels: Iterable[NodeLabel], label: str | None, list_types: Collection[str]
) -> tuple[str | None, str | None, str | None]:
    """Return the properties that hold labels, types and aliases.

    Each is None if no node has it in its form.

    Args:
        labels: The labels of nodes.
        label: The property that holds the label of an entity, if there is one.
        list_types: The types that the lists of types and of aliases may have.
    """
    held = [one for node_label in labels for one in node_label.properties.items()]
    lists = {name for name, type in held if type in list_types}
    return (
        label if label in {name for name, _ in held} else None,
        "types" if "types" in lists else None,
        "aliases" if "aliases" in lists else None,
    )


def no_keys(who: str, labels: Iterable[NodeLabel]) -> InvalidArgumentError:
    """Return the error for nodes of which none has a key."""
    found = {label.name: list(label.properties)[:5] for label in labels}
    wanted = sorted({label.key for label in labels})
    return InvalidArgumentError(
        f"{who}: no node has the property that holds keys, {wanted}. Nodes have, for example, "
        f"{dict([*found.items()][:5])}.",
        hint_python="Name it, by label if need be: key='name' or key={'Person': 'name'}.",
        hint_shell="Name it, by label if need be: --key name or --key Person=name.",
    )


def backticked(name: str) -> str:
    """Write a label, type or property so that it may hold any characters."""
    return "`" + name.replace("`", "``") + "`"


def quoted(text: object) -> str:
    """Write a text as a literal of Cypher."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"
