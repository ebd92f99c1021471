"""Limits of what is read from a file, so that a broken or hostile one costs bounded memory and time."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

from typing_extensions import Buffer

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError

#: How many times its own size a compressed file may become where no limit is given. Text rarely exceeds 30; deflate
#: can reach 1,032.
UNPACKED_RATIO = 50

#: What a compressed file may always become, in bytes.
UNPACKED_FLOOR = 128 << 20

_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{}]', re.DOTALL)
_BREAKS = re.compile(rb"[\r\n]")


@dataclass(frozen=True)
class Limits:
    """What a file may hold at most. A file that exceeds a limit is refused, and the error names the limit.

    Args:
        unpacked_bytes: Bytes that a compressed file becomes; None allows 50 times its size, and always 128 MiB.
        line_bytes: Bytes of a line.
        document_bytes: Bytes of a document that is read as a whole: a JSON array or object, GraphML, GEXF.
        cell_length: Characters of one text: a cell, a literal, a value in JSON.
        columns: Columns of a table.
        json_depth: How deep arrays and objects of JSON are nested.

    Raises:
        InvalidArgumentError: If a limit is below 1.

    Example:
        >>> Limits(columns=50).columns
        50
    """

    unpacked_bytes: int | None = None
    line_bytes: int = 16 << 20
    document_bytes: int = 256 << 20
    cell_length: int = 1 << 20
    columns: int = 1_000
    json_depth: int = 64

    def __post_init__(self) -> None:
        """Check that each limit allows something."""
        for field in fields(self):
            value = getattr(self, field.name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not (is_count or (value is None and field.name == "unpacked_bytes")):
                raise InvalidArgumentError(f"Limits: {field.name} is {value!r}. Allow at least 1.")

    def bytes_of(self, packed: int) -> int:
        """Return how many bytes a compressed file of `packed` bytes may become."""
        if self.unpacked_bytes is not None:
            return self.unpacked_bytes
        return max(UNPACKED_FLOOR, UNPACKED_RATIO * packed)


def limit_error(
    path: str | Path, line: int | None, exceeded: str, name: str, least: int | None = None
) -> GraphLoadError:
    """Return the error of a file that exceeds a limit.

    Args:
        path: The file.
        line: Where in it, if that is known.
        exceeded: What was found, as "a line of more than 16,777,216 bytes".
        name: The field of `Limits`.
        least: A value that would do, if it is known.
    """
    value = "N" if least is None else str(least)
    return GraphLoadError(
        f"{exceeded}. The limit {name} keeps broken files from filling the memory.",
        path,
        line,
        hint_python=f"Raise it if the file is right: limits=Limits({name}={value}).",
        hint_shell=f"Raise it if the file is right: --read limits.{name}={value}",
    )


def is_too_deep(text: str, limit: int) -> bool:
    """Whether the arrays and objects in a text of JSON are nested more deeply than `limit`.

    Example:
        >>> is_too_deep('{"a": ["[[["]}', 2)
        False
    """
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth > limit:
            return True
    return False


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Raise what goes wrong while a file is read or unpacked as a GraphLoadError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, GraphLoadError):
            raise
        raise GraphLoadError(f"cannot be read: {error}", path) from error


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
        view = memoryview(buffer).cast("B")
        with read_errors(self._path):
            data = _read_some(self._source, len(view))
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
        limit = self._limits.line_bytes
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        lengths = [self._since_break + len(data)]
        if last >= 0:
            parts = _BREAKS.split(data) if limit < len(data) else _BREAKS.split(data, 1)[:1]
            lengths = [self._since_break + len(parts[0]), *map(len, parts[1:])]
        self._since_break = lengths[0] if last < 0 else len(data) - last - 1
        if max(*lengths, self._since_break) > limit:
            raise limit_error(self._path, None, f"a line of more than {limit:,} bytes", "line_bytes")


def _read_some(source: Any, size: int) -> bytes:
    read: Any = getattr(source, "read1", source.read)
    data: bytes = read(size)
    return data
