"""Define frozen dataclasses that check their values.

The module also words pydantic's findings for this package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ErrorDetails

from kg_retrievers.errors import InvalidArgumentError, bind_arguments, did_you_mean

#: The beginnings of pydantic's demands.
_SHOULD = re.compile(r"\w+ should ")

#: How pydantic names a text among the types of a value.
_TEXT_TAGS = ("str", "constrained-str")


def reasons(error: ValidationError, given: Mapping[str, Any] | None = None, names: Sequence[str] = ()) -> str:
    """Return a sentence for each mistake.

    It gives the name, the demand, and the given value.

    Args:
        error: The error that pydantic raised.
        given: The values by name. The value that holds the mistake is shown, whole, next to it.
        names: The names of the values that were given without one.

    Example:
        >>> from typing import Annotated
        >>> from pydantic import Field, TypeAdapter
        >>> try:
        ...     TypeAdapter(Annotated[int, Field(ge=1)]).validate_python(0)
        ... except ValidationError as error:
        ...     print(reasons(error))
        The value must be greater than or equal to 1, but got 0.
    """
    problems = error.errors()
    told = [one for one in problems if one["type"] != "none_required"] or problems  # None is the default
    return " ".join(dict.fromkeys(_reason(problem, given or {}, names) for problem in told))


def _reason(problem: ErrorDetails, given: Mapping[str, Any], names: Sequence[str]) -> str:
    location = problem["loc"]
    if location and isinstance(location[0], int) and location[0] < len(names):
        location = (names[location[0]], *location[1:])
    if len(location) > 1 and location[-1] in _TEXT_TAGS:
        location = location[:-1]
    name = ".".join(map(str, location)) or "The value"
    message = problem["msg"].removeprefix("Value error, ").rstrip(".").replace("a valid tuple", "a list")
    message = re.sub(" after validation|, unable to parse .*", "", message)
    if problem["type"] == "sequence_str":
        message = f"wanted a list of texts, such as {[text.strip() for text in problem['input'].split(',')]!r:.200}"
    shown = _shown(problem["input"])
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{name} must be left out: there is no such key, but got {shown}."
    if problem["type"] in ("missing", "missing_argument"):
        return f"{name} is missing in {shown}."
    if problem["type"] == "string_pattern_mismatch" and problem["ctx"]["pattern"] == r"\S":
        return f"{name} must not be blank, but got {shown}."
    wanted = f"{name}: {message}"
    if found := _SHOULD.match(message):
        wanted = f"{name} must {message[found.end() :]}"
    if len(location) > 1 and location[0] in given:
        shown += f" in {_shown(given[str(location[0])])}"
    known = re.findall("'(.*?)'", problem["ctx"]["expected"]) if problem["type"] == "literal_error" else ()
    hint = did_you_mean(shown.strip("'"), known)
    return f"{wanted}, but got {shown}{f'; {hint}' if hint else '.'}"


def _shown(value: object) -> str:
    try:
        return f"{value!r:.200}"
    except (ValueError, RecursionError):  # an integer of some thousand digits, or very deep lists
        return "a value too large to show"


def check_integer(value: object, what: str, least: int = 1, most: int | None = None) -> None:
    """Check that an argument is an integer in a range.

    Args:
        value: The argument.
        what: The function that takes it, and its name.
        least: The least value.
        most: The greatest value. None for no bound.

    Raises:
        InvalidArgumentError: If it is not.

    Example:
        >>> check_integer(0, "generate_questions: count")
        Traceback (most recent call last):
        kg_retrievers.errors.InvalidArgumentError: generate_questions: count must be an integer of 1 or more, but got 0.
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if number < least or (most and number > most):
        wanted = f"from {least:,} to {most:,}" if most else f"of {least:,} or more"
        raise InvalidArgumentError(f"{what} must be an integer {wanted}, but got {_shown(value)}.")


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def checked_dataclass(kind: type[T]) -> type[T]:
    """Make a frozen dataclass that checks types and ranges.

    It raises `InvalidArgumentError` if a value is wrong.

    Types are strict: no text stands for a number, no number for a boolean. A `__post_init__` raises ValueError if
    values contradict each other. The message begins with the name of the class, or with its class variable `who`.

    Example:
        >>> @checked_dataclass
        ... class Sizes:
        ...     width: int = Field(default=50, ge=1)
        >>> Sizes(width=0)
        Traceback (most recent call last):
        kg_retrievers.errors.InvalidArgumentError: Sizes: width must be greater than or equal to 1, but got 0.
    """
    made: Any = dataclass(frozen=True, config=ConfigDict(strict=True))(kind)
    construct, parameters = made.__init__, signature(made)

    @wraps(construct)
    def construct_checked(self: Any, *args: Any, **kwargs: Any) -> None:
        who = getattr(kind, "who", kind.__name__)
        values = bind_arguments(who, parameters, args, kwargs)
        try:
            construct(self, **values)
        except ValidationError as error:
            problem = error.errors()[0]
            told = reasons(error) if problem["loc"] else problem["msg"].removeprefix("Value error, ")
            cause = problem.get("ctx", {}).get("error")
            hints = cause.hints if isinstance(cause, InvalidArgumentError) else {}
            raise InvalidArgumentError(f"{who}: {told}", **hints) from None

    made.__init__ = construct_checked
    checked: type[T] = made
    return checked
