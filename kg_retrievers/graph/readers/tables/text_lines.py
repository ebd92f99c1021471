"""A text file, line by line, with the number of each line."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as short
from typing import NoReturn

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.limits import limit_error
from kg_retrievers.graph.readers.opening import open_bytes

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: How many bytes are read at a time. With more of them the texts leave the cache of the processor before they are used.
BLOCK_BYTES = 1 << 16

#: Characters that no text holds, in whatever encoding that has ASCII in it.
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class TextFile:
    """A file that is read line by line.

    Attributes:
        path: The file.
        line: The number of the last line that was read, from 1.
        skipped: How many malformed lines were left out.
    """

    def __init__(self, path: str | os.PathLike[str], options: FileOptions) -> None:
        """Begin before the first line."""
        self.path = Path(path)
        self.options = options
        self.line = 0
        self.skipped = 0
        self._text = ""

    def fail(self, message: str, line: int | None = None, **hints: str) -> NoReturn:
        """Raise a GraphLoadError at a line."""
        raise GraphLoadError(message, self.path, line, **hints)

    def reject(self, message: str, line: int, last: int | None = None, got: object = None) -> None:
        """Raise for the row from `line` to `last`, by default the last line read, or count its lines.

        Args:
            message: What is wrong; "{}" stands for `got`, which is shown only where this raises.
            line: Where the row begins.
            last: Where it ends.
            got: What was found.
        """
        if self.options.on_error == "raise":
            advice = "Correct the line, or leave out all such lines with"
            self.fail(
                message if got is None else message.replace("{}", short(got), 1),
                line,
                hint_python=f'{advice} on_error="skip".',
                hint_shell=f"{advice} --on-error skip.",
            )
        self.skipped += (self.line if last is None else last) - line + 1

    def reject_cell(self, length: int | None, line: int, enough: int | None = None) -> None:
        """Raise for a cell that is too long, or count its lines.

        Args:
            length: How many characters it has; None if it was not read to its end.
            line: Where its row begins.
            enough: A limit that would do, if its length is not known.
        """
        if self.options.on_error == "raise":
            known = f"{length:,}" if length else f"more than {self.options.limits.cell_length:,}"
            raise limit_error(self.path, line, f"a cell of {known} characters", "cell_length", length or enough)
        self.skipped += self.line - line + 1

    @property
    def line_length(self) -> int:
        """How many characters the last line has that was read."""
        return len(self._text)

    def lines(self) -> Iterator[str]:
        """Yield the lines from the first, each with its line break."""
        for block in self.blocks():
            yield from self.lines_of(block)

    def lines_of(self, block: str) -> Iterator[str]:
        """Yield the lines of a block, each with its line break; `line` is before the first of them."""
        for text in io.StringIO(block, newline=""):
            self.line += 1
            if "\0" in text:
                self.fail("NUL byte: this is no text, or its encoding is another (utf-16?).", self.line)
            self._text = text
            yield text

    def blocks(self) -> Iterator[str]:
        """Yield the whole lines of each part of the file. Who takes them counts them: by `lines_of`, or in `line`."""
        self.line = 0
        with open_bytes(self.path, self.options.limits) as opened:
            decoder = codecs.getincrementaldecoder(self.options.codec)()
            rest, is_last = "", False
            while not is_last:
                data = opened.read1(BLOCK_BYTES)
                is_last = not data
                try:
                    text = rest + decoder.decode(data, final=is_last)
                except UnicodeDecodeError as error:
                    self._fail_to_decode(error, opened.tell())
                end = len(text) if is_last else _end_of_lines(text)
                rest = text[end:]
                if end:
                    yield text[:end]

    def _fail_to_decode(self, error: UnicodeDecodeError, position: int) -> NoReturn:
        # The decoder saw the bytes up to the position of the file, and all before them were lines.
        offset = position - len(error.object) + error.start
        line = self.line + error.object[: error.start].count(b"\n") + 1
        self.fail(f"byte {offset} is not {error.encoding}.", line, **encoding_hints(error.object))


def _end_of_lines(text: str) -> int:
    r"""Return where the last whole line of a text ends; a line break "\r" at its very end may go on as "\r\n".

    Example:
        >>> _end_of_lines("a\nb"), _end_of_lines("a\r\nb\r"), _end_of_lines("a")
        (2, 3, 0)
    """
    return max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1


def encoding_hints(data: bytes) -> dict[str, str]:
    r"""Return what to do about bytes of a file that are none of its encoding, as arguments of errors.

    Example:
        >>> encoding_hints(b"Am\xe9lie")["hint_shell"], encoding_hints(b"\xe9\x01")["hint_shell"]
        ('Perhaps the file is --encoding latin-1.', 'It is no text: name a file that holds triples.')
    """
    is_utf_16 = data.startswith(_UTF_16)
    if not is_utf_16 and _CONTROLS.search(data):
        told = "It is no text: name a file that holds triples."
        return {"hint_python": told, "hint_shell": told}
    other = "utf-16" if is_utf_16 else "latin-1"
    advice = "Perhaps the file is"
    return {"hint_python": f'{advice} encoding="{other}".', "hint_shell": f"{advice} --encoding {other}."}
