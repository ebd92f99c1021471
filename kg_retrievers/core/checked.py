"""Frozen dataclasses that check their values."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.validation import reasons

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def checked_dataclass(kind: type[T]) -> type[T]:
    """Make a frozen dataclass that checks types and ranges, and raises `InvalidArgumentError` where one is wrong.

    Types are strict: no text stands for a number, no number for a boolean. A `__post_init__` raises ValueError where
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
        values = parameters.bind(*args, **kwargs).arguments
        try:
            construct(self, **values)
        except ValidationError as error:
            who = getattr(kind, "who", kind.__name__)
            raise InvalidArgumentError(f"{who}: {_message(error)}") from None

    made.__init__ = construct_checked
    checked: type[T] = made
    return checked


def _message(error: ValidationError) -> str:
    """Return what is wrong with a value, or with the values together."""
    problem = error.errors()[0]
    return reasons(error) if problem["loc"] else problem["msg"].removeprefix("Value error, ")
