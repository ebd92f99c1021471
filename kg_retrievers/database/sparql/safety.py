"""Checks, before a SPARQL query is sent, that it only reads, and only from the endpoint that is asked.

A query may have the form SELECT or ASK. Every word must be one of those that read: so there is no update, no SERVICE,
which has the endpoint ask another one, and no FROM, which has some load a graph from the web. A function is one of
SPARQL itself or a cast to a datatype of XML Schema, since functions of engines may do anything. What a query joins is
bounded by `check_joins`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from kg_retrievers.database.sparql.joins import check_joins
from kg_retrievers.database.sparql.tokens import Token, refusal, tokenize
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.iris import WELL_KNOWN

#: How many characters and tokens a query may have, and how deep its brackets may be.
MAX_QUERY, MAX_TOKENS, MAX_DEPTH = 100_000, 15_000, 15

#: How many signs may join what an engine plans together: `.`, `;`, `/`, brackets of groups and nodes, and `,` between
#: them; and how many operators there may be. (Oxigraph dies of 7,000 operators, and plans 300 triples for minutes.)
MAX_JOINS, MAX_OPERATORS = 300, 1000
_JOINING, _OPERATORS = frozenset(".;/{["), frozenset(("+", "-", "*", "/", "|", "||", "&&", "^", "!"))

#: How many rows a query may skip and return.
MAX_OFFSET, MAX_LIMIT = 1000, 1_000_000

#: The schemes of IRIs in a query. Others, as `java:` and `bif:`, name functions of engines.
SCHEMES = frozenset(("http", "https", "urn", "tag", "mailto", "info", "did", "doi", "geo", "tel"))

_WORDS = """
prefix select distinct reduced as where ask order by asc desc limit offset group having values undef union optional
minus graph filter bind exists not in a true false separator
str lang langmatches datatype bound iri uri abs ceil floor round concat strlen ucase lcase encode_for_uri contains
strstarts strends strbefore strafter year month day hours minutes seconds timezone tz now md5 sha1 sha256 sha384 sha512
coalesce if strlang strdt sameterm isiri isuri isblank isliteral isnumeric regex substr replace
count sum min max avg sample group_concat
"""
#: The words of a query that only reads, in small letters; functions that give another value each time are left out.
READ_WORDS = frozenset(_WORDS.split())

_INSTEAD = {
    "CONSTRUCT": "Write SELECT, and return the three terms of each triple as columns",
    "DESCRIBE": "Write SELECT ?relation ?value WHERE { <...> ?relation ?value }",
    "SERVICE": "Ask one endpoint alone",
    "FROM": "Leave it out, or read a named graph by GRAPH <...> { ... }",
    "BASE": "Write whole IRIs",
}
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class CheckedSparql:
    """A query that only reads.

    Args:
        tokens: Its tokens, without comments.
        form: "SELECT" or "ASK".
        columns: The names of its columns.
        parameters: The names of the parameters it uses, in their order.
        declarations: The declarations of prefixes that it uses and does not declare, of those that are known.
        order_by: Whether its rows come in an order of its own.
        limit: Its own LIMIT, None where there is none.
    """

    tokens: tuple[Token, ...]
    form: str
    columns: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    order_by: bool = False
    limit: int | None = None
    _tail: int = 0  # the position of the token behind the closing bracket of WHERE


def check_read_only(
    query: str, *, parameters: Mapping[str, object] | None = None, namespaces: Mapping[str, str] = WELL_KNOWN
) -> CheckedSparql:
    """Check that a query only reads.

    Args:
        query: The text of a query.
        parameters: Those that are given; the query may name no other.
        namespaces: The prefixes that need no declaration.

    Raises:
        SparqlSafetyError: If it may do more, cannot be read, is beyond a bound, or does not name its columns.

    Example:
        >>> query = "SELECT ?film WHERE { ?film dbo:director ?who VALUES ?who { $who } }"
        >>> check_read_only(query, parameters={"who": "dbr:Spike_Jonze"}).columns
        ('film',)
    """
    return _checked(query, frozenset(parameters or ()), tuple(sorted(namespaces.items())))


@lru_cache(maxsize=1024)
def _checked(query: str, parameters: frozenset[str], namespaces: tuple[tuple[str, str], ...]) -> CheckedSparql:
    if len(query) > MAX_QUERY:
        end = Token("sign", "...", MAX_QUERY)
        raise refusal(query, end, f", behind {MAX_QUERY} characters, the most there may be. Pass values as parameters")
    tokens = tokenize(query)
    if len(tokens) > MAX_TOKENS:
        raise refusal(query, tokens[MAX_TOKENS], f", behind {MAX_TOKENS} words and signs, the most there may be")
    return _Check(query, tokens, parameters, dict(namespaces)).run()


class _Check:
    """Checks the tokens of one query."""

    def __init__(
        self, query: str, tokens: Sequence[Token], parameters: frozenset[str], known: Mapping[str, str]
    ) -> None:
        self.query, self.tokens, self.given, self.known = query, tokens, parameters, known
        self.declared: dict[str, str] = {}
        self.used: dict[str, None] = {}
        self.names: dict[str, None] = {}

    def run(self) -> CheckedSparql:
        start = self._read_prologue()
        form = self.tokens[start]
        if form.word not in ("SELECT", "ASK"):
            instead = _INSTEAD.get(form.word, "Begin with SELECT or ASK")
            raise refusal(self.query, form, f", where SELECT or ASK begins a query that is run. {instead}")
        for at in range(start, len(self.tokens) - 1):
            self._check_token(at, start)
        closing = self._match_brackets(start)
        columns, where = self._columns(start)
        end = closing.get(where)
        if end is None:
            raise refusal(self.query, self.tokens[where], ", where { begins what is to be found")
        check_joins(self.query, self.tokens, closing, start, where, self._expanded)
        declared = tuple(f"PREFIX {prefix}: <{self.known[prefix]}>" for prefix in self.used)
        return self._with_modifiers(
            CheckedSparql(tuple(self.tokens), form.word, columns, tuple(self.names), declared, _tail=end + 1)
        )

    def _read_prologue(self) -> int:
        at = 0
        while self.tokens[at].word == "PREFIX":
            name, iri = self.tokens[at + 1 : at + 3] if at + 2 < len(self.tokens) else (self.tokens[-1],) * 2
            if name.kind != "prefixed" or not name.text.endswith(":") or iri.kind != "iri":
                raise refusal(self.query, name, ", where a prefix is declared as in PREFIX ex: <http://example.org/>")
            self._check_iri(iri)
            self.declared[name.text[:-1]] = iri.text[1:-1]
            at += 3
        return at

    def _check_token(self, at: int, start: int) -> None:
        token, query = self.tokens[at], self.query
        following = self.tokens[at + 1]
        if token.kind == "word":
            wrong = token.text.lower() not in READ_WORDS or not token.text.isascii()
            if wrong or token.word == "PREFIX" or (token.word == "ASK" and at != start):
                instead = f". {_INSTEAD[token.word]}" if token.word in _INSTEAD else ""
                raise refusal(query, token, f", a word that is not known to only read{instead}")
            if token.word in ("LIMIT", "OFFSET"):
                self._check_count(token, following)
        elif token.kind == "iri":
            self._check_iri(token)
            self._check_call(token, following, token.text[1:-1])
        elif token.kind == "prefixed":
            self._check_call(token, following, self._expanded(token))
        elif token.kind == "parameter":
            if token.name not in self.given:
                raise refusal(query, token, ", a parameter that is not given. A variable begins with ?")
            self.names[token.name] = None

    def _expanded(self, token: Token) -> str:
        prefix, _, local = token.text.partition(":")
        if prefix == "_":
            return token.text
        if prefix not in self.declared:
            if prefix not in self.known:
                raise refusal(self.query, token, f", whose prefix is not declared. Begin with PREFIX {prefix}: <...>")
            self.used[prefix] = None
        return (self.declared.get(prefix) or self.known[prefix]) + local

    def _check_iri(self, token: Token) -> None:
        scheme = token.text[1:].partition(":")[0].lower()
        if scheme not in SCHEMES:
            raise refusal(self.query, token, f", an IRI of the scheme {scheme!r}; a query may hold {sorted(SCHEMES)}")

    def _check_call(self, token: Token, following: Token, iri: str) -> None:
        if following.text == "(" and not iri.startswith(WELL_KNOWN["xsd"]):
            raise refusal(self.query, token, ", before a bracket, as the call of a function that is not SPARQL's own")

    def _check_count(self, word: Token, count: Token) -> None:
        most = MAX_LIMIT if word.word == "LIMIT" else MAX_OFFSET
        if not count.text.isdecimal() or len(count.text) > 9 or int(count.text) > most:
            raise refusal(self.query, count, f", as the number of {word.word}; it is an integer from 0 to {most}")

    def _match_brackets(self, start: int) -> dict[int, int]:
        """Return where each bracket is closed."""
        opened, closing, joins, operators = list[int](), dict[int, int](), 0, 0
        for at, token in enumerate(self.tokens[start:-1], start):
            if token.kind != "sign":
                continue
            is_list = token.text == "," and bool(opened) and self.tokens[opened[-1]].text != "("
            joins += token.text in _JOINING or is_list
            operators += token.text in _OPERATORS
            if joins > MAX_JOINS:
                raise refusal(
                    self.query, token, f", behind {MAX_JOINS} triples and groups, the most that may be joined"
                )
            if operators > MAX_OPERATORS:
                raise refusal(
                    self.query, token, f", behind {MAX_OPERATORS} operators, the most there may be. Use IN (...)"
                )
            if token.text in _PAIRS:
                opened.append(at)
                if len(opened) > MAX_DEPTH:
                    raise refusal(self.query, token, f", in {MAX_DEPTH} brackets, the most there may be")
            elif token.text in _PAIRS.values():
                if not opened or _PAIRS[self.tokens[opened[-1]].text] != token.text:
                    raise refusal(self.query, token, ", a bracket that closes none")
                closing[opened.pop()] = at
        if opened:
            raise refusal(self.query, self.tokens[opened[-1]], ", a bracket that is not closed")
        return closing

    def _columns(self, start: int) -> tuple[tuple[str, ...], int]:
        """Return the names of the columns, and where the bracket behind WHERE stands."""
        names, at, depth = list[str](), start + 1, 0
        while (token := self.tokens[at]).kind != "end" and (depth or token.word not in ("{", "WHERE")):
            depth += (token.text == "(") - (token.text == ")")
            if token.kind == "variable" and (depth == 0 or self._names_column(at, depth)):
                names.append(token.name)
            elif token.text == "*" and depth == 0:
                raise refusal(self.query, token, ", for all columns. Name them, as in SELECT ?film ?person")
            at += 1
        if self.tokens[start].word == "ASK":
            names = ["ask"]
        elif not names:
            raise refusal(self.query, token, ", where SELECT names its columns, as in SELECT ?film ?person")
        return tuple(names), at + (token.word == "WHERE")

    def _names_column(self, at: int, depth: int) -> bool:
        return depth == 1 and self.tokens[at - 1].word == "AS" and self.tokens[at + 1].text == ")"

    def _with_modifiers(self, checked: CheckedSparql) -> CheckedSparql:
        order, limit, depth = False, None, 0
        for at in range(checked._tail, len(self.tokens)):
            token = self.tokens[at]
            depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
            if depth == 0 and token.word in ("SELECT", "ASK", "WHERE", "FILTER", "UNION", "OPTIONAL", "MINUS", "GRAPH"):
                raise refusal(self.query, token, ", behind the end of the query")
            order = order or (depth == 0 and token.word == "ORDER")
            if depth == 0 and token.word == "LIMIT":
                limit = int(self.tokens[at + 1].text)
        return replace(checked, order_by=order, limit=limit)


def written(checked: CheckedSparql, terms: Mapping[str, Sequence[str]], most: int, *, sort: bool = True) -> str:
    """Return the text that is sent: without comments, with parameters bound, sorted, and limited.

    Args:
        checked: A query from `check_read_only`.
        terms: The terms of each parameter, as SPARQL writes them. Several of them, or none, stand after VALUES or IN.
        most: The most rows.
        sort: Whether rows are sorted by all columns, behind the query's own order if it has one, so that a limit cuts
            off the same rows every time.

    Raises:
        InvalidArgumentError: If several terms stand where one is wanted.
    """
    parts = [_bound(checked, at, terms) for at in range(len(checked.tokens) - 1)]
    for at, (token, following) in enumerate(pairwise(checked.tokens[:-1])):
        # A term touches no other: behind `""`, that of `$name` would begin a long string.
        kinds = {token.kind, following.kind}
        parts[at] += " " * (token.end < following.position or ("parameter" in kinds and "sign" not in kinds))
    if checked.form == "SELECT":
        _limit(checked, parts, most, sort or checked.limit is not None)
    return "".join([*(f"{declaration} " for declaration in checked.declarations), *parts])


def _bound(checked: CheckedSparql, at: int, terms: Mapping[str, Sequence[str]]) -> str:
    token = checked.tokens[at]
    if token.kind != "parameter":
        return token.text
    values = terms[token.name]
    third, second, before = checked.tokens[at - 3 : at] if at > 2 else checked.tokens[:1] * 3
    if before.text == "{" and second.kind == "variable" and third.word == "VALUES":
        return " ".join(values)
    if before.text == "(" and second.word == "IN":
        return ", ".join(values)
    if len(values) != 1:
        raise InvalidArgumentError(
            f"SparqlExecutor: ${token.name} stands for {len(values)} terms where one is wanted. An entity, or a list, "
            f"stands in VALUES ?x {{ {token.text} }} or IN ({token.text})."
        )
    return values[0]


def _limit(checked: CheckedSparql, parts: list[str], most: int, sort: bool) -> None:
    """Put an order and a limit into the parts of a query."""
    depth, place = 0, len(parts)
    for at in range(checked._tail, len(parts)):
        token = checked.tokens[at]
        depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        if depth == 0 and token.word == "LIMIT":
            parts[at + 1] = f"{min(most, int(parts[at + 1]))} "
        if depth == 0 and token.word in ("LIMIT", "OFFSET", "VALUES"):
            place = min(place, at)
    keys = " ".join(f"STR(?{name})" for name in checked.columns)
    order = keys if checked.order_by else f"ORDER BY {keys}"
    added = [order] * (sort or checked.order_by) + [f"LIMIT {most}"] * (checked.limit is None)
    parts.insert(place, f" {' '.join(added)} ")
