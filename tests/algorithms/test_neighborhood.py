"""PageRank, walks and neighbourhoods against dense solutions, networkx and a look at every triple."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms import neighborhood as cutting
from kg_retrievers.algorithms.local_walk import LEAST_TOLERANCE, triples_between, walk_around
from kg_retrievers.algorithms.neighborhood import CUT_TOLERANCE, Neighborhood, hops_from, neighborhood
from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency, KnowledgeGraph

Array = np.ndarray[Any, Any]
Facts = list[tuple[int, int, int]]
Case = tuple[Array, int, list[int]]


#: A chain 0 - 1 - 2 - 3 that points both ways, with a parallel triple, a self-loop, and 4 - 5 apart.
CHAIN: Facts = [(0, 0, 1), (2, 0, 1), (2, 1, 1), (2, 0, 3), (1, 0, 1), (4, 0, 5)]


def adjacency_of(facts: Facts | Array, size: int) -> Adjacency:
    return Adjacency.of_edges(np.array(facts, np.int32).reshape(-1, 3), size)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Facts, sorted and each once, the number of entities, and seeds."""
    size = draw(st.integers(1, 9))
    entity = st.integers(0, size - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=16))
    edges = np.unique(np.array(facts, np.int64).reshape(-1, 3), axis=0)
    return edges, size, draw(st.lists(entity, min_size=1, max_size=3))


def hops_of(edges: Array, size: int, seeds: list[int]) -> dict[int, int]:
    graph: nx.Graph[int] = nx.Graph(edges[:, [0, 2]].tolist())
    graph.add_nodes_from(range(size))
    hops: dict[int, int] = nx.multi_source_dijkstra_path_length(graph, {*seeds})
    return hops


# --- PageRank ---


def exact_pagerank(edges: Array, size: int, seeds: list[int], restart: float) -> Array:
    """The stationary distribution by a dense solver, from the triples alone."""
    start, matrix = np.zeros(size), np.zeros((size, size))
    start[seeds] = 1 / len(set(seeds))
    for head, _, tail in edges:
        matrix[head, tail] += 1
        matrix[tail, head] += 1
    degrees = matrix.sum(1)
    matrix[degrees > 0] /= degrees[degrees > 0, None]
    matrix[degrees == 0] = start
    solved: Array = np.linalg.solve(np.eye(size) - (1 - restart) * matrix.T, restart * start)
    return solved


@given(cases(), st.sampled_from((0.05, 0.2, 0.5, 0.85)), st.sampled_from((5.0, 0.5, 1e-2, 1e-5, 1e-9)))
@settings(max_examples=200)
def test_errors_of_pagerank_stay_within_their_bounds(case: Case, restart: float, tolerance: float) -> None:
    edges, size, seeds = case
    found = personalized_pagerank(adjacency_of(edges, size), seeds, restart=restart, tolerance=tolerance)
    assert found.dtype == np.float64
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(found - exact_pagerank(edges, size, seeds, restart)).sum() <= tolerance + 1e-12


@pytest.mark.parametrize("restart", [0.01, 0.2, 0.999])
def test_pagerank_ends_where_only_rounding_is_left(restart: float) -> None:
    """Self-loops, parallel triples, cycles of odd length and a chain that is numbered from its far end."""
    chain = [(node + 1, 0, node) for node in reversed(range(30))]
    facts = [*chain, (3, 0, 3), (30, 0, 30), (4, 0, 6), (7, 1, 8), (0, 1, 0)]
    for seeds in ([0], [30], [5, 17]):
        found = personalized_pagerank(adjacency_of(facts, 31), seeds, restart=restart, tolerance=1e-300)
        assert np.abs(found - exact_pagerank(np.array(facts), 31, seeds, restart)).sum() < 1e-12
        assert found.sum() == pytest.approx(1, abs=1e-14)


# --- walks ---


@given(cases(), st.integers(0, 4))
def test_few_entities_are_all_found(case: Case, max_hops: int) -> None:
    edges, size, seeds = case
    found = walk_around(adjacency_of(edges, size), np.unique(seeds), max_hops=max_hops, most=size, max_entries=0)
    within = {node: hop for node, hop in hops_of(edges, size, seeds).items() if hop <= max_hops}
    assert dict(zip(found.ids.tolist(), found.hops.tolist(), strict=True)) == within
    assert not found.pagerank.any()


@given(cases())
def test_pagerank_of_a_walk_stays_within_its_bound(case: Case) -> None:
    edges, size, _ = case
    adjacency, starts = adjacency_of(edges, size), np.unique(edges[:1, 0])  # a seed that has facts
    if not len(starts):
        return
    found = walk_around(adjacency, starts, max_hops=size, most=1, max_entries=10**6)
    if len(found.ids) == 1:
        return
    pagerank = np.zeros(size)
    pagerank[found.ids] = found.pagerank
    wanted = personalized_pagerank(adjacency, starts, tolerance=1e-13)
    assert np.all(wanted - pagerank >= -1e-12)
    assert np.all(wanted - pagerank <= 2 * LEAST_TOLERANCE * np.diff(adjacency.indptr) + 1e-12)


@given(cases(), st.integers(0, 4), st.sampled_from((0, 3, 10, 10**6)))
@settings(max_examples=200)
def test_a_limited_walk_finds_enough_within_its_hops(case: Case, max_hops: int, max_entries: int) -> None:
    edges, size, seeds = case
    starts, hops = np.unique(seeds), hops_of(edges, size, seeds)
    most = min(len(starts) + 1, size)
    found = walk_around(adjacency_of(edges, size), starts, max_hops=max_hops, most=most, max_entries=max_entries)
    assert found.ids[: len(starts)].tolist() == starts.tolist()
    assert len({*found.ids.tolist()}) == len(found.ids)
    assert len(found.ids) >= min(most + 1, sum(hop <= max_hops for hop in hops.values()))
    for entity, hop in zip(found.ids.tolist(), found.hops.tolist(), strict=True):
        assert hops[entity] <= hop <= max_hops
    assert found.pagerank.min() >= 0
    assert found.pagerank.sum() <= 1 + 1e-12


@given(cases(), st.data())
def test_triples_between_agree_with_a_look_at_each(case: Case, data: st.DataObject) -> None:
    edges, size, _ = case
    nodes = data.draw(st.lists(st.integers(0, size - 1), unique=True).map(sorted))
    found = triples_between(adjacency_of(edges, size), np.array(nodes, np.int64))
    assert found.dtype == np.int32
    assert found.tolist() == [id for id, (head, _, tail) in enumerate(edges.tolist()) if {head, tail} <= {*nodes}]


@pytest.mark.real
def test_a_walk_finds_whom_pagerank_finds_on_metaqa(metaqa_graph: KnowledgeGraph) -> None:
    adjacency, topic = metaqa_graph.adjacency, metaqa_graph.entities.find("Black Snake Moan")
    exact = personalized_pagerank(adjacency, [topic], tolerance=1e-12)
    found = walk_around(adjacency, np.array([topic]), max_hops=10, most=2_000, max_entries=10**8)
    first = found.ids[np.argsort(-found.pagerank, kind="stable")[:2_000]]
    assert exact[first].sum() > 0.9999 * np.sort(exact)[-2_000:].sum()


# --- neighbourhoods ---


def brute_force(edges: Array, size: int, seeds: list[int], max_hops: int | None, max_nodes: int | None) -> Neighborhood:
    hops = hops_of(edges, size, seeds)
    within = sorted(node for node, hop in hops.items() if max_hops is None or hop <= max_hops)
    pagerank = personalized_pagerank(adjacency_of(edges, size), seeds, tolerance=CUT_TOLERANCE)
    first = sorted(within, key=lambda node: (node not in seeds, -pagerank[node], node))
    kept = sorted(first[: None if max_nodes is None else max(max_nodes, len(set(seeds)))])
    triples = [number for number, (head, _, tail) in enumerate(edges.tolist()) if head in kept and tail in kept]
    arrays = (np.array(part, np.int32) for part in (kept, triples, [hops[node] for node in kept]))
    return Neighborhood(*arrays, len(kept) < len(within))


def plain(found: Neighborhood) -> tuple[list[int], list[int], list[int], bool]:
    assert found.nodes.dtype == found.triples.dtype == found.hops.dtype == np.int32
    return found.nodes.tolist(), found.triples.tolist(), found.hops.tolist(), found.truncated


@given(cases(), st.none() | st.integers(0, 4), st.none() | st.integers(1, 6), st.booleans())
@settings(max_examples=300)
def test_it_agrees_with_brute_force(case: Case, max_hops: int | None, max_nodes: int | None, is_large: bool) -> None:
    """On large graphs a walk cuts, which may keep other nodes and find longer ways."""
    edges, size, seeds = case
    exact = brute_force(edges, size, seeds, max_hops, max_nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "MAX_POWER_ENTRIES", -1 if is_large else 10**6)
        found = neighborhood(adjacency_of(edges, size), seeds, max_hops=max_hops, max_nodes=max_nodes)
    nodes, triples, hops, truncated = plain(found)
    if not is_large or not truncated:
        assert plain(found) == plain(exact)
    nearest = hops_of(edges, size, seeds)
    assert (len(nodes), truncated) == (len(exact.nodes), exact.truncated)
    assert {*seeds} <= {*nodes}
    assert nodes == sorted({*nodes})
    farthest = 99 if max_hops is None else max_hops
    assert all(nearest[node] <= hop <= farthest for node, hop in zip(nodes, hops, strict=True))
    assert triples == [at for at, (head, _, tail) in enumerate(edges.tolist()) if {head, tail} <= {*nodes}]


@pytest.mark.parametrize("seeds", [[], [[0]], 0, [7], [0, -1], [0.5], ["0"]])
def test_wrong_seeds_are_refused(seeds: Any) -> None:
    for ask in (neighborhood, personalized_pagerank, lambda *asked: hops_from(*asked, 1)):
        with pytest.raises(InvalidArgumentError, match=r"Seeds must be one or more ids of the graph's 7 entities"):
            ask(adjacency_of(CHAIN, 7), seeds)


@given(cases(), st.integers(0, 4) | st.just(10**12))
def test_hops_agree_with_networkx(case: Case, max_hops: int) -> None:
    edges, size, seeds = case
    found = hops_from(adjacency_of(edges, size), seeds, max_hops)
    within = {node: hop for node, hop in hops_of(edges, size, seeds).items() if hop <= max_hops}
    assert found.dtype == np.int32
    assert found.tolist() == [within.get(node, -1) for node in range(size)]
