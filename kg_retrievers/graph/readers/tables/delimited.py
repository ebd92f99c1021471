"""Delimited text: facts, a row each, and tables of entities."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from reprlib import repr as short
from typing import NamedTuple, NoReturn

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.limits import limit_error
from kg_retrievers.graph.readers.opening import open_bytes
from kg_retrievers.graph.readers.tables.cells import listed_texts
from kg_retrievers.graph.readers.tables.frames import left_out_column, shown_roles
from kg_retrievers.graph.readers.tables.roles import ENTITY, Roles, entity_columns, find_roles, looks_like_header

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: How many bytes are read at a time. With more of them the texts leave the cache of the processor before they are used.
BLOCK_BYTES = 1 << 16

#: Characters that no text holds, in whatever encoding that has ASCII in it.
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class TextFile:
    """A file that is read line by line.

    Attributes:
        path: The file.
        line: The number of the last line that was read, from 1.
        skipped: How many malformed lines were left out.
    """

    def __init__(self, path: str | os.PathLike[str], options: FileOptions) -> None:
        """Begin before the first line."""
        self.path = Path(path)
        self.options = options
        self.line = 0
        self.skipped = 0
        self._text = ""

    def fail(self, message: str, line: int | None = None, **hints: str) -> NoReturn:
        """Raise a GraphLoadError at a line."""
        raise GraphLoadError(message, self.path, line, **hints)

    def reject(self, message: str, line: int, last: int | None = None, got: object = None) -> None:
        """Raise for the row from `line` to `last`, by default the last line read, or count its lines.

        Args:
            message: What is wrong; "{}" stands for `got`, which is shown only where this raises.
            line: Where the row begins.
            last: Where it ends.
            got: What was found.
        """
        if self.options.on_error == "raise":
            advice = "Correct the line, or leave out all such lines with"
            self.fail(
                message if got is None else message.replace("{}", short(got), 1),
                line,
                hint_python=f'{advice} on_error="skip".',
                hint_shell=f"{advice} --read on_error=skip.",
            )
        self.skipped += (self.line if last is None else last) - line + 1

    def reject_cell(self, length: int | None, line: int, enough: int | None = None) -> None:
        """Raise for a cell that is too long, or count its lines.

        Args:
            length: How many characters it has; None if it was not read to its end.
            line: Where its row begins.
            enough: A limit that would do, if its length is not known.
        """
        if self.options.on_error == "raise":
            known = f"{length:,}" if length else f"more than {self.options.limits.cell_length:,}"
            raise limit_error(self.path, line, f"a cell of {known} characters", "cell_length", length or enough)
        self.skipped += self.line - line + 1

    @property
    def line_length(self) -> int:
        """How many characters the last line has that was read."""
        return len(self._text)

    def lines(self) -> Iterator[str]:
        """Yield the lines from the first, each with its line break."""
        for block in self.blocks():
            yield from self.lines_of(block)

    def lines_of(self, block: str) -> Iterator[str]:
        """Yield the lines of a block, each with its line break; `line` is before the first of them."""
        for text in io.StringIO(block, newline=""):
            self.line += 1
            if "\0" in text:
                self.fail("NUL byte: this is no text, or its encoding is another (utf-16?).", self.line)
            self._text = text
            yield text

    def blocks(self) -> Iterator[str]:
        """Yield the whole lines of each part of the file. Who takes them counts them: by `lines_of`, or in `line`."""
        self.line = 0
        with open_bytes(self.path, self.options.limits) as opened:
            decoder = codecs.getincrementaldecoder(self.options.codec)()
            rest, is_last = "", False
            while not is_last:
                data = opened.read1(BLOCK_BYTES)
                is_last = not data
                try:
                    text = rest + decoder.decode(data, final=is_last)
                except UnicodeDecodeError as error:
                    self._fail_to_decode(error, opened.tell())
                end = len(text) if is_last else _end_of_lines(text)
                rest = text[end:]
                if end:
                    yield text[:end]

    def _fail_to_decode(self, error: UnicodeDecodeError, position: int) -> NoReturn:
        # The decoder saw the bytes up to the position of the file, and all before them were lines.
        offset = position - len(error.object) + error.start
        line = self.line + error.object[: error.start].count(b"\n") + 1
        self.fail(f"byte {offset} is not {error.encoding}.", line, **encoding_hints(error.object))


def _end_of_lines(text: str) -> int:
    r"""Return where the last whole line of a text ends; a line break "\r" at its very end may go on as "\r\n".

    Example:
        >>> _end_of_lines("a\nb"), _end_of_lines("a\r\nb\r"), _end_of_lines("a")
        (2, 3, 0)
    """
    return max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1


def encoding_hints(data: bytes) -> dict[str, str]:
    r"""Return what to do about bytes of a file that are none of its encoding, as arguments of errors.

    Example:
        >>> encoding_hints(b"Am\xe9lie")["hint_shell"], encoding_hints(b"\xe9\x01")["hint_shell"]
        ('Perhaps the file is --read encoding=latin-1.', 'It is no text: name a file that holds triples.')
    """
    is_utf_16 = data.startswith(_UTF_16)
    if not is_utf_16 and _CONTROLS.search(data):
        told = "It is no text: name a file that holds triples."
        return {"hint_python": told, "hint_shell": told}
    other = "utf-16" if is_utf_16 else "latin-1"
    advice = "Perhaps the file is"
    return {"hint_python": f'{advice} encoding="{other}".', "hint_shell": f"{advice} --read encoding={other}."}


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
        hint_shell="Give --read delimiter=C, or --read format=tsv, csv, pipe or jsonl.",
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


#: How many rows decide whether the first of them names the columns.
HEADER_ROWS = 10_000

#: How many characters of them are looked at.
HEADER_LENGTH = 1 << 20

#: The least number of rows below the first one that can tell that it names the columns.
LEAST_ROWS = 3

#: A first row is taken for no fact where at most this share of the rows below is as unlike the others as it is.
MOST_UNLIKE = 0.01


def read_fact_table(file: TextFile, layout: Layout, builder: GraphBuilder) -> None:
    """Add the facts of a table.

    A first row names the columns if it has names of `roles` for all three, or `columns` or `header` say so. A first
    row that may name columns, but does not name all three, is refused: see `_check_no_header`.

    Raises:
        GraphLoadError: If a row has not the cells of a fact, or the first row may be a header.
    """
    first, _ = _peek(split_rows(TextFile(file.path, file.options), layout))
    header = _fact_header(file, first)
    names = header or ["1", "2", "3"]
    roles = None if header is None else _roles(file, header)
    if roles is None:
        builder.reading.understood["columns"] = "head, relation, tail; the first row is a fact"
    else:
        builder.reading.understood["columns"] = shown_roles(roles)
    adder = _FactAdder(file, layout, builder, names, roles or Roles("1", "2", "3"))
    parts: Iterable[list[list[str]] | Iterator[Row]] = split_blocks(file, layout, len(names), adder.positions)
    if file.options.facts:
        parts = [split_rows(file, layout)]
    has_header = roles is not None
    for part in parts:
        if isinstance(part, list):
            adder.add_columns(part)
        else:
            adder.add_rows(islice(part, has_header, None))
        has_header = False
    for name in names:
        if roles is not None and name not in (*roles, *file.options.facts):
            builder.reading.leave_out(left_out_column(name), adder.count)


class _FactAdder:
    """Adds the facts of rows.

    Attributes:
        positions: Where head, relation and tail are in a row.
        count: How many rows it added.
    """

    def __init__(
        self, file: TextFile, layout: Layout, builder: GraphBuilder, names: Sequence[str], roles: Roles
    ) -> None:
        self._file, self._layout, self._builder, self._width = file, layout, builder, len(names)
        self._source = None if roles.source is None else names.index(roles.source)
        self._facts = [(name, names.index(name)) for name in file.options.facts]
        self.positions = [names.index(name) for name in roles[:3]]
        self.count = 0

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add rows one by one, and reject those that are no facts."""
        file, builder, width, pick = self._file, self._builder, self._width, itemgetter(*self.positions)
        for line, last, cells in rows:
            if len(cells) != width:
                wanted = f"wanted {width} cells ({self._layout.format})"
                file.reject(f"{wanted}, but got {len(cells)}: {{}}.", line, last, cells)
                continue
            head, relation, tail = pick(cells)
            if not (head and relation and tail):
                file.reject("wanted 3 texts, but a cell is empty: {}.", line, last, cells)
                continue
            self.count += 1
            builder.add(head, relation, tail, None if self._source is None else cells[self._source])
            for name, position in self._facts:
                if cells[position]:
                    builder.add(head, name, cells[position])

    def add_columns(self, columns: Sequence[Sequence[str]]) -> None:
        """Add rows at once: all of them are facts."""
        builder, (heads, relations, tails) = self._builder, (columns[position] for position in self.positions)
        ends = [""] * (2 * len(heads))
        ends[::2], ends[1::2] = heads, tails  # as rows one by one are numbered
        ids = builder.entities(ends)
        sources = None if self._source is None else builder.sources(columns[self._source])
        builder.add_ids(ids[::2], builder.relations(relations), ids[1::2], sources)
        self.count += len(heads)


def read_entity_table(file: TextFile, layout: Layout, builder: GraphBuilder) -> int:
    """Add what a table says about entities, and return how many rows it has.

    Columns are found by name, further ones are attributes. Without a header a row is entity and label. Several aliases
    or types in a cell stand between pipes, or are a list in JSON.

    Raises:
        GraphLoadError: If a row has no key, or more or fewer cells than the first.
    """
    rows = split_rows(file, layout)
    first, rows = _peek(rows)
    names, columns = _entity_header(file, first)
    if names is None:
        names, columns = ["", "label"], {"": "", "label": "label"}
    else:
        next(rows, None)
    key_at = next(position for position, name in enumerate(names) if columns[name] == "")
    reader, count = AttributeReader(builder, file.options.attributes, str(file.path)), 0
    for line, last, cells in rows:
        if len(cells) != len(names):
            file.reject(f"wanted {len(names)} cells ({layout.format}), but got {len(cells)}: {{}}.", line, last, cells)
        elif not cells[key_at] or (len(names) == 2 and not all(cells)):
            file.reject("wanted 2 texts, but a cell is empty: {}.", line, last, cells)
        else:
            given = {columns[name]: cell for name, cell in zip(names, cells, strict=True) if cell}
            del given[""]
            reader.add_node(cells[key_at], {name: listed_texts(name, cell) for name, cell in given.items()})
            count += 1
    reader.finish()
    return count


def _peek(rows: Iterator[Row]) -> tuple[list[Row], Iterator[Row]]:
    """Return the first rows, and all rows with them."""
    first: list[Row] = []
    length = 0
    for row in rows:
        first.append(row)
        length += sum(map(len, row.cells))
        if len(first) == HEADER_ROWS or length > HEADER_LENGTH:
            break
    return first, chain(first, rows)


def _fact_header(file: TextFile, first: Sequence[Row]) -> list[str] | None:
    """Return the names of the columns, or None where the first row is a fact.

    Raises:
        GraphLoadError: If the first row may be a header, but its names say not which columns are which.
    """
    options = file.options
    if not first or options.header is False:
        return None
    line, _, cells = first[0]
    if options.columns is not None:
        _check_named(file, first[0], options.columns)
        return cells
    if find_roles(cells) is not None:
        return cells
    if options.header or looks_like_header(cells) or _is_unlike_the_others(first):
        _refuse_header(file, line, cells)
    if options.facts or (len(cells) > 3 and all(len(row.cells) == len(cells) for row in first)):
        _refuse_header(file, line, cells)
    return None


def _roles(file: TextFile, names: list[str]) -> Roles | None:
    """Return which column holds what."""
    if strange := [name for name in file.options.facts if name not in names]:
        file.fail(f"facts names {strange}, but the columns are {names}.")
    roles = find_roles(names, *(file.options.columns or ()))
    return roles._replace(source=None) if roles and roles.source in file.options.facts else roles


def _entity_header(file: TextFile, first: Sequence[Row]) -> tuple[list[str] | None, dict[str, str]]:
    """Return the names of the columns, and what each is to `AttributeReader`; None where the first row is an entity."""
    options = file.options
    if not first or options.header is False:
        return None, {}
    cells = first[0].cells
    if options.columns is not None:
        _check_named(file, first[0], options.columns)
        roles = dict(zip(options.columns, ("", "label"), strict=True))
        return cells, {name: roles.get(name, name) for name in cells}
    columns = entity_columns(cells)
    if "" in columns.values() and set(columns.values()) & {"label", "aliases", "types"}:
        if len(columns) < len(cells):
            file.fail(f"two columns have one name: {cells}. Rename one.", first[0].line)
        return cells, columns
    if options.header or len(cells) > 2:
        file.fail(
            f"no columns are called {' or '.join(ENTITY)} and label; found {short(cells)}.",
            first[0].line,
            hint_python="Name them in the header, or say which they are: columns=(entity, label).",
        )
    return None, {}


def _check_named(file: TextFile, first: Row, columns: Sequence[str]) -> None:
    if any(first.cells.count(column) != 1 for column in columns):
        message = f"wanted a header with the columns {list(columns)}, once each, but found {first.cells}."
        file.fail(message, first.line)


def _is_unlike_the_others(rows: Sequence[Row]) -> bool:
    """Whether the first row of three cells names columns rather than a fact, judged by the first 10,000 rows.

    It does if none of its cells appears again in its column, nor its ends in the other column of ends, while at most
    1 % of the rows below are so, and they use at most half as many relations as they are.
    """
    others = [row.cells for row in rows[1:] if len(row.cells) == 3]
    if len(rows[0].cells) != 3 or len(others) < LEAST_ROWS:
        return False
    head, relation, tail = rows[0].cells
    relations = Counter(cells[1] for cells in others)
    ends = Counter(end for cells in others for end in (cells[0], cells[2]))
    if 2 * len(relations) > len(others) or relation in relations or head in ends or tail in ends:
        return False
    unlike = sum(relations[cells[1]] == ends[cells[0]] == ends[cells[2]] == 1 for cells in others)
    return unlike <= MOST_UNLIKE * len(others)


def _refuse_header(file: TextFile, line: int, cells: Sequence[str]) -> NoReturn:
    file.fail(
        f"the first row {short(list(cells))} seems to name columns, but not which are head, relation and tail.",
        line,
        hint_python='Say which they are: columns=("...", "...", "..."); or that the row is a fact: header=False.',
        hint_shell="Say which they are: --columns HEAD,RELATION,TAIL; or that the row is a fact: --read header=false",
    )
