"""From the content of a graph to JSON lines, tables, GraphML, node-link JSON and NetworkX."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import NO_SOURCE
from kg_retrievers.graph.writers.content import Entity, Fact, GraphContent


def networkx_graph(content: GraphContent) -> nx.MultiDiGraph[str]:
    """Return a MultiDiGraph: see `KnowledgeGraph.to_networkx`."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for entity in content.entities():
        graph.add_node(entity.key, **node_attributes(entity))
    for fact in content.facts():
        graph.add_edge(fact.head, fact.tail, key=fact.relation, **edge_attributes(fact))
    return graph


def node_attributes(entity: Entity) -> dict[str, Any]:
    """Return the attributes of a node: its label, aliases and types, and its datatype if it has one."""
    attributes = {"label": entity.label, "aliases": entity.aliases, "types": entity.types}
    return attributes | ({"datatype": entity.datatype} if entity.datatype else {})


def edge_attributes(fact: Fact) -> dict[str, Any]:
    """Return the attributes of an edge: its relation, and the relation's id and the sources if it has some."""
    attributes: dict[str, Any] = {"relation": fact.relation}
    attributes |= {"relation_id": fact.relation_id} if fact.relation_id != fact.relation else {}
    return attributes | ({"sources": fact.sources} if fact.sources else {})


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
        yield f"<node id={_quoted_xml(entity.key)}>"
        yield from _data("n", node_attributes(entity))
        yield "</node>\n"
    for fact in content.facts():
        yield f"<edge source={_quoted_xml(fact.head)} target={_quoted_xml(fact.tail)}>"
        yield from _data("e", edge_attributes(fact))
        yield "</edge>\n"
    yield "</graph>\n</graphml>\n"


def node_link_lines(content: GraphContent) -> Iterator[str]:
    """Yield node-link JSON, as `networkx.node_link_data` returns it."""
    yield '{"directed": true, "multigraph": true, "graph": {}, "nodes": ['
    for number, entity in enumerate(content.entities()):
        yield (",\n" if number else "\n") + _json_text({"id": entity.key, **node_attributes(entity)})
    yield '\n], "edges": ['
    for number, fact in enumerate(content.facts()):
        ends = {"source": fact.head, "target": fact.tail, "key": fact.relation}
        yield (",\n" if number else "\n") + _json_text({**ends, **edge_attributes(fact)})
    yield "\n]}\n"


def _data(prefix: str, attributes: dict[str, str | list[str]]) -> Iterator[str]:
    for name, value in attributes.items():
        if value:
            text = value if isinstance(value, str) else _json_text(value)
            yield f'<data key="{prefix}.{name}">{escape(_checked(text), _KEPT_BREAK)}</data>'


def _quoted_xml(text: str) -> str:
    return quoteattr(_checked(text), _KEPT_SPACE)


def _checked(text: str) -> str:
    if found := _UNFIT.search(text):
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {text!r:.100} holds the character {found[0]!r}, which XML cannot hold. Write "
            "JSONL, node-link JSON or Parquet."
        )
    return text


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_TO_QUOTE = re.compile('[",\r\n]')

_FACT = ("head", "relation", "tail")

#: What ends a cell or a row of TSV, which has no quotes.
_BREAKS = ("\t", "\n", "\r")


def json_lines(content: GraphContent) -> Iterator[str]:
    """Yield a row for each fact, then what relations are called, then a row for each entity that is described.

    A fact that is given both with and without a source has two rows.
    """
    for fact in content.facts():
        row = {"head": fact.head, "relation": fact.relation_id, "tail": fact.tail}
        if not fact.sources or NO_SOURCE in fact.sources:
            yield _json(row)
        if named := [source for source in fact.sources if source]:
            yield _json(row | {"sources": named})
    yield from relation_lines(content)
    yield from entity_lines(content, all=False)


def relation_lines(content: GraphContent) -> Iterator[str]:
    """Yield what each relation is called, where its id is something else, and which of them are text relations."""
    texts = set(content.text_relations)
    for id, name in zip(content.relation_ids, content.relations, strict=True):
        if id != name or name in texts:
            row = {"relation": id} | ({"label": name} if id != name else {})
            yield _json(row | ({"text": True} if name in texts else {}))


def entity_lines(content: GraphContent, *, all: bool) -> Iterator[str]:
    """Yield a row for each entity; unless `all` are wanted, only for those that are described or in no fact."""
    lonely = content.lonely()
    for entity in content.entities():
        if all or entity.is_described or entity.key in lonely:
            yield _json(_entity_row(entity))


def fact_table(content: GraphContent, layout: str, *, by_id: bool) -> Iterator[str]:
    """Yield CSV or TSV with the header head, relation, tail; and source where facts have some, in a row for each.

    Args:
        content: The graph.
        layout: "csv" or "tsv".
        by_id: Whether relations are written as the source wrote them.
    """
    if not content.has_sources:
        return _table(layout, _FACT, (_cells(fact, by_id) for fact in content.facts()))
    rows = ((*_cells(fact, by_id), source) for fact in content.facts() for source in fact.sources or [""])
    return _table(layout, (*_FACT, "source"), rows)


def entity_table(content: GraphContent, layout: str) -> Iterator[str]:
    """Yield CSV or TSV with what is known of each entity; aliases and types are lists in JSON."""
    header = ("entity", "label", "aliases", "types", *(("datatype",) if content.has_datatypes else ()))
    return _table(layout, header, (_entity_cells(entity)[: len(header)] for entity in content.entities()))


def _cells(fact: Fact, by_id: bool) -> tuple[str, str, str]:
    return fact.head, fact.relation_id if by_id else fact.relation, fact.tail


def _entity_cells(entity: Entity) -> tuple[str, ...]:
    aliases, types = (
        json.dumps(texts, ensure_ascii=False) if texts else "" for texts in (entity.aliases, entity.types)
    )
    return entity.key, entity.label, aliases, types, entity.datatype or ""


def _entity_row(entity: Entity) -> dict[str, str | list[str]]:
    row: dict[str, str | list[str]] = {"entity": entity.key}
    row |= {"label": entity.label} if entity.label != entity.key else {}
    row |= {"aliases": entity.aliases} if entity.aliases else {}
    row |= {"types": entity.types} if entity.types else {}
    return row | ({"datatype": entity.datatype} if entity.datatype else {})


def _table(layout: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in chain([header], rows):
        if layout == "tsv":
            _check_cells(row, _BREAKS, "TSV has no quotes, and a tab or line break ends a cell")
            yield "\t".join(row) + "\n"
        else:
            yield ",".join(map(_quoted, row)) + "\n"


def _quoted(cell: str) -> str:
    """Return a cell of CSV, in quotes where RFC 4180 wants them."""
    return '"' + cell.replace('"', '""') + '"' if _TO_QUOTE.search(cell) else cell


def _check_cells(row: Sequence[str], unfit: Sequence[str], why: str) -> None:
    if bad := [cell for cell in row if any(text in cell for text in unfit)]:
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {bad[0]!r:.100} cannot be written: {why}. Write CSV, JSONL or Parquet."
        )


def _json(row: object) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
