"""JSON lines, or an array, as APOC exports a graph of Neo4j: nodes and relationships with properties."""

from __future__ import annotations

from reprlib import repr as short
from typing import Any

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.exports.neo4j_csv import titled
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.tables.json_rows import add_each
from kg_retrievers.graph.readers.tables.text_lines import TextFile


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
    properties are facts, by `attributes`. Of relationships no fact holds the properties: they are left out.

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
            reader.add_node(_id(row, row), titled(properties | ({"types": labels} if labels else {})))
        else:
            relation = row.get("label")
            if not isinstance(relation, str) or not relation:
                raise ValueError(f'"label" of a relationship must be a text, but got {short(relation)}.')
            reader.add_edge(_id(row.get("start"), row), relation, _id(row.get("end"), row), properties)

    add_each(file, add, is_array=is_array)
    reader.finish()


def _id(node: Any, row: Any) -> str:
    id = node.get("id") if isinstance(node, dict) else None
    if not isinstance(id, str) or not id:
        raise ValueError(f'wanted the "id" of a node, but got {short(row)}.')
    return id
