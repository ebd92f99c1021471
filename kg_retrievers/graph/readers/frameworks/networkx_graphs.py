"""From directed NetworkX graphs, GraphML, GEXF and node-link JSON to the rows of a knowledge graph."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import networkx as nx

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.opening import read_document
from kg_retrievers.graph.readers.rdf.guards import GuardedFile, XmlGuard
from kg_retrievers.graph.readers.text_files import Attributes, FileOptions

_WHO = "KnowledgeGraph.from_networkx"


def read_networkx_rows(
    graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
    relation: str = "relation",
    attributes: Attributes = "facts",
    *,
    who: str = _WHO,
    format: str = "NetworkX",
) -> GraphBuilder:
    """Read facts from edges, and names, types and facts from the attributes of nodes.

    See `KnowledgeGraph.from_networkx`, and `AttributeReader` for the meaning of the attributes.

    Args:
        graph: The graph.
        relation: The attribute of an edge that holds its relation; the key of an edge where it has none.
        attributes: Whether other attributes of nodes become facts.
        who: Begins the messages of errors.
        format: What the graph is from.

    Raises:
        InvalidArgumentError: If the graph is undirected, an edge has no relation, or two nodes have equal texts.
    """
    if not hasattr(graph, "is_directed"):
        raise InvalidArgumentError(f"{who}: wanted a networkx.DiGraph or MultiDiGraph, but got {graph!r:.100}.")
    _check_directed(graph, who)
    builder = GraphBuilder(format=format)
    reader = AttributeReader(builder, attributes, who)
    keys = _node_keys(graph, builder, who)
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


def _node_keys(nodes: Iterable[Any], builder: GraphBuilder, who: str) -> dict[Any, str]:
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


def _check_directed(graph: nx.Graph[Any], who: str) -> None:
    if not graph.is_directed():
        raise InvalidArgumentError(
            f"{who}: got an undirected graph; a fact has a direction. Build a DiGraph or MultiDiGraph, or hand in "
            "graph.to_directed(), which makes two facts of each edge, one each way."
        )


def _edges(graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any]) -> Iterator[tuple[Any, Any, Any, Mapping[str, Any]]]:
    """Yield the ends, the key and the attributes of each edge."""
    if graph.is_multigraph():
        yield from graph.edges(keys=True, data=True)
    else:
        yield from ((head, tail, None, data) for head, tail, data in graph.edges(data=True))


#: The attributes of an edge that may hold its relation, the first that every edge has.
RELATION_ATTRIBUTES = ("relation", "predicate", "relationship", "label", "type", "name")

#: The text that yEd writes around the states of a group, and how each of them begins and ends.
_GROUP = re.compile(rb"</?(?:\w+:)?(?:ProxyAutoBoundsNode|Realizers)\b[^>]*>")
_GROUP_STATE = re.compile(rb"<(/?(?:\w+:)?)GroupNode\b")

#: The errors of the readers of networkx for a file that is no graph, in addition to networkx's own.
_UNTYPED = (ArithmeticError, AttributeError, LookupError, RuntimeError, SyntaxError, TypeError, ValueError)


def read_xml(path: Path, format: str | None, options: FileOptions) -> GraphBuilder:
    """Read GraphML or GEXF through networkx (see `read_networkx_rows`).

    Fit for up to about a million edges: the file is read as a whole, in about twenty times its size.

    The relation of an edge is the attribute that the second of `columns` names, else the first of "relation",
    "predicate", "relationship", "label", "type" and "name" that every edge has, else its key if some edges share a key.

    Raises:
        GraphLoadError: If the file is no such graph, is undirected, or exceeds a limit, as `document_bytes`.
    """
    content = read_document(path, options.limits)

    def refuse(message: str, advice: str = "", limit: str | None = None) -> NoReturn:
        raise GraphLoadError(message, path, hint_python=advice)

    guarded = GuardedFile(io.BytesIO(content), XmlGuard(refuse))
    while guarded.read():
        options.limits.check_time(path)
    with _graph_errors(path):
        if b"ProxyAutoBoundsNode" in content:  # a group of yEd: its first state is shown like any other node
            content = _GROUP_STATE.sub(rb"<\1ShapeNode", _GROUP.sub(b"", content))
        whole = io.BytesIO(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ports, which hold nothing of a fact
            graph = nx.read_gexf(whole) if format == "gexf" else nx.read_graphml(whole, edge_key_type=str)
        return _read_graph(graph, path, options, "GEXF" if format == "gexf" else "GraphML")


def read_node_link(path: Path, document: Any, options: FileOptions) -> GraphBuilder:
    """Read what `networkx.node_link_data` returns, with its edges under "edges" or "links".

    The relation of an edge is found as by `read_xml`, or is its key. `columns` name its source, relation and target. A
    document that does not say whether it is directed is taken as directed.

    Raises:
        GraphLoadError: If the document is no such graph, or is undirected.
    """
    with _graph_errors(path):
        if not isinstance(document, dict) or "nodes" not in document or not document.keys() & {"edges", "links"}:
            raise InvalidArgumentError(
                "is JSON, but holds neither rows of facts, an array of them, nor a graph of nodes and edges."
            )
        edges = document["edges" if "edges" in document else "links"]
        source, _, target = options.columns or ("source", "", "target")
        _check_objects(document["nodes"], "nodes", ["id"])
        _check_objects(edges, "edges", [source, target])
        whole = {"graph": {}, **document, "edges": edges, "multigraph": True}
        graph = nx.node_link_graph(whole, directed=True, edges="edges", source=source, target=target)
        builder = _read_graph(graph, path, options, "node-link JSON")
    if "directed" not in document:
        builder.reading.understood["direction"] = "from source to target, as the file does not say"
    return builder


def _check_objects(rows: Any, name: str, keys: Sequence[str]) -> None:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidArgumentError(f'wanted a list of objects under "{name}".')
    if lacking := [row for row in rows if any(isinstance(row.get(key), dict | None) for key in keys)]:
        wanted = " and ".join(map(repr, keys))
        raise InvalidArgumentError(f"wanted a text or number under {wanted}, but got {lacking[0]!r:.200}.")


def _read_graph(graph: nx.DiGraph[Any], path: Path, options: FileOptions, format: str) -> GraphBuilder:
    """Read a graph of a file, whose relations are found by the names of the attributes of edges."""
    _check_directed(graph, str(path))
    if options.columns:
        relation = options.columns[1]
    else:
        relation = _relation_attribute(graph, has_keys=format == "node-link JSON")
    if format != "node-link JSON":
        for *_, data in graph.edges(data=True):
            data.pop("id", None)  # files of XML number their edges
    builder = read_networkx_rows(graph, relation, options.attributes, who=str(path), format=format)
    shown = "keys of edges" if relation in ("", "key") else f"edge attribute {relation!r}"
    builder.reading.understood["relations"] = shown
    return builder


@contextmanager
def _graph_errors(path: Path) -> Iterator[None]:
    """Raise whatever networkx and its XML parser raise as a GraphLoadError."""
    try:
        yield
    except GraphLoadError:
        raise
    except InvalidArgumentError as error:
        raise GraphLoadError(error.message.removeprefix(f"{path}: "), path) from error
    except (nx.NetworkXException, *_UNTYPED) as error:
        line = getattr(error, "lineno", None) or getattr(error, "position", (None,))[0]
        reason = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
        raise GraphLoadError(f"is no graph that can be read ({reason}).", path, line) from error


def _relation_attribute(graph: nx.Graph[Any], *, has_keys: bool) -> str:
    """Return the attribute that holds the relation of each edge, or an empty text if its key does.

    Args:
        graph: The graph.
        has_keys: Whether a key names a relation even if no two edges share it.
    """
    defaults = graph.graph.get("edge_default") or {}
    edges = [{**defaults, **data} for *_, data in graph.edges(data=True)]
    for name in RELATION_ATTRIBUTES:
        if all(isinstance(edge.get(name), str) and edge[name] for edge in edges):
            return name
    keys = [key for *_, key in graph.edges(keys=True)] if graph.is_multigraph() else [edge.get("id") for edge in edges]
    is_shared = len(set(keys)) < len(keys)  # an id of one edge is no relation
    if (has_keys or is_shared) and all(isinstance(key, str) for key in keys):
        return "" if graph.is_multigraph() else "id"
    raise InvalidArgumentError(
        f"an edge has no text as relation; its attributes are {[*map(str, edges[0])]}. Name the one that holds the "
        'relation: columns=("source", NAME, "target").'
    )
