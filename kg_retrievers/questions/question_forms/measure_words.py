"""The words with which a question asks for a measure, and the rest of it without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kg_retrievers.graph.operations import OperationKind
from kg_retrievers.questions.question_forms.forms import (
    ORDINALS,
    WH,
    Token,
    base_of,
    direction,
    is_verb,
    words_of,
)
from kg_retrievers.questions.question_forms.grammar import NEGATIVE
from kg_retrievers.questions.reading import MOST_WORDS
from kg_retrievers.questions.self_questions.english import verb_of
from kg_retrievers.questions.words import NUMBERS, WORDS, any_of

_MEANS = re.compile(rf"\b{any_of('mean')}\b(?: of)?")

#: With these, "from first to last" is an order and no range.
_ORDERS = re.compile(r"\b(?:list|rank|sort|order)\b")

_SUMS = re.compile(rf"\b{any_of('sum')}\b")
_MAYBE_SUMS = re.compile(r"\b(?:together|altogether|overall|in all)\b")
_MUCH = r"(?:what|which|how (?:many|much|few|little|long|large|big|high|old|far|wide)|when)"
_MOST = "highest|greatest|largest|biggest|maximum|maximal|max|longest|most"
_FEWEST = "lowest|smallest|minimum|minimal|min|shortest|least|fewest"
_MOST_WORDS = rf"(?:{_MOST}|latest|dearest|newest|heaviest|last)"
_LEAST_WORDS = rf"(?:{_FEWEST}|earliest|cheapest|oldest|lightest|first)"
_RANGES = re.compile(
    rf"\b(?:in (?:which|what) range|from {_MUCH}\b(?: [a-z]+)?? (?:up )?(?:to|until|till) {_MUCH}\b"
    rf"|between (?:which|what)(?: two)?(?: values)?|(?:the )?(?:range|spread|span) of|ranges? (?:from|between)"
    rf"|(?:from )?(?:the )?(?:{_LEAST_WORDS}(?: and| to|,)(?: the)? {_MOST_WORDS}"
    rf"|{_MOST_WORDS}(?: and| to|,)(?: the)? {_LEAST_WORDS})(?: (?:ones?|values?))?)(?= |$)"
)
_GREATEST = re.compile(rf"\b(?:at most|up to|as many as)(?= (?:how|$))|\bat most$|(?<!at )\b(?:the )?(?:{_MOST}|top)\b")
_LEAST = re.compile(rf"\bat least(?= (?:how|$))|\bat least$|(?<!at )\b(?:the )?(?:{_FEWEST})\b")
_SHARES = re.compile(
    r"\b(?:(?:what|which|how (?:large|big|high|great|much|many)|give me|an?|the|is|are|as|in|expressed) ){0,6}"
    r"(?:(?:(?<!average )(?<!mean )(?<!highest )(?<!lowest )(?<!total )percent(?:age(?: wise)?)?"
    r"|proportion|fraction|ratio|portion)\b"
    r"|(?:share|(?:(?<=what )|(?<=which )|(?<=a ))part)(?= (?:of|is|are|do|does|did|has|have)\b))(?: of)?"
    r"|(?<!\d )%(?: of)?(?= |$)"
)
_MAYBE_SHARES = re.compile(r"\b(?:share|part)\b")
COUNTS = re.compile(
    r"\bhow (?:many|often)\b|\b(?:the |what )?(?:total |overall )?(?:number|count|tally)s?(?: of\b|$)"
    r"|\bcount(?:ed)?(?: up| them)?\b|\bbreak(?:down| down)\b"
)
_GROUPS = re.compile(
    r"(?:, )?\b(?:per|down by|(?:for|in|of|by|from|to|at|on|with|across|within|among) (?:each|every)(?: single| one)?"
    r"|(?:broken down|grouped|split|divided|separated|sorted|listed|ordered) (?:up )?by|according to)"
    r"(?: of the)? (?=[a-z])|\b(?:each|every)(?: single| of the| one of the)? (?=[a-z])"
)
_BY = re.compile(r"\bby (?:the |their |its |each )?(?=[a-z])")

_IN_WHICH = re.compile(r"(?<=[a-z]) (?:in|of|at|for|by|from) (?:which|what) (?=[a-z])")
_KNOWN_VALUE = re.compile(
    r"\b(?:whose (?P<a>(?:[a-z]+ ){1,3})(?:is|are) known|with an? (?P<b>(?:[a-z]+ ){1,2})figure"
    r"|with an? known (?P<c>[a-z]+)(?= |$))"
)


#: Asks for things rather than for a number.
_ASKS_THINGS = re.compile(
    r"\b(?:which|who|whom|whose|where|list|name|show|give|top|rank|ranking|order|sort)\b|\bwhat (?!is|are|was|were|s)"
)

#: A measure does not read these words. A question that keeps one is refused.
UNREAD = NEGATIVE.union(ORDINALS, NUMBERS[2:], WORDS["unread by measures"])

_HOW_MANY = re.compile(r"\bhow (?:many|much)(?: of)?\b")

_Words = tuple[OperationKind, re.Pattern[str]]
_AGGREGATES: tuple[_Words, ...] = (("mean", _MEANS), ("range", _RANGES), ("sum", _SUMS), ("sum", _MAYBE_SUMS))
EXTREMES: tuple[_Words, ...] = (("max", _GREATEST), ("min", _LEAST))

#: Words around these that say nothing.
PLAIN = frozenset(WORDS["say nothing about measures"])


@dataclass
class Asked:
    """The request of a question about things.

    Attributes:
        kind: The operation.
        tokens: The words that are left.
        group: The noun by which there is a result for each, and the words around it.
        hints: What is said of the group, such as "that operates them".
        is_known: What of the things must be known, as in "whose height is known".
        is_strict: Whether the words for the operation mean nothing else.
        at: Where among the tokens the words for the share, or "how many", stood; -1 for nowhere.
    """

    kind: OperationKind
    tokens: list[Token]
    group: tuple[Token, ...] = ()
    hints: tuple[Token, ...] = ()
    is_known: tuple[str, ...] = ()
    is_strict: bool = True
    at: int = -1


def take_measure(tokens: Sequence[Token]) -> Asked | None:
    """Take the words for a mean, sum, range, share or group from a question, or None if it has none of these.

    Example:
        >>> asked = take_measure([Token(word) for word in "the average height of towers per city".split()])
        >>> asked.kind, words_of(asked.tokens), words_of(asked.group)
        ('mean', 'height of towers', 'city')
    """
    asked = Asked("list", list(tokens))
    if found := _KNOWN_VALUE.search(words_of(asked.tokens)):
        asked.is_known = tuple((found["a"] or found["b"] or found["c"]).split())
        remove(asked.tokens, found)
    if _SHARES.search(words_of(asked.tokens)):
        return _share(asked)
    counted = COUNTS.search(words_of(asked.tokens)) is not None
    _take_group(asked, counted)
    is_order = _ORDERS.search(words_of(tokens)) is not None
    for kind, form in _AGGREGATES:
        if not (is_order and form is _RANGES) and _taken(asked, form) is not None:
            while form is _RANGES and _taken(asked, form) is not None:
                pass  # "the range, from the smallest to the largest"
            asked.is_strict = form is not _MAYBE_SUMS
            at = _taken(asked, COUNTS)
            return replace(asked, kind=kind, at=-1 if at is None else at)
    if asked.group and (chosen := _superlative(asked)):
        return chosen
    if asked.group or (counted and _asks_number(words_of(tokens))):
        for kind, form in EXTREMES:
            if _taken(asked, form) is not None:
                at = _taken(asked, COUNTS)
                return replace(asked, kind=kind, at=-1 if at is None else at)
    return replace(asked, kind="count") if asked.group and _taken(asked, COUNTS) is not None else None


def _superlative(asked: Asked) -> Asked | None:
    """Take "deepest" of "the deepest port per country": the most, or the least, by an adjective."""
    for at, token in enumerate(asked.tokens):
        if adjective := base_of(token.word, "est"):
            tokens = [*asked.tokens[:at], Token(adjective), *asked.tokens[at + 1 :]]
            return replace(asked, kind="max" if direction(adjective) > 0 else "min", tokens=tokens)
    return None


def _share(asked: Asked) -> Asked:
    """Take the words for a share."""
    asked.is_strict = False
    while found := _SHARES.search(words_of(asked.tokens)):
        asked.is_strict |= _MAYBE_SHARES.search(found[0]) is None
        asked.at = remove(asked.tokens, found)
    if found := _HOW_MANY.search(words_of(asked.tokens)):
        before = remove(asked.tokens, found) <= asked.at
        asked.at -= before * len(found[0].split())
    return replace(asked, kind="share")


#: Words of a measure that no plain question has.
_MEASURING = re.compile(
    r"\b(?:percent(?:age)?|proportion|on average|average|in total|altogether|how often|at (?:most|least)$)|%"
)

#: Words of a measure that may be the text for an entity.
SHORT_MEASURES = frozenset(["max", "min", "mean", "avg", "sum", "total"])


def asks_measure(tokens: Sequence[Token], words_of_relations: Collection[str]) -> bool:
    """Tell whether a question asks for a measure, by words that name no relation."""
    found = _MEASURING.finditer(words_of(tokens).rstrip(" ?.!"))
    return any(set(one[0].split()).isdisjoint(words_of_relations) for one in found)


def _taken(asked: Asked, form: re.Pattern[str]) -> int | None:
    """Take words from a question, and return their position; None if it has none of them."""
    found = form.search(words_of(asked.tokens))
    return remove(asked.tokens, found) if found else None


def _asks_number(text: str) -> bool:
    """Whether the first that a question asks for is the greatest or least number of something, rather than a thing."""
    found = [one.start() for form in (_GREATEST, _LEAST, COUNTS) for one in form.finditer(text)]
    before = text[: min(found, default=0)].split()
    return not _ASKS_THINGS.search(text) and all(word in PLAIN or word == "," for word in before)


def _noun(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the noun with which some words begin; a verb ends it, as in "each captain lead"."""
    found = list[Token]()
    for token in tokens[:MOST_WORDS]:
        verb = verb_of(token.word)
        ends = is_verb(token.word) or (found and verb and not verb.also_noun)
        if not token.telling or ends or token.word in UNREAD or token.word in ("since", "until", "between"):
            break
        found.append(token)
    return tuple(found)


def _groups(text: str, found: re.Match[str]) -> bool:
    """Whether "by" stands before what things are grouped by, rather than before who did something."""
    if re.search(r"\b(?:top|most|least|fewest|first|last|[a-z]{3,}est)\b", text) or re.match(
        r"(?:number|count|total|amount|how)\b", text[found.end() :]
    ):
        return False  # "top 3 by height", "by number of members"
    before = text[: found.start()].split()
    verb = verb_of(before[-1]) if before else None
    return verb is None or before[-1] not in (verb.past, verb.participle)


def remove(tokens: list[Token], found: re.Match[str]) -> int:
    """Remove the words of a match from its tokens, and return their position."""
    text = found.string
    first = text[: found.end() - len(found[0].lstrip())].count(" ")
    del tokens[first : first + len(found[0].split())]
    return first


def _take_group(asked: Asked, counted: bool) -> None:
    """Take the noun after "per", "for each" or "by"."""
    text = words_of(asked.tokens)
    measured = counted or _MEANS.search(text) or _SUMS.search(text)
    found = _GROUPS.search(text) or (_IN_WHICH.search(text) if counted else None)
    if found is None and (measured or not re.search(rf"\b(?:{WH}|list|show|give)\b", text)):
        found = next((one for one in _BY.finditer(text) if _groups(text, one)), None)
    if found is None and (found := re.match(r"by (?=[a-z])", text)) is None:
        return
    at = remove(asked.tokens, found)
    noun = _noun(asked.tokens[at:])
    if not noun:
        return
    asked.group = noun
    rest = asked.tokens[at + len(noun) :]
    is_first = all(token.word in PLAIN for token in asked.tokens[:at])
    is_front = is_first or found[0].lstrip(", ").startswith("for")
    if is_front and "," in (words := [token.word for token in rest]):  # "for each city, how many ports"
        end = words.index(",")
        asked.hints, asked.tokens = tuple(rest[:end]), [*asked.tokens[:at], *rest[end + 1 :]]
    elif is_first or any(token.slot or token.word[:1].isdigit() for token in rest):
        asked.tokens = [*asked.tokens[:at], *rest]
    else:
        asked.hints, asked.tokens = tuple(rest), asked.tokens[:at]
