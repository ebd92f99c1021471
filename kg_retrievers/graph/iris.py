"""Prefixes: the short form of an IRI, as "dbo:director", and the IRI again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from urllib.parse import quote, unquote

#: Prefixes that are known without being declared. Declarations of a file go before them.
WELL_KNOWN: Mapping[str, str] = json.loads((files(__package__) / "prefixes.json").read_text("utf-8"))


#: Begins the IRI of a name that is none, as "Her", when a graph is written as RDF.
NAMED = "urn:x-name:"

#: Of how many starts of IRIs, up to the last "/" or "#", the namespaces are kept.
_STARTS_KEPT = 1 << 16

# What no IRI holds, and what it holds behind a question mark alone (RFC 3987, section 2.2). Only a host has brackets.
_FORBIDDEN = r'\[\]\x00-\x20<>"{}|^`\\\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufff0-\uffff\U000e0000-\U000e0fff' + "".join(
    chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF)
)
_PRIVATE = r"\ue000-\uf8ff\U000f0000-\U0010ffff"
_IRI = re.compile(
    r"(?!.*%(?![0-9A-Fa-f]{2}))[A-Za-z][A-Za-z0-9+.-]*:(//\[[0-9A-Fa-f:.]+\])?"
    f"[^?#{_FORBIDDEN}{_PRIVATE}]*([?][^#{_FORBIDDEN}]*)?(#[^#{_FORBIDDEN}{_PRIVATE}]*)?"
)


class Prefixes:
    """Writes IRIs short and reads them back: `expand(compact(iri)) == iri` for every IRI.

    The longest namespace that begins an IRI gives its prefix. The rest stays as it is, so that "dbr:AC/DC" needs no
    escapes. An IRI that no namespace begins stays whole, in angle brackets if its scheme looks like a prefix. A name
    that is no IRI has one that begins with `NAMED`.

    Args:
        declared: The declarations of a file: {prefix: namespace}. They go before the well-known ones.

    Example:
        >>> prefixes = Prefixes({"ex": "http://example.org/"})
        >>> prefixes.compact("http://dbpedia.org/ontology/director"), prefixes.compact("http://example.org/a/b")
        ('dbo:director', 'ex:a/b')
        >>> prefixes.compact("urn:isbn:1"), prefixes.compact("wd:Q42"), prefixes.expand("wd:Q42")
        ('urn:isbn:1', '<wd:Q42>', 'http://www.wikidata.org/entity/Q42')
        >>> prefixes.expand("Spike Jonze"), prefixes.compact("urn:x-name:Spike%20Jonze")
        ('urn:x-name:Spike%20Jonze', 'Spike Jonze')
    """

    def __init__(self, declared: Mapping[str, str] | None = None) -> None:
        """Put the declared prefixes before the well-known ones."""
        self._declared = {prefix: namespace for prefix, namespace in (declared or {}).items() if namespace}
        self.namespaces = {**WELL_KNOWN, **self._declared}
        names = {namespace: prefix for prefix, namespace in self.namespaces.items()}
        names |= {namespace: prefix for prefix, namespace in self._declared.items()}
        self._prefix_of = names
        odd = [namespace for namespace in names if namespace[-1] not in "/#"]
        self._odd = tuple(sorted(odd, key=lambda namespace: (-len(namespace), namespace)))
        self._namespace_of_start = lru_cache(maxsize=_STARTS_KEPT)(self._namespace_before)

    def compact(self, iri: str) -> str:
        """Return the short form of an IRI."""
        namespace = self.namespace_of(iri)
        if namespace:
            return f"{self._prefix_of[namespace]}:{iri[len(namespace) :]}"
        name = unquote(iri[len(NAMED) :]) if iri.startswith(NAMED) else ""
        if name and self.expand(name) == iri:
            return name
        return f"<{iri}>" if iri.partition(":")[0] in self.namespaces else iri

    def datatype(self, iri: str) -> str:
        """Return the short form of a datatype.

        Datatypes of XML Schema are "xsd:..." whatever a file calls them.
        """
        namespace = WELL_KNOWN["xsd"]
        return f"xsd:{iri[len(namespace) :]}" if iri.startswith(namespace) else self.compact(iri)

    def datatype_iri(self, name: str) -> str:
        """Return the IRI of a short form that `datatype` gave."""
        return WELL_KNOWN["xsd"] + name[4:] if name.startswith("xsd:") else self.expand(name)

    def expand(self, name: str) -> str:
        """Return the IRI that a short form stands for.

        An IRI is returned as it is.
        """
        if name.startswith("<") and name.endswith(">") and _IRI.fullmatch(name[1:-1]):
            return name[1:-1]
        prefix, colon, rest = name.partition(":")
        iri = self.namespaces[prefix] + rest if colon and prefix in self.namespaces else name
        return iri if _IRI.fullmatch(iri) else NAMED + quote(name, safe="")

    def namespace_of(self, iri: str) -> str:
        """Return the longest known namespace that an IRI begins with.

        It is an empty text if there is none.
        """
        found = self._namespace_of_start(iri[: _local_at(iri)])
        if not iri.startswith(self._odd):
            return found
        return max(found, next(filter(iri.startswith, self._odd)), key=len)

    def _namespace_before(self, start: str) -> str:
        """Return the longest known namespace in the start of an IRI.

        It ends at a "/" or "#".
        """
        while start and start not in self._prefix_of:
            start = start[: _local_at(start[:-1])]
        return start

    def name_of(self, iri: str) -> str:
        """Return the name of a relation or type without a label.

        It is its short form, or else the end of its IRI.
        """
        name = self.compact(iri)
        return local_words(iri) or name if name in (iri, f"<{iri}>") else name

    def used(self, names: Iterable[str]) -> dict[str, str]:
        """Return the prefixes that some short forms have, in sorted order."""
        prefixes = {prefix for name in names if (prefix := name.partition(":")[0]) in self.namespaces}
        return {prefix: self.namespaces[prefix] for prefix in sorted(prefixes)}


def local_words(iri: str) -> str:
    """Return the words behind the last "#" or "/" of an IRI.

    It is an empty text if there are none.

    Example:
        >>> local_words("http://dbpedia.org/resource/Am%C3%A9lie_(film)"), local_words("urn:isbn:1")
        ('Amélie (film)', '')
    """
    start = _local_at(iri)
    local = iri[start:] if start else ""
    if "%" in local:
        decoded = unquote(local)
        local = local if "\ufffd" in decoded or "\0" in decoded else decoded
    return local.replace("_", " ").strip()


def _local_at(iri: str) -> int:
    """Return the start of the text behind the last "#" or "/" of an IRI.

    It is 0 if there is none of them.
    """
    slash = iri.rfind("/")
    return (max(slash, iri.rfind("#")) if "#" in iri else slash) + 1
