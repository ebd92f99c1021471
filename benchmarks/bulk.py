"""Bulk work in this process and on Ray's workers: CPU seconds, wall time, and whether the results are the same.

    KG_RETRIEVERS_DATA=... python -m benchmarks.bulk evaluate --questions 2000
    python -m benchmarks.bulk embed --names 1000000

`evaluate` asks questions of MetaQA (dev) by SimGRAG without a language model, over a saved index. `embed` embeds the
names of a synthetic graph. CPU is that of this process and of its workers, which say it themselves; the rest of Ray
(its servers, the start of processes) is not in it, but in the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers import (
    GraphIndex,
    KnowledgeGraph,
    RayWorkers,
    SimGRAGRetriever,
    default_embeddings,
    evaluate,
    read_question_set,
)
from kg_retrievers.bulk import Workers
from kg_retrievers.index import embed


@dataclass(frozen=True)
class Timed:
    """Work that says what CPU time its process took so far, in seconds, and which process it is."""

    work: Callable[[Any], Any]

    def __call__(self, batch: Any) -> tuple[Any, int, float]:
        """Return the result, the process, and its CPU time."""
        return self.work(batch), os.getpid(), time.process_time()


class TimedWorkers:
    """Workers whose CPU time is added up, from their start on."""

    def __init__(self, workers: Workers) -> None:
        """Take the workers."""
        self._workers = workers
        self.cpu = dict[int, float]()

    def map_batches(self, work: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the results in order."""
        for result, process, seconds in self._workers.map_batches(Timed(work), batches):
            self.cpu[process] = max(seconds, self.cpu.get(process, 0))
            yield result


def measured(work: Callable[[Workers | None], Any], count: int) -> dict[str, Any]:
    """Do some work in this process, and again with workers."""
    wall, cpu = time.perf_counter(), time.process_time()
    one = work(None)
    alone = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    with RayWorkers(workers=count) as ray_workers:
        workers = TimedWorkers(ray_workers)
        wall = time.perf_counter()
        list(ray_workers.map_batches(len, [[]]))
        start = time.perf_counter() - wall
        wall, cpu = time.perf_counter(), time.process_time()
        several = work(workers)
        own, of_workers = time.process_time() - cpu, sum(workers.cpu.values())
        shared = {"start": start, "wall": time.perf_counter() - wall, "own_cpu": own, "workers_cpu": of_workers}
    return {
        "same": bool(np.all(one == several)),
        "alone": alone,
        "ray": shared,
        "cpu_ratio": (own + of_workers) / alone["cpu"],
        "wall_ratio": shared["wall"] / alone["wall"],
        "load": os.getloadavg()[0],
    }


def evaluation(questions: int, count: int) -> dict[str, Any]:
    data = Path(os.environ["KG_RETRIEVERS_DATA"]) / "metaqa"
    asked = read_question_set(data, format="metaqa", split="dev", limit=-(-questions // 3))[:questions]
    with tempfile.TemporaryDirectory() as folder:
        GraphIndex.build(KnowledgeGraph.from_file(data / "kb.txt"), default_embeddings(), folder)
        retriever = SimGRAGRetriever.from_index(GraphIndex.open(folder, default_embeddings()))
        evaluate(retriever, asked[:10])  # compiles

        def work(workers: Workers | None) -> list[dict[str, Any]]:
            records = evaluate(retriever, asked, workers=workers).records
            return [{**record, "latency_ms": 0} for record in records]

        return {"questions": len(asked)} | measured(work, count)


def embedding(names: int, count: int) -> dict[str, Any]:
    from benchmarks.synthetic_graph import entity_names

    texts = entity_names(names)
    embed(default_embeddings(), texts[:1024])  # reads the table
    return {"names": names} | measured(lambda workers: embed(default_embeddings(), texts, workers=workers), count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["evaluate", "embed"])
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    made = (
        evaluation(given.questions, given.workers)
        if given.what == "evaluate"
        else embedding(given.names, given.workers)
    )
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
