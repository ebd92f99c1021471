"""Personalised PageRank against a dense solution of its equation."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph

Facts = list[tuple[int, int, int]]


def graph_of(facts: Facts, entities: int) -> KnowledgeGraph:
    """A graph with entities "0" ... in the order of their first fact; those without facts come last."""
    return KnowledgeGraph.from_triples(
        [(str(head), f"r{relation}", str(tail)) for head, relation, tail in facts],
        labels={str(entity): str(entity) for entity in range(entities)},
    )


def transitions(graph: KnowledgeGraph, seeds: list[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The start and the transition matrix of the walk, from the triples alone."""
    size = len(graph.entities)
    start, matrix = np.zeros(size), np.zeros((size, size))
    start[seeds] = 1 / len(set(seeds))
    for triple in graph.triples():
        head, tail = graph.entities.find(triple.head), graph.entities.find(triple.tail)
        matrix[head, tail] += 1
        matrix[tail, head] += 1
    degrees = matrix.sum(1)
    matrix[degrees > 0] /= degrees[degrees > 0, None]
    matrix[degrees == 0] = start
    return start, matrix


def exact(graph: KnowledgeGraph, seeds: list[int], restart: float) -> np.ndarray[Any, Any]:
    """The stationary distribution by a dense solver."""
    start, matrix = transitions(graph, seeds)
    solved: np.ndarray[Any, Any] = np.linalg.solve(np.eye(len(start)) - (1 - restart) * matrix.T, restart * start)
    return solved


@st.composite
def cases(draw: st.DrawFn) -> tuple[KnowledgeGraph, list[int], float, float]:
    entities = draw(st.integers(1, 7))
    entity = st.integers(0, entities - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=14))
    seeds = draw(st.lists(entity, min_size=1, max_size=4))
    restart = draw(st.sampled_from((0.05, 0.2, 0.5, 0.85)))
    return graph_of(facts, entities), seeds, restart, draw(st.sampled_from((0.5, 1e-2, 1e-5, 1e-9)))


@given(cases())
@settings(max_examples=300)
def test_errors_stay_within_their_bounds(case: tuple[KnowledgeGraph, list[int], float, float]) -> None:
    graph, seeds, restart, tolerance = case
    wanted = exact(graph, seeds, restart)
    power = personalized_pagerank(graph.adjacency, seeds, restart=restart, tolerance=tolerance)
    assert power.dtype == np.float64
    assert power.shape == (len(graph.entities),)
    assert power.min() >= 0
    assert power.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(power - wanted).sum() <= tolerance + 1e-12


def test_a_star_by_hand() -> None:
    """Hub h with n leaves, seed h: h = restart + (1 - restart) * leaves and h + leaves = 1."""
    graph = graph_of([(0, 0, leaf) for leaf in range(1, 11)], 11)
    found = personalized_pagerank(graph.adjacency, [0], restart=0.5, tolerance=1e-12)
    assert found == pytest.approx([2 / 3] + [1 / 30] * 10)


def test_parallel_triples_count_each_and_a_self_loop_twice() -> None:
    graph = graph_of([(0, 0, 1), (0, 1, 1), (2, 0, 0), (0, 0, 0)], 3)
    start, matrix = transitions(graph, [0])
    assert matrix[0].tolist() == [2 / 5, 2 / 5, 1 / 5]
    found = personalized_pagerank(graph.adjacency, [0], restart=0.3, tolerance=1e-12)
    assert found == pytest.approx(0.3 * start + 0.7 * found @ matrix)
    assert found[1] == pytest.approx(2 * found[2])


def test_an_isolated_seed_sends_everything_back() -> None:
    graph = graph_of([(0, 0, 1)], 4)
    alone = personalized_pagerank(graph.adjacency, [2])
    assert alone.tolist() == [0, 0, 1, 0]
    assert personalized_pagerank(graph.adjacency, [3, 2]).tolist() == [0, 0, 0.5, 0.5]
    mixed = personalized_pagerank(graph.adjacency, [0, 2], tolerance=1e-12)
    assert mixed == pytest.approx(exact(graph, [0, 2], 0.2))


def test_other_components_have_nothing() -> None:
    graph = graph_of([(0, 0, 1), (2, 0, 3)], 4)
    assert personalized_pagerank(graph.adjacency, [0])[2:].tolist() == [0, 0]


def test_power_agrees_with_networkx_on_a_simple_graph() -> None:
    facts = [(a, 0, b) for a, b in nx.karate_club_graph().edges]
    graph = graph_of(facts, 34)
    wanted = nx.pagerank(nx.Graph(graph.to_networkx().to_undirected()), 0.8, {"0": 1.0}, tol=1e-12, weight=None)
    found = personalized_pagerank(graph.adjacency, [graph.entities.find("0")], tolerance=1e-12)
    assert found == pytest.approx([wanted[key] for key in graph.entities], abs=1e-9)


@pytest.mark.parametrize("restart", [0.01, 0.2, 0.999])
def test_power_ends_where_only_rounding_is_left(restart: float) -> None:
    """Self-loops, parallel triples, cycles of odd length and a chain that is numbered from its far end."""
    chain = [(node + 1, 0, node) for node in reversed(range(30))]
    graph = graph_of([*chain, (3, 0, 3), (30, 0, 30), (4, 0, 6), (7, 1, 8), (0, 1, 0)], 31)
    for seeds in ([0], [30], [5, 17]):
        found = personalized_pagerank(graph.adjacency, seeds, restart=restart, tolerance=1e-300)
        assert np.abs(found - exact(graph, seeds, restart)).sum() < 1e-12
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1, abs=1e-14)


def test_equal_results_however_it_is_asked(tmp_path: Path) -> None:
    graph = graph_of([(a, a % 3, b) for a, b in nx.karate_club_graph().edges], 34)
    first = personalized_pagerank(graph.adjacency, [3, 30]).tolist()
    assert personalized_pagerank(graph.adjacency, np.array([30, 3, 3], np.int32)).tolist() == first
    graph.save(tmp_path / "graph")
    opened = KnowledgeGraph.open(tmp_path / "graph")
    assert personalized_pagerank(opened.adjacency, (30, 3)).tolist() == first
    with ThreadPoolExecutor(4) as pool:
        many: Iterator[list[float]] = pool.map(
            lambda _: personalized_pagerank(graph.adjacency, [3, 30]).tolist(), range(16)
        )
        assert all(found == first for found in many)


@pytest.mark.parametrize(
    ("seeds", "fields", "message"),
    [
        ([], {}, "one or more"),
        ([[0]], {}, "one or more"),
        (0, {}, "one or more"),
        ([2], {}, "2 entities.*got \\[2\\]"),
        ([0, -1], {}, "-1 where there is none"),
        ([0.5], {}, "ids"),
        (["0"], {}, "ids"),
        ([0], {"restart": 0.0}, "restart"),
        ([0], {"restart": 1.0}, "restart"),
        ([0], {"restart": 1e-17}, "restart"),
        ([0], {"restart": float("nan")}, "restart"),
        ([0], {"tolerance": 0.0}, "tolerance"),
        ([0], {"tolerance": float("inf")}, "tolerance"),
    ],
)
def test_wrong_arguments_are_refused(seeds: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"personalized_pagerank: .*{message}"):
        personalized_pagerank(graph_of([(0, 0, 1)], 2).adjacency, seeds, **fields)


def test_a_loose_tolerance_gives_a_distribution() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("a", "r", "c")])
    found = personalized_pagerank(graph.adjacency, [0], tolerance=5.0)
    assert found.sum() == pytest.approx(1)
