"""Write RDF terms as SPARQL, and name the things of an endpoint.

The names follow the rules of the reader of files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kg_retrievers.database.sparql.vocabulary import Vocabulary
from kg_retrievers.errors import DatabaseUnavailableError
from kg_retrievers.graph.iris import WELL_KNOWN
from kg_retrievers.graph.readers.rdf.statements import ANY, Names

_XSD = WELL_KNOWN["xsd"]

#: The datatype of a plain text.
STRING = f"{_XSD}string"

_UNSENT = re.compile(r"[\x00\ud800-\udfff]")
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20\ud800-\udfff]*')
_LANGUAGE = re.compile(r"@[A-Za-z]+(-[A-Za-z0-9]+)*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Iri(NamedTuple):
    """An IRI."""

    value: str


class Blank(NamedTuple):
    """A blank node, by a name that holds in one result alone."""

    value: str


class Text(NamedTuple):
    """A literal.

    `kind` is the IRI of its datatype, or "@" and its language.
    """

    value: str
    kind: str

    @property
    def language(self) -> str:
        """Its language, or an empty text if it has none."""
        return self.kind[1:] if self.kind.startswith("@") else ""


Term = Iri | Blank | Text


def is_sendable(text: str) -> bool:
    """Tell whether a query can hold a text.

    NUL and halves of surrogate pairs stand in none.
    """
    return not _UNSENT.search(text)


def is_writable(term: Iri | Text) -> bool:
    """Tell whether a query can hold a term.

    Some engines store IRIs and languages that no query can hold.
    """
    if isinstance(term, Iri):
        return _IRI.fullmatch(term.value) is not None
    kind = _LANGUAGE if term.kind.startswith("@") else _IRI
    return is_sendable(term.value) and kind.fullmatch(term.kind) is not None


def written_term(term: Iri | Text) -> str:
    r"""Write a term so that nothing in it reads as another part of a query.

    `\u` is never written, not even as a backslash before a "u": some engines replace it before they look for tokens.

    Example:
        >>> written_term(Text('a "b"', "@en")), written_term(Iri("urn:a"))
        ('"a \\"b\\""@en', '<urn:a>')
        >>> print(written_term(Text("\\u0022", STRING)))
        "\\\u00750022"
    """
    if isinstance(term, Iri):
        return f"<{term.value}>"
    text = re.sub(r'[\\"\n\r\t]', lambda found: _ESCAPES[found[0]], term.value)
    text = text.replace("\\\\u", "\\\\\\u0075").replace("\\\\U", "\\\\\\u0055")
    if term.kind == STRING:
        return f'"{text}"'
    return f'"{text}"{term.kind}' if term.kind.startswith("@") else f'"{text}"^^<{term.kind}>'


def value_term(value: bool | int | float) -> Text:
    """Return the literal of a number or truth value."""
    if isinstance(value, bool):
        return Text(str(value).lower(), f"{_XSD}boolean")
    if isinstance(value, int):
        return Text(str(value), f"{_XSD}integer")
    special = {math.inf: "INF", -math.inf: "-INF"}.get(value, "NaN" if value != value else repr(value))
    return Text(special, f"{_XSD}double")


def read_term(found: Mapping[str, Any]) -> Term:
    """Read a term of a result in JSON.

    Raises:
        ValueError: If it is none. `KeyError` and `TypeError` are possible, too.
    """
    kind, value = found["type"], found["value"]
    if not isinstance(value, str):
        raise TypeError(f"a term with the value {value!r:.80}")
    if kind == "uri":
        return Iri(value)
    if kind == "bnode":
        return Blank(value)
    if kind not in ("literal", "typed-literal"):
        raise ValueError(f"a term of the type {kind!r:.80}")
    language, datatype = found.get("xml:lang") or "", found.get("datatype") or STRING
    if not isinstance(language, str) or not isinstance(datatype, str):
        raise TypeError(f"a literal with the language {language!r:.80} and the datatype {datatype!r:.80}")
    return Text(value, f"@{language}" if language else datatype)


T = TypeVar("T")

#: How many things a query names.
BLOCK = 1000


class Solutions(NamedTuple):
    """The result of a query.

    Args:
        columns: The names of the variables.
        rows: The terms. None for variables that are not bound.
        is_cut: Whether the endpoint says that it cut it off.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Term | None]]
    is_cut: bool

    def column(self, name: str) -> list[Term | None]:
        """Return the terms of a variable."""
        position = self.columns.index(name)
        return [row[position] for row in self.rows]

    def number(self) -> int:
        """Return the number of COUNT, the only term.

        Raises:
            DatabaseUnavailableError: If it is none.
        """
        term = self.rows[0][0] if self.rows else None
        if not isinstance(term, Text) or not term.value.isdecimal() or len(term.value) > 18:
            raise DatabaseUnavailableError(f"SparqlExecutor: the endpoint counts {term!r:.100}, which is no number.")
        return int(term.value)


#: Sends a query of this package's own.
Ask = Callable[[str], Solutions]


class Called(NamedTuple):
    """The names of a thing, and the IRIs of its types."""

    label: str | None
    aliases: list[str]
    types: list[str]


def value(term: Term | None) -> str | None:
    """Return the text of a term."""
    return None if term is None or isinstance(term, Blank) else term.value


def values(variable: str, terms: Sequence[Iri | Text]) -> str:
    """Return the clause that lists the terms of a variable.

    Terms that no query can hold are left out.
    """
    return f"VALUES {variable} {{ {' '.join(map(written_term, filter(is_writable, terms)))} }}"


def blocks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the parts of a sequence."""
    for start in range(0, len(things), size):
        yield things[start : start + size]


def read_names(ask: Ask, vocabulary: Vocabulary, iris: Sequence[str]) -> dict[str, Called]:
    """Read labels, aliases and types of things by their IRIs.

    Things without any are left out.

    A label in another language is taken if none is in a wanted one, as `Names` says.
    """
    return called_by(vocabulary, _described(ask, vocabulary, list(dict.fromkeys(iris))))


def called_by(vocabulary: Vocabulary, rows: Iterable[Sequence[Term | None]]) -> dict[str, Called]:
    """Return the names of things, by rows of a thing, a predicate and a name."""
    ranks = {iri: rank for rank, iri in reversed([*enumerate(vocabulary.labels)])}
    names, types = Names[str](vocabulary.ranks), dict[str, set[str]]()
    for thing, predicate, name in rows:
        if not isinstance(thing, Iri) or not isinstance(predicate, Iri):
            continue
        if isinstance(name, Iri) and predicate.value in vocabulary.types:
            types.setdefault(thing.value, set()).add(name.value)
        if isinstance(name, Text) and predicate.value in ranks:
            names.add_label(thing.value, name.value, name.language or None, ranks[predicate.value])
        elif isinstance(name, Text) and predicate.value in vocabulary.aliases:
            names.add_alias(thing.value, name.value, name.language or None)
    names.finish()
    return {
        thing: Called(names.label(thing), names.aliases(thing), sorted(types.get(thing, ())))
        for thing in sorted(names.things() | types.keys())
    }


def _described(ask: Ask, vocabulary: Vocabulary, iris: Sequence[str]) -> Iterator[Sequence[Term | None]]:
    """Yield things, predicates and names.

    If the endpoint cuts the answer off, they are read in smaller parts.
    """
    for block in blocks(iris, BLOCK):
        if not (where := describing(vocabulary, block)):
            return
        found = ask(f"SELECT ?thing ?by ?name WHERE {{ {where} }}")
        if found.is_cut and len(block) > 1:
            for half in blocks(block, -(-len(block) // 2)):
                yield from _described(ask, vocabulary, half)
        else:
            yield from found.rows


def describing(vocabulary: Vocabulary, iris: Sequence[str]) -> str:
    """Return the pattern of `?thing`, `?by` and `?name`, or "".

    It finds names in wanted languages, else all labels, and types.
    """
    predicates = [*vocabulary.labels, *vocabulary.aliases, *vocabulary.types]
    if not predicates:
        return ""
    things = values("?thing", [Iri(iri) for iri in iris])
    is_text = 'isLiteral(?name) && STR(?name) != ""'
    wanted = vocabulary.wanted("?name")
    own = f"{_by(predicates)} ?thing ?by ?name . FILTER(isIRI(?name) || ({is_text} && ({wanted})))"
    if ANY in vocabulary.languages or not vocabulary.labels:
        return f"{things} {own}"
    label = f"{_by(vocabulary.labels)} ?thing ?by ?name . FILTER({is_text})"
    is_wanted = f'isLiteral(?own) && STR(?own) != "" && ({vocabulary.wanted("?own")})'
    has_none = " ".join(
        f"FILTER NOT EXISTS {{ ?thing {written_term(Iri(iri))} ?own . FILTER({is_wanted}) }}"
        for iri in vocabulary.labels
    )
    return f"{{ {things} {own} }} UNION {{ {things} {label} {has_none} }}"


def _by(predicates: Sequence[str]) -> str:
    return values("?by", [Iri(iri) for iri in predicates])
