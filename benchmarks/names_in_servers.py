"""What a search of names in a server costs, and how many of the nearest names it finds.

    python -m benchmarks.names_in_servers [--stores exact hnsw chroma milvus] [--questions 60]

The 43,234 names of MetaQA with the default embeddings. Questions are names with a letter left out, without one of their
words, or with their words turned around (`benchmarks.name_recall`). What is nearest is found exactly in memory. Times
are those of the client's and of the server's processes together, per question; the servers are started on loopback.
Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil

from benchmarks.name_recall import questions
from kg_retrievers import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import ExactSearch, ServerNames, StoredName, default_embeddings, embed, open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chroma_server import ChromaServer
from postgres import Postgres

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORES = ("exact", "hnsw", "chroma", "milvus")
POSTGRES: list[Postgres] = []
EMBEDDINGS = default_embeddings()


def cpu_seconds() -> float:
    """Return the CPU time of this process, of those that it runs, and of the server of `POSTGRES`."""
    started = [psutil.Process(), *(psutil.Process(server.pid) for server in POSTGRES)]
    total = 0.0
    for process in [*started, *(child for one in started for child in one.children(recursive=True))]:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # with those of its children that ended, as parallel workers do
    return total


def measured(call: Callable[[], object], count: int) -> str:
    """Call, and return the milliseconds of CPU and of the clock for each of `count`."""
    cpu, clock = cpu_seconds(), time.perf_counter()
    call()
    cpu, clock = cpu_seconds() - cpu, time.perf_counter() - clock
    return f"{1000 * cpu / count:8.1f} ms CPU, {1000 * clock / count:8.1f} ms"


def report(label: str, names: ServerNames, texts: list[str], vectors: Array, asked: Array) -> None:
    """Print what searches of the names cost and find."""
    names.nearest(asked[:2], 16)
    numbers = {text: number for number, text in enumerate(texts)}
    for k in (16, 100, 1000):
        some = asked if k < 1000 else asked[:10]
        near: list[list[int]] = []
        cost = measured(
            lambda: near.extend([numbers[one.name.name] for one in row] for row in names.nearest(some, k)),  # noqa: B023
            len(some),
        )
        wanted = ExactSearch(vectors).search(some, k)[0].tolist()
        pairs = list(zip(near, wanted, strict=True))
        recall = np.mean([len(set(row) & set(best)) / k for row, best in pairs])
        same = np.mean([row == best for row, best in pairs])
        print(f"{label:8} nearest {k:5}: {cost}, recall {recall:.4f}, same order {same:.2f}", flush=True)
    some_texts = [text.upper() for text in texts[:: len(texts) // 50]]
    print(
        f"{label:8} written as, {len(some_texts)} texts: {measured(lambda: names.written_as(some_texts), 1)}",
        flush=True,
    )


def loaded(label: str, address: str, texts: list[str]) -> ServerNames:
    """Open a store and load the names."""
    names = ServerNames(open_store(address, EMBEDDINGS), EMBEDDINGS)
    every = [StoredName(text, (text,)) for text in texts]
    print(f"{label:8} load: {measured(lambda: names.add(every), len(every))} a name", flush=True)
    return names


def main() -> None:
    """Measure the stores that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--questions", type=int, default=60)
    arguments = parser.parse_args()
    texts = list(KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt").names)
    vectors = embed(EMBEDDINGS, [readable(text) for text in texts])
    asked = embed(EMBEDDINGS, questions(texts, arguments.questions))
    print(f"{len(texts)} names, {vectors.shape[1]} numbers each; in memory:", end=" ")
    print(measured(lambda: [ExactSearch(vectors).search(one[None], 16) for one in asked], len(asked)))
    with ExitStack() as stack:
        if {"exact", "hnsw"} & set(arguments.stores):
            server = stack.enter_context(Postgres())
            POSTGRES.append(server)
            names = loaded("exact", server.url(), texts)
            server.run("ANALYZE")
            report("exact", names, texts, vectors, asked)
            if "hnsw" in arguments.stores:
                index = "CREATE INDEX ON kg_retrievers_names USING hnsw (embedding vector_l2_ops)"
                print(f"hnsw     index: {measured(lambda: server.run(index), len(texts))} a name")
                server.run("ANALYZE")
                report("hnsw", names, texts, vectors, asked)
            POSTGRES.clear()
            server.stop()
        folder = Path(stack.enter_context(TemporaryDirectory()))
        if "chroma" in arguments.stores:
            chroma = stack.enter_context(ChromaServer(folder / "chroma"))
            report("chroma", loaded("chroma", chroma.address("names"), texts), texts, vectors, asked)
        if "milvus" in arguments.stores:
            report("milvus", loaded("milvus", str(folder / "names.db"), texts), texts, vectors, asked[:10])


if __name__ == "__main__":
    main()
