"""Rows of published question sets: JSON lines, Parquet, and the folders that the package `datasets` saves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, QuestionsLoadError

T = TypeVar("T")

#: What is wanted of a file that is neither Parquet nor Arrow.
_WANTED = "wanted JSON lines, one object a line"

#: What is said of a pickle.
_IS_PICKLE = (
    "this is a pickle, which is never loaded, since it can run code; convert it to JSON lines as the page on "
    "evaluation in the documentation says (docs/evaluation.md)."
)

#: How a pickle begins, with the number of its protocol.
_PICKLED = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))

#: How many rows of Parquet and Arrow files are turned into Python objects at a time: each may hold a graph.
ROWS_AT_ONCE = 16

#: Names of one split in different sets.
_SAME_SPLIT = ("validation", "dev", "val")

#: The suffixes that are read, each with the name of the format; other suffixes are read as JSON lines.
_ARROW = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


def read_each_row(path: str | Path, split: str | None, read: Callable[[Any], T]) -> Iterator[T]:
    """Yield what is read of each row, one after the other: graphs fill gigabytes.

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
        for number, row in _rows(file):
            try:
                made = read(row)
            except (ValueError, RecursionError) as error:
                raise QuestionsLoadError(str(error), file, number) from error
            yield made
        if not number:
            raise QuestionsLoadError("wanted one row a line, but the file is empty.", file)


def split_files(home: Path, split: str | None) -> list[Path]:
    """Return the files of a split, in order; see `read_each_row`."""
    if not home.is_dir():
        if split is not None:
            raise InvalidArgumentError(f"{home} is no folder, so it has no split {split!r}. Leave it out.")
        return [home]
    if (home / "state.json").is_file():
        if split is not None:
            raise InvalidArgumentError(f"{home} holds one data set without splits, not {split!r}. Leave it out.")
        return _saved_files(home)
    found = {name: files for name in _split_names(home) if (files := _files_of(home, name))}
    wanted = next((name for name in _same(split) if name in found), None)
    if wanted is None:
        raise _no_split(home, split, sorted(found))
    return found[wanted]


def _no_split(home: Path, split: str | None, there: Sequence[str]) -> InvalidArgumentError:
    names = " or ".join(filter(None, (", ".join(there[:-1]), *there[-1:])))
    if not there:
        return InvalidArgumentError(
            f"{home} holds no split; wanted files as test.jsonl or test-00000-of-00001.parquet."
        )
    if split is None:
        return InvalidArgumentError(
            f"{home} is a folder, and no split of it is named.",
            hint_python=f"Name one of its splits: split={there[0]!r}; there are {names}.",
            hint_shell=f"Name one of its splits: --split {names}.",
        )
    return InvalidArgumentError(f"{home} has no split {split!r}; there are: {names}.")


def _same(split: str | None) -> tuple[str | None, ...]:
    return (split, *_SAME_SPLIT) if split in _SAME_SPLIT else (split,)


def _split_names(home: Path) -> list[str]:
    """Return what may be the names of splits: of folders with a saved data set, and the beginnings of file names."""
    folders = [part.name for part in home.iterdir() if (part / "state.json").is_file()]
    files = [part for folder in (home, home / "data") for part in folder.glob("*") if _holds_rows(part)]
    return list(dict.fromkeys([*folders, *(file.stem.partition("-")[0] for file in files)]))


def _files_of(home: Path, name: str) -> list[Path]:
    if (home / name / "state.json").is_file():
        return _saved_files(home / name)
    files = sorted(part for folder in (home, home / "data") for part in folder.glob("*") if _holds_rows(part))
    return [file for file in files if file.stem.partition("-")[0] == name]


def _holds_rows(file: Path) -> bool:
    return file.is_file() and (file.suffix in _ARROW or file.suffix == ".jsonl")


def _saved_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a data set that `save_to_disk` wrote."""
    state = folder / "state.json"
    try:
        names = [file["filename"] for file in json.loads(state.read_bytes())["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise QuestionsLoadError(
            "wanted what `save_to_disk` writes, with '_data_files'; save the data set again.", state
        ) from error
    if strange := [name for name in names if not isinstance(name, str) or Path(name).name != name]:
        raise QuestionsLoadError(f"wanted the names of files beside it, but got {strange[0]!r:.100}.", state)
    return [folder / name for name in names]


def _rows(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row with its number from 1."""
    return _arrow_rows(file) if file.suffix in _ARROW else _json_rows(file)


def _arrow_rows(file: Path) -> Iterator[tuple[int, Any]]:
    from kg_retrievers.graph.readers.opening import Limits
    from kg_retrievers.graph.readers.tables.arrow_files import ArrowFile  # it needs an extra

    try:
        table = ArrowFile(file, _ARROW[file.suffix], Limits())
        yield from enumerate(table.rows(ROWS_AT_ONCE), start=1)
    except OSError as error:
        raise QuestionsLoadError(f"wanted a table, but it cannot be read: {error.strerror}.", file) from error
    except GraphLoadError as error:
        raise QuestionsLoadError(error.message.removeprefix(f"{file}: "), file) from error


def _json_rows(file: Path) -> Iterator[tuple[int, Any]]:
    number = 0
    try:
        with open(file, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if number == 1 and line.startswith(_PICKLED):
                    raise QuestionsLoadError(_IS_PICKLE, file)
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
