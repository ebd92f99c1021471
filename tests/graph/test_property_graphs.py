"""Property graphs of LlamaIndex."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import MockEmbedding, PropertyGraphIndex
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, TextNode, TransformComponent

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph

HER = {"name": 'Her "2013"', "label": "FILM", "properties": {"year": 2013}}
JONZE = {"name": "Spike Jonze", "label": "entity"}


class FilmExtractor(TransformComponent):
    """Finds the same two entities in each chunk, and gives them its metadata as LlamaIndex's own extractors do."""

    def __call__(self, nodes: Any, **_: Any) -> list[BaseNode]:
        for node in nodes:
            about = dict(node.metadata)
            her, jonze = (
                EntityNode(**{**one, "properties": {**one.get("properties", {}), **about}}) for one in (HER, JONZE)
            )
            relation = Relation(
                label="DIRECTED_BY", source_id=her.id, target_id=jonze.id, properties={**about, "sure": 1}
            )
            node.metadata.update(nodes=[her, jonze], relations=[relation])
        return list(nodes)


def index() -> PropertyGraphIndex:
    return PropertyGraphIndex(
        nodes=[TextNode(text="Her is by Spike Jonze.", id_="chunk 1", metadata={"file_name": "films.txt"})],
        llm=MockLLM(),
        embed_model=MockEmbedding(4),
        kg_extractors=[FilmExtractor()],
        use_async=False,
    )


def test_an_index() -> None:
    graph = KnowledgeGraph.from_property_graph(index())
    her = "Her  2013 "  # LlamaIndex puts spaces in place of quotes
    assert [*graph.triples()] == [(her, "DIRECTED_BY", "Spike Jonze"), (her, "year", "2013")]
    assert (graph.label(her), graph.types_of(her), graph.types_of("Spike Jonze")) == ('Her "2013"', ["FILM"], [])
    assert graph.sources((her, "DIRECTED_BY", "Spike Jonze")) == ["chunk 1"]
    assert graph.datatype("2013") == "xsd:integer"
    assert graph.reading.format == "LlamaIndex property graph"
    assert graph.reading.left_out == {
        "text chunks": 1,
        "properties that repeat those of a text chunk": 3,
        "label 'entity' (given to nodes that have none)": 1,
    }


def store() -> SimplePropertyGraphStore:
    found = SimplePropertyGraphStore()
    found.upsert_nodes([EntityNode(name="Alien", properties={"name": "Alien"}), EntityNode(name="alone", label="x")])
    found.upsert_llama_nodes([TextNode(text="A text.", id_="c")])
    names = [("Alien", "b"), ("Alien", "a"), ("b", "a")]
    found.upsert_relations([Relation(label="r", source_id=head, target_id=tail) for head, tail in names])
    found.upsert_relations([Relation(label="MENTIONS", source_id="c", target_id="Alien")])
    return found


def test_a_store() -> None:
    graph = KnowledgeGraph.from_property_graph(store())
    assert [*graph.triples()] == [("Alien", "r", "a"), ("Alien", "r", "b"), ("b", "r", "a")]
    assert [*graph.entities] == ["Alien", "a", "b", "alone"]
    assert graph.types_of("alone") == ["x"]
    assert graph.source_names == []
    assert graph.reading.left_out["relations to text chunks"] == 1


class ServerStore:
    """A store that has no graph in memory, as the ones of servers."""

    def __init__(self) -> None:
        self._store = store()

    def get(self, properties: Any = None, ids: Any = None) -> Any:
        return self._store.get(properties, ids)

    def get_triplets(self, entity_names: Any = None, ids: Any = None) -> Any:
        return self._store.get_triplets(entity_names=entity_names, ids=ids)


def test_a_store_on_a_server() -> None:
    graph = KnowledgeGraph.from_property_graph(ServerStore())
    assert sorted([*graph.triples()]) == sorted([*KnowledgeGraph.from_property_graph(store()).triples()])


def test_what_is_no_store() -> None:
    with pytest.raises(InvalidArgumentError, match="wanted a PropertyGraphIndex or PropertyGraphStore of LlamaIndex"):
        KnowledgeGraph.from_property_graph(SimpleNamespace(graph=3))
