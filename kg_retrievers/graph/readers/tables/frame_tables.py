"""Frames of any library as columns of numbered values: pandas, polars, Arrow, lists of dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.readers.tables.encoded import Encoded, encode


class FrameTable(Protocol):
    """A table whose columns can be read in batches of rows.

    Attributes:
        kind: What it is, as "pandas".
        names: The names of its columns.
    """

    kind: str
    names: list[str]

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, so many rows at a time."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns."""


class ColumnTable:
    """A table of columns in memory: a frame of pandas or polars, or a mapping of lists."""

    def __init__(self, columns: Mapping[str, Any], kind: str) -> None:
        """Take the columns by name."""
        self.kind = kind
        self.names = [*columns]
        self._columns = columns

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, all rows at once."""
        yield [_encoded(self._columns[name]) for name in columns]

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
        from kg_retrievers.graph.readers.tables.arrow_files import ArrowTable

        return ArrowTable(frame, kind)
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = [str(name) for name in frame.columns]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"{who}: two columns have one name, in {names}. Rename one.")
        return ColumnTable({str(name): frame[name] for name in frame.columns}, kind)
    if isinstance(frame, Mapping):
        return ColumnTable(frame, "columns")
    if isinstance(frame, Sequence) and not isinstance(frame, str) and all(isinstance(row, Mapping) for row in frame):
        names = [*dict.fromkeys(str(name) for row in frame for name in row)]
        return ColumnTable({name: [row.get(name) for row in frame] for name in names}, "dictionaries")
    raise InvalidArgumentError(
        f"{who}: wanted a frame of pandas or polars, an Arrow table or a list of dictionaries, but got {frame!r:.100}. "
        "Triples in Python: KnowledgeGraph.from_triples(rows)."
    )


def _encoded(column: Any) -> Encoded:
    if hasattr(column, "factorize"):  # pandas
        try:
            codes, values = column.factorize()
            return Encoded(np.asarray(codes), values.tolist())
        except TypeError:  # lists and the like, which are refused with their row
            pass
    return encode(_listed(column))


def _listed(column: Any) -> Sequence[Any]:
    """Return the cells of a column as Python values."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            cells: Sequence[Any] = getattr(column, method)()
            return [cell.tolist() if hasattr(cell, "dtype") and hasattr(cell, "tolist") else cell for cell in cells]
    return column if isinstance(column, Sequence) else list(column)
