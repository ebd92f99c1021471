"""What it costs that the embedded database runs in a process of its own.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/isolated_database.py [--limit N] [--repeats N]

Queries over the labelled walks of MetaQA dev with 1, 2 and 3 hops, each from its topic, asked of the same file by an
isolated executor and by one in this process, in turns. Figures are milliseconds of wall time per query (median, and the
middle 90 %); the hop is the median of the differences of the same query. Data: the folder named in KG_RETRIEVERS_DATA
(default ../shared/data).
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, LadybugExecutor
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.methods.sg_rag import CypherRetriever

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261122
HOPS = (1, 2, 3)
#: The most rows of a query, as of the retriever.
ROWS = 1000

Query = tuple[str, dict[str, Any]]


def main() -> None:
    """Ask in both ways and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=200, help="how many questions of each hop (default: 200)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is asked (default: 3)")
    options = parser.parse_args()
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    index = GraphIndex.build(graph, HashedEmbeddings())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metaqa.lbdb"
        LadybugExecutor.from_graph(graph, path).close()
        start = time.perf_counter()
        with LadybugExecutor(path) as isolated, LadybugExecutor(path, isolated=False) as in_host:
            print(f"Start of the process: {time.perf_counter() - start:.2f} s\n")
            print("| hops | queries | in the host | isolated | the hop |")
            print("|---|---|---|---|---|")
            for hop in HOPS:
                queries = queries_of(index, isolated, hop, options.limit)
                times = np.array(
                    [measure(isolated, in_host, query) for _ in range(options.repeats) for query in queries]
                )
                difference = np.median(times[:, 1] - times[:, 0])
                print(f"| {hop} | {len(queries)} | {shown(times[:, 0])} | {shown(times[:, 1])} | {difference:.2f} ms |")


def queries_of(index: GraphIndex, executor: LadybugExecutor, hop: int, limit: int) -> list[Query]:
    """Return the queries that the retriever writes for questions of one hop."""
    questions = read_metaqa(DATA / "metaqa", hop)
    random.Random(SEED).shuffle(questions)
    retriever = CypherRetriever.from_index(
        index, examples=questions[limit : limit + 1000], executor=executor, min_confidence=0.0
    )
    queries = []
    for question in questions[:limit]:
        for document in retriever.invoke(question.text, seed_entities=question.seed_entities)[:1]:
            details = document.metadata["details"]
            queries.append((details["query"], details["parameters"]))
    return queries


def measure(isolated: LadybugExecutor, in_host: LadybugExecutor, query: Query) -> tuple[float, float]:
    """Return the milliseconds of a query in the host and isolated; which is first changes by chance."""
    took = {}
    for executor in random.sample([isolated, in_host], 2):
        start = time.perf_counter()
        executor.run(*query, limit=ROWS)
        took[executor] = 1000 * (time.perf_counter() - start)
    return took[in_host], took[isolated]


def shown(times: np.ndarray[Any, Any]) -> str:
    """Return the median and the middle 90 %."""
    low, middle, high = np.percentile(times, [5, 50, 95])
    return f"{middle:.2f} ms ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
