"""The schema of a graph database: labels, relationship types and properties, and which property holds what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar, Literal

from kg_retrievers.errors import InvalidArgumentError

#: Which Cypher a database understands, or SPARQL.
Dialect = Literal["ladybug", "neo4j", "sparql"]


@dataclass(frozen=True)
class NodeLabel:
    """A label that nodes have.

    Args:
        name: The label.
        key: The property that holds the key of such an entity.
        properties: The names and types of its properties; types are written as the database writes them.
    """

    name: str
    key: str
    properties: Mapping[str, str]


@dataclass(frozen=True)
class RelationType:
    """A type that relationships have.

    Args:
        name: The type, as it stands in queries between back-ticks.
        ends: The labels of head and tail that it joins, as pairs.
        properties: The names and types of its properties.
        relation: Its name in triples, where the database cannot have that name; empty if it is `name`.
    """

    name: str
    ends: tuple[tuple[str, str], ...]
    properties: Mapping[str, str]
    relation: str = ""


@dataclass(frozen=True)
class DatabaseSchema:
    """What a graph database holds, and which properties hold the keys, labels, types and aliases of entities.

    Args:
        labels: The labels of nodes, sorted by name.
        relations: The types of relationships, sorted by name.
        label: The property that holds the label of an entity; None if there is none.
        types: The property that holds the list of types of an entity; None if its node labels are its types.
        aliases: The property that holds the list of further names of an entity; None if there is none.
        sampled: Whether ends and properties are those of a sample, so that there may be more.
        type_labels: The types of entities that a query may name like labels, where all entities have one label.

    Example:
        >>> film = NodeLabel("Film", "title", {"title": "STRING"})
        >>> schema = DatabaseSchema((film,), (RelationType("SEQUEL_OF", (("Film", "Film"),), {}, "sequel of"),))
        >>> schema.type_of("sequel of"), schema.relation_of("SEQUEL_OF")
        ('SEQUEL_OF', 'sequel of')
    """

    #: The `PatternWriter` of a database that understands no Cypher.
    pattern_writer: ClassVar[type[Any] | None] = None

    labels: tuple[NodeLabel, ...]
    relations: tuple[RelationType, ...]
    label: str | None = None
    types: str | None = None
    aliases: str | None = None
    sampled: bool = False
    type_labels: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The properties that hold keys, each once, sorted."""
        return tuple(sorted({label.key for label in self.labels}))

    @cached_property
    def relation_names(self) -> Mapping[str, str]:
        """The names of relationship types in triples."""
        return {found.name: found.relation or found.name for found in self.relations}

    def relation_of(self, name: str) -> str:
        """Return the name in triples of the relationship type `name`."""
        return self.relation_names.get(name, name)

    def type_of(self, relation: str) -> str:
        """Return the relationship type whose name in triples is `relation`, or whose own name is.

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


def descriptions_in(
    labels: Iterable[NodeLabel], label: str | None, list_types: Collection[str]
) -> tuple[str | None, str | None, str | None]:
    """Return the properties that hold labels, types and aliases, each None where no node has it in its form.

    Args:
        labels: The labels of nodes.
        label: The property that holds the label of an entity, where there is one.
        list_types: The types that the lists of types and of aliases may have.
    """
    held = [one for node_label in labels for one in node_label.properties.items()]
    lists = {name for name, type in held if type in list_types}
    return (
        label if label in {name for name, _ in held} else None,
        "types" if "types" in lists else None,
        "aliases" if "aliases" in lists else None,
    )


def backticked(name: str) -> str:
    """Write a label, type or property so that it may hold any characters."""
    return "`" + name.replace("`", "``") + "`"


def quoted(text: object) -> str:
    """Write a text as a literal of LadybugDB."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"
