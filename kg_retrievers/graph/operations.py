"""Define conditions and operations of patterns.

They go beyond a pattern's triples: conditions on its unknowns, and one operation on its results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from inspect import signature
from reprlib import Repr
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    StrictBool,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from kg_retrievers.errors import PatternError
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.values import Comparison, Value, read_value

#: The literal of a condition: a text, a number or a truth value.
Scalar: TypeAlias = str | int | float | bool

#: The comparison of an unknown with the literal of a condition.
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "between", "contains", "in"]

#: The request about the things found.
OperationKind: TypeAlias = Literal[
    "list", "count", "exists", "max", "min", "sum", "mean", "range", "order", "share", "table", "compare",
    "connect", "describe", "common", "differ", "overview",
]  # fmt: skip

#: A span of time by which dates are put together.
Period: TypeAlias = Literal["day", "month", "year", "decade", "century"]

#: Those about whole entities: they look at all facts around the nodes that stand alone.
AROUND = frozenset[OperationKind](["connect", "describe", "common", "differ", "overview"])

#: Those that give each group a result of its own.
GROUPED = frozenset[OperationKind](["list", "count", "max", "min", "sum", "mean", "range"])

#: How many unknowns `by` has: the least and the most. Kinds that are not here have none.
_BY: Mapping[OperationKind, tuple[int, int]] = {
    **dict.fromkeys(("max", "min", "order", "sum", "mean", "range"), (1, 1)),
    "compare": (2, 2),
    "share": (0, 1),
    "table": (2, 8),
}

#: The most facts of a chain that joins two entities.
MAX_CHAIN = 6

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


T = TypeVar("T")

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter[Any])


#: No key may be unknown.
CONFIG = ConfigDict(extra="forbid")


def raises_pattern_errors(kind: type[T]) -> type[T]:
    """Let the constructor of a class raise a `PatternError` in place of pydantic's error."""
    made: Callable[..., None] = kind.__init__

    @wraps(made)
    def init(self: T, *args: Any, **kwargs: Any) -> None:
        try:
            made(self, *args, **kwargs)
        except ValidationError as error:
            raise _pattern_error(kind, error) from None

    setattr(kind, "__init__", init)  # noqa: B010 # mypy forbids the plain assignment
    return kind


def _pattern_error(kind: type, error: ValidationError) -> PatternError:
    causes = [problem.get("ctx", {}).get("error") for problem in error.errors()]
    own = next((cause for cause in causes if isinstance(cause, PatternError)), None)
    told = reasons(error, names=[*signature(kind).parameters])
    is_list = hasattr(kind, "of") and isinstance(error.errors()[0]["input"], list | tuple)
    hint = "Give Pattern.of((head, relation, tail), ...)." if is_list else ""
    return own or PatternError(f"{kind.__name__}: {told}", hint_python=hint)


def _checked_name(name: str) -> str:
    if not name.strip():
        raise ValueError("must name an unknown node")
    return name


Name = Annotated[str, AfterValidator(_checked_name)]


class Written:
    """An object that is written as plain data, and read again."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that `from_dict` reads back.

        Fields with their defaults are left out.
        """
        data: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json", exclude_defaults=True)
        return data

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what `to_dict` wrote, or a person or model.

        Raises:
            PatternError: If a key is unknown or missing, or a value has the wrong shape.
        """
        try:
            read: Self = _adapter(cls).validate_python(dict(data) if isinstance(data, Mapping) else data)
        except ValidationError as error:
            raise _pattern_error(cls, error) from None
        return read


@raises_pattern_errors
@dataclass(frozen=True, config=CONFIG)
class Condition(Written):
    """The condition on an unknown node of a pattern.

    Args:
        unknown: The name of the unknown.
        operator: "=" to ">=" compare values as `kg_retrievers.graph.values` says. "between" includes both ends.
            "contains" looks for a text in its names, whatever their case. "in" says that it is one of some entities.
        value: A text, number or truth value. For "between" it is two of them, for "in" the names or keys of entities.

    Raises:
        PatternError: If there is no such operator, or the value does not fit it.

    Example:
        >>> Condition("year", "<", 1970).to_dict()
        {'unknown': 'year', 'operator': '<', 'value': 1970}
    """

    unknown: Name
    operator: Operator
    value: SkipValidation[Scalar | tuple[Scalar, ...]]

    def __post_init__(self) -> None:
        """Check that the value fits the operator."""
        if isinstance(self.value, list):
            object.__setattr__(self, "value", tuple(self.value))
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        wanted, least, most = "one text, number or truth value", 1, 1
        if self.operator == "between":
            wanted, least, most = "a list of two values", 2, 2
        elif self.operator == "in":
            wanted, least, most = f"a list of 1 ... {MAX_TEXTS} names", 1, MAX_TEXTS
        if isinstance(self.value, tuple) != (self.operator in ("between", "in")) or not least <= len(values) <= most:
            raise PatternError(f"Condition: {self.operator!r} takes {wanted}, but got {short(self.value)}.")
        for one in values:
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
        """The literals of the condition, read as values."""
        return tuple(map(literal_value, self.value if isinstance(self.value, tuple) else (self.value,)))


@raises_pattern_errors
@dataclass(frozen=True, config=CONFIG)
class Operation(Written):
    """The request about the things that a pattern finds.

    - "list": the targets themselves, as without an operation. With `comparison` and `number`, it is the targets that
      have so many `by`, such as in "at least two".
    - "count": how many different targets there are.
    - "exists": whether there is a match.
    - "max", "min": the targets with the greatest or least `by`.
    - "sum", "mean": of all different values of `by` of each target. "range": the least and the greatest of them.
    - "order": the targets by falling `by`, or by rising with `descending=False`. It gives the first `limit` after the
      first `offset`, and all that tie with the last one.
    - "share": how many percent of the entities of a type, or of the entities that fulfil the first triples, are
      targets. With `by`, only entities that have any `by` count, whether or not it satisfies its conditions.
    - "table": the combinations of some unknowns `by`, one row for each combination.
    - "compare": whether the first of two unknowns `by` is, as `comparison` says, above, below or equal to the second.

    The others are about entities that stand alone in the pattern, and all of their facts:

    - "connect": the shortest chains of facts that join them, at most `limit`, of at most `max_hops` facts. With a
      target: only chains through such a thing.
    - "describe": the facts of one entity, the most telling first, at most `limit`.
    - "common", "differ": the facts that two entities share, or the relations in which they differ.
    - "overview": the types of the graph with the number of their entities. With a target, it is the relations of its
      type.

    Args:
        kind: One of the kinds above.
        by: The unknowns that are compared, or counted for each target.
        of: Whether the "value" of `by` is taken, or the "count" of different ones for each target.
        comparison: For "compare", and for "list" with a `number`.
        number: How many `by` a target of "list" has, as `comparison` says.
        limit: The most targets, chains or facts. None for all targets, or the default number of chains or facts.
        descending: Whether "order" begins with the greatest.
        group: An unknown of which each entity has a result of its own. The value is then a table.
        period: The span of time by which dates of the group are put together: "year" has a result for each year.
        offset: How many targets "order" passes over: 1 for the second.
        max_hops: The most facts of a chain, from 1 to `MAX_CHAIN`.
        whole: For "share", the type of the entities of which the targets are a part, or how many of the first triples
            all of them fulfil. None for the type of the target.

    Raises:
        PatternError: If there is no such kind, or it lacks an unknown or a value that it needs.

    Example:
        >>> Operation("max", by=("height",)).to_dict()
        {'kind': 'max', 'by': ['height']}
    """

    kind: OperationKind
    by: Annotated[tuple[Name, ...], BeforeValidator(lambda by: (by,) if isinstance(by, str) else by)] = ()
    of: Literal["value", "count"] = "value"
    comparison: Comparison | None = None
    number: Annotated[StrictInt, Field(ge=0)] | None = None
    limit: Annotated[StrictInt, Field(ge=1)] | None = None
    descending: StrictBool = True
    group: Name | None = None
    period: Period | None = None
    offset: Annotated[StrictInt, Field(ge=0)] = 0
    max_hops: Annotated[StrictInt, Field(ge=1, le=MAX_CHAIN)] | None = None
    whole: Name | Annotated[StrictInt, Field(ge=1)] | None = None

    def __post_init__(self) -> None:
        """Check that the kind has all that it needs."""
        compares_number = self.kind == "list" and self.number is not None
        least, most = (1, 1) if compares_number else _BY.get(self.kind, (0, 0))
        if not least <= len(self.by) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise PatternError(f"Operation: {self.kind!r} takes {wanted} unknowns in 'by', but got {list(self.by)}.")
        needs_comparison = self.kind == "compare" or compares_number
        if (self.comparison is None) == needs_comparison:
            wanted_one = "a comparison, such as '>='" if needs_comparison else "no comparison"
            raise PatternError(f"Operation: {self.kind!r} takes {wanted_one}, but got {self.comparison!r}.")
        takers: Mapping[str, Collection[str]] = {
            "number": ("list",),
            "limit": ("order", "connect", "describe"),
            "offset": ("order",),
            "group": GROUPED,
            "max_hops": ("connect",),
            "whole": ("share",),
        }
        for name, kinds in takers.items():
            if getattr(self, name) != (0 if name == "offset" else None) and self.kind not in kinds:
                taker = ", ".join(map(repr, sorted(kinds)))
                raise PatternError(f"Operation: only {taker} takes a {name!r}, but got one for {self.kind!r}.")
        if self.period is not None and self.group is None:
            raise PatternError(f"Operation: the period {self.period!r} needs a 'group', an unknown that is a date.")
        if self.group is not None and compares_number:
            raise PatternError("Operation: 'list' takes a 'number' or a 'group', not both.")
        if self.number == 0 and self.comparison in ("=", "<=", ">=", "<"):
            raise PatternError(
                "Operation: what has none of something matches no triple; say so by 'absent' triples instead."
            )

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read the output of `to_dict`, or of a person or model.

        A text is its kind.

        Raises:
            PatternError: If a key is unknown, or a value has the wrong shape.
        """
        return super().from_dict({"kind": data} if isinstance(data, str) else data)


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
