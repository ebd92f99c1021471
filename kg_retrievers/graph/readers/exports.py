"""Exports of property graphs: CSV as neo4j-admin imports it, CSV and JSON of APOC, and JSON of arrows.app."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from kg_retrievers.errors import GraphLoadWarning
from kg_retrievers.graph.attributes import read_attribute_cell
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader, list_or_value, titled
from kg_retrievers.graph.readers.opening import plain_name
from kg_retrievers.graph.readers.tables.delimited import Layout, check_names, find_layout, split_rows
from kg_retrievers.graph.readers.tables.json_rows import add_each, typed
from kg_retrievers.graph.readers.text_files import FileOptions, TextFile

#: The text between the items of a list in one cell.
LIST_DELIMITER = ";"

_CELL = re.compile(r"(?P<name>.*):(?P<kind>[A-Za-z_]+)(?P<many>\[\])?(?:\((?P<group>[^)]*)\))?(?:\{.*\})?")
_NODE, _RELATIONSHIP = ("ID",), ("START_ID", "END_ID", "TYPE")
_ALONE = (*_NODE, *_RELATIONSHIP)

#: The columns of `apoc.export.csv`, whose rows are nodes and relationships.
_APOC = {"_id": "ID", "_labels": "LABEL", "_start": "START_ID", "_end": "END_ID", "_type": "TYPE"}

#: The addition to the name of a file of headers, compared with its data files.
_HEADER = re.compile(r"[^a-z0-9]*headers?[^a-z0-9]*")

_READERS: Mapping[str, Callable[[str], Any]] = {
    "json": lambda text: list_or_value(read_attribute_cell(text)),
    **dict.fromkeys(("int", "long", "short", "byte"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": lambda text: text.lower() == "true",
    "date": date.fromisoformat,
}


class _Column(NamedTuple):
    """A column: the name of its property, its kind in small letters, its group of ids, and whether it holds lists."""

    name: str
    kind: str
    group: str
    many: bool

    def value(self, cell: str) -> Any:
        """Return the value of a cell.

        Raises:
            ValueError: If it is not of its kind.
        """
        read = _READERS.get(self.kind, str)
        if self.many:
            return [read(text.strip()) for text in cell.split(LIST_DELIMITER) if text.strip()]
        return read(cell)

    def key(self, cell: str) -> str:
        """Return the key of a node: its id, behind its group if it has one."""
        return f"{self.group}:{cell}" if self.group else cell

    @property
    def delimiter(self) -> str:
        """The text between the labels of a node in one cell."""
        return ":" if self.name == "_labels" else LIST_DELIMITER


def is_neo4j_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of nodes, of relationships, or of both as APOC writes it.

    Example:
        >>> is_neo4j_header(["id:ID(Film)", "title", ":LABEL"]), is_neo4j_header(["head", "relation", "tail"])
        (True, False)
    """
    kinds = {column.kind for column in _columns(cells)}
    return "ID" in kinds or {"START_ID", "END_ID"} <= kinds


class _Header(NamedTuple):
    """The header of files: its file, its line there, how the files are written, and the columns."""

    path: Path
    line: int
    layout: Layout
    columns: list[_Column]


def read_neo4j_files(paths: Sequence[Path], options: FileOptions, builder: GraphBuilder) -> None:
    """Add the nodes and relationships of one or more files.

    A file without a header takes the header of another file: of "nodes-header.csv" for "nodes.csv" and "nodes-1.csv",
    of "nodes.csv" for "nodes-1.csv", or of "header.csv" for all.

    The key of a node is its id, behind the name of its group where ids have one: "Film:7". "label", "name" or "title"
    is its label, the labels of Neo4j are its types, and other properties are facts, by `attributes`. Properties of
    relationships are attributes of facts.

    Raises:
        GraphLoadError: If a file has no header, a header names no ids, or a row is malformed.
    """
    reader = AttributeReader(builder, options.attributes, str(paths[0].parent))
    headers = {path: header for path in paths if (header := _header(TextFile(path, options)))}
    for path in paths:
        file = TextFile(path, options)
        if header := headers.get(path) or _header_of(path, headers):
            _read_file(file, header, reader)
        elif path.stat().st_size:
            file.fail(
                f"has no header such as :ID,name,:LABEL or :START_ID,:END_ID,:TYPE. Add it, or a file beside it: "
                f"{plain_name(path).partition('.')[0]}-header.csv.",
                1,
            )
        builder.skipped += file.skipped
    reader.finish()
    if missing := reader.undefined:
        message = f"{len(missing):,} nodes of relationships are in no file, such as {missing[0]!r}: they have no names."
        place = paths[0].parent if len(paths) > 1 else paths[0]
        warnings.warn(GraphLoadWarning(message, place, hint_python="Add the files of these nodes."), stacklevel=1)
    builder.reading.understood["keys"] = "the ids of nodes, behind the name of their group where they have one"


def _header(file: TextFile) -> _Header | None:
    """Return the header with which a file begins, if it does.

    Raises:
        GraphLoadError: If it names no ids, or a name twice.
    """
    layout = find_layout(file, "csv", 2)
    first = next(split_rows(file, layout), None)
    if first is None or not is_neo4j_header(first.cells):
        return None
    columns = _columns(first.cells)
    kinds = [column.kind for column in columns]
    names = [f":{column.kind}" if column.kind in _ALONE else column.name * column.kind.islower() for column in columns]
    end_of_nodes = kinds.index("START_ID") if {"ID", "START_ID"} <= {*kinds} else 0
    for part in (names[:end_of_nodes], names[end_of_nodes:]):
        check_names(file, part, first.line)
    if missing := [kind for kind in (_NODE if "ID" in kinds else _RELATIONSHIP) if kind not in kinds]:
        wanted = ", ".join(f":{kind}" for kind in missing)
        file.fail(f"the header has no {wanted}: {short(first.cells)}. Add it to the file.", first.line)
    return _Header(file.path, first.line, layout, columns)


def _header_of(path: Path, headers: Mapping[Path, _Header]) -> _Header | None:
    """Return the header whose name begins that of a file without one, before any other letter; the longest name."""
    name, found = _stem(path), dict[str, _Header]()
    for other, header in headers.items():
        begin = _HEADER.sub("", _stem(other))
        if not begin or (name.startswith(begin) and not name[len(begin) : len(begin) + 1].isalpha()):
            found.setdefault(begin, header)
    return found[max(found, key=len)] if found else None


def _stem(path: Path) -> str:
    return plain_name(path).removesuffix(".csv")


def _read_file(file: TextFile, header: _Header, reader: AttributeReader) -> None:
    columns = header.columns
    kinds = [column.kind for column in columns]
    id = kinds.index("ID") if "ID" in kinds else None
    is_mixed = id is not None and "START_ID" in kinds
    for row in split_rows(file, header.layout):
        if file.path == header.path and row.line == header.line:
            continue
        try:
            if len(row.cells) != len(columns):
                got = f"{len(row.cells)}: {short(row.cells)}"
                raise ValueError(f"wanted {len(columns)} cells ({header.layout.format}), but got {got}")
            is_node = id is not None and (not is_mixed or bool(row.cells[id]))
            (_add_node if is_node else _add_relationship)(reader, columns, row.cells)
        except ValueError as error:
            file.reject(f"{error}.", row.line, row.last)


def _add_node(reader: AttributeReader, columns: Sequence[_Column], cells: Sequence[str]) -> None:
    key, types = "", list[str]()
    for column, cell in zip(columns, cells, strict=True):
        if column.kind == "ID" and cell:
            key = column.key(cell)
        elif column.kind == "LABEL":
            types += [text.strip() for text in cell.split(column.delimiter) if text.strip()]
    if not key:
        raise ValueError(f"the cell of :ID is empty: {short([*cells])}")
    reader.add_node(key, titled(_properties(columns, cells) | ({"types": types} if types else {})))


def _add_relationship(reader: AttributeReader, columns: Sequence[_Column], cells: Sequence[str]) -> None:
    ends = {column.kind: column.key(cell) for column, cell in zip(columns, cells, strict=True) if cell}
    if missing := [f":{kind}" for kind in _RELATIONSHIP if kind not in ends]:
        raise ValueError(f"the cell of {missing[0]} is empty: {short([*cells])}")
    reader.add_edge(ends["START_ID"], ends["TYPE"], ends["END_ID"], _properties(columns, cells))


def _properties(columns: Sequence[_Column], cells: Sequence[str]) -> dict[str, Any]:
    given = zip(columns, cells, strict=True)
    return {column.name: column.value(cell) for column, cell in given if cell and column.kind.islower()}


def _columns(cells: Sequence[str]) -> list[_Column]:
    if _APOC.keys() <= {*cells}:
        return [_Column(cell, _APOC.get(cell, "json"), "", False) for cell in cells]
    return [*map(_column, cells)]


def _column(cell: str) -> _Column:
    match = _CELL.fullmatch(cell)
    if match is None:
        return _Column(cell, "string", "", False)
    kind = match["kind"]
    return _Column(match["name"], kind if kind.isupper() else kind.lower(), match["group"] or "", bool(match["many"]))


def is_apoc_row(row: Any) -> bool:
    """Whether a row of JSON is a node or relationship of an export.

    Example:
        >>> is_apoc_row({"type": "node", "id": "0", "labels": ["Film"], "properties": {"title": "Her"}})
        True
    """
    return isinstance(row, dict) and row.get("type") in ("node", "relationship") and "id" in row


def export_rows(document: Any) -> Iterator[Any] | None:
    """Return the nodes and relationships of a document of APOC or arrows.app as rows of APOC, otherwise None.

    APOC writes `{"nodes", "rels"}`, with lists or with objects by ids. arrows.app writes `{"nodes", "relationships"}`.

    Example:
        >>> arrow = {"fromId": "n0", "toId": "n1", "type": "KNOWS", "properties": {}}
        >>> [*export_rows({"nodes": [], "relationships": [arrow]})][0]["start"]
        {'id': 'n0'}
    """
    if not isinstance(document, dict) or document.keys() & {"edges", "links"}:
        return None
    name = "rels" if "rels" in document else "relationships"
    parts = (document.get("nodes"), document.get(name))
    nodes, edges = ([*part.values()] if isinstance(part, dict) else part for part in parts)
    if not isinstance(nodes, list) or not isinstance(edges, list):
        return None
    if name == "relationships":
        nodes = [_row_of_arrows(node, "node") for node in nodes]
        edges = [_row_of_arrows(edge, "relationship") for edge in edges]
    return chain(nodes, edges)


def _row_of_arrows(row: Any, type: str) -> Any:
    """Return a node or relationship of arrows.app as a row of APOC; its properties are read as cells of CSV."""
    if not isinstance(row, dict):
        return row
    properties = row.get("properties") or {}
    if isinstance(properties, dict):
        texts = {name: value for name, value in properties.items() if isinstance(value, str)}
        caption = {"label": row["caption"]} if type == "node" and row.get("caption") else {}
        properties = properties | {name: read_attribute_cell(text) for name, text in texts.items()} | caption
    ends = {"start": {"id": row.get("fromId")}, "end": {"id": row.get("toId")}}
    return {"id": "", **row, **ends, "type": type, "label": row.get("type"), "properties": properties}


def read_apoc(file: TextFile, builder: GraphBuilder, rows: Iterator[Any]) -> None:
    """Add the nodes and relationships of an export.

    The key of a node is its id. "label", "name" or "title" is its label, the labels of Neo4j are its types, and other
    properties are facts, by `attributes`. Properties of relationships are attributes of facts.

    Raises:
        GraphLoadError: If a row is neither.
    """
    reader = AttributeReader(builder, file.options.attributes, str(file.path))

    def add(row: Any) -> None:
        if not is_apoc_row(row):
            raise ValueError(f'wanted "type": "node" or "relationship" and an "id", but got {short(row)}.')
        properties = typed(row.get("properties") or {})
        if not isinstance(properties, dict):
            raise ValueError(f'"properties" must be an object, but got {short(properties)}.')
        if row["type"] == "node":
            labels = row.get("labels") or []
            reader.add_node(_node_id(row, row), titled(properties | ({"types": labels} if labels else {})))
            return
        relation = row.get("label")
        if not isinstance(relation, str) or not relation:
            raise ValueError(f"the type of a relationship must be a text, but got {short(relation)}: {short(row)}.")
        reader.add_edge(_node_id(row.get("start"), row), relation, _node_id(row.get("end"), row), properties)

    add_each(file, rows, add)
    builder.skipped += file.skipped
    reader.finish()


def _node_id(node: Any, row: Any) -> str:
    id = node.get("id") if isinstance(node, dict) else None
    if not isinstance(id, str) or not id:
        raise ValueError(f'wanted the "id" of a node, but got {short(row)}.')
    return id
