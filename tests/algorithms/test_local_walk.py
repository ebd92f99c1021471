"""Walks around seeds against a dense solution of PageRank's equation, and breadth-first search by networkx."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms.local_walk import LEAST_TOLERANCE, triples_between, walk_around
from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.graph import Adjacency, KnowledgeGraph

Case = tuple[np.ndarray[Any, Any], int, list[int]]


def adjacency_of(edges: np.ndarray[Any, Any], size: int) -> Adjacency:
    return Adjacency.of_edges(edges.reshape(-1, 3).astype(np.int32), size)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Facts, the number of entities, and seeds that have facts."""
    size = draw(st.integers(1, 9))
    entity = st.integers(0, size - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), min_size=1, max_size=20))
    ends = sorted({end for head, _, tail in facts for end in (head, tail)})
    return np.unique(np.array(facts), axis=0), size, draw(st.lists(st.sampled_from(ends), min_size=1, max_size=3))


def hops_of(edges: np.ndarray[Any, Any], size: int, seeds: list[int]) -> dict[int, int]:
    graph: nx.Graph[int] = nx.Graph(edges[:, [0, 2]].tolist())
    graph.add_nodes_from(range(size))
    hops: dict[int, int] = nx.multi_source_dijkstra_path_length(graph, {*seeds})
    return hops


@given(cases(), st.integers(0, 4))
@settings(max_examples=200)
def test_few_entities_are_all_found(case: Case, max_hops: int) -> None:
    edges, size, seeds = case
    found = walk_around(adjacency_of(edges, size), np.unique(seeds), max_hops=max_hops, most=size, max_entries=0)
    within = {node: hop for node, hop in hops_of(edges, size, seeds).items() if hop <= max_hops}
    assert dict(zip(found.ids.tolist(), found.hops.tolist(), strict=True)) == within
    assert not found.pagerank.any()


@given(cases())
@settings(max_examples=200)
def test_pagerank_stays_within_its_bound(case: Case) -> None:
    edges, size, seeds = case
    adjacency, starts = adjacency_of(edges, size), np.unique(seeds)
    found = walk_around(adjacency, starts, max_hops=size, most=len(starts), max_entries=10**6)
    if len(found.ids) == len(starts):
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
    adjacency = adjacency_of(edges, size)
    found = walk_around(adjacency, starts, max_hops=max_hops, most=most, max_entries=max_entries)
    assert found.ids[: len(starts)].tolist() == starts.tolist()
    assert len({*found.ids.tolist()}) == len(found.ids)
    assert len(found.ids) >= min(most + 1, sum(hop <= max_hops for hop in hops.values()))
    for entity, hop in zip(found.ids.tolist(), found.hops.tolist(), strict=True):
        assert hops[entity] <= hop <= max_hops
    assert found.pagerank.min() >= 0
    assert found.pagerank.sum() <= 1 + 1e-12


def test_it_stops_where_entries_run_out() -> None:
    """Seed 0 with leaves 1 ... 5; leaf 5 has a hundred leaves of its own."""
    edges = [(0, 0, leaf) for leaf in range(1, 6)] + [(5, 0, leaf) for leaf in range(6, 106)]
    adjacency = adjacency_of(np.array(edges), 106)
    for max_entries, size in ((20, 6), (300, 106)):
        found = walk_around(adjacency, np.array([0]), max_hops=2, most=3, max_entries=max_entries)
        assert len(found.ids) == size


def test_a_seed_without_facts_stays() -> None:
    adjacency = adjacency_of(np.array([(0, 0, 1), (1, 0, 2), (2, 0, 3)]), 5)
    found = walk_around(adjacency, np.array([0, 4]), max_hops=3, most=2, max_entries=100)
    assert (found.ids.tolist(), found.hops.tolist()) == ([0, 4, 1, 2, 3], [0, 0, 1, 2, 3])
    assert np.isfinite(found.pagerank).all()


@given(cases(), st.data())
@settings(max_examples=200)
def test_triples_between_agree_with_a_look_at_each(case: Case, data: st.DataObject) -> None:
    edges, size, _ = case
    nodes = data.draw(st.lists(st.integers(0, size - 1), unique=True).map(sorted))
    found = triples_between(adjacency_of(edges, size), np.array(nodes, np.int64))
    assert found.dtype == np.int32
    assert found.tolist() == [id for id, (head, _, tail) in enumerate(edges.tolist()) if {head, tail} <= {*nodes}]


def test_what_is_found_does_not_depend_on_the_table() -> None:
    """Ids that all fall into the same place of a table of 128."""
    ids = [position << 19 for position in range(40)]
    edges = np.array([(ids[0], 0, other) for other in ids[1:]])
    adjacency = adjacency_of(edges, ids[-1] + 1)
    found = walk_around(adjacency, np.array([0]), max_hops=1, most=5, max_entries=10)
    assert sorted(found.ids.tolist()) == ids
    assert triples_between(adjacency, np.array(ids)).tolist() == list(range(39))


@pytest.mark.real
def test_it_finds_whom_pagerank_finds_on_metaqa(metaqa_graph: KnowledgeGraph) -> None:
    adjacency, topic = metaqa_graph.adjacency, metaqa_graph.entities.find("Black Snake Moan")
    exact = personalized_pagerank(adjacency, [topic], tolerance=1e-12)
    found = walk_around(adjacency, np.array([topic]), max_hops=10, most=2_000, max_entries=10**8)
    first = found.ids[np.argsort(-found.pagerank, kind="stable")[:2_000]]
    assert exact[first].sum() > 0.9999 * np.sort(exact)[-2_000:].sum()
