"""Rows of published question sets: JSON lines, Parquet, and the folders that the package `datasets` saves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, QuestionsLoadError

T = TypeVar("T")

#: The wanted form of a file that is neither Parquet nor Arrow.
_WANTED = "wanted JSON lines, one object a line"

#: How many rows of Parquet and Arrow files are turned into Python objects at a time: each may hold a graph.
ROWS_AT_ONCE = 16

#: Names of one split in different sets.
_SAME_SPLIT = ("validation", "dev", "val")

#: The suffixes that are read, each with the name of the format. Other suffixes are read as JSON lines.
_ARROW = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


def read_each_row(path: str | Path, split: str | None, read: Callable[[Any], T]) -> Iterator[T]:
    """Yield the result of each row, one after the other: graphs fill gigabytes.

    Args:
        path: A file of JSON lines, Parquet or Arrow IPC; or a folder: one that `save_to_disk` of the package `datasets`
            wrote, of a data set or of several by split, or one of files whose names begin with the split, as
            `train-00000-of-00002.parquet`, in it or in its folder `data`.
        split: Which of a folder: "train", "validation" (also "dev" or "val") or "test".
        read: Makes an object of a row; raises ValueError for a malformed one.

    Raises:
        InvalidArgumentError: If the folder has no such split, or a file is given with one.
        QuestionsLoadError: When it is reached: if a file cannot be read, or holds no row, or a row is malformed; names
            the line, or in Parquet and Arrow files the number of the row.
        MissingExtraError: If a file is Parquet or Arrow, and pyarrow is not installed.
    """
    for file in split_files(Path(path), split):
        number = 0
        for number, row in (_arrow_rows if file.suffix in _ARROW else _json_rows)(file):
            try:
                made = read(row)
            except (ValueError, RecursionError) as error:
                raise QuestionsLoadError(str(error), file, number) from error
            yield made
        if not number:
            raise QuestionsLoadError("wanted one row a line, but the file is empty.", file)


def split_files(home: Path, split: str | None) -> list[Path]:
    """Return the files of a split, in order (see `read_each_row`)."""
    if not os.path.isdir(home):
        if split is not None:
            raise InvalidArgumentError(f"{home} is no folder, so it has no split {split!r}. Leave it out.")
        return [home]
    if saved := sorted(home.glob("data-*.arrow")):
        if split is not None:
            raise InvalidArgumentError(f"{home} holds one data set without splits, not {split!r}. Leave it out.")
        return saved
    found: dict[str, list[Path]] = {}
    for file in sorted([*home.glob("*.*"), *home.glob("data/*.*"), *home.glob("*/data-*.arrow")]):
        if file.is_file() and file.suffix in (*_ARROW, ".jsonl"):
            name = file.parent.name if file.name.startswith("data-") else file.stem.partition("-")[0]
            found.setdefault(name, []).append(file)
    names = (split, *_SAME_SPLIT) if split in _SAME_SPLIT else (split,)
    wanted = next((name for name in names if name in found), None)
    if wanted is None:
        raise _no_split(home, split, sorted(found))
    return found[wanted]


def _no_split(home: Path, split: str | None, there: Sequence[str]) -> InvalidArgumentError:
    if not there:
        return InvalidArgumentError(
            f"{home} holds no split; wanted files as test.jsonl or test-00000-of-00001.parquet."
        )
    got = "none is named" if split is None else f"there is no {split!r}"
    return InvalidArgumentError(
        f"{home} is a folder with splits, of which {got}.",
        hint_python=f"Name one of its splits: split=...; there are: {', '.join(there)}.",
        hint_shell=f"Name one of its splits: --split {' or '.join(there)}.",
    )


def _arrow_rows(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row with its number from 1."""
    from kg_retrievers.graph.readers.opening import Limits
    from kg_retrievers.graph.readers.tables.arrow_files import ArrowFile  # it needs an extra

    try:
        table = ArrowFile(file, _ARROW[file.suffix], Limits())
        yield from enumerate(table.rows(ROWS_AT_ONCE), start=1)
    except GraphLoadError as error:
        raise QuestionsLoadError(error.message.removeprefix(f"{file}: "), file) from error


def _json_rows(file: Path) -> Iterator[tuple[int, Any]]:
    number = 0
    try:
        with open(file, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if text := line.strip():
                    yield number, json.loads(text)
    except OSError as error:
        raise QuestionsLoadError(f"wanted a text file, but it cannot be read: {error.strerror}.", file) from error
    except json.JSONDecodeError as error:
        reason = f"{_WANTED}, but there is no valid JSON at column {error.colno}: {error.msg}."
        raise QuestionsLoadError(reason, file, number) from error
    except UnicodeDecodeError as error:
        raise QuestionsLoadError(f"{_WANTED}, in UTF-8, but got other bytes.", file, number) from error
    except (ValueError, RecursionError) as error:
        raise QuestionsLoadError(str(error), file, number) from error
