"""The file of a run: its settings on the first line, then one question a line, so that it can be read and continued."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from kg_retrievers.errors import FileFormatError, InvalidArgumentError
from kg_retrievers.file_writing import raise_write_errors

#: The format that the first line of a file states. The number changes with the form.
FORMAT = "kg-retrievers records 4"


class Record(TypedDict):
    """The measurements of one question, safe for JSON.

    Attributes:
        id: The position of the question in the run, from 1.
        question: Its text.
        hops: How many facts it joins, or None.
        kind: Its type, in the words of its set, or None.
        answerable: Whether the graph holds an answer.
        gold: The keys of the gold answers.
        gold_value: The gold value of an operation. None if entities answer.
        answers: The keys of the answers that the top group proposes, best first.
        value: The result of an operation. None if there was none.
        labels: The labels of these keys, if they differ from the key.
        seed_entities: The keys of the entities that the question names, as its set says.
        triples: How many distinct triples the evidence holds.
        nodes: How many entities it holds: the ends of the triples, and entities that are evidence by themselves.
        tokens: How long its text is, by `approximate_tokens`.
        pattern: The pattern that led to the best evidence, or that nothing fits, if the method has one.
        prediction: The answerer's reply, a text or a list of texts. None without answerer.
        llm_calls: How many calls of language models the question took.
        input_tokens: How many tokens their prompts had, by `CostCounter`.
        output_tokens: How many tokens their replies had, likewise.
        latency_ms: The wall time of the retrieval, in milliseconds, without the answerer's time.
        refused: Whether no answer was given, on purpose.
        reason: The message if the retriever refused the question. Otherwise None.
        error: The message of an error that kept the question from an answer. Otherwise None.
        metrics: By name, in 0 ... 1, or None if the question lacks the gold label that a metric compares with.
    """

    id: str
    question: str
    hops: int | None
    kind: str | None
    answerable: bool
    gold: list[str]
    gold_value: Any
    answers: list[str]
    value: Any
    labels: dict[str, str]
    seed_entities: list[str]
    triples: int
    nodes: int
    tokens: int
    pattern: dict[str, Any] | None
    prediction: str | list[str] | None
    llm_calls: int
    input_tokens: int
    output_tokens: int
    latency_ms: float
    refused: bool
    reason: str | None
    error: str | None
    metrics: dict[str, float | None]


class Header(TypedDict):
    """The first line of a file: everything that two runs must share to be one."""

    format: str
    method: str
    seed: int
    proposes_answers: bool
    settings: dict[str, Any]


_RECORD, _HEADER = set(Record.__annotations__), set(Header.__annotations__)


def read_records(path: str | Path) -> tuple[Header, list[Record]]:
    """Read a file of records. A last line that was not written to its end is left out.

    Raises:
        FileFormatError: If the file cannot be read, or is no file of records. The message names the line.
    """
    return _parsed(_content(Path(path)), path)


def continued(path: str | Path | None, header: Header) -> list[Record]:
    """Open a file of records to continue it, or begin a new one. None keeps nothing.

    Returns:
        The records that are there.

    Raises:
        FileFormatError: If the file is there and is no file of records, or cannot be read.
        FileWriteError: If it cannot be written. Its content stays.
        InvalidArgumentError: If it belongs to a run of other settings. The message names them.
    """
    if path is None:
        return []
    path, first = Path(path), _written(header)
    content = _content(path) if os.path.exists(path) else b""
    begun = not first.startswith(content)  # else there is nothing, or a first line that was not written to its end
    found, records = _parsed(content, path) if begun else (header, [])
    if different := _differences(found, header):
        raise InvalidArgumentError(
            f"{path} holds records of a run with other settings: {'; '.join(different)}. "
            "Name another file, or delete this one."
        )
    with raise_write_errors(path), path.open("r+b" if begun else "wb") as file:
        file.truncate(content.rfind(b"\n") + 1 if begun else 0)
        file.write(b"" if begun else first)
    return records


def keep_record(path: str | Path | None, record: Record) -> None:
    """Add a record to the file, so that a crash loses no finished question. None keeps nothing.

    Raises:
        FileWriteError: If it cannot be written.
    """
    if path is not None:
        with raise_write_errors(path), open(path, "ab") as file:
            file.write(_written(record))


def _written(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"wanted a file of records, but it cannot be read: {error.strerror}.", path) from error


def _parsed(content: bytes, path: str | Path) -> tuple[Header, list[Record]]:
    """Read the lines that end as lines do."""
    first, *lines = content.split(b"\n")[:-1] or [b""]
    header, rows = _read(first), [_read(line) for line in lines]
    if not _has(header, _HEADER) or header["format"] != FORMAT:
        raise FileFormatError(
            f"this is no file of records, whose first line holds {FORMAT!r}. Name another file.", path
        )
    for number, (line, row) in enumerate(zip(lines, rows, strict=True), 1):
        if not _has(row, _RECORD) or row["id"] != str(number):
            raise FileFormatError(
                f"wanted the record of question {number}, but got {line!r:.200}. "
                "Delete the file, or this line and all that follow.",
                path,
                number + 1,
            )
    return header, rows


def _read(line: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(line)


def _has(row: object, keys: set[str]) -> bool:
    return isinstance(row, dict) and row.keys() == keys


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], name: str = "") -> list[str]:
    """Return the differences of two headers, in words."""
    different = []
    for key in dict.fromkeys((*found, *wanted)):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            different += _differences(one, other, f"{name}{key}.")
        elif one != other:
            different.append(f"{name}{key} was {one!r:.80}, and is {other!r:.80}")
    return different
