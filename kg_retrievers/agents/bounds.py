"""Bound the requests to a tool and the length of a result."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from kg_retrievers.agents.results import LONGEST, Part, Result, shorten
from kg_retrievers.datasets import MOST_CHARACTERS
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.verbalize import approximate_tokens

#: The most tokens of a result by default, and the least and the most that a caller may ask for.
DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 2_000, 500, 8_000

_TEXT = Field(min_length=1, max_length=MOST_CHARACTERS, pattern=r"\S")

# The arguments that tools share, with the bounds that are checked and the words that a model reads.
QuestionText = Annotated[str, _TEXT, Field(description="A full sentence in English.")]
Entity = Annotated[str, _TEXT, Field(description="An entity by its key or name.")]
_NAME = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Relation = Annotated[_NAME | SkipJsonSchema[None], Field(description="Only this relation.")]
Limit = Annotated[int, Field(ge=1, le=1_000)]

R = TypeVar("R", bound=Result)

#: No more facts or answers are put into a result, even before it is cut: so many are over any bound.
MOST_ITEMS = MOST_TOKENS // 4

# How many characters a text may have, the first that lets enough items in; so many items are enough.
_LENGTHS = (LONGEST, 500, 160, 40, 15)
_ENOUGH = 3


def to_json(result: Result) -> str:
    """Return a result as the JSON that is sent: in one line, without unknown values."""
    return result.model_dump_json(exclude_none=True)


def count_tokens(text: str) -> int:
    """Return `approximate_tokens` of a text.

    A text of long runs of signs counts at least an eighth of its characters.

    Example:
        >>> count_tokens("Spike Jonze"), count_tokens("!" * 800)
        (3, 100)
    """
    return max(approximate_tokens(text), len(text) // 8)


def fit(result: R, max_tokens: int, sent: Callable[[R], str] = to_json) -> R:
    """Return a result that keeps to a bound of tokens, as `count_tokens` counts them.

    Each list keeps its first items, and all lists keep the same number. If too few fit, texts are shortened, too.
    `left_out` says how many items were left out.

    Args:
        result: The result.
        max_tokens: The bound, from `LEAST_TOKENS` to `MOST_TOKENS`.
        sent: Returns the text that is sent of it.

    Raises:
        InvalidArgumentError: If the bound is out of range.
    """
    if not LEAST_TOKENS <= max_tokens <= MOST_TOKENS:
        raise InvalidArgumentError(f"max_tokens must be {LEAST_TOKENS} to {MOST_TOKENS}, but got {max_tokens!r:.50}.")
    longest = _longest(result)

    def fits(most: int, length: int) -> bool:
        return count_tokens(sent(_cut(result, length, most))) <= max_tokens

    length = next((one for one in _LENGTHS if fits(min(_ENOUGH, longest), one)), _LENGTHS[-1])
    most = bisect_left(range(longest + 1), True, key=lambda most: not fits(most, length)) - 1
    if most < 0:
        raise InvalidArgumentError(f"max_tokens={max_tokens} has no room for this result. Allow more.")
    return _cut(result, length, most)


def _longest(value: Any) -> int:
    """Return the length of the longest list in a value."""
    if isinstance(value, Part):
        return max((_longest(getattr(value, name)) for name in type(value).model_fields), default=0)
    return max(len(value), *map(_longest, value)) if isinstance(value, list) and value else 0


def _cut(result: R, length: int, most: int) -> R:
    """Return a result with shorter texts and lists, and how many items it lacks."""
    lost = 0

    def cut(value: Any) -> Any:
        nonlocal lost
        if isinstance(value, str):
            return shorten(value, length)
        if isinstance(value, list):
            lost += max(len(value) - most, 0)
            return [cut(item) for item in value[:most]]
        if isinstance(value, tuple):
            return tuple(map(cut, value))
        if isinstance(value, Part):
            return value.model_copy(update={name: cut(getattr(value, name)) for name in type(value).model_fields})
        return value

    short: R = cut(result)
    return short.model_copy(update={"left_out": result.left_out + lost})
