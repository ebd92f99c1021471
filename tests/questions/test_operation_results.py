"""What a comparison of things without values gives."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import KnowledgeGraph
from kg_retrievers.graph.operations import Operation
from kg_retrievers.questions.operations import compared

GRAPH = KnowledgeGraph.from_triples([("Ann", "owns", "Bob"), ("Cleo", "owns", "12"), ("Ann", "owns", "13")])
ANN, BOB, CLEO, TWELVE = (GRAPH.entities.find(key) for key in ("Ann", "Bob", "Cleo", "12"))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([ANN], [ANN], True),
        ([ANN, BOB], [BOB, ANN, ANN], True),
        ([ANN], [BOB, CLEO], False),
        ([ANN, BOB], [BOB], None),
        ([ANN, BOB], [BOB, CLEO], None),
        ([], [], None),
        ([ANN], [], None),
        ([ANN], [TWELVE], None),
        ([TWELVE], [TWELVE], True),
    ],
)
def test_equal_things(one: list[int], other: list[int], equal: bool | None) -> None:
    comparisons: Any = {"=": equal, "!=": None if equal is None else not equal}
    for comparison, truth in comparisons.items():
        found, support = compared(Operation("compare", ("a", "b"), comparison=comparison), [one, other], GRAPH)
        assert found is truth
        assert set(support) == (set() if truth is None else {*one, *other})


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">="])
def test_things_without_values_have_no_order(comparison: Any) -> None:
    assert compared(Operation("compare", ("a", "b"), comparison=comparison), [[ANN], [ANN]], GRAPH) == (None, [])
