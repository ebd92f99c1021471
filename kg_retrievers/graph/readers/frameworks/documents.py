"""From the `GraphDocument`s of LangChain and the property graphs of LlamaIndex to the rows of a knowledge graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.text_files import Attributes

_OF_DOCUMENTS = "KnowledgeGraph.from_graph_documents"

#: The type of a node to which no type was given, in LangChain's packages.
DEFAULT_TYPE = "Node"

#: The entries of a document's metadata that name its source, the first that is there.
SOURCE_KEYS = ("id", "source")


def read_graph_document_rows(
    documents: Iterable[Any], *, source: str | None = None, attributes: Attributes = "facts"
) -> GraphBuilder:
    """Read nodes and relationships: see `KnowledgeGraph.from_graph_documents`.

    Args:
        documents: Objects or mappings with `nodes` and `relationships`, and a `source` document if there is one.
        source: The entry of a document's metadata that says where its facts are from; None takes the id of the
            document, else "id" or "source" of its metadata.
        attributes: Whether properties of nodes become facts.

    Raises:
        InvalidArgumentError: If something is no such document, or a node has no id.
    """
    builder = GraphBuilder(format="GraphDocument")
    reader = AttributeReader(builder, attributes, _OF_DOCUMENTS)
    named_by: Counter[str] = Counter()
    for position, document in enumerate(documents, 1):
        nodes, relationships = _get(document, "nodes"), _get(document, "relationships")
        if nodes is None or relationships is None:
            raise InvalidArgumentError(
                f"{_OF_DOCUMENTS}: wanted documents with `nodes` and `relationships`, but got {document!r:.100} at "
                f"position {position}. A single GraphDocument goes into a list."
            )
        place, name = _source_of(document, source)
        named_by[place] += 1
        for relationship in relationships:
            _add_relationship(reader, relationship, name)
        listed = {_key(node) for node in nodes}
        ends = (end for one in relationships for end in _ends(one) if not isinstance(end, str | int))
        alone = {key: end for end in ends if (key := _key(end)) not in listed}
        for node in (*alone.values(), *nodes):
            _add_document_node(reader, node)
    reader.finish()
    builder.reading.understood["sources"] = ", ".join(f"{place} {count:,}" for place, count in named_by.items())
    return builder


def _add_document_node(reader: AttributeReader, node: Any) -> None:
    key, kind = _key(node), _get(node, "type") or _get(node, "label")
    properties = dict(_get(node, "properties") or {})
    if kind == DEFAULT_TYPE:
        reader.builder.reading.leave_out(f"type {DEFAULT_TYPE!r} (given to nodes that have none)")
    _add_type(properties, "" if kind in (None, DEFAULT_TYPE) else kind)
    properties.pop("id", None)  # stores repeat the key here
    reader.add_node(key, properties)


def _add_type(properties: dict[str, Any], kind: Any) -> None:
    own = properties.get("types") or []
    properties["types"] = [*([kind] if kind else []), *([own] if isinstance(own, str) else own)]


def _add_relationship(reader: AttributeReader, relationship: Any, source: str | None) -> None:
    relation = _get(relationship, "type")
    if not isinstance(relation, str) or not relation:
        raise InvalidArgumentError(
            f"{_OF_DOCUMENTS}: a relationship has no text as type, but {relation!r}: {relationship!r:.100}."
        )
    properties = dict(_get(relationship, "properties") or {})
    if source is not None:
        properties["sources"] = [source]
    head, tail = (_key(end) for end in _ends(relationship))
    reader.add_edge(head, relation, tail, properties)


def _ends(relationship: Any) -> list[Any]:
    """Return the two nodes of a relationship, or their ids."""
    names = (("source", "start_node_id"), ("target", "end_node_id"))
    return [_get(relationship, name) or _get(relationship, id_name) for name, id_name in names]


def _source_of(document: Any, source: str | None) -> tuple[str, str | None]:
    """Return what names the source of a document, and the name."""
    origin = _get(document, "source")
    metadata = _get(origin, "metadata") or {}
    if source is not None:
        name = metadata.get(source)
        return (f"metadata {source!r}", str(name)) if name is not None else ("no source", None)
    if id := _get(origin, "id"):
        return "document id", str(id)
    for key in SOURCE_KEYS:
        if metadata.get(key):
            return f"metadata {key!r}", str(metadata[key])
    return "no source", None


def _key(node: Any) -> str:
    """Return the key of a node, or of an id that stands for one."""
    id = node if isinstance(node, str | int) else _get(node, "id")
    if id is None or id == "":
        raise InvalidArgumentError(f"{_OF_DOCUMENTS}: a node has no id: {node!r:.100}.")
    return str(id)


def _get(what: Any, name: str) -> Any:
    """Return an attribute of an object, or an entry of a mapping; None where there is none."""
    return what.get(name) if isinstance(what, Mapping) else getattr(what, name, None)


_OF_STORES = "KnowledgeGraph.from_property_graph"

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
    builder = GraphBuilder(format="LlamaIndex property graph")
    reader = AttributeReader(builder, attributes, _OF_STORES)
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
            _add_store_node(reader, nodes[key], chunks)
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
            f"{_OF_STORES}: wanted a PropertyGraphIndex or PropertyGraphStore of LlamaIndex, but got {store!r:.100}."
        )
    nodes = {node.id: node for triplet in triplets for node in (triplet[0], triplet[2])}
    return nodes | {node.id: node for node in found}, triplets


def _is_chunk(node: Any) -> bool:
    return hasattr(node, "text") and not hasattr(node, "name")


def _add_store_node(reader: AttributeReader, node: Any, chunks: Mapping[str, Any]) -> None:
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
    else:
        _add_type(properties, node.label)
    reader.add_node(node.id, properties)


def _without_chunk(properties: dict[str, Any], chunk: Any, builder: GraphBuilder) -> dict[str, Any]:
    """Return the properties that are none of the text chunk: LlamaIndex copies those to all that it reads in it."""
    if chunk is None:
        return properties
    about_chunk = chunk.properties or {}
    own = {name: value for name, value in properties.items() if name not in about_chunk or about_chunk[name] != value}
    builder.reading.leave_out("properties that repeat those of a text chunk", len(properties) - len(own))
    return own
