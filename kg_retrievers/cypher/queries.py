"""Cypher queries as text: what they name and show, and which way their relationships point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NamedTuple

from kg_retrievers.cypher.directions import Directions, Edge
from kg_retrievers.database.grammar import Node, read
from kg_retrievers.database.safety import CheckedQuery, check_read_only
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.database.tokens import Token, refusal

#: Functions whose values hold relationships if what they are given does.
HOLDING = ("coalesce", "collect", "head", "last", "relationships", "rels", "tail")


def check_query(query: str, parameters: Mapping[str, Any], schema: DatabaseSchema) -> CheckedQuery:
    """Check that a query only reads, and names nothing that the database does not have.

    Raises:
        CypherSafetyError: If not.
    """
    return check_read_only(
        query,
        labels=[label.name for label in schema.labels],
        relations=[relation.name for relation in schema.relations],
        parameters=parameters,
    )


def check_properties(query: str, schema: DatabaseSchema) -> None:
    """Check that the properties of nodes and relationships that a query names are in the schema.

    Raises:
        CypherSafetyError: If one is not, for which Neo4j would return nothing without an error.
    """
    tokens, root = read(query)
    properties = [part.properties for part in schema.labels] + [part.properties for part in schema.relations]
    known = {name for part in properties for name in part}
    stored = {
        name for node in root.walk() if node.rule in ("node", "relationship") for name in _variables(tokens, node)
    }
    for node in root.walk():
        named = list[Token]()
        if node.rule == "value" and len(node.inside) > 1 and node.inside[1].rule == "name":
            operand = node.inside[0]
            if tokens[operand.start : operand.end][-1].name in stored and operand.end - operand.start == 1:
                named.append(tokens[node.inside[1].start])
        elif node.rule == "properties":
            entries = (entry for inner in node.inside if inner.rule == "map" for entry in inner.inside)
            named += [tokens[entry.start] for entry in entries]
        for token in named:
            if token.name not in known:
                near = get_close_matches(token.name, sorted(known)) or sorted(known)[:20]
                raise refusal(query, token, f", a property that the graph does not have; it has: {', '.join(near)}")


def check_shows_facts(query: str) -> None:
    """Check that a query returns a relationship or a path.

    Raises:
        CypherSafetyError: If not, so that there would be no evidence.
    """
    tokens, root = read(query)
    facts = {name for node in root.walk() if node.rule == "relationship" for name in _variables(tokens, node)}
    for node in root.walk():
        if node.rule == "pattern" and node.inside[0].rule == "variable":
            facts.add(tokens[node.start].name)
        elif node.rule in ("column", "clause") and facts.intersection(_whole(tokens, node)):
            facts.update(_alias(tokens, node))
    for part in root.inside[0].inside:
        columns = part.inside[-1].inside[0]
        if tokens[columns.start].text != "*" and facts.isdisjoint(_whole(tokens, columns)):
            reason = ", which returns no relationship: name each one, as in -[r0:TYPE]->, and return them all"
            raise refusal(query, tokens[columns.start], reason)


def _alias(tokens: Sequence[Token], node: Node) -> list[str]:
    """Return what a column of WITH or RETURN, or an UNWIND, is called from there on, if it is named anew."""
    named = node.find("alias" if node.rule == "column" else "variable")
    return [tokens[named.end - 1].name] if named else []


def _whole(tokens: Sequence[Token], node: Node) -> Iterator[str]:
    """Yield the variables that stand for all that they hold: not for a property, or what a function makes of it."""
    if node.rule == "variable":
        yield tokens[node.start].name
    elif node.rule == "call" and tokens[node.start].name.lower() not in HOLDING:
        return
    elif node.rule != "value" or not node.find("name"):
        for inner in node.inside:
            yield from _whole(tokens, inner)


def _variables(tokens: Sequence[Token], node: Node) -> list[str]:
    """Return the variable of a node or relationship, if it has one."""
    return [tokens[inner.start].name for inner in node.inside if inner.rule == "variable"]


# Directions ----------------------------------------------------------------------------------------------------------


class _Arrow(NamedTuple):
    """A relationship of a query that points one way, between two nodes by name."""

    head: str
    types: list[str]
    tail: str
    start: Token
    end: Token


def mend_directions(query: str, parameters: Mapping[str, Any], schema: DatabaseSchema, directions: Directions) -> str:
    """Turn the relationships of a query that can only point the other way, as few as possible.

    Whether one can point so is known from the labels of its nodes, from the entities that a node may be, where the
    query compares a key with a parameter, and from which relations meet in the graph: see `Directions.mend`.
    """
    tokens, root = read(query)
    arrows = [arrow for node in root.walk() for arrow in _arrows(tokens, node)]
    relations = directions.graph.relations
    edges = [
        Edge(arrow.head, [relations.find(schema.relation_of(type)) for type in arrow.types], arrow.tail)
        for arrow in arrows
    ]
    if any(number < 0 for edge in edges for number in edge.relations):
        return query
    labels = _labels(tokens, root)
    ends = {relation.name: relation.ends for relation in schema.relations}

    def allowed(number: int, turned: bool) -> bool:
        arrow = arrows[number]
        head, tail = (labels.get(name, set()) for name in (arrow.head, arrow.tail)[:: -1 if turned else 1])
        pairs = [pair for type in arrow.types for pair in ends[type]]
        return not pairs or any((not head or one in head) and (not tail or other in tail) for one, other in pairs)

    turned = directions.mend(edges, dict(_entities(tokens, root, parameters, schema, directions)), allowed)
    edits: list[tuple[int, int, str]] = []
    for arrow, turn in zip(arrows, turned, strict=True):
        if turn:
            backward = arrow.start.text == "<"
            at = arrow.start if backward else arrow.end
            edits.append((at.position, at.end, ""))
            edits.append((arrow.end.end, arrow.end.end, ">") if backward else (arrow.start.position,) * 2 + ("<",))
    for start, end, text in sorted(edits, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def _arrows(tokens: Sequence[Token], path: Node) -> Iterator[_Arrow]:
    """Yield the relationships of one hop between the nodes of a path that have a type and a direction."""
    for (one, between), (_, other) in pairwise(pairwise(path.inside)):
        types, variable_length = between.find("types"), between.find("length") or between.find("quantifier")
        if between.rule != "relationship" or types is None or variable_length is not None:
            continue
        start, end = tokens[between.start], tokens[between.end - 1]
        if (start.text == "<") == (end.text == ">"):
            continue
        names = [_node_name(tokens, node) for node in (one, other)]
        head, tail = reversed(names) if start.text == "<" else names
        text = [tokens[inner.start].name for inner in types.walk() if inner.rule == "tag"]
        if not any(token.text in ("!", "%", "&") for token in tokens[types.start : types.end]):
            yield _Arrow(head, text, tail, start, end)


def _node_name(tokens: Sequence[Token], node: Node) -> str:
    return next(iter(_variables(tokens, node)), f" {node.start}")


def _labels(tokens: Sequence[Token], root: Node) -> dict[str, set[str]]:
    """Return the labels that a query gives to its nodes, by name; any of them may be meant."""
    labels: dict[str, set[str]] = {}
    for node in root.walk():
        if node.rule == "node" and (given := node.find("labels")):
            names = {tokens[inner.start].name for inner in given.walk() if inner.rule == "tag"}
            labels.setdefault(_node_name(tokens, node), set()).update(names)
    return labels


def _entities(
    tokens: Sequence[Token], root: Node, parameters: Mapping[str, Any], schema: DatabaseSchema, directions: Directions
) -> Iterator[tuple[str, list[int]]]:
    """Yield the nodes whose key a query compares with a parameter, with the entities that it names."""
    for node in root.walk():
        compared: list[tuple[str, Sequence[Token], Sequence[Token]]] = []
        if node.rule == "expression":
            for one, sign, other in zip(node.inside, node.inside[1:], node.inside[2:], strict=False):
                left = tokens[one.start : one.end]
                if tokens[sign.start].word in ("=", "IN") and len(left) == 3 and left[1].text == ".":
                    compared.append((left[0].name, left[2:], tokens[other.start : other.end]))
        elif node.rule == "node" and (properties := node.find("properties")):
            entries = (entry for inner in properties.inside for entry in inner.inside if entry.rule == "entry")
            name = _node_name(tokens, node)
            compared += [(name, tokens[e.start : e.start + 1], tokens[e.start + 2 : e.end]) for e in entries]
        for name, (key,), value in compared:
            if key.name in schema.keys and len(value) == 1 and value[0].kind == "parameter":
                keys = parameters.get(value[0].name)
                numbers = [
                    directions.graph.entities.find(k)
                    for k in (keys if isinstance(keys, list) else [keys])
                    if isinstance(k, str)
                ]
                if numbers and min(numbers) >= 0:
                    yield name, numbers
