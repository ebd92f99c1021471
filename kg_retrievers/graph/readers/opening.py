"""Opens the file of a graph: a regular one that may hold a graph, unpacked on the way, within limits."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import json
import lzma
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, ClassVar, NamedTuple

from pydantic import Field
from typing_extensions import Buffer

from kg_retrievers.errors import GraphLoadError, MissingExtraError
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.paths import checked_path

#: How many times its own size a compressed file may become if no limit is given. Text rarely exceeds 30. Deflate can
#: reach 1,032.
UNPACKED_RATIO = 50

#: The size that a compressed file may always reach, in bytes.
UNPACKED_FLOOR = 128 << 20


#: How many times its own size a packed file becomes, and a table in columns, for an estimate.
UNPACKED = 8

#: Bytes of memory and of the saved graph, and CPU minutes, for each byte of text. TSV of 43 million facts takes 1.1
#: bytes of memory, and other text at most 1.4 (a million facts of `benchmarks/synthetic_graph.py`).
MEMORY, SAVED, MINUTES = 1.2, 0.45, 1e-9

#: From so many bytes on, a table takes only so much of `MEMORY`, since most of it is in temporary files.
LARGE, OF_LARGE = 3 << 30, 0.4

#: The least memory, in bytes, of needs that are shown before a file is read.
TOLD = 500_000_000

#: Suffixes of tables in columns, which are packed within.
_COLUMNS = frozenset([".parquet", ".arrow", ".feather"])


@checked_dataclass
class Limits:
    """The most that a file may hold. A file that exceeds a limit is refused, and the error names the limit.

    Args:
        unpacked_bytes: Bytes that a compressed file, or the rows of Parquet or Arrow, become; None allows 50 times the
            size of the file, and always 128 MiB.
        line_bytes: Bytes of a line.
        document_bytes: Bytes of a document that is read as a whole: a JSON array or object, GraphML, GEXF.
        cell_length: Characters of one text: a cell, a literal, a value in JSON.
        columns: Columns of a table.
        max_seconds: Seconds of reading, before the graph is made of what was read.
        memory_bytes: Bytes of memory that the graph needs, by the estimate of `needs_of`; None allows what the machine
            and the limits of the process have.

    Raises:
        InvalidArgumentError: If a limit is below 1.

    Example:
        >>> Limits(columns=50).columns
        50
    """

    unpacked_bytes: int | None = Field(default=None, ge=1)
    line_bytes: int = Field(default=16 << 20, ge=1)
    document_bytes: int = Field(default=256 << 20, ge=1)
    cell_length: int = Field(default=1 << 20, ge=1)
    columns: int = Field(default=1_000, ge=1)
    max_seconds: float = Field(default=3_600, gt=0)
    memory_bytes: int | None = Field(default=None, ge=1)
    _end: ClassVar[float] = math.inf

    def started(self) -> Limits:
        """Return the limits of a reading that begins now."""
        begun = replace(self)
        object.__setattr__(begun, "_end", monotonic() + self.max_seconds)
        return begun

    def check_time(self, path: str | Path) -> None:
        """Check that the reading may go on. Every reader calls it for each piece of a file.

        Raises:
            GraphLoadError: If it took more than `max_seconds`.
        """
        if monotonic() > self._end:
            raise limit_error(path, None, f"reading took more than {self.max_seconds:,} seconds", "max_seconds")

    def bytes_of(self, packed: int) -> int:
        """Return how many bytes a compressed file of `packed` bytes may become."""
        if self.unpacked_bytes is not None:
            return self.unpacked_bytes
        return max(UNPACKED_FLOOR, UNPACKED_RATIO * packed)


def limit_error(path: str | Path, line: int | None, what: str, name: str, least: int | None = None) -> GraphLoadError:
    """Return the error of a file that exceeds a limit.

    Args:
        path: The file.
        line: Where in it, if that is known.
        what: What was found, as "a line of more than 16,777,216 bytes".
        name: The field of `Limits`.
        least: A value that would do, if it is known.
    """
    value = "N" if least is None else str(least)
    threat = "running without end" if name == "max_seconds" else "filling the memory"
    return GraphLoadError(
        f"{what}. The limit {name} keeps broken files from {threat}.",
        path,
        line,
        hint_python=f"Raise it if the file is right: limits=Limits({name}={value}).",
        hint_shell=f"Raise it if the file is right: --read limits.{name}={value}",
    )


def skip_hints(what: str) -> dict[str, str]:
    """Return the advice on a malformed line, row or statement, as arguments of errors."""
    advice = f"Correct the {what}, or leave out all such {what}s with"
    return {"hint_python": f'{advice} on_error="skip".', "hint_shell": f"{advice} --read on_error=skip."}


@contextmanager
def read_errors(path: Path, *also: type[Exception]) -> Iterator[None]:
    """Raise errors of reading or unpacking a file, and other errors, as a GraphLoadError."""
    wrong: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError, *also)
    try:
        yield
    except wrong as error:
        if isinstance(error, GraphLoadError | MemoryError):
            raise
        if isinstance(error, EOFError):
            raise GraphLoadError("cannot be read: the file is cut off. Fetch it again.", path) from error
        raise GraphLoadError(f"cannot be read: {' '.join(str(error).split()):.200}", path) from error


class BoundedFile(io.RawIOBase):
    """Reads the bytes of a file and raises as soon as there are too many of them, in all or in one line.

    Args:
        source: The bytes, unpacked.
        raw: The file that they are from, which may be the source itself.
        path: The file, for errors.
        limits: What is allowed.
        total: How many bytes there may be in all; None for a file that is not compressed.
        by_line: Whether lines are counted.
    """

    def __init__(
        self, source: BinaryIO, raw: BinaryIO, path: Path, limits: Limits, total: int | None, by_line: bool
    ) -> None:
        """Begin at the first byte."""
        self._source, self._raw, self._path, self._limits = source, raw, path, limits
        self._total, self._by_line = total, by_line
        self._size = self._since_break = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._size

    def close(self) -> None:
        """Close the source, too."""
        if not self.closed:
            self._source.close()
            self._raw.close()
        super().close()

    def readinto(self, buffer: Buffer) -> int:
        """Read the next bytes.

        Raises:
            GraphLoadError: If a limit is exceeded.
        """
        self._limits.check_time(self._path)
        view = memoryview(buffer).cast("B")
        read: Any = getattr(self._source, "read1", self._source.read)
        with read_errors(self._path):
            data: bytes = read(len(view))
        view[: len(data)] = data
        self._size += len(data)
        if self._total is not None and self._size > self._total:
            exceeded = f"the compressed file becomes more than {self._total:,} bytes"
            raise limit_error(self._path, None, exceeded, "unpacked_bytes")
        if self._by_line:
            self._count_line(data)
        return len(data)

    def _count_line(self, data: bytes) -> None:
        """Check the line that goes on in `data`, and the lines that lie within it."""
        first, *others = map(len, data.splitlines() or [b""])
        lengths = [self._since_break + first, *others]
        self._since_break = 0 if data.endswith((b"\n", b"\r")) else lengths[-1]
        if max(lengths) > self._limits.line_bytes:
            exceeded = f"a line of more than {self._limits.line_bytes:,} bytes"
            raise limit_error(self._path, None, exceeded, "line_bytes")


#: How like the name of a missing file another one must be to be suggested, in [0, 1].
NAME_SHARE = 0.75

#: The suffixes of compressed files.
PACKED = (".gz", ".bz2", ".xz", ".zst")

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_BUFFER = 1 << 18


def open_bytes(path: str | os.PathLike[str], limits: Limits, *, by_line: bool = True) -> io.BufferedReader:
    """Open a file for reading. `.gz`, `.bz2`, `.xz` and `.zst` are unpacked on the way, by suffix or first bytes.

    Reading raises a GraphLoadError if a limit is exceeded or the file is damaged.

    Args:
        path: A regular file.
        limits: What the file may hold.
        by_line: Whether `limits.line_bytes` counts: not for a format that needs no line breaks, as JSON.

    Raises:
        GraphLoadError: If there is no such file, it is a folder, a device, a pipe or a socket, or it is known to hold
            no graph, as a PDF.
        MissingExtraError: If the file is packed by Zstandard and nothing here can unpack it.
    """
    path = Path(path)
    check_regular(path)
    with read_errors(path):
        check_may_hold_graph(path)
        packing = packing_of(path)
        total = limits.bytes_of(path.stat().st_size) if packing else None
        raw = open(path, "rb", buffering=0)  # noqa: SIM115
        source = _UNPACKERS[packing](raw) if packing else raw
        bounded = BoundedFile(source, raw, path, limits, total, by_line)
    return io.BufferedReader(bounded, _BUFFER)


def read_document(path: Path, limits: Limits) -> bytes:
    """Return the bytes of a file, unpacked.

    Raises:
        GraphLoadError: As `open_bytes`, and if there are more than `limits.document_bytes`.
    """
    with open_bytes(path, limits, by_line=False) as opened:
        content = opened.read(limits.document_bytes + 1)
    if len(content) > limits.document_bytes:
        exceeded = f"a document of more than {limits.document_bytes:,} bytes"
        raise limit_error(path, None, exceeded, "document_bytes")
    return content


def check_regular(path: Path) -> None:
    """Check that a path is a regular file, or a link to one.

    Raises:
        GraphLoadError: If there is no such file, or it is a folder, a device, a pipe or a socket.
    """
    if not checked_path(path, GraphLoadError).exists():
        near = ", ".join(map(repr, _similar_names(path)))
        step = f"Did you mean: {near}?" if near else f"Check the path: it leads to {path.parent.absolute()}."
        raise GraphLoadError(f"there is no such file. {step}", path)
    if path.is_dir():
        raise GraphLoadError("is a folder; wanted a file of triples or entities.", path)


def packing_of(path: Path) -> str:
    """Return the suffix that says how a file is compressed, or an empty text if it is not."""
    suffix = path.suffix.lower()
    if suffix in PACKED:
        return suffix
    with open(path, "rb") as file:
        start = file.read(6)
    return next((packing for magic, packing in _MAGIC.items() if start.startswith(magic)), "")


def plain_name(path: Path) -> str:
    """Return the name of a file in lower case, without the suffix of its compression."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in PACKED else name


def _open_zstandard(raw: Any) -> Any:
    try:
        import pyarrow
    except ImportError as cause:
        raise MissingExtraError("Reading Zstandard files", "arrow") from cause
    return pyarrow.input_stream(raw, compression="zstd")


class Needs(NamedTuple):
    """The costs of reading files, roughly, by their sizes.

    Attributes:
        memory: The greatest memory, in bytes.
        disk: The size of the saved graph, in bytes.
        minutes: CPU time on one core.
    """

    memory: int
    disk: int
    minutes: int

    @property
    def told(self) -> str:
        """The needs in words, if they are large."""
        if self.memory < TOLD:
            return ""
        return f"about {self.memory / 1e9:.1f} GB of memory, {self.disk / 1e9:.1f} GB saved, {self.minutes} minutes"


def needs_of(paths: Iterable[Path]) -> Needs:
    """Estimate the costs of reading files before any is read."""
    sizes = [(path.stat().st_size, path) for path in paths if path.is_file()]
    size = sum(size * (UNPACKED if path.suffix in _COLUMNS or packing_of(path) else 1) for size, path in sizes)
    is_table = all(plain_name(path).endswith((".tsv", ".csv")) for _, path in sizes)
    held = min(size, LARGE) + OF_LARGE * max(size - LARGE, 0) if is_table else size
    return Needs(int(held * MEMORY), int(size * SAVED), round(size * MINUTES))


def check_needs(paths: Sequence[Path], limits: Limits) -> None:
    """Check that a graph fits the memory, as far as the sizes of its files tell.

    Raises:
        GraphLoadError: If it does not.
    """
    needs, has = needs_of(paths), limits.memory_bytes or _memory()
    if needs.memory > has:
        raise GraphLoadError(
            f"reading takes about {needs.memory / 1e9:.1f} GB of memory, and {has / 1e9:.1f} GB are allowed.",
            paths[0],
            hint_python="Leave the graph in a database (GraphIndex.connect), read a part of it, or allow more: "
            "limits=Limits(memory_bytes=N).",
            hint_shell="Leave the graph in a database and name its address, read a part of it, or allow more: "
            "--read limits.memory_bytes=N",
        )


def _memory() -> float:
    """Return the bytes of memory that this process may take, as far as the system tells."""
    found = list[float]()
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ImportError):
        import resource  # not on Windows

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        found += [most] if most != resource.RLIM_INFINITY else []
    with suppress(ValueError, OSError):
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return min(found, default=math.inf)


#: The functions that unpack an open file, by the suffix that says how it is compressed.
_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}


def _similar_names(path: Path) -> list[str]:
    """Return up to three names of files beside a path that are like its own; equal suffixes do not count."""
    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, cutoff=NAME_SHARE)
    return [name for name in names if Path(name).stem in stems][:3]


#: How many bytes from the beginning show the kind of a file.
_START = 512

#: The place in a tar archive's header that says so.
_TAR = slice(257, 262)


class _Kind(NamedTuple):
    """The kind of a file, the next step in Python and on the shell, its first bytes and its suffixes."""

    what: str
    python: str
    shell: str | None = None
    starts: Sequence[str] = ()
    suffixes: Sequence[str] = ()


#: The files that hold no graph.
_KINDS = {
    name: _Kind(**kind)
    for name, kind in json.loads((files("kg_retrievers.graph") / "no_graphs.json").read_text("utf-8")).items()
}

_PAGES = (b"<!doctype html", b"<html")
_PACKED_TARS = (".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def check_may_hold_graph(path: Path) -> None:
    """Check that a file is none of those that hold no graph.

    Raises:
        GraphLoadError: If it is one, with what to do about it.
    """
    with open(path, "rb") as file:
        kind = _KINDS.get(_kind_of(file.read(_START), path.name.lower()))
    if kind is not None:
        raise GraphLoadError(f"is {kind.what}.", path, hint_python=kind.python, hint_shell=kind.shell)


def _kind_of(start: bytes, name: str) -> str:
    """Return the name of the kind of a file by how it begins, or an empty text."""
    if name.endswith(_PACKED_TARS) or start[_TAR] == b"ustar":
        return "tar"
    if start.lstrip().lower().startswith(_PAGES):
        return "page"
    text = start.decode("latin-1")
    found = next((kind for kind, one in _KINDS.items() if text.startswith((*one.starts,))), "")
    if found in ("zip", "sheet"):  # or an old file of an office program
        return next((kind for kind, one in _KINDS.items() if Path(name).suffix in one.suffixes), found)
    return "" if found == "ladybug" and b"\0" not in start else found  # a text may begin so
