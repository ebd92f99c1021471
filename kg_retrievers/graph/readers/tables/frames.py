"""From frames to the rows of a knowledge graph: whole columns at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, listed
from kg_retrievers.graph.attributes import NO_ATTRIBUTE, SOURCE, plain_attribute, read_attribute_cell
from kg_retrievers.graph.building import NONE, GraphBuilder
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.opening import Limits, limit_error, skip_hints
from kg_retrievers.graph.readers.tables.cells import Encoded, cell_text, encode, is_nothing, listed_texts, plain_texts
from kg_retrievers.graph.readers.text_files import (
    ATTRIBUTE_PREFIX,
    ENTITY,
    Attributes,
    OnError,
    Roles,
    entity_columns,
    find_roles,
    repeated_name,
)


def add_entities(
    builder: GraphBuilder,
    table: FrameTable,
    attributes: Attributes,
    who: str,
    on_error: OnError,
    columns: Mapping[str, str] | None = None,
) -> int:
    """Add a table's statements about entities, and return how many rows had some: see `AttributeReader`.

    Args:
        builder: What takes the entities.
        table: The table.
        attributes: Whether further columns become facts.
        who: Begins the messages of errors; of a text file, its path.
        on_error: "skip" counts rows without a key, in a text file by lines.
        columns: What each column is, as `entity_columns` finds it.

    Raises:
        InvalidArgumentError: If there is no column with keys, or a row of a frame has none.
        GraphLoadError: If a row of a text file has none.
    """
    columns = columns or entity_columns(table.names)
    if "" not in columns.values():
        raise InvalidArgumentError(f"{who}: no column is called {' or '.join(ENTITY)}, but {', '.join(columns)}.")
    key_column = next(name for name, role in columns.items() if role == "")
    reader, count = AttributeReader(builder, attributes, who), 0
    for number, row in enumerate(table.rows(), 1):
        try:
            key, problem = cell_text(row[key_column]), "the key is empty"
        except ValueError as error:
            key, problem = None, str(error)
        if key is None:
            line, last = (number, number) if table.lines is None else table.lines[0].tolist()
            if on_error == "raise" and table.lines is None:
                raise InvalidArgumentError(f'{who}: row {line}: {problem}. Leave such rows out: on_error="skip".')
            if on_error == "raise":
                raise GraphLoadError(f"{problem}.", who, line, **skip_hints("line"))
            builder.skipped += last - line + 1
            continue
        given = {columns[str(name)]: value for name, value in row.items() if not is_nothing(value)}
        del given[""]
        reader.add_node(key, {name: listed_texts(name, value) for name, value in given.items()})
        count += 1
    reader.finish()
    return count


class FrameTable(Protocol):
    """A table whose columns can be read in batches of rows.

    Attributes:
        kind: What it is, as "pandas".
        names: The names of its columns.
    """

    kind: str
    names: list[str]

    @property
    def lines(self) -> Array | None:
        """Of a text file, the first and last line of each row of the last batch: shape (rows, 2)."""

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, so many rows at a time."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns."""


class ColumnTable:
    """Hold a table of columns in memory: of pandas, polars or Arrow, or a mapping of lists."""

    def __init__(self, columns: Mapping[str, Any], kind: str) -> None:
        """Take the columns by name."""
        self.kind = kind
        self.names, self.lines = [*columns], None
        self._columns = columns

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, all rows at once."""
        yield [_encoded_column(self._columns[name]) for name in columns]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns."""
        for cells in zip(*map(_listed, self._columns.values()), strict=True):
            yield dict(zip(self.names, cells, strict=True))


def frame_table(frame: Any, who: str) -> FrameTable:
    """Return a frame as a table of columns.

    Args:
        frame: A frame of pandas or polars, an Arrow table or whatever has `__arrow_c_stream__`, a mapping of columns,
            or a list of dictionaries.
        who: Begins the message of an error.

    Raises:
        InvalidArgumentError: If it is none of these, or two columns have one name.
    """
    kind = type(frame).__module__.partition(".")[0]
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        frame = frame.collect()  # a lazy frame of polars
    has_arrow = hasattr(frame, "__arrow_c_stream__") and find_spec("pyarrow") is not None
    if has_arrow and not hasattr(frame, "iloc"):
        from kg_retrievers.graph.readers.tables.arrow_files import arrow_columns

        return _named_columns(arrow_columns(frame), kind, who)
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        return _named_columns(((str(name), frame[name]) for name in frame.columns), kind, who)
    if isinstance(frame, Mapping):
        return ColumnTable(frame, "columns")
    if isinstance(frame, Sequence) and not isinstance(frame, str) and all(isinstance(row, Mapping) for row in frame):
        names = [*dict.fromkeys(str(name) for row in frame for name in row)]
        return ColumnTable({name: [row.get(name) for row in frame] for name in names}, "dictionaries")
    raise InvalidArgumentError(
        f"{who}: wanted a frame of pandas or polars, an Arrow table or a list of dictionaries, but got {frame!r:.100}. "
        "Triples in Python: KnowledgeGraph.from_triples(rows)."
    )


def _named_columns(columns: Iterable[tuple[str, Any]], kind: str, who: str) -> ColumnTable:
    named = [*columns]
    if name := repeated_name([name for name, _ in named]):
        raise InvalidArgumentError(f"{who}: two columns have one name, {name!r}. Rename one.")
    return ColumnTable(dict(named), kind)


def _encoded_column(column: Any) -> Encoded:
    if hasattr(column, "dictionary_encode"):  # pyarrow
        from kg_retrievers.graph.readers.tables.arrow_files import encoded_column

        return encoded_column(column)
    return encode(_listed(column))


def _listed(column: Any) -> Sequence[Any]:
    """Return the cells of a column as Python values."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            cells: Sequence[Any] = getattr(column, method)()
            return [cell.tolist() if hasattr(cell, "dtype") and hasattr(cell, "tolist") else cell for cell in cells]
    return column if isinstance(column, Sequence) else list(column)


_WHO = "KnowledgeGraph.from_frame"


class _Texts(NamedTuple):
    """A column as texts, or as attributes: for each row the position in `texts`; `problems` names those without one.

    The last of `texts` is None: it stands for the position -1 of an empty cell.
    """

    codes: Array
    texts: list[Any]
    problems: dict[int, str]

    @property
    def is_text(self) -> Array:
        """Whether there is a text: shape (rows)."""
        return np.array([text is not None for text in self.texts])[self.codes]


def read_frame(
    frame: Any,
    roles: Sequence[str | None],
    entities: Any,
    facts: Sequence[str],
    attributes: Attributes,
    on_error: OnError,
) -> GraphBuilder:
    """Read a frame: see `KnowledgeGraph.from_frame`.

    Args:
        frame: The facts.
        roles: The columns of heads, relations, tails and sources, if the user names them.
        entities: A frame that describes entities, or None.
        facts: Columns whose cells become facts about the head.
        attributes: Whether further columns of entities become facts.
        on_error: "skip" counts rows that hold no fact.

    Raises:
        InvalidArgumentError: If a column is not found, a row holds no fact, or an argument has no such value.
    """
    if on_error not in get_args(OnError):
        raise InvalidArgumentError(f'{_WHO}: on_error is "raise" or "skip", but got {on_error!r}.')
    builder = GraphBuilder()
    if attributes not in get_args(Attributes):
        raise InvalidArgumentError(f'{_WHO}: attributes is "facts" or "drop", but got {attributes!r}.')
    FrameReader(builder, on_error, attributes=attributes).add_facts(frame_table(frame, _WHO), roles, facts)
    if entities is not None:
        who = f"{_WHO}: entities"
        add_entities(builder, frame_table(entities, who), attributes, who, on_error)
    return builder


class FrameReader:
    """Adds the rows of a table to a builder.

    Args:
        builder: What takes the facts.
        on_error: "skip" counts rows that hold no fact.
        path: The file that the table is from, if it is from one.
        limits: What a file may hold.
        attributes: Whether further columns are attributes of the facts; "drop" leaves them out.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        on_error: OnError,
        path: Path | None = None,
        limits: Limits | None = None,
        attributes: Attributes = "facts",
    ) -> None:
        """Begin before the first row."""
        self._builder, self._on_error, self._path, self._limits = builder, on_error, path, limits
        self._keeps = attributes == "facts"
        self._row = 0

    def add_facts(
        self, table: FrameTable, named: Sequence[str | None] = (None,) * 4, facts: Sequence[str] = ()
    ) -> None:
        """Add the facts of a table.

        Args:
            table: The table.
            named: The columns of heads, relations, tails and sources, where the user names them.
            facts: Columns whose cells become facts about the head.

        Raises:
            InvalidArgumentError: If a column is not found, or a row of a frame holds no fact.
            GraphLoadError: The same of a file.
        """
        roles = self._roles(table.names, named, facts)
        further = [name for name in table.names if name.strip() and name not in roles and name not in facts]
        wanted = [name for name in (*roles, *facts) if name is not None]
        kept = further if self._keeps else []
        for batch in table.batches([*wanted, *kept]):
            self._add_batch(roles, batch, wanted, kept, table.lines)
        self._describe(table, roles, facts, further)

    def _roles(self, names: Sequence[str], named: Sequence[str | None], facts: Sequence[str]) -> Roles:
        strange = [name for name in (*named, *facts) if name is not None and name not in names]
        roles = None if strange else find_roles(names, named)
        if roles is not None:
            return roles._replace(source=None) if roles.source in facts else roles
        wanted = f"no column {strange[0]!r}" if strange else "no columns that are called head, relation and tail"
        message = f"{wanted}, but {listed(names, 20) or 'no column at all'}."
        if self._path is None:
            raise InvalidArgumentError(f"{_WHO}: {message} Say which they are: head=..., relation=..., tail=...")
        raise GraphLoadError(
            message,
            self._path,
            hint_python="Say which they are: columns=(head, relation, tail).",
            hint_shell="Say which they are: --columns HEAD,RELATION,TAIL",
        )

    def _texts(self, column: Encoded) -> _Texts:
        if column.codes is None:
            return _Texts(np.arange(len(column.values)), [*column.values, None], {})
        most = self._limits.cell_length if self._limits else None
        if (plain := plain_texts(column.values, most)) is not None:
            return _Texts(column.codes, [*plain, None], {})
        return self._values(column, cell_text)

    def _add_batch(
        self, roles: Roles, batch: Sequence[Encoded], names: Sequence[str], further: Sequence[str], lines: Array | None
    ) -> None:
        has_source = roles.source is not None
        if len(batch) == 3 + has_source and all(column.codes is None for column in batch):
            self._add_plain_rows(*(column.values for column in batch))
            return
        columns = [self._texts(column) for column in batch[:3]]
        heads, relations, tails = columns
        is_fact = heads.is_text & relations.is_text & tails.is_text
        if not is_fact.all():
            self._reject(is_fact, columns, names, lines)
        self._row += len(is_fact)
        kept = slice(None) if is_fact.all() else np.flatnonzero(is_fact)
        ends = np.stack([heads.codes[kept], tails.codes[kept] % len(tails.texts) + len(heads.texts)], axis=1)
        entities = _numbered(ends.reshape(-1), [*heads.texts, *tails.texts], self._builder.entities)
        head_ids, tail_ids = entities.reshape(-1, 2).T
        kinds = _numbered(relations.codes[kept], relations.texts, self._builder.relations)
        named = [(SOURCE, batch[3])] if has_source else []
        others = zip(further, batch[len(names) :], strict=True)
        named += [(name.removeprefix(ATTRIBUTE_PREFIX), one) for name, one in others]
        self._builder.add_ids(head_ids, kinds, tail_ids, self._sets(roles.source, named, kept) if named else None)
        for position in range(3 + has_source, len(names)):
            self._add_values(names[position], self._texts(batch[position]), kept, head_ids)

    def _add_plain_rows(
        self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str], sources: Sequence[str] | None = None
    ) -> None:
        """Add rows whose cells are all texts without white space around them."""
        builder = self._builder
        ends = builder.entities([end for ends in zip(heads, tails, strict=True) for end in ends])
        source_ids = None if sources is None else builder.sources(sources)
        builder.add_ids(ends[::2], builder.relations(relations), ends[1::2], source_ids)
        self._row += len(heads)

    def _sets(self, source: str | None, named: Sequence[tuple[str, Encoded]], kept: Any) -> Array | None:
        """Return the id of the set of attributes of each fact; None if no fact has any.

        Args:
            source: What the column of sources is called.
            named: The columns by the names of their attributes.
            kept: Which rows hold facts.
        """
        columns = list[tuple[str, list[Any]]]()
        codes = list[list[int]]()
        for name, column in named:
            is_source = name == SOURCE
            texts = self._texts(column) if is_source else self._attributes(column)
            self._count_problems(str(source) if is_source else name, texts, kept)
            columns.append((name, texts.texts))
            codes.append((texts.codes[kept] % len(texts.texts)).tolist())

        @cache
        def number(*row: int) -> int:
            pairs = zip(columns, row, strict=True)
            return self._builder.attribute_set({name: values[at] for (name, values), at in pairs})

        ids = np.fromiter(map(number, *codes), np.intc, len(codes[0]))
        return ids if (ids != NONE).any() else None

    def _attributes(self, column: Encoded) -> _Texts:
        """Return a column as attributes; in a file, numbers and lists are written as in JSON."""
        found = self._values(column, lambda cell: plain_attribute(cell.strip() if isinstance(cell, str) else cell))
        if self._path is None:
            return found
        pairs = zip([*column.values, None], found.texts, strict=True)
        read = [read_attribute_cell(text) if text and isinstance(cell, str) else text for cell, text in pairs]
        return found._replace(texts=read)

    def _values(self, column: Encoded, read: Callable[[Any], Any]) -> _Texts:
        """Read the distinct cells of a column."""
        values: list[Any] = []
        problems: dict[int, str] = {}
        most = self._limits.cell_length if self._limits else None
        for cell in column.values:
            try:
                value = read(cell)
                if most is not None and value is not None and len(str(value)) > most:
                    raise ValueError(f"a cell of {len(str(value)):,} characters")
            except NO_ATTRIBUTE as error:
                problems[len(values)], value = str(error), None
            values.append(value)
        codes = np.arange(len(values)) if column.codes is None else column.codes
        return _Texts(codes, [*values, None], problems)

    def _add_values(self, name: str, column: _Texts, kept: Any, heads: Array) -> None:
        """Add the cells of a column as facts about the heads."""
        self._count_problems(name, column, kept)
        values = _numbered(column.codes[kept], column.texts, self._builder.entities)
        given = values != NONE
        relation = np.full(int(given.sum()), self._builder.relation(name))
        self._builder.add_ids(heads[given], relation, values[given])

    def _count_problems(self, name: str, column: _Texts, kept: Any) -> None:
        """Count the cells beside a fact that cannot be read."""
        if column.problems:
            long = next((problem for problem in column.problems.values() if problem.startswith("a cell of")), None)
            if long and self._path is not None and self._on_error == "raise":
                raise limit_error(self._path, None, f"column {name!r}: {long}", "cell_length")
            count = int(np.isin(column.codes[kept], [*column.problems]).sum())
            what = "too long" if long else "no texts, numbers or dates"
            self._builder.reading.leave_out(f"cells of column {name!r} that are {what}", count)

    def _reject(self, is_fact: Array, columns: Sequence[_Texts], names: Sequence[str], lines: Array | None) -> None:
        """Raise for the first row without a fact, or count all of them, in a text file by lines."""
        if self._on_error == "skip":
            ends = np.zeros((len(is_fact), 2), np.int64) if lines is None else lines
            self._builder.skipped += int((ends[~is_fact, 1] - ends[~is_fact, 0] + 1).sum())
            return
        row = int(np.argmin(is_fact))
        column, name = next(pair for pair in zip(columns, names, strict=False) if not pair[0].is_text[row])
        code = int(column.codes[row]) % len(column.texts)
        place = f"row {self._row + row + 1}, " if lines is None else ""
        message = f"{place}column {name!r}: {column.problems.get(code, 'a cell is empty')}"
        if self._path is None:
            raise InvalidArgumentError(f"{_WHO}: {message}.", **skip_hints("row"))
        if column.problems.get(code, "").startswith("a cell of"):
            raise limit_error(self._path, None, message, "cell_length")
        line = None if lines is None else int(lines[row, 0])
        raise GraphLoadError(f"{message}.", self._path, line, **skip_hints("row"))

    def _describe(self, table: FrameTable, roles: Roles, facts: Sequence[str], further: Sequence[str]) -> None:
        reading = self._builder.reading
        reading.format = reading.format or table.kind
        shown = (f"{role} {name!r}" for role, name in roles._asdict().items() if name is not None)
        reading.understood["columns"] = ", ".join(shown)
        if facts:
            reading.understood["facts about the head"] = ", ".join(map(repr, facts))
        if further and self._keeps:
            columns = ", ".join(map(repr, further))
            reading.understood["attributes of facts"] = f"{columns} (facts={[*further]} makes facts about the head)"
        for name in () if self._keeps else further:
            reading.leave_out(f'cells of column {name!r} (attributes="facts" keeps them)', self._row)


def _numbered(codes: Array, texts: Sequence[str | None], number: Callable[[Sequence[str]], Array]) -> Array:
    """Return the id of the text in each row, `NONE` where it is None; new texts are numbered as they appear."""
    codes = codes % len(texts)
    first = np.full(len(texts), len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    used = np.argsort(first, kind="stable")[: int((first < len(codes)).sum())]
    used = np.array([code for code in used.tolist() if texts[code] is not None], np.intp)
    ids = np.full(len(texts), NONE, np.intc)
    ids[used] = number([text for code in used.tolist() if (text := texts[code]) is not None])
    return np.asarray(ids[codes])
