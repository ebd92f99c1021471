"""A pattern as a Cypher query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from kg_retrievers.database.schema import DatabaseSchema, Dialect, backticked, quoted
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown

#: The function that returns the type of a relationship.
TYPE_OF: dict[Dialect, str] = {"ladybug": "label", "neo4j": "type"}

#: What puts relationships in a fixed order. (After DISTINCT, LadybugDB 0.22 sorts wrongly by `id`, fails by `label`.)
_ORDER: dict[Dialect, str] = {"ladybug": "CAST({} AS STRING)", "neo4j": "elementId({})"}

#: That two nodes are not the same.
_DIFFERENT: dict[Dialect, str] = {"ladybug": "id({}) <> id({})", "neo4j": "{} <> {}"}


def render(
    pattern: Pattern,
    schema: DatabaseSchema,
    dialect: Dialect,
    *,
    entities: Mapping[Known, Sequence[str]] | None = None,
    distinct: Literal["known", "nodes", "none"] = "known",
    direction: Literal["ignore", "respect"] = "ignore",
    limit: int | None = None,
    nodes: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Write a pattern as a query that finds the same on every engine, and the same as `match_pattern` at distance 0.

    Each triple stands in a MATCH of its own, since Neo4j, other than LadybugDB, lets no two relationships of one MATCH
    be the same. Entities are parameters, never text of the query.

    Args:
        pattern: What to find. A known relation is a relation of the database by its exact name.
        schema: What the database holds.
        dialect: The Cypher to write.
        entities: The keys of which a known node may take one. Where nothing is given, it is the node's `entity`, or
            its text.
        distinct: As in `match_pattern`: "known": no other node takes the entity of a known node; "nodes": all nodes
            take different entities; "none": any may be the same. What the pattern says to differ does in any case.
        direction: "ignore": a fact fits a triple either way; "respect": head to head, tail to tail.
        limit: The most rows; None for no LIMIT.
        nodes: Whether the nodes are returned too, for a `QueryExecutor`; the others read what they need of them.

    Returns:
        The query and its parameters. A row is one match; its columns are `target`, the key of the target (if the
        pattern has one), `r0`, `r1`, ..., the relationships in the order of `pattern.triples`, and if `nodes`, then
        `n0`, `n1`, ..., in the order of `pattern.nodes`. Rows are sorted by the target, and then as the database
        numbers its relationships.

    Raises:
        InvalidArgumentError: If the database is empty or lacks a relation or type of the pattern, or `limit` is
            below 1.

    Example:
        >>> from kg_retrievers.database.schema import NodeLabel, RelationType
        >>> schema = DatabaseSchema((NodeLabel("Film", "title", {}),), (RelationType("STARS", (), {}),))
        >>> query, parameters = render(Pattern.of(("Her", "STARS", Unknown("x")), target="x"), schema, "neo4j")
        >>> print(query)
        MATCH (n0)-[r0:`STARS`]-(n1)
        WHERE n0:`Film` AND n0.`title` = $n0 AND n0 <> n1
        RETURN DISTINCT n1.`title` AS target, r0
        ORDER BY target, elementId(r0)
        >>> parameters
        {'n0': 'Her'}
    """
    if limit is not None and limit < 1:
        raise InvalidArgumentError(f"render: limit is {limit}. Ask for at least 1 row, or give None.")
    if not schema.labels:
        raise InvalidArgumentError("render: the database has no nodes. If it has now, read schema(refresh=True).")
    names = {node: f"n{number}" for number, node in enumerate(pattern.nodes)}
    keys: dict[Term, list[str]] = {
        node: list((entities or {}).get(node) or [node.text if node.entity is None else node.entity])
        for node in names
        if isinstance(node, Known)
    }
    parameters: dict[str, Any] = {}
    conditions: dict[str, set[Term]] = {}  # each with the nodes that it is about
    for node, name in names.items():
        if node in keys:
            sign, parameters[name] = ("=", keys[node][0]) if len(keys[node]) == 1 else ("IN", keys[node])
            conditions[_has_key(name, f"{sign} ${name}", schema, dialect)] = {node}
        if node.type is not None:
            conditions[_has_type(name, node.type, schema, dialect, parameters)] = {node}
    for a, b in combinations(names, 2):
        stated = (a, b) in pattern.different or (b, a) in pattern.different
        by_mode = distinct == "nodes" or (distinct == "known" and (a in keys or b in keys))
        may_be_same = a not in keys or b not in keys or set(keys[a]) & set(keys[b])
        if (stated or by_mode) and may_be_same:
            conditions[_DIFFERENT[dialect].format(names[a], names[b])] = {a, b}

    text, placed, of_unknown = [], set[Term](), dict[Unknown, str]()
    for number, (head, relation, tail) in _connected(pattern, keys):
        kind = "" if isinstance(relation, Unknown) else f":{backticked(schema.type_of(relation.text))}"
        arrow = "->" if direction == "respect" else "-"
        text.append(f"MATCH ({names[head]})-[r{number}{kind}]{arrow}({names[tail]})")
        placed |= {head, tail}
        ready = [condition for condition, about in conditions.items() if about <= placed]
        for condition in ready:
            del conditions[condition]
        if isinstance(relation, Unknown):
            first = of_unknown.setdefault(relation, f"r{number}")
            if first != f"r{number}":
                ready.append(f"{TYPE_OF[dialect]}({first}) = {TYPE_OF[dialect]}(r{number})")
        if ready:
            text.append("WHERE " + " AND ".join(ready))

    columns = [f"{key_of(names[node], schema, dialect)} AS target" for node in names if _is(node, pattern.target)]
    order = ["target" for _ in columns]
    for number in range(len(pattern.triples)):
        columns.append(f"r{number}")
        order.append(_ORDER[dialect].format(f"r{number}"))
    columns += names.values() if nodes else ()
    # Only of a fact that fits either way, a row can be there twice.
    text.append(f"RETURN {'DISTINCT ' if direction == 'ignore' else ''}{', '.join(columns)}")
    text.append("ORDER BY " + ", ".join(order))
    if limit is not None:
        text.append(f"LIMIT {limit}")
    return "\n".join(text), parameters


def _is(node: Term, target: str | None) -> bool:
    return isinstance(node, Unknown) and node.name == target


def key_of(name: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    """Return the expression for the key of the node that a query calls `name`."""
    if len(schema.keys) == 1:
        return f"{name}.{backticked(schema.keys[0])}"
    cases = [
        f"WHEN {has_label(name, label.name, dialect)} THEN {name}.{backticked(label.key)}" for label in schema.labels
    ]
    if dialect == "ladybug":
        return f"CASE {' '.join(cases)} END"
    # A node may have several labels, and the key of one of them only.
    return f"coalesce({', '.join(f'CASE {case} END' for case in cases)})"


def _has_key(name: str, compared: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    if dialect == "ladybug" and len(schema.keys) == 1:
        return f"{name}.{backticked(schema.keys[0])} {compared}"
    cases = [  # with its label, so that Neo4j looks into the index of each
        f"{has_label(name, label.name, dialect)} AND {name}.{backticked(label.key)} {compared}"
        for label in schema.labels
    ]
    return cases[0] if len(cases) == 1 else f"({' OR '.join(cases)})"


def has_label(name: str, label: str, dialect: Dialect) -> str:
    """Return the condition that the node that a query calls `name` has a label."""
    return f"label({name}) = {quoted(label)}" if dialect == "ladybug" else f"{name}:{backticked(label)}"


def _has_type(name: str, type: str, schema: DatabaseSchema, dialect: Dialect, parameters: dict[str, Any]) -> str:
    """Return the condition that a node has a type, as node label or in a list of types."""
    if type in {label.name for label in schema.labels}:
        return has_label(name, type, dialect)
    if schema.types is None:
        raise InvalidArgumentError(
            f"render: the database has no node label {type!r}. It has {[label.name for label in schema.labels]}."
        )
    parameters[f"{name}_type"] = type
    return f"${name}_type IN {name}.{backticked(schema.types)}"


def _connected(pattern: Pattern, known: Collection[Term]) -> Iterator[tuple[int, PatternTriple]]:
    """Yield the triples with their numbers, each joined to one before where that can be, from a known node on."""
    waiting = dict(enumerate(pattern.triples))
    placed = set(known)
    while waiting:
        number = next((n for n, triple in waiting.items() if placed & {triple.head, triple.tail}), next(iter(waiting)))
        triple = waiting.pop(number)
        placed |= {triple.head, triple.tail}
        yield number, triple
