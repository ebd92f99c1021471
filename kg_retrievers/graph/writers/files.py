"""Writes a graph to JSON lines or RDF, and never loses a part of it in silence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import replace_file
from kg_retrievers.graph.building import NO_SOURCE
from kg_retrievers.graph.writers.content import Entity, GraphContent
from kg_retrievers.graph.writers.rdf import rdf_losses, write_rdf

#: The formats that `KnowledgeGraph.write` knows.
WriteFormat = Literal["jsonl", "nt", "nq", "ttl", "trig", "rdf", "jsonld"]

#: What to do about parts of a graph that a format cannot hold.
OnLoss = Literal["raise", "drop"]

#: The formats by the suffixes of files.
_SUFFIXES: dict[str, WriteFormat] = {f".{format}": format for format in get_args(WriteFormat)} | {".ndjson": "jsonl"}

_WHO = "KnowledgeGraph.write"


def write_graph(content: GraphContent, path: str | Path, format: WriteFormat | None, on_loss: OnLoss) -> None:
    """Write a graph to a file: see `KnowledgeGraph.write`."""
    layout = _layout(path, format)
    if on_loss not in get_args(OnLoss):
        raise InvalidArgumentError(f'{_WHO}: on_loss is "raise" or "drop", but got {on_loss!r}.')
    if on_loss == "raise":
        _check_loss(content, layout)
    with _open(path) as file:
        if layout == "jsonl":
            file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in _json_rows(content))
        else:
            write_rdf(content, file, layout)


def _layout(path: str | Path, format: WriteFormat | None) -> WriteFormat:
    """Return the format that is asked for, or that a suffix names; `.gz` may follow it."""
    if format is not None and format not in get_args(WriteFormat):
        raise InvalidArgumentError(f"{_WHO}: format is one of {[*get_args(WriteFormat)]} or None, but got {format!r}.")
    layout = format or _SUFFIXES.get(Path(str(path).lower().removesuffix(".gz")).suffix)
    if layout is None:
        raise InvalidArgumentError(
            f"{_WHO}: {str(path)!r} ends in none of {', '.join(_SUFFIXES)}. Give it such a name, or format=... "
            "For a table: pandas.DataFrame(graph.to_triples())."
        )
    return layout


def _check_loss(content: GraphContent, layout: WriteFormat) -> None:
    """Raise if the graph holds something that the file cannot hold."""
    if lost := _losses(content, layout):
        parts = ", ".join(f"{count:,} {what}" for what, count in lost.items())
        drop = 'eave out what it cannot hold with on_loss="drop".'
        holds_all = layout != "jsonl" and not _losses(content, "jsonl")
        advice = f"Write JSONL, which holds all; or l{drop}" if holds_all else f"L{drop}"
        raise InvalidArgumentError(f"{_WHO}: {layout} cannot hold {parts}. {advice}")


def _losses(content: GraphContent, layout: WriteFormat) -> dict[str, int]:
    """Count what a file cannot hold."""
    if layout == "jsonl":
        unfit = sum(not text.strip() or "\0" in text for text in content.texts())  # readers of rows refuse them
        lost = {"blank texts or texts with NUL in them": unfit}
    else:
        lost = {"text relations": len(content.text_relations)} | rdf_losses(content, layout)
    return {what: count for what, count in lost.items() if count}


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` at the end, packed if its name says so."""
    with replace_file(path) as file:
        if not str(path).lower().endswith(".gz"):
            yield file
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def _json_rows(content: GraphContent) -> Iterator[dict[str, object]]:
    """Yield a row for each fact, then what relations are called, then a row for each entity that is described.

    A fact that is given both with and without a source has two rows.
    """
    for fact in content.facts():
        row = {"head": fact.head, "relation": fact.relation_id, "tail": fact.tail}
        if not fact.sources or NO_SOURCE in fact.sources:
            yield {**row}
        if named := [source for source in fact.sources if source]:
            yield {**row, "sources": named}
    texts = set(content.text_relations)
    for id, name in zip(content.relation_ids, content.relations, strict=True):
        if id != name or name in texts:
            yield {"relation": id} | ({"label": name} if id != name else {}) | ({"text": True} if name in texts else {})
    lonely = content.lonely()
    yield from (_entity_row(one) for one in content.entities() if one.is_described or one.key in lonely)


def _entity_row(entity: Entity) -> dict[str, object]:
    row: dict[str, object] = {"entity": entity.key}
    row |= {"label": entity.label} if entity.label != entity.key else {}
    said = {"aliases": entity.aliases, "types": entity.types, "datatype": entity.datatype}
    return row | {name: value for name, value in said.items() if value}
