"""A text file, line by line, with the number of each line."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as short
from typing import NoReturn

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.limits import limit_error
from kg_retrievers.graph.readers.opening import open_bytes

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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

    def reject_cell(self, length: int, line: int, last: int | None = None) -> None:
        """Raise for a cell that is too long, or count its lines."""
        if self.options.on_error == "raise":
            raise limit_error(self.path, line, f"a cell of {length:,} characters", "cell_length", length)
        self.skipped += (self.line if last is None else last) - line + 1

    def lines(self) -> Iterator[str]:
        """Yield the lines from the first, each with its line break."""
        with open_bytes(self.path, self.options.limits) as opened:
            file = io.TextIOWrapper(opened, encoding=self.options.codec, newline="")
            try:
                for self.line, text in enumerate(file, 1):
                    if "\0" in text:
                        self.fail("NUL byte: this is no text, or its encoding is another (utf-16?).", self.line)
                    yield text
            except UnicodeDecodeError as error:
                self._fail_to_decode(error, opened.tell())

    def _fail_to_decode(self, error: UnicodeDecodeError, position: int) -> NoReturn:
        # The decoder saw the bytes up to the position of the file, and all before them were lines.
        offset = position - len(error.object) + error.start
        line = self.line + error.object[: error.start].count(b"\n") + 1
        other = "utf-16" if error.object.startswith(_UTF_16) else "latin-1"
        self.fail(
            f"byte {offset} is not {error.encoding}.",
            line,
            hint_python=f'Perhaps the file is encoding="{other}".',
            hint_shell=f"Perhaps the file is --encoding {other}.",
        )
