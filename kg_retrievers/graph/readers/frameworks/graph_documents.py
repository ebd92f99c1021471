"""From the `GraphDocument`s of LangChain's packages and their like to the rows of a knowledge graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader, Attributes

_WHO = "KnowledgeGraph.from_graph_documents"

#: The type of a node to which no type was given, in LangChain's packages.
DEFAULT_TYPE = "Node"

#: The entries of a document's metadata that say where it is from, the first that is there.
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
    builder = GraphBuilder()
    builder.reading.format = "GraphDocument"
    reader = AttributeReader(builder, attributes, _WHO)
    named_by: Counter[str] = Counter()
    for position, document in enumerate(documents, 1):
        nodes, relationships = _get(document, "nodes"), _get(document, "relationships")
        if nodes is None or relationships is None:
            raise InvalidArgumentError(
                f"{_WHO}: wanted documents with `nodes` and `relationships`, but got {document!r:.100} at position "
                f"{position}. A single GraphDocument goes into a list."
            )
        place, name = _source_of(document, source)
        named_by[place] += 1
        for relationship in relationships:
            _add_relationship(reader, relationship, name)
        listed = {_key(node) for node in nodes}
        ends = (end for one in relationships for end in _ends(one) if not isinstance(end, str | int))
        alone = {key: end for end in ends if (key := _key(end)) not in listed}
        for node in (*alone.values(), *nodes):
            _add_node(reader, node)
    reader.finish()
    builder.reading.understood["sources"] = ", ".join(f"{place} {count:,}" for place, count in named_by.items())
    return builder


def _add_node(reader: AttributeReader, node: Any) -> None:
    key, kind = _key(node), _get(node, "type") or _get(node, "label")
    properties = dict(_get(node, "properties") or {})
    types = [] if kind is None else [kind]
    if types == [DEFAULT_TYPE]:
        reader.builder.reading.leave_out(f"type {DEFAULT_TYPE!r} (given to nodes that have none)")
        types = []
    own = properties.pop("types", None) or []
    properties["types"] = [*types, *([own] if isinstance(own, str) else own)]
    properties.pop("id", None)  # stores repeat the key here
    reader.add_node(key, properties)


def _add_relationship(reader: AttributeReader, relationship: Any, source: str | None) -> None:
    relation = _get(relationship, "type")
    if not isinstance(relation, str) or not relation:
        raise InvalidArgumentError(
            f"{_WHO}: a relationship has no text as type, but {relation!r}: {relationship!r:.100}."
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
        raise InvalidArgumentError(f"{_WHO}: a node has no id: {node!r:.100}.")
    return str(id)


def _get(what: Any, name: str) -> Any:
    """Return an attribute of an object, or an entry of a mapping; None where there is none."""
    return what.get(name) if isinstance(what, Mapping) else getattr(what, name, None)
