"""Questions and labelled examples as JSON lines, one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kg_retrievers.datasets._lines import read_lines
from kg_retrievers.datasets.types import Question
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph.types import Pattern, Triple

#: What a row may hold.
KEYS = ("question", "seed_entities", "answers", "pattern", "target", "triples", "kind", "answerable")

#: The least likeness of a key to one of these that the row has not, in [0, 1], at which it is taken for misspelt.
MISSPELT = 0.8


def read_questions(path: str | Path) -> list[Question]:
    """Read what `write_questions` wrote, or a person labelled.

    A row is `{"question": text, "seed_entities": [key, ...], "answers": [key, ...], "pattern": {...}, "target": name,
    "triples": [[head, relation, tail], ...], "kind": text, "answerable": false}`. Only "question" is required; "target"
    may stand inside of the pattern or beside it; a question is answerable unless the row says otherwise. Other keys are
    ignored, and so are blank lines; but not a key that is nearly one of these which the row has not, as "answer".

    Args:
        path: The file, in UTF-8.

    Raises:
        QuestionsLoadError: If the file cannot be read, or a row is malformed; names the line.
    """
    questions = []
    for line, text in read_lines(path):
        try:
            questions.append(_question(json.loads(text)))
        except json.JSONDecodeError as error:
            raise QuestionsLoadError(f"no valid JSON at column {error.colno}: {error.msg}.", path, line) from error
        except (ValueError, RecursionError) as error:
            raise QuestionsLoadError(str(error), path, line) from error
    return questions


def write_questions(path: str | Path, questions: Iterable[Question]) -> None:
    """Write one row a question, as `read_questions` reads it. Replaces an existing file."""
    text = "".join(json.dumps(question.to_dict(), ensure_ascii=False) + "\n" for question in questions)
    Path(path).write_bytes(text.encode("utf-8"))


def _check_keys(row: dict[str, Any]) -> None:
    absent = [key for key in KEYS if key not in row]
    for key in row:
        if key not in KEYS and (near := get_close_matches(key.casefold(), absent, 1, MISSPELT)):
            raise ValueError(f"there is no key {key!r:.100}; did you mean {near[0]!r}?")


def _question(row: Any) -> Question:
    if isinstance(row, dict):
        _check_keys(row)
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not row["question"].strip():
        raise ValueError(f"wanted an object with a text under 'question', but got {row!r:.200}.")
    kind = row.get("kind")
    if kind is not None and not isinstance(kind, str):
        raise ValueError(f"'kind' must be a text, but got {kind!r:.200}.")
    answerable = row.get("answerable")
    if not isinstance(answerable, bool | None):
        raise ValueError(f"'answerable' must be true or false, but got {answerable!r:.200}.")
    answers = _texts(row, "answers")
    if answerable is False and answers:
        raise ValueError(
            f"'answerable' is false, but 'answers' holds {list(answers)!r:.200}. Leave out one of the two."
        )
    return Question(
        text=row["question"],
        seed_entities=_texts(row, "seed_entities"),
        answers=answers,
        pattern=_pattern(row.get("pattern"), row.get("target")),
        triples=_triples(row),
        kind=kind,
        answerable=answerable is not False,
    )


def _texts(row: dict[str, Any], key: str) -> tuple[str, ...]:
    value = row.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{key!r} must be a list of texts, but got {value!r:.200}.")
    return tuple(value)


def _triples(row: dict[str, Any]) -> tuple[Triple, ...]:
    value = row.get("triples")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(triple, list) and len(triple) == 3 and all(isinstance(text, str) for text in triple)
        for triple in value
    ):
        raise ValueError(f"'triples' must be a list of [head, relation, tail], but got {value!r:.200}.")
    return tuple(Triple(*triple) for triple in value)


def _pattern(pattern: Any, target: Any) -> Pattern | None:
    if target is not None:
        if not isinstance(pattern, dict):
            raise ValueError(f"'target' names an unknown node of 'pattern', but 'pattern' is {pattern!r:.200}.")
        if pattern.get("target") not in (None, target):
            raise ValueError(f"'target' is {target!r}, but inside of 'pattern' it is {pattern['target']!r}.")
        pattern = pattern | {"target": target}
    return None if pattern is None else Pattern.from_dict(pattern)
