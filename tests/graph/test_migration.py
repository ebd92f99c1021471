"""Folders of earlier formats: converted when they are opened, and migrated in place."""

from __future__ import annotations

import json
import logging
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from kg_retrievers.errors import GraphLoadError, IndexLoadError
from kg_retrievers.graph import GraphBuilder, KnowledgeGraph
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.migration import migrate
from kg_retrievers.graph.silent_columns import with_silent
from kg_retrievers.graph.storage.manifest import MANIFEST
from kg_retrievers.graph.storage.parts import Part, open_parts, save_parts, verify
from kg_retrievers.index import GraphIndex, default_embeddings
from kg_retrievers.testing import tiny_graph

FORMAT_1 = Path(__file__).parents[1] / "serving" / "saved_by_0_1.zip"


def sourced_graph() -> KnowledgeGraph:
    builder = GraphBuilder(labels={"Her": "Her (film)"}, types={"Her": ["film"]})
    for number, triple in enumerate(tiny_graph().triples()):
        for source in ["one", "two"][: number % 3]:
            builder.add(*triple, source)
        builder.add(*triple)
    return KnowledgeGraph._from_builder(builder)


def earlier_columns(graph: KnowledgeGraph, order: Array) -> dict[str, Array]:
    """Return the columns of format 2, with triples numbered in some order."""
    columns = with_silent(graph._columns)
    for name in [name for name in columns if name.startswith("adjacency.")]:
        del columns[name]
    for name in [name.removesuffix(".offsets") for name in columns if name.endswith(".offsets")]:
        texts = [text.encode() for text in StringTable.from_columns(columns, name)]
        hashes = np.array(
            [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts], np.uint64
        )
        columns |= {f"{name}.hashes": np.sort(hashes), f"{name}.order": np.argsort(hashes).astype(np.int32)}
    if "triple_sources.indptr" in columns:
        rows = [graph._row("triple_sources", id) for id in order.tolist()]
        columns["triple_sources.indptr"] = np.cumsum([0, *map(len, rows)])
        columns["triple_sources.values"] = np.array([value for row in rows for value in row], np.int32)
    for name in [name for name in columns if name.endswith((".indptr", ".offsets"))]:
        columns[name] = columns[name].astype(np.int64)
    return columns | {"triples": graph.edges[order], "adjacency.indptr": np.zeros(1, np.int64)}


def save_as_format_2(folder: Path, graph: KnowledgeGraph, index: Part | None = None) -> Array:
    """Save a graph as an earlier version did; return the order in which it numbered the triples."""
    order = np.random.default_rng(3).permutation(len(graph))
    parts = {"graph": Part(earlier_columns(graph, order), graph.to_part().meta)}
    save_parts(folder, parts | ({"index": index} if index else {}))
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    del manifest["checksum"]
    manifest["format"] = 2
    text = json.dumps(manifest, sort_keys=True)
    manifest["checksum"] = blake2b(text.encode(), digest_size=16).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return order


def said(graph: KnowledgeGraph) -> list[Any]:
    keys = list(graph.entities)
    return [
        [(triple, graph.sources(triple)) for triple in graph.triples()],
        [(key, graph.label(key), graph.aliases(key), graph.types_of(key)) for key in keys],
        {name: (column.dtype.str, column.tolist()) for name, column in graph._columns.items()},
    ]


@pytest.mark.parametrize("graph", [tiny_graph(), sourced_graph(), KnowledgeGraph.from_triples([])], ids=repr)
def test_an_earlier_folder_opens_and_is_migrated(
    tmp_path: Path, graph: KnowledgeGraph, caplog: pytest.LogCaptureFixture
) -> None:
    order = save_as_format_2(tmp_path, graph)
    with caplog.at_level(logging.WARNING):
        opened = KnowledgeGraph.open(tmp_path)
    [told] = caplog.records
    assert f"kg-retrievers migrate {tmp_path}" in told.getMessage()
    assert said(opened) == said(graph)
    assert opened.fingerprint == graph.fingerprint
    assert opened.earlier_triples is not None
    assert order[opened.earlier_triples].tolist() == [*range(len(graph))]
    assert migrate(tmp_path)
    assert not migrate(tmp_path)
    caplog.clear()
    again = KnowledgeGraph.open(tmp_path)
    assert not caplog.records
    assert again.earlier_triples is None
    assert said(again) == said(graph)
    verify(tmp_path)


@pytest.mark.parametrize("how", ["migrate", "save", "update"])
def test_an_index_goes_on_with_its_vectors(tmp_path: Path, how: str) -> None:
    embeddings, texts = default_embeddings(), ["who directed Her", "a film of 2013"]
    built = GraphIndex.build(sourced_graph(), embeddings, tmp_path / "built", triples=True)
    every = np.arange(len(built.graph))
    wanted = [built.triple_similarities(text, every).tolist() for text in texts]
    part = open_parts(tmp_path / "built", ["index"])["index"]
    order = np.random.default_rng(3).permutation(len(built.graph))
    columns = {name: np.array(column) for name, column in part.columns.items()}
    columns["triples"] = columns["triples"][order]
    meta = {name: value for name, value in part.meta.items() if name != "triple_order"}
    folder = tmp_path / "earlier"
    save_as_format_2(folder, built.graph, Part(columns, meta))

    def similarities(index: GraphIndex) -> list[list[float]]:
        return [index.triple_similarities(text, np.arange(len(index.graph))).tolist() for text in texts]

    assert similarities(GraphIndex.open(folder, embeddings)) == wanted
    graph = KnowledgeGraph.open(folder)
    if how == "update":
        GraphIndex.update(folder, embeddings, added=[("Her", "a", "b")])
        GraphIndex.update(folder, embeddings, removed=[("Her", "a", "b")])
    else:
        assert similarities(GraphIndex.open(folder, embeddings, graph=graph)) == wanted
        _ = migrate(folder) if how == "migrate" else graph.save(folder)
        assert similarities(GraphIndex.open(folder, embeddings, graph=graph)) == wanted
    assert similarities(GraphIndex.open(folder, embeddings)) == wanted


def test_an_earlier_index_of_another_size_is_refused(tmp_path: Path) -> None:
    embeddings, folder = default_embeddings(), tmp_path / "earlier"
    built = GraphIndex.build(sourced_graph(), embeddings, tmp_path / "built", triples=True)
    part = open_parts(tmp_path / "built", ["index"])["index"]
    meta = {name: value for name, value in part.meta.items() if name != "triple_order"}
    save_as_format_2(folder, built.graph, Part(part.columns | {"triples_rows": np.zeros(3, np.int32)}, meta))
    with pytest.raises(IndexLoadError, match=r"triples_rows has the shape \(3,\)"):
        GraphIndex.open(folder, embeddings)


def test_an_earlier_index_is_refused_beside_a_migrated_graph(tmp_path: Path) -> None:
    """Both tell the same fingerprint, and number triples otherwise."""
    embeddings, folder = default_embeddings(), tmp_path / "earlier"
    built = GraphIndex.build(sourced_graph(), embeddings, tmp_path / "built", triples=True)
    part = open_parts(tmp_path / "built", ["index"])["index"]
    meta = {name: value for name, value in part.meta.items() if name != "triple_order"}
    save_as_format_2(folder, built.graph, Part(part.columns, meta))
    KnowledgeGraph.open(folder).save(tmp_path / "migrated")
    migrated = KnowledgeGraph.open(tmp_path / "migrated")
    assert len(GraphIndex.open(folder, embeddings).graph) == len(migrated)
    with pytest.raises(IndexLoadError, match="numbers triples as an earlier version did"):
        GraphIndex.open(folder, embeddings, graph=migrated)


def test_a_folder_of_format_1_is_migrated_with_its_index(tmp_path: Path) -> None:
    with ZipFile(FORMAT_1) as saved:
        saved.extractall(tmp_path)
    folder = tmp_path / "films.index"
    before = [*KnowledgeGraph.open(folder).triples()]
    index = {name: column.tolist() for name, column in open_parts(folder, ["index"])["index"].columns.items()}
    assert migrate(folder)
    assert [*KnowledgeGraph.open(folder).triples()] == before
    assert {name: column.tolist() for name, column in open_parts(folder, ["index"])["index"].columns.items()} == index


def test_what_cannot_be_migrated(tmp_path: Path) -> None:
    with pytest.raises(GraphLoadError, match="no such folder"):
        migrate(tmp_path / "none")
    with pytest.raises(GraphLoadError, match="holds no saved graph"):
        migrate(tmp_path)
    graph = tiny_graph()
    save_as_format_2(tmp_path, graph)
    damaged = earlier_columns(graph, np.arange(len(graph)))
    damaged["triples"][3, 2] = 10**6
    save_parts(tmp_path, {"graph": Part(damaged, graph.to_part().meta)})
    with pytest.raises(GraphLoadError, match="triples holds ids of nothing: wanted 0 to"):
        migrate(tmp_path)
