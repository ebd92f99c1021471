"""Reads a whole graph from a graph database, in pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from kg_retrievers.database.rendering import TYPE_OF, has_label, key_of
from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked
from kg_retrievers.database.values import Rows
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.building import Reading

#: How many seconds one page may take.
PAGE_TIMEOUT = 600.0

#: What `info` calls a database of each dialect.
NAMES: Mapping[Dialect, str] = {"ladybug": "LadybugDB", "neo4j": "Neo4j, or a database that speaks Bolt"}

#: How many keys, or properties that are left out, are named.
NAMES_SHOWN = 10

#: What to do with nodes that have no label.
_GIVE_LABEL = "Give them one, as by MATCH (n) WHERE size(labels(n)) = 0 SET n:Entity, and a key."

#: `Executor.run`.
Run = Callable[..., Rows]


def read_graph(run: Run, schema: DatabaseSchema, dialect: Dialect, page_size: int) -> GraphBuilder:
    """Read all triples, labels, types and aliases.

    A page begins where the one before ended, by key, so that each costs the same; where keys are indexed, no page costs
    more than its own rows. Nodes with equal keys become one entity, with the triples of all. A change made meanwhile
    may be read or not.

    Args:
        run: Runs a query.
        schema: What the database holds.
        dialect: Its Cypher.
        page_size: How many rows are read at a time.

    Raises:
        InvalidArgumentError: If there are nodes without a label, or without a text as key.
    """
    if dialect == "neo4j":  # LadybugDB has no such nodes
        (without,) = run(
            "MATCH (n) WHERE size(labels(n)) = 0 RETURN count(*) AS nodes", limit=1, timeout=PAGE_TIMEOUT
        ).column("nodes")
        if without:
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_executor: {without} nodes have no label, by which nodes are read.",
                hint_python=f"{_GIVE_LABEL} Then make another executor.",
                hint_shell=_GIVE_LABEL,
            )
    rows = GraphBuilder()
    rows.reading = describe_reading(schema, dialect)
    read: dict[str, set[str]] = {}
    for label in schema.labels:
        keys = _read_entities(run, schema, label, page_size, rows)
        # An earlier label may hold the key: of the same node, whose triples were read then, or of another one.
        done = [earlier for earlier, its_keys in read.items() if not its_keys.isdisjoint(keys)]
        for start in range(0, len(keys), page_size):
            part = keys[start : start + page_size]
            ends = part[0], part[-1]
            for head, tail, type in _pages_of_triples(run, schema, dialect, label, done, ends, page_size):
                rows.add(head, schema.relation_of(type), tail)
        read[label.name] = set(keys)
    return rows


def describe_reading(schema: DatabaseSchema, dialect: Dialect) -> Reading:
    """Return what each part of a database is taken for, and which properties are left out: they are no facts."""
    reading = Reading(NAMES[dialect])
    keys = [f"{label.name}.{label.key}" for label in schema.labels]
    read = {name for name in (schema.label, schema.types, schema.aliases) if name is not None}
    of_nodes = [
        f"{label.name}.{name}" for label in schema.labels for name in label.properties if name not in {label.key, *read}
    ]
    of_relationships = [f"{relation.name}.{name}" for relation in schema.relations for name in relation.properties]
    reading.understood = {
        "keys": _first(keys),
        "labels": f"the property {schema.label}" if schema.label else "the keys",
        "types": f"the property {schema.types}" if schema.types else "the labels of nodes",
    }
    reading.leave_out(f"properties of nodes: {_first(of_nodes)}", len(of_nodes))
    reading.leave_out(f"properties of relationships: {_first(of_relationships)}", len(of_relationships))
    return reading


def _first(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _read_entities(run: Run, schema: DatabaseSchema, label: NodeLabel, page_size: int, rows: GraphBuilder) -> list[str]:
    """Add the entities of a label to the rows, and return their keys in the database's order."""
    node, key = f"(n:{backticked(label.name)})", f"n.{backticked(label.key)}"
    (nodes,), (with_key,) = (
        run(f"MATCH {node} {where} RETURN count(*) AS nodes", limit=1, timeout=PAGE_TIMEOUT).column("nodes")
        for where in ("", f"WHERE {key} > ''")
    )
    if with_key < nodes:
        raise InvalidArgumentError(
            f"KnowledgeGraph.from_executor: {nodes - with_key} of {nodes} nodes {label.name!r} have no text in "
            f"{label.key!r}, which holds their keys.",
            hint_python="Give them one, or make the executor with another key=...",
            hint_shell="Give them one, or name another property, by label if need be: --key LABEL=PROPERTY.",
        )
    lists = [name for name in (schema.types, schema.aliases) if name is not None and name in label.properties]
    names = [schema.label, *lists] if schema.label in label.properties else lists
    columns = ", ".join([f"{key} AS key", *(f"n.{backticked(name)}" for name in names if name)])
    keys, after, more = list[str](), "", True
    while more:
        query = f"MATCH {node} WHERE {key} > $after RETURN {columns} ORDER BY key"
        page = run(query, {"after": after}, limit=page_size, timeout=PAGE_TIMEOUT)
        for row in page.rows:
            entity, values = row[0], dict(zip(names, row[1:], strict=True))
            keys.append(entity)
            _describe(rows, entity, label, schema, values)
        after, more = keys[-1] if keys else "", page.truncated
    return keys


def _describe(
    rows: GraphBuilder, key: str, label: NodeLabel, schema: DatabaseSchema, values: Mapping[Any, Any]
) -> None:
    types = [label.name] if schema.types is None else values.get(schema.types) or []
    rows.types[key] = list(dict.fromkeys([*rows.types.get(key, ()), *types]))
    if schema.label is not None and isinstance(called := values.get(schema.label), str) and called:
        rows.labels.setdefault(key, called)
    if schema.aliases is not None and (aliases := values.get(schema.aliases)):
        rows.aliases[key] = list(dict.fromkeys([*rows.aliases.get(key, ()), *aliases]))


def _pages_of_triples(
    run: Run,
    schema: DatabaseSchema,
    dialect: Dialect,
    label: NodeLabel,
    done: Collection[str],
    ends: Sequence[str],
    page_size: int,
) -> Iterator[tuple[str, str, str]]:
    """Yield head, tail and type of relationships.

    Their heads have the label, none of the labels that are `done`, and keys from the first to the last of `ends`.
    """
    head, tail, type = f"a.{backticked(label.key)}", key_of("b", schema, dialect), f"{TYPE_OF[dialect]}(r)"
    within = f"{head} >= $first AND {head} <= $last"
    within += "".join(f" AND NOT {has_label('a', name, dialect)}" for name in done)
    beyond = f"{head} > $head OR {head} = $head AND ({tail} > $tail OR {tail} = $tail AND {type} > $type)"
    match = f"MATCH (a:{backticked(label.name)})-[r]->(b) WHERE {within}"
    result = f"RETURN {head} AS head, {tail} AS tail, {type} AS type ORDER BY head, tail, type"
    query, parameters = f"{match} {result}", {"first": ends[0], "last": ends[1]}
    while True:
        page = run(query, parameters, limit=page_size, timeout=PAGE_TIMEOUT)
        yield from page.rows
        if not page.truncated:
            return
        query = f"{match} AND ({beyond}) {result}"
        parameters |= dict(zip(("head", "tail", "type"), page.rows[-1], strict=True))
