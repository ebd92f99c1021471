"""Graphs and evidence as torch-geometric graphs: nothing is lost, and every number is where it belongs."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from torch_geometric.data import Batch, Data

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, StaleIndexError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Path, Triple
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.training.pyg import to_pyg

FACTS = [("a", "r", "b"), ("a", "s", "b"), ("b", "r", "b"), ("c", "r", "a")]
GRAPH = KnowledgeGraph.from_triples(FACTS, labels={"a": "Ä", "alone": "日本"})
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings(16))


def triples_of(data: Data) -> list[tuple[str, str, str]]:
    """Read the triples back."""
    heads, tails = data.edge_index.tolist()
    return [
        (data.entities[head], relation, data.entities[tail])
        for head, relation, tail in zip(heads, data.relations, tails, strict=True)
    ]


# --- a graph ----------------------------------------------------------------------------------------------------------


def test_a_graph_by_hand() -> None:
    data = to_pyg(GRAPH, INDEX)
    assert data.validate()
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 1, 1, 0]]  # parallel edges, a self-loop
    assert data.edge_type.tolist() == [0, 1, 0, 0]
    assert (data.entities, data.labels) == (["a", "b", "c", "alone"], ["Ä", "b", "c", "日本"])
    assert data.relations == ["r", "s", "r", "r"]
    assert data.num_nodes == 4
    assert data.has_isolated_nodes()
    assert {data[name].dtype for name in ("edge_index", "edge_type")} == {torch.int64}
    assert {data[name].dtype for name in ("x", "edge_attr")} == {torch.float32}
    assert np.array_equal(data.x, INDEX.entity_vectors(np.arange(4)))
    assert np.array_equal(data.x, INDEX.embed(["Ä", "b", "c", "日本"]))
    assert np.array_equal(data.edge_attr, INDEX.relation_vectors[[0, 1, 0, 0]])
    assert data.edge_index.is_contiguous()


def test_a_graph_without_vectors() -> None:
    data = to_pyg(GRAPH)
    assert set(data.keys()) == {"edge_index", "edge_type", "num_nodes", "entities", "labels", "relations"}
    assert triples_of(data) == FACTS


def test_an_empty_graph() -> None:
    graph = KnowledgeGraph.from_triples([])
    for data in (to_pyg(graph), to_pyg(graph, GraphIndex.build(graph, HashedEmbeddings(16)))):
        assert (data.num_nodes, data.num_edges, data.edge_index.shape) == (0, 0, (2, 0))
        assert (data.entities, data.relations) == ([], [])


def test_vectors_are_no_view_of_the_index(tmp_path: FilePath) -> None:
    GraphIndex.build(GRAPH, HashedEmbeddings(16), tmp_path)
    index = GraphIndex.open(tmp_path, HashedEmbeddings(16))
    data = to_pyg(index.graph, index)
    before = index.relation_vectors.copy()
    for name in ("x", "edge_attr", "edge_index", "edge_type"):
        data[name] += 1
    assert np.array_equal(index.relation_vectors, before)
    assert index.graph.fingerprint == GRAPH.fingerprint


def test_an_index_of_another_graph_is_refused() -> None:
    with pytest.raises(StaleIndexError, match="an index of KnowledgeGraph"):
        to_pyg(GRAPH.with_changes(removed=FACTS[:1]), INDEX)
    assert to_pyg(KnowledgeGraph.from_triples(FACTS, labels={"a": "Ä", "alone": "日本"}), INDEX).num_nodes == 4


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_evidence_by_hand() -> None:
    evidence = Evidence((Triple("c", "r", "a"), Triple("a", "s", "b")), score=1.0, answers=("alone",))
    data = to_pyg(evidence, INDEX)
    assert (data.entities, data.labels, data.relations) == (["c", "a", "b"], ["c", "Ä", "b"], ["r", "s"])
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert data.edge_type.tolist() == [0, 1]  # numbers of the graph's relations
    assert np.array_equal(data.x, INDEX.entity_vectors(np.array([2, 0, 1])))
    assert np.array_equal(data.edge_attr, INDEX.relation_vectors)
    assert to_pyg(Evidence((Triple("a", "s", "b"),), score=1.0), INDEX).edge_type.tolist() == [1]


def test_documents_are_one_graph() -> None:
    first = Document("", metadata={"triples": [["c", "r", "a"]], "labels": {"c": "C", "a": "Ä"}})
    second = Document("", metadata={"triples": [["c", "r", "a"], ["a", "s", "b"]], "labels": {"a": "other"}})
    data = to_pyg([first, second])
    assert triples_of(data) == [("c", "r", "a"), ("a", "s", "b")]
    assert data.labels == ["C", "Ä", "b"]  # the first Document's where both give one
    assert set(data.keys()) == {"edge_index", "num_nodes", "entities", "labels", "relations"}
    assert to_pyg(first).labels == ["C", "Ä"]
    assert triples_of(to_pyg(Path.along("c", [Triple("c", "r", "a")]))) == [("c", "r", "a")]


@pytest.mark.parametrize("nothing", [[], Evidence((), score=0.0), Document("", metadata={"triples": []})])
def test_no_evidence(nothing: list[Document] | Evidence | Document) -> None:
    data = to_pyg(nothing, INDEX)
    assert (data.num_nodes, data.x.shape, data.edge_attr.shape, data.edge_index.shape) == (0, (0, 16), (0, 16), (2, 0))
    assert (to_pyg(nothing).num_nodes, to_pyg(nothing).edge_index.dtype) == (0, torch.int64)


def test_graphs_of_several_questions_make_a_batch() -> None:
    found = [to_pyg(Evidence((Triple(*fact),), score=0.0), INDEX) for fact in FACTS]
    batch = Batch.from_data_list([*found, to_pyg([], INDEX)])
    assert batch.num_graphs == 5
    assert batch.batch.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert batch.edge_index.tolist() == [[0, 2, 4, 5], [1, 3, 4, 6]]
    assert batch.entities == [["a", "b"], ["a", "b"], ["b"], ["c", "a"], []]
    assert triples_of(batch[3]) == FACTS[3:]


@pytest.mark.parametrize(
    "wrong",
    ["a text", 5, None, [("a", "r", "b")], Document(""), Document("", metadata={"triples": [["a", "b"]]})],
)
def test_what_is_no_evidence_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgumentError, match="wanted Evidence, a Path, or a Document"):
        to_pyg(wrong, INDEX)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fact", "message"), [(("a", "r", "Zed"), "no entity 'Zed'"), (("a", "made_by", "b"), "no relation 'made_by'")]
)
def test_evidence_of_another_graph_is_refused(fact: tuple[str, str, str], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        to_pyg(Evidence((Triple(*fact),), score=0.0), INDEX)


# --- any graph --------------------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "é", "日本", "$", "a b", "A"])


@given(st.lists(st.tuples(names, st.sampled_from(["r", "s", "é_x"]), names), max_size=12), st.lists(names, max_size=3))
def test_every_graph_comes_back(facts: list[tuple[str, str, str]], declared: list[str]) -> None:
    graph = KnowledgeGraph.from_triples(facts, labels={key: f"label of {key}" for key in declared})
    data = to_pyg(graph)
    assert data.validate()
    again = KnowledgeGraph.from_triples(triples_of(data), labels=dict(zip(data.entities, data.labels, strict=True)))
    assert {*again.triples()} == {*graph.triples()}  # entities are numbered by their first triples, which are sorted
    assert {key: again.label(key) for key in again.entities} == {key: graph.label(key) for key in graph.entities}
    shown = to_pyg(Evidence(tuple(Triple(*fact) for fact in facts), score=0.0))
    assert triples_of(shown) == list(dict.fromkeys(facts))
    assert shown.entities == list(dict.fromkeys(key for head, _, tail in facts for key in (head, tail)))


# --- without the extra ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["torch", "torch_geometric.data"])
def test_without_the_extra_it_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for what in (GRAPH, []):
        with pytest.raises(MissingExtraError, match=r"to_pyg needs an optional package\. Run: pip .*\[graph-prompt\]"):
            to_pyg(what)


def test_what_is_no_index() -> None:
    for what in (GRAPH, []):
        with pytest.raises(InvalidArgumentError, match="to_pyg: wanted an index"):
            to_pyg(what, HashedEmbeddings(8))  # type: ignore[arg-type]
