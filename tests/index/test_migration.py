"""An index of many names whose vectors are floats becomes what a build of today saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.errors import DamagedDataError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage.manifest import read_manifest
from kg_retrievers.graph.storage.parts import FolderWriter, Part, is_unfinished, open_parts, verify
from kg_retrievers.index import GraphIndex, HashedEmbeddings, graph_vectors, migration
from kg_retrievers.index.migration import shrink_names

NAMES = [f"{a} {b}" for a in ("amber", "basin", "cedar") for b in ("delta", "ember", "fjord")]
TRIPLES = [(name, "next", NAMES[number - 4]) for number, name in enumerate(NAMES)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an index of floats where a build of now keeps bytes and bits."""
    folder = tmp_path / "earlier"
    GraphIndex.build(KnowledgeGraph.from_triples(TRIPLES), HashedEmbeddings(64), folder, triples=True)
    monkeypatch.setattr(migration, "BATCH", 4)
    for module in (migration, graph_vectors):
        monkeypatch.setattr(module, "QUANTIZED_FROM", len(NAMES))
    return folder


def columns(folder: Path) -> dict[str, list[object]]:
    saved = open_parts(folder, ["index"])["index"].columns
    return {name: [column.dtype.str, column.tolist()] for name, column in saved.items()}


def test_the_columns_are_those_of_a_build(folder: Path, tmp_path: Path) -> None:
    GraphIndex.build(KnowledgeGraph.from_triples(TRIPLES), HashedEmbeddings(64), tmp_path / "new", triples=True)
    assert columns(folder) != columns(tmp_path / "new")
    assert shrink_names(folder) == len(NAMES)
    assert columns(folder) == columns(tmp_path / "new")
    assert verify(folder)
    opened, new = (GraphIndex.open(at, HashedEmbeddings(64)) for at in (folder, tmp_path / "new"))
    for text in ("amber ember", "ambr embr"):
        assert opened.nearest_entities([text], 3)[0].ids.tolist() == new.nearest_entities([text], 3)[0].ids.tolist()
    assert shrink_names(folder) == 0


def test_rows_of_an_update_stay(folder: Path) -> None:
    changes = {"added": [("cedar quay", "next", "basin quay")], "removed": TRIPLES[:1]}
    GraphIndex.update(folder, HashedEmbeddings(64), **changes)
    before = GraphIndex.open(folder, HashedEmbeddings(64))
    assert shrink_names(folder) == len(before.graph.names)
    after = GraphIndex.open(folder, HashedEmbeddings(64))
    ids = np.arange(len(before.graph.entities))
    assert np.allclose(before.entity_vectors(ids), after.entity_vectors(ids), atol=0.01)


def test_few_names_and_a_graph_alone_stay(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "QUANTIZED_FROM", len(NAMES) + 1)
    before = read_manifest(folder)
    assert shrink_names(folder) == 0
    assert read_manifest(folder) == before
    KnowledgeGraph.from_triples(TRIPLES).save(tmp_path / "graph")
    assert shrink_names(tmp_path / "graph") == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, 0])
def test_a_damaged_vector_is_told(folder: Path, value: float) -> None:
    part = open_parts(folder, ["index"])["index"]
    vectors = np.array(part.columns["names"])
    vectors[5] = value
    with FolderWriter(folder) as writer:
        parts = writer.before.parts
        changed = Part(dict(part.columns) | {"names": vectors}, part.meta)
        writer.replace(
            {"graph": Part(open_parts(folder, ["graph"])["graph"].columns, parts["graph"].meta), "index": changed}
        )
    before = read_manifest(folder)
    with pytest.raises(DamagedDataError, match="a vector is damaged"):
        shrink_names(folder)
    assert read_manifest(folder) == before
    assert not is_unfinished(folder)
