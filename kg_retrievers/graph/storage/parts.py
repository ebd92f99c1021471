"""Store parts of named columns in a folder.

One manifest switches from one save to the next.

A reader finds the earlier save or the new one, never a mixture, whenever a writer is killed. A save takes these steps:

1. It takes the lock of the folder, so a second writer gets an error at once.
2. It writes the columns, each to a file with a new name, or behind the end of the file that holds the column now. It
   waits until they are on the disk.
3. It writes the manifest next to the present one, and renames it.
4. It removes files that the manifest does not name: columns of the earlier save, and leftovers of a writer that was
   killed.

A column may be given in four ways. An array is written whole. `KEEP` leaves the file as it is. `Grown(rows)` writes
rows behind the rows of the saved column, into the same file. Readers of the earlier save continue with the rows that
they know, and a writer that is killed leaves bytes that no manifest names. So the cost of a change depends on the
changed data. A `ColumnFile` is written before the save, and the next writer can use the part that a killed writer left.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from kg_retrievers.errors import FileFormatError, FileWriteError, GraphLoadError, IndexLoadError, InvalidArgumentError
from kg_retrievers.file_writing import raise_write_errors, sync_folder
from kg_retrievers.graph.columns import Array
from kg_retrievers.paths import checked_path

T = TypeVar("T")

#: Every change of the layout raises it by one. A folder of another version is refused.
FORMAT_VERSION = 4

MANIFEST = "manifest.json"

#: The names of files that a save makes: columns, and a manifest before it is renamed.
_OWN_FILES = re.compile(r"[a-z0-9_.]+-[0-9a-f]{32}\.(column|json)")


@dataclass(frozen=True)
class SavedColumn:
    """A column on disk: the first bytes of a file. Further bytes, if there are some, belong to nobody.

    Attributes:
        file: The name of the file in the folder.
        dtype: Its type, as numpy writes it: "<i4".
        shape: Its shape.
        checksum: The CRC-32 of its bytes.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    checksum: int

    def __post_init__(self) -> None:
        """Check that a file of this name can be a column of this type."""
        if not _OWN_FILES.fullmatch(self.file) or np.dtype(self.dtype).kind not in "biuf":
            raise ValueError(f"{self.file} of {self.dtype}: no column of this package")

    @property
    def size(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class SavedPart:
    """A part of a folder, such as "graph" and "index".

    Attributes:
        columns: Its columns, by name.
        meta: Further facts about it, as values of JSON.
    """

    columns: Mapping[str, SavedColumn] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The contents of a folder.

    Attributes:
        parts: The parts, by name.

    Example:
        >>> manifest = Manifest({"graph": SavedPart(meta={"skipped": 2})})
        >>> Manifest.from_json(manifest.to_json()) == manifest
        True
    """

    parts: Mapping[str, SavedPart] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text of the file."""
        content = {"format": FORMAT_VERSION, "parts": {name: asdict(part) for name, part in self.parts.items()}}
        return json.dumps(content | {"checksum": _checksum(content)}, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read back the output of `to_json`.

        Raises:
            ValueError: If the text is damaged, or of another format. The message says which.
        """
        try:
            content = json.loads(text)
            version = content["format"]
            if version == FORMAT_VERSION:
                if content.pop("checksum") != _checksum(content):
                    raise ValueError("the checksum differs")
                return cls(_PARTS.validate_python(content["parts"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
            raise ValueError("the manifest is damaged.") from cause
        raise ValueError(f"written in format {version!s:.20}, this package reads {FORMAT_VERSION}.")

    @property
    def sizes(self) -> dict[str, int]:
        """How many bytes of each file are named."""
        return {column.file: column.size for part in self.parts.values() for column in part.columns.values()}


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder.

    None if there is none, or it cannot be read.
    """
    try:
        return Manifest.from_json(_read(folder / MANIFEST) or b"")
    except (OSError, ValueError):
        return None


def own_files(folder: Path) -> list[Path]:
    """Return the files of columns and the unfinished manifests in a folder.

    Files that a user may have are not among them.
    """
    return [path for path in folder.iterdir() if _OWN_FILES.fullmatch(path.name)]


_PARTS = TypeAdapter(dict[str, SavedPart])


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


#: How many bytes are read or written at once.
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
        self.dtype, self.width, self.rows, self._checksum = np.dtype(dtype), width, 0, 0
        self._path = folder / f"{name}-{uuid4().hex}.column"
        with raise_write_errors(folder):
            self._stream: BinaryIO = open(self._path, "x+b")  # noqa: SIM115

    def append(self, rows: Array) -> None:
        """Write rows behind the others.

        Raises:
            FileWriteError: If the disk is full, or this user may not write there.
        """
        data = np.ascontiguousarray(rows, self.dtype).data
        with raise_write_errors(self._path.parent):
            self._stream.write(data)
            self._stream.flush()
        self.rows += len(rows)
        self._checksum = zlib.crc32(data, self._checksum)

    def array(self) -> Array:
        """Return the rows, mapped from the file: read-only, shape (rows, width)."""
        return _mapped(self._path, self.dtype, (self.rows, self.width))

    def finish(self) -> SavedColumn:
        """Wait until the rows are on the disk.

        Return the entry of the manifest about them.
        """
        with raise_write_errors(self._path.parent):
            os.fsync(self._stream.fileno())
        self.close()
        return SavedColumn(self._path.name, self.dtype.str, (self.rows, self.width), self._checksum)

    def close(self) -> None:
        """Close the file.

        Rows that a full disk did not take are lost, as the error of `append` said.
        """
        with suppress(OSError):
            self._stream.close()

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        self._path.unlink(missing_ok=True)


def _mapped(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Return the numbers of a file, read-only.

    There is no map of nothing.
    """
    return np.asarray(np.memmap(path, dtype, "r", shape=shape)) if math.prod(shape) else np.empty(shape, dtype)


#: The file whose lock is held. It is there while somebody writes, or after a writer was killed.
LOCK = ".writer.lock"


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the right to write to a folder. The system gives it back when the process ends, however it ends.

    Args:
        folder: The folder.

    Raises:
        FileWriteError: If another writer has it. The message names its process.
        OSError: If this user may not write there.
    """
    path = folder / LOCK
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as cause:
        reason, advice = f"{_owner(path)} is writing there", "Wait until it has ended, or name another folder."
        raise FileWriteError(f"{reason}.", folder, reason=reason, number=errno.EAGAIN, hint_python=advice) from cause
    with suppress(OSError):  # on a full disk only the message of the other writer is poorer
        path.write_text(str(os.getpid()))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # a writer that waits for it sees that the file is gone, and begins again
        lock.release()


def writer_of(folder: Path) -> str | None:
    """Return who writes to a folder now, such as "process 123", or None."""
    if not (folder / LOCK).exists():
        return None
    try:
        with folder_lock(folder):
            return None
    except FileWriteError as error:
        return str(error.strerror).removesuffix(" is writing there")
    except OSError:
        return None


def _owner(lock: Path) -> str:
    try:
        return f"process {int(_read(lock) or b'')}"
    except (OSError, ValueError):
        return "another process"


class Keep:
    """Stands in place of a column or a part that stays as it is saved."""


KEEP = Keep()


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
        columns: Its columns, by name: lower-case letters, digits, dots and underscores. Columns that are not named are
            dropped.
        meta: Further facts to keep about it, as values of JSON.
    """

    columns: Mapping[str, Column]
    meta: Mapping[str, Any]


#: Suffixes that no folder has.
_OF_FILES = (".csv", ".tsv", ".json", ".jsonl", ".ttl", ".nt", ".rdf", ".xml", ".graphml", ".parquet", ".gz")


class FolderWriter:
    """Writes to a folder, and nobody else meanwhile.

    Use it in a `with` statement. Data that is read in the block stays as saved there until `replace`.

    Args:
        folder: The folder. It is made if it is missing.

    Attributes:
        folder: The folder.
        before: The contents of the folder. An empty manifest if it holds nothing that can be read.

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
        """Name the folder. Nothing is done before the block begins."""
        self.folder = checked_path(folder, FileWriteError)
        self.before = Manifest()

    def __enter__(self) -> FolderWriter:
        """Take the lock of the folder.

        Raises:
            FileWriteError: If another process writes there, or this user may not write there.
            InvalidArgumentError: If the folder holds a `manifest.json` of something else.
        """
        if self.folder.suffix.lower() in _OF_FILES and not self.folder.is_dir():
            raise InvalidArgumentError(
                f"wanted a folder, but got {str(self.folder)!r}, the name of a file.",
                hint_python=f"Name a folder, or write a file: graph.write({str(self.folder)!r}).",
                hint_shell="Name a folder.",
            )
        with raise_write_errors(self.folder):
            self._is_new = not self.folder.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = folder_lock(self.folder)
            self._lock.__enter__()
        before = read_manifest(self.folder)
        if before is None and (self.folder / MANIFEST).exists() and not own_files(self.folder):
            self._lock.__exit__(None, None, None)
            raise InvalidArgumentError(
                f"{self.folder} holds a {MANIFEST} of something else, which would be lost. Name another folder."
            )
        self.before = before or Manifest()
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self._lock.__exit__(None, None, None)
        if self._is_new:
            with suppress(OSError):  # it holds something
                self.folder.rmdir()

    def replace(self, parts: Mapping[str, Part | Keep]) -> None:
        """Switch the folder to these parts.

        Args:
            parts: The parts, by name, with `KEEP` for one that stays. A part that is not named is dropped.

        Raises:
            FileWriteError: If the disk is full, or this user may not write there. The earlier save stays.
            KeyError: If a column or part that is to be kept or to grow is not saved there.
            ValueError: If a column has another name or type than a column may have.
        """
        with raise_write_errors(self.folder):
            try:
                saved = {name: self._write_part(name, part) for name, part in parts.items()}
                after = Manifest(saved)
                self._switch(after)
            except BaseException:
                with suppress(OSError):
                    _sweep(self.folder, self.before)
                raise
            self.before, self._is_new = after, False
            _sweep(self.folder, after)

    def _write_part(self, name: str, part: Part | Keep) -> SavedPart:
        if not isinstance(part, Part):
            return self.before.parts[name]
        columns = {column: self._write_column(name, column, values) for column, values in part.columns.items()}
        return SavedPart(columns, dict(part.meta))

    def _write_column(self, part: str, name: str, values: Column) -> SavedColumn:
        if isinstance(values, ColumnFile):
            return values.finish()
        if isinstance(values, np.ndarray):
            empty = SavedColumn(f"{part}.{name}-{uuid4().hex}.column", values.dtype.str, (0, *values.shape[1:]), 0)
            return self._write_rows(empty, values, "xb")
        saved = self.before.parts[part].columns[name]
        return self._write_rows(saved, values.rows, "r+b") if isinstance(values, Grown) else saved

    def _write_rows(self, saved: SavedColumn, rows: Array, mode: Literal["xb", "r+b"]) -> SavedColumn:
        """Write rows behind the rows of a column."""
        with open(self.folder / saved.file, mode) as stream:
            stream.seek(saved.size)
            checksum = _write(stream, rows, saved.checksum)
        shape = (saved.shape[0] + len(rows), *saved.shape[1:])
        return SavedColumn(saved.file, saved.dtype, shape, checksum)

    def _switch(self, after: Manifest) -> None:
        written = self.folder / f"manifest-{uuid4().hex}.json"
        with open(written, "xb") as stream:
            _write(stream, np.frombuffer(after.to_json().encode(), np.uint8))
        sync_folder(self.folder)
        os.replace(written, self.folder / MANIFEST)
        sync_folder(self.folder)
        if self._is_new:
            sync_folder(self.folder.absolute().parent)


def _write(stream: BinaryIO, values: Array, checksum: int = 0) -> int:
    """Write an array to the end of a file and to the disk.

    Return the checksum of all that it holds then.
    """
    content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK].data
        stream.write(block)
        checksum = zlib.crc32(block, checksum)
    stream.truncate()
    stream.flush()
    os.fsync(stream.fileno())
    return checksum


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Remove the files and the ends of files that a manifest does not name."""
    sizes = manifest.sizes
    for path in own_files(folder):
        with suppress(OSError):  # in use, on Windows: the next save removes it
            if path.name not in sizes:
                path.unlink()
            elif path.stat().st_size > sizes[path.name]:
                os.truncate(path, sizes[path.name])


#: Columns of up to so many bytes are compared with their checksums whenever they are opened, which takes 2 ms for the
#: longest of them. `verify` compares the others.
CHECKED = 1 << 22


@dataclass(frozen=True)
class OpenedPart:
    """A part that was opened.

    Attributes:
        columns: Its columns, memory-mapped and read-only.
        meta: Further facts that were kept about it.
    """

    columns: dict[str, Array]
    meta: dict[str, Any]


def save_parts(folder: str | Path, parts: Mapping[str, Part | Keep]) -> None:
    """Replace the save in a folder, like `FolderWriter.replace`.

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
    folder = checked_path(folder, error)

    def read(manifest: Manifest) -> dict[str, OpenedPart]:
        opened = {}
        for name in names:
            if name not in manifest.parts:
                raise _nothing(folder, name, error)
            part = manifest.parts[name]
            columns = {column: _map(folder, saved, error) for column, saved in part.columns.items()}
            opened[name] = OpenedPart(columns, dict(part.meta))
        return opened

    return _read_between_saves(folder, names[0], error, read)


def _read_between_saves(folder: Path, name: str, error: type[FileFormatError], read: Callable[[Manifest], T]) -> T:
    """Read files by a manifest, again if another save replaced them meanwhile.

    Args:
        folder: The folder.
        name: The name of a part, for the message.
        error: The class to raise.
        read: Reads the files.
    """
    try:
        while True:
            before = _read(folder / MANIFEST)
            try:
                return read(_manifest(folder, name, error))
            except FileFormatError:
                if before == _read(folder / MANIFEST):
                    raise
    except OSError as cause:  # without the right to read, or of a name that is too long
        raise error(
            f"cannot be read: {cause.strerror}.", folder, hint_python="Name a folder that this user may read."
        ) from cause


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a save, also a damaged one or one of another version."""
    if read_manifest(folder) is not None:
        return True
    with suppress(OSError):
        return (folder / MANIFEST).is_file() and bool(own_files(folder))
    return False


def may_hold_save(folder: Path) -> bool:
    """Tell whether a save to a folder is what its owner expects.

    The folder holds a save, leftovers of one, or nothing.
    """
    if not folder.exists() or read_manifest(folder) is not None:
        return True
    own = {path.name for path in own_files(folder)}
    known = own | {LOCK} | ({MANIFEST} if own else set())
    return known.issuperset(os.listdir(folder))


def saved_meta(folder: Path, name: str) -> Mapping[str, Any]:
    """Return the meta of a saved part.

    It is empty if nothing can be read there.
    """
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
        FileFormatError: Of the class `error`, if the folder holds nothing, or a column is damaged. The message names
            the damaged columns.
    """
    folder = checked_path(folder, error)

    def check(manifest: Manifest) -> int:
        damaged = [
            f"{part}.{name}"
            for part, saved in manifest.parts.items()
            for name, column in saved.columns.items()
            if _file_checksum(folder / column.file, column.size) != column.checksum
        ]
        if damaged:
            raise error(f"damaged: {', '.join(damaged)}.", folder, **_hints(folder))
        return sum(manifest.sizes.values())

    return _read_between_saves(folder, "index", error, check)


def _manifest(folder: Path, name: str, error: type[FileFormatError]) -> Manifest:
    """Return the manifest of a folder.

    The name of a part is for the message.
    """
    if not folder.is_dir():
        raise error(
            f"{'a file, but no folder' if folder.exists() else 'no such folder'}; no {name} is saved there.",
            folder,
            hint_python="A file is read by KnowledgeGraph.from_file(path).",
            hint_shell="",
        )
    content = _read(folder / MANIFEST)
    if content is None and (writer := writer_of(folder)):
        raise error(f"{writer} is writing there now, and has not finished.", folder, hint_python="Wait until it has.")
    if content is None and own_files(folder):
        raise error(
            "the save was interrupted before it was complete.",
            folder,
            hint_python="Save it again; GraphIndex.build goes on where it stopped.",
            hint_shell=f"The same command goes on where it stopped: kg-retrievers index ... --output {folder}",
        )
    if content is None:
        raise _nothing(folder, name, error)
    try:
        return Manifest.from_json(content)
    except ValueError as cause:
        raise error(str(cause), folder / MANIFEST, **_hints(folder)) from cause


def _map(folder: Path, saved: SavedColumn, error: type[FileFormatError]) -> Array:
    """Return a column, memory-mapped."""
    path = folder / saved.file
    try:
        size = path.stat().st_size
        if size < saved.size:
            raise ValueError(f"{size} bytes, wanted {saved.size}")
        column = _mapped(path, saved.dtype, saved.shape)
        if saved.size <= CHECKED and zlib.crc32(column.reshape(-1).view(np.uint8).data) != saved.checksum:
            raise ValueError("its checksum differs")
        return column
    except (OSError, ValueError) as cause:
        raise error(f"the column cannot be read ({cause}).", path, **_hints(folder)) from cause


def _file_checksum(path: Path, size: int) -> int | None:
    """Return the checksum of the first bytes of a file, or None if it is shorter."""
    checksum = 0
    try:
        with open(checked_path(path), "rb") as stream:
            while size and (block := stream.read(min(size, BLOCK))):
                checksum = zlib.crc32(block, checksum)
                size -= len(block)
    except (OSError, FileFormatError):
        return None
    return None if size else checksum


def _read(path: Path) -> bytes | None:
    """Return the content of a file, or None if there is none that could be read.

    Raises:
        OSError: If this user may not read it.
    """
    with suppress(FileFormatError):
        if checked_path(path).exists():
            return path.read_bytes()
    return None


def _nothing(folder: Path, name: str, error: type[FileFormatError]) -> FileFormatError:
    place = folder if may_hold_save(folder) else "FOLDER"
    manifest = read_manifest(folder)
    is_unindexed = name == "index" and manifest is not None and "graph" in manifest.parts
    reader = "open" if is_unindexed else "from_file"
    step = f'Make it: GraphIndex.build(KnowledgeGraph.{reader}(path), path="{place}").'
    hints = _hints(place, step if name == "index" else "Save it there first.", folder if is_unindexed else "FILE")
    return error(f"the folder holds no saved {name}.", folder, **hints)


def _hints(folder: Path | str, on_python: str = "Save it again.", graph: Path | str = "FILE") -> dict[str, Any]:
    on_shell = f"To index a graph: kg-retrievers index {graph} --output {folder}"
    return {"hint_python": on_python, "hint_shell": on_shell}
