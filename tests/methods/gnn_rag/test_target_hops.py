"""Steps to targets against breadth-first search by networkx, whichever side is looked at."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.graph import Adjacency
from kg_retrievers.methods.gnn_rag.target_hops import steps_to


def check(edges: list[tuple[int, int]], size: int, seed: int, targets: list[int], max_hops: int) -> None:
    facts = np.array([(head, 0, tail) for head, tail in edges], np.int32).reshape(-1, 3)
    found = steps_to(Adjacency.of_edges(facts, size), seed, np.array(targets, np.int64), max_hops)
    graph: nx.Graph[int] = nx.Graph(edges)
    graph.add_nodes_from(range(size))
    hops = nx.single_source_shortest_path_length(graph, seed)
    for target in targets:
        near = target in hops and hops[target] <= max_hops
        assert found[target] == 1 + hops[target] if near else found[target] <= 0
        if not near:
            continue
        for path in nx.all_shortest_paths(graph, seed, target):
            for entity in path:  # and of each entity on a path, exactly the neighbors that are nearer are told
                assert found[entity] == 1 + hops[entity]
                nearer = {other for other in graph[entity] if found[entity] > 1 and found[other] == found[entity] - 1}
                assert nearer == {other for other in graph[entity] if hops[other] == hops[entity] - 1}


@given(st.data())
@settings(max_examples=400)
def test_random_graphs(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 14))
    entity = st.integers(0, size - 1)
    edges = data.draw(st.lists(st.tuples(entity, entity), max_size=24))
    targets = data.draw(st.lists(entity, max_size=4))
    check(edges, size, data.draw(entity), targets, data.draw(st.integers(0, 5)))


@pytest.mark.parametrize("max_hops", [2, 3, 4])
def test_a_hub_is_met_from_the_targets(max_hops: int) -> None:
    """Seed 0 is a hub; each of its 50 neighbors has ten leaves; a chain of three leads on from one of these."""
    edges = [(0, near) for near in range(1, 51)]
    edges += [(near, 50 + 10 * (near - 1) + leaf) for near in range(1, 51) for leaf in range(1, 11)]
    edges += [(551, 60), (552, 551), (553, 552), (553, 551)]
    check(edges, 555, 0, [551, 70, 3, 0, 553, 554], max_hops)
