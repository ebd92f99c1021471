"""Reads the schema of a Neo4j database from samples: no plug-in, no pass over the whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from kg_retrievers.database.executor import Fetch
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked
from kg_retrievers.errors import DatabaseQueryError, InvalidArgumentError
from kg_retrievers.graph.parts import TIMEOUT

#: How many nodes of a label and relationships of a type are looked at.
SAMPLE = 100

#: How many nodes or relationships are looked at for labels and types, where the database has no procedure for them.
WIDE_SAMPLE = 100_000

#: The most names of labels, and of types.
MOST = 100_000

#: What is told of relationships by their types and the labels of their ends: the properties of some, and how many.
_TOLD = (
    "RETURN type(r) AS name, labels(a) AS heads, labels(b) AS tails, "
    f"collect(properties(r))[..{SAMPLE}] AS properties, count(*) AS found"
)

#: The types of values, by the names of their classes in Python and in the driver, in small letters.
_TYPES = {"bool": "BOOLEAN", "int": "INTEGER", "str": "STRING", "bytearray": "BYTES", "dict": "MAP"}
_TYPES |= {
    name: name.upper() for name in ["float", "bytes", "list", "date", "time", "datetime", "duration", "point", "vector"]
}


def read_schema(fetch: Fetch, key: str | Mapping[str, str], label: str | None, who: str) -> DatabaseSchema:
    """Read labels, types, their properties and what types join.

    Properties are those of the first `SAMPLE` nodes of each label. Ends and properties of relationships are those of
    the first `WIDE_SAMPLE`; where these lack a type, of its first `SAMPLE`. The procedures that return all of them
    (`db.schema.nodeTypeProperties`) read the whole graph for it.

    Args:
        fetch: Runs a query, and returns values as the driver does.
        key: The property that holds keys; or that property by label, "key" where none is given.
        label: The property that holds the label of an entity.
        who: The class that reads it, for messages.

    Raises:
        InvalidArgumentError: If there are nodes, and no label has its key.
    """
    labels, sampled = [], False
    for name in _names(fetch, "CALL db.labels()", "MATCH (n) WITH n LIMIT $most UNWIND labels(n) AS name"):
        query = f"MATCH (n:{backticked(name)}) RETURN properties(n) LIMIT {SAMPLE}"
        rows = fetch(query, {}, SAMPLE, TIMEOUT).rows
        of_label = key if isinstance(key, str) else key.get(name, "key")
        if rows:  # Neo4j remembers labels and types of which nothing is left
            labels.append(NodeLabel(name, of_label, _types_of(row[0] for row in rows)))
        sampled |= len(rows) == SAMPLE
    if labels and not any(label.key in label.properties for label in labels):
        found = {label.name: list(label.properties)[:5] for label in labels[:5]}
        raise InvalidArgumentError(
            f"{who}: no label has the property that holds keys, {sorted({label.key for label in labels})}. "
            f"There are, for example, {found}.",
            hint_python="Name it, by label if need be: key='name' or key={'Person': 'name'}.",
            hint_shell="Name it, by label if need be: --key name or --key Person=name.",
        )
    relations, more = _relations(fetch)
    sampled |= more
    held = [properties for label in labels for properties in label.properties.items()]
    lists = {name for name, type in held if type in ("LIST", "LIST<STRING>")}
    return DatabaseSchema(
        tuple(labels),
        tuple(relations),
        label if label in {name for name, _ in held} else None,
        "types" if "types" in lists else None,
        "aliases" if "aliases" in lists else None,
        sampled,
    )


def _relations(fetch: Fetch) -> tuple[list[RelationType], bool]:
    """Return the types of relationships, and whether there may be more of their ends and properties.

    Those among the first relationships are read by one query, the others one by one: where no index finds the
    relationships of a type, each such query looks at all of the graph.
    """
    first = f"MATCH (a)-[r]->(b) WITH a, r, b LIMIT $most {_TOLD}"
    rows = list(fetch(first, {"most": WIDE_SAMPLE}, MOST, TIMEOUT).rows)
    more = sum(row[4] for row in rows) == WIDE_SAMPLE
    seen = {row[0] for row in rows}
    for name in _names(
        fetch, "CALL db.relationshipTypes()", "MATCH ()-[r]->() WITH r LIMIT $most WITH type(r) AS name"
    ):
        if name not in seen:
            query = f"MATCH (a)-[r:{backticked(name)}]->(b) WITH a, r, b LIMIT {SAMPLE} {_TOLD}"
            rows += fetch(query, {}, SAMPLE, TIMEOUT).rows
    by_name: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        by_name.setdefault(row[0], []).append(row)
    relations = [
        RelationType(name, _ends(of_type), _types_of(chain.from_iterable(row[3] for row in of_type)))
        for name, of_type in sorted(by_name.items())
    ]
    return relations, more or any(row[4] >= SAMPLE for row in rows)


def _ends(rows: Iterable[Sequence[Any]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(head, tail) for _, heads, tails, *_ in rows for head in heads for tail in tails}))


def _names(fetch: Fetch, procedure: str, sample: str) -> list[str]:
    try:
        rows = fetch(procedure, {}, MOST, TIMEOUT).rows
    except DatabaseQueryError:  # another database, without this procedure
        rows = fetch(f"{sample} RETURN DISTINCT name", {"most": WIDE_SAMPLE}, MOST, TIMEOUT).rows
    return sorted(row[0] for row in rows)


def _types_of(samples: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for properties in samples:
        for name, value in properties.items():
            if types.get(name, "LIST") == "LIST":  # another value says more than an empty list
                types[name] = _type_of(value)
    return dict(sorted(types.items()))


def _type_of(value: Any) -> str:
    """Return the type of a value, as `valueType` in Cypher writes it but for NOT NULL."""
    names = (kind.__name__.lower() for kind in type(value).__mro__)
    name = next((_TYPES[name] for name in names if name in _TYPES), "STRING")
    if name == "LIST" and value:
        return f"LIST<{_type_of(value[0])}>"
    if name in ("TIME", "DATETIME"):
        return f"{'LOCAL' if value.tzinfo is None else 'ZONED'} {name}"
    return name
