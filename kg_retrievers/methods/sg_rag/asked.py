"""What a Cypher query asks for: its relationships, the entities that it names, and its further conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kg_retrievers.database.grammar import SyntaxNode, read
from kg_retrievers.database.rendering import key_of
from kg_retrievers.database.schema import DatabaseSchema, Dialect, backticked
from kg_retrievers.database.splicing import Edit, alias_of, condition_on, splice, tags_of, variables_of
from kg_retrievers.database.tokens import Token
from kg_retrievers.errors import QuerySafetyError

#: The parameter that a query takes the key of an entity by, if it asks for this one alone.
ONE = "why_not_key"


class Arrow(NamedTuple):
    """A relationship of one hop between two nodes, by their names.

    Attributes:
        head: The node that it points from, or the first one.
        types: Its types; none where any will do.
        tail: The other node.
        directed: Whether it points one way.
        ends: The tokens at which it starts and ends.
    """

    head: str
    types: tuple[str, ...]
    tail: str
    directed: bool
    ends: tuple[Token, Token]


@dataclass(frozen=True)
class Asked:
    """A query of MATCH clauses alone, taken apart.

    Attributes:
        query: Its text.
        parameters: Its parameters.
        target: The variable of what it asks for.
        arrows: Its relationships.
        named: By node, the texts that its key or label is compared with, and whether that is its key.
        conditions: Its other conditions, as they are written: each can be left out.
    """

    query: str
    parameters: Mapping[str, Any]
    target: str
    arrows: tuple[Arrow, ...] = ()
    named: Mapping[str, tuple[str, bool, list[str]]] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


def read_asked(query: str, parameters: Mapping[str, Any], schema: DatabaseSchema) -> Asked | None:
    """Return what a query asks for; None of one that this cannot tell: other clauses, paths of several hops, UNION."""
    try:
        tokens, root = read(query)
    except QuerySafetyError:
        return None
    parts = root.inside[0].inside
    clauses = parts[0].inside[:-1]
    if len(parts) > 1 or any(tokens[clause.start].word != "MATCH" for clause in clauses):
        return None
    target = _target(tokens, parts[0])
    arrows = [_arrow(tokens, *three) for clause in clauses for three in _steps(clause)]
    if target is None or not all(arrows):
        return None
    named: dict[str, tuple[str, bool, list[str]]] = {}
    conditions = list[str]()
    for clause in clauses:
        for first, end in _terms(tokens, clause):
            text = query[tokens[first].position : tokens[end - 1].end]
            compared = _compared(tokens[first:end], parameters)
            if compared is not None and compared[0] != target and _names(schema, compared[1]):
                named[compared[0]] = (text, compared[1] in schema.keys, compared[2])
            else:
                conditions.append(text)
    return Asked(query, parameters, target, tuple(filter(None, arrows)), named, tuple(dict.fromkeys(conditions)))


def rewritten(query: str, left_out: Sequence[str], *, directions: bool = True) -> str:
    """Return a query without some conditions, and perhaps without the directions of its relationships."""
    query = _without(query, left_out)
    return query if directions else _undirected(query)


def used(query: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a query names."""
    tokens, _ = read(query)
    names = {token.name for token in tokens if token.kind == "parameter"}
    return {name: value for name, value in parameters.items() if name in names}


def naming(query: str, parameter: str) -> list[str]:
    """Return the conditions of a query that name a parameter."""
    tokens, root = read(query)
    found = []
    for clause in root.inside[0].inside[0].inside[:-1]:
        for first, end in _terms(tokens, clause):
            if any(token.kind == "parameter" and token.name == parameter for token in tokens[first:end]):
                found.append(query[tokens[first].position : tokens[end - 1].end])
    return found


def of_one(query: str, target: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    """Return a query that asks for one entity alone, whose key is the parameter `ONE`."""
    tokens, root = read(query)
    clauses = root.inside[0].inside[0].inside[:-1]
    clause = next(clause for clause in reversed(clauses) if target in _variables(tokens, clause))
    return splice(query, condition_on(tokens, clause, f"{key_of(backticked(target), schema, dialect)} = ${ONE}"))


def _names(schema: DatabaseSchema, property: str) -> bool:
    return property in schema.keys or property == schema.label


def _target(tokens: Sequence[Token], part: SyntaxNode) -> str | None:
    """Return the variable in the column `target`, else in the first one, if there is just one."""
    columns = part.inside[-1].inside[0].inside
    if not columns:
        return None
    chosen = next((column for column in columns if "target" in alias_of(tokens, column)), columns[0])
    nodes = {name for clause in part.inside[:-1] for name in _variables(tokens, clause)}
    inside = (tokens[node.start].name for node in chosen.walk() if node.rule == "variable")
    found = list(dict.fromkeys(name for name in inside if name in nodes))
    return found[0] if len(found) == 1 else None


def _variables(tokens: Sequence[Token], clause: SyntaxNode) -> list[str]:
    """Return the variables of the nodes that a clause matches."""
    patterns = clause.find("patterns")
    nodes = (node for node in patterns.walk() if node.rule == "node") if patterns else ()
    return [name for node in nodes for name in variables_of(tokens, node)]


def _steps(clause: SyntaxNode) -> Iterator[tuple[SyntaxNode, SyntaxNode | None, SyntaxNode]]:
    """Yield the relationships of a MATCH, each between its nodes; None where there is another thing."""
    patterns = clause.find("patterns")
    for pattern in patterns.inside if patterns else ():
        path = pattern.find("path")
        inside = path.inside if path else ()
        if not inside or inside[0].rule != "node" or any(node.rule != "node" for node in inside[::2]):
            yield pattern, None, pattern
            continue
        for at in range(1, len(inside) - 1, 2):
            yield inside[at - 1], inside[at], inside[at + 1]


def _arrow(tokens: Sequence[Token], one: SyntaxNode, between: SyntaxNode | None, other: SyntaxNode) -> Arrow | None:
    if between is None or between.rule != "relationship" or between.find("length") or between.find("quantifier"):
        return None
    if any(node.find("properties") or node.find("where") for node in (one, between, other)):
        return None
    given = between.find("types")
    if given and any(token.text in ("!", "%", "&") for token in tokens[given.start : given.end]):
        return None
    start, end = tokens[between.start], tokens[between.end - 1]
    types = tuple(token.name for token in tags_of(tokens, given)) if given else ()
    names = [next(iter(variables_of(tokens, node)), f"{node.start}") for node in (one, other)]
    head, tail = reversed(names) if start.text == "<" else names
    return Arrow(head, types, tail, (start.text == "<") != (end.text == ">"), (start, end))


def _terms(tokens: Sequence[Token], clause: SyntaxNode) -> list[tuple[int, int]]:
    """Return the tokens between which the conditions stand that the WHERE of a clause joins by AND."""
    where = clause.find("where")
    if where is None:
        return []
    expression = where.inside[0]
    signs = [(node.start, tokens[node.start].word) for node in expression.inside if node.rule == "operator"]
    if any(word in ("OR", "XOR") for _, word in signs):
        return [(expression.start, expression.end)]
    joints = [at for at, word in signs if word == "AND"]
    return list(zip([expression.start, *(at + 1 for at in joints)], [*joints, expression.end], strict=True))


def _compared(term: Sequence[Token], parameters: Mapping[str, Any]) -> tuple[str, str, list[str]] | None:
    """Return the node, the property and the texts of a condition `node.property = value`, or `IN` some."""
    if len(term) != 5 or term[1].text != "." or term[3].word not in ("=", "IN"):
        return None
    if term[4].kind == "parameter":
        value = parameters.get(term[4].name)
    else:
        value = term[4].text[1:-1] if term[4].kind == "string" and "\\" not in term[4].text else None
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return (term[0].name, term[2].name, texts) if texts else None


def _without(query: str, conditions: Sequence[str]) -> str:
    tokens, root = read(query)
    edits: list[Edit] = []
    for clause in root.inside[0].inside[0].inside[:-1]:
        where = clause.find("where")
        texts = [query[tokens[first].position : tokens[end - 1].end] for first, end in _terms(tokens, clause)]
        kept = [text for text in texts if text not in conditions]
        if where is not None and len(kept) < len(texts):
            new = f"WHERE {' AND '.join(kept)}" if kept else ""
            edits.append((tokens[where.start].position, tokens[where.end - 1].end, new))
    return splice(query, edits)


def _undirected(query: str) -> str:
    tokens, root = read(query)
    arrows = (node for node in root.inside[0].inside[0].walk() if node.rule == "relationship")
    ends = (token for node in arrows for token in (tokens[node.start], tokens[node.end - 1]))
    return splice(query, [(token.position, token.end, "") for token in ends if token.text in ("<", ">")])
