"""Graphs of torch-geometric, back in."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from kg_retrievers import to_pyg
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.testing import tiny_graph

EDGES = torch.tensor([[0, 0, 2], [1, 2, 2]])


def test_what_to_pyg_wrote() -> None:
    graph = tiny_graph()
    again = KnowledgeGraph.from_pyg(to_pyg(graph))
    assert again.to_triples() == graph.to_triples()
    assert [*again.entities] == [*graph.entities]
    assert [again.label(key) for key in again.entities] == [graph.label(key) for key in graph.entities]
    assert (again.reading.format, again.reading.left_out) == ("PyG", {})


def test_ids_are_names_where_there_are_none() -> None:
    data = Data(edge_index=EDGES, edge_type=torch.tensor([0, 1, 0]), num_nodes=4, x=torch.zeros(4, 2), y=torch.zeros(4))
    graph = KnowledgeGraph.from_pyg(data)
    assert graph.to_triples() == [("0", "0", "1"), ("0", "1", "2"), ("2", "0", "2")]
    assert [*graph.entities] == ["0", "1", "2", "3"]
    assert graph.reading.understood == {
        "keys of nodes": "their positions: there are no `entities`",
        "relations": "ids of edge_type: there are no `relations`",
    }
    assert [*graph.reading.left_out.values()] == [4, 4]


def test_names_are_handed_in() -> None:
    data = Data(edge_index=EDGES, edge_type=torch.tensor([0, 1, 0]), num_nodes=3)
    graph = KnowledgeGraph.from_pyg(data, entities=["Her", "Jonze", "Self"], relations=["by", "with"])
    assert graph.to_triples() == [("Her", "by", "Jonze"), ("Her", "with", "Self"), ("Self", "by", "Self")]


def test_several_kinds_of_nodes() -> None:
    data = HeteroData()
    data["film"].entities = ["Her", "Alien"]
    data["film"].labels = ["Her (film)", "Alien"]
    data["person"].num_nodes = 3
    data["film"].x = torch.zeros(2, 5)
    data["film", "by", "person"].edge_index = torch.tensor([[0, 1], [2, 0]])
    data["person", "knows", "person"].edge_index = torch.tensor([[0], [1]])
    graph = KnowledgeGraph.from_pyg(data)
    assert graph.to_triples() == [
        ("Her", "by", "person/2"),
        ("Alien", "by", "person/0"),
        ("person/0", "knows", "person/1"),
    ]
    assert (graph.types_of("Her"), graph.types_of("person/1"), graph.label("Her")) == (
        ["film"],
        ["person"],
        "Her (film)",
    )
    assert graph.reading.understood == {"keys of nodes person/*": "their positions: there are no `entities`"}
    assert graph.reading.left_out == {"film.x (a graph holds no vectors and no labels of classes)": 2}
    with pytest.raises(InvalidArgumentError, match="entities and relations are for Data"):
        KnowledgeGraph.from_pyg(data, relations=["r"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "wanted a Data or HeteroData with an edge_index"),
        ({"edge_index": EDGES}, "the edges have no relations"),
        ({"edge_index": EDGES[:1]}, r"its shape is \(1, 3\)"),
        ({"edge_index": EDGES / 2, "relations": ["r"] * 3}, "it holds float32"),
        ({"edge_index": EDGES - 1}, "0 or more"),
        ({"edge_index": EDGES, "edge_type": torch.tensor([0])}, "there are 3 edges, but edge_type has 1 ids"),
        ({"edge_index": EDGES, "edge_type": torch.tensor([0, 1, 2]), "relations": ["a"]}, "but there are 1 relations"),
        ({"edge_index": EDGES, "relations": ["r"] * 3, "entities": ["a", "a", "b"]}, "2 of them distinct"),
        ({"edge_index": EDGES, "relations": ["r"] * 3, "entities": ["a"]}, "wanted 3 keys"),
        ({"edge_index": torch.ones(2, 1, requires_grad=True), "relations": ["r"]}, r"Hand in data\.cpu\(\)"),
    ],
)
def test_what_is_no_graph(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        KnowledgeGraph.from_pyg(Data(**fields))
