"""From the content of a graph to JSON lines and tables, of facts and of entities."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import NO_SOURCE
from kg_retrievers.graph.writers.content import Entity, Fact, GraphContent

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
