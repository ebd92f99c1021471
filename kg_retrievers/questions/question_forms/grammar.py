"""The form of a question that needs an operation: what is asked of what, by its function words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from kg_retrievers.graph.operations import Operator
from kg_retrievers.questions.question_forms.exclusions import NEGATIVE, take_exclusion
from kg_retrievers.questions.question_forms.forms import Form, FormKind, Reading, joined, noun_end
from kg_retrievers.questions.question_forms.literals import Limit, find_limits
from kg_retrievers.questions.question_forms.openings import take_opening
from kg_retrievers.questions.question_forms.quantities import take_quantity
from kg_retrievers.questions.question_forms.rankings import is_choice, take_ranking
from kg_retrievers.questions.question_forms.targets import find_target
from kg_retrievers.questions.question_forms.tokens import MAX_TOKENS, Token

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
