"""Hold the values of many names as arrays.

A condition then costs a few passes over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kg_retrievers.deadline import check_deadline
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.operations import Condition
from kg_retrievers.graph.values import DATES_HOLD, NUMBERS_HOLD, Value, unit_symbol

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

#: In place of a day if a name is no date.
NO_DAY = 0

#: After how many names the time that is left is looked at.
NAMES_AT_ONCE = 4096


class ValueColumns:
    """The values of the labels of a graph's entities, by id.

    Each is read when `read` is first asked for it.

    Safe to share between threads. Cost: some microseconds for each entity, once, and an array operation for each
    comparison. Long work ends at the deadline: see `kg_retrievers.deadline`.

    Args:
        graph: The graph.

    Attributes:
        numbers: The number in a label, NaN for none: float64 (entities).
        units: The position of its unit in `unit_symbols`, 0 for none: int32 (entities).
        first: The first day of the date in the label, as a proleptic Gregorian ordinal, `NO_DAY` for none: int32.
        last: The last day: int32.
        truths: 1 for true, 0 for false, -1 for neither: int8.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Begin without values."""
        size = len(graph.entities)
        self._graph = graph
        self.numbers = np.full(size, np.nan)
        self.units = np.zeros(size, np.int32)
        self.first, self.last = np.zeros(size, np.int32), np.zeros(size, np.int32)  # `NO_DAY`
        self.truths = np.full(size, -1, np.int8)
        self.unit_symbols = {"": 0}
        self._unread = np.ones(size, np.bool_)
        self._lock = LocalLock()

    def read(self, entities: Array) -> None:
        """Read the values of some entities that were not read before."""
        if not self._unread[entities].any():
            return
        with self._lock:
            new = distinct(entities[self._unread[entities]])
            for first in range(0, len(new), NAMES_AT_ONCE):
                check_deadline()
                some = new[first : first + NAMES_AT_ONCE]
                for entity in some[self._graph.names.with_digits(self._graph.labels[some])].tolist():
                    if (value := self._graph.entity_value(entity)) is not None:
                        self._write(entity, value)
                self._unread[some] = False

    def are_values(self, entities: Array) -> Array:
        """Return which of some entities that were read have values: bool, (n)."""
        numbers, dates = ~np.isnan(self.numbers[entities]), self.first[entities] != NO_DAY
        found: Array = numbers | dates | (self.truths[entities] >= 0)
        return found

    def _write(self, entity: int, value: Value) -> None:
        if value.number is not None:
            self.numbers[entity] = value.number
            self.units[entity] = self.unit_symbols.setdefault(unit_symbol(value.unit), len(self.unit_symbols))
        if value.first is not None and value.last is not None:
            self.first[entity], self.last[entity] = value.first.toordinal(), value.last.toordinal()
        if value.truth is not None:
            self.truths[entity] = value.truth

    def where(self, condition: Condition, entities: Array) -> Array:
        """Return which of some entities satisfy a condition: bool, (n).

        Conditions with "in" are excepted.
        """
        self.read(entities)
        match condition.operator:
            case "contains":
                return self._contain(str(condition.value).casefold(), entities)
            case "between":
                low, high = condition.literals
                return self._compared(entities, ">=", low) & self._compared(entities, "<=", high)
            case _:
                return self._compared(entities, condition.operator, condition.literals[0])

    def _contain(self, text: str, entities: Array) -> Array:
        graph = self._graph
        found = np.zeros(len(graph.entities), bool)
        for name, words in self._folded_names():
            if text in words:
                found[graph.name_entities(name)] = True
        return found[entities]

    def _folded_names(self) -> Iterator[tuple[int, str]]:
        """Yield the id of each name, and the name in small letters."""
        for name, words in enumerate(self._graph.names):
            if name % NAMES_AT_ONCE == 0:
                check_deadline()
            yield name, words.casefold()

    def _compared(self, entities: Array, comparison: Any, literal: Value) -> Array:
        """Return for which entities `holds` is true."""
        dates = self.first[entities] != NO_DAY if literal.first else np.zeros(len(entities), bool)
        numbers = ~dates & self._numbers_fit(entities, literal)
        found = np.zeros(len(entities), bool)
        if literal.first and literal.last:
            low, high = literal.first.toordinal(), literal.last.toordinal()
            found[dates] = DATES_HOLD[comparison](self.first[entities[dates]], self.last[entities[dates]], low, high)
        if literal.number is not None:
            found[numbers] = NUMBERS_HOLD[comparison](self.numbers[entities[numbers]], literal.number)
        if comparison in ("=", "!="):  # what is left is compared by its text
            rest = ~dates & ~numbers
            found[rest] = self._equal(entities[rest], literal) == (comparison == "=")
        return found

    def _equal(self, entities: Array, literal: Value) -> Array:
        """Return which entities equal a literal.

        They are compared as truth values, else by their labels. None with another unit is equal.
        """
        wanted = literal.text.strip().casefold()
        names = [name for name, words in self._folded_names() if words.strip() == wanted]
        equal: Array = np.isin(self._graph.labels[entities], names)
        if literal.number is not None:
            equal &= np.isnan(self.numbers[entities])
        if literal.truth is not None:
            truths = self.truths[entities]
            equal = np.where(truths >= 0, truths == literal.truth, equal)
        return equal

    def _numbers_fit(self, entities: Array, literal: Value) -> Array:
        """Return which entities say a number in a unit that does not differ."""
        present: Array = ~np.isnan(self.numbers[entities]) & (literal.number is not None)
        if symbol := unit_symbol(literal.unit):
            units = self.units[entities]
            present &= (units == 0) | (units == self.unit_symbols.get(symbol, -1))
        return present


def ranked_values(columns: ValueColumns, entities: Array) -> tuple[Array, Array]:
    """Return which entities can be ordered, and their keys of order.

    They are ordered as dates or numbers, whichever more of them are.

    Dates come by their first day, then by their last. Numbers count if they have the most frequent unit, of two the one
    that comes first, or no unit.

    Returns:
        bool, (n), and float64, (n, 2), of which the rows of the others say nothing.
    """
    columns.read(entities)
    dated, numbered = columns.first[entities] != NO_DAY, ~np.isnan(columns.numbers[entities])
    if dated.sum() > numbered.sum():
        return dated, np.stack([columns.first[entities], columns.last[entities]], axis=1).astype(np.float64)
    units = columns.units[entities]
    frequent = Counter(units[numbered & (units > 0)].tolist()).most_common(1)
    numbered &= np.isin(units, [0, *(unit for unit, _ in frequent)])
    return numbered, np.repeat(columns.numbers[entities][:, None], 2, axis=1)


def value_range(columns: ValueColumns, entities: Array) -> tuple[int, int] | None:
    """Return which of some entities have the least and the greatest value.

    None unless most of them have values.

    Stops reading when half of them have none, so that few names of a relation without values are read.
    """
    ids, without = distinct(entities), 0
    for first in range(0, len(ids), NAMES_AT_ONCE):
        some = ids[first : first + NAMES_AT_ONCE]
        columns.read(some)
        without += int((~columns.are_values(some)).sum())
        if 2 * without >= len(ids):
            return None
    ranked, keys = ranked_values(columns, ids)
    if 2 * ranked.sum() <= len(ids):
        return None
    ids, keys = ids[ranked], keys[ranked]
    order = np.lexsort((ids, keys[:, 1], keys[:, 0]))
    return int(ids[order[0]]), int(ids[order[-1]])
