"""Work on batches: the same in this process, in several of this machine, and in those of Ray."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import bulk_embeddings
import bulk_work
import numpy as np
import pytest
from graph_reader import GraphReader
from langchain_core.vectorstores import InMemoryVectorStore

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever, evaluate
from kg_retrievers.bulk import LocalWorkers, Workers, map_batches
from kg_retrievers.bulk.workers import AHEAD
from kg_retrievers.errors import BudgetError, IndexLoadError, InvalidArgumentError, WorkersError
from kg_retrievers.evaluation.records import Record, read_records
from kg_retrievers.index import EmbeddingCache, ServerNames, VectorStoreSearch, embed, parts
from kg_retrievers.index.server_names import load_names
from kg_retrievers.sample import load_graph, load_questions

BATCHES = [[number, number + 1] for number in range(0, 60, 2)]
WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord"]
NAMES = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]
GRAPH = KnowledgeGraph.from_triples([(name, "near", NAMES[number * 7 % 216]) for number, name in enumerate(NAMES)])


@pytest.fixture(scope="module")
def ray_workers() -> Iterator[Workers]:
    ray_workers = pytest.importorskip("kg_retrievers.bulk.ray_workers", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch, ray_workers.RayWorkers(workers=2) as workers:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of the processes that Ray starts
        yield workers


@pytest.fixture(scope="module")
def local_workers() -> Iterator[Workers]:
    with LocalWorkers(2) as workers:
        yield workers


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.heavy)])
def workers(request: pytest.FixtureRequest) -> Workers:
    found: Workers = request.getfixturevalue(f"{request.param}_workers")
    return found


#: A process of its own, and another one that joins its cluster by the address.
ON_RUNNING_RAY = """
import subprocess, sys
import ray
from kg_retrievers.bulk.ray_workers import RayWorkers

ray.init(address="local", num_cpus=1, include_dashboard=False, logging_level="warning")
with RayWorkers(workers=1) as workers:
    print(*workers.map_batches(sum, [[1, 2]]))
print(ray.is_initialized())
address = ray.get_runtime_context().gcs_address
code = f"from kg_retrievers.bulk.ray_workers import RayWorkers; w = RayWorkers({address!r});"
code += "print(list(w.map_batches(sum, [[1, 2]]))); w.close()"
sys.stdout.flush()
subprocess.run([sys.executable, "-c", code], check=True)
ray.shutdown()
"""


def without_latency(records: list[Record]) -> list[dict[str, Any]]:
    return [{**record, "latency_ms": 0} for record in records]


# --- any work ---------------------------------------------------------------------------------------------------------


def test_results_come_in_order(workers: Workers) -> None:
    expected = [bulk_work.doubled(batch) for batch in BATCHES]
    assert list(map_batches(bulk_work.doubled, BATCHES)) == expected
    assert list(map_batches(bulk_work.doubled, BATCHES, workers)) == expected
    assert list(map_batches(sum, BATCHES, workers)) == [sum(batch) for batch in BATCHES]
    assert list(map_batches(sum, [], workers)) == []


def test_no_more_batches_are_taken_than_are_needed(workers: Workers) -> None:
    taken: list[int] = []

    def batches() -> Iterator[list[int]]:
        for number in range(1_000):
            taken.append(number)
            yield [number]

    results = map_batches(bulk_work.doubled, batches(), workers)
    assert [next(results), next(results)] == [[0], [2]]
    assert len(taken) <= 2 + 2 * AHEAD
    del results
    assert list(map_batches(bulk_work.doubled, [[4]], workers)) == [[8]]


def test_an_error_of_the_work_comes_in_its_turn(workers: Workers) -> None:
    results = map_batches(bulk_work.refused_from_five, [[number] for number in range(20)], workers)
    found = [next(results) for _ in range(5)]
    assert found == [[0], [2], [4], [6], [8]]
    with pytest.raises(BudgetError, match="all is used up"):
        next(results)


def test_work_is_opened_once_by_each_worker(workers: Workers, tmp_path: Path) -> None:
    for _ in range(2):
        assert len(list(map_batches(bulk_work.Opened(tmp_path), BATCHES, workers))) == len(BATCHES)
    opened = (tmp_path / "opened").read_text().split()
    assert 1 <= len(opened) == len({*opened}) <= 2
    assert str(os.getpid()) not in opened


def test_what_cannot_be_handed_over_is_told(workers: Workers) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be handed to another process"):
        list(map_batches(partial(bulk_work.doubled, threading.Lock()), [[1]], workers))
    with pytest.raises(InvalidArgumentError, match="cannot be handed to another process"):
        list(map_batches(len, [[threading.Lock()]], workers))
    assert list(map_batches(bulk_work.doubled, [[4]], workers)) == [[8]]


def test_work_that_always_ends_its_process_is_told(workers: Workers) -> None:
    with pytest.raises(WorkersError, match="ended"):
        list(map_batches(bulk_work.ends_its_process, [[1]], workers))
    assert list(map_batches(bulk_work.doubled, [[4]], workers)) == [[8]]


@pytest.mark.parametrize("count", [0, -1, 1.5, "2"])
def test_a_wrong_number_of_workers_is_told(count: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="workers must be an integer of 1 or more"):
        LocalWorkers(count)


# --- embedding --------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.parametrize(
    "embeddings", [HashedEmbeddings(64), bulk_embeddings.PlainEmbeddings()], ids=["own", "of others"]
)
def test_texts_have_the_same_vectors(workers: Workers, embeddings: Any, tmp_path: Path) -> None:
    texts = NAMES + NAMES[:50]
    expected = embed(embeddings, texts, batch_size=16)
    cache = EmbeddingCache(tmp_path / "cache")
    embed(embeddings, NAMES[30:60], cache=cache)
    for known in (None, cache, cache):
        assert (embed(embeddings, texts, batch_size=16, cache=known, workers=workers) == expected).all()


@pytest.mark.heavy
def test_bad_vectors_are_told(workers: Workers) -> None:
    with pytest.raises(InvalidArgumentError, match="0 vectors for 1 texts"):
        embed(bulk_embeddings.PlainEmbeddings(), ["amber", "nothing"], batch_size=1, workers=workers)


@pytest.mark.parametrize("many", [False, True])
def test_an_index_is_the_same(workers: Workers, many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:
        monkeypatch.setattr(parts, "QUANTIZED_FROM", 10)
    embeddings = HashedEmbeddings(64)
    one = GraphIndex.build(GRAPH, embeddings, tmp_path / "one", batch_size=16, triples=True)
    two = GraphIndex.build(GRAPH, embeddings, tmp_path / "two", batch_size=16, triples=True, workers=workers)
    assert one.fingerprint == two.fingerprint
    every = np.arange(len(GRAPH.entities))
    assert (one.entity_vectors(every) == two.entity_vectors(every)).all()
    asked = ["amber basin", "fjord"]
    for found, same in zip(one.nearest_entities(asked, 9), two.nearest_entities(asked, 9), strict=True):
        assert found.ids.tolist() == same.ids.tolist()


@pytest.mark.heavy
def test_names_of_a_database_are_the_same(workers: Workers) -> None:
    embeddings, found = HashedEmbeddings(64), []
    for these in (None, workers):
        store = VectorStoreSearch(InMemoryVectorStore(embeddings), "cosine_similarity")
        loaded = load_names(GraphReader(GRAPH), embeddings, store, page_size=50, workers=these)
        assert (loaded.entities, loaded.embedded, loaded.names) == (216, 216, 216)
        found.append(ServerNames(store, embeddings).nearest(embed(embeddings, NAMES[:20]), 9))
    assert found[0] == found[1]


# --- evaluation -------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_records_are_the_same_and_a_broken_run_goes_on(workers: Workers, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    GraphIndex.build(load_graph(), HashedEmbeddings(), folder)
    retriever = SimGRAGRetriever.from_index(GraphIndex.open(folder, HashedEmbeddings()))
    questions = load_questions() * 3
    expected = evaluate(retriever, questions, records=tmp_path / "one")
    report = evaluate(retriever, questions, records=tmp_path / "two", workers=workers)
    assert report.metrics == {**expected.metrics, **{name: report.metrics[name] for name in latencies(report.metrics)}}
    wanted = without_latency(read_records(tmp_path / "one")[1])
    assert without_latency(read_records(tmp_path / "two")[1]) == wanted
    lines = (tmp_path / "two").read_bytes().splitlines(keepends=True)
    (tmp_path / "two").write_bytes(b"".join(lines[:8]) + lines[8][:20])
    evaluate(retriever, questions, records=tmp_path / "two", workers=workers)
    assert without_latency(read_records(tmp_path / "two")[1]) == wanted
    assert (tmp_path / "two").read_bytes().splitlines(keepends=True)[:8] == lines[:8]


def latencies(metrics: dict[str, Any]) -> list[str]:
    return [name for name in metrics if "latency" in name]


# --- Ray alone --------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_killed_worker_of_ray_is_replaced(ray_workers: Workers, tmp_path: Path) -> None:
    work = bulk_work.KillsOnce(tmp_path, 31)
    assert list(map_batches(work, BATCHES, ray_workers)) == [bulk_work.doubled(batch) for batch in BATCHES]
    assert (tmp_path / "called").exists()


@pytest.mark.heavy
def test_what_a_worker_of_ray_cannot_open_is_told(ray_workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(IndexLoadError, match="missing"):
        list(map_batches(bulk_embeddings.NeedsFolder(tmp_path / "missing"), BATCHES, ray_workers))


@pytest.mark.heavy
def test_ray_that_runs_already_is_used_and_left(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "script.py"
    script.write_text(ON_RUNNING_RAY)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "True", "[3]"]


@pytest.mark.heavy
@pytest.mark.parametrize("address", ["", "10.0.0.1", "localhost:a"])
def test_a_wrong_address_is_told(address: str) -> None:
    ray_workers = pytest.importorskip("kg_retrievers.bulk.ray_workers", exc_type=ImportError)
    with pytest.raises(InvalidArgumentError, match="wanted an address"):
        ray_workers.RayWorkers(address)


@pytest.mark.heavy
def test_an_address_where_nobody_is_is_told() -> None:
    ray_workers = pytest.importorskip("kg_retrievers.bulk.ray_workers", exc_type=ImportError)
    with pytest.raises(WorkersError, match="no cluster can be reached"):
        ray_workers.check_reached("127.0.0.1:1")
