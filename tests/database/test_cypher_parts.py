"""Parts of graphs, read from LadybugDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ladybug
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts_of_graphs import KEY_OF, Part, StoredGraph, check_against, check_parts, parts, stored_graph
from pattern_matches import random_graph

from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.database.schema import backticked
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple

Databases = list[tuple[StoredGraph, LadybugExecutor]]

GRAPHS = 4


def write(graph: StoredGraph, path: Path) -> None:
    """Write a graph into node tables of several labels."""
    with ladybug.Database(path) as database, ladybug.Connection(database) as connection:
        for label, key in KEY_OF.items():
            columns = f"{backticked(key)} STRING PRIMARY KEY, label STRING, aliases STRING[]"
            connection.execute(f"CREATE NODE TABLE {backticked(label)}({columns})")
        ends = ", ".join(f"FROM {backticked(one)} TO {backticked(other)}" for one in KEY_OF for other in KEY_OF)
        for relation in {relation for _, relation, _ in graph.facts}:
            connection.execute(f"CREATE REL TABLE {backticked(relation)}({ends})")
        for node in graph.nodes:
            (label,) = node.labels
            properties = f"{backticked(KEY_OF[label])}: $key, label: $label, aliases: $aliases"
            values = {"key": node.key, "label": node.label, "aliases": node.aliases or None}
            connection.execute(f"CREATE (:{backticked(label)} {{{properties}}})", values)
        for head, relation, tail in graph.facts:
            (one,), (other,) = graph.nodes[head].labels, graph.nodes[tail].labels
            match = f"MATCH (a:{backticked(one)}), (b:{backticked(other)})"
            where = f"WHERE a.{backticked(KEY_OF[one])} = $a AND b.{backticked(KEY_OF[other])} = $b"
            values = {"a": graph.nodes[head].key, "b": graph.nodes[tail].key}
            connection.execute(f"{match} {where} CREATE (a)-[:{backticked(relation)}]->(b)", values)


@pytest.fixture(scope="module", params=[0, pytest.param(GRAPHS, marks=pytest.mark.heavy)])
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    folder = tmp_path_factory.mktemp("parts")
    graphs = [stored_graph(request.param + seed, several_labels=False) for seed in range(GRAPHS)]
    for number, graph in enumerate(graphs):
        write(graph, folder / f"{number}.lbdb")
    executors = [LadybugExecutor(folder / f"{number}.lbdb") for number in range(GRAPHS)]
    yield list(zip(graphs, executors, strict=True))
    for executor in executors:
        executor.close()


@pytest.mark.heavy
@settings(max_examples=100)
@given(st.integers(0, GRAPHS - 1), parts)
def test_parts_are_what_plain_filters_find(databases: Databases, number: int, part: Part) -> None:
    graph, executor = databases[number]
    check_parts(executor, graph, part)


def test_parts_of_loaded_graphs() -> None:
    for seed in range(3):
        graph = random_graph(seed)
        with LadybugExecutor.from_graph(graph) as executor:
            check_against(executor, graph)


@pytest.fixture(scope="module")
def hub() -> Iterator[LadybugExecutor]:
    """An entity of 3000 facts among others, in a process of its own."""
    facts = [("hub", f"r{i % 3}", f"e{i:04}") for i in range(3000)] + [("e0001", "r0", "e0002")]
    with LadybugExecutor.from_graph(KnowledgeGraph.from_triples(facts)) as executor:
        yield executor


def test_a_hub_is_bounded_and_flagged(hub: LadybugExecutor) -> None:
    found = hub.facts_of(["hub"], limit=5)
    assert found[:2] == ([Triple("hub", "r0", f"e{i:04}") for i in (0, 3, 6, 9, 12)], True)
    assert hub.facts_of(["e0001", "hub"], relations=["r2"], limit=1000).truncated is False
    assert len(hub.facts_of(["hub"], limit=3000).triples) == 3000
    wanted = [Triple("e0001", "r0", "e0002"), Triple("hub", "r1", "e0001")]
    assert hub.facts_of(["e0001"], limit=2)[:2] == (wanted, False)


def test_many_keys_at_once(hub: LadybugExecutor) -> None:
    keys = [f"e{i:04}" for i in range(0, 3000, 2)]
    found = hub.facts_of(keys, limit=2000)
    assert len(found.triples) == 1501
    assert not found.truncated
    assert [entity.key for entity in hub.describe(keys)] == keys
    assert hub.facts_between(["hub", *keys], limit=100).truncated


def test_wrong_arguments(hub: LadybugExecutor) -> None:
    with pytest.raises(InvalidArgumentError, match="wanted a list of texts, got 'hub'"):
        hub.facts_of("hub")
    with pytest.raises(InvalidArgumentError, match="wanted a list of texts"):
        hub.describe([1])  # type: ignore[list-item]
    with pytest.raises(InvalidArgumentError, match="0 are asked for"):
        hub.facts_of(["hub"], limit=0)
    with pytest.raises(InvalidArgumentError, match="timeout is 0"):
        hub.describe(["hub"], timeout=0)
    for position in ("x", "[1, 2]", "3", '["a"]'):
        with pytest.raises(InvalidArgumentError, match="the position of the page before"):
            hub.entities_after(position, 2)
    assert hub.entities_after('["Zebra", ""]', 2) == ([], None)
    assert hub.sample_facts(["no such relation"], 3)[:2] == ([], False)
