"""Storage: parts of named columns in a folder, switched from one save to the next by one manifest.

A reader finds the earlier save or the new one, never a mixture, whenever a writer is killed. What a save does:

1. It takes the lock of the folder: a second writer is told at once.
2. It writes the columns, each to a file with a new name, or behind the end of the file that holds the column now. It
   waits until they are on the disk.
3. It writes the manifest beside the present one, and renames it.
4. It removes what the manifest does not name: columns of the earlier save, and what a writer that was killed left.

A column may be given in four ways. An array is written whole. `KEEP` leaves the file as it is. `Grown(rows)` writes
rows behind those of the saved column, into the same file: readers of the earlier save go on with the rows that they
know, and a writer that is killed leaves bytes that no manifest names. So a change costs what changed. A `ColumnFile` is
written before the save, and what a killed writer left of it is of use to the next one.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers.errors import FileFormatError, GraphLoadError, IndexLoadError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage.lock import LOCK, writer_of
from kg_retrievers.graph.storage.manifest import MANIFEST, Manifest, SavedColumn, SavedPart, own_files, read_manifest
from kg_retrievers.graph.storage.writer import KEEP, Column, FolderWriter, Grown, Keep, Part

__all__ = [
    "KEEP",
    "Column",
    "FolderWriter",
    "Grown",
    "OpenedPart",
    "Part",
    "is_saved",
    "may_hold_save",
    "open_parts",
    "save_parts",
    "saved_meta",
    "verify",
]

#: Columns of up to so many bytes are compared with their checksums whenever they are opened, which takes 2 ms for the
#: longest of them; `verify` compares the others.
CHECKED = 1 << 22

#: How many bytes are read at once.
_BLOCK = 1 << 24


@dataclass(frozen=True)
class OpenedPart:
    """A part that was opened.

    Attributes:
        columns: Its columns, memory-mapped and read-only.
        meta: What else was kept of it.
    """

    columns: dict[str, Array]
    meta: dict[str, Any]


def save_parts(folder: str | Path, parts: Mapping[str, Part | Keep]) -> None:
    """Replace what is saved in a folder, as `FolderWriter.replace` does.

    Raises:
        FileWriteError: If another process writes there, the disk is full, or this user may not write there.
        InvalidArgumentError: If the folder is no folder of this package.
    """
    with FolderWriter(folder) as writer:
        writer.replace(parts)


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
            too short, a column of up to `CHECKED` bytes is damaged, or it was written by a later version of this
            package.
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
    """Whether a folder holds a save that can be read."""
    return read_manifest(folder) is not None


def may_hold_save(folder: Path) -> bool:
    """Whether a save to a folder is what its owner expects: it holds a save, what is left of one, or nothing."""
    if not folder.exists() or is_saved(folder):
        return True
    own = {path.name for path in own_files(folder)}
    known = own | {LOCK} | ({MANIFEST} if own else set())
    return known.issuperset(os.listdir(folder))


def saved_meta(folder: Path, name: str) -> Mapping[str, Any]:
    """Return the meta of a saved part; empty where nothing can be read there."""
    return (read_manifest(folder) or Manifest()).parts.get(name, SavedPart()).meta


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
        raise _unfinished(folder, name, error)
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
            raise ValueError(f"{size} bytes, wanted {saved.size}")
        column = np.asarray(np.memmap(path, saved.dtype, "r", shape=saved.shape)) if saved.size else _empty(saved)
        if saved.size <= CHECKED and zlib.crc32(column.reshape(-1).view(np.uint8).data) != saved.checksum:
            raise ValueError("its checksum differs")
        return column
    except (OSError, ValueError) as cause:
        raise error(f"the column cannot be read ({cause}).", path, **_save_again(folder)) from cause


def _empty(saved: SavedColumn) -> Array:
    return np.empty(saved.shape, saved.dtype)  # there is no map of nothing


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


def _unfinished(folder: Path, name: str, error: type[FileFormatError]) -> FileFormatError:
    """Return the error of a folder without a manifest; the name of a part is for the message."""
    if writer := writer_of(folder):
        return error(f"{writer} is writing there now, and has not finished.", folder, hint_python="Wait until it has.")
    if not own_files(folder):
        return _nothing(folder, name, error)
    return error(
        "the save was interrupted before it was complete.",
        folder,
        hint_python="Save it again; GraphIndex.build goes on where it stopped.",
        hint_shell=f"The same command goes on where it stopped: kg-retrievers index ... --output {folder}",
    )


def _nothing(folder: Path, name: str, error: type[FileFormatError]) -> FileFormatError:
    can_hold = may_hold_save(folder)
    return error(
        f"the folder holds no saved {name}.",
        folder,
        hint_python="Save it there first." if can_hold else "It holds something else: save it in a new folder first.",
        hint_shell=f"To index a file: kg-retrievers index FILE --output {folder if can_hold else 'FOLDER'}",
    )


def _save_again(folder: Path) -> dict[str, Any]:
    on_shell = f"To index a file: kg-retrievers index FILE --output {folder}"
    return {"hint_python": "Save it again.", "hint_shell": on_shell}
