"""Questions and labelled examples as JSON lines, one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Required

from pydantic import Field, StrictBool, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.datasets.types import Question, read_lines
from kg_retrievers.errors import QuestionsLoadError, named_arguments
from kg_retrievers.file_writing import write_file
from kg_retrievers.graph import Pattern, Triple
from kg_retrievers.graph.validation import reasons

#: A key, a name or a value. A number is taken as its text.
Name = Annotated[str, Field(coerce_numbers_to_str=True)]


class Row(TypedDict, total=False):
    """The contents of a row."""

    question: Required[str]
    seed_entities: list[Name] | None
    answers: list[Name] | None
    pattern: Any
    target: Any
    triples: list[Triple] | None
    kind: str | None
    answerable: StrictBool | None
    value: Any


_ROWS = TypeAdapter(Row)

#: The form of a file of questions, for someone who gives another one, as a graph.
WANTED = """Each question is an object such as {"question": "Who directed Her?", "answers": ["Spike Jonze"]}."""

#: How like a key must be to one that the row lacks, in [0, 1], to be taken for a misspelling of it.
MISSPELT = 0.8


@named_arguments
def read_questions(path: str | Path) -> list[Question]:
    """Read what `write_questions` wrote, or a person labelled.

    The file holds one row a line, or one JSON array of rows. Answers and seed entities are keys, names or values.
    Code that measures or learns from questions matches them by `with_keys`.

    A row is `{"question": text, "seed_entities": [key, ...], "answers": [key, ...], "pattern": {...}, "target": name,
    "triples": [[head, relation, tail], ...], "kind": text, "answerable": false, "value": 6}`. Only "question" is
    required. "target" may stand inside of the pattern or beside it. A question is answerable unless the row says
    otherwise. Other keys and blank lines are ignored. But a key that resembles one that the row lacks, as "answer", is
    an error.

    Args:
        path: The file, in UTF-8.

    Raises:
        QuestionsLoadError: If the file cannot be read, or a row is malformed; names the line.
    """
    lines = read_lines(path)
    if lines[0][1].lstrip().startswith("["):
        return _read_array(path, "\n".join(text for _, text in lines))
    questions = []
    for line, text in lines:
        try:
            questions.append(_question(json.loads(text)))
        except json.JSONDecodeError as error:
            reason = f"no valid JSON at column {error.colno}: {error.msg}."
            raise QuestionsLoadError(reason, path, line, hint_python=WANTED) from error
        except (ValueError, RecursionError) as error:
            raise QuestionsLoadError(str(error), path, line) from error
    return questions


def _read_array(path: str | Path, text: str) -> list[Question]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QuestionsLoadError(
            f"this begins like a JSON array and is none: {error}.", path, hint_python=WANTED
        ) from error
    questions = []
    for number, row in enumerate(rows, 1):
        try:
            questions.append(_question(row))
        except ValueError as error:
            raise QuestionsLoadError(f"element {number}: {error}", path) from error
    return questions


def write_questions(path: str | Path, questions: Iterable[Question]) -> None:
    """Write one row a question, as `read_questions` reads it. Replaces an existing file.

    Raises:
        FileWriteError: If it cannot be written; an existing file stays.
    """
    text = "".join(json.dumps(question.to_dict(), ensure_ascii=False) + "\n" for question in questions)
    write_file(path, text)


def _check_keys(row: dict[str, Any]) -> None:
    absent = [key for key in Row.__annotations__ if key not in row]
    for key in row:
        if key not in Row.__annotations__ and (near := get_close_matches(key.casefold(), absent, 1, MISSPELT)):
            raise ValueError(f"there is no key {key!r:.100}; did you mean {near[0]!r}?")


def _question(row: Any) -> Question:
    if isinstance(row, dict):
        _check_keys(row)
    try:
        checked = _ROWS.validate_python(row)
    except ValidationError as error:
        raise ValueError(f"{reasons(error)} {WANTED}") from error
    answers = checked.get("answers") or []
    answerable = checked.get("answerable") is not False
    if answers and not answerable:
        raise ValueError(f"'answerable' is false, but 'answers' holds {answers!r:.200}. Leave out one of the two.")
    return Question(
        text=checked["question"],
        seed_entities=tuple(checked.get("seed_entities") or ()),
        answers=tuple(answers),
        pattern=_pattern(row.get("pattern"), row.get("target")),
        triples=tuple(checked.get("triples") or ()),
        kind=checked.get("kind"),
        answerable=answerable,
        value=checked.get("value"),
    )


def _pattern(pattern: Any, target: Any) -> Pattern | None:
    if target is not None:
        if not isinstance(pattern, dict):
            raise ValueError(f"'target' names an unknown node of 'pattern', but 'pattern' is {pattern!r:.200}.")
        if pattern.get("target") not in (None, target):
            raise ValueError(f"'target' is {target!r}, but inside of 'pattern' it is {pattern['target']!r}.")
        pattern = pattern | {"target": target}
    return None if pattern is None else Pattern.from_dict(pattern)
