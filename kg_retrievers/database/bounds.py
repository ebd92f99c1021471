"""Bounds what takes an engine down though it only reads.

LadybugDB ends the whole process at a large SKIP behind ORDER BY, plans for seconds where many relationships meet, and
takes all memory for a text that is multiplied again and again; its timeout and its `max_memory` hold none of these.
The bounds are far above what questions need. What takes long within them is stopped by the timeout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kg_retrievers.database.grammar import SyntaxNode
from kg_retrievers.database.growth import check_growth
from kg_retrievers.database.tokens import Token, refusal

#: How many rows a query may skip and return. (LadybugDB fails from 1,000 on where rows are few and have 30 columns.)
MAX_SKIP, MAX_LIMIT = 1000, 1_000_000

#: How many hops a relationship or a quantified path may have, and how many shortest paths may be wanted.
MAX_HOPS = 1000

#: How many operators a query may have; each `[0]`, `.name`, `IS NULL` and sign behind or before a value is one.
MAX_OPERATORS = 500

#: How many relationships MATCH may have before the next WITH, and how many of these one variable. LadybugDB plans 1 s
#: for 8 at one node, and 5 s for 12.
MAX_RELATIONSHIPS, MAX_AT_NODE = 16, 8

#: The digits of a number.
MAX_DIGITS = 100


def check_bounds(query: str, tokens: Sequence[Token], root: SyntaxNode, parameters: Mapping[str, Any]) -> None:
    """Refuse a query that would take an engine down, in time linear in its length.

    Args:
        query: The text of the query.
        tokens: Its tokens, from `read`.
        root: Its syntax, from `read`.
        parameters: The values of its parameters, as far as they are known.

    Raises:
        CypherSafetyError: If it is beyond a bound. The message says which, and how to write it instead.
    """
    nodes = list(root.walk())
    _check_digits(query, tokens)
    _check_counts(query, tokens, nodes, parameters)
    _check_operators(query, tokens, nodes)
    for node in nodes:
        _check_patterns(query, tokens, node)
    check_growth(query, tokens, root, parameters)


def _check_digits(query: str, tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.kind in ("integer", "number") and len(token.text) > MAX_DIGITS:
            reason = f", a number of {len(token.text)} characters; at most {MAX_DIGITS} are read. Write a shorter one"
            raise refusal(query, token, reason)


# Numbers of rows and hops --------------------------------------------------------------------------------------------


def _check_counts(
    query: str, tokens: Sequence[Token], nodes: Sequence[SyntaxNode], parameters: Mapping[str, Any]
) -> None:
    for node in nodes:
        if node.rule == "projection" and (skip := node.find("count")):
            _check_count(query, tokens[skip.start], "SKIP", MAX_SKIP, parameters)
        elif node.rule == "limit":
            _check_count(query, tokens[node.end - 1], "LIMIT", MAX_LIMIT, parameters)
        elif node.rule in ("length", "quantifier", "path_mode"):
            passed = node.find("passed")
            for token in tokens[node.start : passed.start if passed else node.end]:
                if token.kind in ("integer", "parameter"):
                    _check_count(query, token, "a path", MAX_HOPS, parameters)


_INSTEAD = {
    "SKIP": "Begin behind the last row that you have: WHERE n.name > $last ... ORDER BY n.name LIMIT 100",
    "LIMIT": "Write a smaller LIMIT, or none: the rows that come back are limited in any case",
    "a path": "Write how many hops the question needs, as *1..4",
}


def _check_count(query: str, token: Token, where: str, most: int, parameters: Mapping[str, Any]) -> None:
    """Refuse an integer that is too large, or a parameter whose value is known and is one, or is negative."""
    value: Any = parameters.get(token.name) if token.kind == "parameter" else int(token.text)
    if token.kind == "parameter" and where == "SKIP" and token.name in parameters and not isinstance(value, int):
        raise refusal(query, token, f", a parameter of {where} that holds no integer. Give one from 0 to {most}")
    if isinstance(value, int) and not 0 <= value <= most:
        held = "" if token.kind == "integer" else f", which holds {value if abs(value) < 10**20 else 'a huge number'}"
        reason = f"{held}, as the number of {where}; it may be from 0 to {most}. {_INSTEAD[where]}"
        raise refusal(query, token, reason)


# Operators -----------------------------------------------------------------------------------------------------------


def _check_operators(query: str, tokens: Sequence[Token], nodes: Sequence[SyntaxNode]) -> None:
    total = 0
    for node in nodes:
        if node.rule == "operator":
            total += 1
        elif node.rule == "value":  # what stands before and behind its operand
            within = sum(inner.end - inner.start for inner in node.inside)
            total += node.end - node.start - within + len(node.inside) - 1
        if total > MAX_OPERATORS:
            instead = "Write x IN [1, 2, ...] for many OR, sum over a list for many +, or pass a value as a parameter"
            raise refusal(
                query, tokens[node.start], f", behind {MAX_OPERATORS} operators, the most there may be. {instead}"
            )


# Patterns ------------------------------------------------------------------------------------------------------------


def _check_patterns(query: str, tokens: Sequence[Token], node: SyntaxNode) -> None:
    """Refuse too many relationships in what an engine plans together."""
    for together in _planned_together(tokens, node):
        met = Counter[str]()
        relationships = [part for path in together for part in _relationships(tokens, path, met)]
        if len(relationships) > MAX_RELATIONSHIPS:
            token = tokens[relationships[MAX_RELATIONSHIPS].start]
            found = f"as relationship {MAX_RELATIONSHIPS + 1} of what is matched together; at most {MAX_RELATIONSHIPS}"
            raise refusal(query, token, f", {found} are planned in time. {_SPLIT}")
        name, most = max(met.items(), key=lambda item: item[1], default=("", 0))
        if most > MAX_AT_NODE:
            found = f"in a pattern in which {most} relationships meet at {name[:80]!r}; at most {MAX_AT_NODE}"
            raise refusal(query, tokens[together[0].start], f", {found} are planned in time. {_SPLIT}")


_SPLIT = "Put a WITH between two MATCH, as MATCH ... WITH DISTINCT a MATCH ..., or test with WHERE EXISTS { ... }"


def _planned_together(tokens: Sequence[Token], node: SyntaxNode) -> Iterator[list[SyntaxNode]]:
    """Yield the patterns directly below a node that an engine plans at once: those of MATCH up to the next WITH."""
    if node.rule == "operand":
        yield [node]
    together: list[SyntaxNode] = []
    for inner in node.inside:
        if inner.rule == "patterns" and node.rule == "subquery":
            yield [inner]
        elif inner.rule == "clause" and tokens[inner.start].word == "OPTIONAL":
            yield [part for part in inner.inside if part.rule == "patterns"]
        elif inner.rule == "clause" and inner.find("projection"):
            yield together
            together = []
        elif inner.rule == "clause":
            together += [part for part in inner.inside if part.rule == "patterns"]
    yield together


def _relationships(tokens: Sequence[Token], node: SyntaxNode, met: Counter[str]) -> Iterator[SyntaxNode]:
    """Yield the relationships of patterns, and count in `met` how many of them meet at each variable."""
    for place, inner in enumerate(node.inside):
        if inner.rule == "relationship":
            yield inner
            for end in node.inside[place - 1 : place + 2 : 2]:
                if name := end.find("variable"):
                    met[tokens[name.start].name] += 1
        elif inner.rule in ("pattern", "path", "node", "shortest"):
            yield from _relationships(tokens, inner, met)
