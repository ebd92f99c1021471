"""Comparatives and superlatives by their form, and which way they point."""

from __future__ import annotations

import re

#: Words on -est and -er that compare nothing.
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        "arrest best chest contest crest digest east everest forest fest guest harvest honest interest invest manifest "
        "after another either ever former however leader letter member never neither number offer order other over "
        "paper together under whether "
        "whatever whichever whoever whomever whenever wherever "
        "modest nest northwest pest priest protest quest request rest southwest suggest test tempest vest west",
    )
)

#: Adjectives of time: which way their comparatives and superlatives point along a date.
_TIMES = {
    "old": -1, "eld": -1, "early": -1, "first": -1, "ancient": -1, "soon": -1, "young": 1, "new": 1, "late": 1,
    "recent": 1, "last": 1, "modern": 1,
}  # fmt: skip

#: Adjectives that point to the lower end of a number.
_LOW = frozenset(
    re.findall(
        r"\w+", "small short low cheap light few little slow near narrow thin poor weak shallow less least tiny close"
    )
)
_IRREGULAR = {
    "less": "little", "least": "little", "fewer": "few", "fewest": "few", "farther": "far", "further": "far",
    "farthest": "far", "furthest": "far", "latest": "late", "later": "late", "earlier": "early", "earliest": "early",
    "elder": "eld", "eldest": "eld",
}  # fmt: skip


def base_of(word: str, ending: str) -> str | None:
    """Return the adjective of a comparative ("er") or superlative ("est"); None for other words.

    Example:
        >>> [base_of(word, "est") for word in ("biggest", "oldest", "heaviest", "largest", "guest", "nicest")]
        ['big', 'old', 'heavy', 'large', None, 'nice']
    """
    if not word.endswith(ending) or len(word) < len(ending) + 3 or word in _PLAIN:
        return _IRREGULAR.get(word) if word.endswith(("st" if ending == "est" else "er", "less")) else None
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    stem = word[: -len(ending)]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if re.search(r"([bdgmnpt])\1$", stem):
        return stem[:-1]
    return f"{stem}e" if re.search(r"[aeiou](?:[cgsvz]|rg)$", stem) or stem.endswith(("bl", "pl")) else stem


def time_direction(adjective: str) -> int:
    """Return -1 where an adjective points to earlier dates, 1 to later ones, 0 where it is not of time."""
    return _TIMES.get(adjective, 0)


def direction(adjective: str) -> int:
    """Return -1 where an adjective points to lower values, else 1.

    Example:
        >>> direction("cheap"), direction("tall"), direction("young"), direction("old")
        (-1, 1, 1, -1)
    """
    return time_direction(adjective) or (-1 if adjective in _LOW else 1)
