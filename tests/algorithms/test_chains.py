"""Shortest chains of facts, against all simple paths of networkx."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.algorithms.chains import shortest_chains
from kg_retrievers.graph import Adjacency

EDGES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 1), st.integers(0, 7)), min_size=1, max_size=14, unique=True
)


def simple_chains(edges: np.ndarray[Any, Any], end: int, hops: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    graph: Any = nx.MultiGraph()
    graph.add_nodes_from(range(8))
    for number, (head, _, tail) in enumerate(edges.tolist()):
        graph.add_edge(head, tail, number)
    found = nx.all_simple_edge_paths(graph, 0, end, cutoff=hops)
    return [(tuple(number for _, _, number in path), (0, *(there for _, there, _ in path))) for path in found if path]


@given(EDGES, st.integers(1, 7), st.integers(1, 5), st.sets(st.integers(1, 6), max_size=2))
def test_chains_are_the_shortest_simple_paths(edges: list[Any], end: int, hops: int, closed: set[int]) -> None:
    ordered = np.array(sorted(edges))
    closed -= {end}
    adjacency = Adjacency.of_edges(ordered, 8)
    expected = [chain for chain in simple_chains(ordered, end, hops) if closed.isdisjoint(chain[1])]
    length = min((len(triples) for triples, _ in expected), default=0)
    found = shortest_chains(
        adjacency, np.array([0]), end, max_hops=hops, passes=lambda entities: ~np.isin(entities, [*closed])
    )
    assert {*found} == {chain for chain in expected if len(chain[0]) == length}


@given(EDGES, st.integers(1, 7), st.sets(st.integers(1, 7), min_size=1, max_size=3))
def test_chains_pass_through_a_thing(edges: list[Any], end: int, through: set[int]) -> None:
    ordered = np.array(sorted(edges))
    adjacency = Adjacency.of_edges(ordered, 8)
    found = shortest_chains(adjacency, np.array([0]), end, max_hops=4, through=np.array(sorted(through)))
    paths = {*simple_chains(ordered, end, 4)}
    for chain in found:
        assert (chain.triples, chain.entities) in paths
        assert through & {*chain.entities[1:-1]}
