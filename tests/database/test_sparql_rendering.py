"""Patterns as SPARQL: an endpoint finds what brute force and an embedded database find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oxigraph_server import Oxigraph
from pattern_matches import MODES, brute_force, found_by, has_all_relations, patterns, random_graph

from kg_retrievers.database.rendering import render
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Pattern

Endpoints = list[tuple[KnowledgeGraph, SparqlExecutor]]


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """Graphs, and the same graphs behind endpoints."""
    servers = []
    try:
        for seed in range(4):
            folder = tmp_path_factory.mktemp("oxigraph")
            random_graph(seed).write(folder / "graph.nt")
            servers.append((Path(folder / "graph.nt"), Oxigraph(folder, folder / "graph.nt")))
            servers[-1][1].start()
        yield [(KnowledgeGraph.from_file(file), server.executor()) for file, server in servers]
    finally:
        for _, server in servers:
            server.stop()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3), patterns(), st.fixed_dictionaries({name: MODES[name] for name in ("distinct", "direction")}))
def test_an_endpoint_finds_what_brute_force_finds(
    endpoints: Endpoints, number: int, pattern: Pattern, mode: dict[str, Any]
) -> None:
    graph, executor = endpoints[number]
    if not has_all_relations(graph, pattern):
        with pytest.raises(InvalidArgumentError, match="has no relationship type"):
            render(pattern, executor.schema(), executor.dialect)
        return
    found = found_by(executor, pattern, **mode)
    assert len(found) == len(set(found))
    assert set(found) == brute_force(graph, pattern, mode["distinct"], mode["direction"])
    targets = [target or "" for target, _ in found]
    assert targets == sorted(targets)
