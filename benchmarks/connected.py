"""Whether graphs in databases give the same evidence as in memory, in how many queries, and how long that takes.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.connected [--sets metaqa pathquestion]
        [--databases ladybug arcadedb oxigraph] [--methods ...] [--limit 300] [--keep] [--again] [--defaults]

300 of MetaQA's dev questions (100 of each hop) and 200 of PathQuestion, drawn with a fixed seed. The trained models and
the examples are of other questions, and are made in memory. The graph is written to each database, the names to
PostgreSQL with pgvector (exact search). No topic is given, no language model is asked, nothing is refused
(`min_confidence=0`).

Compared with the index in memory, question by question: the triples of each Document, and the answers in their order.
Neighbourhoods have all entities within two hops here, since in memory PageRank over the whole graph chooses where there
are too many (`--defaults` compares the default limits instead). For Oxigraph the graph in memory is read from the same
N-Triples.

Queries and rows are those of the executor; what earlier questions read is forgotten first, unless `--keep` says
otherwise. With `--again` each question is asked before it counts, so that what a method learns once of its examples is
learned: RoG mines the relation paths of a template when a question first comes near to it. CPU is that of this process,
wall that of a question with the database on loopback.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from postgres import Postgres
from question_splits import DATA

import kg_retrievers as kg
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa, read_pathquestion
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.index.server_names import ServerNames, StoredName
from kg_retrievers.index.stores import open_store
from kg_retrievers.methods import registry

#: Draws the questions.
SEED = 20261124

#: How many questions the models learn from, and how many serve as examples.
TRAINING, EXAMPLES = 600, 2_000

#: The most facts of a part: fewer than MetaQA's graph has, else the first question would read all of it.
MAX_FACTS = 130_000

#: The most seconds of a query: whole neighbourhoods of MetaQA's hubs take long.
TIMEOUT = 300.0

#: What compares whole neighbourhoods.
WHOLE = {"max_hops": 2, "max_nodes": None}


class Task(NamedTuple):
    """A graph, the questions that are asked, and those that are learned from."""

    graph: kg.KnowledgeGraph
    asked: list[kg.Question]
    known: list[kg.Question]


class CountingReader:
    """Counts the queries of an executor, the rows that they return, and the seconds that they take."""

    def __init__(self, executor: Any) -> None:
        """Count from now on."""
        self.executor = executor
        self.reset()
        if isinstance(executor, kg.Neo4jExecutor):
            executor._fetch_soon = self._counted_soon(executor._fetch_soon)
        elif isinstance(executor, kg.SparqlExecutor):
            executor._endpoint.select = self._counted(executor._endpoint.select, _bindings)
        else:
            executor._fetch = self._counted(executor._fetch, lambda found: len(found.rows))

    def reset(self) -> None:
        """Begin anew."""
        self.queries, self.rows, self.seconds = 0, 0, 0.0

    def _add(self, began: float, rows: int) -> None:
        self.queries += 1
        self.rows += rows
        self.seconds += time.perf_counter() - began

    def _counted(self, call: Callable[..., Any], size: Callable[[Any], int]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = call(*arguments, **options)
            self._add(began, size(found))
            return found

        return counted

    def _counted_soon(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = await call(*arguments, **options)
            self._add(began, len(found.rows))
            return found

        return counted


def _bindings(found: Any) -> int:
    return len(found[0].get("results", {}).get("bindings", []))


def in_order(graph: kg.KnowledgeGraph) -> kg.KnowledgeGraph:
    """Return a graph whose entities and relations are numbered by key, as those of parts are."""
    builder = GraphBuilder()
    for relation in sorted(graph.relations):
        builder.relation(relation)
    for key in sorted(graph.entities):
        builder.entity(key)
        label = graph.label(key)
        builder.describe(key, None if label == key else label, graph.aliases(key), graph.types_of(key))
    for triple in graph.triples():
        builder.add(*triple)
    return kg.KnowledgeGraph(builder.columns()[0])


def metaqa(limit: int) -> Task:
    """A third of the questions for each number of hops."""
    graph = in_order(kg.KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"))
    return drawn(graph, [read_metaqa(DATA / "metaqa", hops) for hops in (1, 2, 3)], limit)


def pathquestion(limit: int) -> Task:
    """The questions of two hops, on their graph."""
    graph = in_order(kg.KnowledgeGraph.from_file(DATA / "pathquestion" / "2H-kb.txt"))
    return drawn(graph, [read_pathquestion(DATA / "pathquestion" / "PQ-2H.txt")], limit)


def drawn(graph: kg.KnowledgeGraph, sets: Sequence[Sequence[kg.Question]], limit: int) -> Task:
    """Draw the questions of each set that are asked, and others that are learned from."""
    draw, asked, known = random.Random(SEED), list[kg.Question](), list[kg.Question]()
    for questions in sets:
        first = limit // len(sets)
        some = draw.sample(questions, min(len(questions), first + EXAMPLES // len(sets)))
        asked += some[:first]
        known += some[first:]
    return Task(graph, asked, known)


#: The question sets, each with how many are asked.
SETS: dict[str, tuple[Callable[[int], Task], int]] = {"metaqa": (metaqa, 300), "pathquestion": (pathquestion, 200)}


# The databases -------------------------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A graph in a database, and the same graph in memory."""

    reader: CountingReader
    graph: kg.KnowledgeGraph


def ladybug(opened: ExitStack, graph: kg.KnowledgeGraph) -> Opened:
    """Write the graph to an embedded database."""
    return Opened(CountingReader(opened.enter_context(kg.LadybugExecutor.from_graph(graph))), graph)


def arcadedb(opened: ExitStack, graph: kg.KnowledgeGraph) -> Opened:
    """Write the graph to ArcadeDB, which is asked over Bolt."""
    from arcadedb import ArcadeDB

    folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
    server = opened.enter_context(ArcadeDB(folder, ["graph"], memory=1024))
    server.load(graph, "graph")
    return Opened(CountingReader(opened.enter_context(server.executor("graph", explain=False))), graph)


def oxigraph(opened: ExitStack, graph: kg.KnowledgeGraph) -> Opened:
    """Write the graph as N-Triples, which Oxigraph holds and serves."""
    from oxigraph_server import Oxigraph

    folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
    graph.write(folder / "graph.nt")
    server = opened.enter_context(Oxigraph(folder, folder / "graph.nt"))
    read = in_order(kg.KnowledgeGraph.from_file(folder / "graph.nt"))
    return Opened(CountingReader(opened.enter_context(server.executor())), read)


DATABASES = {"ladybug": ladybug, "arcadedb": arcadedb, "oxigraph": oxigraph}


# The comparison ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Print a table for each question set and database."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--methods", nargs="+", default=[method.name for method in registry.METHODS])
    parser.add_argument("--limit", type=int, help="questions of each set")
    parser.add_argument("--keep", action="store_true", help="keep what earlier questions read")
    parser.add_argument("--again", action="store_true", help="count the second time that a question is asked")
    parser.add_argument("--defaults", action="store_true", help="with the default limits of neighbourhoods")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in arguments.sets:
        make, limit = SETS[name]
        task = make(arguments.limit or limit)
        for database in arguments.databases:
            with ExitStack() as opened, tempfile.TemporaryDirectory() as models:
                compare(name, database, task, arguments, opened, Path(models))


def compare(
    name: str, database: str, task: Task, arguments: argparse.Namespace, opened: ExitStack, models: Path
) -> None:
    """Print how each method does on one database."""
    embeddings = kg.default_embeddings()
    place = DATABASES[database](opened, task.graph)
    store = open_store(opened.enter_context(Postgres()).url(), embeddings)
    ServerNames(store, embeddings).add(stored_names(place.graph))
    here = kg.GraphIndex.build(place.graph, embeddings)
    began = place.reader.queries
    there = kg.GraphIndex.connect(place.reader.executor, embeddings, store, max_facts=MAX_FACTS, timeout=TIMEOUT)
    print(
        f"\n### {name}, {database}: {len(place.graph):,} triples; {place.reader.queries - began} queries to connect\n"
    )
    print(
        "| method | n | same triples | same answers | truncated | queries, median (most) | rows, median (most) |"
        " CPU ms, memory | connected | wall ms, memory | connected |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    differing = []
    for method in arguments.methods:
        build = builder_of(method, here, task.known, models, arguments.defaults)
        local, far = build(here), build(there)
        rows = [both(local, far, question, place.reader, arguments) for question in task.asked]
        differing += [(method, row) for row in rows if row.here != row.there]
        print(table_row(method, rows), flush=True)
    for method, row in differing[:20]:
        print(f"\n{method}: {row.question}\n  memory: {str(row.here)[:300]}\n  {database}: {str(row.there)[:300]}")


class Asked(NamedTuple):
    """A question in memory and on a database: the evidence, and what it cost."""

    question: str
    here: list[Any]
    there: list[Any]
    truncated: bool
    queries: int
    rows: int
    cpu: tuple[float, float]
    wall: tuple[float, float]


def both(
    local: BaseKGRetriever,
    far: BaseKGRetriever,
    question: kg.Question,
    reader: CountingReader,
    arguments: argparse.Namespace,
) -> Asked:
    """Ask both."""
    if arguments.again:
        far.invoke(question.text, min_confidence=0.0)
    here, cpu_here, wall_here = timed(lambda: local.invoke(question.text, min_confidence=0.0))
    for retriever in () if arguments.keep else getattr(far, "retrievers", [far]):
        retriever.index.connected.forget()
    queries, rows = reader.queries, reader.rows
    there, cpu_there, wall_there = timed(lambda: far.invoke(question.text, min_confidence=0.0))
    return Asked(
        question.text,
        shown(here),
        shown(there),
        any(document.metadata["truncated"] for document in there),
        reader.queries - queries,
        reader.rows - rows,
        (cpu_here, cpu_there),
        (wall_here, wall_there),
    )


def shown(documents: Sequence[Any]) -> list[Any]:
    """Return the triples and answers of Documents; SG-RAG's triples come in the order of the database."""
    return [[sorted(document.metadata["triples"]), document.metadata["answers"]] for document in documents]


def timed(ask: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return a result, and the milliseconds that it took: of this process, and in all."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = ask()
    return found, 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


def table_row(method: str, rows: Sequence[Asked]) -> str:
    """Return a row of the table."""
    queries, read = [row.queries for row in rows], [row.rows for row in rows]
    medians = [statistics.median(times) for times in zip(*(row.cpu + row.wall for row in rows), strict=True)]
    cells = [
        method,
        len(rows),
        sum([one[0] for one in row.here] == [one[0] for one in row.there] for row in rows),
        sum([one[1] for one in row.here] == [one[1] for one in row.there] for row in rows),
        sum(row.truncated for row in rows),
        f"{statistics.median(queries):g} ({max(queries)})",
        f"{statistics.median(read):,g} ({max(read):,})",
        *(f"{value:.1f}" for value in medians),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def stored_names(graph: kg.KnowledgeGraph) -> Iterator[StoredName]:
    """Yield the names of a graph with the entities that bear them."""
    bearers: dict[str, list[str]] = {}
    for key in graph.entities:
        for name in {graph.label(key), *graph.aliases(key)}:
            bearers.setdefault(name, []).append(key)
    for name, keys in bearers.items():
        yield StoredName(name, tuple(sorted(keys)))


def builder_of(
    name: str, index: kg.GraphIndex, known: Sequence[kg.Question], models: Path, defaults: bool
) -> Callable[[kg.GraphIndex], BaseKGRetriever]:
    """Return what builds a method on either index; its model is trained in memory, once."""
    method = next(one for one in registry.METHODS if one.name == name)
    fields: dict[str, Any] = {}
    if method.trainer is not None:
        fields["model"] = models / name
        if not fields["model"].exists():
            method.load_trainer()(index, known[:TRAINING], output=fields["model"], seed=0)
    if method.labels:
        fields["examples"] = known
    kind = method.load_retriever()
    if not defaults and "max_nodes" in kind.model_fields:
        fields |= WHOLE
    return lambda on: kind.from_index(on, **fields)


if __name__ == "__main__":
    main()
