"""Values of literals that say their datatype, by the lexical forms of XML Schema.

`xsd:date`, `xsd:dateTime` and `xsd:dateTimeStamp` are a day, `xsd:gYearMonth` the days of a month, `xsd:gYear` those of
a year; a time of day is not compared, and a time zone is dropped: the day is the one that is written. Years outside of
1 to 9999 have no value. `xsd:integer` and what is derived from it, `xsd:decimal`, `xsd:double` and `xsd:float` are
numbers without a unit; an integer from 1000 to 2999 is a year, too, as in names. `xsd:boolean` is a truth value. What a
datatype does not allow, as "abc" for an integer, is a text. Every other literal, texts among them, is read by the rules
of `kg_retrievers.graph.values`, as a name is.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from kg_retrievers.graph.values import Value, read_value

_XSD = "http://www.w3.org/2001/XMLSchema#"
_ZONE = r"(?:Z|[-+]\d\d:\d\d)?"
_YEAR, _DAY = r"(-?(?:[1-9]\d{3,8}|0\d{3}))", r"(\d\d)-(\d\d)"
_INTEGERS = [
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
]  # fmt: skip
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _read_day(found: re.Match[str], text: str) -> Value | None:
    parts = [int(part) for part in found.groups()]
    year, month, day = (*parts, 0, 0)[:3]
    if not 1 <= year <= 9999:
        return None
    if not month and len(parts) == 1:
        return Value(text, first=date(year, 1, 1), last=date(year, 12, 31))
    last = monthrange(year, month)[1] if 1 <= month <= 12 else 0
    if day > last or not last or (len(parts) == 3 and not day):
        return None
    return Value(text, first=date(year, month, day or 1), last=date(year, month, day or last))


def _read_number(found: re.Match[str], text: str) -> Value | None:
    number = float(found[0])
    return Value(text, number) if math.isfinite(number) else None


def _read_integer(found: re.Match[str], text: str) -> Value | None:
    is_year = len(found[0]) == 4 and found[0][0] in "12"
    return read_value(text) if is_year else _read_number(found, text)


def _read_truth(found: re.Match[str], text: str) -> Value | None:
    return Value(text, truth=_TRUTHS[found[0]])


_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_FLOAT = rf"{_NUMBER}(?:[eE][-+]?\d+)?|[-+]?INF|NaN"
_TIME = r"T\d\d:\d\d:\d\d(?:\.\d+)?"
_Reader = Callable[[re.Match[str], str], Value | None]
_FORMS: dict[str, tuple[re.Pattern[str], _Reader]] = {
    name: (re.compile(form, re.ASCII), reader)
    for names, form, reader in (
        (["date"], rf"{_YEAR}-{_DAY}{_ZONE}", _read_day),
        (["dateTime", "dateTimeStamp"], rf"{_YEAR}-{_DAY}{_TIME}{_ZONE}", _read_day),
        (["gYearMonth"], rf"{_YEAR}-(\d\d){_ZONE}", _read_day),
        (["gYear"], rf"{_YEAR}{_ZONE}", _read_day),
        (_INTEGERS, r"[-+]?\d+", _read_integer),
        (["decimal"], _NUMBER, _read_number),
        (["double", "float"], _FLOAT, _read_number),
        (["boolean"], "true|false|1|0", _read_truth),
    )
    for name in names
}


def is_valid(text: str, datatype: str) -> bool:
    """Return whether a datatype, given by its IRI, allows a text; of those that have no values here, every one.

    Example:
        >>> is_valid("1987", "http://www.w3.org/2001/XMLSchema#gYear"), is_valid("?", _XSD + "integer")
        (True, False)
    """
    form = _FORMS.get(datatype[len(_XSD) :]) if datatype.startswith(_XSD) else None
    return form is None or form[0].fullmatch(text.strip()) is not None


@lru_cache(maxsize=65_536)
def read_typed_value(text: str, datatype: str) -> Value | None:
    """Return what a literal says as a value, or None; see the rules above.

    Args:
        text: The text of the literal.
        datatype: As `graph.datatype` gives it: "xsd:date", or "@en" for a text in a language.

    Example:
        >>> read_typed_value("1987-03", "xsd:gYearMonth").last.isoformat()
        '1987-03-31'
        >>> read_typed_value("+7.0", "xsd:decimal").plain
        7
        >>> read_typed_value("1987", "xsd:decimal").first, read_typed_value("many", "xsd:integer")
        (None, None)
    """
    prefix, _, name = datatype.partition(":")
    if prefix != "xsd" or name not in _FORMS:
        return read_value(text)
    form, reader = _FORMS[name]
    found = form.fullmatch(text.strip())
    return reader(found, text) if found else None
