"""From the content of a graph to CSV, TSV and Parquet (extra `arrow`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph.attributes import SOURCE, attribute_cell
from kg_retrievers.graph.readers.tables.delimited import has_tab_and_break
from kg_retrievers.graph.readers.text_files import ATTRIBUTE_PREFIX, is_role
from kg_retrievers.graph.writers.content import Entity, GraphContent

#: The columns of a table by their names.
Columns = Mapping[str, Sequence[str | list[str] | None]]

#: The characters that a cell in quotes begins with or holds, by the format.
_TO_QUOTE = {"csv": re.compile('[",\r\n]'), "tsv": re.compile('^"|[\t\r\n]')}

#: The columns whose cells are lists of texts.
_LISTS = ("aliases", "types")


def fact_columns(content: GraphContent, *, by_id: bool) -> Columns:
    """Return head, relation and tail of the facts, and their attributes.

    Each set of attributes has a row.

    The column of an attribute is called like it, behind "attribute:" if that may be one of the other columns.

    Args:
        content: The graph.
        by_id: Whether relations are written as the source wrote them.
    """
    rows, sets = content.statements()
    heads, relations, tails = content.edges[rows].T.tolist()
    names = content.relation_ids if by_id else content.relations
    columns: dict[str, Sequence[Any]] = {
        "head": [content.keys[id] for id in heads],
        "relation": [names[id] for id in relations],
        "tail": [content.keys[id] for id in tails],
    }
    for name in content.attribute_names:
        cells = [one.get(name) for one in sets]
        columns[ATTRIBUTE_PREFIX + name if is_role(name) else name] = [
            None if value is None else value if name == SOURCE and isinstance(value, str) else attribute_cell(value)
            for value in cells
        ]
    return columns


def entity_columns(content: GraphContent) -> Columns:
    """Return all that is known of the entities, with datatypes if some have one."""
    entities = [*content.entities()]
    names = ("entity", *Entity._fields[1:])
    columns = {name: [entity[place] for entity in entities] for place, name in enumerate(names)}
    if not any(columns["datatype"]):
        del columns["datatype"]
    return columns


def write_table(columns: Columns, file: BinaryIO, format: str) -> None:
    """Write columns as "csv", "tsv" or "parquet".

    Raises:
        InvalidArgumentError: If a text holds both a tab and a line break, and the format is TSV.
        MissingExtraError: If pyarrow is needed and not installed.
    """
    if format == "parquet":
        _write_parquet(columns, file)
    else:
        file.writelines(line.encode() for line in _lines(columns, format))


def _write_parquet(columns: Columns, file: BinaryIO) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as cause:
        raise MissingExtraError("Parquet", "arrow") from cause
    texts = pyarrow.string()
    kinds = {name: pyarrow.list_(texts) if name in _LISTS else texts for name in columns}
    arrays = {name: pyarrow.array(values, kinds[name]) for name, values in columns.items()}
    parquet.write_table(pyarrow.table(arrays), file)


def _lines(columns: Columns, format: str) -> Iterator[str]:
    """Yield a header and a line for each row, quoted as in RFC 4180.

    Cells are quoted if needed. Lists are written in JSON.

    Raises:
        InvalidArgumentError: If a text holds both a tab and a line break, and the format is TSV.
    """
    delimiter, to_quote = "," if format == "csv" else "\t", _TO_QUOTE[format]
    for row in chain([list(columns)], zip(*columns.values(), strict=True)):
        cells = [*map(_text, row)]
        if format == "tsv" and (bad := next(filter(has_tab_and_break, cells), None)):
            raise InvalidArgumentError(
                f"KnowledgeGraph.write: {bad!r:.100} cannot be written: in TSV, readers take a text with both a tab "
                "and a line break for rows. Write CSV, JSONL or Parquet."
            )
        quoted = ('"' + cell.replace('"', '""') + '"' if to_quote.search(cell) else cell for cell in cells)
        yield delimiter.join(quoted) + "\n"


def _text(cell: str | list[str] | None) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) if cell else ""
