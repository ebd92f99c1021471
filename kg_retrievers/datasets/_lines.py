"""Lines of a text file, as every reader of questions needs them."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from kg_retrievers.errors import QuestionsLoadError


def read_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank, each with its number from 1.

    Raises:
        QuestionsLoadError: If the file cannot be read, is not UTF-8, or holds nothing.
    """
    try:
        data = Path(path).read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise QuestionsLoadError(f"wanted a text file, but it cannot be read: {error.strerror}.", path) from error
    lines = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise QuestionsLoadError(
                "wanted UTF-8, but got other bytes; save the file as UTF-8.", path, number
            ) from error
        if text.strip():
            lines.append((number, text))
    if not lines:
        raise QuestionsLoadError("wanted one row a line, but the file is empty.", path)
    return lines
