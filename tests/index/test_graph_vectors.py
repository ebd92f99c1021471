"""Vectors of a graph: made in batches, many of them as 8-bit numbers, and gone on with after a break."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import IndexLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage.parts import Part, open_parts, save_parts, verify
from kg_retrievers.index import GraphIndex, HashedEmbeddings, graph_vectors
from kg_retrievers.index.quantized_search import QuantizedSearch
from kg_retrievers.index.vector_store import ExactSearch

WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord"]
NAMES = [f"{a} {b}" for a in WORDS for b in WORDS]
TRIPLES = [(name, f"relation {number % 5}", NAMES[number * 7 % 36]) for number, name in enumerate(NAMES)]
TEXTS = 36 + 5 + 1


class Breaking(HashedEmbeddings):
    """Fails at one call; keeps the texts of the others."""

    def __init__(self, breaks_at: int | None = None, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.breaks_at, self.calls = breaks_at, list[list[str]]()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if len(self.calls) == self.breaks_at:
            raise ConnectionError("the line is cut")
        self.calls.append(texts)
        return super().embed_documents(texts)


class Nameless(Embeddings):
    """Embeddings that do not tell which model they are."""

    def __init__(self, breaks_at: int | None = None, dimension: int = 64) -> None:
        self.inner = Breaking(breaks_at, dimension)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(TRIPLES, types={NAMES[0]: ["place"]})


@pytest.fixture(params=[False, True], ids=["few names", "many names"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(graph_vectors, "QUANTIZED_FROM", 10)
    return bool(request.param)


def found(index: GraphIndex, k: int = 5) -> list[tuple[list[int], list[float]]]:
    texts = ["amber basin", "ambr basin", "fjord", "nothing"]
    asked = [*index.nearest_entities(texts, k), *index.nearest_relations(texts, 3), *index.nearest_types(texts, 1)]
    return [(one.ids.tolist(), one.distances.tolist()) for one in asked]


def left(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in folder.iterdir() if path.suffix == ".column")


# --- many names -------------------------------------------------------------------------------------------------------


def test_many_names_are_kept_as_bytes_and_bits(graph: KnowledgeGraph, tmp_path: Path, many: bool) -> None:
    built = GraphIndex.build(graph, HashedEmbeddings(64), tmp_path)
    columns = open_parts(tmp_path, ["index"])["index"].columns
    assert (columns["names"].dtype, columns["names"].shape) == (np.int8 if many else np.float32, (36, 64))
    assert ("names_bits" in columns) is many
    assert columns["relations"].dtype == np.float32
    opened, unsaved = GraphIndex.open(tmp_path, HashedEmbeddings(64)), GraphIndex.build(graph, HashedEmbeddings(64))
    assert all(isinstance(index._names, QuantizedSearch if many else ExactSearch) for index in (built, opened, unsaved))
    assert found(built) == found(opened) == found(unsaved)
    assert verify(tmp_path)


@pytest.mark.parametrize("many", [True], indirect=True)
def test_many_names_are_found_as_few_are(graph: KnowledgeGraph, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    large = GraphIndex.build(graph, HashedEmbeddings())
    monkeypatch.undo()
    exact = GraphIndex.build(graph, HashedEmbeddings())
    for text in ["amber basin", "ambr basin", "fjord cedr"]:
        one, other = large.nearest_entities([text], 6)[0], exact.nearest_entities([text], 6)[0]
        assert one.ids[0] == other.ids[0]
        assert np.allclose(one.distances, other.distances, atol=0.02)
    assert large.nearest_entities(["amber basin"], 1)[0].distances.tolist() == [0]
    ids = np.arange(36)
    assert large.entity_vectors(ids).dtype == np.float32
    assert np.allclose(large.entity_vectors(ids), exact.entity_vectors(ids), atol=0.01)
    assert large.keeps_names


@pytest.mark.parametrize("many", [True], indirect=True)
@pytest.mark.parametrize("removed", [2, 30], ids=["grows", "is written anew"])
def test_updates_of_many_names(graph: KnowledgeGraph, tmp_path: Path, many: bool, removed: int) -> None:
    embeddings = Breaking()
    GraphIndex.build(graph, embeddings, tmp_path)
    changes = {"added": [("amber quay", "relation 1", "delta quay")], "removed": TRIPLES[:removed]}
    embeddings.calls.clear()
    in_memory = GraphIndex.open(tmp_path, embeddings).with_changes(**changes)
    embeddings.calls.clear()
    update = GraphIndex.update(tmp_path, embeddings, **changes)
    assert update.embedded == 2
    columns = open_parts(tmp_path, ["index"])["index"].columns
    assert (columns["names"].dtype, columns["names_bits"].dtype) == (np.int8, np.uint64)
    assert len(columns["names"]) == len(columns["names_bits"])
    assert ("names_rows" in columns) is (removed == 2 and len(update.index.graph.names) < len(columns["names"]))
    anew = GraphIndex.build(update.index.graph, HashedEmbeddings(64))
    assert found(update.index) == found(anew) == found(in_memory)


@pytest.mark.parametrize("many", [True], indirect=True)
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("names", lambda column: column.astype(np.float32)),
        ("names", lambda column: column[1:]),
        ("names_bits", lambda column: column[1:]),
        ("names_bits", lambda column: np.repeat(column, 2, axis=1)),
        ("names_bits", lambda column: column.astype(np.int64)),
    ],
)
def test_columns_that_do_not_fit(graph: KnowledgeGraph, tmp_path: Path, many: bool, name: str, damage: object) -> None:
    GraphIndex.build(graph, HashedEmbeddings(64), tmp_path)
    parts = open_parts(tmp_path, ["graph", "index"])
    columns = dict(parts["index"].columns)
    columns[name] = damage(np.array(columns[name]))  # type: ignore[operator]
    saved = {"graph": Part(parts["graph"].columns, parts["graph"].meta), "index": Part(columns, parts["index"].meta)}
    save_parts(tmp_path, saved)
    with pytest.raises(IndexLoadError, match=f"damaged: {name} has"):
        GraphIndex.open(tmp_path, HashedEmbeddings(64))


# --- after a break ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("triples", [False, True])
@pytest.mark.parametrize("breaks_at", [0, 1, 3, 4, 5, 8])
def test_no_text_is_embedded_twice(
    graph: KnowledgeGraph, tmp_path: Path, many: bool, triples: bool, breaks_at: int
) -> None:
    first, second, whole = Breaking(breaks_at), Breaking(), Breaking()
    expected = GraphIndex.build(graph, whole, tmp_path / "whole", triples=triples, batch_size=10)
    calls = list(whole.calls)
    folder = tmp_path / "broken"
    if breaks_at < len(calls):
        with pytest.raises(ConnectionError):
            GraphIndex.build(graph, first, folder, triples=triples, batch_size=10)
        with pytest.raises(IndexLoadError):
            GraphIndex.open(folder, second)
    index = GraphIndex.build(graph, second, folder, triples=triples, batch_size=10)
    assert first.calls + second.calls == calls
    assert found(index) == found(expected) == found(GraphIndex.open(folder, Breaking()))
    assert left(folder) == left(tmp_path / "whole")
    assert verify(folder)
    GraphIndex.build(graph, third := Breaking(), folder, triples=triples, batch_size=10)
    assert third.calls == calls, "a complete index is made anew"


@pytest.mark.parametrize("other", ["graph", "model", "folder changed"])
def test_what_does_not_fit_is_not_taken(graph: KnowledgeGraph, tmp_path: Path, many: bool, other: str) -> None:
    with pytest.raises(ConnectionError):
        GraphIndex.build(graph, Breaking(2), tmp_path, batch_size=10)
    embeddings = Breaking(dimension=32 if other == "model" else 64)
    if other == "graph":
        graph = graph.with_changes(added=[("one", "more", "fact")])
    elif other == "folder changed":
        graph.save(tmp_path)
    GraphIndex.build(graph, embeddings, tmp_path, batch_size=10)
    assert sum(map(len, embeddings.calls)) >= TEXTS
    assert verify(tmp_path)
    assert len(list(tmp_path.glob("index.names-*"))) == 1, "what was left is swept"


def test_vectors_of_a_model_without_a_name_are_not_taken(graph: KnowledgeGraph, tmp_path: Path, many: bool) -> None:
    with pytest.raises(ConnectionError):
        GraphIndex.build(graph, Nameless(2), tmp_path / "new", batch_size=10)
    assert not (tmp_path / "new").exists()
    embeddings = Nameless()
    GraphIndex.build(graph, embeddings, tmp_path / "new", batch_size=10)
    assert sum(map(len, embeddings.inner.calls)) == TEXTS


def test_other_lengths_are_refused(graph: KnowledgeGraph, tmp_path: Path, many: bool) -> None:
    class Same(Breaking):
        model = "one"

        @property
        def dimension(self) -> None:  # type: ignore[override]
            return None

        def embed_array(self, texts: object) -> np.ndarray:
            return np.eye(8, 64 if self.breaks_at else 32)[np.zeros(len(texts), int)]  # type: ignore[arg-type]

        def __init__(self, breaks_at: int | None) -> None:
            self.breaks_at, self.calls = breaks_at, []

    with pytest.raises(ConnectionError):
        GraphIndex.build(graph, Same(2), tmp_path, batch_size=10)
    with pytest.raises(InvalidArgumentError, match="vectors of 64 and of 32 numbers"):
        GraphIndex.build(graph, Same(None), tmp_path, batch_size=10)


def test_rows_that_the_system_did_not_write_are_made_again(graph: KnowledgeGraph, tmp_path: Path, many: bool) -> None:
    with pytest.raises(ConnectionError):
        GraphIndex.build(graph, Breaking(3), tmp_path, batch_size=10)
    (path,) = tmp_path.glob("index.names-*")
    size = 64 * (1 if many else 4)
    with open(path, "r+b") as file:
        file.seek(13 * size)
        file.write(bytes(2 * size))
        file.truncate(29 * size + 5)
    embeddings = Breaking()
    index = GraphIndex.build(graph, embeddings, tmp_path, batch_size=10)
    assert embeddings.calls[0][0] == index.graph.names[13]
    assert found(index) == found(GraphIndex.build(graph, Breaking()))


BUILD_AND_DIE = """
import os, signal, sys
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, graph_vectors

graph_vectors.QUANTIZED_FROM = int(sys.argv[2])
calls, saved, sync = 0, 0, os.fsync

class Deadly(HashedEmbeddings):
    def embed_documents(self, texts):
        global calls
        calls += 1
        if calls == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_documents(texts)

def dying(descriptor):
    global saved
    saved += 1
    if saved == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    sync(descriptor)

os.fsync = dying
Deadly.__module__, Deadly.__qualname__ = "kg_retrievers.index.embeddings", "HashedEmbeddings"
graph = KnowledgeGraph.open(sys.argv[5])
GraphIndex.build(graph, Deadly(64), sys.argv[1], batch_size=10)
"""


@pytest.mark.parametrize(
    ("call", "saved"), [(3, 0), *(pytest.param(*one, marks=pytest.mark.heavy) for one in [(5, 0), (0, 3), (0, 30)])]
)
def test_killed(graph: KnowledgeGraph, tmp_path: Path, many: bool, call: int, saved: int) -> None:
    """In the middle of the vectors, in the last batch, in the graph, in the index."""
    graph.save(tmp_path / "graph")
    folder = tmp_path / "index"
    large = str(graph_vectors.QUANTIZED_FROM)
    arguments = [str(folder), large, str(call), str(saved), str(tmp_path / "graph")]
    process = subprocess.run([sys.executable, "-c", BUILD_AND_DIE, *arguments], check=False)
    assert process.returncode == -signal.SIGKILL

    class Counting(HashedEmbeddings):
        made = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            Counting.made += len(texts)
            return super().embed_documents(texts)

    Counting.__module__, Counting.__qualname__ = "kg_retrievers.index.embeddings", "HashedEmbeddings"
    index = GraphIndex.build(KnowledgeGraph.open(tmp_path / "graph"), Counting(64), folder, batch_size=10)
    assert Counting.made == (TEXTS - 10 * (call - 1) if call else 0)
    assert found(index) == found(GraphIndex.build(graph, HashedEmbeddings(64)))
    assert verify(folder)


# --- where else -------------------------------------------------------------------------------------------------------
