"""Which format a file has: as given, else by its suffix, else by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, did_you_mean
from kg_retrievers.graph.readers.exports import is_apoc_row
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.opening import open_bytes, plain_name
from kg_retrievers.graph.readers.tables.delimited import TextFile
from kg_retrievers.graph.readers.tables.json_rows import DECODER, decode

GraphFormat = Literal[
    "tsv", "csv", "pipe", "jsonl", "json", "node-link", "parquet", "arrow", "graphml", "gexf",
    "nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3", "neo4j-csv", "apoc-jsonl",
]  # fmt: skip

#: The formats of RDF.
RDF: tuple[GraphFormat, ...] = ("nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3")

#: The formats that no suffix tells.
_WITHOUT_SUFFIX = ("pipe", "node-link", "neo4j-csv", "apoc-jsonl")

#: The formats by the suffixes of files.
SUFFIXES: dict[str, GraphFormat] = {
    **{f".{format}": format for format in get_args(GraphFormat) if format not in _WITHOUT_SUFFIX},
    ".ndjson": "jsonl", ".pq": "parquet", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".ntriples": "nt", ".nquads": "nq", ".turtle": "ttl", ".owl": "rdf", ".rdfs": "rdf",
}  # fmt: skip

#: How many bytes of a file tell its format.
PREFIX = 1 << 14

#: What a file begins with, white space aside, in the order in which it is looked for.
_CONTENTS: tuple[tuple[re.Pattern[bytes], GraphFormat], ...] = (
    (re.compile(rb"PAR1"), "parquet"),
    (re.compile(rb"ARROW1"), "arrow"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE.*?>|\s)*<(?:\w+:)?RDF\b", re.DOTALL), "rdf"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|\s)*<graphml\b", re.DOTALL), "graphml"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|\s)*<gexf\b", re.DOTALL), "gexf"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*(?:@prefix|@base|PREFIX|BASE)\s", re.IGNORECASE), "ttl"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*(?:<[^>\s]+>|_:\S+)\s+<[^>\s]+>\s+[^\n]+\.\s*(?:\n|$)"), "nt"),
    (re.compile(rb"\s*[{\[]"), "json"),
)


def find_format(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphFormat | None:
    """Return the format of a file or folder; None of a table whose delimiter is to be found.

    Raises:
        GraphLoadError: If it is a folder of none of the formats that are folders.
        InvalidArgumentError: If there is no such format.
    """
    if format is not None and format not in get_args(GraphFormat):
        names = get_args(GraphFormat)
        near = did_you_mean(str(format), names)
        raise InvalidArgumentError(f"format is {', '.join(map(repr, names))} or None, but got {format!r}. {near}")
    if format is None and os.path.isdir(path):
        return _folder_format(path)
    found = format or SUFFIXES.get(Path(plain_name(path)).suffix) or _content_format(path, options)
    if found == "json":
        return json_format(path, options)
    if found == "jsonl" and format is None:
        first = first_row(TextFile(path, options))
        return "apoc-jsonl" if is_apoc_row(first) else "jsonl"
    return found


def json_format(path: Path, options: FileOptions) -> GraphFormat:
    """Return what JSON holds: lines, an array of rows, an export of APOC, JSON-LD, or a graph of nodes and links."""
    file = TextFile(path, options)
    with open_bytes(path, options.limits, by_line=False) as opened:
        start = opened.read(PREFIX).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        first = _first_element(start.decode(options.codec, "ignore"))
        if isinstance(first, dict) and first.keys() & {"@id", "@graph", "@context"}:
            return "jsonld"
        return "apoc-jsonl" if is_apoc_row(first) else "json"
    row = first_row(file) if b"\n" in start or len(start) < PREFIX else None
    if isinstance(row, dict) and not row.keys() & {"nodes", "@graph", "@context", "@id"}:
        return "apoc-jsonl" if is_apoc_row(row) else "jsonl"
    return "jsonld" if re.search(rb'"@(?:context|graph|id)"', start) else "node-link"


def _first_element(start: str) -> object:
    """Return the first element of the start of an array; None if it is no JSON, or goes on behind the start."""
    try:
        return DECODER.raw_decode(start[1:].lstrip())[0]
    except (ValueError, RecursionError):
        return None


def first_row(file: TextFile) -> object:
    """Return what the first line of JSON lines holds; None where it is no JSON."""
    line = next((text for text in file.lines() if text.strip()), "")
    try:
        return decode(line.strip(), file)
    except ValueError:
        return None


def _content_format(path: Path, options: FileOptions) -> GraphFormat | None:
    with open_bytes(path, options.limits, by_line=False) as opened:
        start = opened.read(PREFIX).removeprefix(b"\xef\xbb\xbf")
    return next((format for pattern, format in _CONTENTS if pattern.match(start)), None)


def _folder_format(folder: Path) -> GraphFormat:
    if csv_files(folder):
        return "neo4j-csv"
    raise GraphLoadError(
        "is a folder; wanted a file of triples or entities, or a folder of CSV files of Neo4j.",
        folder,
        hint_python="A folder that `save` wrote: KnowledgeGraph.open(path).",
        hint_shell="",
    )


def csv_files(folder: Path) -> Sequence[Path]:
    """Return the CSV files of a folder, packed or not, in the order of their names."""
    return [path for path in sorted(folder.iterdir()) if Path(plain_name(path)).suffix == ".csv" and path.is_file()]
