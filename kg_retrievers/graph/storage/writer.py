"""FolderWriter: switches a folder from one save to the next, whenever it is killed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import uuid4

import numpy as np

from kg_retrievers.errors import FileWriteError, InvalidArgumentError
from kg_retrievers.file_writing import raise_write_errors, sync_folder
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage.column_file import ColumnFile
from kg_retrievers.graph.storage.lock import FolderLock
from kg_retrievers.graph.storage.manifest import (
    MANIFEST,
    Manifest,
    SavedColumn,
    SavedPart,
    is_column,
    own_files,
    read_manifest,
)

#: How many bytes are written at once.
_BLOCK = 1 << 24


class _Keep(Enum):
    KEEP = "keep"


Keep = Literal[_Keep.KEEP]

#: In place of a column or a part: what is saved stays.
KEEP: Literal[_Keep.KEEP] = _Keep.KEEP


@dataclass(frozen=True, eq=False)
class Grown:
    """The saved column with rows behind it.

    Args:
        rows: The new rows, of the type and the width of the saved ones.
    """

    rows: Array


Column = Array | Grown | Keep | ColumnFile


@dataclass(frozen=True)
class Part:
    """A part to save.

    Args:
        columns: Its columns, by name: lower-case letters, digits, dots and underscores. What is not named is dropped.
        meta: What else is kept of it: values of JSON.
    """

    columns: Mapping[str, Column]
    meta: Mapping[str, Any]


class FolderWriter:
    """Writes to a folder, and nobody else meanwhile.

    Use it in a `with` statement: what is read in the block stays what is saved there until `replace`.

    Args:
        folder: The folder; it is made where it is missing.

    Attributes:
        folder: The folder.
        before: What the folder holds; an empty manifest where it holds nothing that can be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from kg_retrievers.graph.storage.parts import open_parts, save_parts
        >>> with TemporaryDirectory() as folder:
        ...     save_parts(folder, {"graph": Part({"ids": np.arange(3)}, {"skipped": 0})})
        ...     with FolderWriter(folder) as writer:
        ...         skipped = writer.before.parts["graph"].meta["skipped"]
        ...         writer.replace({"graph": Part({"ids": Grown(np.array([7, 8]))}, {"skipped": skipped + 1})})
        ...     opened = open_parts(folder, ["graph"])["graph"]
        ...     opened.columns["ids"].tolist(), opened.meta
        ([0, 1, 2, 7, 8], {'skipped': 1})
    """

    def __init__(self, folder: str | Path) -> None:
        """Name the folder; nothing is done before the block begins."""
        self.folder = self._folder = Path(folder)
        self.before = Manifest()

    def __enter__(self) -> FolderWriter:
        """Take the lock of the folder.

        Raises:
            FileWriteError: If another process writes there, or this user may not write there.
            InvalidArgumentError: If the folder holds a `manifest.json` of something else.
        """
        with raise_write_errors(self._folder):
            self._is_new = not self._folder.exists()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self._folder)
        try:
            self._read_before()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self._lock.release()
        if self._is_new:
            with suppress(OSError):  # it holds something
                self._folder.rmdir()

    def _read_before(self) -> None:
        before = read_manifest(self._folder)
        if before is None and (self._folder / MANIFEST).exists() and not own_files(self._folder):
            raise InvalidArgumentError(
                f"{self._folder} holds a {MANIFEST} of something else, which would be lost. Name another folder."
            )
        self.before = before or Manifest()

    def replace(self, parts: Mapping[str, Part | Keep]) -> None:
        """Switch the folder to these parts.

        Args:
            parts: The parts, by name; `KEEP` for one that stays. A part that is not named is dropped.

        Raises:
            FileWriteError: If the disk is full, this user may not write there, or somebody who did not heed the lock
                wrote there meanwhile; what was saved before stays.
            InvalidArgumentError: If a column or part that is to be kept or to grow is not saved there, or new rows are
                of another type or width.
        """
        with raise_write_errors(self._folder, _size(parts)):
            try:
                saved = {name: self._write_part(name, part) for name, part in parts.items()}
                after = Manifest(saved)
                self._switch(after)
            except BaseException:
                with suppress(OSError):
                    _sweep(self._folder, self.before)
                raise
            self.before, self._is_new = after, False
            _sweep(self._folder, after)

    def _write_part(self, name: str, part: Part | Keep) -> SavedPart:
        before = self.before.parts.get(name)
        if isinstance(part, Part):
            saved = before.columns if before else {}
            columns = {
                column: self._write_column(f"{name}.{column}", values, saved.get(column))
                for column, values in part.columns.items()
            }
            return SavedPart(columns, dict(part.meta))
        if before is None:
            raise InvalidArgumentError(f"FolderWriter: {self._folder} holds no {name} to keep.")
        return before

    def _write_column(self, name: str, values: Column, saved: SavedColumn | None) -> SavedColumn:
        if isinstance(values, np.ndarray):
            file = f"{name}-{uuid4().hex}.column"
            if not is_column(file, values.dtype.str):
                raise InvalidArgumentError(
                    "FolderWriter: wanted arrays of numbers, by names of lower-case letters, digits, dots and "
                    f"underscores, but got {name!r} of {values.dtype.str}."
                )
            with open(self._folder / file, "xb") as stream:
                checksum = _write(stream, values)
            return SavedColumn(file, values.dtype.str, values.shape, checksum)
        if isinstance(values, ColumnFile):
            return values.finish()
        if saved is None:
            raise InvalidArgumentError(f"FolderWriter: {self._folder} holds no column {name} to keep.")
        if not isinstance(values, Grown) or not len(values.rows):
            return saved
        rows = values.rows
        if (rows.dtype.str, rows.shape[1:]) != (saved.dtype, saved.shape[1:]):
            raise InvalidArgumentError(
                f"FolderWriter: the rows of {name} are {saved.dtype} of shape (n, *{saved.shape[1:]}), but got "
                f"{rows.dtype.str} of shape {rows.shape}."
            )
        with open(self._folder / saved.file, "r+b") as stream:
            stream.seek(saved.size)
            checksum = _write(stream, rows, saved.checksum)
        return SavedColumn(saved.file, saved.dtype, (saved.shape[0] + len(rows), *saved.shape[1:]), checksum)

    def _switch(self, after: Manifest) -> None:
        if (read_manifest(self._folder) or Manifest()).version != self.before.version:
            reason = "somebody else saved there meanwhile"
            hint = "Open it again, and change what is there now."
            raise FileWriteError(f"{reason}.", self._folder, reason=reason, hint_python=hint)
        written = self._folder / f"manifest-{uuid4().hex}.json"
        with open(written, "xb") as stream:
            _write(stream, np.frombuffer(after.to_json().encode(), np.uint8))
        sync_folder(self._folder)
        os.replace(written, self._folder / MANIFEST)
        sync_folder(self._folder)
        if self._is_new:
            sync_folder(self._folder.absolute().parent)


def _write(stream: BinaryIO, values: Array, checksum: int = 0) -> int:
    """Write an array to the end of a file and to the disk; return the checksum of all that it holds then."""
    content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK].data
        stream.write(block)
        checksum = zlib.crc32(block, checksum)
    stream.truncate()
    stream.flush()
    os.fsync(stream.fileno())
    return checksum


def _size(parts: Mapping[str, Part | Keep]) -> int:
    """Return how many bytes of arrays are still to be written."""
    columns = [column for part in parts.values() if isinstance(part, Part) for column in part.columns.values()]
    arrays = (column.rows if isinstance(column, Grown) else column for column in columns)
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Remove the files and the ends of files that a manifest does not name."""
    sizes = manifest.sizes
    for path in own_files(folder):
        with suppress(OSError):  # in use, on Windows: the next save removes it
            if path.name not in sizes:
                path.unlink()
            elif path.stat().st_size > sizes[path.name]:
                os.truncate(path, sizes[path.name])
