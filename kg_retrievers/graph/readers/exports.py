"""Exports of Neo4j: CSV as neo4j-admin imports it, and JSON as APOC writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.tables.delimited import find_layout, split_rows
from kg_retrievers.graph.readers.tables.json_rows import add_each, typed
from kg_retrievers.graph.readers.text_files import FileOptions, TextFile

#: What separates the texts of a list in one cell.
LIST_DELIMITER = ";"

_CELL = re.compile(r"(?P<name>.*):(?P<kind>[A-Za-z_]+)(?P<many>\[\])?(?:\((?P<group>[^)]*)\))?(?:\{.*\})?")
_NODE, _RELATIONSHIP = ("ID",), ("START_ID", "END_ID", "TYPE")
_READERS: Mapping[str, Callable[[str], Any]] = {
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
        """Return what a cell says.

        Raises:
            ValueError: If it is not of its kind.
        """
        read = _READERS.get(self.kind, str)
        if self.many:
            return [read(text.strip()) for text in cell.split(LIST_DELIMITER) if text.strip()]
        return read(cell)

    def key(self, cell: str) -> str:
        """Return the key of a node: its id, behind its group where it has one."""
        return f"{self.group}:{cell}" if self.group else cell


def is_neo4j_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of nodes or of relationships.

    Example:
        >>> is_neo4j_header(["id:ID(Film)", "title", ":LABEL"]), is_neo4j_header(["head", "relation", "tail"])
        (True, False)
    """
    kinds = {column.kind for column in map(_column, cells)}
    return "ID" in kinds or {"START_ID", "END_ID"} <= kinds


def read_neo4j_files(paths: Sequence[Path], options: FileOptions, builder: GraphBuilder) -> None:
    """Add the nodes and relationships of one or more files, each with its header.

    The key of a node is its id, behind the name of its group where ids have one: "Film:7". "label", "name" or "title"
    is its label, the labels of Neo4j are its types, and other properties are facts, by `attributes`. Properties of
    relationships are attributes of facts.

    Raises:
        GraphLoadError: If a header names no ids, or a row is malformed.
    """
    reader = AttributeReader(builder, options.attributes, str(paths[0].parent))
    for path in paths:
        file = TextFile(path, options)
        _read_file(file, reader)
        builder.skipped += file.skipped
    reader.finish()
    builder.reading.understood["keys"] = "the ids of nodes, behind the name of their group where they have one"


def _read_file(file: TextFile, reader: AttributeReader) -> None:
    layout = find_layout(file, "csv", 2)
    rows = split_rows(file, layout)
    first = next(rows, None)
    if first is None:
        return
    columns = [*map(_column, first.cells)]
    kinds = [column.kind for column in columns]
    is_node = "ID" in kinds
    missing = [kind for kind in (_NODE if is_node else _RELATIONSHIP) if kind not in kinds]
    if missing:
        wanted = ", ".join(f":{kind}" for kind in missing)
        file.fail(f"the header has no {wanted}: {short(first.cells)}. Add it to the file.", first.line)
    for row in rows:
        try:
            if len(row.cells) != len(columns):
                got = f"{len(row.cells)}: {short(row.cells)}"
                raise ValueError(f"wanted {len(columns)} cells ({layout.format}), but got {got}")
            (_add_node if is_node else _add_relationship)(reader, columns, row.cells)
        except ValueError as error:
            file.reject(f"{error}.", row.line, row.last)


def _add_node(reader: AttributeReader, columns: Sequence[_Column], cells: Sequence[str]) -> None:
    key, types = "", list[str]()
    for column, cell in zip(columns, cells, strict=True):
        if column.kind == "ID" and cell:
            key = column.key(cell)
        elif column.kind == "LABEL":
            types += [text.strip() for text in cell.split(LIST_DELIMITER) if text.strip()]
    if not key:
        raise ValueError(f"the cell of :ID is empty: {short([*cells])}")
    reader.add_node(key, _titled(_properties(columns, cells) | ({"types": types} if types else {})))


def _add_relationship(reader: AttributeReader, columns: Sequence[_Column], cells: Sequence[str]) -> None:
    ends = {column.kind: column.key(cell) for column, cell in zip(columns, cells, strict=True) if cell}
    if missing := [f":{kind}" for kind in _RELATIONSHIP if kind not in ends]:
        raise ValueError(f"the cell of {missing[0]} is empty: {short([*cells])}")
    reader.add_edge(ends["START_ID"], ends["TYPE"], ends["END_ID"], _properties(columns, cells))


def _properties(columns: Sequence[_Column], cells: Sequence[str]) -> dict[str, Any]:
    given = zip(columns, cells, strict=True)
    return {column.name: column.value(cell) for column, cell in given if cell and column.kind.islower()}


def _titled(properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties with "title" as label where there is neither "label" nor "name".

    Example:
        >>> _titled({"title": "Her"}), _titled({"title": "Dr", "name": "Ann"})
        ({'label': 'Her'}, {'title': 'Dr', 'name': 'Ann'})
    """
    title = properties.get("title")
    if isinstance(title, str) and title and not properties.keys() & {"label", "name"}:
        properties = {name: value for name, value in properties.items() if name != "title"} | {"label": title}
    return properties


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


def read_apoc(file: TextFile, builder: GraphBuilder, *, is_array: bool) -> None:
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
        properties = row.get("properties") or {}
        if not isinstance(properties, dict):
            raise ValueError(f'"properties" must be an object, but got {short(properties)}.')
        if row["type"] == "node":
            labels = row.get("labels") or []
            reader.add_node(_node_id(row, row), _titled(properties | ({"types": labels} if labels else {})))
            return
        relation = row.get("label")
        if not isinstance(relation, str) or not relation:
            raise ValueError(f'"label" of a relationship must be a text, but got {short(relation)}.')
        reader.add_edge(_node_id(row.get("start"), row), relation, _node_id(row.get("end"), row), typed(properties))

    add_each(file, add, is_array=is_array)
    builder.skipped += file.skipped
    reader.finish()


def _node_id(node: Any, row: Any) -> str:
    id = node.get("id") if isinstance(node, dict) else None
    if not isinstance(id, str) or not id:
        raise ValueError(f'wanted the "id" of a node, but got {short(row)}.')
    return id
