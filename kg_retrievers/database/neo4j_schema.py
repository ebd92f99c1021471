"""The schema of a Neo4j database, read from samples: no plug-in, no pass over the whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kg_retrievers.database.executor import TIMEOUT, Fetch
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked
from kg_retrievers.errors import DatabaseQueryError, InvalidArgumentError

#: How many nodes of a label and relationships of a type are looked at.
SAMPLE = 100

#: How many nodes or relationships are looked at for labels and types, where the database has no procedure for them.
WIDE_SAMPLE = 100_000

#: The most names of labels, and of types.
MOST = 100_000

_TYPES = {bool: "BOOLEAN", int: "INTEGER", float: "FLOAT", str: "STRING", list: "LIST", dict: "MAP"}


def read_schema(fetch: Fetch, key: str | Mapping[str, str], label: str | None) -> DatabaseSchema:
    """Read labels, types, their properties and what types join.

    Properties and ends are those of the first `SAMPLE` nodes of each label and relationships of each type, since the
    procedures that know all of them (`db.schema.nodeTypeProperties`) read the whole graph for it.

    Args:
        fetch: Runs a query.
        key: The property that holds keys; or that property by label, "key" where none is given.
        label: The property that holds what an entity is called.

    Raises:
        InvalidArgumentError: If there are nodes, and no label has its key.
    """
    labels = []
    for name in _names(fetch, "CALL db.labels()", "MATCH (n) WITH n LIMIT $most UNWIND labels(n) AS name"):
        query = f"MATCH (n:{backticked(name)}) RETURN properties(n) LIMIT {SAMPLE}"
        rows = fetch(query, {}, SAMPLE, TIMEOUT).rows
        of_label = key if isinstance(key, str) else key.get(name, "key")
        if rows:  # Neo4j remembers labels and types of which nothing is left
            labels.append(NodeLabel(name, of_label, _types_of(row[0] for row in rows)))
    if labels and not any(label.key in label.properties for label in labels):
        found = {label.name: list(label.properties)[:5] for label in labels[:5]}
        raise InvalidArgumentError(
            f"Neo4jExecutor: no label has the property that holds keys, {sorted({label.key for label in labels})}. "
            f"There are, for example, {found}. Name it, by label if need be: key='name' or key={{'Person': 'name'}}."
        )
    relations = []
    for name in _names(
        fetch, "CALL db.relationshipTypes()", "MATCH ()-[r]->() WITH r LIMIT $most WITH type(r) AS name"
    ):
        query = f"MATCH (a)-[r:{backticked(name)}]->(b) RETURN labels(a), labels(b), properties(r) LIMIT {SAMPLE}"
        rows = fetch(query, {}, SAMPLE, TIMEOUT).rows
        ends = {(head, tail) for heads, tails, _ in rows for head in heads for tail in tails}
        if rows:
            relations.append(RelationType(name, tuple(sorted(ends)), _types_of(row[2] for row in rows)))
    held = [properties for label in labels for properties in label.properties.items()]
    return DatabaseSchema(
        tuple(labels),
        tuple(relations),
        label if label in {name for name, _ in held} else None,
        "types" if ("types", "LIST") in held else None,
        "aliases" if ("aliases", "LIST") in held else None,
    )


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
            types.setdefault(name, _TYPES.get(type(value), "STRING"))
    return dict(sorted(types.items()))
