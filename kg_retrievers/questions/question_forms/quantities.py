"""How many of something: "at least two huts", "three huts or more", "several huts"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_retrievers.graph.values import Comparison, unit_symbol
from kg_retrievers.questions.question_forms.forms import NUMBER, NUMBERS, Quantity, Reading, noun_end, number_of
from kg_retrievers.questions.question_forms.literals import is_unit
from kg_retrievers.questions.question_forms.tokens import Token, words_of

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
