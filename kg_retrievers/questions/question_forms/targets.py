"""The noun for what a question looks for."""

from __future__ import annotations

import re

from kg_retrievers.questions.question_forms.forms import Reading, is_plural, noun_end
from kg_retrievers.questions.question_forms.tokens import Token

_ASKS = frozenset(["which", "what"])
_OF = r"(?:(?:of|out of|from among{more})(?: all)?(?: of)? (?:the |these |those )|among(?:st)? (?:all |the |of )*)"
_AMONG = re.compile(rf"(?:^|(?<=[, ])){_OF.format(more='')}(?:_ )*(?=[a-z])")
_FRONTED = re.compile(rf"^{_OF.format(more='|for|from')}(?:_ )*(?=[a-z])")


def find_target(reading: Reading) -> tuple[tuple[Token, ...], list[Token]]:
    """Return the noun for what is looked for, and the clause with this noun in its place."""
    tokens = reading.tokens
    asked = _asked(reading)
    found = reading.search(_FRONTED) or reading.search(_AMONG)
    among = tuple(tokens[found[1] : noun_end(reading, found[1])]) if found else ()
    if asked and not (among and is_plural(among[-1].word) and not is_plural(asked[-1].word)):
        return asked, tokens
    if among:
        return among, tokens
    if reading.after_degree:
        noun = reading.after_degree
        return noun[:1] if is_plural(noun[0].word) else noun, tokens
    for token in tokens:
        if token.word in ("who", "whom"):
            return (token,), tokens
    start = next((at for at, token in enumerate(tokens) if token.telling), 0)
    end = noun_end(reading, start)
    return tuple(tokens[start:end]), tokens


def _asked(reading: Reading) -> tuple[Token, ...]:
    """Return the noun after "which" or "what"."""
    tokens, words = reading.tokens, [token.word for token in reading.tokens]
    counted = reading.quantity.noun if reading.quantity else reading.degree.noun if reading.degree else ()
    for at, word in enumerate(words):
        if word not in _ASKS or (word == "which" and at != reading.counted_at and _is_relative(reading, at)):
            continue
        start = at + 1
        while start < len(tokens) and (tokens[start].slot or words[start] in ("of", "the", "these", "all", "is", "a")):
            start += 1
        end = noun_end(reading, start)
        while end > start and tokens[end - 1] in counted and not set(counted) >= set(tokens[start:end]):
            end -= 1
        if end > start and words[start] not in ("one", "ones", "two"):
            return tuple(tokens[start:end])
    return ()


def _is_relative(reading: Reading, at: int) -> bool:
    """Whether "which" refers to a noun before it, as in "huts in which"."""
    before = reading.tokens[:at]
    if before and before[-1].word and not before[-1].telling:
        before = before[:-1]
    return bool(before) and before[-1].telling and at + 1 < len(reading.tokens)
