"""From the content of a graph to CSV, TSV and Parquet (extra `arrow`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph.attributes import SOURCE, attribute_cell, read_attribute_set
from kg_retrievers.graph.building import NO_ATTRIBUTES
from kg_retrievers.graph.readers.tables.delimited import has_tab_and_break
from kg_retrievers.graph.readers.text_files import ATTRIBUTE_PREFIX, is_role
from kg_retrievers.graph.writers.content import ROWS, Entity, GraphContent

Cell = str | list[str] | None


class Rows(NamedTuple):
    """A table: the names of its columns, and its rows."""

    names: list[str]
    rows: Iterator[Sequence[Cell]]


#: The characters that a cell in quotes begins with or holds, by the format.
_TO_QUOTE = {"csv": re.compile('[",\r\n]'), "tsv": re.compile('^"|[\t\r\n]')}

#: The columns whose cells are lists of texts.
_LISTS = ("aliases", "types")


def fact_rows(content: GraphContent, *, by_id: bool) -> Rows:
    """Return head, relation and tail of the facts, and their attributes.

    Each set of attributes has a row.

    The column of an attribute is called like it, behind "attribute:" if that may be one of the other columns.

    Args:
        content: The graph.
        by_id: Whether relations are written as the source wrote them.
    """
    names, read = content.attribute_names, lru_cache(read_attribute_set)

    def rows() -> Iterator[list[Cell]]:
        for fact in content.facts():
            for said in map(read, fact.attributes or [NO_ATTRIBUTES]):
                cells = (_attribute_cell(name, said.get(name)) for name in names)
                yield [fact.head, fact.relation_id if by_id else fact.relation, fact.tail, *cells]

    shown = [ATTRIBUTE_PREFIX + name if is_role(name) else name for name in names]
    return Rows(["head", "relation", "tail", *shown], rows())


def _attribute_cell(name: str, value: Any) -> str | None:
    is_plain = value is None or (name == SOURCE and isinstance(value, str))
    return value if is_plain else attribute_cell(value)


def entity_rows(content: GraphContent) -> Rows:
    """Return all that is known of the entities, with datatypes if some have one."""
    names = ["entity", *Entity._fields[1:]]
    if content.graph.datatype_names is None:
        names.pop()
    return Rows(names, ([*entity[: len(names)]] for entity in content.entities()))


def write_table(table: Rows, file: BinaryIO, format: str) -> None:
    """Write rows as "csv", "tsv" or "parquet".

    Raises:
        InvalidArgumentError: If a text holds both a tab and a line break, and the format is TSV.
        MissingExtraError: If pyarrow is needed and not installed.
    """
    if format == "parquet":
        _write_parquet(table, file)
    else:
        file.writelines(line.encode() for line in _lines(table, format))


def _write_parquet(table: Rows, file: BinaryIO) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as cause:
        raise MissingExtraError("Parquet", "arrow") from cause
    texts = pyarrow.string()
    schema = pyarrow.schema([(name, pyarrow.list_(texts) if name in _LISTS else texts) for name in table.names])
    with parquet.ParquetWriter(file, schema) as writer:
        while some := [*islice(table.rows, ROWS)]:
            writer.write_table(pyarrow.table([*zip(*some, strict=True)], schema=schema))


def _lines(table: Rows, format: str) -> Iterator[str]:
    """Yield a header and a line for each row, quoted as in RFC 4180.

    Cells are quoted if needed. Lists are written in JSON.

    Raises:
        InvalidArgumentError: If a text holds both a tab and a line break, and the format is TSV.
    """
    delimiter, to_quote = "," if format == "csv" else "\t", _TO_QUOTE[format]
    for row in chain([table.names], table.rows):
        cells = [*map(_text, row)]
        if format == "tsv" and (bad := next(filter(has_tab_and_break, cells), None)):
            raise InvalidArgumentError(
                f"KnowledgeGraph.write: {bad!r:.100} cannot be written: in TSV, readers take a text with both a tab "
                "and a line break for rows. Write CSV, JSONL or Parquet."
            )
        quoted = ('"' + cell.replace('"', '""') + '"' if to_quote.search(cell) else cell for cell in cells)
        yield delimiter.join(quoted) + "\n"


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) if cell else ""
