"""From files that describe entities: labels, aliases, types and attributes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.exports.neo4j_csv import is_neo4j_header, read_neo4j_files
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.formats import GraphFormat, find_format
from kg_retrievers.graph.readers.opening import check_unpacked
from kg_retrievers.graph.readers.tables.delimiters import find_layout, split_first
from kg_retrievers.graph.readers.tables.entity_rows import add_entities
from kg_retrievers.graph.readers.tables.json_rows import JsonRows, add_each
from kg_retrievers.graph.readers.tables.rows import read_entity_table
from kg_retrievers.graph.readers.tables.text_lines import TextFile


def read_entity_rows(
    path: str | os.PathLike[str], *, format: GraphFormat | None = None, **options: Any
) -> GraphBuilder:
    """Read labels, aliases, types and attributes from a file of entities.

    As `read_graph_rows`, but a row of a table is `entity<TAB>label`, or has a header with entity (or id, key, node),
    label (or name), aliases and types, and further columns are attributes; and JSON may hold entities only.

    Args:
        path: The file.
        format: How the file is laid out: "tsv", "csv", "pipe", "jsonl", "json", "parquet", "arrow" or "neo4j-csv".
        **options: The fields of `FileOptions`; `columns` is what the header calls entity and label.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, or there are no entities.
        InvalidArgumentError: If an argument has no such value, or contradicts the format.
    """
    given = FileOptions(**options)
    given.check_columns(2)
    builder = GraphBuilder()
    add_entity_file(Path(path), format, given, builder)
    return builder


def add_entity_file(path: Path, format: GraphFormat | None, options: FileOptions, builder: GraphBuilder) -> None:
    """Add what a file says about entities.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, or there are no entities.
        InvalidArgumentError: If its format is none of tables or JSON.
    """
    found = find_format(path, format, options)
    skipped = builder.skipped
    if found in ("parquet", "arrow"):
        count = _add_arrow_entities(path, found, options, builder)
    elif found in ("jsonl", "json"):
        count = _add_json_entities(path, found, options, builder)
    elif found in (None, "tsv", "csv", "pipe", "neo4j-csv"):
        count = _add_table_entities(path, found, options, builder)
    else:
        raise InvalidArgumentError(f"{path} is {found}, which is read with the graph alone; wanted a table or JSON.")
    if not count:
        lines = builder.skipped - skipped
        message = f"no entities, {lines} malformed lines. Wanted an entity a line, as in entity<TAB>label."
        raise GraphLoadError(message, path)


def _add_table_entities(path: Path, format: GraphFormat | None, options: FileOptions, builder: GraphBuilder) -> int:
    file = TextFile(path, options)
    layout = find_layout(file, format if format in ("tsv", "csv", "pipe") else None, 2)
    if format == "neo4j-csv" or is_neo4j_header(split_first(file, layout)):
        read_neo4j_files([path], options, builder)
        return 1
    count = read_entity_table(file, layout, builder)
    builder.skipped += file.skipped
    return count


def _add_json_entities(path: Path, format: GraphFormat, options: FileOptions, builder: GraphBuilder) -> int:
    file = TextFile(path, options)
    if options.columns is not None:
        raise InvalidArgumentError(f"columns is for tables with a header, but {path} is {format}. Leave it out.")
    rows = JsonRows(builder, False, options.limits.cell_length)
    add_each(file, rows.add, is_array=format == "json")
    builder.skipped += file.skipped
    return rows.count


def _add_arrow_entities(path: Path, format: GraphFormat, options: FileOptions, builder: GraphBuilder) -> int:
    from kg_retrievers.graph.readers.tables.arrow_files import ArrowFile

    check_unpacked(path)
    table = ArrowFile(path, format, options.limits)
    try:
        about = (options.attributes, str(path), options.on_error)
        return add_entities(builder, table.names, table.rows(), *about)
    except InvalidArgumentError as error:
        raise GraphLoadError(error.message.removeprefix(f"{path}: "), path, hint_python=error.hint_python) from error
