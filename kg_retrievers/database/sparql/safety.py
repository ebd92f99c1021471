"""Check that a SPARQL query only reads before it is sent.

It may read only from the endpoint that is asked.

First, every word must be a word that reads. So there is no update, no SERVICE, which has the endpoint ask another one,
and no FROM, which has some load a graph from the web. A function is one of SPARQL itself or a cast to a datatype of XML
Schema, since functions of engines may do anything. This holds however an engine parses the query. Then rdflib must be
able to parse it, as a SELECT. `check_joins` bounds the joins in its parse tree.

Extra: `sparql`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from kg_retrievers.database.sparql.tokens import refusal, tokenize
from kg_retrievers.database.tokens import Token
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph.iris import WELL_KNOWN

try:
    from pyparsing import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery
    from rdflib.plugins.sparql.parserutils import CompValue

    from kg_retrievers.database.sparql.joins import check_joins
except ImportError as cause:
    raise MissingExtraError("SparqlExecutor", "sparql") from cause

#: How many characters and tokens a query may have, and how deep its brackets may be. rdflib parses 2,000 tokens in 2 s
#: at most. Values of parameters do not count.
MAX_QUERY, MAX_TOKENS, MAX_DEPTH = 100_000, 2_000, 15

#: How many signs may join the parts that an engine plans together, and how many operators there may be. The signs are
#: `.`, `;`, `/`, brackets of groups and nodes, and `,` between them. (Oxigraph dies of 7,000 operators, and plans 300
#: triples for minutes.)
MAX_JOINS, MAX_OPERATORS = 300, 500
_JOINING, _OPERATORS = frozenset(".;/{["), frozenset(("+", "-", "*", "/", "|", "||", "&&", "^", "!"))

_TYPE = WELL_KNOWN["rdf"] + "type"
_FORM = "A triple is a subject, a relation and an object, and each bracket is closed"

#: How many rows a query may skip and return.
MAX_OFFSET, MAX_LIMIT = 1000, 1_000_000

#: The schemes of IRIs in a query. Others, as `java:` and `bif:`, name functions of engines.
SCHEMES = frozenset(("http", "https", "urn", "tag", "mailto", "info", "did", "doi", "geo", "tel"))

#: The words of a query that only reads, in small letters. Functions that give another value each time are left out.
READ_WORDS = frozenset((files(__package__) / "read_words.txt").read_text("utf-8").split())

_INSTEAD = {
    "CONSTRUCT": "Write SELECT, and return the three terms of each triple as columns",
    "ASK": "Write SELECT, and look whether there are rows",
    "DESCRIBE": "Write SELECT ?relation ?value WHERE { <...> ?relation ?value }",
    "SERVICE": "Ask one endpoint alone",
    "FROM": "Leave it out, or read a named graph by GRAPH <...> { ... }",
    "BASE": "Write whole IRIs",
}

#: How deep rdflib may recurse. For as many triples as may be joined it takes 740 frames, and 1,070 if another library,
#: such as matplotlib, has turned on the cache of pyparsing (`enable_packrat`). Python allows 1,000 by default.
PARSING = 1_500


@dataclass(frozen=True)
class CheckedSparql:
    """A query that only reads.

    Args:
        tokens: Its tokens, without comments.
        columns: The names of its columns.
        parameters: The names of the parameters it uses, in their order.
        declarations: The declarations of known prefixes that it uses and does not declare.
        order_by: Whether its rows come in an order of its own.
        limit: Its own LIMIT, or None if there is none.
    """

    tokens: tuple[Token, ...]
    columns: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    order_by: bool = False
    limit: int | None = None


def check_read_only(
    query: str, *, parameters: Mapping[str, object] | None = None, namespaces: Mapping[str, str] = WELL_KNOWN
) -> CheckedSparql:
    """Check that a query only reads.

    Args:
        query: The text of a query.
        parameters: The given parameters. The query may name no other.
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
    """Checks one query."""

    def __init__(self, query: str, tokens: Sequence[Token], given: frozenset[str], known: Mapping[str, str]) -> None:
        self.query, self.tokens, self.given, self.known = query, tokens, given, known
        self.declared = {
            name.text[:-1]: iri.text[1:-1]
            for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
            if word.word == "PREFIX"
        }
        self.used: dict[str, None] = {}
        self.names: dict[str, None] = {}

    def run(self) -> CheckedSparql:
        start = 0
        while self.tokens[start].word == "PREFIX" and start + 3 < len(self.tokens):
            start += 3
        form = self.tokens[start]
        if form.word != "SELECT":
            instead = _INSTEAD.get(form.word, "Begin with SELECT")
            raise refusal(self.query, form, f", where SELECT begins a query that is run. {instead}")
        for at, (token, following) in enumerate(pairwise(self.tokens)):
            self._check_token(token, following, is_first=at <= start)
        self._check_size()
        tree = self._parsed()
        columns = self._columns(tree)
        check_joins(tree, self._refuse, lambda name: self._iri(name.prefix or "", name.localname or "") == _TYPE)
        declared = tuple(f"PREFIX {prefix}: <{self.known[prefix]}>" for prefix in self.used)
        limit = tree.limitoffset.limit if tree.limitoffset else None
        checked = CheckedSparql(tuple(self.tokens), columns, tuple(self.names), declared, tree.orderby is not None)
        return checked if limit is None else replace(checked, limit=int(limit))

    def _check_token(self, token: Token, following: Token, *, is_first: bool) -> None:
        query = self.query
        if token.kind == "word":
            wrong = token.text.lower() not in READ_WORDS or not token.text.isascii()
            if wrong or (token.word == "PREFIX" and not is_first):
                instead = f". {_INSTEAD[token.word]}" if token.word in _INSTEAD else ""
                raise refusal(query, token, f", a word that is not known to only read{instead}")
            if token.word in ("LIMIT", "OFFSET"):
                self._check_count(token, following)
        elif token.kind == "iri":
            scheme = token.text[1:].partition(":")[0].lower()
            if scheme not in SCHEMES:
                found = f", an IRI of the scheme {scheme!r}; a query may hold {sorted(SCHEMES)}"
                raise refusal(query, token, found)
            self._check_call(token, following, token.text[1:-1])
        elif token.kind == "prefixed" and not (is_first and following.kind == "iri"):
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
        return self._iri(prefix, local)

    def _iri(self, prefix: str, local: str) -> str:
        return (self.declared.get(prefix) or self.known[prefix]) + local

    def _check_call(self, token: Token, following: Token, iri: str) -> None:
        if following.text == "(" and not iri.startswith(WELL_KNOWN["xsd"]):
            raise refusal(self.query, token, ", before a bracket, as the call of a function that is not SPARQL's own")

    def _check_count(self, word: Token, count: Token) -> None:
        most = MAX_LIMIT if word.word == "LIMIT" else MAX_OFFSET
        if not count.text.isdecimal() or len(count.text) > 9 or int(count.text) > most:
            raise refusal(self.query, count, f", as the number of {word.word}; it is an integer from 0 to {most}")

    def _check_size(self) -> None:
        """Bound brackets and signs, before anything is parsed."""
        opened, joins, operators = list[str](), 0, 0
        for token in self.tokens:
            if token.kind != "sign":
                continue
            joins += token.text in _JOINING or (token.text == "," and bool(opened) and opened[-1] != "(")
            operators += token.text in _OPERATORS
            if joins > MAX_JOINS:
                found = f", behind {MAX_JOINS} triples and groups, the most that may be joined"
                raise refusal(self.query, token, found)
            if operators > MAX_OPERATORS:
                found = f", behind {MAX_OPERATORS} operators, the most there may be. Use IN (...)"
                raise refusal(self.query, token, found)
            if token.text in "([{":
                opened.append(token.text)
                if len(opened) > MAX_DEPTH:
                    raise refusal(self.query, token, f", in {MAX_DEPTH} brackets, the most there may be")
            elif token.text in ")]}" and opened:
                opened.pop()

    def _parsed(self) -> CompValue:
        """Return the parse tree, with an IRI in place of each parameter."""
        texts = [f"<urn:parameter:{one.name}>" if one.kind == "parameter" else one.text for one in self.tokens[:-1]]
        text = "".join(_spaced(self.tokens, texts))
        sys.setrecursionlimit(max(sys.getrecursionlimit(), PARSING))
        try:
            with ThreadPoolExecutor(1) as fresh:  # whose stack is empty: rdflib recurses for each triple
                tree: CompValue = fresh.submit(parseQuery, text).result()[1]
        except ParseBaseException as cause:
            where = min(len(text) - cause.loc, len(self.query))
            token = next((one for one in self.tokens if len(self.query) - one.position <= where), self.tokens[-1])
            reason = f", which rdflib cannot parse as SPARQL ({cause.msg:.200}). {_FORM}"
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            token, reason = self.tokens[0], f", a query that rdflib cannot parse as SPARQL. {_FORM}"
        else:
            return tree
        raise refusal(self.query, token, reason)

    def _columns(self, tree: CompValue) -> tuple[str, ...]:
        if not tree.projection:
            star = next(token for token in self.tokens if token.text == "*")
            raise refusal(self.query, star, ", for all columns. Name them, as in SELECT ?film ?person")
        return tuple(str(column.evar or column.var) for column in tree.projection)

    def _refuse(self, names: Iterable[str], reason: str) -> None:
        shown = {f"?{name}" for name in names}
        token = next((token for token in self.tokens if token.text in shown), self.tokens[0])
        raise refusal(self.query, token, f", {reason}")


def _spaced(tokens: Sequence[Token], texts: Sequence[str]) -> list[str]:
    """Return texts in place of tokens, with the spaces of the query.

    Spaces stand around parameters, too.

    A term touches no other term. Behind `""`, the term of `$name` would begin a long string.
    """
    parts = list(texts)
    for at, (token, following) in enumerate(pairwise(tokens[:-1])):
        kinds = {token.kind, following.kind}
        parts[at] += " " * (token.end < following.position or ("parameter" in kinds and "sign" not in kinds))
    return parts


def written(checked: CheckedSparql, terms: Mapping[str, Sequence[str]], most: int) -> str:
    """Return the text that is sent: without comments, with parameters bound, sorted, and limited.

    Rows are sorted by all columns, behind the query's own order, so that a limit cuts off the same rows every time.

    Args:
        checked: A query from `check_read_only`.
        terms: The terms of each parameter, as SPARQL writes them. Several of them, or none, stand after VALUES or IN.
        most: The most rows.

    Raises:
        InvalidArgumentError: If several terms stand in the place of one.
    """
    parts = [_bound(checked, at, terms) for at in range(len(checked.tokens) - 1)]
    parts = _spaced(checked.tokens, parts)
    _limit(checked, parts, most)
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


def _limit(checked: CheckedSparql, parts: list[str], most: int) -> None:
    """Put an order and a limit into the parts of a query."""
    depth, place = 0, len(parts)
    for at, token in enumerate(checked.tokens[:-1]):
        depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        if depth == 0 and token.word == "LIMIT":
            parts[at + 1] = f"{min(most, int(parts[at + 1]))} "
        if depth == 0 and token.word in ("LIMIT", "OFFSET", "VALUES"):
            place = min(place, at)
    keys = " ".join(f"STR(?{name})" for name in checked.columns)
    added = [keys if checked.order_by else f"ORDER BY {keys}"] + [f"LIMIT {most}"] * (checked.limit is None)
    parts.insert(place, f" {' '.join(added)} ")
