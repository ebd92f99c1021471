"""From a directed NetworkX graph to the rows of a knowledge graph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.types import Triple

_WHO = "KnowledgeGraph.from_networkx"


def read_networkx_rows(graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any], relation: str) -> GraphBuilder:
    """Read triples from edges, and names and types from the attributes of nodes: see `KnowledgeGraph.from_networkx`.

    Args:
        graph: The graph.
        relation: The attribute of an edge that holds its relation.

    Raises:
        InvalidArgumentError: If the graph is undirected, an edge has no relation, or two nodes have equal texts.
    """
    if not graph.is_directed():
        raise InvalidArgumentError(
            f"{_WHO}: got an undirected graph; a triple has a direction. Build a DiGraph or MultiDiGraph."
        )
    keys = {node: str(node) for node in graph}
    ((key, count),) = Counter(keys.values()).most_common(1) or [("", 0)]
    if count > 1:
        raise InvalidArgumentError(f"{_WHO}: two nodes are both written {key!r}.")
    rows = GraphBuilder()
    for triple in _triples(graph, relation, keys):
        rows.add(*triple)
    rows.labels = {keys[node]: keys[node] for node in nx.isolates(graph)}
    for node, data in graph.nodes(data=True):
        for attribute, described in (("label", rows.labels), ("aliases", rows.aliases), ("types", rows.types)):
            if attribute in data:
                described[keys[node]] = data[attribute]
    return rows


def _triples(graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any], relation: str, keys: dict[Any, str]) -> list[Triple]:
    triples = []
    edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    for head, tail, *edge_key, data in edges:
        name = data.get(relation, edge_key[0] if edge_key else None)
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"{_WHO}: the edge {head!r} -> {tail!r} has no text in its attribute {relation!r}, but {name!r}. "
                "Name the attribute that holds it: relation=..."
            )
        triples.append(Triple(keys[head], name, keys[tail]))
    return triples
