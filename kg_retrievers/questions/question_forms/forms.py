"""The form of a question, and the question while its form is taken from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from kg_retrievers.graph.values import Comparison
from kg_retrievers.questions.question_forms.literals import Limit
from kg_retrievers.questions.question_forms.tokens import Token, words_of
from kg_retrievers.questions.self_questions.verbs import verb_of

FormKind = Literal["list", "count", "exists", "best", "choice", "compare"]

#: Verbs with which a yes-no question begins.
AUXILIARY = frozenset(
    re.findall(r"\w+", "am is are was were do does did has have had can could will would should may might must")
)
NUMBERS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")

#: A number of things: in words, or in few digits.
NUMBER = rf"(?P<n>{'|'.join(NUMBERS)}|\d{{1,6}})(?![^ ])"

#: May follow a verb, more likely than a noun.
_AFTER_VERBS = frozenset(["the", "a", "an", "most", "more", "in", "on", "at", "for", "_"])

#: Plurals without -s.
_PLURALS = frozenset(["people", "men", "women", "children", "persons", "those", "ones"])


@dataclass(frozen=True)
class Quantity:
    """How many of something, as in "at least two huts"."""

    comparison: Comparison
    number: int
    noun: tuple[Token, ...]


@dataclass(frozen=True)
class Degree:
    """By what things are compared, as in "the oldest", "the most huts", "more members".

    Attributes:
        sign: 1 for the greatest, -1 for the least.
        time: Whether its adjective is of time.
        words: The adjective, and words such as "by beds".
        noun: What is counted or measured; empty for an adjective alone.
        raw: The superlative or comparative as written; "" for none of one word.
        most: How many things are asked for, as in "the three oldest".
        often: Whether something is asked that happens most often.
    """

    sign: int
    time: bool
    words: tuple[Token, ...]
    noun: tuple[Token, ...]
    raw: str = ""
    most: int = 1
    often: bool = False


@dataclass(frozen=True)
class Form:
    """What a question asks, and the words in which it does.

    Attributes:
        kind: What is asked.
        noun: The words for what is looked for, as "huts"; "who"; or none.
        clause: The rest of the question, with the noun in its place.
        negative: The clause that must not hold; empty if there is none.
        limits: The values that limit what is looked for.
        quantity: How many of something it must have.
        degree: By what it is compared.
        unread: Whether a part of the question asks for what no form says; it must be refused.
        both: Whether all entities that "and" joins are meant in the same way, as after "both".
    """

    kind: FormKind
    noun: tuple[Token, ...] = ()
    clause: tuple[Token, ...] = ()
    negative: tuple[Token, ...] = ()
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    unread: bool = False
    both: bool = False


@dataclass
class Reading:
    """A question while its form is taken from it."""

    tokens: list[Token]
    noun_score: Callable[[str], float]
    units: Collection[str]
    polar: bool = False
    count: bool = False
    counted_at: int = -1
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    negative: tuple[Token, ...] = ()
    than: bool = False
    after_degree: tuple[Token, ...] = ()
    unread: bool = False
    both: bool = False

    @property
    def text(self) -> str:
        """Its words, "_" for an entity."""
        return words_of(self.tokens)

    @property
    def asks(self) -> bool:
        """Whether it asks for something, rather than whether it is so."""
        return not self.polar and any(token.word in ("which", "what", "who", "whom", "whose") for token in self.tokens)

    def search(self, form: str | re.Pattern[str]) -> tuple[int, int, re.Match[str]] | None:
        """Return where a form is found, as positions of tokens."""
        match = re.search(form, self.text)
        if match is None:
            return None
        start = self.text[: match.end() - len(match[0].lstrip())].count(" ")
        return start, start + len(match[0].split()), match

    def score(self, tokens: Sequence[Token]) -> float:
        """Return how near a noun is to what the graph holds."""
        return self.noun_score(words_of(tokens)) if tokens else 0.0


def is_plural(word: str) -> bool:
    """Tell whether a word has the form of a plural."""
    return (word.endswith("s") and not word.endswith(("ss", "us", "is"))) or word in _PLURALS


def noun_end(reading: Reading, at: int) -> int:
    """Return where the noun that begins at a position ends: of several words, up to a plural."""
    tokens, end = reading.tokens, at
    while end < len(tokens) and tokens[end].telling and end < at + 3:
        end += 1
    if end <= at + 1:
        return end
    words = [token.word for token in tokens[at:end]]
    if is_plural(words[0]) or is_verb(words[1]):
        return at + 1
    following = (tokens[at + 2].word or "_") if at + 2 < len(tokens) else ""
    if not is_plural(words[1]) or following in AUXILIARY or following in ("", ",", "of", "that", "which", "who"):
        return at + 2
    score = reading.noun_score  # "launch sites in", but "actor appears in"
    return at + 2 if score(words[1]) > score(words[0]) or following not in _AFTER_VERBS else at + 1


def is_verb(word: str) -> bool:
    """Tell whether a word is the form of a verb and no noun."""
    verb = verb_of(word)
    if verb is None:
        return False
    return (word in (verb.past, verb.participle) and word != verb.base) or (word == verb.third and not verb.also_noun)


def number_of(text: str) -> int:
    """Return a number that `NUMBER` found."""
    return NUMBERS.index(text) if text in NUMBERS else int(text)


def joined(tokens: Sequence[Token], at: int, words: Collection[str]) -> int:
    """Return the position of the second of two entities that a word at a position joins; 0 where it joins none.

    The word must be one of some; a preposition and an article may stand before the second entity.
    """
    if not 0 < at < len(tokens) - 1 or tokens[at].word not in words or not tokens[at - 1].slot:
        return 0
    other = at + 1
    while other < len(tokens) - 1 and other < at + 4 and tokens[other].word and not tokens[other].telling:
        other += 1
    return other if tokens[other].slot else 0
