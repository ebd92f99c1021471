"""The walk that prefers relations, against a walk that enumerates its paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.methods.g_retriever.relation_walk import walk_triples

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


@given(cases(), st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
@settings(max_examples=100)
def test_neither_the_order_of_facts_nor_the_scale_of_weights_counts(case: Case, random: Any, scale: float) -> None:
    order = list(range(len(case.facts)))
    random.shuffle(order)
    found = walk(*case)
    other = walk(
        *case._replace(facts=[case.facts[place] for place in order], weights=[scale * w for w in case.weights])
    )
    assert other == pytest.approx([found[place] for place in order], abs=1e-12)


@given(cases())
@settings(max_examples=100)
def test_a_longer_walk_takes_no_triple_less_often(case: Case) -> None:
    assert all(np.array(walk(*case._replace(hops=case.hops + 1))) >= walk(*case))


# --- by hand ---


def test_films_by_hand() -> None:
    """Her (0) directed_by Jonze (1), has_genre Drama (2); Adaptation (3) directed_by Jonze, written_by Kaufman (4).

    From Her, relation weights 1, 1/4, 1/9: the first step is 0.8 : 0.2; of the two films of Jonze one is where the walk
    came from; from Adaptation 0.9 would go straight back and 0.1 goes on.
    """
    facts = [(0, 0, 1), (0, 1, 2), (3, 0, 1), (3, 2, 4)]
    weights = [1, 1 / 4, 1 / 9]
    assert walk(facts, [0], weights, 1) == pytest.approx([0.8, 0.2, 0, 0])
    assert walk(facts, [0], weights, 2) == pytest.approx([0.8, 0.2, 0.4, 0])
    assert walk(facts, [0], weights, 3) == pytest.approx([0.8, 0.2, 0.4, 0.04])
    assert walk(facts, [0], weights, 9) == pytest.approx([0.8, 0.2, 0.4, 0.04])  # every end is dead


def test_a_hub_shares_what_its_relation_gets() -> None:
    """A hundred triples of one relation get as much as the one of another."""
    facts = [(0, 0, leaf) for leaf in range(1, 101)] + [(0, 1, 101)]
    assert walk(facts, [0], [1, 1], 1, 102) == pytest.approx([0.005] * 100 + [0.5])


def test_directions_of_a_relation_are_two_ways() -> None:
    """A person directed by two, and who directed one, is left by each direction alike."""
    assert walk([(0, 0, 1), (0, 0, 2), (3, 0, 0)], [0], [1], 1) == pytest.approx([0.25, 0.25, 0.5])


def test_parallel_triples_are_ways_back() -> None:
    """By "written by" one may return from where "directed by" led, but by the same triple never."""
    assert walk([(0, 0, 1), (0, 1, 1)], [0], [1, 1], 1) == pytest.approx([0.5, 0.5])
    assert walk([(0, 0, 1), (0, 1, 1)], [0], [1, 1], 2) == pytest.approx([0.75, 0.75])
    assert walk([(0, 0, 1), (0, 0, 1)], [0], [1], 2) == pytest.approx([0.75, 0.75])  # the same fact twice
    assert walk([(0, 0, 1), (1, 0, 0)], [0], [1], 1) == pytest.approx([0.5, 0.5])


def test_a_loop_is_left_by_both_its_ends() -> None:
    """Forwards and then forwards again is no way back."""
    assert walk([(0, 0, 0)], [0], [1], 1) == pytest.approx([1])
    assert walk([(0, 0, 0)], [0], [1], 2) == pytest.approx([1.5])
    assert walk([(0, 0, 0), (0, 1, 1)], [0], [1, 2], 1) == pytest.approx([0.5, 0.5])


def test_seeds_share_the_start() -> None:
    line = [(0, 0, 1), (1, 0, 2), (2, 0, 3)]
    assert walk(line, [0, 3], [1], 1) == pytest.approx([0.5, 0, 0.5])
    assert walk(line, [0, 3, 3], [1], 1) == walk(line, [3, 0], [1], 1)
    assert walk(line, [0, 8], [1], 1) == pytest.approx([0.5, 0, 0])  # the share of a lonely seed is lost
    assert walk(line, [8], [1], 3) == [0, 0, 0]
    assert walk(line, [], [1], 3) == [0, 0, 0]


def test_nothing_to_walk() -> None:
    assert walk([], [0], [1], 3) == []
    assert walk([], [], [], 3, 0) == []
    assert walk([(0, 0, 1)], [0], [1], 0) == [0]


def test_far_ends_are_still_taken() -> None:
    """A prize may be small, but not so small that it vanishes."""
    chain = [(place, place % 2, place + 1) for place in range(40)]
    taken = walk(chain, [0], [1, 1e-4], 40, 41)
    assert taken[0] == 1
    assert all(earlier > later > 0 for earlier, later in pairwise(taken))
