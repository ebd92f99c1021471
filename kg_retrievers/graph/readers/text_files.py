"""From text files to the rows of a knowledge graph."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal, NoReturn, TextIO, get_args

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.types import Triple

GraphFormat = Literal["tsv", "csv", "pipe", "jsonl"]
OnError = Literal["raise", "skip"]

#: How like the name of a missing file another one must be to be suggested, in [0, 1].
NAME_SHARE = 0.75

_SUFFIXES: dict[str, GraphFormat] = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

# What a header may call each column, best name first: a table with "subject" and "source" has its head in "subject".
_TRIPLE_COLUMNS = (("head", "subject", "source"), ("relation", "predicate", "edge"), ("tail", "object", "target"))
_ENTITY_COLUMNS = (("entity", "id"), ("label", "name"))
_ENTITY_KEYS = {"entity", "label", "aliases", "types"}

_ENTITY_EXAMPLE = '{"entity": "Her", "label": "Her"}'
_ANY_EXAMPLE = '{"head": "Her", "relation": "directed_by", "tail": "Spike Jonze"} or ' + _ENTITY_EXAMPLE

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNFIT = re.compile("[\0\ud800-\udfff]")


def read_graph_rows(
    path: str | os.PathLike[str],
    *,
    format: GraphFormat | None = None,
    columns: Sequence[str] | None = None,
    on_error: OnError = "raise",
    encoding: str = "utf-8",
) -> GraphBuilder:
    """Read triples, and in JSONL also entities, from a file; `.gz` is unpacked on the way.

    - "tsv": `head<TAB>relation<TAB>tail`, split at tabs and nothing else.
    - "csv": the same with commas and quotes as in RFC 4180.
    - "pipe": `head|relation|tail`.
    - "jsonl": one object a line, `{"head", "relation", "tail"}` or
      `{"entity": key, "label": text, "aliases": [text], "types": [text]}`, in any order. Numbers are read as text.

    A first row that names head (or subject, source), relation (or predicate, edge) and tail (or object, target) is
    a header: columns are then found by name, and columns with other names are not read, like other keys of a JSON
    triple. White space around a cell and blank lines are dropped.

    Args:
        path: The file.
        format: How the file is laid out; None goes by the suffix, or else by the first line.
        columns: What the header calls head, relation and tail.
        on_error: "skip" counts malformed lines in `skipped` and goes on.
        encoding: The encoding of the text; a byte order mark is dropped.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, or there are no triples.
        InvalidArgumentError: If an argument has no such value, or `columns` meets JSONL.
    """
    file = _TextFile(path, on_error, encoding)
    layout = _layout(file, format, columns, width=3)
    rows = GraphBuilder()
    if layout == "jsonl":
        _read_json_rows(file, rows, with_triples=True)
    else:
        for head, relation, tail in _read_table(file, layout, _TRIPLE_COLUMNS, columns):
            rows.add(head, relation, tail)
    rows.skipped = file.skipped
    if not len(rows):
        file.fail(
            f"no triples, {file.skipped} malformed lines. Wanted a triple a line, as in head<TAB>relation<TAB>tail."
        )
    return rows


def read_entity_rows(
    path: str | os.PathLike[str],
    *,
    format: GraphFormat | None = None,
    columns: Sequence[str] | None = None,
    on_error: OnError = "raise",
    encoding: str = "utf-8",
) -> GraphBuilder:
    """Read labels, aliases and types from a file of entities.

    As `read_graph_rows`, but a row of a table is `entity<TAB>label` (with a header: entity or id, label or name),
    and JSONL may hold entities only.

    Args:
        path: The file.
        format: How the file is laid out; None goes by the suffix, or else by the first line.
        columns: What the header calls entity and label.
        on_error: "skip" counts malformed lines in `skipped` and goes on.
        encoding: The encoding of the text; a byte order mark is dropped.

    Returns:
        Rows without triples.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, or there are no entities.
        InvalidArgumentError: If an argument has no such value, or `columns` meets JSONL.
    """
    file = _TextFile(path, on_error, encoding)
    layout = _layout(file, format, columns, width=2)
    rows = GraphBuilder()
    if layout == "jsonl":
        _read_json_rows(file, rows, with_triples=False)
    else:
        for entity, label in _read_table(file, layout, _ENTITY_COLUMNS, columns):
            rows.describe(entity, label)
    rows.skipped = file.skipped
    if not (rows.labels or rows.aliases or rows.types):
        file.fail(f"no entities, {file.skipped} malformed lines. Wanted an entity a line, as in entity<TAB>label.")
    return rows


class _TextFile:
    """A file that is read line by line. `line` is the number of the last line read, from 1."""

    def __init__(self, path: str | os.PathLike[str], on_error: OnError, encoding: str) -> None:
        if on_error not in get_args(OnError):
            raise InvalidArgumentError(f'on_error is "raise" or "skip", but got {on_error!r}.')
        try:
            " ".encode(encoding)
        except LookupError:
            raise InvalidArgumentError(f"encoding: Python knows no text encoding {encoding!r}.") from None
        self.path = Path(path)
        self.on_error = on_error
        self.encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        self.line = 0
        self.skipped = 0

    def fail(self, message: str, line: int | None = None, **hints: str) -> NoReturn:
        raise GraphLoadError(message, self.path, line, **hints)

    def reject(self, message: str, line: int) -> None:
        """Raise for the row from `line` to the last line read, or count its lines."""
        if self.on_error == "raise":
            advice = "Correct the line, or leave out all such lines with"
            hints = {"hint_python": f'{advice} on_error="skip".', "hint_shell": f"{advice} --on-error skip."}
            self.fail(message, line, **hints)
        self.skipped += self.line - line + 1

    def lines(self) -> Iterator[str]:
        """Yield the lines from the first, each with its line break."""
        try:
            with self._open() as file:
                try:
                    for self.line, text in enumerate(file, 1):
                        if "\0" in text:
                            self.fail("NUL byte: this is no text, or its encoding is another (utf-16?).", self.line)
                        yield text
                except UnicodeDecodeError as error:
                    # The decoder saw the bytes up to the position of the file, and all before them were lines.
                    offset = file.buffer.tell() - len(error.object) + error.start
                    line = self.line + error.object[: error.start].count(b"\n") + 1
                    other = "utf-16" if error.object.startswith(_UTF_16) else "latin-1"
                    self.fail(
                        f"byte {offset} is not {error.encoding}.",
                        line,
                        hint_python=f'Perhaps the file is encoding="{other}".',
                        hint_shell=f"Perhaps the file is --encoding {other}.",
                    )
        except (OSError, EOFError, zlib.error) as error:
            self.fail(f"cannot be read: {error}")

    def _open(self) -> TextIO:
        if self.path.is_dir():
            self.fail("is a folder; wanted a file of triples or entities.")
        if not self.path.exists():
            near = ", ".join(map(repr, _similar_names(self.path)))
            self.fail("there is no such file." + (f" Did you mean: {near}?" if near else ""))
        if self.path.suffix.lower() == ".gz":
            return gzip.open(self.path, "rt", encoding=self.encoding, newline="")
        return open(self.path, encoding=self.encoding, newline="")


def _similar_names(path: Path) -> list[str]:
    """Return up to three names of files beside a path that are like its own; equal suffixes do not count."""
    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, cutoff=NAME_SHARE)
    return [name for name in names if Path(name).stem in stems][:3]


def _layout(file: _TextFile, format: GraphFormat | None, columns: Sequence[str] | None, width: int) -> GraphFormat:
    """Check `format` and `columns`, and find the format where none is given."""
    if format is not None and format not in get_args(GraphFormat):
        raise InvalidArgumentError(f'format is "tsv", "csv", "pipe", "jsonl" or None, but got {format!r}.')
    if columns is not None and (isinstance(columns, str) or len(columns) != width):
        raise InvalidArgumentError(f"columns names the {width} columns to read, but got {columns!r}.")
    layout = format or _SUFFIXES.get(Path(file.path.name.lower().removesuffix(".gz")).suffix)
    if layout is None:
        first = next((line for line in file.lines() if line.strip()), None)
        if first is None or "\t" in first:
            layout = "tsv"
        elif first.count("|") == width - 1:
            layout = "pipe"
        else:
            file.fail(
                f"cannot tell the format from this first line, {short(first)}.",
                file.line,
                hint_python='Give format="tsv", "csv", "pipe" or "jsonl".',
                hint_shell="Give --graph-format tsv, csv, pipe or jsonl.",
            )
    if layout == "jsonl" and columns is not None:
        raise InvalidArgumentError(f"columns is for tables with a header, but {file.path} is JSONL.")
    return layout


def _read_table(
    file: _TextFile, layout: GraphFormat, roles: Sequence[Sequence[str]], columns: Sequence[str] | None
) -> Iterator[tuple[str, ...]]:
    """Yield one cell for each of the `roles` from every row."""
    width, pick, first = len(roles), itemgetter(*range(len(roles))), True
    for line, raw in _split(file, layout):
        cells = [cell.strip() for cell in raw]
        if not any(cells):
            continue
        if first:
            first = False
            header = _header(file, line, cells, roles, columns)
            if header:
                width, pick = len(cells), itemgetter(*header)
                continue
        if len(cells) != width:
            file.reject(f"wanted {width} cells ({layout}), but got {len(cells)}: {short(cells)}.", line)
        elif not all(wanted := pick(cells)):
            file.reject(f"wanted {len(roles)} texts, but a cell is empty: {short(cells)}.", line)
        else:
            yield wanted


def _split(file: _TextFile, layout: GraphFormat) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line on which it begins."""
    if layout != "csv":
        separator = "\t" if layout == "tsv" else "|"
        for text in file.lines():
            yield file.line, text.split(separator)
        return
    reader = csv.reader(file.lines(), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except csv.Error as error:
            file.reject(f"the row that begins here is not CSV: {error}.", line)
        except StopIteration:
            return


def _header(
    file: _TextFile, line: int, cells: list[str], roles: Sequence[Sequence[str]], columns: Sequence[str] | None
) -> list[int] | None:
    """Return where the columns are, or None if this row is no header."""
    if columns is not None:
        if any(cells.count(column) != 1 for column in columns):
            file.fail(f"wanted a header with the columns {list(columns)}, once each, but found {cells}.", line)
        return [cells.index(column) for column in columns]
    folded = [cell.casefold() for cell in cells]
    names = [next((name for name in role if folded.count(name) == 1), None) for role in roles]
    return None if None in names else [folded.index(name) for name in names if name]


def _read_json_rows(file: _TextFile, rows: GraphBuilder, *, with_triples: bool) -> None:
    """Add what each line says to `rows`."""
    wanted = f"wanted an object such as {_ANY_EXAMPLE if with_triples else _ENTITY_EXAMPLE}"
    for text in file.lines():
        if text.isspace():
            continue
        try:
            row = _DECODER.decode(text.rstrip())
            if not isinstance(row, dict) or ("entity" not in row and not with_triples):
                raise ValueError(f"{wanted}, but got {short(row)}.")
            if "entity" in row:
                _add_json_entity(rows, row)
            elif missing := [key for key in Triple._fields if key not in row]:
                raise ValueError(f"{wanted}, but there is no {missing}.")
            else:
                rows.add(*(_name(row, key) for key in Triple._fields))
        except json.JSONDecodeError as error:
            file.reject(f"not JSON: {error.msg} at column {error.colno}.", file.line)
        except RecursionError:
            file.reject("JSON that is nested too deeply.", file.line)
        except ValueError as error:
            file.reject(str(error), file.line)


def _add_json_entity(rows: GraphBuilder, row: dict[str, Any]) -> None:
    if strange := sorted(set(row) - _ENTITY_KEYS):
        raise ValueError(f"an entity has the keys {sorted(_ENTITY_KEYS)}, but got also {strange}.")
    given = {key: value for key, value in row.items() if value is not None}
    for key in ("aliases", "types"):
        if not isinstance(given.get(key, []), list):
            raise ValueError(f'"{key}" must be a list of texts, but got {short(given[key])}.')
    aliases, types = ([_name({key: item}, key) for item in given.get(key, [])] for key in ("aliases", "types"))
    label = _name(row, "label") if "label" in given else None
    rows.describe(_name(row, "entity"), label, aliases, types)


def _name(row: dict[str, Any], key: str) -> str:
    """Return the text under `key`, stripped."""
    value = row[key]
    name = value.strip() if isinstance(value, str) else ""
    if not name or _UNFIT.search(name):
        raise ValueError(f'"{key}" must be a text, not empty, without NUL or half a surrogate, but got {short(value)}.')
    return name


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON.")


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)
