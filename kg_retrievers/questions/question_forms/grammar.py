"""The form of a question that needs an operation: its subject, its quantities and its rankings, by function words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from kg_retrievers.graph.operations import Operator
from kg_retrievers.graph.values import Comparison, unit_symbol
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    MAX_TOKENS,
    NUMBER,
    ORDINAL,
    ORDINALS,
    Degree,
    Form,
    FormKind,
    Limit,
    Quantity,
    Reading,
    Token,
    base_of,
    direction,
    find_limits,
    is_unit,
    is_verb,
    joined,
    noun_end,
    number_of,
    take_opening,
    time_direction,
    words_of,
)
from kg_retrievers.questions.question_forms.values import SAME_WORD
from kg_retrievers.questions.self_questions.english import is_plural, verb_of
from kg_retrievers.questions.words import NUMBERS, WORDS, any_of

_NOUN = r"(?P<noun>(?:[^ ,]+ ){1,3}?)"
_FORMS: list[tuple[Comparison, str]] = [
    (sign, form.format(n=NUMBER, noun=_NOUN)) for sign, form in WORDS["how many of something"]
]


def has_quantity(tokens: Sequence[Token]) -> bool:
    """Tell whether words say how many of something there must be, in digits."""
    text = words_of(tokens)
    top = re.search(r"\btop \d", text.replace("_", "0"))  # the number may be the name of an entity
    return bool(top) or any(re.search(rf"(?<![^ ]){form}", text) for _, form in _FORMS if "(?P<n>" in form)


def take_quantity(reading: Reading) -> None:
    """Take the number of things that there must be. A number with a unit or of more than three digits is none."""
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


_ORDINAL = re.compile(ORDINAL)
_UNREAD_ORDINAL = re.compile(r"eleventh|twelfth|next|penultimate|\d+(?:st|nd|rd|th)")

#: "comes second in berths" is "has the second most berths".
_COMES = re.compile(
    rf"\b(?:comes?|came|is|ranks?|ranked|placed) (?:in )?(?:the )?(?P<nth>{ORDINAL}|first|last)"
    rf"(?: place)? (?P<among>among (?:the |all )*[a-z]+ )?"
    r"(?:in|by|for)(?: the| its)?(?: number of| total)?(?= [a-z])"
)
_TOPS = re.compile(
    r"\b(?:tops?|leads?|heads?) the (?:list|table|ranking) (?:by|for|in|of)(?: the)?(?: number of)?"
    r"|\b(?:the )?(?:most|largest|highest|greatest|biggest|(?P<low>smallest|lowest|least)) number of|\bmost of the"
)
_FIRST = re.compile(r"\b(?:came|comes|come|was \w+|were \w+) (first|last)(?: ,| :|$)|(?<=[^ ] )(first|last)$")
_OFTEN = re.compile(r"\b(?:the )?(most|least) (?:often|frequently)\b|\b(?:the )?(most|fewest|least) times\b")

#: Two things for comparison stand between these words.
OFFERS = frozenset(["or", "and", "vs", "versus", "v", "with", "to", "against"])
_COMPARING = re.compile(
    r"^(?:if (?:i|you|we|one) )?(?:compare|comparing|compared|between|of|out of)(?: the)?(?: two)?(?: [a-z]+)?(?= _)"
)

#: Before a superlative, these say that its noun is the measure: "has the lowest price".
_HAVING = frozenset(["has", "have", "had", "having", "with", "of", "at", "for", "by", "got"])


def take_ranking(reading: Reading) -> None:
    """Take a superlative or comparative, and how many things it asks for."""
    _take_offer(reading)
    _take_place(reading)
    most, offset = _take_rank(reading)
    having = reading.search(_HAVING_MOST)
    start = end = having[0] + 1 if having else 0
    while start and reading.tokens[start - 1].telling and not is_verb(reading.tokens[start - 1].word):
        start -= 1
    owner = tuple(reading.tokens[start:end])
    _take_degree(reading)
    noun = reading.after_degree or owner
    reading.after_degree = noun[:1] if noun and is_plural(noun[0].word) else noun
    if reading.degree:
        reading.degree = replace(reading.degree, most=most, offset=offset)
    reading.unread |= offset > 0 and (reading.degree is None or reading.than)
    reading.unread |= most > 1 and (reading.degree is None or reading.than or is_choice(reading))


#: A superlative behind a thing that has the most or the fewest of something, as "with the most beds".
_HAVING_MOST = r"\b[a-z]+ (?:with|having|(?:that|which|who) [a-z]+) (?:the )?(?:most|least|fewest|[a-z]+est)\b"


def is_choice(reading: Reading) -> bool:
    """Tell whether two entities are offered for choice."""
    return any(joined(reading.tokens, at, OFFERS) for at in range(len(reading.tokens)))


def _take_offer(reading: Reading) -> None:
    """Take what introduces two entities that are compared: "between A and B", "if I compare A with B"."""
    found = reading.search(_COMPARING)
    if found and joined(reading.tokens, found[1] + 1, OFFERS):
        del reading.tokens[: found[1]]


def _take_place(reading: Reading) -> None:
    """Read "comes second in berths" as "has the second most berths"."""
    if found := reading.search(_COMES):
        start, end, match = found
        place = "most" if match["nth"] == "first" else "fewest" if match["nth"] == "last" else match["nth"]
        words = ["has", "the", place, *([] if place in ("most", "fewest") else ["most"])]
        among = (match["among"] or "").split()
        reading.tokens[start:end] = [*map(Token, among), *map(Token, words)]


#: Before the number of the things that a superlative asks for.
_BEFORE_NUMBER = frozenset(["which", "what", "the", "name", "list", "show", "give", "those"])


def _take_rank(reading: Reading) -> tuple[int, int]:
    """Take how many things a superlative asks for, and how many before them an ordinal passes over."""
    words = [token.word for token in reading.tokens]
    found = (at for at, word in enumerate(words) if word in ("most", "fewest") or base_of(word, "est"))
    at = next((at for at in found if not at or words[at - 1] != "at"), -1)
    if at < 0:
        return _take_top(reading, words), 0
    if at and _ORDINAL.fullmatch(words[at - 1]):
        del reading.tokens[at - 1]
        nth = words[at - 1]
        return 1, (ORDINALS.index(nth) + 1 if nth in ORDINALS else int(nth[:-2]) - 1)
    reading.unread |= any(_ORDINAL.fullmatch(word) or _UNREAD_ORDINAL.fullmatch(word) for word in words)
    asked = [i + 1 for i in range(min(at, len(words) - 1)) if words[i] in _BEFORE_NUMBER]
    for place in (at - 1, at + 1, *asked):
        number = _number(words[place]) if 0 <= place < len(words) else 1
        if number != 1:
            reading.unread |= number == 0
            del reading.tokens[place]
            return number, 0
    return 1, 0


def _take_top(reading: Reading, words: Sequence[str]) -> int:
    """Read "top" before a number as a superlative, as in "the top three huts by beds", and take the number."""
    at = next((at for at, word in enumerate(words[:-1]) if word == "top" and _number(words[at + 1]) > 1), -1)
    if at < 0:
        return 1
    reading.tokens[at] = Token("highest")
    return _number(reading.tokens.pop(at + 1).word)


def _number(word: str) -> int:
    return number_of(word) if word in NUMBERS or re.fullmatch(r"\d{1,3}", word) else 1


def _take_degree(reading: Reading) -> None:
    """Take a superlative or comparative with its noun."""
    if found := reading.search(_TOPS):
        _take_counted(reading, found[0], found[1], -1 if found[2]["low"] else 1)
    elif found := reading.search(_OFTEN):
        sign = 1 if "most" in found[2][0] else -1
        del reading.tokens[found[0] : found[1]]
        reading.degree = Degree(sign, often=True)
    elif (found := reading.search(_FIRST)) and (is_choice(reading) or reading.asks):
        sign = -1 if "first" in found[2][0] else 1
        at = next(i for i in range(found[1] - 1, -1, -1) if reading.tokens[i].word in ("first", "last"))
        reading.degree = Degree(sign, True, (Token("early" if sign < 0 else "late"),))
        del reading.tokens[at]
    else:
        _take_adjective(reading)
    _take_than(reading)


def _take_than(reading: Reading) -> None:
    """Take "than" before the second of two; "before" and "after" an entity compare dates."""
    words = [token.word for token in reading.tokens]
    if reading.polar and not reading.degree and sum(bool(token.slot) for token in reading.tokens) == 2:
        at = next((at for at, word in enumerate(words[:-1]) if word in ("before", "after")), -1)
        if at > 0 and reading.tokens[at + 1].slot:
            reading.degree = Degree(-1 if words[at] == "before" else 1, True, (Token("early"),))
            reading.tokens[at], reading.than = Token("and"), True
            return
    if reading.degree and "than" in words:
        at = words.index("than")
        if reading.polar or (not reading.asks and reading.tokens[0].slot):
            reading.polar = reading.than = True
            reading.tokens[at] = Token("and")
        elif not is_choice(reading):
            _take_standard(reading, words, at)


#: Words beside a comparative that say by how much.
_BY_HOW_MUCH = frozenset(["times", "twice", "half", "much", "far", "slightly", "even", "way", "lot", "bit", "little"])


def _take_standard(reading: Reading, words: Sequence[str], at: int) -> None:
    """Take the entity after "than", with which each thing is compared. Nothing may follow it."""
    reading.standards = tuple(token for token in reading.tokens[at + 1 :] if token.slot)
    said_more = any(
        base_of(word, "est") or word in ("most", "least", "fewest", *_BY_HOW_MUCH, *NUMBERS) or word[:1].isdigit()
        for word in words[:at]
    )
    again = any(base_of(word, "er") and words[place - 1] not in _ASKS for place, word in enumerate(words[:at]) if place)
    alone = len(reading.standards) == 1 and at + 2 == len(reading.tokens)
    reading.unread |= not reading.asks or not alone or said_more or again  # "which huts are higher than this one?"
    del reading.tokens[at:]


def _take_counted(reading: Reading, start: int, end: int, sign: int) -> None:
    stop = noun_end(reading, end)
    noun = tuple(reading.tokens[end:stop])
    reading.degree = Degree(sign, noun=noun)
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
    compares = base_of(word, "est") is None
    before = reading.tokens[start - 1].word if start else ""
    are_things = max(map(reading.score, (noun, noun[:1]))) >= SAME_WORD or (
        before == "of" and is_plural(noun[-1].word if noun else "")
    )
    having = before in _HAVING and start + 1 == at and not are_things
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
    if adjective:
        turn = time_direction(following) or direction(following)
        reading.degree = Degree(sign * turn, bool(time_direction(following)), (Token(following),))
        reading.after_degree = noun[1:]
        del reading.tokens[start : at + 2]
    else:
        reading.degree = Degree(sign, noun=noun)
        del reading.tokens[start : at + 1]


NEGATIVE = frozenset(WORDS["deny"])
#: These begin the clause themselves.
_OWN_VERB = frozenset(["without", "lacking", "lack", "lacks", "missing"])
_EXCEPT = re.compile(rf"(?:, )?\b{any_of('except')}\b")
_STARTS_CLAUSE = frozenset(["but", "that", "who", "which", "whose", "and"])
_RELATIVE = frozenset(["who", "that", "which"])
_TAKES_BASE = AUXILIARY - frozenset(["am", "is", "are", "was", "were", "has", "have", "had"])
_DROPPED = {
    *NEGATIVE, *_STARTS_CLAUSE, "nor", "any", "ever", "do", "does", "did", "there", "we", "know", "those", "ones",
    "one", "of", "are", "is", "was", "were", "it", "a", "an", "the",
}  # fmt: skip


def take_exclusion(reading: Reading) -> None:
    """Cut off the clause that must not hold."""
    if reading.polar or not reading.tokens or reading.tokens[0].word in ("if", "when", "while", "because"):
        return
    if found := reading.search(_EXCEPT):
        _cut(reading, found[0], found[0])
        return
    words = [token.word for token in reading.tokens]
    at = next((at for at, word in enumerate(words) if word in NEGATIVE), None)
    if at is not None:
        _cut(reading, _start(reading, words, at), at)


def _start(reading: Reading, words: list[str], at: int) -> int:
    """Return where the clause begins in which a negative word stands."""
    starts = [
        i for i in range(1, at)
        if words[i] in _STARTS_CLAUSE
        and (i > 1 or reading.tokens[0].slot or reading.tokens[0].telling)
        and words[i - 1] != ","
    ]  # fmt: skip
    last = max((i for i in range(at) if reading.tokens[i].slot), default=-1)
    if (
        starts
        and last >= starts[-1]
        and not (last == starts[-1] + 1 and last + 1 < at and words[last + 1] in AUXILIARY)
    ):
        starts = []  # "players that were born in Graz never": the clause has ended
    verbs = [i for i in range(max(last, 0) + 1, at) if words[i] in AUXILIARY]
    start = starts[-1] if starts else verbs[-1] if verbs and words[at] not in _OWN_VERB else at
    return start


def _cut(reading: Reading, start: int, at: int) -> None:
    """Take the clause that begins at a position; it ends at a comma or at "but"."""
    tokens = reading.tokens
    ends = (
        i for i in range(at + 1, len(tokens) - 1)
        if i > start + 1
        and (
            tokens[i].word == "but"
            or (tokens[i].word == "," and start == 0)
            or (tokens[i].word in (",", "and") and _begins_other(tokens, start, i + 1))
            or (start == at and _goes_on(tokens, start, i))
        )
    )  # fmt: skip
    end = next(ends, len(tokens))
    kept = tuple(token for token in tokens[start:end] if token.slot or not _is_dropped(token.word, start == at))
    reading.negative = kept or tuple(tokens[at:end])
    rest = tokens[end + (end < len(tokens) and tokens[end].word in (",", "but", "and")) :]
    reading.tokens = [*tokens[:start], *rest]


def _goes_on(tokens: list[Token], start: int, at: int) -> bool:
    """Tell whether the clause around the negative one goes on with its verb, as in "not born in Graz work in"."""
    before = tokens[at - 1]
    if tokens[at].word in AUXILIARY:
        return before.slot is not None or (before.telling and tokens[start].word in _OWN_VERB)
    return before.slot is not None and _is_present(tokens[at].word)


def _is_present(word: str) -> bool:
    """Tell whether a word is a form of a verb that no auxiliary verb but "do" and its like takes."""
    verb = verb_of(word)
    return verb is not None and word in (verb.base, verb.third) and word != verb.participle


def _begins_other(tokens: list[Token], start: int, at: int) -> bool:
    """Tell whether a clause begins at a position that the negative word before it does not reach.

    It reaches forms that its own auxiliary verb takes, too, as in "do not live in Graz and work in Linz".
    """
    if tokens[at - 1].word != "and" and tokens[at].word in _RELATIVE:  # "not born in Graz, which is in Austria"
        return False
    at += tokens[at].word == "and"
    first, rest = tokens[min(at, len(tokens) - 1)], tokens[at + 1 :]
    if not any(token.slot or token.telling for token in rest) or any(token.word in NEGATIVE for token in rest[:2]):
        return False
    if first.word in AUXILIARY or first.word in _RELATIVE:
        return True
    verb = verb_of(first.word)
    if verb is None or not tokens[start].word:
        return False
    return first.word != verb.base if tokens[start].word in _TAKES_BASE else _is_present(first.word)


def _is_dropped(word: str, excepted: bool) -> bool:
    kept = () if excepted else ("of", "are", "is", "was", "were", "it", "a", "an", "the", "those", "one", "ones")
    return word in (",", "except", "excluding", "excepting", "apart", "aside", "from", "other", "than", "besides") or (
        word in _DROPPED and word not in kept
    )


_ASKS = frozenset(["which", "what"])
_OF = r"(?:(?:of|out of|from among{more})(?: all)?(?: of)? (?:the |these |those )|among(?:st)? (?:all |the |of )*)"
_AMONG = re.compile(rf"(?:^|(?<=[, ])){_OF.format(more='')}(?:_ )*(?=[a-z])")
_FRONTED = re.compile(rf"^{_OF.format(more='|for|from')}(?:_ )*(?=[a-z])")


def find_target(reading: Reading) -> tuple[tuple[Token, ...], list[Token]]:
    """Return the noun for the target, and the clause with this noun in its place."""
    tokens = reading.tokens
    asked = _asked(reading)
    found = reading.search(_FRONTED) or reading.search(_AMONG)
    among = tuple(tokens[found[1] : noun_end(reading, found[1])]) if found else ()
    best = reading.after_degree
    if best and words_of(asked) in ("name", words_of(best[-1:])):
        return best, tokens  # "which peak is the highest volcanic peak"
    if asked and not (among and is_plural(among[-1].word) and not is_plural(asked[-1].word)):
        return asked, tokens
    if among:
        return among, tokens
    if best:
        return best, tokens
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


_OPPOSITE: dict[str, Operator] = {"<": ">=", ">": "<="}
_UNREAD_NUMBER = re.compile(
    r"\b(?:at (?:least|most)|(?:more|fewer|less) than|exactly) (?:\d|once|twice|one\b|two\b|three\b)"
)

#: An order of all things.
_FROM_TO = re.compile(r"\bfrom (?:the )?(?:[a-z]+est )?to (?:the )?(?:[a-z]+est\b|$)")

#: Compares two as equal, which no operation does.
_EQUAL = re.compile(r"\bas (?:many|much) (?:[a-z]+ )?as (?=_)")

#: Words that turn or narrow a question. A question with an unread one is refused.
_TURNING = NEGATIVE | frozenset(
    re.findall(r"\w+", "nor nothing only solely same all every each both always except excluding")
)


def read_form(tokens: Sequence[Token], noun_score: Callable[[str], float], units: Collection[str]) -> Form | None:
    """Return the form of a question, or None if it needs no operation, or is too long for one.

    Args:
        tokens: Its words and entities.
        noun_score: How near a word is to what the graph holds; tells "media groups" from "group owns".
        units: The units of the graph's numbers.
    """
    if len(tokens) > MAX_TOKENS:
        return None
    reading = Reading(_sentence(tokens), noun_score, units)
    if not reading.tokens:
        return None
    take_opening(reading)
    take_quantity(reading)
    _take_limits(reading)
    take_ranking(reading)
    take_exclusion(reading)
    _find_unread(reading)
    _take_both(reading)
    joins = any(joined(reading.tokens, at, ("or",)) for at in range(len(reading.tokens)))
    if not (
        reading.unread or reading.polar or reading.count or reading.limits or reading.quantity or reading.degree
        or reading.negative or reading.both or joins
    ):  # fmt: skip
        return None
    noun, clause = (_thing(reading), reading.tokens) if reading.polar else find_target(reading)
    return Form(
        _kind(reading), noun, tuple(clause), reading.negative, reading.limits, reading.quantity, reading.degree,
        reading.standards, reading.after_degree, reading.count, reading.unread,
        reading.both,
    )  # fmt: skip


def _take_both(reading: Reading) -> None:
    """Take "both" and the like, where two entities are meant in the same way."""
    words = [token.word for token in reading.tokens]
    pairs = [at for at in range(len(words)) if joined(reading.tokens, at, ("and",))]
    if not pairs or reading.polar or reading.degree:
        return
    said = "both" in words or (words[pairs[0] + 1] == "also")
    if said:
        reading.both = True
        reading.tokens = [token for token in reading.tokens if token.word not in ("both", "also")]


def _thing(reading: Reading) -> tuple[Token, ...]:
    """Return the noun of a yes-no question whether there is such a thing, as in "were any huts built"."""
    found = reading.search(r"^(?:there )?(?:any|an?|some) (?=[a-z])|^there (?=[a-z])")
    if found is None and sum(bool(token.slot) for token in reading.tokens) > 1:
        found = reading.search(r"\b(?:any|an?|some) (?=[a-z])")
    return tuple(reading.tokens[found[1] : noun_end(reading, found[1])]) if found else ()


def _sentence(tokens: Sequence[Token]) -> list[Token]:
    """Return the words of a question without quotes; what ends a sentence before the last is a comma."""
    kept = [token for token in tokens if token.text not in ('"', "“", "”")]
    while kept and kept[-1].text in ("?", ".", "!"):
        kept.pop()
    written = [Token(",") if token.text in ("?", ".", "!", ";") else token for token in kept]
    return _joined_by_and(written)


def _joined_by_and(tokens: list[Token]) -> list[Token]:
    """Return the words with "and also" for "as well as"."""
    words = [token.word for token in tokens]
    for at in range(len(words) - 3, -1, -1):
        if words[at : at + 3] == ["as", "well", "as"]:
            tokens[at : at + 3] = [Token("and"), Token("also")]
    return tokens


def _kind(reading: Reading) -> FormKind:
    if reading.degree and reading.than:
        return "compare"
    if reading.degree and not reading.standards:
        return "choice" if is_choice(reading) else "best"
    if reading.count:
        return "count"
    return "exists" if reading.polar else "list"


def _take_limits(reading: Reading) -> None:
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


def _asks_period(reading: Reading) -> bool:
    """Whether a question asks in which year, say, most things happen."""
    asked = re.search(r"\b(?:which|what) (?:year|month|decade|century|day)\b", reading.text)
    return bool(asked and reading.degree and (reading.degree.noun or reading.degree.often))


def _find_unread(reading: Reading) -> None:
    """Mark a question of which a part asks for what no form says."""
    words = {token.word for token in reading.tokens}
    unread = (
        not words.isdisjoint(_TURNING if reading.polar else NEGATIVE),
        reading.count and (reading.quantity is not None or not words.isdisjoint(("per", "each"))),
        bool(reading.standards and (reading.limits or reading.quantity)),  # "more than 10 m higher than it"
        reading.search(_UNREAD_NUMBER) is not None,
        any(re.fullmatch(r"\d{4}|\d{1,3}(?:st|nd|rd|th)", word) for word in words),  # "in spring 2025"
        _asks_period(reading),
        reading.search(_FROM_TO) is not None,
        reading.search(_EQUAL) is not None,
        reading.polar and reading.degree is not None and not reading.than and not is_choice(reading),
        reading.degree is not None and "," not in words and any(base_of(word, "est") for word in words),
    )
    reading.unread = reading.unread or any(unread)
