"""From the graphs of rdflib to RDF statements, without an import of rdflib."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.readers.rdf.parsing import Terms

_STRING = "http://www.w3.org/2001/XMLSchema#string"
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]|^[^:]*$')


class Iri(NamedTuple):
    """An IRI."""

    value: str


class Blank(NamedTuple):
    """A blank node."""

    value: str


class Text(NamedTuple):
    """A literal."""

    value: str
    language: str | None
    datatype: Iri


class DefaultGraph(NamedTuple):
    """The graph without a name."""


TERMS = Terms(Iri, Blank, Text, DefaultGraph)


class RdflibGraph:
    """The statements of a Graph, Dataset or ConjunctiveGraph of rdflib.

    Args:
        graph: The graph.
        on_error: "raise", or "skip" to count statements with an IRI that is none in `skipped`.

    Attributes:
        skipped: How many statements were skipped.
    """

    format = "rdflib"
    terms = TERMS

    def __init__(self, graph: Any, on_error: str) -> None:
        """Read nothing yet."""
        self._graph, self._on_error = graph, on_error
        self.skipped = 0

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the graph binds, but for those that every new graph does."""
        bound = {str(prefix): str(namespace) for prefix, namespace in self._graph.namespaces()}
        try:
            usual = {str(prefix): str(namespace) for prefix, namespace in type(self._graph)().namespaces()}
        except TypeError:  # a class of the user's that needs arguments
            usual = {}
        return {prefix: namespace for prefix, namespace in bound.items() if usual.get(prefix) != namespace}

    def __iter__(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the statements in sorted order, since rdflib keeps none."""
        rows = self._graph.quads((None, None, None, None)) if hasattr(self._graph, "quads") else self._graph
        names: dict[Any, Any] = {}
        for row in sorted(rows, key=_sort_key):
            try:
                terms = [_term(term) for term in row[:3]]
            except ValueError as problem:
                self._reject(str(problem))
                continue
            graph = row[3] if len(row) > 3 else None
            if graph not in names:
                names[graph] = self._graph_name(graph)
            yield terms[0], terms[1], terms[2], names[graph]

    def _graph_name(self, graph: Any) -> Any:
        name = getattr(graph, "identifier", graph)  # a Graph in old versions of rdflib
        default_graph = getattr(
            self._graph, "default_graph", None
        )  # of a Dataset; a ConjunctiveGraph calls it otherwise
        if default_graph is None:
            default_graph = getattr(self._graph, "default_context", None)
        default = getattr(default_graph, "identifier", None)
        is_default = name is None or name == default or not isinstance(name, str)
        return DefaultGraph() if is_default else _term(name)

    def _reject(self, problem: str) -> None:
        if self._on_error == "raise":
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_rdf: {problem}", hint_python='Leave out all such with on_error="skip".'
            )
        self.skipped += 1


def is_rdflib(source: Any) -> bool:
    """Return whether something is a graph of rdflib, by what it can do."""
    return all(hasattr(source, name) for name in ("triples", "namespaces", "serialize"))


def _term(term: Any) -> Any:
    """Return a term of rdflib as one of `TERMS`; a quoted graph as it is."""
    if not isinstance(term, str):
        return term
    if hasattr(term, "language"):
        datatype = getattr(term, "datatype", None)
        return Text(_whole(str(term)), term.language, Iri(str(datatype) if datatype else _STRING))
    if type(term).__name__ == "BNode":
        return Blank(str(term))
    if _NO_IRI.search(term):
        raise ValueError(f"{str(term)!r} is no absolute IRI.")
    return Iri(_whole(str(term)))


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} holds half a surrogate pair.") from None
    return text


def _sort_key(row: Any) -> list[tuple[str, str]]:
    return [(type(term).__name__, repr(term) if term is not None else "") for term in row]
