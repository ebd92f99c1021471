"""Neighbourhoods against breadth-first search by networkx and a look at every triple."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms.local_walk import NearEntities, walk_around
from kg_retrievers.algorithms.neighborhood import (
    CUT_TOLERANCE,
    MIN_ENTRIES,
    Neighborhood,
    hops_from,
    neighborhood,
)
from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency, KnowledgeGraph

Facts = list[tuple[int, int, int]]


def graph_of(facts: Facts, entities: int) -> KnowledgeGraph:
    """A graph in which entity i is written "i" and numbered i."""
    everything = [(str(e), "padding", str(e)) for e in range(entities)]
    graph = KnowledgeGraph.from_triples(everything + [(str(h), f"r{r}", str(t)) for h, r, t in facts])
    return graph.with_changes(removed=everything, types={str(e): [] for e in range(entities)})


def ends(graph: KnowledgeGraph) -> list[tuple[int, int]]:
    """Head and tail of each triple."""
    return [(graph.entities.find(triple.head), graph.entities.find(triple.tail)) for triple in graph.triples()]


def brute_force(graph: KnowledgeGraph, seeds: list[int], max_hops: int | None, max_nodes: int | None) -> Neighborhood:
    undirected = nx.MultiGraph()
    undirected.add_nodes_from(range(len(graph.entities)))
    undirected.add_edges_from(ends(graph))
    hops = nx.multi_source_dijkstra_path_length(undirected, set(seeds))
    within = sorted(node for node, hop in hops.items() if max_hops is None or hop <= max_hops)
    pagerank = personalized_pagerank(graph.adjacency, seeds, tolerance=CUT_TOLERANCE)
    first = sorted(within, key=lambda node: (node not in seeds, -pagerank[node], node))
    kept = sorted(first[: None if max_nodes is None else max(max_nodes, len(set(seeds)))])
    triples = [number for number, (head, tail) in enumerate(ends(graph)) if head in kept and tail in kept]
    arrays = (np.array(part, np.int32) for part in (kept, triples, [hops[node] for node in kept]))
    return Neighborhood(*arrays, len(kept) < len(within))


def plain(found: Neighborhood) -> tuple[list[int], list[int], list[int], bool]:
    assert found.nodes.dtype == found.triples.dtype == found.hops.dtype == np.int32
    assert isinstance(found.truncated, bool)
    return found.nodes.tolist(), found.triples.tolist(), found.hops.tolist(), found.truncated


@st.composite
def cases(draw: st.DrawFn) -> tuple[KnowledgeGraph, list[int], int | None, int | None]:
    entities = draw(st.integers(1, 9))
    entity = st.integers(0, entities - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=16))
    seeds = draw(st.lists(entity, min_size=1, max_size=3))
    max_hops, max_nodes = draw(st.none() | st.integers(0, 4)), draw(st.none() | st.integers(1, 6))
    return graph_of(facts, entities), seeds, max_hops, max_nodes


@given(cases())
@settings(max_examples=300)
def test_it_agrees_with_brute_force(case: tuple[KnowledgeGraph, list[int], int | None, int | None]) -> None:
    graph, seeds, max_hops, max_nodes = case
    found = neighborhood(graph.adjacency, seeds, max_hops=max_hops, max_nodes=max_nodes)
    assert plain(found) == plain(brute_force(graph, seeds, max_hops, max_nodes))


#: A chain 0 - 1 - 2 - 3 that points both ways, with a parallel triple, a self-loop, and 4 - 5 apart.
CHAIN: Facts = [(0, 0, 1), (2, 0, 1), (2, 1, 1), (2, 0, 3), (1, 0, 1), (4, 0, 5)]


@pytest.mark.parametrize(
    ("seeds", "max_hops", "nodes", "triples", "hops"),
    [
        ([0], 0, [0], [], [0]),
        ([0], 1, [0, 1], [0, 1], [0, 1]),
        ([0], 2, [0, 1, 2], [0, 1, 2, 4], [0, 1, 2]),
        ([0], None, [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3]),
        ([3, 0], 1, [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 1, 0]),
        ([5, 0, 5], 1, [0, 1, 4, 5], [0, 1, 5], [0, 1, 1, 0]),
        ([6], None, [6], [], [0]),
        ([1], 0, [1], [1], [0]),
    ],
)
def test_a_chain_by_hand(
    seeds: list[int], max_hops: int | None, nodes: list[int], triples: list[int], hops: list[int]
) -> None:
    found = neighborhood(graph_of(CHAIN, 7).adjacency, seeds, max_hops=max_hops)
    assert plain(found) == (nodes, triples, hops, False)


def test_the_best_stay_and_equals_go_by_id() -> None:
    """Hub 0 with leaves 1 ... 9; leaf 7 is joined to it twice."""
    graph = graph_of([(0, 0, leaf) for leaf in range(1, 10)] + [(0, 1, 7)], 10)
    found = neighborhood(graph.adjacency, [0], max_nodes=4)
    assert plain(found) == ([0, 1, 2, 7], [0, 1, 6, 9], [0, 1, 1, 1], True)
    assert not neighborhood(graph.adjacency, [0], max_nodes=10).truncated
    assert not neighborhood(graph.adjacency, [0], max_hops=0, max_nodes=1).truncated


def test_all_seeds_stay_and_nothing_else_where_they_are_too_many() -> None:
    found = neighborhood(graph_of(CHAIN, 7).adjacency, [3, 0, 2], max_nodes=2)
    assert plain(found) == ([0, 2, 3], [3], [0, 0, 0], True)


def test_a_hub_may_stay_without_what_joins_it_to_the_seed() -> None:
    """Seed 0, its neighbours 1 ... 20, and entity 21 behind them all: two hops away, and ahead of each of them."""
    facts = [(0, 0, between) for between in range(1, 21)] + [(between, 0, 21) for between in range(1, 21)]
    found = neighborhood(graph_of(facts, 22).adjacency, [0], max_nodes=2)
    assert plain(found) == ([0, 21], [], [0, 2], True)


def test_large_graphs_are_cut_by_a_walk_around_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of([(a, 0, b) for a, b in nx.karate_club_graph().edges], 34)
    exact = brute_force(graph, [0], None, 12)
    entries = len(graph.adjacency.neighbors)
    walks: list[int] = []

    def walk(*arguments: Any, **fields: Any) -> NearEntities:
        walks.append(fields["max_entries"])
        return walk_around(*arguments, **fields)

    monkeypatch.setattr("kg_retrievers.algorithms.neighborhood.walk_around", walk)
    for limit, walked in ((entries, []), (entries - 1, [MIN_ENTRIES])):
        monkeypatch.setattr("kg_retrievers.algorithms.neighborhood.MAX_POWER_ENTRIES", limit)
        found = neighborhood(graph.adjacency, [0], max_nodes=12)
        assert plain(found) == plain(exact)
        assert walks == walked
    everything = neighborhood(graph.adjacency, [0], max_hops=2)
    assert plain(everything) == plain(brute_force(graph, [0], 2, None))
    assert len(walks) == 1  # where nothing is left out, all is looked at


@given(cases())
@settings(max_examples=150)
def test_a_cut_of_a_large_graph_is_a_neighborhood(
    case: tuple[KnowledgeGraph, list[int], int | None, int | None],
) -> None:
    graph, seeds, max_hops, max_nodes = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kg_retrievers.algorithms.neighborhood.MAX_POWER_ENTRIES", -1)
        found = neighborhood(graph.adjacency, seeds, max_hops=max_hops, max_nodes=max_nodes)
    exact = brute_force(graph, seeds, max_hops, max_nodes)
    nodes, triples, hops, truncated = plain(found)
    assert (len(nodes), truncated) == (len(exact.nodes), exact.truncated)
    everything = brute_force(graph, seeds, None, None)
    nearest = dict(zip(everything.nodes.tolist(), everything.hops.tolist(), strict=True))
    assert {*seeds} <= {*nodes}
    assert nodes == sorted({*nodes})
    farthest = 99 if max_hops is None else max_hops
    assert all(nearest[node] <= hop <= farthest for node, hop in zip(nodes, hops, strict=True))
    assert triples == [number for number, pair in enumerate(ends(graph)) if {*pair} <= {*nodes}]
    if not truncated:
        assert plain(found) == plain(exact)


def test_what_is_out_of_reach_is_not_looked_at() -> None:
    """The rows of entities that are out of reach hold nonsense here, which a scan of the whole graph would return."""
    graph = graph_of([(0, 0, 1)] + [(node, 0, node + 1) for node in range(2, 40)], 41)
    indptr, first_triples, neighbors, labels, backward_triples = (column.copy() for column in graph.adjacency)
    neighbors[int(indptr[2]) :] = labels[int(indptr[2]) :] = 0
    backward_triples[int(indptr[2] - first_triples[2]) :] = 1_000_000
    spoilt = Adjacency(indptr, first_triples, neighbors, labels, backward_triples)
    assert plain(neighborhood(spoilt, [0])) == ([0, 1], [0], [0, 1], False)


def test_equal_results_however_it_is_asked(tmp_path: Path) -> None:
    graph = graph_of([(a, a % 3, b) for a, b in nx.karate_club_graph().edges], 34)
    first = plain(neighborhood(graph.adjacency, [3, 30], max_hops=2, max_nodes=9))
    assert len(first[0]) == 9
    again = neighborhood(graph.adjacency, np.array([30, 3, 30], np.uint8), max_hops=2, max_nodes=9)
    assert plain(again) == first
    graph.save(tmp_path / "graph")
    opened = KnowledgeGraph.open(tmp_path / "graph")
    assert plain(neighborhood(opened.adjacency, [3, 30], max_hops=2, max_nodes=9)) == first
    with ThreadPoolExecutor(4) as pool:
        many = pool.map(lambda _: neighborhood(graph.adjacency, [3, 30], max_hops=2, max_nodes=9), range(16))
        assert all(plain(found) == first for found in many)


@pytest.mark.parametrize(
    ("seeds", "fields", "message"),
    [
        ([], {}, "seeds must be a list of one or more"),
        ([7], {}, "7 entities"),
        ([0], {"max_hops": -1}, "max_hops must be 0 or more"),
        ([0], {"max_nodes": 0}, "max_nodes must be 1 or more"),
    ],
)
def test_wrong_arguments_are_refused(seeds: list[int], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"neighborhood: .*{message}"):
        neighborhood(graph_of(CHAIN, 7).adjacency, seeds, **fields)


# --- how far everything is ---


@given(cases())
@settings(max_examples=150)
def test_hops_agree_with_networkx(case: tuple[KnowledgeGraph, list[int], int | None, int | None]) -> None:
    graph, seeds, max_hops, _ = case
    undirected = nx.Graph(ends(graph))
    undirected.add_nodes_from(range(len(graph.entities)))
    hops = nx.multi_source_dijkstra_path_length(undirected, set(seeds))
    for most in (99,) if max_hops is None else (max_hops, 10**12):
        found = hops_from(graph.adjacency, seeds, most)
        assert (found.dtype, found.shape) == (np.int32, (len(graph.entities),))
        within = {node: hop for node, hop in hops.items() if hop <= most}
        assert found.tolist() == [within.get(node, -1) for node in range(len(graph.entities))]
        near = neighborhood(graph.adjacency, seeds, max_hops=most)
        assert (np.flatnonzero(found >= 0).tolist(), found[found >= 0].tolist()) == (
            near.nodes.tolist(),
            near.hops.tolist(),
        )


@pytest.mark.parametrize(
    ("seeds", "max_hops", "hops"),
    [
        ([0], 0, [0, -1, -1, -1, -1, -1, -1]),
        ([0], 1, [0, 1, -1, -1, -1, -1, -1]),
        ([0], 3, [0, 1, 2, 3, -1, -1, -1]),
        ([3, 0, 3], 9, [0, 1, 1, 0, -1, -1, -1]),
        ([5], 1, [-1, -1, -1, -1, 1, 0, -1]),
        ([6], 9, [-1, -1, -1, -1, -1, -1, 0]),
    ],
)
def test_hops_by_hand(seeds: list[int], max_hops: int, hops: list[int]) -> None:
    for given_as in (seeds, np.array(seeds, np.uint8), tuple(seeds)):
        assert hops_from(graph_of(CHAIN, 7).adjacency, given_as, max_hops).tolist() == hops


@pytest.mark.parametrize(
    ("seeds", "max_hops", "message"),
    [
        ([], 1, "seeds must be a list of one or more"),
        ([7], 1, "7 entities"),
        ([-1], 1, "7 entities"),
        ([0], -1, "max_hops must be 0 or more, but got -1"),
    ],
)
def test_wrong_hops_are_refused(seeds: list[int], max_hops: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"hops_from: .*{message}"):
        hops_from(graph_of(CHAIN, 7).adjacency, seeds, max_hops)


@pytest.mark.real
def test_two_hops_around_a_film_of_metaqa(metaqa_graph: KnowledgeGraph) -> None:
    topic = metaqa_graph.entities.find("Black Snake Moan")
    found = neighborhood(metaqa_graph.adjacency, [topic], max_hops=2)
    nodes = set(found.nodes.tolist())
    pairs = ends(metaqa_graph)
    assert found.triples.tolist() == [n for n, (head, tail) in enumerate(pairs) if head in nodes and tail in nodes]
    graph = nx.Graph(pairs)
    hops = nx.single_source_shortest_path_length(graph, topic, cutoff=2)
    assert dict(zip(found.nodes.tolist(), found.hops.tolist(), strict=True)) == hops
    few = neighborhood(metaqa_graph.adjacency, [topic], max_hops=2, max_nodes=500)
    assert len(few.nodes) == 500
    assert few.truncated
    assert set(few.nodes.tolist()) < nodes
    assert set(few.triples.tolist()) < set(found.triples.tolist())
