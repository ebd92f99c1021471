"""Handle the properties of nodes and relationships.

A query returns them in a form, and a graph reads them in a role.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, cast, get_args

from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked, quoted, unread
from kg_retrievers.graph import GraphBuilder, Pattern, Triple
from kg_retrievers.graph.attributes import INEXACT, SOURCE, AttributeCondition, attribute_set
from kg_retrievers.graph.operations import Condition
from kg_retrievers.graph.readers.frameworks.attributes import titled
from kg_retrievers.graph.values import Comparison

#: The types of numbers that Python and LadybugDB compare alike.
_NUMBER = re.compile(r"U?INT(8|16|32|64)|SERIAL|DOUBLE")

_COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)

#: The types of dates and of lists of dates.
_DATES = ("DATE", "DATE[]", "LIST<DATE>")


def properties_of(name: str, properties: Iterable[Mapping[str, str]], dialect: Dialect) -> str:
    """Return the expression for the properties of the variable `name`.

    Properties that no graph holds are left out.

    Its value is a map, or a list of pairs: `dict` reads both.

    Args:
        name: The variable of a node or relationship.
        properties: The properties that it may have, and their types, by its labels or types.
        dialect: The Cypher.
    """
    left_out = sorted({one for some in properties for one in unread(some)})
    if dialect == "ladybug":  # which fails at a map without entries
        kept = [one for some in properties for one in some if one not in left_out]
        return pairs_of(name, kept, dialect) if kept else "NULL"
    if not left_out:
        return f"properties({name})"
    names = ", ".join(map(quoted, left_out))
    return f"[one IN keys({name}) WHERE NOT one IN [{names}] | [one, {name}[one]]]"


def pairs_of(name: str, properties: Iterable[str], dialect: Dialect) -> str:
    """Return the expression for some properties of the variable `name`.

    Its value is a map, or a list of pairs.
    """
    if dialect == "ladybug":
        return f"{{{', '.join(f'{backticked(one)}: {name}.{backticked(one)}' for one in properties)}}}"
    return f"[{', '.join(f'[{quoted(one)}, {name}.{backticked(one)}]' for one in properties)}]"


def attribute_names(schema: DatabaseSchema) -> list[str]:
    """Return the names of the attributes of facts, sorted.

    These are the attributes that the schema knows.
    """
    names = {name for one in schema.relations for name in {*one.properties}.difference(unread(one.properties))}
    return sorted({SOURCE if name == "sources" else name for name in names})


def conditions_on(
    name: str, wanted: Sequence[AttributeCondition], properties: Mapping[str, str], dialect: Dialect, first: int = 0
) -> list[str] | None:
    """Return the conditions of a query on a relationship.

    None if no relationship can satisfy them.

    Every relationship that is wanted satisfies them, and perhaps others do: no Cypher reads the dates in texts.

    Args:
        name: The variable of the relationship.
        wanted: The conditions on its attributes. The query takes `parameters_of` them.
        properties: The properties that it may have, and their types.
        dialect: The Cypher.
        first: The number of the first condition in the names of parameters.
    """
    found = list[str]()
    for place, one in enumerate(wanted, first):
        held, type = f"{name}.{backticked(one.name)}", properties.get(one.name, "")
        texts, numbers, days = _tests(held, place, one)
        if one.name == SOURCE:  # it may be in "sources"
            continue
        if dialect == "ladybug":
            test = texts if type == "STRING" else days if type == "DATE" else numbers if _NUMBER.fullmatch(type) else ""
            if not type and not one.absent:
                return None
            if not one.absent:
                found.append(test or f"{held} IS NOT NULL")
            elif type and test and type != "DOUBLE":  # NaN is no value
                found.append(f"{held} IS NULL OR {test}" + (f" OR {held} = ''" if type == "STRING" else ""))
            continue
        rest = "true" if one.absent else f"{held} IS NOT NULL"  # such as lists, whose values are not looked at
        cases = f" WHEN {held} > '' THEN {texts}" if texts else ""  # holds of texts alone
        cases += f" WHEN {held} >= 0 OR {held} < 0 THEN {numbers}" if numbers else ""
        cases += f" WHEN {held} > date('0001-01-01') THEN {days}" if days and type == "DATE" else ""
        found.append(f"CASE{cases} ELSE {rest} END" if cases else rest)
    return [f"({one})" for one in found]


def conditions_of(pattern: Pattern, triple: int) -> list[AttributeCondition]:
    """Return the conditions on facts of a triple of a pattern.

    They cover as much as a database can tell, and other facts may satisfy them, too.

    Args:
        pattern: The pattern.
        triple: The number of the triple, from 0.
    """
    found = list[AttributeCondition]()
    for one in pattern.attributes:
        if one.triple == triple and not one.optional:
            limits: dict[Any, tuple[Comparison, float | date]] = {}
            for comparison, limit in _limits(pattern.conditions, one.unknown):
                limits.setdefault((comparison, isinstance(limit, date)), (comparison, limit))
            found.append(AttributeCondition(one.name, bool, absent=False, limits=tuple(limits.values())))
    return found


def _limits(conditions: Iterable[Condition], unknown: str) -> Iterator[tuple[Comparison, float | date]]:
    """Yield the condition on each number, and on each date, for an unknown."""
    for one in conditions:
        if one.unknown != unknown or one.operator in ("!=", "contains", "in"):
            continue
        operators = (">=", "<=") if one.operator == "between" else (one.operator,)
        for operator, literal in zip(operators, one.literals, strict=True):
            if literal.number is not None and abs(literal.number) < INEXACT:
                yield cast("Comparison", operator), literal.number
            if literal.first and literal.last:
                at_least, at_most = (">=", literal.first), ("<=", literal.last)
                days: dict[str, Any] = {"=": [at_least, at_most], ">=": [at_least], "<=": [at_most]}
                yield from days.get(operator, [(operator, literal.last if operator == ">" else literal.first)])


def _tests(held: str, place: int, wanted: AttributeCondition) -> tuple[str, str, str]:
    """Return the tests of a text, a number and a date.

    Each is empty if any may satisfy the condition.
    """
    texts, numbers, days = list[str](), list[str](), list[str]()
    if wanted.among is not None:
        texts.append(f"({held} IN $texts{place} OR {held} STARTS WITH '[')")  # a list, perhaps
        numbers.append(f"{held} IN $numbers{place}")
    for comparison, limit in wanted.limits:
        if isinstance(limit, date):
            days.append(f"{held} {comparison} date('{limit.isoformat()}')")
        else:
            numbers.append(f"{held} {comparison} $limit{place}_{_COMPARISONS.index(comparison)}")
    return " AND ".join(texts), " AND ".join(numbers), " AND ".join(days)


def parameters_of(wanted: Sequence[AttributeCondition], first: int = 0) -> dict[str, Any]:
    """Return the parameters of `conditions_on`."""
    used: dict[str, Any] = {}
    for place, one in enumerate(wanted, first):
        for kind, name in ((str, "texts"), (float, "numbers")):
            used[f"{name}{place}"] = [value for value in one.among or () if isinstance(value, kind)]
        numbers = ((comparison, limit) for comparison, limit in one.limits if not isinstance(limit, date))
        used |= {f"limit{place}_{_COMPARISONS.index(comparison)}": limit for comparison, limit in numbers}
    return used


def node_attributes(
    said: Mapping[str, Any], label: NodeLabel, labels: Collection[str], schema: DatabaseSchema
) -> dict[str, Any]:
    """Return the properties of a node for an `AttributeReader`.

    The form is the form of the attributes of a node of a file.

    Args:
        said: The properties.
        label: The label by which the node has its key, which is no attribute.
        labels: All its labels.
        schema: The property that holds labels, and whether one holds types.
    """
    key = said.get(label.key)
    is_key = {label.key, *(name for name in schema.keys if said.get(name) == key)}  # perhaps by another label, too
    read = {name: _read(value, label.properties.get(name)) for name, value in said.items() if name not in is_key}
    called = read.get(schema.label) if schema.label else None
    if called not in (None, ""):
        read = {name: value for name, value in read.items() if name != schema.label} | {"label": called}
    read = titled(read)
    return read if schema.types is not None else read | {"types": sorted(labels)}


def _read(value: Any, type: str | None) -> Any:
    """Return a value, a date as such."""
    with suppress(ValueError, TypeError):
        if type in _DATES and value is not None:
            return [*map(date.fromisoformat, value)] if isinstance(value, list) else date.fromisoformat(value)
    return value


class Recorder(GraphBuilder):
    """Keeps the statements of an `AttributeReader` on each fact.

    Attributes:
        said: The sets of attributes of each fact, as `attribute_set` writes them.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.said: dict[Triple, set[str]] = {}

    def add(self, head: str, relation: str, tail: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Keep a fact."""
        self.said.setdefault(Triple(head, relation, tail), set()).add(attribute_set(attributes or {}))
