"""Read values in names: dates, numbers and truth values.

The rules are stated here.

A name is a date: `1987`, `1987-03`, `1987-03-02`, with `/` or `.` as well, `2.3.1987` (day first), a time behind a
whole date, `2 March 1987`, `March 2, 1987`, `March 1987`. Years are 1000 to 2999. A date that is not whole stands for
all of its days. A name is a number: `84`, `-1.5`, `1,250,000`, `1.250.000`, `1 250 000`, `1,5` (a decimal comma, unless
three digits follow, also in `0,125`), `3e5`. A currency may stand before it, or a unit behind it: `84 m`, `€ 12.50`,
`410 million €`, `12 %`. Behind a currency, `k`, `m` and `bn` are thousands, millions and billions: `$5m`. A unit of
more than four letters is known or in small letters: `12 Monkeys` is no number. The case of known units says nothing.
For others it counts, since `mW` is not `MW`. More than `MAX_DIGITS` digits are an identifier. A name is a truth value:
`true`, `false`, `yes`, `no`.

A whole number of four digits is a number and a year. Two values are compared as dates if both are some, else as
numbers if both are some, else as truth values, else by their texts, as equal or not. Numbers whose units differ are
unequal, and neither is the greater.

Literals that say their datatype are read by the lexical forms of XML Schema. `xsd:date`, `xsd:dateTime` and
`xsd:dateTimeStamp` are a day, `xsd:gYearMonth` the days of a month, `xsd:gYear` the days of a year. A time of day is
not compared, and a time zone is dropped: the day is the one that is written. Years outside of 1 to 9999 have no value.
`xsd:integer` and its derived types, `xsd:decimal`, `xsd:double` and `xsd:float` are numbers without a unit. An integer
from 1000 to 2999 is a year, too, as in names. `xsd:boolean` is a truth value. A text that its datatype does not allow,
such as "abc" for an integer, is a text. Every other literal, also a text, is read by the rules above, like a name.
"""

from __future__ import annotations

import json
import math
import operator
import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias

#: The most digits of a number: a double holds each of them exactly.
MAX_DIGITS = 15

#: How two values are compared.
Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR, _DAY = r"(?P<year>[12]\d{3})", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        rf"{_YEAR}(?:(?P<s>[-/.])(?P<month>\d{{1,2}})(?:(?P=s)(?P<day>\d{{1,2}})(?:[T ]\d\d:\d\d.{{0,24}})?)?)?",
        rf"(?P<day>\d{{1,2}})(?P<s>[-/.])(?P<month>\d{{1,2}})(?P=s){_YEAR}",
        rf"(?:{_DAY} )?{_MONTH},? {_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
    )
)
_YEAR_INSIDE = re.compile(_YEAR, re.ASCII)
_NUMBER = re.compile(
    r"(?P<currency>[$€£¥]|USD|EUR|GBP|CHF)? ?(?P<sign>[-+\u2212])?"
    r"(?P<digits>(?P<commas>(?!0,)[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?)"
    r"|(?P<points>(?!0\.)[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?)"
    r"|[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?|\.[0-9]+)"
    r"(?:e(?P<exponent>[-+]?[0-9]{1,3}))?"
    r"(?: ?(?P<scale>thousand|million|billion|trillion|bn(?![a-z])|(?(currency)[km](?![a-z²³/])|(?!))))?"
    r"(?:[ \u00a0]?(?P<unit>[a-zµΩ]{1,12}[²³23]?(?:/[a-z]{1,12}[²³23]?)?|[%‰€$£¥]|°[CFK]?))?",
    re.IGNORECASE,
)
_SCALES = {"": 0, "k": 3, "thousand": 3, "m": 6, "million": 6, "bn": 9, "billion": 9, "trillion": 12}
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


class Value(NamedTuple):
    """The value in a name. At least one of its readings is given.

    Attributes:
        text: The name.
        number: As a number, finite. None if it is none.
        unit: The unit of the number, such as "m" or "€", or "".
        first: As a date: its first day.
        last: Its last day, another one if the date is not whole.
        truth: As a truth value.
    """

    text: str
    number: float | None = None
    unit: str = ""
    first: date | None = None
    last: date | None = None
    truth: bool | None = None

    @property
    def plain(self) -> int | float | bool | str:
        """The value as JSON has it.

        Dates are their text, and whole numbers have no fraction.

        Example:
            >>> [read_value(text).plain for text in ("1,250,000", "84.5 m", "1987-03-02", "yes")]
            [1250000, 84.5, '1987-03-02', True]
        """
        if self.truth is not None:
            return self.truth
        if self.number is None:
            return self.text
        return int(self.number) if self.number.is_integer() else self.number


@lru_cache(maxsize=65_536)
def read_value(text: str) -> Value | None:
    """Return the value in a name, or None.

    See the rules above.

    Example:
        >>> read_value("1,250 m").number, read_value("March 1987").last.isoformat(), read_value("Apollo 13")
        (1250.0, '1987-03-31', None)
    """
    stripped = text.strip()
    if not stripped or len(stripped) > 64:
        return None
    if (truth := _TRUTHS.get(stripped.casefold())) is not None:
        return Value(text, truth=truth)
    first, last = _read_date(stripped)
    number, unit = _read_number(stripped) if first is None or stripped.isdecimal() else (None, "")
    return None if first is None and number is None else Value(text, number, unit, first, last)


def _read_date(text: str) -> tuple[date, date] | tuple[None, None]:
    if not _YEAR_INSIDE.search(text):
        return None, None
    found = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if found is None:
        return None, None
    parts = found.groupdict()
    day = parts.get("day")
    return _days(int(parts["year"]), _month(parts.get("month")), None if day is None else int(day))


def _days(year: int, month: int | None, day: int | None) -> tuple[date, date] | tuple[None, None]:
    """Return the first and the last day of a year, a month or a day.

    None if there is no such day.
    """
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    last = monthrange(year, month)[1] if 1 <= month <= 12 else 0
    if not 1 <= (1 if day is None else day) <= last:
        return None, None
    return date(year, month, day or 1), date(year, month, day or last)


def _month(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() else _MONTHS.index(text[:3].casefold()) + 1


def _read_number(text: str) -> tuple[float, str] | tuple[None, Literal[""]]:
    found = _NUMBER.fullmatch(text)
    if found is None or sum(map(str.isdigit, found["digits"])) > MAX_DIGITS:
        return None, ""
    exponent = int(found["exponent"] or 0) + _SCALES[(found["scale"] or "").casefold()]
    number = float(f"{_plain_digits(found)}e{exponent}")
    if number in (float("inf"), 0.0) and found["digits"].strip("0., \u00a0\u202f"):
        return None, ""  # beyond what a double holds
    if not _is_unit(found["unit"] or ""):
        return None, ""
    unit = found["unit"] or found["currency"] or ""
    return (-number if found["sign"] in ("-", "\u2212") else number), unit.strip()


def _is_unit(text: str) -> bool:
    """Tell whether a text may be a unit.

    Each of its words is short, known, or in small letters.
    """
    words = [word.rstrip("²³23") for word in text.split("/")]
    return all(len(word) <= 4 or word.islower() or word.casefold() in _UNITS for word in words)


def _plain_digits(found: re.Match[str]) -> str:
    """Return digits without signs for thousands, and with a point before the fraction."""
    if found["commas"]:
        return found["digits"].replace(",", "")
    digits = re.sub(r"[ \u00a0\u202f]", "", found["digits"])
    return (digits.replace(".", "") if found["points"] else digits).replace(",", ".")


def holds(value: Value, comparison: Comparison, other: Value) -> bool:
    """Return whether a comparison is certain to hold.

    A date that is not whole may be any of its days.

    Example:
        >>> holds(read_value("1987"), "<", read_value("1990")), holds(read_value("1987"), "<", read_value("1987-05-01"))
        (True, False)
        >>> holds(read_value("84 m"), ">=", read_value("84")), holds(read_value("84 m"), "=", read_value("84 ft"))
        (True, False)
    """
    if value.first and value.last and other.first and other.last:
        return bool(DATES_HOLD[comparison](value.first, value.last, other.first, other.last))
    if value.number is not None and other.number is not None:
        if not value.unit or not other.unit or unit_symbol(value.unit) == unit_symbol(other.unit):
            return bool(NUMBERS_HOLD[comparison](value.number, other.number))
        return comparison == "!="
    if value.truth is not None and other.truth is not None:
        equal = value.truth == other.truth
    else:
        equal = value.text.strip().casefold() == other.text.strip().casefold()
    return (comparison == "=" and equal) or (comparison == "!=" and not equal)


#: Compares numbers, or arrays of them.
NUMBERS_HOLD: Mapping[Comparison, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


#: Tell whether dates from `first` to `last` certainly compare so with one from `low` to `high`. Arrays will do, too.
DATES_HOLD: Mapping[Comparison, Callable[[Any, Any, Any, Any], Any]] = {
    "<": lambda first, last, low, high: last < low,
    "<=": lambda first, last, low, high: last <= high,
    ">": lambda first, last, low, high: first > high,
    ">=": lambda first, last, low, high: first >= low,
    "=": lambda first, last, low, high: (first >= low) & (last <= high),
    "!=": lambda first, last, low, high: (last < low) | (first > high),
}


#: Units that are written in several ways, in small letters. Their case says nothing.
_UNITS: dict[str, str] = {
    name: symbol
    for symbol, names in json.loads((files(__package__) / "units.json").read_text("utf-8")).items()
    for name in names
}


def unit_symbol(unit: str) -> str:
    """Return the usual symbol of a known unit.

    Another unit stays as it is written.

    Example:
        >>> unit_symbol("Metres"), unit_symbol("KM"), unit_symbol("MW"), unit_symbol("beds")
        ('m', 'km', 'MW', 'beds')
    """
    return _UNITS.get(unit.casefold(), unit)


#: Known units by their names and their symbols, in small letters.
_KNOWN = {symbol.casefold(): symbol for symbol in _UNITS.values()} | _UNITS

#: The units of time. A name in the singular, as in "birth year", is rather a date.
TIMES = frozenset(["s", "min", "h", "day", "week", "month", "year"])


def known_unit(word: str) -> str:
    """Return the symbol of a known unit, or "".

    A power and the unit of time of a speed are left out.

    Example:
        >>> [known_unit(word) for word in ("Metres", "km²", "kmh", "huts")]
        ['m', 'km', 'km', '']
    """
    folded = word.casefold()
    symbol = _KNOWN.get(folded) or _KNOWN.get(folded.split("/")[0].rstrip("²³23"), "")
    return symbol.split("/")[0].rstrip("²³")


def is_only_unit(word: str) -> bool:
    """Tell whether a known unit is hardly another word: a plural, a sign, or a symbol of several letters.

    Example:
        >>> [word for word in ("kg", "hours", "€", "hour", "second", "m", "min") if is_only_unit(word)]
        ['kg', 'hours', '€']
    """
    if not known_unit(word) or word in ("min", "foot", "inch"):
        return False
    return not word.isalpha() or (len(word) > 1 and not (len(word) > 2 and f"{word}s" in _UNITS))


#: Words beside which "m" stands for metres.
_LENGTHS = re.compile(
    "heigh|length|depth|width|altitude|elevation|distance|diameter|aperture|span|radius|size|tall|long|deep|wide|high"
)


def named_unit(name: str) -> str:
    """Return the unit that the name of a relation says, as it is written there, or "".

    Example:
        >>> [named_unit(name) for name in ("weight kg", "height in metres", "area (km²)", "minutes played")]
        ['kg', 'metres', 'km²', 'minutes']
        >>> [named_unit(name) for name in ("price in euros per kg", "top speed km h", "birth year", "runtime m")]
        ['euros', 'km/h', '', '']
    """
    said = re.sub(r"\b(km|m) ([hs])$", r"\1/\2", name.casefold().split(" per ")[0])
    words: list[str] = re.findall(r"[^\s()\[\],]+", said)
    if words[-1:] == ["m"] and words[-2:-1] != ["in"] and not _LENGTHS.search(said):
        return ""  # minutes or millions
    if words and (symbol := known_unit(last := words[-1])):
        is_time = last == "min" and re.search("time|duration|length", name.casefold())
        if symbol not in TIMES or len(last) == 1 or words[-2:-1] == ["in"] or is_time:
            return last
    return next(filter(is_only_unit, reversed(words)), "")


# --- literals with a datatype -----------------------------------------------------------------------------------------

_XSD = "http://www.w3.org/2001/XMLSchema#"
_ZONE = r"(?:Z|[-+]\d\d:\d\d)?"
_XSD_YEAR, _XSD_DAY = r"(-?(?:[1-9]\d{3,8}|0\d{3}))", r"(\d\d)-(\d\d)"
#: The datatypes of whole numbers.
INTEGERS = [
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
]  # fmt: skip
_XSD_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _read_xsd_day(found: re.Match[str], text: str) -> Value | None:
    year, month, day = (*map(int, found.groups()), None, None)[:3]
    if year is None or not 1 <= year <= 9999:
        return None
    first, last = _days(year, month, day)
    return None if first is None else Value(text, first=first, last=last)


def _read_xsd_number(found: re.Match[str], text: str) -> Value | None:
    number = float(found[0])
    return Value(text, number) if math.isfinite(number) else None


def _read_xsd_integer(found: re.Match[str], text: str) -> Value | None:
    is_year = len(found[0]) == 4 and found[0][0] in "12"
    return read_value(text) if is_year else _read_xsd_number(found, text)


def _read_xsd_truth(found: re.Match[str], text: str) -> Value | None:
    return Value(text, truth=_XSD_TRUTHS[found[0]])


_XSD_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_FLOAT = rf"{_XSD_NUMBER}(?:[eE][-+]?\d+)?|[-+]?INF|NaN"
_TIME = r"T\d\d:\d\d:\d\d(?:\.\d+)?"
_Reader = Callable[[re.Match[str], str], Value | None]
_FORMS: dict[str, tuple[re.Pattern[str], _Reader]] = {
    name: (re.compile(form, re.ASCII), reader)
    for names, form, reader in (
        (["date"], rf"{_XSD_YEAR}-{_XSD_DAY}{_ZONE}", _read_xsd_day),
        (["dateTime", "dateTimeStamp"], rf"{_XSD_YEAR}-{_XSD_DAY}{_TIME}{_ZONE}", _read_xsd_day),
        (["gYearMonth"], rf"{_XSD_YEAR}-(\d\d){_ZONE}", _read_xsd_day),
        (["gYear"], rf"{_XSD_YEAR}{_ZONE}", _read_xsd_day),
        (INTEGERS, r"[-+]?\d+", _read_xsd_integer),
        (["decimal"], _XSD_NUMBER, _read_xsd_number),
        (["double", "float"], _FLOAT, _read_xsd_number),
        (["boolean"], "true|false|1|0", _read_xsd_truth),
    )
    for name in names
}


def is_valid(text: str, datatype: str) -> bool:
    """Return whether a datatype, given by its IRI, allows a text.

    A datatype that has no values here allows every text.

    Example:
        >>> is_valid("1987", "http://www.w3.org/2001/XMLSchema#gYear"), is_valid("?", _XSD + "integer")
        (True, False)
    """
    form = _FORMS.get(datatype[len(_XSD) :]) if datatype.startswith(_XSD) else None
    return form is None or form[0].fullmatch(text.strip()) is not None


@lru_cache(maxsize=65_536)
def read_typed_value(text: str, datatype: str) -> Value | None:
    """Return the value in a literal, or None.

    See the rules above.

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
