"""The triples on shortest paths, which supervise, against networkx and by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.methods.subgraph_rag.model import shortest_path_triples


class Case(NamedTuple):
    """Triples [(head, relation, tail), ...] of `nodes` entities, parallel ones and loops among them."""

    triples: list[tuple[int, int, int]]
    seeds: list[int]
    answers: list[int]
    nodes: int


def columns(triples: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    heads, relations, tails = np.array(triples, np.int32).reshape(-1, 3).T
    return heads, relations, tails


def ints(numbers: list[int]) -> Any:
    return np.array(numbers, np.int64)


def supervise(case: Case, **options: Any) -> list[bool]:
    heads, _, tails = columns(case.triples)
    found = shortest_path_triples(heads, tails, ints(case.seeds), ints(case.answers), nodes=case.nodes, **options)
    assert (found.dtype, found.shape) == (np.bool_, heads.shape)
    return found.tolist()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(st.integers(1, 7))
    entity = st.integers(0, nodes - 1)
    triples = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=14))
    return Case(triples, draw(st.lists(entity, max_size=3)), draw(st.lists(entity, max_size=4)), nodes)


def shortest_paths(graph: Any, start: int, end: int, max_hops: int) -> list[list[int]]:
    try:
        return [path for path in nx.all_shortest_paths(graph, start, end) if len(path) <= max_hops + 1]
    except nx.NetworkXNoPath:
        return []


def supervised(case: Case, directed: bool, max_hops: int) -> list[bool]:
    """What `supervise` returns, from all paths of every pair, one by one."""
    graph: Any = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(range(case.nodes))
    for number, (head, _, tail) in enumerate(case.triples):
        graph.add_edge(head, tail, key=number)
    positive = [False] * len(case.triples)
    for seed in case.seeds:
        for answer in case.answers:
            paths = shortest_paths(graph, seed, answer, max_hops) + shortest_paths(graph, answer, seed, max_hops)
            length = min(map(len, paths), default=0)
            for path in paths:
                if len(path) == length:
                    for start, end in nx.utils.pairwise(path):
                        for number in graph[start][end]:
                            positive[number] = True
    return positive


@given(cases(), st.booleans(), st.integers(0, 5))
@settings(max_examples=300)
def test_supervision_agrees_with_all_shortest_paths(case: Case, directed: bool, max_hops: int) -> None:
    assert supervise(case, directed=directed, max_hops=max_hops) == supervised(case, directed, max_hops)
