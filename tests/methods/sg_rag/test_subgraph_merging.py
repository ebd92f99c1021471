"""Merging of overlapping subgraphs against brute force, and the breadth-first order by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.sg_rag.subgraphs import breadth_first, merge_overlapping

SUBGRAPHS = st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=4), max_size=7)


def overlap(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / len(one | other)


def slow(subgraphs: list[frozenset[int]], threshold: float) -> list[list[int]]:
    """The pair that overlaps most is merged; of equal ones that of the lowest numbers, where merged ones count on."""
    groups = {number: ([number], held) for number, held in enumerate(subgraphs)}
    while True:
        pairs = [
            (-overlap(groups[a][1], groups[b][1]), a, b)
            for a in groups
            for b in groups
            if a < b and groups[a][1] & groups[b][1]
        ]
        best = min(pairs, default=(0.0, 0, 0))
        if -best[0] < threshold or not pairs:
            return sorted(sorted(numbers) for numbers, _ in groups.values())
        (one, held), (other, more) = groups.pop(best[1]), groups.pop(best[2])
        groups[len(subgraphs) + len(one) + len(other) + max(groups, default=0)] = (one + other, held | more)


@given(SUBGRAPHS, st.sampled_from([0.2, 0.5, 0.75, 1.0]))
@settings(max_examples=150, deadline=None)
def test_no_group_is_left_that_overlaps_enough(subgraphs: list[frozenset[int]], threshold: float) -> None:
    groups = merge_overlapping(subgraphs, threshold)
    assert sorted(number for group in groups for number in group) == list(range(len(subgraphs)))
    held = [frozenset().union(*(subgraphs[number] for number in group)) for group in groups]
    assert all(overlap(one, other) < threshold for i, one in enumerate(held) for other in held[:i] if one & other)


@given(SUBGRAPHS, st.sampled_from([0.2, 0.5, 0.75, 1.0]))
@settings(max_examples=150, deadline=None)
def test_as_many_groups_as_brute_force_where_the_order_does_not_matter(
    subgraphs: list[frozenset[int]], threshold: float
) -> None:
    overlaps = [overlap(one, other) for i, one in enumerate(subgraphs) for other in subgraphs[:i]]
    if len(set(overlaps)) == len(overlaps):
        assert merge_overlapping(subgraphs, threshold) == slow(subgraphs, threshold)


def test_merging_by_hand() -> None:
    rows = [{"a", "x"}, {"a", "y"}, {"b", "z"}, {"a", "x"}]
    assert merge_overlapping(rows, 1.0) == [[0, 3], [1], [2]]
    assert merge_overlapping(rows, 1 / 3) == [[0, 1, 3], [2]]
    assert merge_overlapping([], 0.5) == []


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01])
def test_thresholds_out_of_range(threshold: float) -> None:
    with pytest.raises(InvalidArgumentError, match="threshold"):
        merge_overlapping([{"a"}], threshold)


def test_breadth_first_by_hand() -> None:
    walk = [Triple("c", "r", "d"), Triple("b", "r", "c"), Triple("b", "r", "a"), Triple("x", "r", "x")]
    assert breadth_first([*walk, walk[0]], ["a", "nowhere"]) == [walk[2], walk[1], walk[0], walk[3]]
    assert breadth_first(walk, []) == [walk[0], walk[1], walk[2], walk[3]]
    assert breadth_first([], ["a"]) == []
