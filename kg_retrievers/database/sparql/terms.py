"""RDF terms as SPARQL writes them, and as results in JSON hold them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kg_retrievers.graph.iris import WELL_KNOWN

_XSD = WELL_KNOWN["xsd"]

#: The datatype of a plain text, and that of a text with a language.
STRING, LANGUAGE_TEXT = f"{_XSD}string", f"{WELL_KNOWN['rdf']}langString"

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
    """A literal; `kind` is the IRI of its datatype, or "@" and its language."""

    value: str
    kind: str

    @property
    def language(self) -> str:
        """Its language; an empty text where it has none."""
        return self.kind[1:] if self.kind.startswith("@") else ""


Term = Iri | Blank | Text


def is_sendable(text: str) -> bool:
    """Return whether a query can hold a text: NUL and halves of surrogate pairs stand in none."""
    return not _UNSENT.search(text)


def is_writable(term: Iri | Text) -> bool:
    """Return whether a query can hold a term; some engines store IRIs and languages that none can."""
    if isinstance(term, Iri):
        return _IRI.fullmatch(term.value) is not None
    kind = _LANGUAGE if term.kind.startswith("@") else _IRI
    return is_sendable(term.value) and kind.fullmatch(term.kind) is not None


def written_term(term: Iri | Text) -> str:
    r"""Write a term so that nothing in it can be read as another part of a query.

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
        ValueError: If it is none; so do `KeyError` and `TypeError`.
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
