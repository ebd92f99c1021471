"""Write a graph to a file of any format.

The writer never loses a part of it in silence.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import replace_file
from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.rdf import rdf_losses, write_rdf
from kg_retrievers.graph.writers.tables import entity_rows, fact_rows, write_table
from kg_retrievers.graph.writers.texts import description_lines, graphml_lines, json_lines, node_link_lines

#: The formats that `KnowledgeGraph.write` knows.
WriteFormat = Literal[
    "csv", "tsv", "jsonl", "parquet", "graphml", "node-link", "nt", "nq", "ttl", "trig", "rdf", "jsonld"
]

#: The remedy for parts of a graph that a format cannot hold.
OnLoss = Literal["raise", "drop"]

#: The formats by the suffixes of files. ".json" is node-link JSON.
_SUFFIXES: dict[str, WriteFormat] = {f".{format}": format for format in get_args(WriteFormat) if format != "node-link"}
_SUFFIXES |= {".ndjson": "jsonl", ".json": "node-link"}

#: The formats that hold nothing but facts and their sources.
_TABLES = ("csv", "tsv", "parquet")

#: The formats that hold the most, their names, and their writers.
_FULLEST: dict[WriteFormat, tuple[str, Callable[[GraphContent], Iterator[str]]]] = {
    "jsonl": ("JSONL", json_lines),
    "graphml": ("GraphML", graphml_lines),
    "node-link": ("node-link JSON", node_link_lines),
}

_TRIMMED = "texts with white space around them or NUL in them"

_WHO = "KnowledgeGraph.write"


def write_graph(
    content: GraphContent, path: str | Path, format: WriteFormat | None, entities: str | Path | None, on_loss: OnLoss
) -> None:
    """Write a graph to a file: see `KnowledgeGraph.write`."""
    layout = _layout(path, format)
    if on_loss not in get_args(OnLoss):
        raise InvalidArgumentError(f'{_WHO}: on_loss is "raise" or "drop", but got {on_loss!r}.')
    beside = None if entities is None else _layout_beside(path, layout, entities)
    if on_loss == "raise":
        _check_loss(content, layout, beside)
    with _open(path) as file:
        if layout in _TABLES:
            write_table(fact_rows(content, by_id=beside == "jsonl"), file, layout)
        elif layout in _FULLEST:
            file.writelines(line.encode() for line in _FULLEST[layout][1](content))
        else:
            write_rdf(content, file, layout)
        if entities is not None:
            with _open(entities) as file_beside:  # within, so that an error leaves both files as they were
                if beside == "jsonl":
                    file_beside.writelines(line.encode() for line in description_lines(content, all=True))
                else:
                    write_table(entity_rows(content), file_beside, str(beside))


def _layout(path: str | Path, format: WriteFormat | None) -> WriteFormat:
    """Return the format that is asked for, or that a suffix names.

    `.gz` may follow it.
    """
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


def _layout_beside(path: str | Path, layout: WriteFormat, entities: str | Path) -> WriteFormat:
    """Return the format of the second file."""
    if layout not in _TABLES:
        raise InvalidArgumentError(f"{_WHO}: {layout} holds the entities too. Leave out entities={str(entities)!r}.")
    beside = _layout(entities, None)
    if beside not in ("jsonl", *_TABLES):
        raise InvalidArgumentError(f"{_WHO}: entities are written as JSONL, CSV, TSV or Parquet, but got {beside!r}.")
    if os.path.realpath(entities) == os.path.realpath(path):
        raise InvalidArgumentError(f"{_WHO}: entities={str(entities)!r} is the file of the facts. Name another one.")
    return beside


def _check_loss(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> None:
    """Raise if the graph holds something that neither file can hold."""
    if lost := _losses(content, layout, beside):
        parts = ", ".join(f"{count:,} {what}" for what, count in lost.items())
        advice = ['leave out what it cannot hold with on_loss="drop"']
        if layout in _TABLES and any(what != _TRIMMED for what in lost):
            advice.insert(0, 'give a second file, entities="entities.jsonl"')
        if names := [name for other, (name, _) in _FULLEST.items() if not _losses(content, other, None)]:
            advice.insert(0, f"write {' or '.join(names)}, which {'hold' if len(names) > 1 else 'holds'} all")
        said = "; or ".join(advice)
        raise InvalidArgumentError(f"{_WHO}: {layout} cannot hold {parts}. {said[0].upper()}{said[1:]}.")


def _losses(content: GraphContent, layout: WriteFormat, beside: WriteFormat | None) -> dict[str, int]:
    """Count the parts that neither file can hold."""
    lost = {"text relations": 0 if "jsonl" in (layout, beside) else len(content.text_relations)}
    if layout == "jsonl":
        unfit = sum(not text.strip() or "\0" in text for text in content.texts())  # readers of rows refuse them
        lost["blank texts or texts with NUL in them"] = unfit
    elif layout in _TABLES:
        lost |= _losses_of_table(content, beside)
    elif layout not in _FULLEST:
        lost |= rdf_losses(content)
    return {what: count for what, count in lost.items() if count}


def _losses_of_table(content: GraphContent, beside: WriteFormat | None) -> dict[str, int]:
    trimmed = sum(text != text.strip() or "\0" in text for text in content.texts())  # readers change or refuse them
    lost = {_TRIMMED: trimmed}
    if beside is None:
        lost |= dict.fromkeys(("labels", "aliases", "types", "datatypes"), 0)
        for entity in content.entities():
            lost["labels"] += entity.label != entity.key
            lost["aliases"] += len(entity.aliases)
            lost["types"] += len(entity.types)
            lost["datatypes"] += entity.datatype is not None
        lost["entities without a fact"] = len(content.lonely())
    if beside != "jsonl":
        ids = zip(content.relation_ids, content.relations, strict=True)
        lost["ids of relations"] = sum(id != name for id, name in ids)
    return lost


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` at the end.

    It is packed if its name says so.
    """
    with replace_file(path) as file:
        if not str(path).lower().endswith(".gz"):
            yield file
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
