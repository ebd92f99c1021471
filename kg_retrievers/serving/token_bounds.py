"""Cuts a result until it keeps to a bound of tokens, whatever the names in a graph are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, TypeVar

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.verbalize import approximate_tokens, as_data
from kg_retrievers.serving.results import Part, Result

R = TypeVar("R", bound=Result)

#: How many tokens a result has at most where nobody says; the least and the most that can be asked for.
DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 2_000, 500, 8_000

#: No list of a result holds more, even before it is cut: so many items are over any bound.
MOST_ITEMS = MOST_TOKENS // 4

# How many characters a text may have, the first that lets enough items in; so many items are enough.
_LENGTHS = (2_000, 500, 160, 40, 15)
_ENOUGH = 3


def shorten(text: str, length: int = _LENGTHS[0]) -> str:
    """Return a text, or its beginning where it is longer.

    Example:
        >>> shorten("abcdefgh", 4)
        'abcd ...'
    """
    return text if len(text) <= length else f"{text[:length]} ..."


def shown(text: str) -> str:
    """Return a text of a graph, a model or a user as results hold it: as data, and not too long."""
    return as_data(shorten(text))


def to_json(result: Result) -> str:
    """Return a result as JSON is sent: in one line, without what is not known."""
    return result.model_dump_json(exclude_none=True)


def count_tokens(text: str) -> int:
    """Return `approximate_tokens` of a text; of one that is made of long runs of signs, an eighth of its characters.

    Example:
        >>> count_tokens("Spike Jonze"), count_tokens("!" * 800)
        (3, 100)
    """
    return max(approximate_tokens(text), len(text) // 8)


def fit(result: R, max_tokens: int, sent: Callable[[R], str] = to_json) -> R:
    """Return a result that keeps to a bound of tokens, as `count_tokens` counts them.

    Each list keeps its first items, of all lists as many; where too few fit, texts are shortened, too. `left_out` says
    how many items were left out.

    Args:
        result: The result.
        max_tokens: The bound, from `LEAST_TOKENS` to `MOST_TOKENS`.
        sent: Returns what is sent of it.

    Raises:
        InvalidArgumentError: If the bound is out of range.
    """
    check_max_tokens(max_tokens)
    longest = _longest(result)

    def fits(most: int, length: int) -> bool:
        return count_tokens(sent(_cut(result, length, most))) <= max_tokens

    length = next((one for one in _LENGTHS if fits(min(_ENOUGH, longest), one)), _LENGTHS[-1])
    most = _most_items(lambda n: fits(n, length), longest)
    if most < 0:
        raise InvalidArgumentError(f"max_tokens={max_tokens} has no room for this result. Allow more.")
    return _cut(result, length, most)


def check_max_tokens(max_tokens: int) -> None:
    """Check a bound of tokens.

    Raises:
        InvalidArgumentError: If it is out of range.
    """
    if not LEAST_TOKENS <= max_tokens <= MOST_TOKENS:
        raise InvalidArgumentError(f"max_tokens must be {LEAST_TOKENS} to {MOST_TOKENS}, but got {max_tokens!r:.50}.")


def _most_items(fits: Callable[[int], bool], longest: int) -> int:
    """Return the most items for which a result fits, at most `longest`; -1 where it does not fit without any."""
    high = 1
    while high < longest and fits(high):
        high *= 2
    return bisect_left(range(min(high, longest) + 1), True, key=lambda most: not fits(most)) - 1


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
