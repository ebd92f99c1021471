"""Rows: rows of different lengths in two columns, and what a change does to them without a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array, offset_type


class Rows(NamedTuple):
    """Rows of different lengths, one after the other.

    Attributes:
        indptr: int32 or int64, shape (n + 1): row i is `values[indptr[i]:indptr[i + 1]]`.
        values: int32.
    """

    indptr: Array
    values: Array

    @classmethod
    def named(cls, columns: Mapping[str, Array], name: str) -> Rows:
        """Return the rows that two columns hold; rows of entities that a graph lacks are empty."""
        if f"{name}.indptr" not in columns:
            return cls(np.zeros(len(columns["entities.hashes"]) + 1, np.int32), np.empty(0, np.int32))
        return cls(columns[f"{name}.indptr"], columns[f"{name}.values"])

    @classmethod
    def of_pairs(cls, rows: Array, values: Array, size: int, values_below: int) -> Rows:
        """Return the values of each row, ascending, each once.

        Args:
            rows: The row of each value.
            values: The values.
            size: How many rows there are.
            values_below: All values are smaller.

        Example:
            >>> Rows.of_pairs(np.array([1, 0, 1]), np.array([5, 2, 3]), 3, 6).columns("x")["x.values"].tolist()
            [2, 3, 5]
        """
        width = max(values_below, 1)
        pairs = np.sort(rows.astype(np.int64) * width + values)  # np.unique hashes them before it sorts them
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
        counts = np.bincount(pairs // width, minlength=size)
        return cls(_starts(counts), (pairs % width).astype(np.int32))

    def columns(self, name: str) -> dict[str, Array]:
        """Return the two columns under names that start with `name`."""
        indptr = self.indptr.astype(offset_type(len(self.values)), copy=False)
        return {f"{name}.indptr": indptr, f"{name}.values": self.values}

    @property
    def lengths(self) -> Array:
        """The length of each row."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> Array:
        """The row of each value."""
        lengths = self.lengths
        return np.repeat(np.arange(len(lengths)), lengths)

    def row(self, id: int) -> list[int]:
        """Return one row."""
        values: list[int] = self.values[self.indptr[id] : self.indptr[id + 1]].tolist()
        return values

    def subset(self, kept: Array) -> Rows:
        """Return some rows, in their order.

        Args:
            kept: Which rows stay: bool, shape (n).
        """
        if kept.all():
            return self
        lengths = self.lengths
        return Rows(_starts(lengths[kept]), self.values[np.repeat(kept, lengths)])

    def joined(self, others: Rows) -> Rows:
        """Return these rows and others behind them."""
        if len(others.indptr) == 1:
            return self
        indptr = np.append(self.indptr, int(self.indptr[-1]) + others.indptr[1:].astype(np.int64))
        return Rows(indptr, np.append(self.values, others.values))

    def replaced(self, rows: Mapping[int, list[int]]) -> Rows:
        """Return the rows with others in place of some.

        Example:
            >>> rows = Rows(np.array([0, 2, 3]), np.array([7, 8, 9]))
            >>> rows.replaced({0: [1]}).values.tolist()
            [1, 9]
        """
        if not rows:
            return self
        ids = sorted(rows)
        lengths = self.lengths
        others = np.ones(len(lengths), np.bool_)
        others[ids] = False
        new_lengths = lengths.copy()
        new_lengths[ids] = [len(rows[id]) for id in ids]
        values = np.empty(int(new_lengths.sum()), np.int32)
        of_others = np.repeat(others, new_lengths)
        values[of_others] = self.values[np.repeat(others, lengths)]
        values[~of_others] = [value for id in ids for value in rows[id]]
        return Rows(_starts(new_lengths), values)


def new_ids(kept: Array) -> Array:
    """Return the id of each item once only some stay: int32, -1 for the others.

    Example:
        >>> new_ids(np.array([True, False, True])).tolist()
        [0, -1, 1]
    """
    ids = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    ids[~kept] = -1
    return ids


def _starts(lengths: Array) -> Array:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
