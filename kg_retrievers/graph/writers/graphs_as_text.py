"""From the content of a graph to GraphML and node-link JSON, which hold all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.networkx_graphs import edge_attributes, node_attributes

#: What no document of XML 1.0 can hold.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: What a parser would change, and how it is written.
_KEPT_SPACE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}

_KEPT_BREAK = {"\r": _KEPT_SPACE["\r"]}

_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""


def graphml_lines(content: GraphContent) -> Iterator[str]:
    """Yield GraphML. It has no lists: aliases, types and sources are written as lists in JSON.

    Raises:
        InvalidArgumentError: If a text holds a control character, which XML cannot hold.
    """
    yield _HEAD
    for name in ("label", "aliases", "types", "datatype"):
        yield f'<key id="n.{name}" for="node" attr.name="{name}" attr.type="string"/>\n'
    for name in ("relation", "relation_id", "sources"):
        yield f'<key id="e.{name}" for="edge" attr.name="{name}" attr.type="string"/>\n'
    yield '<graph edgedefault="directed">\n'
    for entity in content.entities():
        yield f"<node id={_quoted(entity.key)}>"
        yield from _data("n", node_attributes(entity))
        yield "</node>\n"
    for fact in content.facts():
        yield f"<edge source={_quoted(fact.head)} target={_quoted(fact.tail)}>"
        yield from _data("e", edge_attributes(fact))
        yield "</edge>\n"
    yield "</graph>\n</graphml>\n"


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


def _data(prefix: str, attributes: dict[str, str | list[str]]) -> Iterator[str]:
    for name, value in attributes.items():
        if value:
            text = value if isinstance(value, str) else _json(value)
            yield f'<data key="{prefix}.{name}">{escape(_checked(text), _KEPT_BREAK)}</data>'


def _quoted(text: str) -> str:
    return quoteattr(_checked(text), _KEPT_SPACE)


def _checked(text: str) -> str:
    if found := _UNFIT.search(text):
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {text!r:.100} holds the character {found[0]!r}, which XML cannot hold. Write "
            "JSONL, node-link JSON or Parquet."
        )
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
