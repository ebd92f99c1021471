"""The walk that prefers relations, against a walk that enumerates its paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.methods.g_retriever.prizes import walk_triples

Facts = list[tuple[int, int, int]]


class Case(NamedTuple):
    facts: Facts
    seeds: list[int]
    weights: list[float]
    hops: int
    entities: int


def walk(
    facts: Sequence[tuple[int, int, int]], seeds: Sequence[int], weights: Sequence[float], hops: int, entities: int = 9
) -> list[float]:
    """The walk over facts [(head, relation, tail), ...]."""
    heads, relations, tails = np.array(facts, np.int32).reshape(-1, 3).T
    taken = walk_triples(
        heads, relations, tails, np.array(seeds, np.int64), np.array(weights), hops=hops, entities=entities
    )
    assert taken.dtype == np.float64
    assert taken.shape == (len(facts),)
    result: list[float] = taken.tolist()
    return result


def enumerated(case: Case) -> list[float]:
    """How often each triple is taken, path by path."""
    taken = [0.0] * len(case.facts)

    def go(here: int, chance: float, came: tuple[int, int] | None, left: int) -> None:
        ways: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for number, (head, relation, tail) in enumerate(case.facts):
            if head == here:
                ways[relation, 0].append((number, tail))
            if tail == here:
                ways[relation, 1].append((number, head))
        total = sum(case.weights[relation] for relation, _ in ways)
        for (relation, direction), triples in ways.items():
            each = chance * case.weights[relation] / total / len(triples)
            for number, there in triples:
                if came == (number, 1 - direction):
                    continue  # straight back: lost
                taken[number] += each
                if left > 1:
                    go(there, each, (number, direction), left - 1)

    for seed in set(case.seeds):
        if case.hops:
            go(seed, 1 / len(set(case.seeds)), None, case.hops)
    return taken


@st.composite
def cases(draw: st.DrawFn) -> Case:
    entities, relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    entity = st.integers(0, entities - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, relations - 1), entity), max_size=7))
    seeds = draw(st.lists(entity, max_size=3))
    weight = st.sampled_from((1.0, 0.25, 1 / 9, 1e-4, 7.0))
    return Case(facts, seeds, [draw(weight) for _ in range(relations)], draw(st.integers(0, 4)), entities)


@given(cases())
@settings(max_examples=300)
def test_it_agrees_with_an_enumeration_of_paths(case: Case) -> None:
    found = walk(*case)
    assert found == pytest.approx(enumerated(case), abs=1e-12)
    assert min(found, default=0) >= 0
    assert sum(found) <= case.hops + 1e-9
