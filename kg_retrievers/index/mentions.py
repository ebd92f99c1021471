"""Mentions: the parts of a question that name entities, which of them overlap, and which is likely the topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.index.name_table import NameTable, RunningHash, codes_of
from kg_retrievers.index.words import FUNCTION_WORDS, has_capitals, words_of

How = Literal["exact", "case", "fuzzy", "short"]

#: Scores of an entity whose name is written exactly; but for case, accents or punctuation; but for blanks as well; of
#: one whose name is shortened; and the most that a fuzzy mention gets.
EXACT_SCORE, CASE_SCORE, BLANKS_SCORE, SHORT_SCORE, FUZZY_SCORE = 1.0, 0.9, 0.8, 0.75, 0.8

#: How many windows of a question are looked up at once.
WINDOW_BLOCK = 1 << 16

_TOKEN = re.compile(r"\w+|[^\w\s]")

# How likely the topic is named so, other things being equal.
_SURENESS = {"exact": 2, "case": 2, "short": 1, "fuzzy": 0}


@dataclass(frozen=True)
class LinkedEntity:
    """An entity that a mention may mean.

    Attributes:
        entity: Its key.
        label: What it is called.
        score: In (0, 1]: 1 if a name is written exactly, 0.9 but for case, accents or punctuation, 0.8 but for blanks
            as well; 0.75 if it is shortened; 0.8 times the share of equal letters for a fuzzy mention.
        how: "exact", "case", "short" or "fuzzy".
    """

    entity: str
    label: str
    score: float
    how: How


@dataclass(frozen=True)
class Mention:
    """A part of a question that names an entity.

    Attributes:
        text: The part, `question[start:end]`.
        start: Where it begins.
        end: Where it ends.
        candidates: The entities it may mean, best first; all entities of an ambiguous label have equal scores.
        rank: 1 for the mention most likely to be the topic of the question, then 2, 3 ...
    """

    text: str
    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    rank: int


class Match(NamedTuple):
    """A mention before it has a rank."""

    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    marked: bool  # has capitals, digits or signs, other than at the very beginning of the question


class Token(NamedTuple):
    """A word or a sign of a question."""

    start: int
    end: int
    word: str  # its letters and digits, folded; empty for a sign
    capital: bool  # begins with a capital or a digit


class QuestionText:
    """A question in tokens.

    Args:
        question: The question.
    """

    def __init__(self, question: str) -> None:
        """Read the tokens."""
        self.question = question
        self.tokens = [
            Token(*found.span(), "".join(words_of(found[0])), found[0][0].isupper() or found[0][0].isdigit())
            for found in _TOKEN.finditer(question)
        ]
        self._start, self._end = self.tokens[0].start, self.tokens[-1].end

    @property
    def has_capital(self) -> bool:
        """Whether any letter but the first of the question is a capital."""
        return has_capitals(self._inside(self._start, self._end))

    def text(self, first: int, last: int) -> str:
        """Return what stands from one token to another."""
        return self.question[self.tokens[first].start : self.tokens[last].end]

    def match(self, first: int, last: int, candidates: tuple[LinkedEntity, ...]) -> Match:
        """Return a mention from one token to another."""
        start, end = self.tokens[first].start, self.tokens[last].end
        return Match(start, end, candidates, self.is_marked(start, end))

    def is_whole(self, start: int, end: int) -> bool:
        """Return whether a part is the question, but for blanks."""
        return start == self._start and end == self._end

    def is_marked(self, start: int, end: int) -> bool:
        """Return whether a part has capitals, digits or signs, but for the first letter of the question."""
        text = self._inside(start, end)
        return has_capitals(text) or not all(character.isalpha() or character.isspace() for character in text)

    def has_capitals(self, match: Match) -> bool:
        """Return whether a mention has a capital, but for the first letter of the question."""
        return has_capitals(self._inside(match.start, match.end))

    def stands_alone(self, start: int, end: int) -> bool:
        """Return whether a mention of signs has blanks around it and is not the full stop or question mark."""
        closing = self.question[start:end] in (".", "?", "!") and end == self._end
        before, after = self.question[max(start - 1, 0) : start], self.question[end : end + 1]
        return not closing and not before.strip() and not after.strip()

    def opens(self, token: int) -> bool:
        """Return whether a token is the first one and a function word, whose capital says nothing."""
        return token == 0 and self.tokens[0].word in FUNCTION_WORDS

    def covered(self, matches: Iterable[Match]) -> list[bool]:
        """Return for each token whether it is inside one of some mentions."""
        inside = bytearray(len(self.question))
        for match in matches:
            inside[match.start : match.end] = b"\1" * (match.end - match.start)
        return [bool(inside[token.start]) for token in self.tokens]

    def named_windows(self, table: NameTable) -> Iterator[tuple[int, int, np.uint64]]:
        """Yield the first and last token of each window that seems to be a name, and its hash.

        Cost: O(tokens * windows that begin at one token and are not longer than the longest name).
        """
        words = RunningHash(codes_of(token.word for token in self.tokens))
        starts, ends = np.array([token[:2] for token in self.tokens], np.int64).T
        letters = np.append(0, np.cumsum([len(token.word) for token in self.tokens]))
        by_letters = np.searchsorted(letters, letters[:-1] + table.longest, "right") - 1
        stops = np.minimum(by_letters, np.searchsorted(ends, starts + 2 * table.longest, "right"))
        counts = np.maximum(stops - np.arange(len(starts)), 0)
        signs: RunningHash | None = None
        for begin, end in _blocks(counts):
            first = np.repeat(np.arange(begin, end), counts[begin:end])
            last = first + _counted(counts[begin:end])
            is_sign = letters[first] == letters[last + 1]
            hashes = words.between(letters[first], letters[last + 1])
            if is_sign.any():
                signs = signs or RunningHash(codes_of([self.question]))
                hashes[is_sign] = signs.between(starts[first[is_sign]], ends[last[is_sign]])
            for hit in np.flatnonzero(table.has(hashes)).tolist():
                yield int(first[hit]), int(last[hit]), hashes[hit]

    def _inside(self, start: int, end: int) -> str:
        return self.question[max(start, self._start + 1) : end]


def _blocks(counts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of starts which have about `WINDOW_BLOCK` windows together."""
    block = np.cumsum(counts) // WINDOW_BLOCK
    cuts = np.flatnonzero(np.diff(block)) + 1
    bounds = [0, *cuts.tolist(), len(counts)]
    yield from pairwise(bounds)


def _counted(counts: Array) -> Array:
    """Return 0, 1, 2, ... for each count, one after the other."""
    numbers: Array = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def longest(matches: Sequence[Match]) -> list[Match]:
    """Keep the longest of overlapping matches, and none that differs in blanks where there is another."""
    return apart(sorted(matches, key=lambda m: (m.candidates[0].score <= BLANKS_SCORE, m.start - m.end, m.start)))


def apart(matches: Sequence[Match]) -> list[Match]:
    """Keep each match that does not overlap an earlier one."""
    taken = bytearray(max((match.end for match in matches), default=0))
    kept: list[Match] = []
    for match in matches:
        if not any(taken[match.start : match.end]):
            taken[match.start : match.end] = b"\1" * (match.end - match.start)
            kept.append(match)
    return kept


def with_ranks(question: str, matches: Sequence[Match]) -> list[Mention]:
    """Return the mentions by position, each with its rank."""
    ranks = {match: rank for rank, match in enumerate(sorted(matches, key=_likelihood, reverse=True), 1)}
    return [Mention(question[m.start : m.end], m.start, m.end, m.candidates, ranks[m]) for m in sorted(matches)]


def _likelihood(match: Match) -> tuple[bool, int, int, float]:
    """Return a sort key, greater for a likelier topic."""
    best = match.candidates[0]
    return match.marked, _SURENESS[best.how], match.end - match.start, best.score
