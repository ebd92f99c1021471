"""Handle the attributes of facts.

A source states them in addition to a fact's head, relation and tail.

A fact has one set of attributes for each time that its source states it otherwise, such as two relationships of one
type between the same two nodes. A graph keeps each distinct set once, as a JSON object with sorted keys, and the ids of
its sets with each fact. A graph without attributes has no such column. The attribute "source" names the origin of a
fact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np

from kg_retrievers.errors import Hints, InvalidArgumentError, did_you_mean, first_of, listed
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.operations import Scalar, literal_value, short
from kg_retrievers.graph.values import Comparison, holds, read_typed_value

#: The values of an attribute: a text, a number, a truth value, or a list of these values. A date is a text in ISO 8601.
AttributeValue: TypeAlias = Scalar | list[Scalar]

#: The attribute that names the origin of a fact.
SOURCE = "source"

#: The attributes that say when a fact begins and ceases to hold, by default.
VALIDITY = VALID_FROM, VALID_TO = "valid_from", "valid_to"

#: The next step if no fact has attributes.
_NO_ATTRIBUTES = "Leave it out, or give facts attributes: further columns of a table, or keys of a JSON row."

#: The condition on an attribute: a value, several values of which it is one, None for a fact without it, or
#: comparisons.
Wanted: TypeAlias = Scalar | date | Collection[Scalar | date | None] | Mapping[Comparison, Scalar | date] | None

#: The conditions on the attributes of facts, by their names.
Where: TypeAlias = Mapping[str, Wanted]

#: Tells whether a value of an attribute is as wanted.
_Test: TypeAlias = Callable[[Scalar], Any]

#: What `plain_attribute` raises for a value that is none of an attribute.
NO_ATTRIBUTE = (ValueError, TypeError, RecursionError)

_LISTS = (list, tuple, set, frozenset)
_COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)

#: From this integer on, numbers with a fraction no longer tell all integers apart.
INEXACT = 2**53


def attribute_set(attributes: Mapping[str, Any], leave_out: Callable[[str], None] | None = None) -> str:
    """Return attributes as a graph keeps them.

    The result is a JSON object with sorted keys. None and empty values are left out.

    Dates and times become texts in ISO 8601, exact decimals numbers, and objects and lists inside lists their JSON.

    Args:
        attributes: The attributes by name.
        leave_out: Gets the name of each value that is none of an attribute, such as an infinite number.

    Raises:
        InvalidArgumentError: If a name is no text, or a value is none and `leave_out` is not given.

    Example:
        >>> attribute_set({"since": date(1999, 3, 31), "roles": ("Neo",), "note": None})
        '{"roles": ["Neo"], "since": "1999-03-31"}'
    """
    kept = {}
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"KnowledgeGraph: an attribute's name must be a text, but got {name!r}.")
        try:
            plain = plain_attribute(value)
        except NO_ATTRIBUTE:
            if leave_out is None:
                raise InvalidArgumentError(
                    f"KnowledgeGraph: the attribute {name!r} must be a text, a finite number, a date, a truth value or "
                    f"a list of these, but got {short(value)}."
                ) from None
            leave_out(name)
            continue
        if plain is not None and plain not in ("", []):
            kept[name] = plain
    return json.dumps(kept, ensure_ascii=False, sort_keys=True)


def read_attribute_set(text: str) -> dict[str, AttributeValue]:
    """Return the attributes that `attribute_set` wrote."""
    attributes: dict[str, AttributeValue] = json.loads(text)
    return attributes


def attribute_cell(value: AttributeValue) -> str:
    """Return a value as a cell of a table.

    A plain text stays as it is, and all else becomes JSON.

    A text that looks like another value, or that a table may change, such as one with a line break, is written as JSON.

    Example:
        >>> attribute_cell("Neo"), attribute_cell(1999), attribute_cell("1999"), attribute_cell(["a", "b"])
        ('Neo', '1999', '"1999"', '["a", "b"]')
    """
    if isinstance(value, str) and value.isprintable() and read_attribute_cell(value.strip()) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_attribute_cell(cell: str) -> AttributeValue:
    """Return the value that `attribute_cell` wrote.

    It is JSON's value, if JSON writes it exactly so, else the text.

    Example:
        >>> read_attribute_cell("1999"), read_attribute_cell("007"), read_attribute_cell("true")
        (1999, '007', True)
    """
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    is_plain = value is not None and not isinstance(value, dict)
    return value if is_plain and json.dumps(value, ensure_ascii=False) == cell else cell


def plain_attribute(value: Any) -> Any:  # noqa: C901 # a case for each type
    """Return a value as JSON holds it, or None for nothing, such as NaN.

    Raises:
        ValueError, TypeError, RecursionError: `NO_ATTRIBUTE`: if it is infinite, an object that no text describes, a
            mapping with keys that are no texts, or nested too deeply for Python.
    """
    if hasattr(value, "tolist"):  # of numpy, torch and their like
        value = value.tolist()
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Decimal() | datetime() if value != value:  # NaN, and NaT of pandas
            return None
        case float() | Decimal() if not isfinite(value):
            raise ValueError(f"{value} is no finite number")
        case float():
            return value
        case Decimal():
            return float(value) if value % 1 else int(value)
        case datetime() if value.time() == time():
            return value.date().isoformat()
        case date() | time():
            return value.isoformat()
        case Mapping():
            return _in_json(dict(value))
        case set() | frozenset():
            return plain_attribute(sorted(value, key=str))
        case list() | tuple():
            parts = (one.tolist() if hasattr(one, "tolist") else one for one in value)
            plain = (_in_json(one) if isinstance(one, _LISTS) else plain_attribute(one) for one in parts)
            return [one for one in plain if one is not None]
        case bytes() | bytearray():
            raise ValueError("bytes are no text")
    if type(value).__str__ is object.__dict__["__str__"]:  # it would be written as Python shows it, with its address
        raise ValueError(f"{short(value)} is no text, number, date or truth value")
    return str(value)


def _in_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, default=plain_attribute)


def sources_of(sets: Iterable[Mapping[str, AttributeValue]]) -> list[str]:
    """Return the sources that sets of attributes name, each once."""
    return list(dict.fromkeys(str(one[SOURCE]) for one in sets if SOURCE in one))


class AttributeSets:
    """The distinct sets of attributes of a graph, and which of them satisfy conditions.

    Attributes:
        texts: Each set as `attribute_set` writes it.
    """

    def __init__(self, texts: StringTable) -> None:
        """Take the sets, which are read when a condition is first asked for."""
        self.texts = texts

    @cached_property
    def _by_name(self) -> dict[str, dict[int, AttributeValue]]:
        """The values of each attribute by the ids of the sets."""
        found: dict[str, dict[int, AttributeValue]] = {}
        for id, text in enumerate(self.texts):
            for name, value in read_attribute_set(text).items():
                found.setdefault(name, {})[id] = value
        return found

    @property
    def names(self) -> list[str]:
        """The names of the attributes, in sorted order."""
        return sorted(self._by_name)

    def read(self, id: int) -> dict[str, AttributeValue]:
        """Return a set."""
        return read_attribute_set(self.texts[id])

    def values(self, name: str) -> Mapping[int, AttributeValue]:
        """Return the values of an attribute by the ids of its sets."""
        return self._by_name.get(name, {})

    def satisfying(self, where: Where, as_of: date | str | None = None, validity: tuple[str, str] = VALIDITY) -> Array:
        """Return which sets satisfy all conditions: bool, (n + 1).

        The last row stands for facts without attributes.

        Args:
            where: The conditions on each attribute. Of a list, one value must satisfy the condition. Texts are compared
                as they are, dates by their days, numbers by their values.
            as_of: A day on which the facts hold: "valid_from" is not after it and "valid_to" not before it. A fact
                without one of them has no such limit.
            validity: The names of the two attributes that give the validity.

        Raises:
            InvalidArgumentError: If no fact has such an attribute, no set satisfies all, or nothing can be compared so.
        """
        found = np.ones(len(self.texts) + 1, np.bool_)
        for one in conditions(self.names, where, as_of, validity):
            passes = lru_cache(None, typed=True)(one.passes)  # True, 1 and 1.0 are three values
            of_name = np.full(len(self.texts) + 1, one.absent)
            for id, value in self.values(one.name).items():
                of_name[id] = any(map(passes, value)) if isinstance(value, list) else passes(value)
            found &= of_name
        if not found.any():
            raise no_fact_left({name: self.values(name).values() for name in where})
        return found


class AttributeCondition(NamedTuple):
    """The condition on one attribute of facts.

    Attributes:
        name: The attribute.
        passes: Tells whether a value, or one of a list, is as wanted.
        absent: Whether facts without it satisfy the condition.
        among: The texts and numbers that pass, for a database. None if others may pass.
        limits: The limits that each number that passes keeps, or each date, for a database.
    """

    name: str
    passes: _Test
    absent: bool
    among: Sequence[str | float] | None = None
    limits: Sequence[tuple[Comparison, float | date]] = ()


def conditions(
    names: Sequence[str], where: Where, as_of: date | str | None, validity: tuple[str, str]
) -> list[AttributeCondition]:
    """Return the conditions of `AttributeSets.satisfying` on facts whose attributes have some names.

    Raises:
        InvalidArgumentError: If no fact has such an attribute, or nothing can be compared so.
    """
    if not isinstance(where, Mapping):
        raise InvalidArgumentError(f"view: where is a mapping, such as {{'tenant': 'a'}}, but got {short(where)}.")
    for name in where:
        _check_name(name, names)
    found = [_condition(name, wanted) for name, wanted in where.items()]
    if as_of is None and tuple(validity) != VALIDITY:
        raise InvalidArgumentError(
            f"view: validity={short(validity)} names the attributes that as_of looks at. Give as_of, too."
        )
    if as_of is not None:
        day = _days(_scalar("as_of", as_of))
        if day is None:
            raise InvalidArgumentError(f"view: as_of must be a date, such as '2015-06-30', but got {as_of!r}.")
        first, last = day
        begins, ends = _checked_validity(validity, names)

        def has_begun(one: Scalar) -> Any:
            return (of := _days(one)) and of[0] <= last

        def goes_on(one: Scalar) -> Any:
            return (of := _days(one)) and of[1] >= first

        found.append(AttributeCondition(begins, has_begun, absent=True, limits=[("<=", last)]))
        found.append(AttributeCondition(ends, goes_on, absent=True, limits=[(">=", first)]))
    return found


def satisfies(attributes: Mapping[str, AttributeValue], wanted: Iterable[AttributeCondition]) -> bool:
    """Tell whether a set of attributes satisfies all conditions."""
    return all(_holds(one, attributes[one.name]) if one.name in attributes else one.absent for one in wanted)


def no_fact_left(values: Mapping[str, Iterable[AttributeValue]] | None = None) -> InvalidArgumentError:
    """Return the error of a view without facts.

    Args:
        values: The values of the attributes in the conditions, if they are known. The shell alone shows them: an
            application may pass the message to a user from whom the view hides them.
    """
    told = list[str]()
    for name, found in (values or {}).items():
        single = chain.from_iterable(one if isinstance(one, list) else [one] for one in found)
        told.append(f"{name!r} has the values {first_of(sorted({*map(repr, single)}), 10)}.")
    return InvalidArgumentError(
        "view: no fact satisfies these conditions.",
        hint_python="See `graph.attribute_names`, and `graph.attributes(triple)` for those of a fact.",
        hint_shell=" ".join(told) or "`info` shows the attributes.",
    )


def _holds(wanted: AttributeCondition, value: AttributeValue) -> bool:
    return any(map(wanted.passes, value if isinstance(value, list) else [value]))


def _checked_validity(validity: tuple[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Check that facts have a time.

    By default one of the attributes must exist, otherwise both attributes that a user names.
    """
    if isinstance(validity, str) or len(validity) != 2:
        raise InvalidArgumentError(f"view: validity takes the names of two attributes, but got {short(validity)}.")
    is_default = tuple(validity) == VALIDITY
    if is_default and not {*VALIDITY} & {*names}:
        raise _lacking(
            f"as_of reads the attributes {VALID_FROM!r} and {VALID_TO!r}, but no fact has them.",
            names,
            hint_python='Name those of your graph: validity=("since", "until").',
            hint_shell="Name those of your graph: --validity since until.",
        )
    for name in validity:
        if not (is_default and (VALID_FROM in names or VALID_TO in names)):
            _check_name(name, names, "validity: ")
    return validity


def _check_name(name: str, names: Sequence[str], argument: str = "") -> None:
    if name not in names:
        near = did_you_mean(str(name), names)
        message = f"{argument}no fact has the attribute {name!r}{f'; {near}' if near else '.'}"
        raise _lacking(message, names, hint_python="See `graph.attribute_names`.", hint_shell="`info` lists them.")


def _lacking(message: str, names: Sequence[str], **hints: Unpack[Hints]) -> InvalidArgumentError:
    """Return the error of a view that asks for attributes that no fact has."""
    if not names:
        hints = {"hint_python": _NO_ATTRIBUTES, "hint_shell": _NO_ATTRIBUTES}
    return InvalidArgumentError(f"view: {message} Attributes: {listed(names) or 'none'}.", **hints)


def _condition(name: str, wanted: Wanted) -> AttributeCondition:
    """Return the condition on an attribute.

    Raises:
        InvalidArgumentError: If it is nothing that values can be compared with.
    """
    if not isinstance(wanted, Mapping):
        several = [wanted] if isinstance(wanted, str | bytes) or not isinstance(wanted, Collection) else [*wanted]
        equals = [_scalar(name, one) for one in several if one is not None]
        passes = partial(_is_among, equals)
        return AttributeCondition(name, passes, absent=None in several, among=_written_so(equals))
    if not wanted or any(one not in _COMPARISONS for one in wanted):
        raise InvalidArgumentError(f"view: {name!r} takes comparisons of {listed(_COMPARISONS)}, got {short(wanted)}.")
    limits = [(comparison, _scalar(name, limit)) for comparison, limit in wanted.items()]
    ordered = {one: literal_value(limit) for one, limit in limits if one not in ("=", "!=")}
    are_dates = all(limit.first for limit in ordered.values())
    if not are_dates and any(limit.number is None for limit in ordered.values()):
        raise InvalidArgumentError(
            f"view: the limits of {name!r} must be all numbers or all dates, got {short(wanted)}."
        )
    told: list[tuple[Comparison, Any]] = []
    if are_dates:
        told = [(one, limit.last if one in ("<=", ">") else limit.first) for one, limit in ordered.items()]
    elif not any(limit.first or limit.unit or abs(limit.number or 0) >= INEXACT for limit in ordered.values()):
        told = [(one, limit.number) for one, limit in ordered.items()]
    among = _written_so([dict(limits)["="]]) if "=" in wanted else None

    def satisfies_all(value: Scalar) -> bool:
        return all(_compared(value, comparison, limit) for comparison, limit in limits)

    return AttributeCondition(name, satisfies_all, absent=False, among=among, limits=told)


def _is_among(equals: Sequence[Scalar], value: Scalar) -> bool:
    return any(_equal(value, one) for one in equals)


def _written_so(equals: Iterable[Scalar]) -> list[str | float] | None:
    """Return all texts and numbers that equal one of some values.

    None if they may be written otherwise, such as dates.
    """
    found = list[str | float]()
    for one in equals:
        plain = read_attribute_cell(one) if isinstance(one, str) else one
        number = plain if isinstance(plain, int | float) and not isinstance(plain, bool) else None
        if literal_value(one).first or (number is not None and abs(number) >= INEXACT):
            return None
        found.append(one if isinstance(one, str) else json.dumps(one))
        if number is not None:
            found.append(float(number))
            if not isinstance(one, str) and float(number).is_integer():
                found += [str(int(number)), json.dumps(float(number))]
    return found


def _compared(value: Scalar, comparison: Comparison, limit: Scalar) -> bool:
    if comparison in ("=", "!="):
        return _equal(value, limit) == (comparison == "=")
    read, other = literal_value(value), literal_value(limit)
    return bool((read.first and other.first) or read.number is not None) and holds(read, comparison, other)


def _equal(value: Scalar, wanted: Scalar) -> bool:
    """Tell whether values are equal.

    Dates are compared by their days, texts by each letter, and a text is a number as in a cell.
    """
    read, other = literal_value(value), literal_value(wanted)
    if read.first and other.first:
        return holds(read, "=", other)
    if isinstance(value, str) == isinstance(wanted, str):
        return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted
    text, plain = (value, wanted) if isinstance(value, str) else (str(wanted), value)
    cell = read_attribute_cell(text)
    return isinstance(cell, bool) == isinstance(plain, bool) and cell == plain


def _days(value: Scalar) -> tuple[date, date] | None:
    """Return the first and the last day of a date.

    The date is of any year from 1 to 9999. None stands for another value.
    """
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    forms = ("gYear", "gYearMonth", "date", "dateTime")
    readings = (literal_value(text), *(read_typed_value(text, f"xsd:{form}") for form in forms))
    return next(((read.first, read.last) for read in readings if read and read.first and read.last), None)


def _scalar(name: str, wanted: object) -> Scalar:
    plain = wanted.item() if isinstance(wanted, np.generic) else wanted
    if isinstance(plain, date):
        plain = plain.isoformat()
    if not isinstance(plain, str | int | float):
        raise InvalidArgumentError(
            f"view: {name!r} takes a text, number, date or truth value, but got {short(wanted)}."
        )
    return plain
