"""Shortest paths against networkx on the multigraph of the triples; those back to the seed one by one."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.methods.gnn_rag.shortest_paths import PathIds, PathsTo, shortest_paths

Facts = list[tuple[int, int, int]]


def graph_of(facts: Facts, entities: int) -> KnowledgeGraph:
    """A graph in which triple j is the j-th fact; entities are numbered in the order of their first fact."""
    return KnowledgeGraph.from_triples(
        [(str(head), f"r{relation}", str(tail)) for head, relation, tail in facts],
        labels={str(entity): str(entity) for entity in range(entities)},
    )


def brute_force(graph: KnowledgeGraph, seed: int, target: int, max_hops: int, max_paths: int) -> PathsTo:
    """All paths of all lengths up to max_hops, by networkx; the shortest in the order that is promised."""
    undirected = nx.MultiGraph()
    undirected.add_nodes_from(range(len(graph.entities)))
    for number, triple in enumerate(graph.triples()):
        undirected.add_edge(graph.entities.find(triple.head), graph.entities.find(triple.tail), key=number)
    everything = closed_paths(graph, seed) if seed == target else []
    everything = [path for path in everything if len(path.triples) <= max_hops]
    if seed != target and max_hops > 0:
        for steps in nx.all_simple_edge_paths(undirected, seed, target, cutoff=max_hops):
            everything.append(PathIds((seed, *(v for _, v, _ in steps)), tuple(number for _, _, number in steps)))
    least = min((len(path.triples) for path in everything), default=0)
    shortest = [path for path in everything if len(path.triples) == least]
    shortest.sort(key=lambda path: path.triples[::-1])
    return PathsTo(target, shortest[:max_paths], len(shortest) > max_paths)


def closed_paths(graph: KnowledgeGraph, seed: int) -> list[PathIds]:
    """The self-loops of an entity, or else the ways there and back by two triples, or else by one."""
    ends = [[graph.entities.find(key) for key in (triple.head, triple.tail)] for triple in graph.triples()]
    loops = [PathIds((seed, seed), (one,)) for one, pair in enumerate(ends) if pair == [seed, seed]]
    there = [(one, sum(pair) - seed) for one, pair in enumerate(ends) if seed in pair]
    back = [PathIds((seed, here, seed), (one, other)) for one, here in there for other, same in there if here == same]
    return loops or [path for path in back if len(set(path.triples)) == 2] or back


@st.composite
def cases(draw: st.DrawFn) -> tuple[KnowledgeGraph, int, list[int], int, int]:
    entities = draw(st.integers(1, 7))
    entity = st.integers(0, entities - 1)
    facts = draw(st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=14))
    seed, targets = draw(entity), draw(st.lists(entity, max_size=4))
    return graph_of(facts, entities), seed, targets, draw(st.integers(0, 5)), draw(st.integers(1, 5))


@given(cases())
@settings(max_examples=300)
def test_they_agree_with_brute_force(case: tuple[KnowledgeGraph, int, list[int], int, int]) -> None:
    graph, seed, targets, max_hops, max_paths = case
    found = shortest_paths(graph.adjacency, seed, targets, max_hops=max_hops, max_paths=max_paths)
    assert found == [brute_force(graph, seed, target, max_hops, max_paths) for target in targets]
    again = shortest_paths(graph.adjacency, seed, targets[::-1], max_hops=max_hops, max_paths=max_paths)
    assert again == found[::-1]
