"""What stands before a parser of RDF: guards of memory and stack, and lines of N-Triples that need no parser."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, NoReturn, Protocol
from xml.parsers import expat

#: How deep lists, blank nodes, triple terms, objects and elements may be nested.
MAX_DEPTH = 256

#: The longest value of an entity in a DTD, in characters. Files of ontologies declare namespaces so.
MAX_ENTITY_LENGTH = 256

#: The longest text between two tags of RDF/XML, in bytes.
MAX_RUN = 16 << 20

#: The same in a file that declares entities, which make a text longer.
MAX_RUN_WITH_ENTITIES = 1 << 20

#: How many bytes are read at a time.
CHUNK = 1 << 18

#: What to do about a text that the parser cannot hold.
SHORTEN = "No limit raises this: shorten the text, or take the statement out of the file."


class Refuse(Protocol):
    """Raises the error of a file."""

    def __call__(self, message: str, advice: str = "", limit: str | None = None) -> NoReturn:
        """Raise it.

        Args:
            message: What is wrong.
            advice: What to do next.
            limit: The field of `Limits` that is exceeded.
        """


# All of Turtle and its kin in which a bracket is none; at last what begins so and does not end yet.
_TEXTS = re.compile(
    rb'"""(?:[^"\\]|\\.|""?(?!"))*+"""'
    rb"|'''(?:[^'\\]|\\.|''?(?!'))*+'''"
    rb'|"(?!""|"\Z)(?:[^"\\\r\n]|\\.)*+"'
    rb"|'(?!''|'\Z)(?:[^'\\\r\n]|\\.)*+'"
    rb'|<[^<>"{}|^`\x00-\x20]*+>|#[^\r\n]*+[\r\n]|\\.'
    rb"|(?P<open>[\"'#\\].*+|<<?[^<>\"{}|^`\x00-\x20]*+\Z)",
    re.DOTALL,
)
_BRACKETS = re.compile(rb"<<|>>|[][(){}]")
_OPENING = {b"<<", b"[", b"(", b"{"}


class Guard(Protocol):
    """Looks at the bytes of a file in their order, and refuses what a parser could not bear."""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes; none at the end."""


class DepthGuard:
    """Refuses Turtle, TriG or N3 that is nested more deeply than `MAX_DEPTH`.

    Args:
        refuse: Raises the error.
        max_token: The longest literal or comment, in bytes: one that goes on is looked at again with the next bytes.
    """

    def __init__(self, refuse: Refuse, max_token: int) -> None:
        """Begin outside of all brackets."""
        self._refuse, self._max_token = refuse, max_token
        self._depth, self._rest = 0, b""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        data = self._rest + data
        last = deque(_TEXTS.finditer(data), 1)
        end = last[0].start() if last and last[0]["open"] else len(data)
        bare, self._rest = _TEXTS.sub(b" ", data[:end]), data[end:]
        if not self._rest and bare.endswith(b">") and not bare.endswith(b">>"):
            bare, self._rest = bare[:-1], b">"
        if len(self._rest) > self._max_token:
            self._refuse(f"a literal or comment has more than {self._max_token:,} bytes.", limit="cell_length")
        self._count(_BRACKETS.findall(bare))

    def _count(self, brackets: list[bytes]) -> None:
        for bracket in brackets:
            self._depth = self._depth + 1 if bracket in _OPENING else max(0, self._depth - 1)
            if self._depth > MAX_DEPTH:
                self._refuse(f"brackets are nested more than {MAX_DEPTH} deep.")


class JsonGuard(DepthGuard):
    """Refuses JSON that is nested more deeply than `MAX_DEPTH`."""

    _in_text = 0

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        data = self._rest + data
        escapes = len(data) - len(data.rstrip(b"\\"))
        end = len(data) - escapes % 2
        data, self._rest = data[:end], data[end:]
        parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        self._count(_BRACKETS.findall(b" ".join(parts[self._in_text :: 2])))
        self._in_text = (self._in_text + len(parts) - 1) % 2


class LineGuard:
    """Refuses a line of N-Triples or N-Quads with triple terms that are nested more deeply than `MAX_DEPTH`."""

    def __init__(self, refuse: Refuse, max_token: int) -> None:
        """Begin before the first line."""
        self._refuse, self._max_token, self._line = refuse, max_token, b""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        data = self._line + data
        self._line = data[data.rfind(b"\n") + 1 :]
        if data.count(b"<<") > MAX_DEPTH:
            for line in data.split(b"\n"):
                DepthGuard(self._refuse, self._max_token).feed(line)


class XmlGuard:
    """Refuses RDF/XML with entities that refer to others or to files, deep elements, and texts without end."""

    def __init__(self, refuse: Refuse) -> None:
        """Begin before the first element."""
        self._refuse = refuse
        self._depth = self._tags = self._run = 0
        self._longest_run = MAX_RUN
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = self._declare

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        before = self._tags
        try:
            self._parser.Parse(data, not data)
        except expat.ExpatError as error:
            self._refuse(f"is no well-formed XML: {error}.")
        self._run = self._run + len(data) if self._tags == before else 0
        if self._run > self._longest_run:
            self._refuse(f"more than {self._longest_run:,} bytes stand between two tags.", SHORTEN)

    def _start(self, name: str, attributes: object) -> None:
        self._tags += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"elements are nested more than {MAX_DEPTH} deep, at line {self._parser.CurrentLineNumber}.")

    def _end(self, name: str) -> None:
        self._tags += 1
        self._depth -= 1

    def _declare(self, name: str, is_parameter: bool, value: str | None, *place: object) -> None:
        self._longest_run = MAX_RUN_WITH_ENTITIES
        if value is None:
            self._refuse(f"the entity {name!r} is declared as another file, which is never read.")
        if "&" in value or "%" in value or len(value) > MAX_ENTITY_LENGTH:
            self._refuse(
                f"the entity {name!r} is declared with more than a plain text of {MAX_ENTITY_LENGTH} characters."
            )


class GuardedFile:
    """Gives the bytes of a file to a parser after a guard has looked at them.

    Attributes:
        size: How many bytes were read.
    """

    def __init__(self, file: BinaryIO, guard: Guard) -> None:
        """Begin at the first byte."""
        self._file, self._guard = file, guard
        self._chunk, self._at, self._ended, self.size = b"", 0, False, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` at most; none at the end."""
        if self._at >= len(self._chunk) and not self._ended:
            self._chunk, self._at = self._file.read(CHUNK), 0
            self.size += len(self._chunk)
            self._ended = not self._chunk
            self._guard.feed(self._chunk)
        end = len(self._chunk) if size is None or size < 0 else self._at + size
        data, self._at = self._chunk[self._at : end], end
        return data


def guard_of(format: str, refuse: Refuse, max_token: int) -> Guard:
    """Return the guard of a format, by its name."""
    if format == "RDF/XML":
        return XmlGuard(refuse)
    if format in ("N-Triples", "N-Quads"):
        return LineGuard(refuse, max_token)
    return JsonGuard(refuse, max_token) if format == "JSON-LD" else DepthGuard(refuse, max_token)


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
