"""What a question costs over a graph in databases on loopback, by part, and against the same graph in memory.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.connected_latency [--triples 1000000]
        [--database ladybug | arcadedb]

A synthetic graph (`benchmarks/synthetic_graph.py`, seed 1); its names are in PostgreSQL with pgvector. 40 questions
that name an entity exactly and 40 with one letter left out, zero-shot, and the neighbourhood of the greatest hubs.
`link` is the time in which the vector store is asked, `fetch` that in which the database is, `run` all else; wall
milliseconds, the median. What was read is forgotten before each question.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from postgres import Postgres

import kg_retrievers as kg
from benchmarks.connected import CountingReader, in_order, stored_names
from benchmarks.scale_steps import QUESTIONS, _questions
from benchmarks.synthetic_graph import lines, synthetic_graph
from kg_retrievers.index.server_names import ServerNames
from kg_retrievers.index.stores import open_store

#: How many hubs are asked about.
HUBS = 5


class Clock:
    """Adds up the time of some calls, and the rows that they return."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.seconds, self.calls, self.rows = 0.0, 0, 0

    def timed(self, call: Callable[..., Any], size: Callable[[Any], int]) -> Callable[..., Any]:
        """Return a call that is timed."""

        def run(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = call(*arguments, **options)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            self.rows += size(found)
            return found

        return run


class Cost(NamedTuple):
    """What a question cost, in milliseconds; and the queries and rows of the database."""

    memory: float
    link: float
    fetch: float
    run: float
    queries: int
    rows: int
    truncated: bool


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--database", choices=("ladybug", "arcadedb"), default="ladybug")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        graph, embeddings = _graph(folder, arguments.triples), kg.default_embeddings()
        here = kg.GraphIndex.build(graph, embeddings)
        executor = _database(opened, folder, graph, arguments.database)
        store = open_store(opened.enter_context(Postgres()).url(), embeddings)
        began = time.perf_counter()
        ServerNames(store, embeddings).add(stored_names(graph))
        print(f"{len(graph.entities):,} names loaded in {time.perf_counter() - began:.0f} s")
        fetch, link = CountingReader(executor), Clock()
        store.near = link.timed(store.near, lambda found: len(found[0]))
        store.get = link.timed(store.get, len)
        began = time.perf_counter()
        there = kg.GraphIndex.connect(executor, embeddings, store, timeout=120)
        print(f"connected in {1000 * (time.perf_counter() - began):.0f} ms, {fetch.queries} queries\n")
        print("| | n | memory ms | connected ms | link | fetch | run | queries | rows, median (most) | truncated |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        local = kg.SimGRAGRetriever.from_index(here, min_confidence=0.0)
        far = kg.SimGRAGRetriever.from_index(there, min_confidence=0.0)
        for kind in ("exact", "one vague"):
            asked = [question for _, question in islice(_questions(local, kind), QUESTIONS + 2)]
            costs = [_cost(local, far, question, {}, fetch, link) for question in asked]
            _print(f"SimGRAG, {kind}", costs[2:])
        degrees = np.diff(graph.adjacency.indptr)
        hubs = [graph.entities[int(id)] for id in np.argsort(-degrees)[:HUBS]]
        for hops in (1, 2):
            near = [kg.NeighborhoodRetriever.from_index(index, max_hops=hops) for index in (here, there)]
            costs = [_cost(*near, "What is known?", {"seed_entities": [hub]}, fetch, link) for hub in hubs]
            _print(f"Neighborhood, {hops} hop(s), hubs of degree {degrees.max():,} and less", costs)


def _graph(folder: Path, triples: int) -> kg.KnowledgeGraph:
    with open(folder / "graph.tsv", "w", encoding="utf-8") as file:
        file.writelines(lines(synthetic_graph(triples, triples // 4, 500), "tsv"))
    return in_order(kg.KnowledgeGraph.from_file(folder / "graph.tsv", header=False))


def _database(opened: ExitStack, folder: Path, graph: kg.KnowledgeGraph, which: str) -> Any:
    if which == "ladybug":
        return opened.enter_context(kg.LadybugExecutor.from_graph(graph, folder / "graph.lbdb"))
    from arcadedb import ArcadeDB

    (home := folder / "arcadedb").mkdir()
    server = opened.enter_context(ArcadeDB(home, ["graph"], memory=2048))
    server.load(graph, "graph")
    return opened.enter_context(server.executor("graph", explain=False))


def _cost(local: Any, far: Any, question: str, given: dict[str, Any], fetch: CountingReader, link: Clock) -> Cost:
    began = time.perf_counter()
    local.invoke(question, **given)
    memory = time.perf_counter() - began
    far.index.connected.forget()
    fetch.reset()
    link.reset()
    began = time.perf_counter()
    documents = far.invoke(question, **given)
    seconds = time.perf_counter() - began
    cut = any(document.metadata["truncated"] for document in documents)
    rest = seconds - fetch.seconds - link.seconds
    times = (1000 * part for part in (memory, link.seconds, fetch.seconds, rest))
    return Cost(*times, fetch.queries, fetch.rows, cut)


def _print(title: str, costs: list[Cost]) -> None:
    memory, link, fetch, run, queries, rows, _ = (statistics.median(column) for column in zip(*costs, strict=True))
    cells = [title, len(costs), *(f"{value:.0f}" for value in (memory, link + fetch + run, link, fetch, run))]
    cells += [
        f"{queries:g}",
        f"{rows:,g} ({max(cost.rows for cost in costs):,})",
        sum(cost.truncated for cost in costs),
    ]
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
