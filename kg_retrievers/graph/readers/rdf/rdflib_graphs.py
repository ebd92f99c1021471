"""From the graphs of rdflib to RDF statements, without an import of rdflib."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.readers.rdf.parsing import oxigraph, terms_of


class RdflibGraph:
    """The statements of a Graph, Dataset or ConjunctiveGraph of rdflib, with the terms of pyoxigraph.

    Args:
        graph: The graph.
        on_error: "raise", or "skip" to count statements with an IRI that is none in `skipped`.

    Attributes:
        skipped: How many statements were skipped.
    """

    format = "rdflib"

    def __init__(self, graph: Any, on_error: str) -> None:
        """Read nothing yet."""
        self._graph, self._on_error, self._oxigraph = graph, on_error, oxigraph()
        self.terms = terms_of(self._oxigraph)
        self.skipped = 0

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the graph binds, except those of every new graph."""
        bound = {str(prefix): str(namespace) for prefix, namespace in self._graph.namespaces()}
        try:
            usual = {str(prefix): str(namespace) for prefix, namespace in type(self._graph)().namespaces()}
        except TypeError:  # a class of the user's that needs arguments
            usual = {}
        return {prefix: namespace for prefix, namespace in bound.items() if usual.get(prefix) != namespace}

    def __iter__(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the statements in sorted order, since rdflib keeps none."""
        rows = self._graph.quads((None, None, None, None)) if hasattr(self._graph, "quads") else self._graph
        names: dict[Any, Any] = {None: self.terms.default_graph()}
        for row in sorted(rows, key=_sort_key):
            graph = row[3] if len(row) > 3 else None
            try:
                if graph not in names:
                    names[graph] = self._graph_name(graph)
                yield *map(self._term, row[:3]), names[graph]
            except ValueError as error:  # also half a surrogate pair
                if self._on_error == "raise":
                    raise InvalidArgumentError(
                        f"KnowledgeGraph.from_rdf: {tuple(map(str, row[:3]))!r} is no statement of RDF: {error}.",
                        hint_python='Leave out all such with on_error="skip".',
                    ) from None
                self.skipped += 1

    def _graph_name(self, graph: Any) -> Any:
        name = getattr(graph, "identifier", graph)  # a Graph in old versions of rdflib
        default = getattr(self._graph, "default_graph", None)  # of a Dataset; a ConjunctiveGraph calls it otherwise
        if default is None:
            default = getattr(self._graph, "default_context", None)
        is_default = not isinstance(name, str) or name == getattr(default, "identifier", None)
        return self.terms.default_graph() if is_default else self._term(name)

    def _term(self, term: Any) -> Any:
        """Return a term of rdflib as one of pyoxigraph, but a quoted graph as it is."""
        if not isinstance(term, str):
            return term
        if hasattr(term, "language"):
            datatype = getattr(term, "datatype", None)
            about = {"datatype": self.terms.iri(str(datatype))} if datatype else {"language": term.language}
            return self.terms.literal(str(term), **about)
        return (self.terms.blank if type(term).__name__ == "BNode" else self.terms.iri)(str(term))


def is_rdflib(source: Any) -> bool:
    """Return whether something is a graph of rdflib, by its methods."""
    return all(hasattr(source, name) for name in ("triples", "namespaces", "serialize"))


def _sort_key(row: Any) -> list[tuple[str, str]]:
    return [(type(term).__name__, repr(term) if term is not None else "") for term in row]
