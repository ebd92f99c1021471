"""The form of a question that needs an operation: what is asked of what, by its function words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from kg_retrievers.graph.operations import Operator
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    MAX_TOKENS,
    Form,
    FormKind,
    Limit,
    Reading,
    Token,
    find_limits,
    is_plural,
    joined,
    noun_end,
)
from kg_retrievers.questions.question_forms.openings import take_opening
from kg_retrievers.questions.question_forms.rankings import is_choice, take_quantity, take_ranking
from kg_retrievers.questions.self_questions.english import verb_of

NEGATIVE = frozenset(
    ["not", "no", "never", "without", "neither", "none", "cannot", "nobody", "lacking", "lack", "lacks", "missing"]
)
#: These begin the clause themselves.
_OWN_VERB = frozenset(["without", "lacking", "lack", "lacks", "missing"])
_EXCEPT = re.compile(
    r"(?:, )?\b(?:but not|and not|except(?: for| from)?|excluding|excepting|apart from|aside from|other than|besides"
    r"|save for|not counting|not including|leaving out|leaving aside|outside of)\b"
)
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
    if words[at] == "neither" and start == at and at > 1 and not reading.tokens[at - 1].slot:
        start -= 1  # its verb, as in "which favour neither"
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


_OPPOSITE: dict[str, Operator] = {"<": ">=", ">": "<="}
_UNREAD_NUMBER = re.compile(
    r"\b(?:at (?:least|most)|(?:more|fewer|less) than|exactly) (?:\d|once|twice|one\b|two\b|three\b)"
)

#: Compares two as equal, which no operation does.
_EQUAL = re.compile(r"\bas (?:many|much) (?:[a-z]+ )?as (?=_)")

#: Words that turn or narrow what a question asks; none of them may be left where they are not read.
_TURNING = NEGATIVE | frozenset(
    re.findall(r"\w+", "nor nothing only solely all every each both always except excluding")
)


def read_form(tokens: Sequence[Token], noun_score: Callable[[str], float], units: Collection[str]) -> Form | None:
    """Return the form of a question; None where it needs no operation, or is too long for one.

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
        reading.unread, reading.both,
    )  # fmt: skip


def _take_both(reading: Reading) -> None:
    """Take "both" and the like, where two entities are meant in the same way."""
    words = [token.word for token in reading.tokens]
    if words[-2:] == ["or", "both"]:
        del reading.tokens[-2:]
        return
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
    if reading.degree:
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


def _find_unread(reading: Reading) -> None:
    """Mark a question of which a part asks for what no form says."""
    words = {token.word for token in reading.tokens}
    unread = (
        not words.isdisjoint(_TURNING if reading.polar else NEGATIVE),
        reading.count and (reading.quantity is not None or not words.isdisjoint(("per", "each"))),
        reading.search(_UNREAD_NUMBER) is not None,
        reading.search(_EQUAL) is not None,
    )
    reading.unread = reading.unread or any(unread)
