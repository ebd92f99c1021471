"""Conditions and absent triples end at the deadline."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, Unknown
from kg_retrievers.deadline import deadline
from kg_retrievers.errors import BudgetError
from kg_retrievers.graph.operations import MAX_TEXTS, Condition
from kg_retrievers.graph.pattern import MAX_CONDITIONS
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.questions.possible_entities import allowed_entities

VALUES = 50_000
YEAR = Unknown("year")

#: The limit in seconds, and how many the thread may compute in all: others may keep the machine busy meanwhile.
LIMIT, TOLERANCE = 0.01, 1.5


@cache
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples([("all", "holds", f"{number} m") for number in range(VALUES)])


@cache
def index() -> GraphIndex:
    return GraphIndex.build(graph(), HashedEmbeddings(8))


def limited(conditions: list[Condition], absent: Any = ()) -> Pattern:
    return Pattern.of(("all", "holds", YEAR), target="year", conditions=conditions, absent=absent)


@pytest.mark.parametrize(
    "pattern",
    [
        limited([Condition("year", "contains", str(number)) for number in range(MAX_CONDITIONS)]),
        limited([Condition("year", "!=", f"no {number}") for number in range(MAX_CONDITIONS)]),
        limited([Condition("year", "in", [f"name {number}" for number in range(MAX_TEXTS)])]),
        limited([], absent=[(YEAR, "holds", f"{number}") for number in range(MAX_CONDITIONS)]),
    ],
    ids=["contains", "unequal", "in", "absent"],
)
def test_limit_on_time_holds(pattern: Pattern) -> None:
    held = index().graph.value_columns, index().nearest_entities(["all"], 1)  # what is read once
    assert held
    start = time.thread_time()
    with pytest.raises(BudgetError, match="too late"), deadline(LIMIT, lambda: BudgetError("too late")):
        allowed_entities(index(), pattern, directed=True)
    assert time.thread_time() - start < TOLERANCE


def test_limit_on_time_holds_while_values_are_read() -> None:
    everything = np.arange(len(graph().entities))
    start = time.thread_time()
    with pytest.raises(BudgetError, match="too late"), deadline(LIMIT, lambda: BudgetError("too late")):
        ValueColumns(graph()).read(everything)
    assert time.thread_time() - start < TOLERANCE


@pytest.mark.parametrize("condition", [Condition("x", "contains", "7"), Condition("x", "=", "none")])
def test_one_condition_ends_at_the_deadline(condition: Condition) -> None:
    columns, everything = graph().value_columns, np.arange(len(graph().entities))
    with pytest.raises(BudgetError, match="too late"), deadline(0, lambda: BudgetError("too late")):
        columns.where(condition, everything)
