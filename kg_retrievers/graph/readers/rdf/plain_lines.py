"""Lines of N-Triples that need no parser, and the parts between them that do."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from kg_retrievers.graph.readers.rdf.guards import Guard

#: How many bytes are read at a time. With more of them the texts leave the cache of the processor before they are used.
BLOCK_BYTES = 1 << 16

#: A line of so many bytes is handed on before its end is read, so that the parser can refuse it.
LONG_LINE = 1 << 20

# Some of the IRIs that RFC 3987 allows; the others are left to the parser.
_PATH = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef-]++|%[0-9A-Fa-f]{2})*+"
_PLAIN_IRI = re.compile(
    rf"[A-Za-z][A-Za-z0-9]*+:(?://[A-Za-z0-9.-]++(?:/{_PATH})?|(?!/){_PATH})(?:\?{_PATH})?(?:#{_PATH})?"
)
_STATEMENTS = re.compile(rb"^[ \t]*+[^# \t\r\n]|\r[ \t]*+[^# \t\r\n]", re.MULTILINE)  # those begin that say something
_BREAKS = re.compile(rb"\r\n?|\n")


def are_plain(iris: Iterable[str]) -> bool:
    """Whether all texts are IRIs that any parser takes as they are.

    Example:
        >>> are_plain(["http://example.org/a?b#c", "https://example.org"]), are_plain(["http://example.org/%zz"])
        (True, False)
    """
    return all(map(_PLAIN_IRI.fullmatch, iris))


def split_plain(block: bytes) -> tuple[list[str], list[str], list[str]] | None:
    r"""Return subjects, predicates and objects of a block whose every line is `<...> <...> <...> .`, None of others.

    What stands between the brackets may hold anything: see `are_plain`.

    Example:
        >>> split_plain(b"<a:a> <b:b> <c:c> .\n<d:d> <b:b> <e:e> .\n"), split_plain(b"<a:a> <b:b> _:c .\n")
        ((['a:a', 'd:d'], ['b:b', 'b:b'], ['c:c', 'e:e']), None)
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if not (block.startswith(b"<") and block.endswith(b"> .\n")) or b"<_:" in block:
        return None
    try:
        text = block[1:-4].decode()
    except UnicodeDecodeError:
        return None
    cells = text.replace("> .\n<", "> <\n> <").split("> <")
    cells.append("\n")
    ends = cells[3::4]
    if len(cells) != 4 * len(ends) or ends.count("\n") != len(ends):
        return None
    return cells[::4], cells[1::4], cells[2::4]


def whole_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """Yield the whole lines of each part of a file; a very long line in parts."""
    rest, most = b"", LONG_LINE
    while data := file.read1(BLOCK_BYTES):
        data = rest + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        most = LONG_LINE if end else most
        if len(data) - end > most:
            end, most = len(data), 0
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest


class ParsedLines:
    """A file for a parser: a block, and those behind it until all that was given to the parser came out of it.

    Args:
        file: Where the blocks are from.
        block: The first block.
        blocks: The next ones.
        guard: Looks at them before the parser.

    Attributes:
        lines: How many lines there are in the blocks so far.
        is_sound: Whether no line was malformed. Behind a malformed one the parser may skip others, so it reads on.
    """

    def __init__(self, file: io.BufferedReader, block: bytes, blocks: Iterator[bytes], guard: Guard) -> None:
        """Begin before the first block."""
        self._file, self._blocks, self._guard = file, chain([block], blocks), guard
        self.lines, self.is_sound = 0, True
        self._block, self._at, self._given, self._taken = b"", 0, 0, 0

    @property
    def size(self) -> int:
        """How many bytes of the file were read."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` at most; none at the end."""
        if self._at >= len(self._block):
            is_over = self.lines and self.is_sound and self._taken == self._given
            self._begin(b"" if is_over else next(self._blocks, b""))
        end = len(self._block) if size is None or size < 0 else self._at + size
        data, self._at = self._block[self._at : end], end
        return data

    def counted(self, statements: Iterable[Any]) -> Iterator[Any]:
        """Yield what the parser made of the bytes."""
        for statement in statements:
            self._taken += 1
            yield statement

    def _begin(self, block: bytes) -> None:
        self._guard.feed(block)
        self._block, self._at = block, 0
        self._given += len(_STATEMENTS.findall(block))
        self.lines += len(_BREAKS.findall(block))
