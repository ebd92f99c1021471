"""The chain that joins an entity with those of a question, against networkx."""

import networkx as nx
import numpy as np
import pytest
from explanation.random_graphs import random_index, undirected

from kg_retrievers.explanation.joining import joining_facts


@pytest.mark.parametrize("seed", range(8))
def test_it_is_a_shortest_chain_of_facts(seed):
    index = random_index(np.random.default_rng(seed))
    graph, joined = index.graph, undirected(index)
    seeds = list(graph.entities)[:2]
    for entity in graph.entities:
        facts = joining_facts(graph, seeds, entity)
        lengths = [len(nx.shortest_path(joined, one, entity)) - 1 for one in seeds if nx.has_path(joined, one, entity)]
        assert len(facts) == min(lengths, default=0)
        assert all(fact in graph for fact in facts)
        if facts:
            assert entity in (facts[-1].head, facts[-1].tail)
            assert {facts[0].head, facts[0].tail} & set(seeds)
            chain = nx.Graph((fact.head, fact.tail) for fact in facts)
            assert any(one in chain and nx.has_path(chain, entity, one) for one in seeds)


def test_nothing_joins_what_is_unknown():
    graph = random_index(np.random.default_rng(0)).graph
    assert joining_facts(graph, [], graph.entities[0]) == ()
    assert joining_facts(graph, ["nobody"], graph.entities[0]) == ()
