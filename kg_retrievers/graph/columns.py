"""Columns of a graph: texts by id, their hashes, and columns that say nothing."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from tempfile import TemporaryFile
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kg_retrievers.errors import DamagedDataError

Array = npt.NDArray[Any]

#: How many strings are compared at once.
STRINGS_AT_ONCE = 1 << 16


def hash_of(encoded: bytes) -> bytes:
    """Return the 8 bytes of the hash of a string, given as UTF-8.

    It is the same on every machine.
    """
    return blake2b(encoded, digest_size=8).digest()


#: The remedy for damaged data.
DAMAGED = "Save or build it again. To see what else is damaged: kg-retrievers info FOLDER --verify"

#: Strings of up to so many bytes may be words for truth, with blanks around them.
SHORT = 8


class StringTable(Sequence[str]):
    """Unique strings with ids from 0.

    They are held as offsets and UTF-8 bytes with a sorted hash index.

    Args:
        offsets: int32, or int64 if that is too narrow, shape (n + 1): the start of each string in `data`.
        data: uint8: the strings, one after the other.
        hashes: uint64, shape (n): `hash_of` the strings, ascending.
        order: int32, shape (n): the id of the string that each hash belongs to.
    """

    def __init__(self, offsets: Array, data: Array, hashes: Array, order: Array) -> None:
        """Take the four columns as they are."""
        self._offsets, self._data, self._hashes, self._order = offsets, data, hashes, order

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringTable:
        """Give the strings ids in their order. They must be unique."""
        data, lengths, digests, left = bytearray(), array("q"), bytearray(), iter(strings)
        while encoded := [string.encode() for string in islice(left, STRINGS_AT_ONCE)]:
            data += b"".join(encoded)
            lengths.extend(map(len, encoded))
            digests += b"".join(map(hash_of, encoded))
        offsets = np.zeros(len(lengths) + 1, offset_type(len(data)))
        np.cumsum(lengths, out=offsets[1:])
        hashes = np.frombuffer(digests, "<u8")
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return cls(offsets, np.frombuffer(data, np.uint8), hashes[order].astype(np.uint64, copy=False), order)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array], name: str) -> StringTable:
        """Read back what `columns` returned."""
        return cls(*(columns[f"{name}.{part}"] for part in ("offsets", "data", "hashes", "order")))

    def columns(self, name: str) -> dict[str, Array]:
        """Return the four arrays under names that start with `name`."""
        parts = {"offsets": self._offsets, "data": self._data, "hashes": self._hashes, "order": self._order}
        return {f"{name}.{part}": array for part, array in parts.items()}

    def __len__(self) -> int:
        """The number of strings."""
        return len(self._hashes)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return one string by its id, or several by a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"StringTable holds {len(self)} strings, but got index {index}.")
        encoded = self._data[self._offsets[index] : self._offsets[index + 1]].tobytes()
        try:
            return encoded.decode()
        except UnicodeDecodeError as cause:
            text = f"a text of the graph is damaged: {encoded!r:.100}."
            raise DamagedDataError(text, hint_python=DAMAGED) from cause

    def __iter__(self) -> Iterator[str]:
        """Yield the strings in order."""
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: object) -> bool:
        """Whether the string is in the table."""
        return isinstance(value, str) and self.find(value) >= 0

    def ids_of(self, others: StringTable) -> Array:
        """Return the id here of each string of another table: int32.

        It is -1 if the string is missing.

        Cost: a binary search for each string of the other table, without a loop over them. Equal tables cost less.

        Example:
            >>> StringTable.from_strings(["a", "b", "c"]).ids_of(StringTable.from_strings(["c", "d"])).tolist()
            [2, -1]
        """
        if np.array_equal(self._offsets, others._offsets) and np.array_equal(self._data, others._data):
            return np.arange(len(self), dtype=np.int32)
        found = np.full(len(others), -1, np.int32)
        at = np.searchsorted(self._hashes, others._hashes)
        hit = np.flatnonzero(at < len(self))
        hit = hit[self._hashes[at[hit]] == others._hashes[hit]]
        here, there = self._order[at[hit]], others._order[hit]
        equal = np.empty(len(hit), np.bool_)
        for start in range(0, len(hit), STRINGS_AT_ONCE):
            some = slice(start, start + STRINGS_AT_ONCE)
            equal[some] = self._equal(here[some], others, there[some])
        found[there[equal]] = here[equal]
        for id in there[~equal].tolist():  # two strings with one hash
            found[id] = self.find(others[id])
        return found

    def _equal(self, ids: Array, others: StringTable, other_ids: Array) -> Array:
        """Return whether strings equal strings of another table, one by one."""
        firsts, other_firsts = self._offsets[ids], others._offsets[other_ids]
        lengths = self._offsets[ids + 1] - firsts
        equal: Array = lengths == others._offsets[other_ids + 1] - other_firsts
        lengths = np.where(equal, lengths, 0)
        here, owners = entries_between(firsts, firsts + lengths)
        there, _ = entries_between(other_firsts, other_firsts + lengths)
        equal[owners[self._data[here] != others._data[there]]] = False
        return equal

    def bytes_of(self, ids: Array) -> tuple[Array, Array]:
        """Return the bytes of some strings, one after the other: uint8.

        Also return how many each has.

        Example:
            >>> data, lengths = StringTable.from_strings(["a", "bc"]).bytes_of(np.array([1, 0]))
            >>> data.tobytes(), lengths.tolist()
            (b'bca', [2, 1])
        """
        firsts, lasts = self._offsets[ids].astype(np.int64), self._offsets[ids + 1]
        return self._data[entries_between(firsts, lasts)[0]], lasts - firsts

    def with_digits(self, ids: Array) -> Array:
        """Return which strings hold an ASCII digit or are short: bool.

        A short string has at most `SHORT` bytes.

        Example:
            >>> StringTable.from_strings(["Apollo 13", "Apollo Program", "yes"]).with_digits(np.arange(3)).tolist()
            [True, False, True]
        """
        firsts, lasts = self._offsets[ids], self._offsets[ids + 1]
        found: Array = lasts - firsts <= SHORT
        inside, owners = entries_between(firsts, lasts)
        found[owners[self._data[inside] - np.uint8(ord("0")) < 10]] = True
        return found

    def first_bytes(self, ids: Array) -> Array:
        """Return the first byte of each string, 0 if it is empty: uint8.

        Example:
            >>> StringTable.from_strings(["a", "", "b"]).first_bytes(np.array([2, 1])).tolist()
            [98, 0]
        """
        starts, ends = self._offsets[ids], self._offsets[ids + 1]
        found = np.zeros(len(ids), np.uint8)
        found[ends > starts] = self._data[starts[ends > starts]]
        return found

    def subset(self, kept: Array) -> StringTable:
        """Return the table of some strings, in their order.

        Args:
            kept: Which strings stay: bool, shape (n).
        """
        if kept.all():
            return self
        lengths = np.diff(self._offsets)
        offsets = np.append(0, np.cumsum(lengths[kept]))
        offsets = offsets.astype(offset_type(int(offsets[-1])))
        of_kept = kept[self._order]
        order = (np.cumsum(kept, dtype=np.int32) - 1)[self._order[of_kept]].astype(np.int32)
        return StringTable(offsets, self._data[np.repeat(kept, lengths)], self._hashes[of_kept], order)

    def joined(self, others: StringTable) -> StringTable:
        """Return a table with the strings of another appended.

        No string may be in both.

        Example:
            >>> list(StringTable.from_strings(["b"]).joined(StringTable.from_strings(["a"])))
            ['b', 'a']
        """
        if not len(others):
            return self
        at = np.searchsorted(self._hashes, others._hashes, "right")
        offsets = np.append(self._offsets, self._offsets[-1] + others._offsets[1:].astype(np.int64))
        return StringTable(
            offsets.astype(offset_type(int(offsets[-1]))),
            np.append(self._data, others._data),
            np.insert(self._hashes, at, others._hashes),
            np.insert(self._order, at, others._order + np.int32(len(self))),
        )

    def find(self, string: str) -> int:
        """Return the id of a string, or -1."""
        encoded = string.encode(errors="surrogatepass")
        digest = np.uint64(int.from_bytes(hash_of(encoded), "little"))
        position = int(self._hashes.searchsorted(digest))
        while position < len(self._hashes) and self._hashes[position] == digest:
            id = int(self._order[position])
            if self._data[self._offsets[id] : self._offsets[id + 1]].tobytes() == encoded:
                return id
            position += 1
        return -1


#: Columns of at least so many bytes are mapped from temporary files while a graph is made.
MAPPED = 1 << 24


def roomy(size: int, kind: npt.DTypeLike) -> Array:
    """Return a column to be filled. A long one is in a temporary file, which goes when the column does.

    The system may then write its pages to the disk when memory is short. If the disk is too full, or the system cannot
    reserve room there, the column is in memory.
    """
    length = size * np.dtype(kind).itemsize
    if length >= MAPPED and hasattr(os, "posix_fallocate"):
        with suppress(OSError), TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, length)  # a disk that is full later would end the process
            return np.asarray(np.memmap(file, kind, "r+", shape=(size,)))
    return np.empty(size, kind)


def frozen(column: Array) -> Array:
    """Return a contiguous read-only plain view.

    Compiled code sees one type, in memory or on disk.
    """
    view = np.ascontiguousarray(column).view(np.ndarray)
    view.flags.writeable = False
    return view


def spread(values: Array, most: int) -> Array:
    """Return at most so many of some values, evenly spread and in order.

    Example:
        >>> spread(np.arange(10), 4).tolist(), spread(np.arange(2), 4).tolist()
        ([0, 3, 6, 9], [0, 1])
    """
    some: Array = values[np.linspace(0, len(values) - 1, min(most, len(values))).astype(np.int64)]
    return some


def entries_between(firsts: Array, lasts: Array, most: int | None = None) -> tuple[Array, Array]:
    """Return the entries of several ranges, one range after the other.

    Also return the position of the range of each.

    Args:
        firsts: The start of each range.
        lasts: The end of each range, that entry excluded.
        most: The most entries in all. Further ones are left out.

    Example:
        >>> entries, ranges = entries_between(np.array([2, 7]), np.array([4, 9]), most=3)
        >>> entries.tolist(), ranges.tolist()
        ([2, 3, 7], [0, 0, 1])
    """
    counts = lasts - firsts
    before = np.cumsum(counts) - counts
    if most is not None:
        counts = np.clip(most - before, 0, counts)
    entries = np.arange(int(counts.sum())) + np.repeat(firsts - before, counts)
    return entries, np.repeat(np.arange(len(counts)), counts)


def distinct(values: Array) -> Array:
    """Return values ascending, each once, or themselves: `np.unique`, several times faster for integers.

    Example:
        >>> distinct(np.array([3, 1, 3])).tolist()
        [1, 3]
    """
    if (values[1:] > values[:-1]).all():
        return values
    ordered = np.sort(values)
    found: Array = ordered[are_first(ordered)]
    return found


def are_among(values: Array, ascending: Array) -> Array:
    """Return which values are among others, which ascend: bool.

    Example:
        >>> are_among(np.array([5, 1, 2]), np.array([1, 3, 5])).tolist()
        [True, True, False]
    """
    if len(ascending) * 8 < len(values):
        return np.isin(values, ascending)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: Array = ascending[at] == values
    return found


def are_first(ascending: Array) -> Array:
    """Return which values differ from the one before: bool."""
    found = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=found[1:])
    return found


def starts_of(lengths: Array) -> Array:
    """Return the starts of rows of given lengths, and the last end: int64."""
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def offset_type(most: int) -> type[np.signedinteger]:
    """Return the type of offsets up to a number.

    It is int32, or int64 if that is too narrow.
    """
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def fingerprint(columns: Mapping[str, Array], meta: Mapping[str, Any]) -> str:
    """Return 32 hexadecimal digits that identify columns and `meta`.

    They change with any byte of the columns or any value of `meta`.
    """
    digest = blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16)
    for name in sorted(columns):
        array = np.ascontiguousarray(columns[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def with_silent(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return columns including the silent ones.

    The silent ones say nothing, at a cost of 4 bytes per entity.
    """
    return {name: column for group in _silent_groups(columns) for name, column in group.items()} | dict(columns)


def without_silent(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return all columns of a graph except the silent ones."""
    kept = dict(columns)
    for group in _silent_groups(columns):
        if all(np.array_equal(columns[name], column) for name, column in group.items()):
            kept = {name: column for name, column in kept.items() if name not in group}
    return kept


def missing_columns(columns: Mapping[str, Array]) -> list[str]:
    """Return the columns that a graph lacks and should have.

    It has others that belong with them.
    """
    groups = [group for group in _silent_groups(columns) if any(name in columns for name in group)]
    return [name for group in groups for name in group if name not in columns]


def _silent_groups(columns: Mapping[str, Array]) -> tuple[dict[str, Array], ...]:
    """Return silent names, aliases and types.

    The entities of such a graph are called by their keys alone.
    """
    size = len(columns["entities.hashes"])
    every, none, empty = np.arange(size + 1, dtype=np.int32), np.empty(0, np.int32), np.zeros(size + 1, np.int32)
    names = {f"names.{part}": columns[f"entities.{part}"] for part in ("offsets", "data", "hashes", "order")}
    names |= {"labels": every[:-1], "name_entities.indptr": every, "name_entities.values": every[:-1]}
    aliases = {"aliases.indptr": empty, "aliases.values": none}
    types = StringTable.from_strings([]).columns("types") | {"entity_types.indptr": empty, "entity_types.values": none}
    return names, aliases, types | {"type_entities.indptr": empty[:1], "type_entities.values": none}
