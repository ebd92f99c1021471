"""Bounds of an index: columns that do not fit its graph are told, and so is damage that shows when they are used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.errors import DamagedDataError, IndexLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage import parts as storage
from kg_retrievers.graph.storage.parts import KEEP, Part, open_parts, save_parts
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings, parts

EMBEDDINGS = HashedEmbeddings(16)
GRAPH = KnowledgeGraph.from_triples([("Spike Jonze", "directed", "Her"), ("Spike Jonze", "directed", "Adaptation")])


@pytest.mark.parametrize(
    "column", ["names", "relations", "types", "triples", "linking.ids", "linking.word_names", "linking.word_starts"]
)
def test_columns_that_do_not_fit(tmp_path: Path, column: str) -> None:
    GraphIndex.build(GRAPH, EMBEDDINGS, tmp_path, triples=True)
    saved = open_parts(tmp_path, ["index"])["index"]
    values = saved.columns[column]
    other = np.concatenate([values, values[-1:]]) if len(values) else np.zeros((1, 16), np.float32)
    columns = dict.fromkeys(saved.columns, KEEP) | {column: other}
    save_parts(tmp_path, {"graph": KEEP, "index": Part(columns, saved.meta)})
    with pytest.raises(IndexLoadError, match=r"the index is damaged: .* Build the index again"):
        GraphIndex.open(tmp_path, EMBEDDINGS)


def test_damaged_ids_of_names_are_told_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHECKED", 0)  # as for long columns
    GraphIndex.build(GRAPH, EMBEDDINGS, tmp_path)
    saved = open_parts(tmp_path, ["index"])["index"]
    for column, question in (("linking.ids", "who made Her"), ("linking.word_names", "who is Jonze")):
        part = Part(saved.columns | {column: np.full_like(saved.columns[column], 10**6)}, saved.meta)
        save_parts(tmp_path / column, {"graph": open_part(tmp_path, "graph"), "index": part})
        index = GraphIndex.open(tmp_path / column, EMBEDDINGS)
        with pytest.raises(DamagedDataError, match=r"the table of names is damaged\. Save or build it again.*--verify"):
            EntityLinker(index).link(question)


def open_part(folder: Path, name: str) -> Part:
    opened = open_parts(folder, [name])[name]
    return Part(opened.columns, opened.meta)


def test_damaged_vectors_are_told_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "CHECKED", 0)  # as for long columns
    GraphIndex.build(GRAPH, EMBEDDINGS, tmp_path)
    path = next(tmp_path.glob("index.names-*"))
    path.write_bytes(b"\xff" * path.stat().st_size)
    index = GraphIndex.open(tmp_path, EMBEDDINGS)
    with pytest.raises(DamagedDataError, match=r"a vector is damaged\. Save or build it again.*--verify"):
        index.nearest_entities(["a film"], 2)
