"""What pydantic found wrong, in the words of this package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError


def reasons(error: ValidationError, given: Mapping[str, Any] | None = None) -> str:
    """Return a sentence for each thing that is wrong: its name, what was wanted, and what was given.

    Args:
        error: What pydantic raised.
        given: The values by name; the one that holds the mistake is shown, whole, beside it.
    """
    sentences = []
    for problem in error.errors():
        place = problem["loc"]
        name = ".".join(map(str, place)) or "fields"
        wanted = problem["msg"].removeprefix("Value error, ").rstrip(".")
        got = problem["input"]
        shown = f"{got!r:.200}"
        if given is not None and len(place) > 1 and place[0] in given:
            shown += f" in {given[str(place[0])]!r:.200}"
        sentences.append(f"{name}: {wanted}, but got {shown}.")
    return " ".join(dict.fromkeys(sentences))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" with the nearest known name; nothing where none is near."""
    near = get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else ""
