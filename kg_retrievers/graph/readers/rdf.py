"""From RDF to the columns of a knowledge graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.rdf_columns import build
from kg_retrievers.graph.readers.rdf_parsing import RdfFile
from kg_retrievers.graph.readers.rdf_statements import RdfOptions, Statements


def read_rdf(source: Any, format: str | None, options: RdfOptions) -> GraphBuilder:
    """Read a file of RDF, or a graph of rdflib.

    Raises:
        GraphLoadError: If the file cannot be read, is malformed, exceeds a limit, or says nothing.
        InvalidArgumentError: If an argument has no such value.
        MissingExtraError: If a file is to be read without the extra `rdf`.
    """
    if isinstance(source, str | Path):
        file = RdfFile(Path(source), format, options.base_iri, options.on_error, options.limits)
        statements = Statements(options, file.terms, file.path)
        file.read(statements.take)
        return build(statements, file.format, file.prefixes, file.skipped)
    raise InvalidArgumentError(f"KnowledgeGraph.from_rdf: wanted a path, but got {source!r:.100}.")
