"""A column as numbers: the position of each cell among the distinct values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph.building import NONE, TextIds
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.readers.tables.cell_texts import is_nothing


class Encoded(NamedTuple):
    """A column: for each row the position of its value in `values`, or -1 where the cell is empty."""

    codes: Array
    values: Sequence[Any]


def encode(cells: Sequence[Any]) -> Encoded:
    """Number the distinct values of a column; 1, 1.0 and True are three values.

    Example:
        >>> encode(["a", "b", "a"])
        Encoded(codes=array([0, 1, 0]), values=['a', 'b'])
    """
    if all(type(cell) is str for cell in cells):
        ids = TextIds()
        codes = np.fromiter((ids[cell] for cell in cells), np.int64, len(cells))
        return Encoded(codes, [*ids])
    numbers: dict[Hashable, int] = {}
    values: list[Any] = []
    codes = np.empty(len(cells), np.int64)
    for row, cell in enumerate(cells):
        if is_nothing(cell):
            codes[row] = NONE
            continue
        code = codes[row] = numbers.setdefault(_key(cell), len(values))
        if code == len(values):
            values.append(cell)
    return Encoded(codes, values)


def _key(cell: Any) -> Hashable:
    """Return what is equal for equal cells of one type."""
    key = tuple(cell) if isinstance(cell, list) else cell
    try:
        hash(key)
    except TypeError:
        return id(cell)
    return type(cell), key
