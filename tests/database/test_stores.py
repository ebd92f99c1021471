"""Parts of graphs through the graph stores of LangChain and LlamaIndex, the real ones, over ArcadeDB."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from arcadedb import PASSWORD, ArcadeDB, is_installed
from parts_of_graphs import check_against
from pattern_matches import random_graph

from kg_retrievers.database.graph_store import QueryExecutor

pytestmark = pytest.mark.heavy

#: The module, the class, and the options that keep it from asking for Neo4j's plug-in APOC.
STORES = [
    ("langchain_neo4j", "Neo4jGraph", {"refresh_schema": False}),
    (
        "llama_index.graph_stores.neo4j",
        "Neo4jPropertyGraphStore",
        {"refresh_schema": False, "create_indexes": False},
    ),
]


@pytest.mark.parametrize(("module", "name", "options"), STORES, ids=["langchain", "llama_index"])
def test_parts_through_a_store(module: str, name: str, options: dict[str, bool], tmp_path: Path) -> None:
    """The schema is read through the store, too."""
    pytest.importorskip(module.partition(".graph_stores")[0])
    try:
        store_class = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as cause:
        pytest.skip(f"{cause.name} is not installed")
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    graph = random_graph(3)
    with ArcadeDB(tmp_path, ["graph"]) as server:
        server.load(graph, "graph")
        login = {"username": "root", "password": PASSWORD, "url": server.uri, "database": "graph"}
        check_against(QueryExecutor(store_class(**login, **options)), graph)
