"""Cells of frames as texts, by stated rules for numbers and dates, and columns of them as numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from reprlib import repr as short
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from kg_retrievers.graph.building import NONE, TextIds
from kg_retrievers.graph.columns import Array

#: Characters that no text of a graph may hold: NUL and halves of surrogate pairs.
UNFIT = re.compile("[\0\ud800-\udfff]")

_NOTHING = ("NAType", "NaTType")  # of pandas

#: From here on a double does not hold each integer.
_LEAST_INEXACT = 2**53


def is_nothing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, NaT, NA, or a text of white space."""
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None or type(value).__name__ in _NOTHING:
        return True
    return isinstance(value, float | Decimal) and value != value


def cell_text(value: Any) -> str | None:
    """Return the text of a cell, without white space around it, or None if it is empty.

    A truth value is "true" or "false". A float without a fraction is an integer. A date and a time are written as in
    ISO 8601, midnight without a time zone as a date.

    Raises:
        ValueError: If it is no single value, or a text with NUL or half a surrogate pair.

    Example:
        >>> cell_text(2013.0), cell_text(7.5), cell_text(True), cell_text(datetime(2013, 12, 18))
        ('2013', '7.5', 'true', '2013-12-18')
    """
    if isinstance(value, str):
        text = str(value).strip()
        if UNFIT.search(text):
            raise ValueError(f"{short(text)} holds NUL or half a surrogate pair")
        return text or None
    return None if is_nothing(value) else _written(value)


def plain_texts(values: Sequence[Any], most: int | None) -> list[str] | None:
    """Return the `cell_text` of each value, or None unless all are texts that it takes, of at most that length.

    Example:
        >>> plain_texts(["a ", "b"], None), plain_texts(["a", ""], None), plain_texts(["a", 7], None)
        (['a', 'b'], None, None)
    """
    if not set(map(type, values)) <= {str}:
        return None
    texts = [value.strip() for value in values]
    too_long = most is not None and max(map(len, texts), default=0) > most
    return None if too_long or not all(texts) or UNFIT.search("\n".join(texts)) else texts


def _written(value: Any) -> str:
    if hasattr(value, "item"):  # a scalar of numpy
        value = value.item()
    match value:
        case bool():
            return str(value).lower()
        case float() if value.is_integer() and abs(value) < _LEAST_INEXACT:
            return str(int(value))
        case int() | float() | UUID():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.date().isoformat() if value.timetz() == time() else value.isoformat()
        case date() | time():
            return value.isoformat()
    raise ValueError(f"{short(value)} is no text, number, date or truth value")


def listed_texts(role: str, cell: Any) -> Any:
    """Return the aliases or types that stand between pipes in one cell, or any other cell as it is.

    Example:
        >>> listed_texts("aliases", "Alien|Alien 1"), listed_texts("label", "a|b")
        (['Alien', 'Alien 1'], 'a|b')
    """
    if role not in ("aliases", "types") or not isinstance(cell, str) or cell.startswith("["):
        return cell
    texts = [text.strip() for text in cell.split("|")]
    return [text for text in texts if text]


class Encoded(NamedTuple):
    """A column: for each row the position of its value in `values`, or -1 if the cell is empty.

    Without codes, each row has its own value: a text that is not empty, without white space around it.
    """

    codes: Array | None
    values: Sequence[Any]


def encode(cells: Sequence[Any]) -> Encoded:
    """Number the distinct values of a column. 1, 1.0 and True are three values.

    Example:
        >>> encode(["a", "b", "a"])
        Encoded(codes=array([0, 1, 0]), values=['a', 'b'])
    """
    if set(map(type, cells)) <= {str}:
        ids = TextIds()
        codes = np.fromiter(map(ids.__getitem__, cells), np.int64, len(cells))
        return Encoded(codes, [*ids])
    numbers: dict[Hashable, int] = {}
    values: list[Any] = []
    codes = np.empty(len(cells), np.int64)
    for row, cell in enumerate(cells):
        if is_nothing(cell):
            codes[row] = NONE
            continue
        code = codes[row] = numbers.setdefault(_cell_key(cell), len(values))
        if code == len(values):
            values.append(cell)
    return Encoded(codes, values)


def _cell_key(cell: Any) -> Hashable:
    """Return what is equal for equal cells of one type."""
    key = tuple(cell) if isinstance(cell, list) else cell
    try:
        hash(key)
    except TypeError:
        return id(cell)
    return type(cell), key
