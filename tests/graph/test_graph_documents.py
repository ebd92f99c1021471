"""Documents of nodes and relationships, as LangChain's packages make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load.serializable import Serializable
from pydantic import Field

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph


class Node(Serializable):  # as in langchain_community.graphs.graph_document, which is archived
    id: str | int
    type: str = "Node"
    properties: dict[str, Any] = Field(default_factory=dict)


class Relationship(Serializable):
    source: Node
    target: Node
    type: str
    properties: dict[str, Any] = Field(default_factory=dict)


class GraphDocument(Serializable):
    nodes: list[Node]
    relationships: list[Relationship]
    source: Document | None = None


HER = Node(id="Her", type="Film", properties={"year": 2013, "name": "Her (film)", "id": "Her"})
JONZE = Node(id="Spike Jonze", type="Person")
DIRECTED = Relationship(source=HER, target=JONZE, type="DIRECTED_BY", properties={"confidence": 0.9})


def document(source: Document | None = None, **changes: Any) -> GraphDocument:
    return GraphDocument(**{"nodes": [HER, JONZE], "relationships": [DIRECTED], "source": source, **changes})


def test_nodes_relationships_and_sources() -> None:
    first = Document("Her is by Spike Jonze.", metadata={"source": "films.txt"})
    graph = KnowledgeGraph.from_graph_documents([document(first), document(Document("Again.", id="d2"))])
    assert [*graph.triples()] == [("Her", "DIRECTED_BY", "Spike Jonze"), ("Her", "year", "2013")]
    assert graph.label("Her") == "Her (film)"
    assert graph.types_of("Her") == ["Film"]
    assert graph.types_of("Spike Jonze") == ["Person"]
    assert graph.sources(("Her", "DIRECTED_BY", "Spike Jonze")) == ["films.txt", "d2"]
    assert graph.reading.format == "GraphDocument"
    assert graph.reading.understood["sources"] == "metadata 'source' 1, document id 1"
    confidences = [{"source": "films.txt", "confidence": 0.9}, {"source": "d2", "confidence": 0.9}]
    assert graph.attributes(("Her", "DIRECTED_BY", "Spike Jonze")) == confidences
    assert graph.reading.left_out == {}


def test_source_is_chosen() -> None:
    where = Document("Text", id="d1", metadata={"page": 3, "id": "m1"})
    triple = ("Her", "DIRECTED_BY", "Spike Jonze")
    for source, found in ((None, ["d1"]), ("page", ["3"]), ("id", ["m1"]), ("missing", [])):
        assert KnowledgeGraph.from_graph_documents([document(where)], source=source).sources(triple) == found
    assert KnowledgeGraph.from_graph_documents([document()]).source_names == []


def test_a_type_that_nobody_gave_is_none() -> None:
    plain = document(nodes=[Node(id=1), Node(id="alone", properties={"types": ["ghost"]})], relationships=[])
    graph = KnowledgeGraph.from_graph_documents([plain])
    assert {key: graph.types_of(key) for key in graph.entities} == {"1": [], "alone": ["ghost"]}
    assert graph.reading.left_out == {"type 'Node' (given to nodes that have none)": 2}


def test_ends_that_are_no_nodes_of_the_document_are_described() -> None:
    graph = KnowledgeGraph.from_graph_documents([document(nodes=[])])
    assert graph.types_of("Spike Jonze") == ["Person"]


def test_nodes_with_one_id_are_one_entity() -> None:
    nodes = [Node(id="Her", type="Film", properties={"year": 2013}), Node(id="Her", type="Drama"), JONZE]
    graph = KnowledgeGraph.from_graph_documents([document(nodes=nodes)])
    assert graph.types_of("Her") == ["Film", "Drama"]
    assert ("Her", "year", "2013") in graph


@dataclass
class Neo4jNode:  # as in neo4j_graphrag.experimental.components.types
    id: str
    label: str
    properties: dict[str, Any] = field(default_factory=dict)


def test_other_packages() -> None:
    graph = KnowledgeGraph.from_graph_documents(
        [
            SimpleNamespace(
                nodes=[Neo4jNode("0", "Film", {"name": "Her"}), Neo4jNode("1", "Person", {"name": "Spike Jonze"})],
                relationships=[SimpleNamespace(start_node_id="0", end_node_id="1", type="DIRECTED_BY")],
            ),
            {"nodes": [{"id": "0", "type": "Movie"}], "relationships": [{"source": "0", "target": "2", "type": "r"}]},
        ]
    )
    assert [*graph.triples()] == [("0", "DIRECTED_BY", "1"), ("0", "r", "2")]
    assert (graph.label("0"), graph.types_of("0")) == ("Her", ["Film", "Movie"])


def test_properties_can_be_dropped() -> None:
    graph = KnowledgeGraph.from_graph_documents([document()], attributes="drop")
    assert len(graph) == 1
    assert graph.reading.left_out["node attribute 'year' (attributes=\"facts\" keeps it)"] == 1


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ([Document("x")], r"wanted documents with `nodes` and `relationships`, .* position 1"),
        (document(), "A single GraphDocument goes into a list"),
        ([{"nodes": [{"type": "x"}], "relationships": []}], "a node has no id"),
        ([{"nodes": [], "relationships": [{"source": "a", "target": "b"}]}], "no text as type, but None"),
        ([{"nodes": [], "relationships": [{"source": "a", "type": "b"}]}], "a node has no id: None"),
    ],
)
def test_what_is_no_graph_document(documents: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        KnowledgeGraph.from_graph_documents(documents)
