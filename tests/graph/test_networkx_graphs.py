"""NetworkX graphs with attributes, in and out."""

from __future__ import annotations

from datetime import date
from typing import Any

import networkx as nx
import numpy as np
import pytest

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph


def film() -> Any:
    graph = nx.MultiDiGraph()
    graph.add_edge("Q1", "Q2", relation="director", weight=0.5, since=1999)
    graph.add_edge("Q1", "Q3", relation="writer", weight=1.0)
    graph.add_node("Q1", name="Her", type="film", released=date(2013, 12, 18), minutes=126, tags=["love", "future"])
    graph.add_node("Q2", label="Spike Jonze", name="Adam Spiegel", aliases="Spike", types=["person", "director"])
    graph.add_node("Q3", label="Jonze", good=np.bool_(True), score=np.float32(0.5), absent=None, empty="", nan=np.nan)
    return graph


def test_attributes_of_nodes_are_names_types_and_facts() -> None:
    graph = KnowledgeGraph.from_networkx(film())
    assert [*graph.triples("Q1")] == [
        ("Q1", "director", "Q2"),
        ("Q1", "writer", "Q3"),
        ("Q1", "released", "2013-12-18"),
        ("Q1", "minutes", "126"),
        ("Q1", "tags", "love"),
        ("Q1", "tags", "future"),
    ]
    assert [*graph.triples("Q3")] == [("Q3", "good", "true"), ("Q3", "score", "0.5")]
    assert (graph.label("Q1"), graph.types_of("Q1")) == ("Her", ["film"])
    assert (graph.label("Q2"), graph.aliases("Q2")) == ("Spike Jonze", ["Adam Spiegel", "Spike"])
    assert graph.types_of("Q2") == ["person", "director"]
    literals = ("2013-12-18", "126", "true", "0.5", "love", "Q1")
    assert [graph.datatype(key) for key in literals] == [
        "xsd:date", "xsd:integer", "xsd:boolean", "xsd:double", None, None,
    ]  # fmt: skip


def test_what_no_fact_can_hold_is_counted() -> None:
    source = film()
    source.add_edge("Q1", "Q4", relation="near", vector=[0.1] * 17)
    source.add_node("Q4", vector=[0.1] * 17, nested={"a": 1}, few=[0.1, 0.2], rows=[[1], [2]])
    reading = KnowledgeGraph.from_networkx(source).reading
    assert reading.format == "NetworkX"
    assert reading.left_out == {
        "edge attribute 'vector' with vectors": 1,
        "node attribute 'vector' with nested values or vectors": 1,
        "node attribute 'nested' with nested values or vectors": 1,
        "node attribute 'rows' with nested values or vectors": 1,
    }
    assert reading.understood["facts from node attributes"] == (
        "'tags' 2, 'few' 2, 'released' 1, 'minutes' 1, 'good' 1, 'score' 1"
    )
    assert reading.understood["names and types"].startswith("node attributes 'name' 2, 'label' 2")


def test_attributes_can_be_dropped() -> None:
    graph = KnowledgeGraph.from_networkx(film(), attributes="drop")
    assert (len(graph), graph.attribute_names) == (2, [])
    assert graph.reading.left_out["edge attribute 'weight' (attributes=\"facts\" keeps it)"] == 2
    assert graph.types_of("Q1") == ["film"]
    assert graph.reading.left_out["node attribute 'tags' (attributes=\"facts\" keeps it)"] == 1
    with pytest.raises(InvalidArgumentError, match='attributes is "facts" or "drop", but got \'keep\''):
        KnowledgeGraph.from_networkx(film(), attributes="keep")  # type: ignore[arg-type]


def test_many_names_of_attributes_are_counted_together() -> None:
    source = nx.DiGraph()
    source.add_edge("a", "b", relation="r", **{f"x{number}": 1 for number in range(30)})
    left_out = KnowledgeGraph.from_networkx(source, attributes="drop").reading.left_out
    assert len(left_out) == 21
    assert left_out['edge attribute of 10 other names (attributes="facts" keeps it)'] == 10


def test_attributes_of_edges_are_those_of_facts() -> None:
    graph = KnowledgeGraph.from_networkx(film())
    assert graph.attributes(("Q1", "director", "Q2")) == [{"weight": 0.5, "since": 1999}]
    assert graph.reading.understood["attributes of facts"] == "edge attributes 'weight' 2, 'since' 1"


def test_nodes_that_are_no_texts_are_told() -> None:
    source = nx.DiGraph()
    source.add_edge(1, (2, 3), relation="r")
    source.add_node(4, size=1)
    graph = KnowledgeGraph.from_networkx(source)
    assert [*graph.triples()] == [("1", "r", "(2, 3)"), ("4", "size", "1")]
    assert graph.reading.understood["nodes that are no texts"] == "3, each as Python writes it"
    assert graph.reading.understood["attribute values that are keys of nodes"] == "1, each taken as that node"


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"label": ["a", "b"]}, "the label of 'a' must be a text, but got"),
        ({"types": [{"a": 1}]}, "the types of 'a' must be a text or a list of texts"),
        ({"aliases": ["a", ""]}, "the aliases of 'a' must be"),
    ],
)
def test_names_that_are_none(attributes: dict[str, Any], words: str) -> None:
    source = nx.DiGraph()
    source.add_edge("a", "b", relation="r")
    source.add_node("a", **attributes)
    with pytest.raises(InvalidArgumentError, match=words):
        KnowledgeGraph.from_networkx(source)


def test_other_things_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"graph\.to_directed\(\), which makes two facts of each edge"):
        KnowledgeGraph.from_networkx(nx.Graph([("a", "b")]))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"wanted a networkx\.DiGraph or MultiDiGraph, but got \[1\]"):
        KnowledgeGraph.from_networkx([1])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the node '' is an empty text"):
        KnowledgeGraph.from_networkx(nx.DiGraph([("", "b")]))
    source = nx.DiGraph()
    source.add_edge("a", "b", kind="r")
    with pytest.raises(InvalidArgumentError, match=r"This edge has \['kind'\]"):
        KnowledgeGraph.from_networkx(source)


def test_ids_of_relations_and_sources_come_back() -> None:
    source = nx.MultiDiGraph()
    source.add_edge("Q1", "Q2", relation="director", relation_id="P57", sources=["a", "b"])
    source.add_edge("Q1", "Q3", relation="director", relation_id="dbo:director", sources={"not": "texts"})
    source.add_edge("Q1", "Q4", relation="writer", relation_id=58, sources="a")
    graph = KnowledgeGraph.from_networkx(source)
    assert [*graph.relations] == ["director (P57)", "director (dbo:director)", "writer"]
    assert graph.sources(("Q1", "director (P57)", "Q2")) == ["a", "b"]
    assert graph.sources(("Q1", "director (dbo:director)", "Q3")) == []
    assert graph.sources(("Q1", "writer", "Q4")) == ["a"]
    assert graph.attributes(("Q1", "director (dbo:director)", "Q3")) == [{"sources": '{"not": "texts"}'}]
    assert graph.attributes(("Q1", "writer", "Q4")) == [{"source": "a", "relation_id": 58}]
    source.remove_nodes_from(["Q3", "Q4"])
    again = KnowledgeGraph.from_networkx(KnowledgeGraph.from_networkx(source).to_networkx())
    assert [again.relation_id(name) for name in again.relations] == ["P57"]
    assert again.sources(("Q1", "director", "Q2")) == ["a", "b"]


def test_labels_that_many_nodes_share_are_types() -> None:
    """As property graphs often have them: the name of each node beside a label such as "Film"."""
    graph = nx.MultiDiGraph()
    for number, (kind, name) in enumerate([("Film", "Her"), ("Film", "Up"), ("Person", "Ann"), ("Person", "Bob")]):
        graph.add_node(number, label=kind, name=name)
    graph.add_edge(0, 2, relation="directed_by")
    read = KnowledgeGraph.from_networkx(graph)
    assert [(read.label(key), read.types_of(key)) for key in "0123"] == [
        ("Her", ["Film"]),
        ("Up", ["Film"]),
        ("Ann", ["Person"]),
        ("Bob", ["Person"]),
    ]
    assert "'label'" in read.reading.understood["types"]
