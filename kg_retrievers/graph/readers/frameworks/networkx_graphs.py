"""From a directed NetworkX graph to the rows of a knowledge graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import networkx as nx

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader, Attributes

_WHO = "KnowledgeGraph.from_networkx"


def read_networkx_rows(
    graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
    relation: str = "relation",
    attributes: Attributes = "facts",
    *,
    who: str = _WHO,
) -> GraphBuilder:
    """Read facts from edges, and names, types and facts from the attributes of nodes.

    See `KnowledgeGraph.from_networkx`, and `AttributeReader` for what the attributes say.

    Args:
        graph: The graph.
        relation: The attribute of an edge that holds its relation; the key of an edge where it has none.
        attributes: Whether other attributes of nodes become facts.
        who: Begins the messages of errors.

    Raises:
        InvalidArgumentError: If the graph is undirected, an edge has no relation, or two nodes have equal texts.
    """
    if not hasattr(graph, "is_directed"):
        raise InvalidArgumentError(f"{who}: wanted a networkx.DiGraph or MultiDiGraph, but got {graph!r:.100}.")
    if not graph.is_directed():
        raise InvalidArgumentError(undirected_message(who))
    builder = GraphBuilder()
    builder.reading.format = "NetworkX"
    reader = AttributeReader(builder, attributes, who)
    keys = node_keys(graph, builder, who)
    defaults = graph.graph.get("edge_default") or {}
    for head, tail, edge_key, data in _edges(graph):
        values = {**defaults, **data}
        name = values.get(relation, edge_key)
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(
                f"{who}: the edge {head!r} -> {tail!r} has no text in its attribute {relation!r}, but {name!r}. "
                f"Name the attribute that holds it: relation=... This edge has {[*map(str, values)]}."
            )
        reader.add_edge(keys[head], name, keys[tail], values, used=relation)
    defaults = graph.graph.get("node_default") or {}
    for node, data in graph.nodes(data=True):
        reader.add_node(keys[node], {**defaults, **data})
    reader.finish()
    return builder


def undirected_message(who: str) -> str:
    """Return what to say about an undirected graph."""
    return (
        f"{who}: got an undirected graph; a fact has a direction. Build a DiGraph or MultiDiGraph, or hand in "
        "graph.to_directed(), which makes two facts of each edge, one each way."
    )


def node_keys(nodes: Iterable[Any], builder: GraphBuilder, who: str) -> dict[Any, str]:
    """Return the text of each node, and say how many are no texts.

    Raises:
        InvalidArgumentError: If a text is empty, or two nodes are written alike.
    """
    keys = {node: str(node) for node in nodes}
    ((key, count),) = Counter(keys.values()).most_common(1) or [("", 0)]
    if count > 1:
        raise InvalidArgumentError(f"{who}: two nodes are both written {key!r}. Give the nodes texts that differ.")
    if empty := [node for node, key in keys.items() if not key]:
        raise InvalidArgumentError(f"{who}: the node {empty[0]!r} is an empty text. Give it another key.")
    if strange := sum(not isinstance(node, str) for node in keys):
        builder.reading.understood["nodes that are no texts"] = f"{strange:,}, each as Python writes it"
    return keys


def _edges(
    graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
) -> Iterator[tuple[Any, Any, Any, Mapping[str, Any]]]:
    """Yield the ends, the key and the attributes of each edge."""
    if graph.is_multigraph():
        yield from graph.edges(keys=True, data=True)
    else:
        yield from ((head, tail, None, data) for head, tail, data in graph.edges(data=True))
