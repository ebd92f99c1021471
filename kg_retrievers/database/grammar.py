"""The grammar of Cypher that only reads, and its parser.

Anything outside the grammar is refused. Each clause must be one that reads, and between two operands there must be an
operator, so no other clause can begin anywhere. Inside expressions it accepts more than engines do, which is harmless,
since no clause stands there.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple, TypeAlias

from kg_retrievers.database.tokens import Token, refusal, tokenize

#: Words that do more than read, so that the message can say so. Everything else outside the grammar is refused, too.
_NOT_READING = "ALTER ATTACH COPY CREATE DELETE DETACH DROP EXPORT FOREACH IMPORT INSERT INSTALL LOAD MERGE REMOVE SET"
NOT_READING = frozenset(_NOT_READING.split())

#: Names of clauses, which a variable has in back-ticks alone.
CLAUSES = NOT_READING | {"CALL", "MATCH", "RETURN", "UNION", "USE", "WHERE", "WITH"}

#: The rules, whose notation the file explains.
GRAMMAR = (files(__package__) / "reading_cypher.txt").read_text("utf-8")

#: The names that messages use for things that can stand at a position.
_TITLES = {"operand": "a value", "operator": "an operator", "name": "a name", "quantifier": "a quantifier"}
_TITLES |= {"path_mode": "a kind of path", "@integer": "an integer", "@end": "the end"}

#: How many words and signs a query may have. Reading so many takes a second.
MAX_TOKENS = 15_000

#: How many rules may be nested: some 15 brackets, so that Python's own limit is never met.
MAX_DEPTH = 100


_TOO_DEEP = (
    f"nested too deeply, in more than {MAX_DEPTH} rules of the grammar, which are some 15 brackets. "
    "Give the value inside a name by WITH ... AS x, and use x"
)


class SyntaxNode(NamedTuple):
    """The tokens from position `start` up to `end` fit `rule`.

    `inside` holds the nodes of the rules in it.
    """

    rule: str
    start: int
    end: int
    inside: tuple[SyntaxNode, ...]

    def walk(self) -> Iterator[SyntaxNode]:
        """Yield this node and all below it, in the order of the query."""
        yield self
        for node in self.inside:
            yield from node.walk()

    def find(self, rule: str) -> SyntaxNode | None:
        """Return the node of a rule among those directly inside, or None."""
        return next((node for node in self.inside if node.rule == rule), None)


Found = tuple[int, tuple[SyntaxNode, ...]] | None
Fit = Callable[["_Query", int], Found]


class _Query:
    """A query during parsing.

    It records the furthest token at which something else was wanted.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens = text, tokens
        self.words = [token.word for token in tokens]
        self.known: dict[tuple[str, int], Found] = {}  # what fits where; nothing is tried twice
        self.depth = 0
        self.reached, self.wanted = 0, dict[str, None]()

    def miss(self, at: int, wanted: str) -> None:
        if at > self.reached:
            self.reached, self.wanted = at, {}
        if at == self.reached:
            self.wanted[wanted] = None


@lru_cache(maxsize=16)  # one query is read for several checks in a row
def read(query: str) -> tuple[tuple[Token, ...], SyntaxNode]:
    """Parse a query by the grammar, in time linear in its length.

    Args:
        query: The text of a query.

    Returns:
        Its tokens without blanks and comments, the last of kind "end", and the node of the rule `query`.

    Raises:
        CypherSafetyError: If it does not fit. The message names the first token that does not, and what could stand
            there instead.
    """
    pieces = [token for token in tokenize(query) if token.kind not in ("blank", "comment")]
    if len(pieces) > MAX_TOKENS:
        reason = f", behind {MAX_TOKENS} words and signs, the most that are read. Pass a long list as a parameter"
        raise refusal(query, pieces[MAX_TOKENS], reason)
    tokens = (*pieces, Token("end", "", len(query)))
    state = _Query(query, tokens)
    if found := _rules()["query"](state, 0):
        return tokens, found[1][0]
    wanted = sorted(word if word[0].isalpha() else repr(word) for word in state.wanted)
    word, clause_wanted = state.words[state.reached], "RETURN" in state.wanted
    what = ""
    if clause_wanted and word in NOT_READING:
        what = ", which does more than read"
    elif clause_wanted and word == "CALL":
        what = ", a procedure that is not allowed"
    elif word in CLAUSES:
        what = ", the name of a clause, which a variable has in back-ticks alone"
    reason = f"{what}, where can stand: {', '.join(wanted)}. Write one query that only reads, in plain Cypher"
    raise refusal(query, tokens[state.reached], reason)


# From the text of the grammar to functions ---------------------------------------------------------------------------


@cache
def _rules() -> dict[str, Fit]:
    rules: dict[str, Fit] = {}
    for name, body in re.findall(r"^(\w+) += (.*(?:\n +.*)*)", GRAMMAR, re.MULTILINE):
        rules[name] = _rule(name, _choice(deque(re.findall(r"'[^']+'|@?\w+|[()|?*+!]", body)), rules))
    return rules


def _choice(pieces: deque[str], rules: dict[str, Fit]) -> Fit:
    options = [_sequence(pieces, rules)]
    while pieces and pieces[0] == "|":
        pieces.popleft()
        options.append(_sequence(pieces, rules))

    def fit(query: _Query, at: int) -> Found:
        for option in options:
            if found := option(query, at):
                return found
        return None

    return fit if len(options) > 1 else options[0]


def _sequence(pieces: deque[str], rules: dict[str, Fit]) -> Fit:
    items = list[Fit]()
    while pieces and pieces[0] not in "|)":
        items.append(_item(pieces, rules))

    def fit(query: _Query, at: int) -> Found:
        nodes: tuple[SyntaxNode, ...] = ()
        for item in items:
            if not (found := item(query, at)):
                return None
            at = found[0]
            nodes += found[1]
        return at, nodes

    return fit if len(items) > 1 else items[0]


def _item(pieces: deque[str], rules: dict[str, Fit]) -> Fit:
    piece = pieces.popleft()
    if piece == "!":
        return _absent(_item(pieces, rules))
    if piece == "(":
        one = _choice(pieces, rules)
        pieces.popleft()
    elif piece[0] == "@":
        kind = piece[1:]
        one = _one(_TITLES.get(piece, f"a {kind}"), lambda query, at: query.tokens[at].kind == kind)
    elif piece.islower():
        one = _named(piece, rules)
    else:
        word = piece.strip("'")
        one = _one(word, lambda query, at: query.words[at] == word)
    if pieces and pieces[0] in "?*+":
        suffix = pieces.popleft()
        return _repeated(one, at_least=suffix == "+", once=suffix == "?")
    return one


def _named(name: str, rules: dict[str, Fit]) -> Fit:
    return lambda query, at: rules[name](query, at)


def _one(wanted: str, fits: Callable[[_Query, int], bool]) -> Fit:
    """Take one token that fits, which messages call `wanted`."""

    def fit(query: _Query, at: int) -> Found:
        if fits(query, at):
            return at + 1, ()
        query.miss(at, wanted)
        return None

    return fit


def _absent(one: Fit) -> Fit:
    def fit(query: _Query, at: int) -> Found:
        before = query.reached, dict(query.wanted)
        found = one(query, at)
        query.reached, query.wanted = before
        return None if found else (at, ())

    return fit


def _repeated(one: Fit, at_least: bool, once: bool) -> Fit:
    def fit(query: _Query, at: int) -> Found:
        nodes = list[SyntaxNode]()
        some = False
        while found := one(query, at):
            at, some = found[0], True
            nodes += found[1]
            if once:
                break
        return (at, tuple(nodes)) if some or not at_least else None

    return fit


def _rule(name: str, body: Fit) -> Fit:
    body = _titled(body, _TITLES[name]) if name in _TITLES else body

    def fit(query: _Query, at: int) -> Found:
        if (name, at) not in query.known:
            query.depth += 1
            if query.depth > MAX_DEPTH:
                raise refusal(query.text, query.tokens[at], f", {_TOO_DEEP}")
            found = body(query, at)
            query.known[name, at] = (found[0], (SyntaxNode(name, at, found[0], found[1]),)) if found else None
            query.depth -= 1
        return query.known[name, at]

    return fit


def _titled(one: Fit, title: str) -> Fit:
    """Say that `title` was wanted, instead of all that it can begin with."""

    def fit(query: _Query, at: int) -> Found:
        before = query.reached, dict(query.wanted)
        found = one(query, at)
        if query.reached <= at:
            query.reached, query.wanted = before
            if not found:
                query.miss(at, title)
        return found

    return fit


#: The positions of a part of a text, the second behind its end, and its replacement.
Edit: TypeAlias = tuple[int, int, str]


def splice(query: str, edits: Iterable[Edit]) -> str:
    """Return a query with parts replaced.

    Insertions at one position come in the order of the edits.

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
    """Return the new name of a column of WITH, RETURN or UNWIND, if it has one."""
    named = node.find("alias" if node.rule == "column" else "variable")
    return [tokens[named.end - 1].name] if named else []
