"""From the content of a graph to JSON lines, GraphML and node-link JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.attributes import SOURCE, read_attribute_set
from kg_retrievers.graph.writers.content import Entity, Fact, GraphContent

#: The characters that no document of XML 1.0 can hold.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: The characters that a parser would change in an attribute, and in a text, and their spelling.
_KEPT_SPACE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_KEPT_BREAK = {"\r": "&#13;"}


def node_attributes(entity: Entity) -> dict[str, Any]:
    """Return the attributes of a node.

    These are its label, aliases and types, and its datatype if it has one.
    """
    attributes = {"label": entity.label, "aliases": entity.aliases, "types": entity.types}
    return attributes | ({"datatype": entity.datatype} if entity.datatype else {})


def statements_of(fact: Fact) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield how often a fact is stated otherwise.

    Each statement has its sources and its other attributes.

    Sources without other attributes come together.

    Example:
        >>> fact = Fact("Her", "genre", "genre", "Drama", ['{"source": "a"}', '{"source": "b"}', '{"since": 2013}'])
        >>> list(statements_of(fact))
        [({'sources': ['a', 'b']}, {}), ({}, {'since': 2013})]
    """
    sets = [*map(read_attribute_set, fact.attributes)]
    if not sets or {} in sets:
        yield {}, {}
    if alone := [one[SOURCE] for one in sets if one.keys() == {SOURCE} and isinstance(one[SOURCE], str)]:
        yield {"sources": alone}, {}
    for one in sets:
        source = one.get(SOURCE)
        if one and not (len(one) == 1 and isinstance(source, str)):
            sources = {"sources": [source]} if isinstance(source, str) else {}
            yield sources, {name: value for name, value in one.items() if not (sources and name == SOURCE)}


#: The attributes of an edge that give its ends and its relation.
EDGE_NAMES = ("id", "key", "relation", "relation_id", "source", "sources", "target")


def edges_of(fact: Fact) -> Iterator[dict[str, Any]]:
    """Yield the attributes of each edge of a fact.

    These are its relation, the relation's id, sources, and all other attributes.

    Raises:
        InvalidArgumentError: If an attribute of the fact has the name of one of them.
    """
    plain: dict[str, Any] = {"relation": fact.relation}
    plain |= {"relation_id": fact.relation_id} if fact.relation_id != fact.relation else {}
    for sources, attributes in statements_of(fact):
        if taken := [name for name in attributes if name in EDGE_NAMES]:
            raise InvalidArgumentError(
                f"KnowledgeGraph.write: no edge can have the attribute {taken[0]!r} of {fact.head!r} {fact.relation!r} "
                f"{fact.tail!r}. Write JSONL."
            )
        yield plain | sources | attributes


def graphml_lines(content: GraphContent) -> Iterator[str]:
    """Yield GraphML. It has no lists: aliases, types, sources and other lists are written in JSON.

    Raises:
        InvalidArgumentError: If a text holds a control character, which XML cannot hold.
    """
    yield '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    names = {"node": ("label", "aliases", "types", "datatype"), "edge": ("relation", "relation_id", "sources")}
    for part, name in ((part, name) for part, found in names.items() for name in found):
        yield f'<key id="{part[0]}.{name}" for="{part}" attr.name="{name}" attr.type="string"/>\n'
    for name in content.attribute_names:
        for type in ("string", "boolean", "long", "double"):
            yield f'<key id={_quoted(f"e.{name}.{type}")} for="edge" attr.name={_quoted(name)} attr.type="{type}"/>\n'
    yield '<graph edgedefault="directed">\n'
    for entity in content.entities():
        yield f"<node id={_quoted(entity.key)}>{_data('n', node_attributes(entity))}</node>\n"
    for fact in content.facts():
        ends = f"source={_quoted(fact.head)} target={_quoted(fact.tail)}"
        for attributes in edges_of(fact):
            yield f"<edge {ends}>{_data('e', attributes)}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _data(prefix: str, attributes: dict[str, Any]) -> str:
    texts = {
        _key(prefix, name, value): value if isinstance(value, str) else _json(value)
        for name, value in attributes.items()
        if value not in ("", [])
    }
    parts = [(key, escape(xml_text(text), _KEPT_BREAK)) for key, text in texts.items()]
    return "".join(f"<data key={_quoted(key)}>{text}</data>" for key, text in parts)


def _key(prefix: str, name: str, value: object) -> str:
    """Return the key of GraphML for an attribute.

    The key of a fact's attribute gives the type of the value.
    """
    if prefix == "n" or name in EDGE_NAMES:
        return f"{prefix}.{name}"
    types = {bool: "boolean", int: "long", float: "double"}
    return f"{prefix}.{name}.{types.get(type(value), 'string')}"


def _quoted(text: str) -> str:
    return quoteattr(xml_text(text), _KEPT_SPACE)


def xml_text(text: str) -> str:
    """Return a text if XML can hold it, or raise an error."""
    if found := _UNFIT.search(text):
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {text!r:.100} holds the character {found[0]!r}, which XML cannot hold. Write "
            "JSONL, node-link JSON or Parquet."
        )
    return text


def edge_key(fact: Fact, place: int) -> str:
    """Return the key of one of the edges of a fact.

    It is its relation, from the second edge on with a number.
    """
    return f"{fact.relation} ({place + 1})" if place else fact.relation


def node_link_lines(content: GraphContent) -> Iterator[str]:
    """Yield node-link JSON, as `networkx.node_link_data` returns it."""
    yield '{"directed": true, "multigraph": true, "graph": {}, "nodes": ['
    for number, entity in enumerate(content.entities()):
        yield (",\n" if number else "\n") + _json({"id": entity.key, **node_attributes(entity)})
    yield '\n], "edges": ['
    for number, fact in enumerate(content.facts()):
        for place, attributes in enumerate(edges_of(fact)):
            ends = {"source": fact.head, "target": fact.tail, "key": edge_key(fact, place)}
            yield (",\n" if number or place else "\n") + _json({**ends, **attributes})
    yield "\n]}\n"


def json_lines(content: GraphContent) -> Iterator[str]:
    """Yield a row for each fact.

    Then come the names of relations, then a row for each entity that is described.

    A fact that is stated several times, with other attributes, has several rows.
    """
    for fact in content.facts():
        row = {"head": fact.head, "relation": fact.relation_id, "tail": fact.tail}
        for sources, attributes in statements_of(fact):
            yield _json({**row, **sources, **({"attributes": attributes} if attributes else {})}) + "\n"
    yield from description_lines(content, all=False)


def description_lines(content: GraphContent, *, all: bool) -> Iterator[str]:
    """Yield the names of relations, then a row for each entity.

    The rows of relations also say which have texts as tails.

    Args:
        content: The graph.
        all: Whether also entities that are in a fact and not described have a row.
    """
    texts = set(content.text_relations)
    for id, name in zip(content.relation_ids, content.relations, strict=True):
        label, text = {"label": name} if id != name else {}, {"text": True} if name in texts else {}
        if label or text:
            yield _json({"relation": id, **label, **text}) + "\n"
    lonely = content.lonely()
    for entity in content.entities():
        if all or entity.is_described or entity.key in lonely:
            label = {"label": entity.label} if entity.label != entity.key else {}
            said = {"aliases": entity.aliases, "types": entity.types, "datatype": entity.datatype}
            said = {name: value for name, value in said.items() if value}
            yield _json({"entity": entity.key, **label, **said}) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
