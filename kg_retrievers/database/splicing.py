"""Finds the names in a parsed query, and replaces parts of its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kg_retrievers.database.grammar import SyntaxNode
from kg_retrievers.database.tokens import Token

#: The positions of a part of a text, the second behind its end, and what stands there instead.
Edit: TypeAlias = tuple[int, int, str]


def splice(query: str, edits: Iterable[Edit]) -> str:
    """Return a query with parts replaced; what is inserted at one position comes in the order of the edits.

    Example:
        >>> splice("RETURN a, b", [(10, 11, "c"), (7, 7, "("), (8, 8, ")")])
        'RETURN (a), c'
    """
    pieces, position = [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [query[position:start], text]
        position = end
    return "".join([*pieces, query[position:]])


def variables_of(tokens: Sequence[Token], node: SyntaxNode) -> list[str]:
    """Return the variable of a node or relationship, if it has one."""
    return [tokens[inner.start].name for inner in node.inside if inner.rule == "variable"]


def alias_of(tokens: Sequence[Token], node: SyntaxNode) -> list[str]:
    """Return the new name of a column of WITH or RETURN, or of an UNWIND, if it has one."""
    named = node.find("alias" if node.rule == "column" else "variable")
    return [tokens[named.end - 1].name] if named else []


def tags_of(tokens: Sequence[Token], node: SyntaxNode) -> list[Token]:
    """Return the tokens of the labels or types in a node of the rule `labels`, `types` or `is_a`."""
    return [tokens[inner.start] for inner in node.walk() if inner.rule == "tag"]


def condition_on(tokens: Sequence[Token], match: SyntaxNode, condition: str) -> tuple[Edit, Edit]:
    """Return the two edits that add a condition to a MATCH, or to patterns in a subquery.

    Args:
        tokens: The tokens of the query.
        match: The node of the clause or the subquery, which has patterns.
        condition: The condition.
    """
    where, patterns = match.find("where"), match.find("patterns")
    if where is None:
        assert patterns
        end = tokens[patterns.end - 1].end
        return (end, end, ""), (end, end, f" WHERE {condition}")
    start, end = tokens[where.inside[0].start].position, tokens[where.end - 1].end
    return (start, start, "("), (end, end, f") AND {condition}")
