"""ColumnFile: a column that is written rows by rows before the save that names it."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage.manifest import SavedColumn

#: How many bytes are read at once.
BLOCK = 1 << 24


class ColumnFile:
    """A file of rows. If the writer is killed, the next save removes it.

    Args:
        folder: The folder.
        name: The name of the column.
        dtype: The type of the numbers.
        width: How many numbers a row has.
    """

    def __init__(self, folder: Path, name: str, dtype: npt.DTypeLike, width: int) -> None:
        """Make the file."""
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self._path = folder / f"{name}-{uuid4().hex}.column"
        with raise_write_errors(folder):
            self._stream: BinaryIO = open(self._path, "x+b")  # noqa: SIM115

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name

    def append(self, rows: Array) -> None:
        """Write rows behind the others.

        Raises:
            FileWriteError: If the disk is full, or this user may not write there.
        """
        with raise_write_errors(self._path.parent):
            self._stream.write(np.ascontiguousarray(rows, self.dtype).data)
            self._stream.flush()
        self.rows += len(rows)

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
