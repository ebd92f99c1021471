"""From the content of a graph to NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx

from kg_retrievers.graph.writers.content import Entity, Fact, GraphContent


def networkx_graph(content: GraphContent) -> nx.MultiDiGraph[str]:
    """Return a MultiDiGraph: see `KnowledgeGraph.to_networkx`."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for entity in content.entities():
        graph.add_node(entity.key, **node_attributes(entity))
    for fact in content.facts():
        graph.add_edge(fact.head, fact.tail, key=fact.relation, **edge_attributes(fact))
    return graph


def node_attributes(entity: Entity) -> dict[str, Any]:
    """Return the attributes of a node: its label, aliases and types, and its datatype if it has one."""
    attributes = {"label": entity.label, "aliases": entity.aliases, "types": entity.types}
    return attributes | ({"datatype": entity.datatype} if entity.datatype else {})


def edge_attributes(fact: Fact) -> dict[str, Any]:
    """Return the attributes of an edge: its relation, and the relation's id and the sources if it has some."""
    attributes: dict[str, Any] = {"relation": fact.relation}
    attributes |= {"relation_id": fact.relation_id} if fact.relation_id != fact.relation else {}
    return attributes | ({"sources": fact.sources} if fact.sources else {})
