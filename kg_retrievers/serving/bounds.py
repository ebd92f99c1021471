"""How much may be asked of a service, and how long a result may be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.verbalize import approximate_tokens, as_data
from kg_retrievers.serving.results import Part, Result

#: The most characters of a question, or of the name of an entity, and the most seed entities.
MOST_CHARACTERS, MOST_SEEDS = 10_000, 100

#: The most pieces of evidence that can be asked for, and the most facts around an entity.
MOST_EVIDENCE, MOST_FACTS = 100, 1_000

#: The most example questions.
MOST_EXAMPLES = 20


def check_text(name: str, text: str) -> None:
    """Check a text that a caller gives.

    Raises:
        InvalidArgumentError: If it is empty or too long.
    """
    if not text.strip():
        raise InvalidArgumentError(f"the {name} is empty. Give a text.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidArgumentError(
            f"the {name} has {len(text):,} characters; wanted are at most {MOST_CHARACTERS:,}. Say it in fewer words."
        )


def check_range(name: str, number: int, most: int) -> None:
    """Check a number that a caller gives.

    Raises:
        InvalidArgumentError: If it is not 1 to `most`.
    """
    if not 1 <= number <= most:
        raise InvalidArgumentError(f"{name} must be 1 to {most:,}, but got {number!r:.50}.")


def check_seeds(seeds: Sequence[str]) -> None:
    """Check the entities that a question is said to be about.

    Raises:
        InvalidArgumentError: If there are too many, or one is empty or too long.
    """
    if len(seeds) > MOST_SEEDS:
        raise InvalidArgumentError(f"seed_entities holds {len(seeds):,} names; wanted are at most {MOST_SEEDS}.")
    for seed in seeds:
        check_text("seed entity", seed)


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
