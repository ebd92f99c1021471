"""From a LlamaIndex property graph store or index to the rows of a knowledge graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader, Attributes

_WHO = "KnowledgeGraph.from_property_graph"

#: The property in which LlamaIndex keeps the text chunk that a node or relation was read from.
SOURCE_PROPERTY = "triplet_source_id"

#: The labels that LlamaIndex gives to nodes that have none.
DEFAULT_LABELS = ("entity", "node")

#: How many nodes a store is asked about at a time.
_PAGE = 1_000


def read_property_graph_rows(store: Any, *, attributes: Attributes = "facts") -> GraphBuilder:
    """Read a LlamaIndex `PropertyGraphStore`, or the store of a `PropertyGraphIndex`.

    See `KnowledgeGraph.from_property_graph`. The triplets are sorted: a store keeps them in no order.

    Args:
        store: The store or index.
        attributes: Whether properties of nodes become facts.

    Raises:
        InvalidArgumentError: If it is neither.
    """
    store = getattr(store, "property_graph_store", store)
    nodes, triplets = _content(store)
    builder = GraphBuilder()
    builder.reading.format = "LlamaIndex property graph"
    reader = AttributeReader(builder, attributes, _WHO)
    chunks = {id: node for id, node in nodes.items() if _is_chunk(node)}
    builder.reading.leave_out("text chunks", len(chunks))
    for head, relation, tail in sorted(triplets, key=lambda triplet: [part.id for part in triplet]):
        if _is_chunk(head) or _is_chunk(tail):
            builder.reading.leave_out("relations to text chunks")
            continue
        properties = dict(relation.properties or {})
        source = properties.pop(SOURCE_PROPERTY, None) or (head.properties or {}).get(SOURCE_PROPERTY)
        properties = _without_chunk(properties, chunks.get(str(source)), builder)
        properties["sources"] = [str(source)] if source is not None else []
        reader.add_edge(head.id, relation.label, tail.id, properties)
    for key in nodes:
        if key not in chunks:
            _add_node(reader, nodes[key], chunks)
    reader.finish()
    return builder


def _content(store: Any) -> tuple[dict[str, Any], list[tuple[Any, Any, Any]]]:
    """Return the nodes of a store by id, and its triplets."""
    memory: Any = getattr(store, "graph", None)
    if hasattr(memory, "get_triplets") and hasattr(memory, "nodes"):
        found, triplets = list(memory.nodes.values()), list(memory.get_triplets())
    elif hasattr(store, "get") and hasattr(store, "get_triplets"):
        found = sorted(store.get(), key=lambda node: str(node.id))
        pages = [[node.id for node in found[start : start + _PAGE]] for start in range(0, len(found), _PAGE)]
        triplets = [triplet for page in pages for triplet in store.get_triplets(ids=page)]
    else:
        raise InvalidArgumentError(
            f"{_WHO}: wanted a PropertyGraphIndex or PropertyGraphStore of LlamaIndex, but got {store!r:.100}."
        )
    nodes = {node.id: node for triplet in triplets for node in (triplet[0], triplet[2])}
    return nodes | {node.id: node for node in found}, triplets


def _is_chunk(node: Any) -> bool:
    return hasattr(node, "text") and not hasattr(node, "name")


def _add_node(reader: AttributeReader, node: Any, chunks: Mapping[str, Any]) -> None:
    properties = dict(node.properties or {})
    source = properties.pop(SOURCE_PROPERTY, None)
    properties = _without_chunk(properties, chunks.get(str(source)), reader.builder)
    properties.pop("id", None)  # stores on servers repeat the key here
    if (name := getattr(node, "name", None)) and name != node.id:
        properties = {**properties, "label": name, "name": properties.get("name", name)}
    else:
        properties.pop("name", None)
    if node.label in DEFAULT_LABELS:
        reader.builder.reading.leave_out(f"label {node.label!r} (given to nodes that have none)")
    elif node.label:
        own = properties.get("types") or []
        properties["types"] = [node.label, *([own] if isinstance(own, str) else own)]
    reader.add_node(node.id, properties)


def _without_chunk(properties: dict[str, Any], chunk: Any, builder: GraphBuilder) -> dict[str, Any]:
    """Return the properties that are none of the text chunk: LlamaIndex copies those to all that it reads in it."""
    if chunk is None:
        return properties
    about_chunk = chunk.properties or {}
    own = {name: value for name, value in properties.items() if name not in about_chunk or about_chunk[name] != value}
    builder.reading.leave_out("properties that repeat those of a text chunk", len(properties) - len(own))
    return own
