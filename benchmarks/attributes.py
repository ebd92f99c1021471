"""Times a graph whose facts have three attributes beside the same graph without, and views of a share of its facts.

    OMP_NUM_THREADS=1 python -m benchmarks.attributes [--size 1M] [--distinct]

CPU seconds of making the graph and of making a view, bytes per fact on disk, and CPU milliseconds of describing an
entity and of a pattern of two facts: the median of 50 questions. With `--distinct` nearly all sets differ.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from benchmarks.synthetic_graph import SIZES, synthetic_graph
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown

Made = TypeVar("Made")

#: How many questions are asked.
TIMES = 50


def facts(size: str, *, attributes: bool, distinct: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield the facts of a synthetic graph, with or without attributes."""
    drawn, draw = synthetic_graph(*SIZES[size]), random.Random(1)
    names, relations = drawn.entities, drawn.relation_names
    for head, kind, tail in zip(drawn.heads.tolist(), drawn.relations.tolist(), drawn.tails.tolist(), strict=True):
        share = draw.random()
        more = {"tenant": "few" if share < 0.01 else "half" if share < 0.5 else "rest", "since": 1990 + int(30 * share)}
        more["confidence"] = draw.random() if distinct else round(draw.random(), 2)
        yield (names[head], relations[kind], names[tail], *([more] if attributes else []))


def timed(what: str, make: Callable[[], Made]) -> Made:
    """Make something, and print the CPU seconds that it took."""
    start = time.process_time()
    made = make()
    print(f"{what}: {time.process_time() - start:.2f} s", flush=True)
    return made


def ask(what: str, index: GraphIndex) -> None:
    """Print the median CPU milliseconds of patterns."""
    graph, choose = index.graph, random.Random(2)
    retriever = SimGRAGRetriever.from_index(index)
    for kind in ("describe", "two facts"):
        times = []
        for _ in range(TIMES):
            triple = graph.triple(choose.randrange(len(graph)))
            node = Known(triple.head, entity=triple.head)
            pattern = Pattern.of((node, triple.relation, Unknown("a")), (Unknown("b"), Unknown("r"), Unknown("a")))
            if kind == "describe":
                pattern = Pattern.of(alone=[node], operation="describe")
            start = time.process_time()
            retriever.invoke("?", pattern=pattern)
            times.append(1000 * (time.process_time() - start))
        print(f"{what}, {kind}: {statistics.median(times[1:]):.1f} ms", flush=True)


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="1M")
    parser.add_argument("--distinct", action="store_true", help="let nearly all sets of attributes differ")
    options = parser.parse_args()
    embeddings = HashedEmbeddings(16)
    for attributes in (False, True):
        what = "with attributes" if attributes else "without"
        rows = list(facts(options.size, attributes=attributes, distinct=options.distinct))
        graph = timed(f"{what}, made", lambda rows=rows: KnowledgeGraph.from_triples(rows))  # type: ignore[misc]
        with TemporaryDirectory() as folder:
            graph.save(folder)
            size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        print(f"{what}, on disk: {size / len(graph):.1f} bytes per fact with all names")
        index = GraphIndex.build(graph, embeddings)
        ask(what, index)
        if attributes:
            for tenants in (["few"], ["few", "half"]):
                view = timed(f"view of {tenants}", lambda index=index, tenants=tenants: index.view({"tenant": tenants}))  # type: ignore[misc]
                print(f"view of {tenants}: {len(view.graph):,} facts")
                ask(f"view of {tenants}", view)


if __name__ == "__main__":
    main()
