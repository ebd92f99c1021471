"""From the content of a graph to JSON lines, GraphML and node-link JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import NO_SOURCE
from kg_retrievers.graph.writers.content import Entity, Fact, GraphContent

#: What no document of XML 1.0 can hold.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: What a parser would change in an attribute, and in a text, and how it is written.
_KEPT_SPACE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_KEPT_BREAK = {"\r": "&#13;"}


def node_attributes(entity: Entity) -> dict[str, Any]:
    """Return the attributes of a node: its label, aliases and types, and its datatype if it has one."""
    attributes = {"label": entity.label, "aliases": entity.aliases, "types": entity.types}
    return attributes | ({"datatype": entity.datatype} if entity.datatype else {})


def edge_attributes(fact: Fact) -> dict[str, Any]:
    """Return the attributes of an edge: its relation, and the relation's id and the sources if it has some."""
    attributes: dict[str, Any] = {"relation": fact.relation}
    attributes |= {"relation_id": fact.relation_id} if fact.relation_id != fact.relation else {}
    return attributes | ({"sources": fact.sources} if fact.sources else {})


def graphml_lines(content: GraphContent) -> Iterator[str]:
    """Yield GraphML. It has no lists: aliases, types and sources are written as lists in JSON.

    Raises:
        InvalidArgumentError: If a text holds a control character, which XML cannot hold.
    """
    yield '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    names = {"node": ("label", "aliases", "types", "datatype"), "edge": ("relation", "relation_id", "sources")}
    for part, name in ((part, name) for part, found in names.items() for name in found):
        yield f'<key id="{part[0]}.{name}" for="{part}" attr.name="{name}" attr.type="string"/>\n'
    yield '<graph edgedefault="directed">\n'
    for entity in content.entities():
        yield f"<node id={_quoted(entity.key)}>{_data('n', node_attributes(entity))}</node>\n"
    for fact in content.facts():
        ends = f"source={_quoted(fact.head)} target={_quoted(fact.tail)}"
        yield f"<edge {ends}>{_data('e', edge_attributes(fact))}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _data(prefix: str, attributes: dict[str, str | list[str]]) -> str:
    texts = {name: value if isinstance(value, str) else _json(value) for name, value in attributes.items() if value}
    parts = [(name, escape(_checked(text), _KEPT_BREAK)) for name, text in texts.items()]
    return "".join(f'<data key="{prefix}.{name}">{text}</data>' for name, text in parts)


def _quoted(text: str) -> str:
    return quoteattr(_checked(text), _KEPT_SPACE)


def _checked(text: str) -> str:
    if found := _UNFIT.search(text):
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {text!r:.100} holds the character {found[0]!r}, which XML cannot hold. Write "
            "JSONL, node-link JSON or Parquet."
        )
    return text


def node_link_lines(content: GraphContent) -> Iterator[str]:
    """Yield node-link JSON, as `networkx.node_link_data` returns it."""
    yield '{"directed": true, "multigraph": true, "graph": {}, "nodes": ['
    for number, entity in enumerate(content.entities()):
        yield (",\n" if number else "\n") + _json({"id": entity.key, **node_attributes(entity)})
    yield '\n], "edges": ['
    for number, fact in enumerate(content.facts()):
        ends = {"source": fact.head, "target": fact.tail, "key": fact.relation}
        yield (",\n" if number else "\n") + _json({**ends, **edge_attributes(fact)})
    yield "\n]}\n"


def json_lines(content: GraphContent) -> Iterator[str]:
    """Yield a row for each fact, then what relations are called, then a row for each entity that is described.

    A fact that is given both with and without a source has two rows.
    """
    for fact in content.facts():
        row = {"head": fact.head, "relation": fact.relation_id, "tail": fact.tail}
        if not fact.sources or NO_SOURCE in fact.sources:
            yield _json(row) + "\n"
        if named := [source for source in fact.sources if source]:
            yield _json({**row, "sources": named}) + "\n"
    yield from description_lines(content, all=False)


def description_lines(content: GraphContent, *, all: bool) -> Iterator[str]:
    """Yield what relations are called and which have texts as tails, then a row for each entity.

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
