"""Guards before a parser of RDF: they keep its memory and its stack bounded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import BinaryIO, NoReturn, Protocol
from xml.parsers import expat

#: How deep lists, blank nodes, triple terms, objects and elements may be nested.
MAX_DEPTH = 256

#: The most attributes of a tag, and the most namespaces that hold within a tag: a parser compares each with all others.
MAX_ATTRIBUTES = 1_000

#: The longest value of an entity in a DTD, in characters. Files of ontologies declare namespaces so.
MAX_ENTITY_LENGTH = 256

#: The longest text between two tags of RDF/XML, in bytes.
MAX_RUN = 16 << 20

#: The same in a file that declares entities, which make a text longer.
MAX_RUN_WITH_ENTITIES = 1 << 20

#: How many bytes are read at a time.
CHUNK = 1 << 18

#: The next step for a text that the parser cannot hold.
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


class LineGuard(DepthGuard):
    """Refuses a line of N-Triples or N-Quads with triple terms that are nested more deeply than `MAX_DEPTH`."""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        data = self._rest + data
        self._rest = data[data.rfind(b"\n") + 1 :]
        if data.count(b"<<") > MAX_DEPTH:
            for line in data.split(b"\n"):
                DepthGuard(self._refuse, self._max_token).feed(line)


class XmlGuard:
    """Refuses RDF/XML with entities that refer to others or to files, deep elements, long tags and endless texts."""

    def __init__(self, refuse: Refuse) -> None:
        """Begin before the first element."""
        self._refuse = refuse
        self._tags = self._run = 0
        self._declared: list[int] = []  # the namespaces that each open element declares
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

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._tags += 1
        self._declared.append(sum(attribute.startswith("xmlns") for attribute in attributes))
        if len(self._declared) > MAX_DEPTH:
            self._refuse_tag(f"elements are nested more than {MAX_DEPTH} deep")
        if max(len(attributes), sum(self._declared)) > MAX_ATTRIBUTES:
            self._refuse_tag(f"a tag has more than {MAX_ATTRIBUTES:,} attributes or namespaces")

    def _refuse_tag(self, message: str) -> None:
        self._refuse(f"{message}, at line {self._parser.CurrentLineNumber}.")

    def _end(self, name: str) -> None:
        self._tags += 1
        self._declared.pop()

    def _declare(self, name: str, is_parameter: bool, value: str | None, *place: object) -> None:
        self._longest_run = MAX_RUN_WITH_ENTITIES
        if value is None:
            self._refuse(f"the entity {name!r} is declared as another file, which is never read.")
        if "&" in value or "%" in value or len(value) > MAX_ENTITY_LENGTH:
            self._refuse(
                f"the entity {name!r} is declared with more than a plain text of {MAX_ENTITY_LENGTH} characters."
            )


#: Looks at the bytes of a file in their order, and refuses the ones that a parser could not bear.
Guard = DepthGuard | XmlGuard


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
        """Return the next bytes, `size` at most, or none at the end."""
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
