"""GraphML, GEXF and node-link JSON, good and hostile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import pytest

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.networkx_graphs import read_node_link, read_xml
from kg_retrievers.graph.readers.opening import Limits
from kg_retrievers.graph.readers.text_files import FileOptions

GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
GEXF = '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph {}>{}</graph></gexf>'

#: A megabyte of XML that becomes 3 GB.
BOMB = (
    '<?xml version="1.0"?><!-- a comment -->\n<!DOCTYPE lolz [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]><graphml>&i;</graphml>"
)


def film(kind: Any = nx.DiGraph) -> Any:
    graph = kind()
    graph.add_edge("Her", "Spike Jonze", relation="directed_by", weight=0.5)
    graph.add_edge("Her", "Amélie\n", relation="like <&\" it'")
    graph.add_node("Her", label="Her (film)", type="film", year=2013)
    return graph


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, format: str = "graphml", **options: Any) -> GraphBuilder:
    return read_xml(path, format, FileOptions(**options))


def read_document(document: object, **options: Any) -> GraphBuilder:
    return read_node_link(Path("g.json"), document, FileOptions(**options))


def facts(rows: GraphBuilder) -> set[tuple[str, str, str]]:
    return {(head, relation, tail) for head, relation, tail in rows.triples()}


FILM_FACTS = {("Her", "directed_by", "Spike Jonze"), ("Her", "like <&\" it'", "Amélie\n"), ("Her", "year", "2013")}


# --- what others write ---


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("format", ["graphml", "gexf"])
def test_what_networkx_writes(tmp_path: Path, format: Literal["graphml", "gexf"], kind: Any) -> None:
    graph, path = film(kind), tmp_path / f"film.{format}"
    (nx.write_gexf if format == "gexf" else nx.write_graphml)(graph, path)
    rows = read(path, format)
    assert facts(rows) == FILM_FACTS
    assert (rows.labels["Her"], rows.types["Her"]) == ("Her (film)", ["film"])
    assert rows.datatypes == {"2013": "xsd:integer"}
    assert rows.reading.format == {"graphml": "GraphML", "gexf": "GEXF"}[format]
    assert rows.reading.understood["relations"] == "edge attribute 'relation'"
    graph = KnowledgeGraph._from_builder(rows)
    assert graph.attributes(("Her", "directed_by", "Spike Jonze")) == [{"weight": 0.5}]
    assert "id" not in graph.attribute_names


def test_relation_is_the_first_attribute_that_every_edge_has(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", label="r", name="no", colour="red", type="x")
    graph.add_edge("b", "c", label="s", name="no", colour="red")
    path = tmp_path / "g.graphml"
    nx.write_graphml(graph, path)
    rows = read(path)
    assert facts(rows) == {("a", "r", "b"), ("b", "s", "c")}
    assert rows.reading.understood["relations"] == "edge attribute 'label'"
    told = read(path, columns=("source", "colour", "target"))
    assert facts(told) == {("a", "red", "b"), ("b", "red", "c")}
    with pytest.raises(GraphLoadError, match="has no text in its attribute 'kind'"):
        read(path, columns=("source", "kind", "target"))


def test_keys_of_edges_are_relations_where_edges_share_them(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    nx.write_graphml(nx.MultiDiGraph([("a", "b", "r", {}), ("a", "b", "s", {}), ("b", "c", "r", {})]), path)
    assert facts(read(path)) == {("a", "r", "b"), ("a", "s", "b"), ("b", "r", "c")}
    nx.write_graphml(nx.MultiDiGraph([("a", "b", "e0", {"w": 1}), ("a", "b", "e1", {"w": 1})]), path)
    with pytest.raises(GraphLoadError, match=r"its attributes are \['w'\].*columns=\(\"source\", NAME, \"target\"\)"):
        read(path)


def test_default_values_count(tmp_path: Path) -> None:
    content = """<key id="r" for="edge" attr.name="relation" attr.type="string"><default>knows</default></key>
        <key id="t" for="node" attr.name="type" attr.type="string"><default>person</default></key>
        <graph edgedefault="directed"><node id="a"/><node id="b"><data key="t">dog</data></node>
        <edge source="a" target="b"/></graph>"""
    rows = read(write(tmp_path, "g.graphml", GRAPHML.format(content)))
    assert facts(rows) == {("a", "knows", "b")}
    assert rows.types == {"a": ["person"], "b": ["dog"]}


def test_gephi(tmp_path: Path) -> None:
    nodes = '<nodes><node id="1" label="Her"/><node id="2" label="Spike Jonze"/></nodes>'
    edges = '<edges><edge id="0" source="1" target="2" label="directed_by" weight="2.0"/></edges>'
    path = write(tmp_path, "g.gexf", GEXF.format('defaultedgetype="directed"', nodes + edges))
    rows = read(path, "gexf")
    assert facts(rows) == {("1", "directed_by", "2")}
    assert rows.labels == {"1": "Her", "2": "Spike Jonze"}


def test_groups_of_yed_have_labels(tmp_path: Path) -> None:
    group = """<node id="{}" yfiles.foldertype="group"><data key="d6"><y:ProxyAutoBoundsNode>
        <y:Realizers active="0"><y:GroupNode><y:Geometry x="0.0" y="0.0"/><y:NodeLabel>{}</y:NodeLabel></y:GroupNode>
        <y:GroupNode><y:NodeLabel>Folder 2</y:NodeLabel></y:GroupNode></y:Realizers></y:ProxyAutoBoundsNode></data>
        <graph edgedefault="directed" id="{}:">{}</graph></node>"""
    node = '<node id="{}"><data key="d6"><y:ShapeNode><y:NodeLabel>{}</y:NodeLabel></y:ShapeNode></data></node>'
    edge = """<edge id="e0" source="n0" target="n1"><data key="d10"><y:PolyLineEdge><y:EdgeLabel>knows</y:EdgeLabel>
        </y:PolyLineEdge></data></edge>"""
    inner = group.format("n0::n0", "Team", "n0::n0", node.format("n0::n0::n0", "Ann"))
    content = f"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
        <key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d10" yfiles.type="edgegraphics"/>
        <graph edgedefault="directed" id="G">{group.format("n0", "Acme &amp; Co", "n0", inner)}
        {node.format("n1", "Bob")}{edge}</graph></graphml>"""
    rows = read(write(tmp_path, "yed.graphml", content))
    assert rows.labels == {"n0": "Acme & Co", "n0::n0": "Team", "n0::n0::n0": "Ann", "n1": "Bob"}
    assert ("n0", "knows", "n1") in facts(rows)


# --- node-link ---


@pytest.mark.parametrize("edges", ["links", "edges"])
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_node_link(kind: Any, edges: str) -> None:
    document = json.loads(json.dumps(nx.node_link_data(film(kind), edges=edges)))
    rows = read_document(document)
    assert facts(rows) == FILM_FACTS
    assert (rows.reading.format, rows.labels["Her"]) == ("node-link JSON", "Her (film)")
    assert KnowledgeGraph._from_builder(rows).attributes(("Her", "directed_by", "Spike Jonze")) == [{"weight": 0.5}]


def test_node_link_with_other_names_and_ids() -> None:
    document = {
        "nodes": [{"id": 1, "label": "Her"}, {"id": [2, "x"]}, {"id": "alone"}],
        "links": [{"from": 1, "to": [2, "x"], "how": "by"}, {"from": 1, "to": 3, "how": "by"}],
    }
    rows = read_document(document, columns=("from", "how", "to"))
    assert facts(rows) == {("1", "by", "(2, 'x')"), ("1", "by", "3")}
    assert set(rows.types) == {"(2, 'x')", "alone", "3"}
    assert rows.reading.understood["direction"] == "from source to target, as the file does not say"
    numbered = {"nodes": [], "edges": [{"source": "a", "target": "b", "key": "r", "id": 7}]}
    graph = KnowledgeGraph._from_builder(read_document(numbered))
    assert graph.attributes(("a", "r", "b")) == [{"id": 7}]
    keyed = {"nodes": [], "edges": [{"source": "a", "target": "b", "key": "r"}]}
    assert facts(read_document(keyed)) == {("a", "r", "b")}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"nodes": 3, "links": []}, 'wanted a list of objects under "nodes"'),
        ({"nodes": [], "links": [3]}, 'wanted a list of objects under "edges"'),
        ({"nodes": [], "links": [], "directed": False}, r"got an undirected graph.*graph\.to_directed\(\)"),
        ({"nodes": [{}], "links": []}, "wanted a text or number under 'id'"),
        ({"nodes": [], "links": [{"source": "a"}]}, "wanted a text or number under 'source' and 'target'"),
        ({"nodes": [], "links": [{"source": "a", "target": "b", "w": 1}]}, r"its attributes are \['w'\]"),
        ({"nodes": [{"id": 1}, {"id": "1"}], "links": []}, "two nodes are both written '1'"),
    ],
)
def test_what_is_no_node_link(document: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphLoadError, match=words):
        read_document(document)


@pytest.mark.parametrize("document", ["{}", '{"nodes": []}', '"nodes"', "null", '{"links": []}', '{\n"nodes": [1]}'])
def test_documents_that_are_no_graph(tmp_path: Path, document: str) -> None:
    path = write(tmp_path, "g.json", document)
    with pytest.raises(GraphLoadError) as caught:
        KnowledgeGraph.from_file(path, format="node-link")
    assert caught.match("is JSON, but holds neither rows of facts, an array of them, nor a graph of nodes and edges")


@pytest.mark.parametrize("indent", [None, 1])
def test_a_file_of_nodes_and_links_is_told_by_its_content(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path, "g.json", json.dumps(nx.node_link_data(film(), edges="links"), indent=indent))
    assert {*map(tuple, KnowledgeGraph.from_file(path).triples())} == FILM_FACTS


@pytest.mark.parametrize("indent", [None, 1])
def test_rows_that_hold_an_id_of_json_ld_are_rows(tmp_path: Path, indent: int | None) -> None:
    row = {"head": "a", "relation": "r", "tail": "b", "note": {"@id": "x"}}
    path = write(tmp_path, "g.json", json.dumps([row], indent=indent))
    assert KnowledgeGraph.from_file(path).reading.format == "JSON array"


# --- hostile ---


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("format", ["graphml", "gexf"])
def test_entity_bombs(tmp_path: Path, format: Literal["graphml", "gexf"], encoding: str) -> None:
    path = write(tmp_path, f"bomb.{format}", BOMB.encode(encoding))
    with pytest.raises(GraphLoadError, match="the entity 'b' is declared with more than a plain text"):
        read(path, format)


DEEP = 50_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no element found"),
        ("no xml", "no well-formed XML"),
        ("<a", "no well-formed XML"),
        ("<graphml/>", "no graph that can be read"),
        ("<a>" * DEEP + "</a>" * DEEP, "nested more than 256 deep"),
        (GRAPHML.format("<graph><node id='a'/></graph>"), "an undirected graph"),
        (GRAPHML.format("<graph edgedefault='directed'><hyperedge/></graph>"), "hyperedges"),
        (
            GRAPHML.format("<graph edgedefault='directed'><edge source='a' target='b'><data key='x'/></edge></graph>"),
            "x",
        ),
        (GRAPHML.format("<key id='x' attr.name='x' attr.type='matrix'/><graph edgedefault='directed'/>"), "KeyError"),
        (GRAPHML.format("<graph edgedefault='directed'><edge source='a' target='b'/></graph>"), "no text as relation"),
        (GEXF.format("", ""), "an undirected graph"),
        (b"\xff\xfe\x00\xd8", "no well-formed XML"),
        ("<graphml>\0</graphml>", "no well-formed XML"),
    ],
    ids=[*map(str, range(13))],
)
@pytest.mark.parametrize("format", ["graphml", "gexf"])
def test_what_is_no_graph(tmp_path: Path, format: Literal["graphml", "gexf"], content: Any, words: str) -> None:
    path = write(tmp_path, "g.xml", content)
    with pytest.raises(GraphLoadError) as caught:
        read(path, format)
    assert str(caught.value).startswith(str(path))
    if format == "graphml" and not (isinstance(content, str) and "gexf" in content):
        assert caught.match(words)


def test_huge_files(tmp_path: Path) -> None:
    path = tmp_path / "film.graphml"
    nx.write_graphml(film(), path)
    size = path.stat().st_size
    assert facts(read(path, limits=Limits(document_bytes=size))) == FILM_FACTS
    with pytest.raises(GraphLoadError, match=f"a document of more than {size - 1:,} bytes"):
        read(path, limits=Limits(document_bytes=size - 1))
    comment = write(tmp_path, "comment.graphml", b"<!-- " + b" " * 1_000_000 + b"--><graphml/>")
    with pytest.raises(GraphLoadError, match="a document of more than 100,000 bytes"):
        read(comment, limits=Limits(document_bytes=100_000))
    packed = write(tmp_path, "film.graphml.gz", gzip.compress(comment.read_bytes()))
    with pytest.raises(GraphLoadError, match="becomes more than 1,000 bytes"):
        read(packed, limits=Limits(unpacked_bytes=1_000))
