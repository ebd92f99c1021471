"""How a table is written: what stands between its cells, and whether cells are quoted."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from reprlib import repr as short
from typing import NamedTuple

from kg_retrievers.graph.readers.limits import limit_error
from kg_retrievers.graph.readers.tables.text_lines import TextFile

#: How many rows decide how a table is written.
FIRST_ROWS = 20

#: How many characters of them are looked at.
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


TABS = Layout("tsv", "\t", False)
PIPES = Layout("pipe", "|", False)


def find_layout(file: TextFile, format: str | None, width: int) -> Layout:
    """Return how a table is written.

    A format that is named says it: tabs, pipes, or for "csv" the delimiter that is found or given. Otherwise the first
    20 lines are split at tabs, commas, semicolons and pipes. The delimiter wins that splits the first line into at
    least `width` cells and the most of the others into as many; of equal ones the first. Spaces count only where all
    lines have `width` cells.

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
        return TABS if format == "tsv" else PIPES
    begin, lines = first_lines(file)
    if not lines:
        return Layout("csv", ",", True) if format else TABS
    candidates = [Layout("csv", delimiter, True) for delimiter in ",;\t|"]
    if format is None:
        candidates = [TABS, *candidates[:2], PIPES]
    scores = [_agreement(lines, layout, width) for layout in candidates]
    if max(scores):
        return candidates[scores.index(max(scores))]
    spaces = Layout("csv", " ", True)
    if all(len(row) == width for row in _split_all(lines, spaces)):
        return spaces
    if format == "csv" and "," in lines[0]:
        return candidates[0]  # the row is then reported
    file.fail(
        f"cannot tell the format from this first line, {short(lines[0])}: neither tabs, commas, semicolons, pipes nor "
        f"spaces split the first lines into {width} cells or more.",
        begin,
        hint_python='Give delimiter="...", or format="tsv", "csv", "pipe" or "jsonl".',
        hint_shell="Give --delimiter, or --graph-format tsv, csv, pipe or jsonl.",
    )


def first_lines(file: TextFile) -> tuple[int, list[str]]:
    """Return the first lines that are not blank, each with its line break, and the number of the first of them."""
    lines: list[str] = []
    begin = length = 0
    for text in file.lines():
        length += len(text)
        if not text.isspace():
            begin = begin or file.line
            lines.append(text[:FIRST_LENGTH])
        if len(lines) == FIRST_ROWS or length > FIRST_LENGTH:
            break
    return begin, lines


def split_first(file: TextFile, layout: Layout) -> list[str]:
    """Return the cells of the first row; none where there is no row."""
    rows = _split_all(first_lines(file)[1][:1], layout)
    return [cell.strip() for cell in rows[0]] if rows else []


def split_rows(file: TextFile, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a table, blank ones left out, with white space around each cell dropped."""
    blocks = file.blocks()
    for block in blocks:
        yield from _rows_of(file, layout, block, blocks)


def split_blocks(
    file: TextFile, layout: Layout, width: int, filled: Sequence[int]
) -> Iterator[list[list[str]] | Iterator[Row]]:
    """Yield the columns of the next rows at once where all of them are plain, else these rows one by one.

    The first rows always come one by one. Take them all before the next are asked for.

    Args:
        file: The table.
        layout: How it is written.
        width: How many cells a plain row has; none of its quotes count.
        filled: The positions of the cells that are not empty in a plain row.
    """
    blocks = file.blocks()
    is_first = True
    for block in blocks:
        columns = None if is_first else _columns_of(file, layout, block, width)
        if columns is not None and not all(all(columns[at]) for at in filled):
            columns = None
        is_first = False
        if columns is None:
            yield _rows_of(file, layout, block, blocks)
        else:
            file.line += len(columns[0])
            yield columns


def _columns_of(file: TextFile, layout: Layout, block: str, width: int) -> list[list[str]] | None:
    """Return the columns of a block, with white space around each cell dropped; None unless all rows are plain."""
    delimiter, most = layout.delimiter, file.options.limits.cell_length
    if "\r" in block:
        block = block.replace("\r\n", "\n")
    if "\r" in block or "\0" in block or (layout.quotes and '"' in block):
        return None
    if not block.endswith("\n"):
        block += "\n"
    cells = block.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
    del cells[-1]
    ends = cells[width :: width + 1]
    if len(cells) != len(ends) * (width + 1) or ends.count("\n") != len(ends):
        return None
    columns = [[*map(str.strip, cells[at :: width + 1])] for at in range(width)]
    if len(block) > most and any(max(map(len, column)) > most for column in columns):
        return None
    return columns


def _rows_of(file: TextFile, layout: Layout, block: str, blocks: Iterator[str]) -> Iterator[Row]:
    """Yield the rows that begin in a block; the last of them may go on in the next ones."""
    most = file.options.limits.columns
    rows = _quoted_rows(file, layout, block, blocks) if layout.quotes else _plain_rows(file, layout, block)
    for row in rows:
        if len(row.cells) > most:
            raise limit_error(file.path, row.line, f"a row of {len(row.cells):,} cells", "columns", len(row.cells))
        if any(row.cells):
            yield row


def _plain_rows(file: TextFile, layout: Layout, block: str) -> Iterator[Row]:
    most, delimiter = file.options.limits.cell_length, layout.delimiter
    for text in file.lines_of(block):
        if text.isspace():
            continue
        cells = [cell.strip() for cell in text.split(delimiter)]
        if len(text) > most and (longest := max(map(len, cells))) > most:
            file.reject_cell(longest, file.line)
        else:
            yield Row(file.line, file.line, cells)


class _RowLines:
    """The lines of a block, and of the next ones as long as a row goes on.

    Attributes:
        in_row: Whether a line of the row at hand was yielded.
    """

    def __init__(self, file: TextFile, block: str, blocks: Iterator[str]) -> None:
        self._file, self._lines, self._blocks = file, file.lines_of(block), blocks
        self.in_row = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = next(self._lines, None)
        if text is None and self.in_row:
            self._lines = self._file.lines_of(next(self._blocks))
            text = next(self._lines)
        if text is None:
            raise StopIteration
        self.in_row = True
        return text


def _quoted_rows(file: TextFile, layout: Layout, block: str, blocks: Iterator[str]) -> Iterator[Row]:
    most = file.options.limits.cell_length
    if most > csv.field_size_limit():
        csv.field_size_limit(most)  # of the whole process, which `csv` does not let us narrow
    lines = _RowLines(file, block, blocks)
    reader = csv.reader(lines, delimiter=layout.delimiter, strict=True)
    while True:
        line, lines.in_row = file.line + 1, False
        try:
            cells = next(reader)
        except csv.Error as error:
            if "field limit" in str(error):
                file.reject_cell(None, line, file.line_length if file.line == line else None)
            else:
                file.reject(f"the row that begins here is not CSV: {error}.", line)
        except StopIteration:
            return
        else:
            if cells and (longest := max(map(len, cells))) > most:
                file.reject_cell(longest, line)
            else:
                yield Row(line, file.line, [cell.strip() for cell in cells])


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
