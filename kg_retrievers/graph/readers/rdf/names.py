"""What RDF calls things: the best label of each, in the languages that are wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: Languages of a text that is meant for all of them.
NO_LANGUAGE = ("", "mul", "und", "zxx")

#: In `languages`: takes every other language.
ANY = "*"

#: Predicates of labels are fewer.
_STEP = 1_000


class Languages:
    """The languages that are wanted, best first: each takes itself, then its regions, as "en" takes "en-GB".

    Args:
        wanted: The languages, as "en", and "*" for every other one.

    Example:
        >>> languages = Languages(["en", "de"])
        >>> [languages.rank(language) for language in ("en", "en-GB", "de-at", None, "fr")]
        [0, 1, 3, 4, None]
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        """Rank no language yet."""
        self._wanted = [language.lower().lstrip("@") for language in wanted if language != ANY]
        self._takes_any = ANY in wanted
        self._ranks: dict[str | None, int | None] = {}

    def rank(self, language: str | None) -> int | None:
        """Return how good a language is, from 0; None if it is not wanted. No language is wanted after those named."""
        if language not in self._ranks:
            self._ranks[language] = self._find(language)
        return self._ranks[language]

    def _find(self, language: str | None) -> int | None:
        text = (language or "").lower()
        for position, wanted in enumerate(self._wanted):
            if text == wanted:
                return 2 * position
        for position, wanted in enumerate(self._wanted):
            if text.startswith(f"{wanted}-"):
                return 2 * position + 1
        if text in NO_LANGUAGE:
            return 2 * len(self._wanted)
        return 2 * len(self._wanted) + 1 if self._takes_any else None


class Names:
    """Collects labels and aliases of things, in any order; each thing is a number.

    The label is the one in the best language; of several the one by the best predicate, then the first in sorted order.
    Where none is in a wanted language, the first language in sorted order gives it. Other labels in wanted languages
    are aliases.

    Attributes:
        left_out: How many labels and aliases in other languages were left out.
    """

    def __init__(self, languages: Languages) -> None:
        """Begin without names."""
        self._languages = languages
        self._best: dict[int, tuple[int, str]] = {}
        self._foreign: dict[int, tuple[str, int, str]] = {}
        self._aliases: dict[int, set[str]] = {}
        self.left_out = 0

    def add_label(self, thing: int, text: str, language: str | None, predicate: int) -> None:
        """Add a label by the predicate at a position, 0 for the best one."""
        rank = self._languages.rank(language)
        if rank is None:
            self._add_foreign(thing, (language or "", predicate, text))
            return
        new = (rank * _STEP + predicate, text)
        best = self._best.setdefault(thing, new)
        if new[1] != best[1]:
            self._aliases.setdefault(thing, set()).add(max(new, best)[1])
        if new < best:
            self._best[thing] = new

    def _add_foreign(self, thing: int, new: tuple[str, int, str]) -> None:
        self.left_out += 1
        if thing not in self._foreign or new < self._foreign[thing]:
            self._foreign[thing] = new

    def add_alias(self, thing: int, text: str, language: str | None) -> None:
        """Add another name."""
        if self._languages.rank(language) is None:
            self.left_out += 1
        else:
            self._aliases.setdefault(thing, set()).add(text)

    def finish(self) -> Counter[str]:
        """Take a label of another language where there is no better one; return how many by language."""
        taken: Counter[str] = Counter()
        for thing, (language, _, text) in self._foreign.items():
            if thing not in self._best:
                self._best[thing] = (-1, text)
                taken[language] += 1
        self._foreign.clear()
        self.left_out -= taken.total()
        return taken

    def label(self, thing: int) -> str | None:
        """Return the label of a thing."""
        best = self._best.get(thing)
        return best[1] if best else None

    def aliases(self, thing: int) -> list[str]:
        """Return its other names in sorted order."""
        others = self._aliases.get(thing)
        return sorted(others - {self.label(thing) or ""}) if others else []

    def things(self) -> set[int]:
        """Return everything that has a name."""
        return self._best.keys() | self._aliases.keys()
