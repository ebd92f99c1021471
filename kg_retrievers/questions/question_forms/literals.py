"""Values in a question that limit what is asked for: "before 1900", "over 2,600 m", "in the 1930s"."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from kg_retrievers.graph.operations import Operator
from kg_retrievers.graph.values import Value, read_value, unit_symbol
from kg_retrievers.questions.question_forms.degrees import base_of, direction, time_direction

_BEFORE = r"before|earlier than|prior to|under|below|less than|fewer than|lower than"
_AFTER = r"after|later than|over|above|more than|higher than|greater than|exceeding|in excess of|more recent than"
_FROM = (
    r"(?:in|on) or after|upwards of|since|from|at least|no (?:earlier|less|fewer) than"
    r"|not (?:less|earlier|fewer) than|as of"
)
_TO = r"(?:in|on) or before|until|till|up to|at most|no (?:later|more) than|not more than|by"
_WITHIN = r"in|on|during|of|exactly|around"
_LEADS: tuple[tuple[Operator, re.Pattern[str]], ...] = (
    (">=", re.compile(rf"(?:{_FROM})(?: the)?(?: year)?$")),
    ("<=", re.compile(rf"(?:{_TO})(?: the)?(?: year)?$")),
    ("<", re.compile(rf"(?:{_BEFORE})(?: the)?(?: year)?$")),
    (">", re.compile(rf"(?:{_AFTER})(?: the)?(?: year)?$")),
    ("=", re.compile(rf"(?:{_WITHIN})(?: the)?(?: year)?$")),
)
_LONGER, _LONGEST = 5, 5
_TAILS: tuple[tuple[Operator, re.Pattern[str]], ...] = (
    (">=", re.compile(r"^(?:or|and) (?:later|after|more|higher|above|newer|over|longer|larger)|^onwards?|^on(?= *$)")),
    ("<=", re.compile(r"^(?:or|and) (?:earlier|before|less|fewer|lower|below|older|under|shorter|smaller)")),
)
_CENTURY = re.compile(r"(1[1-9]|2\d) ?(?:st|nd|rd|th) century\b")
_DECADE = re.compile(r"(?:the )?(early |late )?(1\d|20)(\d0)s")


class Limit(NamedTuple):
    """A value that limits what is asked for.

    Attributes:
        operator: How it limits.
        values: The value, two for "between"; as a condition takes them.
        start: The position of its first word.
        end: The position after its last.
        kind: "date" or "number", where its words say so: "before 1900", "more than 1900".
    """

    operator: Operator
    values: tuple[str, ...]
    start: int
    end: int
    kind: str = ""

    @property
    def value(self) -> Value:
        """The value, or the lower one of two."""
        return read_value(self.values[0]) or Value(self.values[0])


def find_limits(words: Sequence[str], units: Collection[str]) -> list[Limit]:
    """Return the values that limit what a question asks for, by position; none overlap.

    Args:
        words: The words of the question, as `Token.word`.
        units: The units of the numbers of the graph; another word behind a number is none of it.

    Example:
        >>> [limit[:2] for limit in find_limits("which huts lie above 2,600 m".split(), {"m"})]
        [('>', ('2,600 m',))]
        >>> [limit[:2] for limit in find_limits("born between 1960 and 1965".split(), set())]
        [('between', ('1960', '1965'))]
        >>> [limit[:2] for limit in find_limits("opened in the 1930s".split(), set())]
        [('between', ('1930', '1939'))]
        >>> [limit[:2] for limit in find_limits("opened before 1900 or after 2000".split(), set())]
        [('<', ('1900',)), ('>', ('2000',))]
    """
    found, at = list[Limit](), 0
    while at < len(words):
        limit = _limit_at(words, at, units)
        if limit is None or (found and limit.start < found[-1].end):
            at += 1
        else:
            found.append(limit)
            at = limit.end
    return found


def _span_at(words: Sequence[str], at: int) -> Limit | None:
    """Return the years that a decade or a century means."""
    if decade := _DECADE.fullmatch(words[at]):
        first, last, end = int(decade[2] + decade[3]), int(decade[2] + decade[3]) + 9, at + 1
    elif century := _CENTURY.match(" ".join(words[at : at + 3])):
        last = 100 * int(century[1])
        first, end = last - 99, at + len(century[0].split())
    else:
        return None
    start = _lead_start(words, at, r"in the|in|during the|of the|the")
    return Limit("between", (str(first), str(last)), start, end)


def _limit_at(words: Sequence[str], at: int, units: Collection[str]) -> Limit | None:
    """Return the limit whose first value begins at a position."""
    before = " ".join(words[max(at - _LONGEST, 0) : at])
    if span := _span_at(words, at):
        return span
    end = _literal_end(words, at, units)
    if end is None:
        return None
    literal = _written(words[at:end], units)
    if re.search(r"\b(?:between|from)$", before) and end < len(words) and words[end] in ("and", "to", "until"):
        last = _literal_end(words, end + 1, units)
        if last is not None:
            return Limit("between", (literal, _written(words[end + 1 : last], units)), at - 1, last)
    after = " ".join(words[end : end + 3])
    if compared := _compared(words[:at], literal):
        return Limit(compared[0], (literal,), at - compared[1], end, compared[2])
    operator = next(((op, match) for op, form in _TAILS if (match := form.search(after))), None)
    if operator and _literal_end(words, end + len(operator[1][0].split()), units) is not None:
        operator = None  # "or after 2000" begins another limit
    lead = next(((op, match) for op, form in _LEADS if (match := _led(form, before))), None)
    if operator is None and lead is None:
        return None
    start = at - (len(lead[1][0].split()) if lead else 0)
    if operator:
        return Limit(operator[0], (literal,), start, end + len(operator[1][0].split()))
    assert lead
    if lead[0] == "=" and not _is_date(literal):
        return None
    return Limit(lead[0], (literal,), start, end, _kind_said(lead[1][0], literal))


def _compared(before: Sequence[str], literal: str) -> tuple[Operator, int, str] | None:
    """Return the operator of a comparative before a value, as "no longer than", how many words it is, and of what."""
    if len(before) < 2 or before[-1] != "than" or not (base := base_of(before[-2], "er")):
        return None
    denied = len(before) > 2 and before[-3] in ("no", "not", "never")
    time = time_direction(base) if _is_date(literal) and base not in ("old", "young") else 0
    upward = (time or (-1 if base == "young" else 1 if base == "old" else direction(base))) > 0
    operators: tuple[Operator, Operator] = ("<=", ">=") if denied else (">", "<")
    return operators[not upward], 3 if denied else 2, "date" if time else ""


def _led(form: re.Pattern[str], before: str) -> re.Match[str] | None:
    return re.search(rf"(?:^|(?<=\s))(?:{form.pattern})", before)


def _kind_said(lead: str, literal: str) -> str:
    """Return which of both a number that may be a year is, by the words before it."""
    if not _is_date(literal):
        return ""
    if re.match(r"(?:before|after|since|until|till|prior|earlier|later|no earlier|no later|during|in|as of)\b", lead):
        return "date"
    numeric = r"(?:under|below|over|above|exceeding|(?:no |not )?(?:less|fewer|more|lower|higher|greater) than)\b"
    return "number" if re.match(numeric, lead) else ""


def _lead_start(words: Sequence[str], at: int, leads: str) -> int:
    before = " ".join(words[max(at - 2, 0) : at])
    found = re.search(rf"(?:^|(?<=\s))(?:{leads})$", before)
    return at - len(found[0].split()) if found else at


def _is_date(text: str) -> bool:
    value = read_value(text)
    return value is not None and value.first is not None


def _literal_end(words: Sequence[str], at: int, units: Collection[str]) -> int | None:
    """Return where the longest value that begins at a position ends, or None."""
    for end in range(min(at + _LONGER, len(words)), at, -1):
        value = read_value(" ".join(words[at:end]))
        if value is None or value.truth is not None:
            continue
        if value.unit and end > at + 1 and not is_unit(unit_symbol(value.unit), units):
            continue
        return end
    return None


def is_unit(unit: str, units: Collection[str]) -> bool:
    """Return whether the graph has a unit, whose case the words of a question have lost."""
    return unit in units or any(one.casefold() == unit for one in units)


def _written(words: Sequence[str], units: Collection[str]) -> str:
    """Return words as a literal, its unit in the case of the only unit of the graph that has these letters."""
    literal = " ".join(words)
    value = read_value(literal)
    if value is None or not value.unit or unit_symbol(value.unit) in units:
        return literal
    cased = [one for one in units if one.casefold() == value.unit]
    return literal.removesuffix(value.unit) + cased[0] if len(cased) == 1 and literal.endswith(value.unit) else literal
