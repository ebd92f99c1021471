"""Turns the arrows of a Cypher query that can only point the other way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kg_retrievers.database.grammar import Edit, SyntaxNode, alias_of, read, splice, tags_of, variables_of
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.database.tokens import Token
from kg_retrievers.questions.operations import Directions, Edge


class _Arrow(NamedTuple):
    """A relationship of a query that points one way, between two nodes by name."""

    head: str
    types: list[str]
    tail: str
    start: Token
    end: Token


class _Comparison(NamedTuple):
    """A property of a node must be equal to a parameter, or be one of its members."""

    node: str
    property: str
    parameter: str


class _Required:
    """The arrows, labels and comparisons that the MATCH clauses of one part of a query require.

    Negated conditions and alternatives are left out. The name of a node is the position of its first token, so that a
    variable may stand for another node after a WITH.
    """

    def __init__(self, tokens: Sequence[Token], part: SyntaxNode) -> None:
        self.tokens = tokens
        self.arrows: list[_Arrow] = []
        self.labels: dict[str, set[str]] = {}  # any of them may be meant
        self.compared: list[_Comparison] = []
        self._names: dict[str, str] = {}
        for clause in part.inside[:-1]:
            if patterns := clause.find("patterns"):
                optional = tokens[clause.start].word == "OPTIONAL"
                for pattern in patterns.inside:
                    if path := pattern.find("path"):
                        self._read_path(path, optional)
                if not optional:
                    self._read_where(clause)
            elif tokens[clause.start].word == "WITH":
                self._names = dict(self._passed_on(clause.inside[0].inside[0]))

    def _read_path(self, path: SyntaxNode, optional: bool) -> None:
        for node in path.inside:
            if node.rule == "node":
                name = self._name(node)
                given = node.find("labels")
                if given and not self._negated(given):
                    self.labels.setdefault(name, set()).update(self._tags(given))
                properties = node.find("properties")
                if properties and not optional:
                    entries = (entry for inner in properties.inside for entry in inner.inside if entry.rule == "entry")
                    for entry in entries:
                        self._compare(name, self.tokens[entry.start], self.tokens[entry.start + 2 : entry.end])
                if not optional:
                    self._read_where(node)
        for (one, between), (_, other) in pairwise(pairwise(path.inside)):
            if between.rule == "relationship":
                self._read_relationship(one, between, other)

    def _read_relationship(self, one: SyntaxNode, between: SyntaxNode, other: SyntaxNode) -> None:
        """Read a relationship of one hop that has a type and a direction."""
        types, variable_length = between.find("types"), between.find("length") or between.find("quantifier")
        start, end = self.tokens[between.start], self.tokens[between.end - 1]
        one_way = (start.text == "<") != (end.text == ">")
        if types is not None and variable_length is None and one_way and not self._negated(types):
            names = [self._name(node) for node in (one, other)]
            head, tail = reversed(names) if start.text == "<" else names
            self.arrows.append(_Arrow(head, self._tags(types), tail, start, end))

    def _read_where(self, holder: SyntaxNode) -> None:
        """Read the comparisons that a WHERE joins by AND."""
        where = holder.find("where")
        if where is None:
            return
        terms = where.inside[0].inside
        signs = [self.tokens[node.start].word if node.rule == "operator" else "" for node in terms]
        if "OR" in signs or "XOR" in signs:
            return
        ends = [at for at, sign in enumerate(signs) if sign == "AND"]
        for start, end in pairwise([-1, *ends, len(terms)]):
            if end - start == 4 and signs[start + 2] in ("=", "IN"):
                one, _, other = terms[start + 1 : end]
                left = self.tokens[one.start : one.end]
                if len(left) == 3 and left[1].text == "." and left[0].name in self._names:
                    self._compare(self._names[left[0].name], left[2], self.tokens[other.start : other.end])

    def _compare(self, node: str, property: Token, value: Sequence[Token]) -> None:
        if len(value) == 1 and value[0].kind == "parameter":
            self.compared.append(_Comparison(node, property.name, value[0].name))

    def _passed_on(self, columns: SyntaxNode) -> Iterator[tuple[str, str]]:
        """Yield the nodes that a WITH passes on, by their variables after it."""
        if self.tokens[columns.start].text == "*":
            yield from self._names.items()
        for column in columns.inside:
            item = column.inside[0]
            variable = self.tokens[item.start].name
            if item.end - item.start == 1 and variable in self._names:
                yield next(iter(alias_of(self.tokens, column)), variable), self._names[variable]

    def _name(self, node: SyntaxNode) -> str:
        named = variables_of(self.tokens, node)
        new = f"{node.start}"
        return self._names.setdefault(named[0], new) if named else new

    def _tags(self, node: SyntaxNode) -> list[str]:
        return [token.name for token in tags_of(self.tokens, node)]

    def _negated(self, node: SyntaxNode) -> bool:
        return any(token.text in ("!", "%", "&") for token in self.tokens[node.start : node.end])


def correct_directions(
    query: str, parameters: Mapping[str, Any], schema: DatabaseSchema, directions: Directions
) -> str:
    """Turn the relationships of a query that can only point the other way; as few as possible.

    The labels of its nodes, the entities that a node may be, where the query compares a key with a parameter, and the
    relations that meet in the graph tell which way a relationship can point: see `Directions.correct`. Only patterns of
    MATCH are corrected, each part of a UNION by itself; conditions and subqueries stay as they are.
    """
    tokens, root = read(query)
    edits: list[Edit] = []
    for part in root.inside[0].inside:
        required = _Required(tokens, part)
        turned = _turned(required, parameters, schema, directions)
        for arrow in (arrow for arrow, turn in zip(required.arrows, turned, strict=True) if turn):
            backward = arrow.start.text == "<"
            at = arrow.start if backward else arrow.end
            edits.append((at.position, at.end, ""))
            edits.append((arrow.end.end, arrow.end.end, ">") if backward else (arrow.start.position,) * 2 + ("<",))
    return splice(query, edits)


def _turned(
    required: _Required, parameters: Mapping[str, Any], schema: DatabaseSchema, directions: Directions
) -> list[bool]:
    """Return which of the arrows must be turned."""
    graph, arrows = directions.index.graph, required.arrows
    known = {label.name for label in schema.labels}
    labels = {name: some & known for name, some in required.labels.items()}  # types say nothing of the ends
    edges = [
        Edge(arrow.head, [graph.relations.find(schema.relation_of(type)) for type in arrow.types], arrow.tail)
        for arrow in arrows
    ]
    if any(relation < 0 for edge in edges for relation in edge.relations):
        return [False] * len(edges)
    ends = {relation.name: relation.ends for relation in schema.relations}

    def allowed(position: int, turned: bool) -> bool:
        if schema.sampled:  # there may be others
            return True
        arrow = arrows[position]
        head, tail = (labels.get(name, set()) for name in (arrow.head, arrow.tail)[:: -1 if turned else 1])
        pairs = [pair for type in arrow.types for pair in ends[type]]
        return not pairs or any((not head or one in head) and (not tail or other in tail) for one, other in pairs)

    entities: dict[str, list[int]] = {}
    for node, property, parameter in required.compared:
        value = parameters.get(parameter)
        keys = value if isinstance(value, list) else [value]
        found = [graph.entities.find(key) for key in keys if isinstance(key, str)]
        if property in schema.keys and found and min(found) >= 0:
            entities[node] = found
    return directions.correct(edges, entities, allowed)
