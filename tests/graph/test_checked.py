"""Frozen dataclasses that check their values: types, ranges, contradictions, copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from pydantic import Field

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.validation import checked_dataclass


@checked_dataclass
class Sizes:
    """Two sizes, the first of which is a multiple of the second."""

    width: int = Field(ge=1)
    heads: int = Field(default=1, ge=1)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads={self.heads}, but got {self.width}.")


@checked_dataclass
class Named:
    """A class that speaks for a function."""

    who: ClassVar[str] = "train"

    rate: float = Field(default=0.5, gt=0, lt=1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0,), "width must be greater than or equal to 1, but got 0."),
        ((True,), "width must be a valid integer, but got True."),
        (("3",), "width must be a valid integer, but got '3'."),
        ((3, 0), "heads must be greater than or equal to 1, but got 0."),
        ((3, 2), "width must be a multiple of heads=2, but got 3."),
    ],
    ids=str,
)
def test_what_is_wrong(values: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Sizes(*values)
    assert str(caught.value) == f"Sizes: {message}"
    with pytest.raises(InvalidArgumentError, match=message):
        replace(Sizes(6), **dict(zip(("width", "heads"), values, strict=False)))


def test_the_message_names_the_function_that_was_called() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^train: rate must be less than 1, but got nan\.$"):
        Named(rate=float("nan"))


def test_names_that_do_not_exist() -> None:
    with pytest.raises(TypeError, match="'with'"):
        Sizes(**{"width": 3, "with": 4})
    with pytest.raises(TypeError, match="'width'"):
        Sizes()  # type: ignore[call-arg]
