"""Vectors of a graph: made in batches, many of them as 8-bit numbers, and made again after a break."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage.parts import open_parts, verify
from kg_retrievers.index import GraphIndex, HashedEmbeddings, parts

WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord"]
NAMES = [f"{a} {b}" for a in WORDS for b in WORDS]
TRIPLES = [(name, f"relation {number % 5}", NAMES[number * 7 % 36]) for number, name in enumerate(NAMES)]


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


@pytest.fixture
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(TRIPLES, types={NAMES[0]: ["place"]})


@pytest.fixture(params=[False, True], ids=["few names", "many names"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(parts, "QUANTIZED_FROM", 10)
    return bool(request.param)


def found(index: GraphIndex, k: int = 5) -> list[tuple[list[int], list[float]]]:
    texts = ["amber basin", "ambr basin", "fjord", "nothing"]
    asked = [*index.nearest_entities(texts, k), *index.nearest_relations(texts, 3), *index.nearest_types(texts, 1)]
    return [(one.ids.tolist(), one.distances.tolist()) for one in asked]


def left(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in folder.iterdir() if path.suffix == ".column")


# --- many names -------------------------------------------------------------------------------------------------------


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


# --- after a break ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("breaks_at", [0, 3, 8])
def test_a_broken_build_leaves_nothing_and_a_cache_keeps_its_vectors(
    graph: KnowledgeGraph, tmp_path: Path, many: bool, breaks_at: int
) -> None:
    first, second, whole = Breaking(breaks_at), Breaking(), Breaking()
    expected = GraphIndex.build(graph, whole, tmp_path / "whole", triples=True, batch_size=10)
    folder, cache = tmp_path / "broken", tmp_path / "vectors.db"
    with suppress(ConnectionError):
        GraphIndex.build(graph, first, folder, triples=True, batch_size=10, cache=cache)
        assert breaks_at == 8
    assert folder.exists() is (breaks_at == 8)
    index = GraphIndex.build(graph, second, folder, triples=True, batch_size=10, cache=cache)
    assert first.calls + second.calls == whole.calls
    assert found(index) == found(expected) == found(GraphIndex.open(folder, Breaking()))
    assert left(folder) == left(tmp_path / "whole")
    assert verify(folder)


BUILD_AND_DIE = """
import os, signal, sys
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, parts

parts.QUANTIZED_FROM = int(sys.argv[2])
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
    large = str(parts.QUANTIZED_FROM)
    arguments = [str(folder), large, str(call), str(saved), str(tmp_path / "graph")]
    process = subprocess.run([sys.executable, "-c", BUILD_AND_DIE, *arguments], check=False)
    assert process.returncode == -signal.SIGKILL

    index = GraphIndex.build(graph, HashedEmbeddings(64), folder, batch_size=10)
    whole = GraphIndex.build(graph, HashedEmbeddings(64), tmp_path / "whole")
    assert found(index) == found(whole)
    assert left(folder) == left(tmp_path / "whole"), "what was left is swept"
    assert verify(folder)
