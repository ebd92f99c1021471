"""From directed NetworkX graphs, GraphML, GEXF and node-link JSON to the rows of a knowledge graph."""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

import networkx as nx

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.opening import Limits, read_document
from kg_retrievers.graph.readers.text_files import Attributes

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


#: The attributes of an edge that may hold its relation, the first that every edge has.
RELATION_ATTRIBUTES = ("relation", "predicate", "relationship", "label", "type", "name")

#: What the readers of networkx raise where a file is no graph, beside their own errors.
_UNTYPED = (ArithmeticError, AttributeError, LookupError, RuntimeError, SyntaxError, TypeError, ValueError)

_PREFIX = 1 << 16


def read_xml_rows(
    path: str | os.PathLike[str],
    format: Literal["graphml", "gexf"],
    *,
    columns: Sequence[str] | None = None,
    attributes: Attributes = "facts",
    limits: Limits | None = None,
) -> GraphBuilder:
    """Read GraphML or GEXF through networkx; see `read_networkx_rows`.

    Fit for up to about a million edges: the file is read as a whole, in about twenty times its size.

    The relation of an edge is the first of "relation", "predicate", "relationship", "label", "type" and "name" that
    every edge has, else its key where some edges share a key. A file that declares a document type is refused: it may
    define entities that grow without end.

    Args:
        path: The file, compressed or not.
        format: Which of the two.
        columns: Three names; the second is the attribute of an edge that holds its relation.
        attributes: Whether other attributes of nodes become facts.
        limits: What the file may hold.

    Raises:
        GraphLoadError: If the file is no such graph, is undirected, or exceeds a limit, as `document_bytes`.
    """
    path, limits = Path(path), limits or Limits()
    with graph_errors(path):
        content = read_document(path, limits)
        _check_prefix(content, path)
        whole = io.BytesIO(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ports of GraphML, which hold nothing of a fact
            graph = nx.read_gexf(whole) if format == "gexf" else nx.read_graphml(whole, edge_key_type=str)
        builder = _read_graph(graph, columns, attributes, str(path))
    builder.reading.format = {"graphml": "GraphML", "gexf": "GEXF"}[format]
    return builder


def _read_graph(
    graph: nx.DiGraph[Any], columns: Sequence[str] | None, attributes: Attributes, who: str, *, has_keys: bool = False
) -> GraphBuilder:
    """Read a graph of a file, whose relations are found by the names of the attributes of edges."""
    if not graph.is_directed():
        raise InvalidArgumentError(undirected_message(who))
    relation = columns[1] if columns else _relation_attribute(graph, has_keys=has_keys)
    builder = read_networkx_rows(graph, relation, attributes, who=who)
    shown = "keys of edges" if relation in ("", "key") else f"edge attribute {relation!r}"
    builder.reading.understood["relations"] = shown
    return builder


def is_node_link(document: object) -> bool:
    """Whether a JSON document is a graph of nodes and links.

    Example:
        >>> is_node_link({"nodes": [], "links": []})
        True
    """
    return isinstance(document, Mapping) and "nodes" in document and ("links" in document or "edges" in document)


def read_node_link_rows(
    document: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    attributes: Attributes = "facts",
    who: str = "node-link JSON",
) -> GraphBuilder:
    """Read what `networkx.node_link_data` returns, with its edges under "edges" or "links".

    The relation of an edge is the first of "relation", "predicate", "relationship", "label", "type" and "name" that
    every edge has, else its "key". A document that does not say whether it is directed is taken as directed.

    Args:
        document: The JSON object.
        columns: What an edge calls its source, its relation and its target.
        attributes: Whether other attributes of nodes become facts.
        who: Begins the messages of errors.

    Raises:
        InvalidArgumentError: If it is no such document, or is undirected.

    Example:
        >>> edge = {"source": "Her", "target": "Spike Jonze", "relation": "directed_by"}
        >>> [*read_node_link_rows({"nodes": [{"id": "Her"}], "edges": [edge]}).triples()]
        [Triple(head='Her', relation='directed_by', tail='Spike Jonze')]
    """
    nodes, edges = _list_of_objects(document, ("nodes",), who), _list_of_objects(document, ("edges", "links"), who)
    source, _, target = columns or ("source", "", "target")
    for rows, names in ((nodes, ["id"]), (edges, [source, target])):
        if lacking := [row for row in rows if any(isinstance(row.get(name), dict | None) for name in names)]:
            wanted = " and ".join(map(repr, names))
            raise InvalidArgumentError(
                f"{who}: wanted a text or number under {wanted}, but got {dict(lacking[0])!r:.200}."
            )
    whole = {"graph": {}, **document, "edges": edges, "multigraph": True}
    graph = nx.node_link_graph(whole, directed=True, edges="edges", source=source, target=target)
    graph = graph if document.get("directed", True) else graph.to_undirected()
    builder = _read_graph(graph, columns, attributes, who, has_keys=True)
    builder.reading.format = "node-link JSON"
    if "directed" not in document:
        builder.reading.understood["direction"] = "from source to target, as the file does not say"
    return builder


@contextmanager
def graph_errors(path: Path) -> Iterator[None]:
    """Raise whatever networkx and its XML parser raise as a GraphLoadError."""
    try:
        yield
    except GraphLoadError:
        raise
    except InvalidArgumentError as error:
        raise GraphLoadError(
            error.message.removeprefix(f"{path}: "),
            path,
            hint_python=error.hint_python,
            hint_shell=error.hint_shell,
        ) from error
    except (nx.NetworkXException, expat.ExpatError, *_UNTYPED) as error:
        line = getattr(error, "lineno", None) or getattr(error, "position", (None,))[0]
        reason = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
        raise GraphLoadError(f"is no graph that can be read ({reason}).", path, line) from error


def _check_prefix(content: bytes, path: Path) -> None:
    """Check that no document type is declared before the first element, behind which none can be.

    Raises:
        GraphLoadError: If one is.
    """
    parser, begun = expat.ParserCreate(), []

    def refuse(*_: object) -> None:
        raise GraphLoadError(
            "declares a document type (<!DOCTYPE ...>), which may define entities that grow without end. Remove the "
            "declaration.",
            path,
            parser.CurrentLineNumber,
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda *_: begun.append(True)
    for start in range(0, len(content), _PREFIX):
        parser.Parse(content[start : start + _PREFIX])
        if begun:
            return


def _relation_attribute(graph: nx.DiGraph[Any], has_keys: bool) -> str:
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
    if (has_keys or len(set(keys)) < len(keys)) and all(
        isinstance(key, str) for key in keys
    ):  # an id of one edge is no relation
        return "" if graph.is_multigraph() else "id"
    raise InvalidArgumentError(
        f"an edge has no text as relation; its attributes are {[*map(str, edges[0])]}. Name the one that holds the "
        'relation: columns=("source", NAME, "target").'
    )


def _list_of_objects(document: Mapping[str, Any], names: Sequence[str], who: str) -> list[Mapping[str, Any]]:
    found = next((document[name] for name in names if name in document), None)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise InvalidArgumentError(f'{who}: wanted a list of objects under "{names[0]}".')
    return found
