"""Bound the joins of a query and the growth of its values.

The growth is how much larger than its parts a text or list can become.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from kg_retrievers.database.grammar import SyntaxNode
from kg_retrievers.database.tokens import Token, refusal

#: How many rows a query may skip and return. (LadybugDB fails from 1,000 on where rows are few and have 30 columns.)
MAX_SKIP, MAX_LIMIT = 1000, 1_000_000

#: How many hops a relationship or a quantified path may have, and how many shortest paths may be wanted.
MAX_HOPS = 1000

#: How many operators a query may have. Each `[0]`, `.name`, `IS NULL` and sign behind or before a value is one.
MAX_OPERATORS = 500

#: How many relationships MATCH may have before the next WITH, and how many of them one variable may have. LadybugDB
#: plans 1 s for 8 at one node, and 5 s for 12.
MAX_RELATIONSHIPS, MAX_AT_NODE = 16, 8

#: The digits of a number.
MAX_DIGITS = 100


def check_bounds(query: str, tokens: Sequence[Token], root: SyntaxNode, parameters: Mapping[str, Any]) -> None:
    """Refuse a query that would take an engine down.

    The check takes time linear in the length of the query.

    Args:
        query: The text of the query.
        tokens: Its tokens, from `read`.
        root: Its syntax, from `read`.
        parameters: The values of its parameters, as far as they are known.

    Raises:
        CypherSafetyError: If it is beyond a bound. The message says which bound, and how to write the query instead.
    """
    nodes = list(root.walk())
    for token in tokens:
        if token.kind in ("integer", "number") and len(token.text) > MAX_DIGITS:
            reason = f", a number of {len(token.text)} characters; at most {MAX_DIGITS} are read. Write a shorter one"
            raise refusal(query, token, reason)
    _check_counts(query, tokens, nodes, parameters)
    _check_operators(query, tokens, nodes)
    for node in nodes:
        _check_patterns(query, tokens, node)
    aliases: dict[str, list[SyntaxNode]] = {}
    for node in nodes:
        if node.rule == "column" and node.find("alias"):
            aliases.setdefault(tokens[node.end - 1].name, []).append(node.inside[0])
    _Growth(query, tokens, parameters, aliases).of(root)


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
    """Refuse an integer that is negative or too large.

    A parameter counts if its value is known.
    """
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
    """Refuse too many relationships in the patterns that an engine plans together."""
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
    """Yield the patterns directly below a node that an engine plans at once.

    These are the patterns of MATCH up to the next WITH.
    """
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
    """Yield the relationships of patterns.

    `met` counts how many of them meet at each variable.
    """
    for place, inner in enumerate(node.inside):
        if inner.rule == "relationship":
            yield inner
            for end in node.inside[place - 1 : place + 2 : 2]:
                if name := end.find("variable"):
                    met[tokens[name.start].name] += 1
        elif inner.rule in ("pattern", "path", "node", "shortest"):
            yield from _relationships(tokens, inner, met)


#: How many times as large a value may become, and how many numbers `range` may make.
MAX_GROWTH = 10_000

#: The assumed length of a replacement that is computed, and the assumed size of a list whose size is computed.
COMPUTED_TEXT, COMPUTED_SIZE = 30, 100

_JOINING = {"concat", "concat_ws", "list_concat", "list_cat", "array_concat", "array_cat"}

#: The functions that may compute the ends of `range`: the sizes of values that are there, and parts of dates.
_SIZES = {"size", "length", "char_length", "count", "date", "datetime"}

#: The rules in which a size can stand.
_PLAIN = {"argument", "expression", "value", "operand", "parameter"}

_GROWS = "Replace by shorter texts, make shorter ranges, or join a value with itself fewer times"


class _Growth(NamedTuple):
    """Reads how many times as large a part of a query makes its values.

    `replace(x, 'a', 'bcd')` counts 3, `range(1, 5)` 5, `x + y` 2. Operations on a result multiply: functions in
    functions, comprehensions in comprehensions, and one WITH after another.
    """

    query: str
    tokens: Sequence[Token]
    parameters: Mapping[str, Any]
    aliases: Mapping[str, list[SyntaxNode]]

    def of(self, node: SyntaxNode) -> int:
        """Return the growth of a part, at least 1."""
        if node.rule == "call":
            growth = self._of_call(node)
        else:
            inside = [self.of(inner) for inner in node.inside]
            growth = max(inside, default=1)
            if node.rule in ("part", "subquery"):  # what MATCH and WHERE make is not handed on
                handed_on = (size for size, inner in zip(inside, node.inside, strict=True) if self._hands_on(inner))
                growth = max(growth, prod(handed_on))
            elif node.rule == "list" and any(self.tokens[inner.start - 1].text == "|" for inner in node.inside):
                growth = prod(inside)
            elif node.rule == "expression":
                growth = max(growth, sum(inside[place] for place in self._joined(node)))
        if growth > MAX_GROWTH:
            found = f"which can make a value {growth if growth < 10**20 else 'countless'} times as large"
            raise refusal(self.query, self.tokens[node.start], f", {found}; at most {MAX_GROWTH} times. {_GROWS}")
        return growth

    def _of_call(self, node: SyntaxNode) -> int:
        name = self.tokens[node.start].name.lower() if node.inside[0].end == node.start + 1 else ""
        arguments = next((inner.inside for inner in node.inside if inner.rule == "arguments"), ())
        inside = [self.of(argument) for argument in arguments]
        inside += [self.of(inner) for inner in node.inside[1:] if inner.rule != "arguments"]
        if name in _JOINING:
            return max(1, sum(size for size, part in zip(inside, arguments, strict=False) if self._is_computed(part)))
        factor = self._factor(name, node, arguments)
        return max(inside, default=1) if factor == 1 else factor * prod(inside)

    def _factor(self, name: str, node: SyntaxNode, arguments: Sequence[SyntaxNode]) -> int:
        """Return how many times as large a function makes its values."""
        if name == "replace" and len(arguments) >= 3:
            found, by = self._text(arguments[1]), self._text(arguments[2])
            length = COMPUTED_TEXT if by is None else len(by)
            if found == "" and length:  # what fits nothing fits between all characters
                return length + 1
            return max(1, -(-length // len(found or " ")))
        if name == "range" and len(arguments) >= 2:
            return self._of_range(node, arguments)
        return 1

    def _of_range(self, node: SyntaxNode, arguments: Sequence[SyntaxNode]) -> int:
        first, last, step = (*map(self._integer, arguments), 1)[:3]
        if first is not None and last is not None:
            return max(1, abs(last - first) // max(1, abs(step or 1)) + 1)
        if not all(map(self._is_size, arguments[:2])):
            reason = f"a range whose end is computed; at most {MAX_GROWTH} numbers are made"
            instead = "Write its ends as integers, as known parameters, or by size(...) and length(...)"
            raise refusal(self.query, self.tokens[node.start], f", {reason}. {instead}")
        return COMPUTED_SIZE

    def _is_size(self, node: SyntaxNode, depth: int = 3) -> bool:
        """Tell whether a value is a size, a part of a date or a small integer.

        A sum of such values counts, too.
        """
        token = self.tokens[node.start]
        if node.rule == "call":
            return token.name.lower() in _SIZES
        if node.rule == "variable":
            values = self.aliases.get(token.name, []) if depth else []
            return bool(values) and all(self._is_size(value, depth - 1) for value in values)
        if node.rule == "operator":
            return token.text in ("+", "-")
        if not node.inside:
            number = self._integer(node)
            is_unknown = token.kind == "parameter" and token.name not in self.parameters
            return node.rule == "name" or is_unknown or (number is not None and abs(number) <= MAX_GROWTH)
        return node.rule in _PLAIN and all(self._is_size(inner, depth) for inner in node.inside)

    def _joined(self, node: SyntaxNode) -> list[int]:
        """Return the places of the computed operands of + and || in an expression."""
        parts = node.inside
        joins = (part.rule == "operator" and self.tokens[part.start].text in ("+", "||") for part in parts)
        places = [place for place, is_join in enumerate(joins) if is_join]
        found = sorted({beside for place in places for beside in (place - 1, place + 1)})
        return [place for place in found if self._is_computed(parts[place])]

    def _hands_on(self, node: SyntaxNode) -> bool:
        return node.rule == "projection" or (
            node.rule == "clause" and (node.find("projection") is not None or self.tokens[node.start].word == "UNWIND")
        )

    def _is_computed(self, node: SyntaxNode) -> bool:
        return any(inner.rule in ("variable", "call", "parameter") for inner in node.walk())

    def _text(self, node: SyntaxNode) -> str | None:
        """Return a text that is written out or a known parameter, else None. Escapes count as they are written."""
        token = self.tokens[node.start]
        if node.end - node.start != 1:
            return None
        if token.kind == "string":
            return token.text[1:-1]
        value = self.parameters.get(token.name) if token.kind == "parameter" else None
        return value if isinstance(value, str) else None

    def _integer(self, node: SyntaxNode) -> int | None:
        """Return a literal integer, with or without a sign, or a known parameter, else None."""
        *signs, token = self.tokens[node.start : node.end]
        if any(sign.text not in ("+", "-") for sign in signs):
            return None
        value: Any = int(token.text) if token.kind == "integer" else None
        if token.kind == "parameter":
            value = self.parameters.get(token.name)
        if not isinstance(value, int):
            return None
        return -value if sum(sign.text == "-" for sign in signs) % 2 else value
