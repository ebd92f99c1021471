"""The properties of nodes and relationships: how a query returns them, and what they are for a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked, quoted, unread
from kg_retrievers.graph import GraphBuilder, Triple
from kg_retrievers.graph.attributes import attribute_set

#: The types of dates and of lists of dates.
_DATES = ("DATE", "DATE[]", "LIST<DATE>")


def properties_of(name: str, properties: Iterable[Mapping[str, str]], dialect: Dialect) -> str:
    """Return the expression for the properties of what a query calls `name`, without those that no graph holds.

    Its value is a map, or a list of pairs: `dict` reads both.

    Args:
        name: The variable of a node or relationship.
        properties: The properties that it may have, and their types, by its labels or types.
        dialect: The Cypher.
    """
    left_out = sorted({one for some in properties for one in unread(some)})
    if dialect == "ladybug":  # which fails at a map without entries
        kept = [one for some in properties for one in some if one not in left_out]
        pairs = ", ".join(f"{backticked(one)}: {name}.{backticked(one)}" for one in kept)
        return f"{{{pairs}}}" if kept else "NULL"
    if not left_out:
        return f"properties({name})"
    names = ", ".join(map(quoted, left_out))
    return f"[one IN keys({name}) WHERE NOT one IN [{names}] | [one, {name}[one]]]"


def node_attributes(
    said: Mapping[str, Any], label: NodeLabel, labels: Collection[str], schema: DatabaseSchema
) -> dict[str, Any]:
    """Return the properties of a node as an `AttributeReader` takes the attributes of a node of a file.

    Args:
        said: The properties.
        label: The label by which the node has its key, which is no attribute.
        labels: All its labels.
        schema: The property that holds labels, and whether one holds types.
    """
    key = said.get(label.key)
    is_key = {label.key, *(name for name in schema.keys if said.get(name) == key)}  # perhaps by another label, too
    read = {name: _read(value, label.properties.get(name)) for name, value in said.items() if name not in is_key}
    called = read.get(schema.label) if schema.label else None
    if called not in (None, ""):
        read = {name: value for name, value in read.items() if name != schema.label} | {"label": called}
    title = read.get("title")
    if isinstance(title, str) and title and not any(read.get(name) for name in ("label", "name")):
        read = {name: value for name, value in read.items() if name != "title"} | {"label": title}
    return read if schema.types is not None else read | {"types": sorted(labels)}


def _read(value: Any, type: str | None) -> Any:
    """Return a value, a date as such."""
    with suppress(ValueError, TypeError):
        if type in _DATES and value is not None:
            return [*map(date.fromisoformat, value)] if isinstance(value, list) else date.fromisoformat(value)
    return value


class Recorder(GraphBuilder):
    """Keeps what an `AttributeReader` says of each fact.

    Attributes:
        said: The sets of attributes of each fact, as `attribute_set` writes them.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.said: dict[Triple, set[str]] = {}

    def add(self, head: str, relation: str, tail: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Keep a fact."""
        self.said.setdefault(Triple(head, relation, tail), set()).add(attribute_set(attributes or {}))
