"""Times that a question names relative to today, written as dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from kg_retrievers.graph.operations import Period
from kg_retrievers.questions.casual import outside
from kg_retrievers.questions.operations import period_name
from kg_retrievers.questions.words import NUMBERS

#: Gives the day on which a question is asked, as `date.today` does.
Clock = Callable[[], date]

_LEAD = r"(?P<lead>\b(?:before|after|since|until|by|from|in|during|of) )?"
_NEAR = re.compile(
    rf"{_LEAD}\b(?P<which>last|previous|this|next|the current) (?P<unit>year|month|decade|century)\b(?!['’])", re.I
)
_AGO = re.compile(rf"{_LEAD}\b(?P<n>\d{{1,3}}|an?|{'|'.join(NUMBERS[1:])}) (?P<unit>year|month|decade)s? ago\b", re.I)
_WITHIN = re.compile(
    rf"\b(?:in|within|during|over) the (?:last|past) (?:(?P<n>\d{{1,3}}|{'|'.join(NUMBERS[1:])}) )?"
    r"(?P<unit>year|month|decade)s?\b",
    re.I,
)
_DAY = re.compile(rf"{_LEAD}\b(?P<day>today|yesterday)\b", re.I)

_RELATIVE = re.compile(r"\b(?:last|this|next|past|previous|the current) (?:year|month|decade|century)\b", re.I)

#: The first and the last character after a part of a question.
Span = tuple[int, int]

#: Months in a unit.
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200}


def in_dates(question: str, today: date, names: Sequence[Span] = ()) -> str:
    """Return a question with dates in place of times that are relative to a day, but not in the names of entities.

    Example:
        >>> in_dates("Which bridges opened last year?", date(2026, 3, 1))
        'Which bridges opened in 2025?'
        >>> in_dates("Who joined within the last 2 months?", date(2026, 3, 1))
        'Who joined since 2026-01?'
    """

    def led(found: re.Match[str], lead: str) -> str:
        return found["lead"] or f"{lead} "

    def near(found: re.Match[str]) -> str:
        step = {"last": -1, "previous": -1, "next": 1}.get(found["which"].casefold(), 0)
        return led(found, "in") + _named(today, found["unit"].casefold(), step)

    def ago(found: re.Match[str]) -> str:
        return led(found, "in") + _named(today, found["unit"].casefold(), -_number(found["n"]))

    def within(found: re.Match[str]) -> str:
        months = _MONTHS[found["unit"].casefold()] * _number(found["n"] or "1")
        return f"since {_named(today, 'month', -months)}"

    def day(found: re.Match[str]) -> str:
        back = found["day"].casefold() == "yesterday"
        return led(found, "on") + (today - timedelta(days=back)).isoformat()

    written, at = "", 0
    for start, end, text in sorted(
        (found.start(), found.end(), write(found))
        for form, write in ((_WITHIN, within), (_AGO, ago), (_NEAR, near), (_DAY, day))
        for found in outside(form, question, names)
    ):
        if start >= at:
            written, at = written + question[at:start] + text, end
    return written + question[at:]


def is_relative(question: str, names: Sequence[Span] = ()) -> bool:
    """Tell whether a question names a time relative to today, outside the names of entities."""
    return any(True for form in (_AGO, _WITHIN, _RELATIVE) for _ in outside(form, question, names))


def _number(text: str) -> int:
    text = text.casefold()
    return 1 if text in ("a", "an") else NUMBERS.index(text) if text in NUMBERS else int(text)


def _named(today: date, unit: str, step: int) -> str:
    """Return the name of the year, month and so on that is some steps after the one of a day."""
    months = 12 * today.year + today.month - 1
    numbers: dict[str, tuple[int, Period]] = {
        "month": (months, "month"),
        "year": (today.year, "year"),
        "decade": (today.year // 10, "decade"),
        "century": ((today.year - 1) // 100, "century"),
    }
    number, period = numbers[unit]
    article = "the " if unit in ("decade", "century") else ""
    return article + period_name(number + step, period)
