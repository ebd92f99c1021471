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
    if problem["type"] == "extra_forbidden":
        return f"{name} must be left out: there is no such key, but got {problem['input']!r:.200}."
    if problem["type"] == "missing":
        return f"{name} is missing in {problem['input']!r:.200}."
    wanted = f"{name}: {message}"
    if found := _SHOULD.match(message):
        wanted = f"{name} must {message[found.end() :]}"
    shown = f"{problem['input']!r:.200}"
    if len(location) > 1 and location[0] in given:
        shown += f" in {given[str(location[0])]!r:.200}"
    return f"{wanted}, but got {shown}."
