"""What a pattern asks beyond its triples: conditions on its unknowns, and one operation on what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Literal, TypeAlias, get_args

from kg_retrievers.errors import PatternError
from kg_retrievers.graph.values import Comparison, Value, read_value

#: What a condition is compared with: a text, a number or a truth value.
Scalar: TypeAlias = str | int | float | bool

#: How an unknown is compared with what a condition says.
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "between", "contains", "in"]

#: What is asked of the things found.
OperationKind: TypeAlias = Literal["list", "count", "exists", "max", "min", "order", "compare"]

_COMPARISONS, _OPERATORS, _KINDS = get_args(Comparison), get_args(Operator), get_args(OperationKind)

#: The longest text of a condition, and the most texts of one with "in".
MAX_TEXT, MAX_TEXTS = 1_000, 1_000


_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 120


def short(value: object) -> str:
    """Return any value for a message, however long or deep it is."""
    try:
        return _REPR.repr(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "a huge integer"


@dataclass(frozen=True)
class Condition:
    """What an unknown node of a pattern must satisfy.

    Args:
        unknown: The name of the unknown.
        operator: "=" to ">=" compare values as `kg_retrievers.graph.values` says; "between" includes both ends;
            "contains" looks for a text in its names, whatever their case; "in" says that it is one of some entities.
        value: A text, number or truth value; for "between" two of them, for "in" the names or keys of entities.

    Raises:
        PatternError: If the operator is none of these, or the value does not fit it.

    Example:
        >>> Condition("year", "<", 1970).to_dict()
        {'unknown': 'year', 'operator': '<', 'value': 1970}
    """

    unknown: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]

    def __post_init__(self) -> None:
        """Check that the value fits the operator."""
        if self.operator not in _OPERATORS:
            raise PatternError(
                f"Condition: 'operator' must be one of {list(_OPERATORS)}, but got {short(self.operator)}."
            )
        if isinstance(self.value, list):
            object.__setattr__(self, "value", tuple(self.value))
        several = self.value if isinstance(self.value, tuple) else None
        if (several is not None) != (self.operator in ("between", "in")):
            wanted = "a list" if self.operator in ("between", "in") else "one text, number or truth value"
            raise PatternError(f"Condition: {self.operator!r} takes {wanted}, but got {short(self.value)}.")
        if self.operator == "between" and len(several or ()) != 2:
            raise PatternError(f"Condition: 'between' takes two values, but got {short(self.value)}.")
        if self.operator == "in" and not 1 <= len(several or ()) <= MAX_TEXTS:
            raise PatternError(f"Condition: 'in' takes 1 ... {MAX_TEXTS} names, but got {len(several or ())}.")
        for one in several or (self.value,):
            self._check_literal(one)

    def _check_literal(self, value: object) -> None:
        if not isinstance(value, str | int | float):
            raise PatternError(f"Condition: wanted a text, number or truth value, but got {short(value)}.")
        if isinstance(value, str) and not 0 < len(value.strip()) <= MAX_TEXT:
            raise PatternError(f"Condition: wanted a text of 1 ... {MAX_TEXT} characters, but got {short(value)}.")
        if self.operator in ("contains", "in"):
            if not isinstance(value, str):
                raise PatternError(f"Condition: {self.operator!r} takes texts, but got {short(value)}.")
            return
        read = literal_value(value)
        if self.operator not in ("=", "!=") and read.number is None and read.first is None:
            raise PatternError(f"Condition: {self.operator!r} takes a number or a date, but got {short(value)}.")

    @property
    def literals(self) -> tuple[Value, ...]:
        """What the condition compares with, read as values."""
        return tuple(map(literal_value, self.value if isinstance(self.value, tuple) else (self.value,)))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that `from_dict` reads back."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"unknown": self.unknown, "operator": self.operator, "value": value}

    @classmethod
    def from_dict(cls, data: object) -> Condition:
        """Read what `to_dict` wrote, or a person or model.

        Raises:
            PatternError: If a key is unknown or missing, or a value has the wrong shape.
        """
        known = _known_keys("a condition", data, ("unknown", "operator", "value"))
        if missing := [key for key in ("unknown", "operator", "value") if key not in known]:
            raise PatternError(f"Condition: lacks {missing}.")
        _check_text("unknown", known["unknown"])
        value = known["value"]
        return cls(known["unknown"], known["operator"], tuple(value) if isinstance(value, list) else value)


@dataclass(frozen=True)
class Operation:
    """What is asked of the things that a pattern finds.

    - "list": the targets themselves, as without an operation. With `comparison` and `number`: those that have so many
      `by`, as in "at least two".
    - "count": how many different targets there are.
    - "exists": whether there is a match.
    - "max", "min": the targets with the greatest or least `by`.
    - "order": the targets by falling `by`, or by rising with `descending=False`; the first `limit`.
    - "compare": whether the first of two unknowns `by` is, as `comparison` says, above, below or equal to the second.

    Args:
        kind: One of these.
        by: The unknown that is compared, or counted for each target; for "compare" two of them.
        of: Whether the "value" of `by` is compared, or the "count" of different ones for each target.
        comparison: For "compare", and for "list" with a `number`.
        number: How many `by` a target of "list" has, as `comparison` says.
        limit: The most targets of "order"; None for all.
        descending: Whether "order" begins with the greatest.

    Raises:
        PatternError: If the kind is none of these, or lacks what it needs.

    Example:
        >>> Operation("max", by=("height",)).to_dict()
        {'kind': 'max', 'by': ['height']}
    """

    kind: OperationKind
    by: tuple[str, ...] = ()
    of: Literal["value", "count"] = "value"
    comparison: Comparison | None = None
    number: int | None = None
    limit: int | None = None
    descending: bool = True

    def __post_init__(self) -> None:
        """Check that the kind has what it needs."""
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        if self.kind not in _KINDS:
            raise PatternError(f"Operation: 'kind' must be one of {list(_KINDS)}, but got {short(self.kind)}.")
        for name in self.by:
            _check_text("by", name)
        compares_number = self.kind == "list" and self.number is not None
        wanted = {"max": 1, "min": 1, "order": 1, "compare": 2}.get(self.kind, int(compares_number))
        if len(self.by) != wanted:
            raise PatternError(f"Operation: {self.kind!r} takes {wanted} unknowns in 'by', but got {list(self.by)}.")
        if self.of not in ("value", "count"):
            raise PatternError(f"Operation: 'of' must be 'value' or 'count', but got {short(self.of)}.")
        needs_comparison = self.kind == "compare" or compares_number
        if (self.comparison in _COMPARISONS) != needs_comparison or (self.comparison is None) == needs_comparison:
            wanted_one = f"one of {list(_COMPARISONS)}" if needs_comparison else "none"
            raise PatternError(
                f"Operation: {self.kind!r} takes as 'comparison' {wanted_one}, got {short(self.comparison)}."
            )
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name, least in (("number", 0), ("limit", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise PatternError(
                    f"Operation: {name!r} must be a whole number from {least} on, but got {short(value)}."
                )
        if self.number is not None and self.kind != "list":
            raise PatternError(f"Operation: only 'list' takes a 'number', but got one for {self.kind!r}.")
        if self.number == 0 and self.comparison in ("=", "<=", ">=", "<"):
            raise PatternError(
                "Operation: what has none of something matches no triple; say so by 'absent' triples instead."
            )
        if self.limit is not None and self.kind != "order":
            raise PatternError(f"Operation: only 'order' takes a 'limit', but got one for {self.kind!r}.")
        if not isinstance(self.descending, bool):
            raise PatternError(f"Operation: 'descending' must be true or false, but got {short(self.descending)}.")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that `from_dict` reads back; what is not said is left out."""
        data: dict[str, Any] = {"kind": self.kind} | ({"by": list(self.by)} if self.by else {})
        data |= {"of": "count"} if self.of == "count" else {}
        optional = {name: getattr(self, name) for name in ("comparison", "number", "limit")}
        data |= {name: value for name, value in optional.items() if value is not None}
        return data if self.descending else data | {"descending": False}

    @classmethod
    def from_dict(cls, data: object) -> Operation:
        """Read what `to_dict` wrote, or a person or model; a text is its kind.

        Raises:
            PatternError: If a key is unknown, or a value has the wrong shape.
        """
        if isinstance(data, str):
            data = {"kind": data}
        known = _known_keys("an operation", data, tuple(cls.__dataclass_fields__))
        by = known.get("by", [])
        if not isinstance(by, str | list | tuple):
            raise PatternError(f"Operation: 'by' must be a list of names, but got {short(by)}.")
        return cls(**{"kind": "", **known, "by": by})


def literal_value(value: Scalar) -> Value:
    """Return a literal read as a value.

    Raises:
        PatternError: If it is a number that no double holds, or none.
    """
    if isinstance(value, bool):
        return Value(str(value).lower(), truth=value)
    if isinstance(value, str):
        return read_value(value) or Value(value)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not abs(number) < float("inf"):
        raise PatternError("Condition: wanted a finite number of at most 308 digits, but got another one.")
    read = read_value(str(value)) if isinstance(value, int) else None
    return read or Value(str(value), number=number)


def _known_keys(what: str, data: object, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise PatternError(f"Pattern: {what} must be an object with the keys {list(keys)}, but got {short(data)}.")
    if strange := [key for key in data if key not in keys]:
        raise PatternError(f"Pattern: unknown keys {short(strange)} of {what}; known are {list(keys)}.")
    return data


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise PatternError(f"Pattern: {name!r} must name an unknown node, but got {short(value)}.")
