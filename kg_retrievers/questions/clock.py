"""Times that a question names relative to today, written as dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from kg_retrievers.questions.question_forms.forms import NUMBERS

#: Gives the day on which a question is asked, as `date.today` does.
Clock = Callable[[], date]

_NEAR = re.compile(
    r"\b(?:in |during )?(?P<which>last|this|next|the current) (?P<unit>year|month|decade|century)\b", re.I
)
_AGO = re.compile(rf"\b(?P<n>\d{{1,4}}|an?|{'|'.join(NUMBERS[1:])}) (?P<unit>year|month|decade)s? ago\b", re.I)
_WITHIN = re.compile(
    rf"\b(?:in|within|during|over) the (?:last|past) (?:(?P<n>\d{{1,4}}|{'|'.join(NUMBERS[1:])}) )?"
    r"(?P<unit>year|month|decade)s?\b",
    re.I,
)
_DAY = re.compile(r"\b(?P<day>today|yesterday)\b", re.I)

_RELATIVE = re.compile(r"\b(?:last|this|next|the current) (?:year|month)\b", re.I)

#: Months in a unit.
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200}


def in_dates(question: str, today: date) -> str:
    """Return a question with dates in place of times that are relative to a day.

    Example:
        >>> in_dates("Which bridges opened last year?", date(2026, 3, 1))
        'Which bridges opened in 2025?'
        >>> in_dates("Who joined within the last 2 months?", date(2026, 3, 1))
        'Who joined since January 2026?'
    """

    def near(found: re.Match[str]) -> str:
        step = {"last": -1, "next": 1}.get(found["which"].casefold(), 0)
        return f"in {_named(today, found['unit'].casefold(), step)}"

    def ago(found: re.Match[str]) -> str:
        return f"in {_named(today, found['unit'].casefold(), -_number(found['n']))}"

    def within(found: re.Match[str]) -> str:
        months = _MONTHS[found["unit"].casefold()] * _number(found["n"] or "1")
        return f"since {_month(today, -months)}"

    def day(found: re.Match[str]) -> str:
        back = found["day"].casefold() == "yesterday"
        return f"on {(today - timedelta(days=back)).isoformat()}"

    for form, written in ((_WITHIN, within), (_AGO, ago), (_NEAR, near), (_DAY, day)):
        question = form.sub(written, question)
    return question


def is_relative(question: str) -> bool:
    """Tell whether a question names a year or month relative to today."""
    return bool(_AGO.search(question) or _WITHIN.search(question) or _RELATIVE.search(question))


def _number(text: str) -> int:
    return 1 if text in ("a", "an") else NUMBERS.index(text) if text in NUMBERS else int(text)


def _named(today: date, unit: str, step: int) -> str:
    """Return the name of the year, month and so on that is some steps after the one of a day."""
    match unit:
        case "month":
            return _month(today, step)
        case "decade":
            return f"the {10 * (today.year // 10 + step)}s"
        case "century":
            return f"the {(today.year - 1) // 100 + 1 + step}th century"
        case _:
            return str(today.year + step)


def _month(today: date, step: int) -> str:
    months = 12 * today.year + today.month - 1 + step
    return date(months // 12, months % 12 + 1, 1).strftime("%B %Y")
