"""Delimited text: facts, a row each, and tables of entities."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal, NamedTuple

import numpy as np

from kg_retrievers.errors import GraphLoadError, GraphLoadWarning, Hints, did_you_mean
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.readers.opening import check_regular, limit_error
from kg_retrievers.graph.readers.tables.cells import Encoded, encode
from kg_retrievers.graph.readers.tables.frames import FrameReader, add_entities
from kg_retrievers.graph.readers.text_files import (
    ENTITY,
    FileOptions,
    TextFile,
    entity_columns,
    find_roles,
    looks_like_header,
    repeated_name,
)
from kg_retrievers.graph.types import Triple

#: How many rows are added to a graph at a time. More of them keep the garbage collector busy.
BATCH_ROWS = 1 << 10

#: How many rows decide how a table is written.
FIRST_ROWS = 20

#: How many characters of each are looked at.
FIRST_LENGTH = 1 << 20

_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "pipes", " ": "spaces"}


class Layout(NamedTuple):
    """How a table is written.

    Attributes:
        format: "tsv", "pipe" or "csv".
        delimiter: What stands between cells.
        quotes: Whether a cell may stand in double quotes, as in RFC 4180.
    """

    format: str
    delimiter: str
    quotes: bool

    @property
    def shown(self) -> str:
        """How `Reading` says it."""
        between = _NAMES.get(self.delimiter, repr(self.delimiter))
        return f"split at {between}" + (", quoted as in RFC 4180" if self.quotes else ", quotes are characters")


class Row(NamedTuple):
    """A row of cells, and the lines on which it begins and ends."""

    line: int
    last: int
    cells: list[str]


TABS, QUOTED_TABS = Layout("tsv", "\t", False), Layout("tsv", "\t", True)
PIPES = Layout("pipe", "|", False)


def open_table(path: Path, format: str | None, options: FileOptions, width: int) -> tuple[TextFile, Layout, list[Row]]:
    """Return a table, its layout and the first rows (see `find_layout`)."""
    check_regular(path)
    file = TextFile(path, options)
    layout = find_layout(file, format if format in ("tsv", "csv", "pipe") else None, width)
    return file, layout, first_rows(file, layout)


def find_layout(file: TextFile, format: str | None, width: int) -> Layout:
    """Return how a table is written.

    A format that is named says it: tabs, pipes, or for "csv" the delimiter that is found or given. Cells between tabs
    may stand in quotes if all of the file is so written, as pandas and Excel do. Without a format, the first 20 lines
    are split at tabs, commas, semicolons and pipes. The delimiter wins that splits the first line into at least `width`
    cells and the most of the others into as many. Of equal ones the first wins. Spaces count only where all lines have
    `width` cells.

    Args:
        file: The table.
        format: "tsv", "csv", "pipe", or None.
        width: The least number of cells.

    Raises:
        GraphLoadError: If no delimiter fits.
    """
    delimiter = file.options.delimiter
    if delimiter is not None:
        return Layout(format or "csv", delimiter, format not in ("tsv", "pipe"))
    if format in ("tsv", "pipe"):
        return _tabs(file, width) if format == "tsv" else PIPES
    # The lines that are not blank, each with its line break.
    numbered = ((file.line, line) for line in file.lines() if not line.isspace())
    first = [(number, line[:FIRST_LENGTH]) for number, line in islice(numbered, FIRST_ROWS)]
    lines = [line for _, line in first]
    if not lines:
        return Layout("csv", ",", True) if format else TABS
    candidates = [Layout("csv", delimiter, True) for delimiter in ",;\t|"]
    if format is None:
        candidates = [TABS, *candidates[:2], PIPES]
    scores = [_agreement(lines, layout, width) for layout in candidates]
    if max(scores):
        found = candidates[scores.index(max(scores))]
        return _tabs(file, width) if found is TABS else found
    spaces = Layout("csv", " ", True)
    if all(len(row) == width for row in _split_all(lines, spaces)):
        return spaces
    if format == "csv" and "," in lines[0]:
        return candidates[0]  # the row is then reported
    file.fail(
        f"cannot tell the format from this first line, {short(lines[0])}: neither tabs, commas, semicolons, pipes nor "
        f"spaces split the first lines into {width} cells or more.",
        first[0][0],
        hint_python='Give delimiter="...", or format="tsv", "csv", "pipe" or "jsonl".',
        hint_shell="Give --read delimiter=C, or --read format=tsv, csv, pipe or jsonl.",
    )


def _tabs(file: TextFile, width: int) -> Layout:
    """Return how cells between tabs are written: in quotes if all rows have as many cells then.

    A cell with both tabs and line breaks shows two stray quotes with rows between them.
    """
    if not any('"' in block for block in TextFile(file.path, file.options).blocks()):
        return TABS
    widths = set[int]()
    with suppress(csv.Error):
        lines = TextFile(file.path, file.options).lines()
        for row in _csv_rows(file, lines, QUOTED_TABS):
            if any(map(has_tab_and_break, row)):
                return TABS
            widths |= {len(row)} if any(map(str.strip, row)) else set()
        return QUOTED_TABS if len(widths) == 1 and min(widths) >= width else TABS
    return TABS


def has_tab_and_break(text: str) -> bool:
    """Tell whether a text has both a tab and a line break."""
    return "\t" in text and ("\n" in text or "\r" in text)


def _csv_rows(file: TextFile, lines: Iterator[str], layout: Layout) -> Any:
    most = file.options.limits.cell_length
    csv.field_size_limit(max(most, csv.field_size_limit()))  # of the whole process, which `csv` does not let us narrow
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if layout.quotes else csv.QUOTE_NONE
    return csv.reader(lines, delimiter=layout.delimiter, quoting=quoting, strict=True)


def split_rows(file: TextFile, layout: Layout, lines: Iterator[str] | None = None, last: int = 0) -> Iterator[Row]:
    """Yield the rows of a table without blank ones, and without white space around a cell.

    Args:
        file: The table.
        layout: How it is written.
        lines: The lines to read, by default all of them.
        last: The number of the line before them.
    """
    most, widest = file.options.limits.cell_length, file.options.limits.columns
    reader = _csv_rows(file, file.lines() if lines is None else lines, layout)
    before = last
    while True:
        line = last + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = before + reader.line_num
            if "field limit" in str(error):
                file.reject_cell(None, line, last, len(file.text) if last == line else None)
            else:
                file.reject(f"the row that begins here is not CSV: {error}.", line, last)
            continue
        last = before + reader.line_num
        cells = [cell.strip() for cell in cells]
        if len(cells) > widest:
            raise limit_error(file.path, line, f"a row of {len(cells):,} cells", "columns", len(cells))
        if not any(cells):
            continue
        if (longest := max(map(len, cells))) > most:
            file.reject_cell(longest, line, last)
        else:
            yield Row(line, last, cells)


def _agreement(lines: list[str], layout: Layout, width: int) -> int:
    """Return how many rows have as many cells as the first, which has at least `width`; 0 where it has fewer."""
    rows = _split_all(lines, layout)
    if not rows or len(rows[0]) < width:
        return 0
    return sum(len(row) == len(rows[0]) for row in rows)


def _split_all(lines: list[str], layout: Layout) -> list[list[str]]:
    """Return the rows of the first lines; the last may be broken off, and counts for nothing where it is."""
    if not layout.quotes:
        return [line.rstrip("\r\n").split(layout.delimiter) for line in lines]
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(csv.reader(lines, delimiter=layout.delimiter, strict=True))
    return rows


#: How many rows decide whether the first of them names the columns.
HEADER_ROWS = 10_000

#: How many characters of them are looked at.
HEADER_LENGTH = 1 << 20

#: The least number of rows below the first one that can tell that it names the columns.
LEAST_ROWS = 3

#: A first row is taken for no fact where at most this share of the rows below is as unlike the others as it is.
MOST_UNLIKE = 0.01


class TextTable:
    """A table in a text file.

    Args:
        file: The file.
        layout: How it is written.
        names: The names of its columns.
        has_header: Whether its first row holds them.

    Attributes:
        lines: The first and the last line of each row of the last batch: shape (rows, 2).
    """

    def __init__(self, file: TextFile, layout: Layout, names: list[str], has_header: bool) -> None:
        """Read nothing yet."""
        self.kind, self.names = layout.format, names
        self.lines: Array = np.empty((0, 2), np.int64)
        self._file, self._layout, self._has_header = file, layout, has_header

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, so many rows at a time."""
        positions = [self.names.index(name) for name in columns]
        file, blocks = self._file, self._file.blocks()
        for number, block in enumerate(blocks):
            cells = None if number == 0 else self._plain_columns(block)
            if cells is not None:
                rows = np.arange(len(cells[0]))
                self.lines = np.array([rows, rows]).T + file.line + 1
                file.line += len(rows)
                yield [Encoded(None, cells[position]) for position in positions]
                continue
            # A row in quotes may go on in the next block.
            parts = chain([block], blocks) if self._layout.quotes and '"' in block else [block]
            yield from self._row_batches(self._rows(number == 0, file.lines_of(parts), file.line), positions)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns."""
        for line, last, cells in self._rows(True):
            self.lines = np.array([[line, last]])
            yield dict(zip(self.names, cells, strict=True))

    def _plain_columns(self, block: str) -> list[list[str]] | None:
        """Return the columns of a block; None unless each line is a row of full cells without quotes."""
        delimiter, width, most = self._layout.delimiter, len(self.names), self._file.options.limits.cell_length
        block = block.replace("\r\n", "\n").removesuffix("\n") + "\n"
        if "\r" in block or (self._layout.quotes and '"' in block):
            return None
        cells = block.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)[:-1]
        ends = cells[width :: width + 1]
        if len(cells) != len(ends) * (width + 1) or ends.count("\n") != len(ends):
            return None
        columns = [[*map(str.strip, cells[at :: width + 1])] for at in range(width)]
        is_short = len(block) <= most or all(max(map(len, column)) <= most for column in columns)
        return columns if is_short and all(map(all, columns)) else None

    def _row_batches(self, rows: Iterator[Row], positions: Sequence[int]) -> Iterator[list[Encoded]]:
        """Yield these columns of rows; an error of a row comes after the rows before it."""
        error: GraphLoadError | None = None
        while error is None:
            batch: list[Row] = []
            try:
                batch.extend(islice(rows, BATCH_ROWS))
            except GraphLoadError as raised:
                error = raised
            if not batch:
                break
            lines, lasts, cells = zip(*batch, strict=True)
            self.lines = np.array([lines, lasts]).T
            by_column = [*zip(*cells, strict=True)]
            yield [encode(by_column[position]) for position in positions]
        if error is not None:
            raise error

    def _rows(self, is_first: bool, lines: Iterator[str] | None = None, last: int = 0) -> Iterator[Row]:
        width, file = len(self.names), self._file
        rows = split_rows(file, self._layout, lines, last)
        for row in islice(rows, is_first and self._has_header, None):
            if len(row.cells) == width:
                yield row
            else:
                got = f"got {len(row.cells)}: {short(row.cells)}."
                other = (
                    ""
                    if len(row.cells) > 1
                    else f" The cells are split at {self._layout.delimiter!r}: is that the delimiter?"
                )
                file.reject(f"wanted {width} cells ({self.kind}), but {got}{other}", row.line, row.last)


def read_fact_table(file: TextFile, layout: Layout, first: Sequence[Row], builder: GraphBuilder) -> None:
    """Add the facts of a table, of which `first_rows` returned the first ones.

    A first row names the columns if it has names of `roles` for all three, or `columns` or `header` say so. A first
    row that may name columns, but does not name all three, is refused: see `_fact_header`.

    Raises:
        GraphLoadError: If a row has not the cells of a fact, or the first row may be a header.
    """
    options = file.options
    header = _fact_header(file, first)
    if header and (strange := [name for name in options.facts if name not in header]):
        file.fail(f"facts names {strange}, but the columns are {header}.")
    table = TextTable(file, layout, header or [*Triple._fields], header is not None)
    reader = FrameReader(builder, options.on_error, file.path, attributes=options.attributes)
    reader.add_facts(table, options.named_columns, options.facts)
    if header is None:
        builder.reading.understood["columns"] = "head, relation, tail; the first row is a fact"


def read_entity_table(file: TextFile, layout: Layout, first: Sequence[Row], builder: GraphBuilder) -> int:
    """Add a table's statements about entities, and return the number of its rows (see `read_fact_table`).

    Columns are found by name, further ones are attributes. Without a header a row is entity and label. Several aliases
    or types in a cell stand between pipes, or are a list in JSON.

    Raises:
        GraphLoadError: If a row has no key, or more or fewer cells than the first.
    """
    header, options = _entity_header(file, first), file.options
    columns = header or {"entity": "", "label": "label"}
    table = TextTable(file, layout, [*columns], header is not None)
    return add_entities(builder, table, options.attributes, str(file.path), options.on_error, columns)


def first_rows(file: TextFile, layout: Layout) -> list[Row]:
    """Return the rows that decide whether the first of them names the columns."""
    first: list[Row] = []
    length = 0
    for row in split_rows(TextFile(file.path, file.options), layout):
        first.append(row)
        length += sum(map(len, row.cells))
        if len(first) == HEADER_ROWS or length > HEADER_LENGTH:
            break
    return first


def _fact_header(file: TextFile, first: Sequence[Row]) -> list[str] | None:
    """Return the names of the columns, or None if the first row is a fact. Warn if it may be a header all the same.

    Raises:
        GraphLoadError: If the first row may be a header, but its names do not say which columns are which.
    """
    options = file.options
    if not first or options.header is False:
        return None
    line, _, cells = first[0]
    if options.columns is not None:
        if wrong := [column for column in options.columns if cells.count(column) != 1]:
            near = did_you_mean(wrong[0], cells) or "Name columns of the header."
            file.fail(
                f"wanted a header with the columns {list(options.columns)}, once each, but found {cells}. "
                f"For {wrong[0]!r}: {near}",
                line,
            )
        check_names(file, cells, line)
        return cells
    if find_roles(cells) is not None:
        check_names(file, cells, line)
        return cells
    is_wide = len(cells) > 3 and all(len(row.cells) == len(cells) for row in first)
    is_unlike = _is_unlike_the_others(first)
    hints: Hints = {
        "hint_python": 'Say which they are: columns=("...", "...", "..."); or that the row is a fact: header=False.',
        "hint_shell": "Say which they are: --columns HEAD,RELATION,TAIL; or that the row is a fact: "
        "--read header=false",
    }
    if options.header or options.facts or is_wide or looks_like_header(cells) or is_unlike:
        message = "seems to name columns, but not which are head, relation and tail."
        raise GraphLoadError(f"the first row {short(list(cells))} {message}", file.path, line, **hints)
    if is_unlike is None:
        message = f"the first row {short(list(cells))} is read as a fact, but may name columns."
        warnings.warn(GraphLoadWarning(message, file.path, line, **hints), stacklevel=1)
    return None


def _entity_header(file: TextFile, first: Sequence[Row]) -> dict[str, str] | None:
    """Return what each column is to `AttributeReader`, by its name; None if the first row is an entity."""
    if not first:
        return None
    cells = first[0].cells
    if len(cells) > 2:
        check_names(file, cells, first[0].line)
    columns = entity_columns(cells)
    if "" in columns.values() and set(columns.values()) & {"label", "aliases", "types"}:
        return columns
    if len(cells) > 2:
        file.fail(
            f"no columns are called {' or '.join(ENTITY)} and label; found {short(cells)}.",
            first[0].line,
            hint_python="Name them in the header.",
        )
    return None


def check_names(file: TextFile, names: Sequence[str], line: int) -> None:
    """Check that the columns of a header have different names. Several may have none.

    Raises:
        GraphLoadError: If not.
    """
    if name := repeated_name(names):
        file.fail(f"two columns have one name, {name!r}. Rename one.", line)


def _is_unlike_the_others(rows: Sequence[Row]) -> bool | None:
    """Whether the first row of three cells names columns rather than a fact, judged by the first 10,000 rows.

    It does if none of its cells appears again in its column, nor its ends in the other column of ends, while at most
    1 % of the rows below are so. None if these are too few, or use more than half as many relations as they are.
    """
    others = [row.cells for row in rows[1:] if len(row.cells) == 3]
    if len(rows[0].cells) != 3 or not others:
        return False
    head, relation, tail = rows[0].cells
    relations = Counter(cells[1] for cells in others)
    ends = Counter(end for cells in others for end in (cells[0], cells[2]))
    if relation in relations or head in ends or tail in ends:
        return False
    if len(others) < LEAST_ROWS or 2 * len(relations) > len(others):
        return None
    unlike = sum(relations[cells[1]] == ends[cells[0]] == ends[cells[2]] == 1 for cells in others)
    return unlike <= MOST_UNLIKE * len(others)
