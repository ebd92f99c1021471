"""From RDF to the columns of a knowledge graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.iris import Prefixes
from kg_retrievers.graph.readers.limits import limit_error
from kg_retrievers.graph.readers.rdf.columns import RdfColumns, take_foreign
from kg_retrievers.graph.readers.rdf.parsing import RdfFile
from kg_retrievers.graph.readers.rdf.rdflib_graphs import RdflibGraph, is_rdflib
from kg_retrievers.graph.readers.rdf.reading import describe_reading, given_options
from kg_retrievers.graph.readers.rdf.statements import DEFAULT, RdfOptions, Statements


def read_rdf(source: Any, format: str | None, options: RdfOptions) -> GraphBuilder:
    """Read a file of RDF, or a graph of rdflib.

    Raises:
        GraphLoadError: If the file cannot be read, is malformed, exceeds a limit, or says nothing.
        InvalidArgumentError: If an argument has no such value.
        MissingExtraError: If a file is to be read without the extra `rdf`.
    """
    if isinstance(source, str | Path):
        return _read_file(Path(source), format, options)
    if not is_rdflib(source):
        raise InvalidArgumentError(
            f"KnowledgeGraph.from_rdf: wanted the path of a file, or a Graph or Dataset of rdflib, but got "
            f"{source!r:.100}."
        )
    graph = RdflibGraph(source, options.on_error)
    statements = Statements(options, graph.terms, Path("rdflib"))
    statements.begin(graph.prefixes)
    statements.take(graph)
    return _build(statements, graph.format, graph.prefixes, graph.skipped)


def _read_file(path: Path, format: str | None, options: RdfOptions) -> GraphBuilder:
    file = RdfFile(path, format, options.base_iri, options.on_error, options.limits)
    has_formulas = file.format == "N3" and options.graphs is None
    if has_formulas:
        options = replace(options, graphs=[DEFAULT])
    statements = Statements(options, file.terms, path)
    if has_formulas:
        statements.of_other_graphs = "statements within formulas, which state nothing"
    file.read(statements.begin, statements.take, statements.take_plain)
    builder = _build(statements, file.format, file.prefixes, file.skipped)
    if not (len(builder) or builder.labels or builder.types):
        left = "".join(f", {count:,} {what}" for what, count in builder.reading.left_out.items())
        empty = "" if path.stat().st_size else "the file is empty: "
        raise GraphLoadError(
            f"{empty}no facts, {file.skipped:,} malformed lines{left}.",
            path,
            hint_python="Name a file that holds statements of RDF.",
        )
    return builder


def _build(statements: Statements, format: str, declared: dict[str, str], skipped: int) -> GraphBuilder:
    """Return the builder of what was collected.

    Args:
        statements: What was collected.
        format: The name of the format.
        declared: The prefixes that the source declares.
        skipped: How many malformed lines were skipped.
    """
    statements.check_graphs()
    longest, limit = max(map(len, statements.ids), default=0), statements.options.limits.cell_length
    if longest > limit:
        raise limit_error(statements.place, None, f"an IRI of {longest:,} characters", "cell_length", longest)
    builder = GraphBuilder()
    builder.skipped = skipped
    builder.reading.format = format
    prefixes = Prefixes({**declared, **statements.options.prefixes})
    builder.reading.options = given_options(statements.options, prefixes)
    take_foreign(statements)
    taken_names = statements.names.finish()
    columns = RdfColumns(statements, builder, prefixes)
    columns.fill()
    describe_reading(statements, builder, columns, taken_names)
    return builder
