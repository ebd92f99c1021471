"""Delimited text: facts, a row each, and tables of entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from reprlib import repr as short
from typing import NoReturn

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.tables.cell_texts import listed_texts
from kg_retrievers.graph.readers.tables.delimiters import Layout, Row, split_blocks, split_rows
from kg_retrievers.graph.readers.tables.frames import left_out_column, shown_roles
from kg_retrievers.graph.readers.tables.roles import ENTITY, Roles, entity_columns, find_roles, looks_like_header
from kg_retrievers.graph.readers.tables.text_lines import TextFile

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
        hint_shell="Say which they are: --columns HEAD,RELATION,TAIL; or that the row is a fact: --no-header",
    )
