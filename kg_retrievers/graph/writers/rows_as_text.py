"""From the content of a graph to JSON lines and tables, of facts and of entities."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.writers.content import Entity, GraphContent

#: What ends a cell or a row of TSV, which has no quotes.
_BREAKS = ("\t", "\n", "\r")


def json_lines(content: GraphContent) -> Iterator[str]:
    """Yield a row for each fact, then for each relation that is called otherwise, then for each entity."""
    for fact in content.facts():
        row = {"head": fact.head, "relation": fact.relation_id, "tail": fact.tail}
        yield _json(row | ({"sources": fact.sources} if fact.sources else {}))
    yield from relation_lines(content)
    yield from entity_lines(content)


def relation_lines(content: GraphContent) -> Iterator[str]:
    """Yield what each relation is called, where its id is something else."""
    for id, name in zip(content.relation_ids, content.relations, strict=True):
        if id != name:
            yield _json({"relation": id, "label": name})


def entity_lines(content: GraphContent) -> Iterator[str]:
    """Yield a row for each entity that is described or is in no fact."""
    lonely = content.lonely()
    for entity in content.entities():
        if entity.is_described or entity.key in lonely:
            yield _json(_entity_row(entity))


def fact_table(content: GraphContent, layout: str, *, by_id: bool) -> Iterator[str]:
    """Yield CSV or TSV with the header head, relation, tail; `by_id` writes relations as the source did."""
    rows = ((fact.head, fact.relation_id if by_id else fact.relation, fact.tail) for fact in content.facts())
    return _table(layout, ("head", "relation", "tail"), rows)


def entity_table(content: GraphContent, layout: str) -> Iterator[str]:
    """Yield CSV or TSV with the header entity, label, of all entities."""
    return _table(layout, ("entity", "label"), ((entity.key, entity.label) for entity in content.entities()))


def _entity_row(entity: Entity) -> dict[str, str | list[str]]:
    row: dict[str, str | list[str]] = {"entity": entity.key}
    row |= {"label": entity.label} if entity.label != entity.key else {}
    row |= {"aliases": entity.aliases} if entity.aliases else {}
    row |= {"types": entity.types} if entity.types else {}
    return row | ({"datatype": entity.datatype} if entity.datatype else {})


def _table(layout: str, header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    yield ("\t" if layout == "tsv" else ",").join(header) + "\n"
    for row in rows:
        if layout == "tsv":
            _check_cells(row, _BREAKS, "TSV has no quotes, and a tab or line break ends a cell")
            yield "\t".join(row) + "\n"
            continue
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _check_cells(row: Sequence[str], unfit: Sequence[str], why: str) -> None:
    if bad := [cell for cell in row if any(text in cell for text in unfit)]:
        raise InvalidArgumentError(
            f"KnowledgeGraph.write: {bad[0]!r:.100} cannot be written: {why}. Write CSV, JSONL or Parquet."
        )


def _json(row: object) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
