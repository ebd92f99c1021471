"""The form of a question that needs an operation: what is asked of what, by its function words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kg_retrievers.graph.operations import Operator
from kg_retrievers.graph.values import Comparison
from kg_retrievers.patterns.question_forms.degrees import base_of, direction, time_direction
from kg_retrievers.patterns.question_forms.literals import Limit, find_limits, is_unit
from kg_retrievers.patterns.question_forms.tokens import MAX_TOKENS, Token, words_of

_AUXILIARY = frozenset(
    re.findall(r"\w+", "am is are was were do does did has have had can could will would should may might must")
)
_NUMBERS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")
_NUMBER = rf"(?P<n>{'|'.join(_NUMBERS)}|\d{{1,6}})"
_QUANTITIES: tuple[tuple[Comparison, str], ...] = (
    (">=", rf"(?:at least|no fewer than|no less than|not fewer than|not less than|a minimum of) {_NUMBER}"),
    ("<=", rf"(?:at most|no more than|not more than|up to|a maximum of) {_NUMBER}"),
    (">=", rf"{_NUMBER} (?:or|and) more"),
    ("<=", rf"{_NUMBER} (?:or|and) (?:fewer|less)"),
    (">", rf"(?:more than|over) {_NUMBER}"),
    ("<", rf"(?:fewer than|less than|under) {_NUMBER}"),
    ("=", rf"(?:exactly|precisely|just|only) {_NUMBER}"),
)
_OPPOSITE: dict[str, Operator] = {"<": ">=", ">": "<="}
_UNREAD_NUMBER = re.compile(r"\b(?:at (?:least|most)|(?:more|fewer|less) than|exactly) \d")
_COUNT = re.compile(
    r"^(?:(?:in|of|at|for|from|by|with|on|to|and) )?how many (?:different )?(?:of (?:the |these |those )?)?"
    r"|^(?:(?:what|tell me|give me|count|is) )*(?:the )?(?:total |overall )?number of (?:the |different )?"
)
_TRUE = re.compile(r"^(?:is it (?:true|right|correct|the case) (?:that )?)")
_ASKING = re.compile(
    r"\b(?:who|whom|whose|which|what|when|where|how|why|name|list|give|show|tell|find)\b"
    r"|^\w+ (?:you|we|i|any(?:one|body)|some(?:one|body)) "
)
_NEGATIVE = frozenset(["not", "no", "never", "without", "neither", "none", "cannot"])
#: Words that turn or narrow what a question asks; none of them may be left where they are not read.
_TURNING = _NEGATIVE | frozenset(
    re.findall(r"\w+", "nor nobody nothing only solely all every each both always except excluding")
)
_STARTS_CLAUSE = frozenset(["but", "that", "who", "which", "whose", "and"])
_ORDINAL = re.compile(
    r"second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|next|penultimate|\d+(?:st|nd|rd|th)"
)
_ASKS = frozenset(["which", "what", "whose"])

FormKind = Literal["list", "count", "exists", "best", "choice", "compare"]


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
    """

    sign: int
    time: bool
    words: tuple[Token, ...]
    noun: tuple[Token, ...]
    raw: str = ""
    most: int = 1


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
    """

    kind: FormKind
    noun: tuple[Token, ...] = ()
    clause: tuple[Token, ...] = ()
    negative: tuple[Token, ...] = ()
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    unread: bool = False


@dataclass
class _Reading:
    """A question while its form is taken from it."""

    tokens: list[Token]
    noun_score: Callable[[str], float]
    units: Collection[str]
    polar: bool = False
    count: bool = False
    limits: tuple[Limit, ...] = ()
    quantity: Quantity | None = None
    degree: Degree | None = None
    negative: tuple[Token, ...] = ()
    than: bool = False
    joins: bool = False
    after_degree: tuple[Token, ...] = ()
    unread: bool = False

    @property
    def text(self) -> str:
        return words_of(self.tokens)

    def search(self, form: str | re.Pattern[str]) -> tuple[int, int, re.Match[str]] | None:
        """Return where a form is found, as positions of tokens."""
        match = re.search(form, self.text)
        if match is None:
            return None
        start = self.text[: match.start()].count(" ")
        return start, start + len(match[0].split()), match


def read_form(tokens: Sequence[Token], noun_score: Callable[[str], float], units: Collection[str]) -> Form | None:
    """Return the form of a question; None where it needs no operation, or is too long for one.

    Args:
        tokens: Its words and entities.
        noun_score: How near a word is to what the graph holds; tells "media groups" from "group owns".
        units: The units of the graph's numbers.
    """
    if len(tokens) > MAX_TOKENS:
        return None
    tokens = [token for token in tokens if token.text not in '?.!"“”']
    reading = _Reading(list(tokens), noun_score, units)
    _take_opening(reading)
    _take_quantity(reading)
    _take_limits(reading)
    most = _take_rank(reading)
    _take_degree(reading)
    if reading.degree:
        reading.degree = replace(reading.degree, most=most)
    reading.unread |= most > 1 and (reading.degree is None or _kind(reading) != "best")
    _take_negative(reading)
    _find_unread(reading)
    reading.joins = any(_is_or(reading.tokens, at) for at in range(len(reading.tokens)))
    if not (
        reading.unread or reading.polar or reading.count or reading.limits or reading.quantity or reading.degree
        or reading.negative or reading.joins
    ):  # fmt: skip
        return None
    noun, clause = _target(reading)
    return Form(
        _kind(reading), noun, tuple(clause), reading.negative, reading.limits, reading.quantity, reading.degree,
        reading.unread,
    )  # fmt: skip


def _is_or(tokens: Sequence[Token], at: int) -> bool:
    return 0 < at < len(tokens) - 1 and tokens[at].word == "or" and bool(tokens[at - 1].slot and tokens[at + 1].slot)


def _kind(reading: _Reading) -> FormKind:
    if reading.degree and reading.than:
        return "compare"
    if reading.degree:
        return "choice" if _is_choice(reading) else "best"
    if reading.count:
        return "count"
    return "exists" if reading.polar else "list"


def _is_choice(reading: _Reading) -> bool:
    """Whether two entities are offered for choice."""
    tokens = reading.tokens
    return any(
        tokens[at].word in ("or", "and") and 0 < at < len(tokens) - 1 and tokens[at - 1].slot and tokens[at + 1].slot
        for at in range(len(tokens))
    )


def _take_opening(reading: _Reading) -> None:
    """Take "how many" and "is it true that"; an auxiliary verb before all else asks whether something holds."""
    if found := reading.search(_COUNT):
        reading.count = True
        reading.tokens[: found[1]] = [Token("which")]
    elif found := reading.search(_TRUE):
        reading.polar = True
        del reading.tokens[: found[1]]
    elif reading.tokens and reading.tokens[0].word in _AUXILIARY and not reading.search(_ASKING):
        reading.polar = True
        del reading.tokens[0]


def noun_end(reading: _Reading, at: int) -> int:
    """Return where the noun that begins at a position ends: of several words, up to a plural."""
    tokens, end = reading.tokens, at
    while end < len(tokens) and tokens[end].telling and end < at + 3:
        end += 1
    if end <= at + 1:
        return end
    words = [token.word for token in tokens[at:end]]
    if _is_plural(words[0]):
        return at + 1
    following = tokens[at + 2].word if at + 2 < len(tokens) else ""
    if _is_plural(words[1]) and following not in ("the", "a", "an", "most", "more"):
        return at + 2
    score = reading.noun_score
    return at + 2 if score(words[1]) > score(words[0]) else at + 1


def _is_plural(word: str) -> bool:
    return (word.endswith("s") and not word.endswith(("ss", "us", "is"))) or word in (
        "people",
        "men",
        "women",
        "children",
    )


def _take_quantity(reading: _Reading) -> None:
    for comparison, form in _QUANTITIES:
        found = reading.search(rf"\b{form}\b")
        if found is None:
            continue
        start, end, match = found
        number = _NUMBERS.index(match["n"]) if match["n"] in _NUMBERS else int(match["n"])
        at = end
        while at < len(reading.tokens) and reading.tokens[at].slot:
            at += 1
        stop = noun_end(reading, at)
        if stop == at or (match["n"].isdigit() and (number > 999 or is_unit(reading.tokens[at].word, reading.units))):
            continue
        reading.quantity = Quantity(comparison, number, tuple(reading.tokens[end:stop]))
        del reading.tokens[start:end]
        return


def _take_limits(reading: _Reading) -> None:
    words = [token.word or "_" for token in reading.tokens]
    reading.limits = tuple(find_limits(words, reading.units))
    limits = list[Limit]()
    for limit in reversed(reading.limits):
        at = next(
            (at for at in range(limit.start - 1, -1, -1) if words[at] == "never" or not reading.tokens[at].telling), -1
        )
        denied = at >= 0 and words[at] in ("not", "never")
        opposite = _OPPOSITE.get(limit.operator)
        reading.unread |= denied and (reading.polar or opposite is None or limit.start - at > 2)
        limits.insert(0, limit._replace(operator=opposite) if denied and opposite else limit)
        del reading.tokens[limit.start : limit.end]
        if denied:
            del reading.tokens[at]
    reading.limits = tuple(limits)


def _take_rank(reading: _Reading) -> int:
    """Take how many things a superlative asks for; an ordinal beside one is not read."""
    words = [token.word for token in reading.tokens]
    at = next((at for at, word in enumerate(words) if word in ("most", "fewest") or base_of(word, "est")), -1)
    if at < 0:
        return 1
    reading.unread |= any(_ORDINAL.fullmatch(word) for word in words)
    asked = [i + 1 for i in range(min(at, len(words) - 1)) if words[i] in ("which", "what")]
    for place in (at - 1, at + 1, *asked):
        word = words[place] if 0 <= place < len(words) else ""
        number = _NUMBERS.index(word) if word in _NUMBERS else int(word) if re.fullmatch(r"\d{1,3}", word) else 1
        if number != 1:
            reading.unread |= number == 0
            del reading.tokens[place]
            return number
    return 1


def _take_degree(reading: _Reading) -> None:
    """Take a superlative or comparative with its noun."""
    ranked = r"\b(?:tops?|leads?|heads?) the (?:list|table|ranking) (?:by|for|in|of)(?: the)?(?: number of)?"
    if found := reading.search(
        rf"{ranked}|\b(?:the )?(?:most|largest|highest|greatest|biggest) number of|\bmost of the"
    ):
        _take_counted(reading, found[0], found[1], 1)
    elif found := reading.search(
        r"\b(?:came|comes|come|was \w+|were \w+) (first|last)(?: ,| :|$)|(?:one|who|,|:) (first|last)$"
    ):
        sign = -1 if "first" in found[2][0] else 1
        at = next(i for i in range(found[0], found[1]) if reading.tokens[i].word in ("first", "last"))
        reading.degree = Degree(sign, True, (reading.tokens[at],), ())
        del reading.tokens[at]
    else:
        _take_adjective(reading)
    if reading.degree and (found := reading.search(r"(?:, )?\bby (?:the |number of |its |their )?(?=[a-z])")):
        end = noun_end(reading, found[1])
        reading.degree = replace(reading.degree, words=(*reading.degree.words, *reading.tokens[found[1] : end]))
        del reading.tokens[found[0] : end]
    _take_than(reading)


def _take_than(reading: _Reading) -> None:
    words = [token.word for token in reading.tokens]
    if reading.degree and reading.polar and "than" in words:
        reading.than = True
        reading.tokens[words.index("than")] = Token("and")


def _take_counted(reading: _Reading, start: int, end: int, sign: int) -> None:
    stop = noun_end(reading, end)
    noun = tuple(reading.tokens[end:stop])
    reading.degree = Degree(sign, False, (), noun)
    del reading.tokens[start:end]


def _take_adjective(reading: _Reading) -> None:
    words = [token.word for token in reading.tokens]
    comparative = "than" in words or _is_choice(reading)
    for at, word in enumerate(words):
        base = base_of(word, "est") or (base_of(word, "er") if comparative else None)
        more = word in ("most", "fewest", "least") or (comparative and word in ("more", "fewer", "less"))
        if not more and (base is None or (base_of(word, "est") is None and not _compares(reading, at))):
            continue
        start = at - 1 if at and words[at - 1] == "the" else at
        if more and (found := reading.search(rf"\b{word} of (?:the|these|those|her|his|their) ")):
            _take_counted(reading, found[0], found[1], 1 if word in ("most", "more") else -1)
            return
        stop = noun_end(reading, at + 1)
        noun = tuple(reading.tokens[at + 1 : stop])
        if more:
            sign = 1 if word in ("most", "more") else -1
            _take_more(reading, start, at, noun, sign)
        else:
            assert base
            token = Token(base)
            is_polar_noun = comparative and bool(noun)
            counted = noun if is_polar_noun else ()
            reading.degree = Degree(direction(base), bool(time_direction(base)), (token,), counted, word)
            reading.after_degree = () if is_polar_noun else noun
            del reading.tokens[start : at + 1]
        return


def _compares(reading: _Reading, at: int) -> bool:
    """Whether a word on -er stands where an adjective does: before "than" or a comma, or after an article."""
    following = (reading.tokens[at + 1].word or "_") if at + 1 < len(reading.tokens) else ""
    before = reading.tokens[at - 1].word if at else ""
    return following in ("than", ",", ":", "") or before in ("a", "an", "the")


def _take_more(reading: _Reading, start: int, at: int, noun: tuple[Token, ...], sign: int) -> None:
    """Take "most", "more" and the like with a noun ("most huts") or an adjective ("most expensive")."""
    following = noun[0].word if noun else ""
    adjective = bool(time_direction(following)) or (len(noun) > 1 and not _is_plural(noun[-1].word) and sign > 0)
    if following and not adjective and not _is_plural(following) and len(noun) == 1:
        after = reading.tokens[at + 2] if at + 2 < len(reading.tokens) else None
        adjective = after is not None and after.word in ("than", "one")
    if adjective:
        turn = time_direction(following) or direction(following)
        reading.degree = Degree(sign * turn, bool(time_direction(following)), (noun[0],), ())
        reading.after_degree = noun[1:]
        del reading.tokens[start : at + 2]
    else:
        reading.degree = Degree(sign, False, (), noun)
        del reading.tokens[start : at + 1]


def _take_negative(reading: _Reading) -> None:
    """Cut off the clause that must not hold."""
    tokens, words = reading.tokens, [token.word for token in reading.tokens]
    at = next((at for at, word in enumerate(words) if word in _NEGATIVE), None)
    if at is None or reading.polar or words[0] in ("if", "when", "while", "because"):
        return
    starts = [i for i in range(1, at) if words[i] in _STARTS_CLAUSE and (i > 1 or words[0] not in ("for", "in", "of"))]
    verbs = [i for i in range(1, at) if words[i] in _AUXILIARY]
    start = starts[-1] if starts else verbs[-1] if verbs else at
    dropped = {*_NEGATIVE, *_STARTS_CLAUSE, "nor", "any", "ever", "do", "does", "did", "there", "we", "know"}
    reading.negative = tuple(token for token in tokens[start:] if token.word not in dropped or token.slot)
    reading.negative = reading.negative or tuple(tokens[at:])
    del tokens[start:]


def _find_unread(reading: _Reading) -> None:
    """Mark a question of which a part asks for what no form says."""
    words = {token.word for token in reading.tokens}
    unread = (
        reading.polar and not words.isdisjoint(_TURNING),
        reading.count and (reading.quantity is not None or not words.isdisjoint(("per", "each"))),
        reading.search(_UNREAD_NUMBER) is not None,
    )
    reading.unread = reading.unread or any(unread)


def _target(reading: _Reading) -> tuple[tuple[Token, ...], list[Token]]:
    """Return the noun for what is looked for, and the clause with this noun in its place."""
    tokens, words = reading.tokens, [token.word for token in reading.tokens]
    if reading.polar:
        return (), tokens
    for at, word in enumerate(words):
        if word not in _ASKS:
            continue
        start = at + 1
        while start < len(tokens) and (tokens[start].slot or words[start] in ("of", "the", "these", "all", "is", "a")):
            start += 1
        end = noun_end(reading, start)
        if end > start and words[start] not in ("one", "ones"):
            return tuple(tokens[start:end]), tokens
    if (found := reading.search(r"^(?:of|among)(?: all)? the ")) and (end := noun_end(reading, found[1])) > found[1]:
        return tuple(tokens[found[1] : end]), tokens
    if reading.after_degree:
        return reading.after_degree[:1] if _is_plural(reading.after_degree[0].word) else reading.after_degree, tokens
    for token in tokens:
        if token.word in ("who", "whom"):
            return (token,), tokens
    start = next((at for at, token in enumerate(tokens) if not token.slot), 0)
    end = noun_end(reading, start)
    return tuple(tokens[start:end]), tokens
