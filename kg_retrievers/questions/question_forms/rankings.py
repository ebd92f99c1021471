"""How many and which first: "at least two huts", "the oldest hut", "more members than", "came first"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_retrievers.graph.values import Comparison, unit_symbol
from kg_retrievers.questions.question_forms.forms import (
    NUMBER,
    NUMBERS,
    Degree,
    Quantity,
    Reading,
    Token,
    base_of,
    direction,
    is_plural,
    is_unit,
    joined,
    noun_end,
    number_of,
    time_direction,
    words_of,
)

_NOUN = r"(?P<noun>(?:[^ ,]+ ){1,3}?)"
_MORE, _FEWER = "(?:more|over|above|up)", "(?:fewer|less|under)"
_LEAST, _MOST = "(?:minimum|very least|least)", "(?:maximum|very most|most)"
_FORMS: tuple[tuple[Comparison, str], ...] = (
    (">=", rf"(?:at least|no fewer than|no less than|not fewer than|not less than|a minimum of|minimum) {NUMBER}"),
    ("<=", rf"(?:at most|no more than|not more than|up to|a maximum of|maximum) {NUMBER}"),
    ("<=", r"(?:at most|no more than|not more than) (?:a|an) (?:single )?"),
    (">=", rf"{NUMBER} (?:or|and) {_MORE}"),
    ("<=", rf"{NUMBER} (?:or|and) {_FEWER}"),
    (">=", rf"{NUMBER} {_NOUN}(?:(?:or|and) {_MORE}|at (?:a|the) {_LEAST}|minimum)(?= |$)"),
    ("<=", rf"{NUMBER} {_NOUN}(?:(?:or|and) {_FEWER}|at (?:a|the) {_MOST}|maximum)(?= |$)"),
    (">=", rf"{NUMBER} \+"),
    (">=", rf"upwards of {NUMBER}"),
    (">", rf"(?:more than|over|in excess of) {NUMBER}"),
    (">", r"more than (?:a|an) (?:single )?"),
    ("<", rf"(?:fewer than|less than|under) {NUMBER}"),
    ("=", rf"(?:exactly|precisely|just|only) {NUMBER}"),
    ("=", r"(?:exactly|precisely|just|only) (?:a|one) single (?=[a-z])"),
    (">=", r"(?:multiple|several|numerous|a couple of) (?=[a-z])"),
)


def has_quantity(tokens: Sequence[Token]) -> bool:
    """Tell whether words say how many of something there must be, in digits."""
    text = words_of(tokens)
    return any(re.search(rf"(?<![^ ]){form}", text) for _, form in _FORMS if "(?P<n>" in form)


def take_quantity(reading: Reading) -> None:
    """Take how many of something there must be; a number with a unit or of more than three digits is none."""
    for comparison, form in _FORMS:
        found = reading.search(rf"(?<![^ ]){form}")
        if found is None:
            continue
        start, end, match = found
        named = match.groupdict()
        number = number_of(named["n"]) if "n" in named else 2 if comparison == ">=" else 1
        at = start + 1 if named.get("noun") else end
        if reading.search(rf"^(?:[^ ]+ ){{{at}}}of (?:the|these|those|our|their|its) "):
            del reading.tokens[at : at + 2]  # "three of the huts"
        first = at
        while at < len(reading.tokens) and reading.tokens[at].slot:
            at += 1
        stop = end if named.get("noun") else noun_end(reading, at)
        if named.get("noun"):
            stop = first + len(named["noun"].split())
        digits = named.get("n") not in NUMBERS
        if stop == at or ("n" in named and digits and not _counts(reading, number, at)):
            continue
        reading.quantity = Quantity(comparison, number, tuple(reading.tokens[first:stop]))
        reading.tokens[start:end] = reading.tokens[first:stop] if named.get("noun") else []
        return


def _counts(reading: Reading, number: int, at: int) -> bool:
    word = reading.tokens[at].word
    return number <= 999 and not is_unit(word, reading.units) and not is_unit(unit_symbol(word), reading.units)


_ORDINAL = re.compile(
    r"second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|next|penultimate|\d+(?:st|nd|rd|th)"
)
_TOPS = re.compile(
    r"\b(?:tops?|leads?|heads?) the (?:list|table|ranking) (?:by|for|in|of)(?: the)?(?: number of)?"
    r"|\b(?:the )?(?:most|largest|highest|greatest|biggest) number of|\bmost of the"
)
_FEWEST = re.compile(r"\b(?:the )?(?:smallest|lowest|least) number of")
_FIRST = re.compile(r"\b(?:came|comes|come|was \w+|were \w+) (first|last)(?: ,| :|$)|(?<=[^ ] )(first|last)$")
_RANKS = re.compile(r"\branks? (?:first|top|highest|last)\b(?= by)")
_OFTEN = re.compile(r"\b(?:the )?(most|least) (?:often|frequently)\b|\b(?:the )?(most|fewest|least) times\b")
_BY = re.compile(r"(?:, )?\bby (?:the |number of |its |their )?(?=[a-z])")

#: Two things for comparison stand between these words.
OFFERS = frozenset(["or", "and", "vs", "versus", "v", "with", "to", "against"])
_COMPARING = re.compile(
    r"^(?:if (?:i|you|we|one) )?(?:compare|comparing|compared|between|of|out of)(?: the)?(?: two)?(?: [a-z]+)?(?= _)"
)

#: Before a superlative, these say that its noun is what is measured: "has the lowest price".
_HAVING = frozenset(["has", "have", "had", "having", "with", "of", "at", "for", "by", "got"])


def take_ranking(reading: Reading) -> None:
    """Take a superlative or comparative, and how many things it asks for."""
    _take_offer(reading)
    most = _take_rank(reading)
    _take_degree(reading)
    if reading.degree:
        reading.degree = replace(reading.degree, most=most)
    reading.unread |= most > 1 and (reading.degree is None or reading.than or is_choice(reading))


def is_choice(reading: Reading) -> bool:
    """Tell whether two entities are offered for choice."""
    return any(joined(reading.tokens, at, OFFERS) for at in range(len(reading.tokens)))


def _take_offer(reading: Reading) -> None:
    """Take what introduces two entities that are compared: "between A and B", "if I compare A with B"."""
    found = reading.search(_COMPARING)
    if found and joined(reading.tokens, found[1] + 1, OFFERS):
        del reading.tokens[: found[1]]


def _take_rank(reading: Reading) -> int:
    """Take how many things a superlative asks for; an ordinal beside one is not read."""
    words = [token.word for token in reading.tokens]
    found = (at for at, word in enumerate(words) if word in ("most", "fewest") or base_of(word, "est"))
    at = next((at for at in found if not at or words[at - 1] != "at"), -1)
    if at < 0:
        return _take_top(reading, words)
    reading.unread |= any(_ORDINAL.fullmatch(word) for word in words)
    asked = [i + 1 for i in range(min(at, len(words) - 1)) if words[i] in ("which", "what")]
    for place in (at - 1, at + 1, *asked):
        number = _number(words[place]) if 0 <= place < len(words) else 1
        if number != 1:
            reading.unread |= number == 0
            del reading.tokens[place]
            return number
    return 1


def _take_top(reading: Reading, words: Sequence[str]) -> int:
    """Read "top" before a number as a superlative, as in "the top three huts by beds", and take the number."""
    at = next((at for at, word in enumerate(words[:-1]) if word == "top" and _number(words[at + 1]) > 1), -1)
    if at < 0:
        return 1
    reading.tokens[at] = Token("highest")
    return _number(reading.tokens.pop(at + 1).word)


def _number(word: str) -> int:
    return NUMBERS.index(word) if word in NUMBERS else int(word) if re.fullmatch(r"\d{1,3}", word) else 1


def _take_degree(reading: Reading) -> None:
    """Take a superlative or comparative with its noun."""
    if found := reading.search(_TOPS):
        _take_counted(reading, found[0], found[1], 1)
    elif found := reading.search(_FEWEST):
        _take_counted(reading, found[0], found[1], -1)
    elif found := reading.search(_RANKS):
        reading.degree = Degree(-1 if "last" in found[2][0] else 1, False, (Token("high"),), ())
        del reading.tokens[found[0] : found[1]]
    elif found := reading.search(_OFTEN):
        sign = 1 if "most" in found[2][0] else -1
        del reading.tokens[found[0] : found[1]]
        reading.degree = Degree(sign, False, (), (), often=True)
    elif (found := reading.search(_FIRST)) and (is_choice(reading) or reading.asks):
        sign = -1 if "first" in found[2][0] else 1
        at = next(i for i in range(found[1] - 1, -1, -1) if reading.tokens[i].word in ("first", "last"))
        reading.degree = Degree(sign, True, (Token("early" if sign < 0 else "late"),), ())
        del reading.tokens[at]
    else:
        _take_adjective(reading)
    if reading.degree and (found := reading.search(_BY)):
        end = noun_end(reading, found[1])
        reading.degree = replace(reading.degree, words=(*reading.degree.words, *reading.tokens[found[1] : end]))
        del reading.tokens[found[0] : end]
    _take_than(reading)


def _take_than(reading: Reading) -> None:
    """Take "than" before the second of two; "before" and "after" an entity compare dates."""
    words = [token.word for token in reading.tokens]
    if reading.polar and not reading.degree and sum(bool(token.slot) for token in reading.tokens) == 2:
        at = next((at for at, word in enumerate(words[:-1]) if word in ("before", "after")), -1)
        if at > 0 and reading.tokens[at + 1].slot:
            reading.degree = Degree(-1 if words[at] == "before" else 1, True, (Token("early"),), ())
            reading.tokens[at], reading.than = Token("and"), True
            return
    if reading.degree and "than" in words:
        at = words.index("than")
        if reading.polar:
            reading.than = True
            reading.tokens[at] = Token("and")
        elif not is_choice(reading):
            reading.unread = True  # "which huts are higher than this one?"


def _take_counted(reading: Reading, start: int, end: int, sign: int) -> None:
    stop = noun_end(reading, end)
    noun = tuple(reading.tokens[end:stop])
    reading.degree = Degree(sign, False, (), noun)
    del reading.tokens[start:end]


def _take_adjective(reading: Reading) -> None:
    words = [token.word for token in reading.tokens]
    comparative = "than" in words or is_choice(reading)
    for at, word in enumerate(words):
        base = base_of(word, "est") or (base_of(word, "er") if comparative else None)
        more = word in ("most", "fewest", "least") or (comparative and word in ("more", "fewer", "less"))
        if word in ("most", "least") and at and words[at - 1] == "at":
            continue  # "at most one"
        if not more and (base is None or (base_of(word, "est") is None and not _compares(reading, at))):
            continue
        if more and (found := reading.search(rf"\b{word} of (?:the|these|those|her|his|their) ")):
            _take_counted(reading, found[0], found[1], 1 if word in ("most", "more") else -1)
            return
        start = at - 1 if at and words[at - 1] == "the" else at
        noun = tuple(reading.tokens[at + 1 : noun_end(reading, at + 1)])
        if more:
            _take_more(reading, start, at, noun, 1 if word in ("most", "more") else -1)
        else:
            assert base
            _take_measured(reading, start, at, base, noun)
        return


def _take_measured(reading: Reading, start: int, at: int, base: str, noun: tuple[Token, ...]) -> None:
    """Take an adjective on -er or -est; after "has the" its noun is what is measured."""
    word = reading.tokens[at].word
    rest = reading.tokens[at + 2] if at + 2 < len(reading.tokens) else None
    if len(noun) == 1 and noun[0].word.endswith("ed") and rest and rest.telling:  # "highest rated player"
        reading.degree = Degree(direction(base), bool(time_direction(base)), (Token(base), *noun), (), word)
        reading.after_degree = tuple(reading.tokens[at + 2 : noun_end(reading, at + 2)])
        del reading.tokens[start : at + 2]
        return
    compares = base_of(word, "est") is None
    before = reading.tokens[start - 1].word if start else ""
    having = before in _HAVING and start + 1 == at and not (before == "of" and is_plural(noun[-1].word if noun else ""))
    if noun and (compares or having) and not is_plural(noun[-1].word):
        reading.degree = Degree(direction(base), bool(time_direction(base)), (Token(base), *noun), (), word)
        del reading.tokens[start : at + 1 + len(noun)]
        return
    counted = noun if compares and noun else ()
    reading.degree = Degree(direction(base), bool(time_direction(base)), (Token(base),), counted, word)
    reading.after_degree = () if counted else noun
    del reading.tokens[start : at + 1]


def _compares(reading: Reading, at: int) -> bool:
    """Whether a word on -er stands where an adjective does: before "than" or a comma, or after an article."""
    following = (reading.tokens[at + 1].word or "_") if at + 1 < len(reading.tokens) else ""
    before = reading.tokens[at - 1].word if at else ","
    return following in ("than", ",", ":", "") or before in ("a", "an", "the", ",", ":", "is", "was", "are", "were")


def _take_more(reading: Reading, start: int, at: int, noun: tuple[Token, ...], sign: int) -> None:
    """Take "most", "more" and the like with a noun ("most huts") or an adjective ("most expensive")."""
    following = noun[0].word.removesuffix("ly") if noun else ""
    adjective = bool(time_direction(following)) or (len(noun) > 1 and not is_plural(noun[-1].word) and sign > 0)
    if following and not adjective and not is_plural(following) and len(noun) == 1:
        after = reading.tokens[at + 2] if at + 2 < len(reading.tokens) else None
        adjective = after is not None and after.word in ("than", "one")
    if adjective:
        turn = time_direction(following) or direction(following)
        reading.degree = Degree(sign * turn, bool(time_direction(following)), (Token(following),), ())
        reading.after_degree = noun[1:]
        del reading.tokens[start : at + 2]
    else:
        reading.degree = Degree(sign, False, (), noun)
        del reading.tokens[start : at + 1]
