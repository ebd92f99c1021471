"""The operation of a pattern: its result, by one rule for every backend.

How an operation is carried out, in this order:

1. `carried_out` refuses names and relations that the graph lacks, and turns triples that can only be meant the other
   way round.
2. `allowed_entities` turns conditions and absent triples into the entities that unknowns may be.
3. `PatternJoin` or a database finds all bindings of the unknowns that the operation names (`bound_by`). For "compare"
   it finds the bindings of each side, by the part of the pattern around it (`part_of`).
4. `operation_result` computes the value, the answers, and the targets on which they rest.
5. The matcher or the database shows the facts of the first `SHOWN` of these targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, Pattern, Term, Unknown
from kg_retrievers.graph.columns import Array, are_first, distinct
from kg_retrievers.graph.operations import Operation, Period
from kg_retrievers.graph.pattern import FactAttribute
from kg_retrievers.graph.value_columns import NO_DAY, ranked_values
from kg_retrievers.graph.values import NUMBERS_HOLD, Comparison, Value, holds


def part_of(pattern: Pattern, name: str) -> Pattern:
    """Return the part of a pattern that is joined to an unknown, which becomes its target, without an operation.

    Example:
        >>> pattern = Pattern.of(("Eiger", "height", Unknown("a")), ("Jungfrau", "height", Unknown("b")))
        >>> part_of(pattern, "b").to_dict()
        {'triples': [['Jungfrau', 'height', {'unknown': 'b'}]], 'target': 'b'}
    """
    reached: set[Term] = {node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name}
    reached |= {pattern.triples[one.triple].head for one in pattern.attributes if one.unknown == name}
    before = 0
    while len(reached) > before:
        before = len(reached)
        reached |= {node for h, _, t in pattern.triples if reached & {h, t} for node in (h, t)}
    unknown = {node for node in reached if isinstance(node, Unknown)}
    absent = [group for group in pattern.absent_groups() if unknown & _ends(group)]
    inside = reached | {node for group in absent for node in _ends(group)}
    names = {node.name for node in inside if isinstance(node, Unknown)}
    names |= {one.unknown for one in pattern.attributes if pattern.triples[one.triple].head in reached}
    return replace(
        pattern,
        triples=tuple(triple for triple in pattern.triples if triple.head in reached),
        attributes=_of_triples(pattern, [triple.head in reached for triple in pattern.triples]),
        target=name,
        different=tuple(pair for pair in pattern.different if reached >= {*pair}),
        absent=tuple(triple for group in absent for triple in group),
        conditions=tuple(condition for condition in pattern.conditions if condition.unknown in names),
        operation=None,
    )


def _of_triples(pattern: Pattern, kept: Sequence[bool]) -> tuple[FactAttribute, ...]:
    """Return the attributes of the triples that are kept, with their new numbers."""
    numbers = list(accumulate(kept, initial=0))
    return tuple(replace(one, triple=numbers[one.triple]) for one in pattern.attributes if kept[one.triple])


def _ends(group: Iterable[tuple[Term, Term, Term]]) -> set[Term]:
    return {node for head, _, tail in group for node in (head, tail)}


#: Of how many targets the facts are shown.
SHOWN = 20

#: How many of those that rest behind the greatest are kept as evidence: the runner-up.
RUNNERS_UP = 1


class OperationResult(NamedTuple):
    """The result of an operation.

    Attributes:
        value: A number, a truth value, a table, or the values by which the answers were chosen; None where nothing can
            be said.
        answers: The ids of the entities that answer, the best first.
        support: The ids of the targets whose facts the result rests on, the answers first.
        details: "without_value", how many targets were left out because they have no value to compare; "unit", that of
            a number; "tied", how many answers tie with the last one that was asked for.
    """

    value: Any
    answers: list[int]
    support: list[int]
    details: Mapping[str, Any] = MappingProxyType({})

    def shown_details(self, *, truncated: bool = False) -> dict[str, Any]:
        """Return the number of targets whose facts are shown, and the further details of the result."""
        shown = {"shown": min(SHOWN, len(self.support)), "of": len(self.support)}
        return {**shown, **self.details, **({"at_least": True} if truncated else {})}


def bound_by(pattern: Pattern) -> dict[str, str]:
    """Return the unknowns of which an operation needs the bindings, by the purpose of each.

    They are its "target", "by" and "grouped". A table has a "target" and further unknowns, "by" to "by7".

    Example:
        >>> pattern = Pattern.of((Unknown("port"), "in", Unknown("land")), target="port", operation="count")
        >>> bound_by(pattern), bound_by(replace(pattern, operation=Operation("count", group="land")))
        ({'target': 'port'}, {'target': 'port', 'grouped': 'land'})
    """
    operation = pattern.operation
    assert operation
    if operation.kind == "table":
        return dict(zip(("target", "by", *(f"by{at}" for at in range(2, 8))), operation.by, strict=False))
    named = {"target": pattern.target} | ({"grouped": operation.group} if operation.group else {})
    if operation.by and operation.kind != "share":
        named = {"target": pattern.target, "by": operation.by[0], **named}
    return {column: str(name) for column, name in named.items()}


def whole_of(pattern: Pattern) -> Pattern:
    """Return the pattern of all things of which the targets of "share" are a part."""
    operation = pattern.operation
    assert operation
    kept = tuple(one for one in pattern.conditions if one.unknown not in operation.by)
    if isinstance(operation.whole, int):
        own = tuple(one for one in pattern.attributes if one.triple < operation.whole)
        none: dict[str, Any] = {"conditions": (), "absent": (), "different": (), "operation": None}
        first = replace(pattern, triples=pattern.triples[: operation.whole], attributes=own, **none)
        named = {node.name for node in first.nodes if isinstance(node, Unknown)} | {one.unknown for one in own}
        return replace(first, conditions=tuple(one for one in kept if one.unknown in named))
    if operation.by:
        return replace(pattern, conditions=kept)
    (target,) = (node for node in pattern.nodes if isinstance(node, Unknown) and node.name == pattern.target)
    whole = Unknown(target.name, operation.whole or target.type)
    return Pattern(alone=(whole,), target=target.name, typed=True, operation=Operation("list"))


def operation_result(
    pattern: Pattern, rows: Array, graph: KnowledgeGraph, whole: Array | None = None
) -> OperationResult:
    """Return the result of an operation, except "exists", "compare" and operations about whole entities.

    Args:
        pattern: The pattern, with an operation.
        rows: The ids of what the unknowns of `bound_by` are together, each row once; (rows, unknowns).
        graph: Gives the labels and their values.
        whole: For "share", the ids of the entities of which the targets are a part.
    """
    operation = pattern.operation
    assert operation
    if operation.kind == "table":
        return _table(operation, rows, graph)
    details = dict[str, Any]()
    if operation.by and operation.of == "value" and operation.kind != "share":
        rows, details = _with_values(rows, graph)
    if operation.group:
        return _grouped(pattern, rows, graph, details)
    result = _ungrouped(operation, rows, graph, whole)
    return result._replace(details={**details, **result.details})


def _ungrouped(operation: Operation, rows: Array, graph: KnowledgeGraph, whole: Array | None = None) -> OperationResult:
    targets = distinct(rows[:, 0])
    match operation.kind:
        case "count":
            return OperationResult(len(targets), [], targets.tolist())
        case "share":
            assert whole is not None
            if not len(whole):
                return OperationResult(None, [], [])
            share = 100 * len(targets) / len(whole)
            return OperationResult(
                _plain(share), [], targets.tolist(), {"unit": "%", "part": [len(targets), len(whole)]}
            )
        case "sum" | "mean" | "range":
            return OperationResult(_aggregate(operation, rows, graph), [], targets.tolist())
        case _ if operation.by:
            return _chosen(operation, rows, graph)
        case _:
            return OperationResult(None, targets.tolist(), targets.tolist())


def _with_values(rows: Array, graph: KnowledgeGraph) -> tuple[Array, dict[str, Any]]:
    """Return the rows whose second column has a value that compares with the others, and what is to be said of it."""
    columns = graph.lazy_values
    entities, at = np.unique(rows[:, 1], return_inverse=True)
    kept = ranked_values(columns, entities)[0][at]
    without = _count_without(rows, kept)
    units = distinct(columns.units[rows[kept, 1]]).tolist()
    symbols = {number: symbol for symbol, number in columns.unit_symbols.items()}
    unit = symbols[units[-1]] if units and not _are_dates(rows[kept, 1], graph) else ""
    return rows[kept], {**({"without_value": without} if without else {}), **({"unit": unit} if unit else {})}


def _count_without(rows: Array, kept: Array) -> int:
    """Return how many targets are in none of the rows that are kept."""
    return len(np.setdiff1d(distinct(rows[~kept, 0]), distinct(rows[kept, 0]), assume_unique=True))


def _are_dates(entities: Array, graph: KnowledgeGraph) -> bool:
    return bool(len(entities)) and bool(np.isnan(graph.lazy_values.numbers[entities]).any())


def _aggregate(operation: Operation, rows: Array, graph: KnowledgeGraph) -> Any:
    """Return the sum, the mean or the range of values or counts; None where there are none."""
    if operation.of == "value" and operation.kind == "range":
        entities = distinct(rows[:, 1])
        _, keys = ranked_values(graph.lazy_values, entities)
        order = np.lexsort((entities, keys[:, 1], keys[:, 0]))
        return [plain_value(graph, int(entities[at])) for at in (order[0], order[-1])] if len(order) else None
    if operation.of == "count":
        numbers = np.unique(rows[:, 0], return_counts=True)[1].astype(np.float64)
    else:
        numbers = graph.lazy_values.numbers[rows[:, 1]]
    if not len(numbers) or np.isnan(numbers).any():
        return None  # nothing, or dates
    if operation.kind == "range":
        return [_plain(numbers.min()), _plain(numbers.max())]
    total = math.fsum(numbers.tolist())  # the same in any order
    return _plain(total if operation.kind == "sum" else total / len(numbers))


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _chosen(operation: Operation, rows: Array, graph: KnowledgeGraph) -> OperationResult:
    """Return the targets that an operation with one `by` chooses."""
    descending = operation.descending if operation.kind in ("order", "list") else operation.kind == "max"
    sign = -1 if descending else 1
    if operation.of == "count" or operation.kind == "list":
        targets, counts = np.unique(rows[:, 0], return_counts=True)
        keys, shown = np.stack([counts, counts], axis=1), counts
    else:
        entities, at = np.unique(rows[:, 1], return_inverse=True)
        keys = ranked_values(graph.lazy_values, entities)[1][at]
        order = np.lexsort((rows[:, 1], sign * keys[:, 1], sign * keys[:, 0], rows[:, 0]))
        order = order[are_first(rows[order, 0])]
        targets, keys, shown = rows[order, 0], keys[order], rows[order, 1]
    if operation.kind == "list":
        assert operation.comparison is not None
        kept = NUMBERS_HOLD[operation.comparison](shown, operation.number)
        return OperationResult(shown[kept].tolist() or None, targets[kept].tolist(), targets[kept].tolist())
    order = np.lexsort((targets, sign * keys[:, 1], sign * keys[:, 0]))
    targets, keys, shown = targets[order], keys[order], shown[order]

    def told(first: int, last: int) -> list[Any]:
        some = shown[first:last].tolist()
        return some if operation.of == "count" else [plain_value(graph, entity) for entity in some]

    if operation.kind == "order":
        first, last, tied = _places(keys, operation)
        answers = targets[first:last].tolist()
        return OperationResult(told(first, last) or None, answers, answers, {"tied": tied} if tied else {})
    best = int((keys == keys[:1]).all(axis=1).sum())
    value = told(0, 1)[0] if best else None
    return OperationResult(value, targets[:best].tolist(), targets[: best + RUNNERS_UP].tolist())


def _places(keys: Array, operation: Operation) -> tuple[int, int, int]:
    """Return where the targets of "order" begin and end, those that tie included, and how many tie with the last."""
    first, last = operation.offset, len(keys)
    if operation.limit is not None:
        last = min(operation.offset + operation.limit, last)
    if first >= last:
        return 0, 0, 0
    same_as_first = np.flatnonzero((keys == keys[first]).all(axis=1))
    same_as_last = np.flatnonzero((keys == keys[last - 1]).all(axis=1))
    end = int(same_as_last[-1]) + 1
    return int(same_as_first[0]), end, end - last + first - int(same_as_first[0])


def _grouped(pattern: Pattern, rows: Array, graph: KnowledgeGraph, details: Mapping[str, Any]) -> OperationResult:
    """Return a table with a row for each group; a date that spans two periods is in none."""
    operation, groups = pattern.operation, rows[:, -1]
    assert operation
    period = operation.period
    if period and len(rows):
        columns = graph.lazy_values
        columns.read(groups)
        first, last = (_periods(days[groups], period) for days in (columns.first, columns.last))
        kept = (columns.first[groups] != NO_DAY) & (first == last)
        without = _count_without(rows, kept)
        details = {**details, **({"without_value": without} if without else {})}
        groups, rows = first[kept], rows[kept]
    if not len(rows):
        return OperationResult(None, [], [], details)
    rows = np.unique(np.column_stack([groups, rows[:, :-1]]), axis=0)
    groups, starts = np.unique(rows[:, 0], return_index=True)
    table = [
        (group, [period_name(group, period) if period else graph_label(graph, group), *cells])
        for group, some in zip(groups.tolist(), np.split(rows[:, 1:], starts[1:]), strict=True)
        if (cells := _cells(operation, some, graph))
    ]
    table = table if period else _in_order(table, operation, graph)
    value = {"columns": _titles(operation, str(pattern.target)), "rows": [row for _, row in table]} if table else None
    answers = [] if period else [group for group, _ in table]
    return OperationResult(value, answers, distinct(rows[:, 1]).tolist(), details)


def _in_order(
    table: list[tuple[int, list[Any]]], operation: Operation, graph: KnowledgeGraph
) -> list[tuple[int, list[Any]]]:
    """Return the rows of groups in order: by dates or numbers, else the greatest value first, else by name."""
    ids = np.array([group for group, _ in table], np.int64)
    ranked, keys = ranked_values(graph.lazy_values, ids)
    if len(ids) and ranked.all():
        return [table[at] for at in np.lexsort((ids, keys[:, 1], keys[:, 0])).tolist()]
    if operation.kind in ("list", "range"):
        return sorted(table, key=lambda row: (row[1][0], row[0]))
    return sorted(table, key=lambda row: (-_number(row[1][-1]), row[1][0], row[0]))


def _titles(operation: Operation, target: str) -> list[str]:
    names = [target] if operation.kind in ("list", "max", "min") else []
    return [str(operation.group), *names, *([] if operation.kind == "list" else [operation.kind])]


def _cells(operation: Operation, rows: Array, graph: KnowledgeGraph) -> list[Any]:
    """Return the cells of a table's row after the name of the group; none if there is nothing to say."""
    one = _ungrouped(replace(operation, group=None, period=None), rows, graph)
    named = [[graph_label(graph, entity) for entity in one.answers]] if one.answers else []
    return [*named, *([] if operation.kind == "list" or (one.value is None and not named) else [one.value])]


def _periods(days: Array, period: Period) -> Array:
    """Return the numbers of the periods in which days are, given as proleptic Gregorian ordinals; int64."""
    if period == "day":
        return days.astype(np.int64)
    dates = np.datetime64("0001-01-01", "D") + (days.astype(np.int64) - 1)
    months: Array = dates.astype("datetime64[M]").astype(np.int64) + 12 * 1970
    years = months // 12
    return {"month": months, "year": years, "decade": years // 10, "century": (years - 1) // 100}[period]


def period_name(number: int, period: Period) -> str:
    """Return the name of a period.

    Args:
        number: The ordinal of a day, the months since the year 0, or a year. The 2020s are decade 202, the 21st century
            is century 20.
        period: What it numbers.

    Example:
        >>> period_name(24_312, "month"), period_name(202, "decade"), period_name(20, "century")
        ('2026-01', '2020s', '21st century')
    """
    match period:
        case "day":
            return date.fromordinal(number).isoformat()
        case "month":
            return f"{number // 12}-{number % 12 + 1:02}"
        case "decade":
            return f"{number}0s"
        case "century":
            return f"{number + 1}{_ENDINGS.get(number % 10, 'th') if number // 10 != 1 else 'th'} century"
        case _:
            return str(number)


#: Of ordinals, by the last digit of the number before.
_ENDINGS = {0: "st", 1: "nd", 2: "rd"}


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _table(operation: Operation, rows: Array, graph: KnowledgeGraph) -> OperationResult:
    """Return what some unknowns are together, as a table."""
    rows = np.unique(rows, axis=0)
    cells = [[plain_value(graph, entity) for entity in row] for row in rows.tolist()]
    answers = list(dict.fromkeys(rows.T.ravel().tolist()))
    value = {"columns": [*operation.by], "rows": cells} if cells else None
    return OperationResult(value, answers, distinct(rows[:, 0]).tolist())


def graph_label(graph: KnowledgeGraph, entity: int) -> str:
    """Return the label of an entity, given by its id."""
    return graph.names[int(graph.labels[entity])]


def plain_value(graph: KnowledgeGraph, entity: int) -> int | float | bool | str:
    """Return the label of an entity as a JSON value if it states one, otherwise the label."""
    value = graph.entity_value(entity)
    return graph_label(graph, entity) if value is None else value.plain


def compared(
    operation: Operation, sides: Sequence[Iterable[int]], graph: KnowledgeGraph
) -> tuple[bool | None, list[int]]:
    """Return whether a comparison of two unknowns holds, and its basis, or None if that is not certain.

    By "=" and "!=", sides without any values are compared as entities: they are equal if they are the same ones, and
    unequal if they share none.

    Args:
        operation: "compare".
        sides: What each of the two unknowns is.
        graph: Gives the labels.
    """
    one, other = (sorted(set(side)) for side in sides)
    comparison: Comparison = operation.comparison or "="
    if operation.of == "count":
        return holds(Value("", number=len(one)), comparison, Value("", number=len(other))), [*one, *other]
    known = [[(id, value) for id in side if (value := graph.entity_value(id)) is not None] for side in (one, other)]
    if one and other and comparison in ("=", "!=") and not known[0] and not known[1]:
        certain = one == other or set(one).isdisjoint(other)
        return ((one == other) == (comparison == "="), [*one, *other]) if certain else (None, [])
    if not known[0] or not known[1]:
        return None, []
    pairs = [(left, right) for left in known[0] for right in known[1]]
    truth = all(holds(left[1], comparison, right[1]) for left, right in pairs)
    opposite = _OPPOSITE[comparison]
    if not truth and not all(holds(left[1], opposite, right[1]) for left, right in pairs):
        return None, []  # dates that are not whole, units that differ, several values
    return truth, [entity for side in known for entity, _ in side]


_OPPOSITE: dict[Comparison, Comparison] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
