"""Storage: parts of named columns in a folder, switched from one save to the next by one manifest.

A reader finds the earlier save or the new one, never a mixture, whenever a writer is killed. What a save does:

1. It takes the lock of the folder: a second writer is told at once.
2. It writes the columns, each to a file with a new name, or behind the end of the file that holds the column now. It
   waits until they are on the disk.
3. It writes the manifest beside the present one, and renames it.
4. It removes what the manifest does not name: columns of the earlier save, and what a writer that was killed left.

A column may be given in three ways. An array is written whole. `KEEP` leaves the file as it is. `Grown(rows)` writes
rows behind those of the saved column, into the same file: readers of the earlier save go on with the rows that they
know, and a writer that is killed leaves bytes that no manifest names. So a change costs what changed.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import uuid4

import numpy as np

from kg_retrievers.errors import (
    FileFormatError,
    FileWriteError,
    GraphLoadError,
    IndexLoadError,
    InvalidArgumentError,
)
from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph import format_1
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.folder_lock import LOCK, FolderLock
from kg_retrievers.graph.manifest import MANIFEST, Manifest, SavedColumn, SavedPart, own_files, read_manifest

#: How many bytes are read or written at once.
_BLOCK = 1 << 24


class _Keep(Enum):
    KEEP = "keep"


#: In place of a column or a part: what is saved stays.
KEEP: Literal[_Keep.KEEP] = _Keep.KEEP


@dataclass(frozen=True, eq=False)
class Grown:
    """The saved column with rows behind it.

    Args:
        rows: The new rows, of the type and the width of the saved ones.
    """

    rows: Array


Column = Array | Grown | Literal[_Keep.KEEP]


@dataclass(frozen=True)
class Part:
    """A part to save.

    Args:
        columns: Its columns, by name: lower-case letters, digits, dots and underscores. What is not named is dropped.
        meta: What else is kept of it: values of JSON.
    """

    columns: Mapping[str, Column]
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class OpenedPart:
    """A part that was opened.

    Attributes:
        columns: Its columns, memory-mapped and read-only.
        meta: What else was kept of it.
    """

    columns: dict[str, Array]
    meta: dict[str, Any]


def save_parts(folder: str | Path, parts: Mapping[str, Part | Literal[_Keep.KEEP]]) -> None:
    """Replace what is saved in a folder, as `FolderWriter.replace` does.

    Raises:
        FileWriteError: If another process writes there, the disk is full, or this user may not write there.
        InvalidArgumentError: If the folder is no folder of this package.
    """
    with FolderWriter(folder) as writer:
        writer.replace(parts)


class FolderWriter:
    """Writes to a folder, and nobody else meanwhile.

    Use it in a `with` statement: what is read in the block stays what is saved there until `replace`.

    Args:
        folder: The folder; it is made where it is missing.

    Attributes:
        before: What the folder holds; an empty manifest where it holds nothing that can be read.

    Example:
        >>> from tempfile import TemporaryDirectory
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
        self._folder = Path(folder)
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

    def replace(self, parts: Mapping[str, Part | Literal[_Keep.KEEP]]) -> None:
        """Switch the folder to these parts.

        Args:
            parts: The parts, by name; `KEEP` for one that stays. A part that is not named is dropped.

        Raises:
            FileWriteError: If the disk is full, this user may not write there, or somebody who did not heed the lock
                wrote there meanwhile; what was saved before stays.
            InvalidArgumentError: If a column or part that is to be kept or to grow is not saved there, or new rows are
                of another type or width.
        """
        with raise_write_errors(self._folder):
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
            format_1.remove(self._folder)

    def _write_part(self, name: str, part: Part | Literal[_Keep.KEEP]) -> SavedPart:
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
            with open(self._folder / file, "xb") as stream:
                checksum = _write(stream, values)
            return SavedColumn(file, values.dtype.str, values.shape, checksum)
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
        _sync_folder(self._folder)
        os.replace(written, self._folder / MANIFEST)
        _sync_folder(self._folder)
        if self._is_new:
            _sync_folder(self._folder.absolute().parent)


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


def _sync_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk."""
    if sys.platform == "win32":
        return  # it opens no folders
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Remove the files and the ends of files that a manifest does not name."""
    sizes = manifest.sizes
    for path in own_files(folder):
        with suppress(OSError):  # in use, on Windows: the next save removes it
            if path.name not in sizes:
                path.unlink()
            elif path.stat().st_size > sizes[path.name]:
                os.truncate(path, sizes[path.name])


# --- reading ----------------------------------------------------------------------------------------------------------


def open_parts(
    folder: str | Path, names: Sequence[str], error: type[FileFormatError] = GraphLoadError
) -> dict[str, OpenedPart]:
    """Open parts that one save wrote.

    Args:
        folder: The folder.
        names: The names of the parts.
        error: The class to raise.

    Raises:
        FileFormatError: Of the class `error`, if there is no such folder, it holds no such part, a file is missing or
            too short, or it was written by a later version of this package.
    """
    folder = Path(folder)
    while True:
        before = _read(folder / MANIFEST)
        try:
            return _open_parts(folder, names, error)
        except FileFormatError:
            if before == _read(folder / MANIFEST):
                raise  # else another save replaced the files while they were opened


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a save that can be read, of this version or an earlier one."""
    return read_manifest(folder) is not None or format_1.is_saved(folder)


def may_hold_save(folder: Path) -> bool:
    """Whether a save to a folder is what its owner expects: it holds a save, what is left of one, or nothing."""
    if not folder.exists() or is_saved(folder):
        return True
    own = {path.name for path in own_files(folder)}
    known = own | {LOCK} | ({MANIFEST} if own else set())
    return known.issuperset(os.listdir(folder))


def saved_meta(folder: Path, name: str) -> Mapping[str, Any]:
    """Return the meta of a saved part; empty where nothing can be read there."""
    manifest = read_manifest(folder)
    if manifest is None:
        return format_1.read_meta(folder, name)
    return manifest.parts.get(name, SavedPart()).meta


def verify(folder: str | Path, error: type[FileFormatError] = IndexLoadError) -> int:
    """Read all columns of a folder, and compare them with their checksums.

    Cost: about a second for each GB.

    Args:
        folder: The folder.
        error: The class to raise.

    Returns:
        How many bytes were read.

    Raises:
        FileFormatError: Of the class `error`, if the folder holds nothing, or a column is damaged; the message names
            the damaged columns.
    """
    folder = Path(folder)
    while True:
        manifest = _manifest(folder, "index", error)
        damaged = [
            f"{part}.{name}"
            for part, saved in manifest.parts.items()
            for name, column in saved.columns.items()
            if _checksum(folder / column.file, column.size) != column.checksum
        ]
        if not damaged:
            return sum(manifest.sizes.values())
        if _read(folder / MANIFEST) == manifest.to_json().encode():
            raise error(f"damaged: {', '.join(damaged)}.", folder, **_save_again(folder))


def _open_parts(folder: Path, names: Sequence[str], error: type[FileFormatError]) -> dict[str, OpenedPart]:
    if not (folder / MANIFEST).exists() and format_1.is_saved(folder):
        return {name: OpenedPart(*format_1.open_part(folder, name, error)) for name in names}
    manifest = _manifest(folder, names[0], error)
    opened = {}
    for name in names:
        if name not in manifest.parts:
            raise _nothing(folder, name, error)
        part = manifest.parts[name]
        columns = {column: _map(folder, saved, error) for column, saved in part.columns.items()}
        opened[name] = OpenedPart(columns, dict(part.meta))
    return opened


def _manifest(folder: Path, name: str, error: type[FileFormatError]) -> Manifest:
    """Return the manifest of a folder; the name of a part is for the message."""
    if not folder.is_dir():
        raise error(
            f"{'a file, but no folder' if folder.exists() else 'no such folder'}; no {name} is saved there.", folder
        )
    content = _read(folder / MANIFEST)
    if content is None:
        if own_files(folder):
            raise error("the save was interrupted before it was complete.", folder, **_save_again(folder))
        raise _nothing(folder, name, error)
    try:
        return Manifest.from_json(content)
    except ValueError as cause:
        raise error(str(cause), folder / MANIFEST, **_save_again(folder)) from cause


def _map(folder: Path, saved: SavedColumn, error: type[FileFormatError]) -> Array:
    """Return a column, memory-mapped."""
    path = folder / saved.file
    try:
        size = path.stat().st_size
        if size < saved.size:
            reason = f"{size} bytes, wanted {saved.size}"
        elif not saved.size:
            return np.empty(saved.shape, saved.dtype)
        else:
            return np.asarray(np.memmap(path, saved.dtype, "r", shape=saved.shape))
    except (OSError, ValueError) as cause:
        raise error(f"the column cannot be read ({cause}).", path, **_save_again(folder)) from cause
    raise error(f"the column cannot be read ({reason}).", path, **_save_again(folder))


def _checksum(path: Path, size: int) -> int | None:
    """Return the checksum of the first bytes of a file; None where it is shorter."""
    checksum = 0
    try:
        with open(path, "rb") as stream:
            while size and (block := stream.read(min(size, _BLOCK))):
                checksum = zlib.crc32(block, checksum)
                size -= len(block)
    except OSError:
        return None
    return None if size else checksum


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _nothing(folder: Path, name: str, error: type[FileFormatError]) -> FileFormatError:
    on_shell = _save_again(folder)["hint_shell"]
    return error(f"the folder holds no saved {name}.", folder, hint_python="Save it there first.", hint_shell=on_shell)


def _save_again(folder: Path) -> dict[str, Any]:
    on_shell = f"To index a file: kg-retrievers index FILE --output {folder}"
    return {"hint_python": "Save it again.", "hint_shell": on_shell}
