"""What pydantic found wrong, in the words of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

#: How pydantic begins what it wants.
_SHOULD = re.compile(r"\w+ should ")


def reasons(error: ValidationError, given: Mapping[str, Any] | None = None) -> str:
    """Return a sentence for each mistake: the name, what it must be, and what was given.

    Args:
        error: What pydantic raised.
        given: The values by name; the one that holds the mistake is shown, whole, beside it.

    Example:
        >>> from typing import Annotated
        >>> from pydantic import Field, TypeAdapter
        >>> try:
        ...     TypeAdapter(Annotated[int, Field(ge=1)]).validate_python(0)
        ... except ValidationError as error:
        ...     print(reasons(error))
        The value must be greater than or equal to 1, but got 0.
    """
    return " ".join(dict.fromkeys(_reason(problem, given or {}) for problem in error.errors()))


def _reason(problem: ErrorDetails, given: Mapping[str, Any]) -> str:
    location = problem["loc"]
    name = ".".join(map(str, location)) or "The value"
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    shown = _shown(problem["input"])
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{name} must be left out: there is no such key, but got {shown}."
    if problem["type"] in ("missing", "missing_argument"):
        return f"{name} is missing in {shown}."
    wanted = f"{name}: {message}"
    if found := _SHOULD.match(message):
        wanted = f"{name} must {message[found.end() :]}"
    if len(location) > 1 and location[0] in given:
        shown += f" in {_shown(given[str(location[0])])}"
    return f"{wanted}, but got {shown}."


def _shown(value: object) -> str:
    try:
        return f"{value!r:.200}"
    except (ValueError, RecursionError):  # an integer of some thousand digits, or very deep lists
        return "a value too large to show"
