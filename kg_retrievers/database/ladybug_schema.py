"""Reads the schema of a LadybugDB database from its catalog."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from kg_retrievers.database.executor import TIMEOUT, Fetch
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked, quoted

#: The most tables, and columns of a table.
MOST = 1_000_000


def read_schema(fetch: Fetch, key: str, label: str | None) -> tuple[DatabaseSchema, dict[str, NodeLabel]]:
    """Read tables, their properties and what they join.

    Args:
        fetch: Runs a query.
        key: The property that holds keys; the primary key in tables without it.
        label: The property that holds the label of an entity.

    Returns:
        The schema, and the node labels by the id of their table, as text.
    """

    def read(query: str) -> Sequence[Sequence[Any]]:
        return fetch(query, {}, MOST, TIMEOUT).rows

    tables: dict[str, NodeLabel] = {}
    relations = []
    for id, name, kind, comment in read("CALL show_tables() RETURN id, name, type, comment ORDER BY name"):
        columns = read(f"CALL table_info({quoted(name)}) RETURN *")
        properties = {column[1]: column[2] for column in columns}
        if kind == "NODE":
            primary = next(column[1] for column in columns if column[4])
            tables[str(id)] = NodeLabel(name, key if key in properties else primary, properties)
        elif kind == "REL":
            ends = read(f"CALL show_connection({quoted(name)}) RETURN *")
            pairs = tuple(sorted((row[0], row[1]) for row in ends))
            relations.append(RelationType(name, pairs, properties, _relation_in(comment)))
    held = [properties for table in tables.values() for properties in table.properties.items()]
    schema = DatabaseSchema(
        tuple(tables.values()),
        tuple(relations),
        label if label in {name for name, _ in held} else None,
        "types" if ("types", "STRING[]") in held else None,
        "aliases" if ("aliases", "STRING[]") in held else None,
        type_labels=_types([table for table in tables.values() if table.properties.get("types") == "STRING[]"], read),
    )
    return schema, tables


def _types(typed: Sequence[NodeLabel], read: Callable[[str], Sequence[Sequence[Any]]]) -> tuple[str, ...]:
    """Return the types of entities, sorted; none where several tables have types: a type would not say which."""
    if len(typed) != 1:
        return ()
    rows = read(f"MATCH (n:{backticked(typed[0].name)}) UNWIND n.types AS type RETURN DISTINCT type ORDER BY type")
    return tuple(type for (type,) in rows)


def _relation_in(comment: str) -> str:
    """Return the relation that `load_graph` wrote into the comment of a table; "" where it is the table's name."""
    try:
        return str(json.loads(comment)["relation"])
    except (ValueError, KeyError, TypeError):
        return ""
