"""The attributes of facts that a pattern asks for, or limits by conditions.

Their values are unknowns of the pattern without an entity. `ValueIds` gives them ids behind the ids of the entities, so
that the rows of bindings and `operation_result` hold both alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from kg_retrievers.core.documents import is_table
from kg_retrievers.errors import LowConfidenceError, did_you_mean, listed
from kg_retrievers.graph import KnowledgeGraph, Pattern
from kg_retrievers.graph.attributes import AttributeValue
from kg_retrievers.graph.building import NONE, GraphBuilder, TextIds
from kg_retrievers.graph.columns import Array, distinct, entries_between
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.graph.pattern import FactAttribute
from kg_retrievers.graph.values import Value, holds, read_value
from kg_retrievers.questions.operations import OperationResult, compared, operation_result, plain_value


class ValueIds:
    """The ids of the values of attributes: those behind the entities of a graph.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Begin without values."""
        self.graph, self._texts = graph, TextIds()

    def id_of(self, text: str) -> int:
        """Return the id of a value, given as `value_texts` writes it."""
        return len(self.graph.entities) + self._texts[text]

    @property
    def texts(self) -> list[str]:
        """The values by their ids, less the number of entities."""
        return [*self._texts]


class NamedIds:
    """The meanings of some ids: entities in their order, and behind them values, by their texts.

    Args:
        values: The ids of values.
        ids: Ids of entities and values, of any shape.

    Attributes:
        ids: Each of them once, in this order.
        has_values: Whether values are among them.
    """

    def __init__(self, values: ValueIds, ids: Array) -> None:
        """Put them in order."""
        self._graph, self._texts = values.graph, values.texts
        found = distinct(ids.ravel())
        count = int(np.searchsorted(found, len(self._graph.entities)))
        by_text = sorted(found[count:].tolist(), key=lambda id: self._texts[id - len(self._graph.entities)])
        self.ids, self.has_values = np.array([*found[:count], *by_text], np.int64), bool(by_text)
        self._sorted = np.argsort(self.ids)

    def places(self, ids: Array) -> Array:
        """Return the places of ids in `self.ids`."""
        found: Array = self._sorted[np.searchsorted(self.ids, ids, sorter=self._sorted)]
        return found

    @cached_property
    def names(self) -> KnowledgeGraph:
        """A graph whose entities are called so, in this order."""
        graph, size, builder = self._graph, len(self._graph.entities), GraphBuilder()
        builder.text_relations["text"] = None
        for id in self.ids.tolist():
            key = str(id)
            builder.labels[key] = graph.names[int(graph.labels[id])] if id < size else self._texts[id - size]
            is_text = id < size and graph.entity_value(id) is None  # nor is it a value here
            builder.add(key, "text" if is_text else "value", key)
        return KnowledgeGraph._from_builder(builder)


def value_texts(value: AttributeValue) -> list[str]:
    """Return a value of an attribute, or each of a list, as the label of an entity would say it.

    Example:
        >>> value_texts(1999), value_texts(["Neo", True])
        (['1999'], ['Neo', 'true'])
    """
    several = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in several]


def _satisfies(text: str, condition: Condition) -> bool:
    """Return whether a value satisfies a condition, as an entity with this label does."""
    match condition.operator:
        case "contains":
            return str(condition.value).casefold() in text.casefold()
        case "in":
            assert isinstance(condition.value, tuple)
            return text.casefold() in {str(one).casefold() for one in condition.value}
        case "between":
            low, high = condition.literals
            return _compared(text, ">=", low) and _compared(text, "<=", high)
        case _:
            return _compared(text, condition.operator, condition.literals[0])


def _compared(text: str, comparison: Any, literal: Value) -> bool:
    return holds(read_value(text) or Value(text), comparison, literal)


def check_attributes(graph: KnowledgeGraph, pattern: Pattern) -> None:
    """Check that facts of a graph have the attributes that a pattern names.

    Raises:
        LowConfidenceError: If one of them is not among those of the graph; the nearest are `nearest`.
    """
    for name in dict.fromkeys(one.name for one in pattern.attributes):
        if name not in graph.attribute_names:
            near = did_you_mean(name, graph.attribute_names)
            raise LowConfidenceError(
                f"The pattern names the attribute {name!r}, which no fact has{f'; {near}' if near else '.'} "
                f"Attributes: {listed(graph.attribute_names) or 'none'}.",
                0.0,
                [name],
                graph.attribute_names[:3],
                hint_python="Name one of `graph.attribute_names`.",
                hint_shell="`info` lists the attributes.",
            )


def attributed(pattern: Pattern) -> list[int]:
    """Return the numbers of the triples of whose facts a pattern names attributes, ascending."""
    return sorted({one.triple for one in pattern.attributes})


def values_of_rows(
    pattern: Pattern, ids: ValueIds, columns: Mapping[str | int, Array], wanted: Sequence[str], *, facts: bool
) -> Array:
    """Return the joint values of some unknowns in rows of entities and facts: int64 (rows, wanted), each row once.

    Args:
        pattern: The pattern, with attributes.
        ids: Gives the values their ids.
        columns: As of `with_attributes`.
        wanted: The names of the unknowns.
        facts: Whether the ids of the facts of all triples follow, of which `columns` has those.
    """
    found = with_attributes(pattern, ids, columns)
    kept: list[str | int] = [*wanted, *(range(len(pattern.triples)) if facts else ())]
    if not kept:
        return np.zeros((min(len(found[pattern.attributes[0].triple]), 1), 0), np.int64)
    rows = np.stack([found[name] for name in kept], axis=1)
    return np.unique(rows[(rows != NONE).all(axis=1)], axis=0)


def with_attributes(pattern: Pattern, ids: ValueIds, columns: Mapping[str | int, Array]) -> Mapping[str | int, Array]:
    """Return rows with the values of attributes: one for each combination that satisfies the conditions.

    Args:
        pattern: The pattern.
        ids: Gives the values their ids.
        columns: Columns of the rows: the ids of facts by the numbers of their triples, and others by name.

    Returns:
        The columns, with one for each unknown of the attributes, `NONE` for an optional one that a fact lacks.
    """
    found = dict(columns)
    for number in attributed(pattern):
        own = [one for one in pattern.attributes if one.triple == number]
        choices = _Choices(ids, own, pattern.conditions)
        triples, at = np.unique(found[number], return_inverse=True)
        options = [choices.of_fact(triple) for triple in triples.tolist()]
        counts = np.array([len(some) for some in options], np.int64)
        after = np.cumsum(counts)
        entries, rows = entries_between((after - counts)[at], after[at])
        flat = np.array([one for some in options for one in some], np.int64).reshape(-1, len(choices.names))
        chosen = flat[entries]
        values = dict(zip(choices.names, chosen.T, strict=True))
        fits = np.ones(len(rows), bool)
        for name in values.keys() & found.keys():
            one, other = found[name][rows], values[name]
            fits &= (one == other) | (one == NONE) | (other == NONE)
            values[name] = np.where(other == NONE, one, other)
        before = {name: column[rows] for name, column in found.items()}
        found = {name: column[fits] for name, column in (before | values).items()}
    return found


class _Choices:
    """The values that the attributes of one triple may have together.

    Attributes:
        names: Their unknowns.
    """

    def __init__(self, ids: ValueIds, attributes: Sequence[FactAttribute], conditions: Sequence[Condition]) -> None:
        self._ids, self._attributes, self._conditions = ids, attributes, conditions
        self.names = list(dict.fromkeys(one.unknown for one in attributes))
        self._of_set: dict[int, list[tuple[int, ...]]] = {}

    def of_fact(self, triple: int) -> list[tuple[int, ...]]:
        """Return the ids of the values of each statement of a fact, each combination once."""
        graph = self._ids.graph
        sets = graph.attribute_set_ids(triple) or [NONE]
        for one in sets:
            if one not in self._of_set:
                attributes = graph.attribute_sets.read(one) if one != NONE else {}
                self._of_set[one] = list(self._of_attributes(attributes))
        return list(dict.fromkeys(choice for one in sets for choice in self._of_set[one]))

    def _of_attributes(self, attributes: Mapping[str, AttributeValue]) -> Iterator[tuple[int, ...]]:
        for values in product(*(self._values(one, attributes) for one in self._attributes)):
            found: dict[str, int] = {}
            pairs = zip(self._attributes, values, strict=True)
            if all(value == NONE or found.setdefault(one.unknown, value) == value for one, value in pairs):
                yield tuple(found.get(name, NONE) for name in self.names)

    def _values(self, attribute: FactAttribute, attributes: Mapping[str, AttributeValue]) -> list[int]:
        if attribute.name not in attributes:
            return [NONE] if attribute.optional else []
        own = [one for one in self._conditions if one.unknown == attribute.unknown]
        texts = value_texts(attributes[attribute.name])
        return [self._ids.id_of(text) for text in texts if all(_satisfies(text, one) for one in own)]


def result_with_values(pattern: Pattern, rows: Array, ids: ValueIds, whole: Array | None = None) -> OperationResult:
    """Return what `operation_result` gives for rows of entities and values. Values are its value, never answers.

    Args:
        pattern: The pattern, with an operation.
        rows: As of `operation_result`.
        ids: The ids of the values.
        whole: As of `operation_result`.
    """
    named = NamedIds(ids, rows if whole is None else np.append(rows, whole))
    if not named.has_values:
        return operation_result(pattern, rows, ids.graph, whole)
    found, names = named.ids, named.names
    result = operation_result(pattern, named.places(rows), names, None if whole is None else named.places(whole))
    answers, support = found[result.answers].tolist(), found[result.support].tolist()
    value = result.value
    if pattern.target in pattern.attribute_unknowns and answers and not is_table(value):
        told = [plain_value(names, one) for one in result.answers]
        value = told[0] if len(told) == 1 else told
    entities = [one for one in answers if one < len(ids.graph.entities)]
    return result._replace(value=value, answers=entities, support=support)


def compared_with_values(
    operation: Operation, sides: Sequence[Sequence[int]], ids: ValueIds
) -> tuple[bool | None, list[int]]:
    """Return what `compared` gives for sides of entities or values."""
    named = NamedIds(ids, np.array([id for side in sides for id in side], np.int64))
    if not named.has_values:
        return compared(operation, sides, ids.graph)
    truth, support = compared(operation, [named.places(np.array(side)).tolist() for side in sides], named.names)
    return truth, named.ids[support].tolist()
