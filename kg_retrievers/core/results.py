"""The result of an operation in words: what its Documents and answers say, and which answers agree with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.values import Value, holds, read_value
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index.words import words_of

#: The most answers that a line names; the metadata holds all.
MOST_NAMED = 100

_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = re.compile(rf"({'|'.join(_COUNTS)})\b", re.IGNORECASE)
_VERDICT = re.compile(r"(yes|no|true|false)(?=\s*[,.;:!]|\s*\Z)", re.IGNORECASE)
_AT_LEAST = re.compile(r"\s*(?:at least|≥|>=)\s*", re.IGNORECASE)


def result_value(documents: Sequence[Document]) -> Any:
    """Return what an operation gave, from its Documents; None where they have none."""
    return documents[0].metadata.get("value") if documents else None


def result_answers(metadata: Mapping[str, Any]) -> list[str]:
    """Return the answers of a Document as texts: the labels of entities, else what the operation gave.

    Example:
        >>> result_answers({"answers": [], "value": 6}), result_answers({"answers": [], "value": False})
        (['6'], ['no'])
        >>> result_answers({"answers": [], "value": 6, "details": {"at_least": True}})
        ['at least 6']
    """
    if metadata["answers"]:
        return list(dict.fromkeys(as_data(metadata["labels"][key]) for key in metadata["answers"]))
    value = metadata.get("value")
    if value is None:
        return []
    at_least = "at least " if (metadata.get("details") or {}).get("at_least") else ""
    return [f"{at_least}{_said(one)}" for one in (value if isinstance(value, list) else [value])]


def result_text(metadata: Mapping[str, Any], most: int | None = None) -> str:
    """Return the answers of a Document as one text, each with the value by which it was chosen.

    Args:
        metadata: That of the Document.
        most: How many answers are named; None for all.

    Example:
        >>> result_text({"answers": ["a", "b"], "labels": {"a": "Her", "b": "Up"}, "value": [2013, 2009]})
        'Her (2013); Up (2009)'
    """
    texts = _with_values(metadata) or result_answers(metadata)
    more = len(texts) - most if most else 0
    return "; ".join([*texts[:most], *([f"{more} more"] if more > 0 else [])])


def _with_values(metadata: Mapping[str, Any]) -> list[str]:
    """Return the labels of the answers, each with the value by which it was chosen, where there are such values."""
    keys, value = metadata["answers"], metadata.get("value")
    values = value if isinstance(value, list) else [value] * len(keys)
    if value is None or len(values) != len(keys):
        return []
    labels = [metadata["labels"][key] for key in keys]
    return [as_data(f"{label} ({_said(one)})") for label, one in zip(labels, values, strict=True)]


def _said(value: object) -> str:
    return as_data({True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value))


def tell_result(metadata: Mapping[str, Any]) -> str:
    """Return a line on what the operation of a Document gave; nothing where there was no operation.

    Example:
        >>> pattern = {"triples": [["Her", "composer", {"unknown": "x"}]], "operation": {"kind": "exists"}}
        >>> tell_result({"answers": [], "value": False, "triples": [], "details": {"pattern": pattern}})
        'Result: no. Looked for and not found: Her -> composer -> ?x'
    """
    if metadata.get("value") is None:
        return ""
    details = metadata.get("details") or {}
    pattern = details.get("pattern") or {}
    kind = (pattern.get("operation") or details.get("operation") or {}).get("kind", "exists")
    name = "Result" if kind in ("exists", "compare") else f"Result of {kind}"
    line = f"{name}: {result_text(metadata, MOST_NAMED)}"
    if not metadata["triples"]:
        looked_for = as_data(str(details.get("query", "")))
        if pattern:
            looked_for = "; ".join(pattern_lines({**pattern, "operation": None}))
        return f"{line}. Looked for and not found: {looked_for}" if looked_for else line
    return line + "".join(f" ({note})" for note in _notes(details))


def _notes(details: Mapping[str, Any]) -> list[str]:
    shown, of = details.get("shown", 0), details.get("of", 0)
    notes = [f"the facts are of {shown} of {of}"] if shown < of else []
    if without := details.get("without_value"):
        notes.append(f"{without} left out, without a value to compare")
    return notes


def tell_results(documents: Sequence[Document]) -> str:
    """Return what operations gave, a line each, of some Documents."""
    lines = (tell_result(document.metadata) for document in documents)
    return "\n".join(dict.fromkeys(filter(None, lines)))


def agrees(answer: str, metadata: Mapping[str, Any]) -> bool:
    """Tell whether an answer says what the operation of a Document gave: the value, or the name of one of its answers.

    Where there are several values, each of an entity, only the names are answers.

    Example:
        >>> count = {"answers": [], "value": 6}
        >>> agrees("6", count), agrees("6 huts", count), agrees("7", count), agrees("at least 6", count)
        (True, True, False, False)
    """
    names = [*result_answers(metadata), *_with_values(metadata)] if metadata["answers"] else []
    if any(_same_words(answer, name) or _same_value(answer, read_value(name)) for name in names):
        return True
    value = metadata.get("value")
    if value is None or (names and isinstance(value, list)):
        return False
    values = value if isinstance(value, list) else [value]
    least = _AT_LEAST.match(answer)
    if bool(least) != bool((metadata.get("details") or {}).get("at_least")):
        return False
    said = answer[least.end() :] if least else answer
    return any(_is_value(said.strip().rstrip(".!"), one) for one in values)


def _is_value(text: str, value: object) -> bool:
    if isinstance(value, bool):
        said = _VERDICT.match(text)
        return said is not None and said[1].casefold() in (("yes", "true") if value else ("no", "false"))
    if isinstance(value, int):
        text = _COUNT.sub(lambda found: str(_COUNTS.index(found[1].casefold()) + 1), text, count=1)
    wanted = Value(str(value), number=value) if isinstance(value, float) else read_value(str(value))
    return _same_value(text, wanted) or _same_words(text, str(value))


def _same_value(text: str, wanted: Value | None) -> bool:
    """Return whether a text says a date or number, and all of it: a year does not say a day, nor a day a year."""
    read = read_value(text) or read_value(text.casefold())  # "6 Houses" is no name here
    if read is None or wanted is None or read.truth is not None or wanted.truth is not None:
        return False
    return holds(read, "=", wanted) and holds(wanted, "=", read)


def _same_words(one: str, other: str) -> bool:
    words = words_of(one)
    return words == words_of(other) and (bool(words) or one.strip() == other.strip())
