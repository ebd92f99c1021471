"""Writes a graph to a file of any format, and never loses a part of it in silence."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import replace_file
from kg_retrievers.graph.writers.arrow_files import write_entity_parquet, write_fact_parquet
from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.rdf import rdf_losses, write_rdf
from kg_retrievers.graph.writers.texts import (
    entity_lines,
    entity_table,
    fact_table,
    graphml_lines,
    json_lines,
    node_link_lines,
    relation_lines,
)

#: The formats that `KnowledgeGraph.write` knows.
WriteFormat = Literal[
    "csv", "tsv", "jsonl", "parquet", "graphml", "node-link", "nt", "nq", "ttl", "trig", "rdf", "jsonld"
]

#: What to do about parts of a graph that a format cannot hold.
OnLoss = Literal["raise", "drop"]

#: The formats by the suffixes of files; ".json" is node-link JSON.
_SUFFIXES: dict[str, WriteFormat] = {f".{format}": format for format in get_args(WriteFormat) if format != "node-link"}
_SUFFIXES |= {".ndjson": "jsonl", ".json": "node-link"}

#: The formats of RDF.
_RDF = ("nt", "nq", "ttl", "trig", "rdf", "jsonld")

#: The formats that hold nothing but facts and their sources.
_TABLES = ("csv", "tsv", "parquet")

#: The formats that hold every text as it is.
_EXACT = ("graphml", "node-link")

#: What a second file holds.
_BY_ENTITIES = {
    "labels",
    "aliases",
    "types",
    "datatypes",
    "entities without a fact",
    "ids of relations",
    "text relations",
}

#: The formats that hold the most, and how they are called.
_FULLEST: dict[WriteFormat, str] = {"jsonl": "JSONL", "graphml": "GraphML", "node-link": "node-link JSON"}

_WHO = "KnowledgeGraph.write"


def write_graph(
    content: GraphContent,
    path: str | Path,
    format: WriteFormat | None = None,
    *,
    entities: str | Path | None = None,
    on_loss: OnLoss = "raise",
) -> None:
    """Write a graph to a file: see `KnowledgeGraph.write`."""
    layout = _layout(path, format)
    if on_loss not in get_args(OnLoss):
        raise InvalidArgumentError(f'{_WHO}: on_loss is "raise" or "drop", but got {on_loss!r}.')
    if entities is not None and layout not in _TABLES:
        raise InvalidArgumentError(f"{_WHO}: {layout} holds the entities too. Leave out entities={str(entities)!r}.")
    beside = None if entities is None else _layout(entities, None)
    if beside is not None and beside not in ("jsonl", *_TABLES):
        raise InvalidArgumentError(f"{_WHO}: entities are written as JSONL, CSV, TSV or Parquet, but got {beside!r}.")
    if entities is not None and os.path.realpath(entities) == os.path.realpath(path):
        raise InvalidArgumentError(f"{_WHO}: entities={str(entities)!r} is the file of the facts. Name another one.")
    if on_loss == "raise":
        _check_loss(content, layout, beside)
    with _open(path) as file:
        _write_facts(content, file, layout, beside)
        if entities is not None and beside is not None:
            with _open(entities) as file_beside:  # within, so that an error leaves both files as they were
                _write_entities(content, file_beside, beside)


def _write_facts(content: GraphContent, file: BinaryIO, layout: WriteFormat, beside: WriteFormat | None) -> None:
    if layout == "parquet":
        write_fact_parquet(content, file, content.relation_ids if beside == "jsonl" else content.relations)
    elif layout in _RDF:
        write_rdf(content, file, layout)
    else:
        file.writelines(line.encode() for line in _lines(content, layout, beside))


def _write_entities(content: GraphContent, file: BinaryIO, layout: WriteFormat) -> None:
    if layout == "parquet":
        write_entity_parquet(content, file)
        return
    rows = chain(relation_lines(content), entity_lines(content, all=True))
    lines = rows if layout == "jsonl" else entity_table(content, layout)
    file.writelines(line.encode() for line in lines)


def _layout(path: str | Path, format: WriteFormat | None) -> WriteFormat:
    """Return the format that is asked for, or that a suffix names; `.gz` may follow it."""
    if format is not None and format not in get_args(WriteFormat):
        raise InvalidArgumentError(f"{_WHO}: format is one of {[*get_args(WriteFormat)]} or None, but got {format!r}.")
    name = str(path).lower()
    plain = name if name.endswith(".parquet.gz") else name.removesuffix(".gz")  # Parquet packs itself
    layout = format or _SUFFIXES.get(Path(plain).suffix)
    if layout is None:
        raise InvalidArgumentError(
            f"{_WHO}: {str(path)!r} ends in none of {', '.join(_SUFFIXES)}. Give it such a name, or format=..."
        )
    return layout


def _check_loss(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> None:
    """Raise if the graph holds something that neither file can hold."""
    lost = _losses(content, layout, beside)
    if lost:
        parts = ", ".join(f"{count:,} {what}" for what, count in lost.items())
        advice = ['leave out what it cannot hold with on_loss="drop"']
        if layout in _TABLES and lost.keys() & _BY_ENTITIES:
            advice.insert(0, 'give a second file, entities="entities.jsonl"')
        if names := [name for other, name in _FULLEST.items() if not _losses(content, other, None)]:
            advice.insert(0, f"write {' or '.join(names)}, which {'hold' if len(names) > 1 else 'holds'} all")
        said = "; or ".join(advice)
        raise InvalidArgumentError(f"{_WHO}: {layout} cannot hold {parts}. {said[0].upper()}{said[1:]}.")


def _losses(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> dict[str, int]:
    """Count what neither file can hold."""
    texts = 0 if "jsonl" in (layout, beside) else len(content.text_relations)
    lost = {"text relations": texts} | _lost_content(content, layout, beside)
    return {what: count for what, count in lost.items() if count}


def _lost_content(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> dict[str, int]:
    """Count the texts, descriptions and sources that neither file can hold."""
    if layout in _EXACT:
        return {}
    if layout in _RDF:
        return rdf_losses(content, layout)
    if layout == "jsonl":
        lost = {"blank texts or texts with NUL in them": sum(map(_is_unfit, content.texts()))}
    else:
        lost = {"texts with white space around them or NUL in them": sum(map(_is_trimmed, content.texts()))}
    if layout in _TABLES and beside is None:
        entities = [*content.entities()]
        lost |= {
            "labels": sum(entity.label != entity.key for entity in entities),
            "aliases": sum(len(entity.aliases) for entity in entities),
            "types": sum(len(entity.types) for entity in entities),
            "datatypes": sum(entity.datatype is not None for entity in entities),
            "entities without a fact": len(content.lonely()),
        }
    if layout in _TABLES and beside != "jsonl":
        ids = zip(content.relation_ids, content.relations, strict=True)
        lost["ids of relations"] = sum(id != name for id, name in ids)
    return lost


def _is_unfit(text: str) -> bool:
    """Whether readers of rows refuse a text."""
    return not text.strip() or "\0" in text


def _is_trimmed(text: str) -> bool:
    """Whether readers of tables change a text or refuse it."""
    return text != text.strip() or "\0" in text


def _lines(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> Iterable[str]:
    if layout in ("csv", "tsv"):
        return fact_table(content, layout, by_id=beside == "jsonl")
    if layout == "jsonl":
        return json_lines(content)
    return graphml_lines(content) if layout == "graphml" else node_link_lines(content)


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` at the end, packed if its name says so."""
    with replace_file(path) as file:
        if not str(path).lower().endswith(".gz"):
            yield file
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
