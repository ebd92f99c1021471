"""ColumnFile: a column that is written rows by rows before the save that names it, and goes on after a break."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage.manifest import SavedColumn

#: How many bytes are read at once.
BLOCK = 1 << 24

# How many digits of the key are in the name of the file; before them are eight of the width.
_DIGITS = 24


class ColumnFile:
    """A file of rows. What is written stays there when the writer is killed; the next writer finds it by its key.

    Args:
        folder: The folder.
        name: The name of the column.
        key: 32 hexadecimal digits of what the rows are made of.
        dtype: The type of the numbers.
        width: How many numbers a row has.
    """

    def __init__(self, folder: Path, name: str, key: str, dtype: npt.DTypeLike, width: int) -> None:
        """Open the file behind its last whole row; it is made where it is missing."""
        self.dtype, self.width = np.dtype(dtype), width
        self._path = folder / f"{name}-{width:08x}{key[:_DIGITS]}.column"
        with raise_write_errors(folder):
            self._path.touch()
            self._stream: BinaryIO = open(self._path, "r+b")  # noqa: SIM115
        self.cut(self._path.stat().st_size // self._row_size)

    @classmethod
    def found(cls, folder: Path, name: str, key: str, dtype: npt.DTypeLike) -> ColumnFile | None:
        """Return the file that an earlier writer left; None if there is none.

        A row of zeros alone ends what it holds: the system wrote no more before the power went.
        """
        for path in folder.glob(f"{name}-????????{key[:_DIGITS]}.column"):
            file = cls(folder, name, key, dtype, int(path.name[len(name) + 1 :][:8], 16))
            file.cut(file._written())
            return file
        return None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name

    @property
    def _row_size(self) -> int:
        return self.width * self.dtype.itemsize

    def append(self, rows: Array) -> None:
        """Write rows behind the others.

        Raises:
            FileWriteError: If the disk is full, or this user may not write there.
        """
        with raise_write_errors(self._path.parent):
            self._stream.write(np.ascontiguousarray(rows, self.dtype).data)
            self._stream.flush()
        self.rows += len(rows)

    def cut(self, rows: int) -> None:
        """Drop what is behind so many rows."""
        self.rows = rows
        self._stream.truncate(rows * self._row_size)
        self._stream.seek(rows * self._row_size)

    def array(self) -> Array:
        """Return the rows, mapped from the file: read-only, shape (rows, width)."""
        shape = (self.rows, self.width)
        if not self.rows:
            return np.empty(shape, self.dtype)  # there is no map of nothing
        return np.asarray(np.memmap(self._path, self.dtype, "r", shape=shape))

    def finish(self) -> SavedColumn:
        """Wait until the rows are on the disk, and return what the manifest says of them."""
        with raise_write_errors(self._path.parent):
            os.fsync(self._stream.fileno())
        checksum = 0
        self._stream.seek(0)
        while block := self._stream.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
        self.close()
        return SavedColumn(self.name, self.dtype.str, (self.rows, self.width), checksum)

    def close(self) -> None:
        """Close the file; what a full disk did not take is lost, as `append` told."""
        with suppress(OSError):
            self._stream.close()

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _written(self) -> int:
        """Return how many rows come before the first one of zeros alone."""
        rows = self.array()
        step = max(1, BLOCK // self._row_size)
        for start in range(0, self.rows, step):
            empty = ~rows[start : start + step].any(axis=1)
            if empty.any():
                return start + int(empty.argmax())
        return self.rows
