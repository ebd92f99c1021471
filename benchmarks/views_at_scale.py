"""Times views of a share of the facts of a large synthetic graph, and questions to them beside the whole graph.

    OMP_NUM_THREADS=1 python -m benchmarks.views_at_scale --size 43M [--folder FOLDER] [--output FILE]

The graph is that of `benchmarks/shapes_at_scale.py`, with one of 100 tenants for each fact, opened from its folder. The
whole graph and each view are asked in a process of their own: CPU seconds of making the view and of the first question,
memory beyond mapped files, the greatest memory in all, and CPU milliseconds of 40 more questions. Questions name an
entity and a relation of a fact of the graph that is asked, in words or in a pattern of one or two facts, whose texts
are looked up among all names.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.scale_steps import _resident_mb
from benchmarks.shapes_at_scale import TENANTS, opened, tenant
from benchmarks.synthetic_graph import SIZES
from kg_retrievers import KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown

#: The percentages of the facts that are in a view; 100 is the whole graph.
SHARES = (100, 1, 50)

#: How many questions of each kind are asked.
TIMES = 40


#: A question, and its pattern if it has one.
Asked = tuple[str, Pattern | None]


def questions(graph: KnowledgeGraph) -> dict[str, Iterator[Asked]]:
    """Return endless questions of each kind."""

    def hops(count: int, seed: int) -> Iterator[Asked]:
        choose = random.Random(seed)
        while True:
            fact = graph.triple(choose.randrange(len(graph)))
            nodes = [Known(graph.label(fact.head)), *(Unknown(name) for name in "abc"[:count])]
            relations = [Known(fact.relation), *(Unknown(name) for name in "rs")]
            yield "?", Pattern.of(*zip(nodes, relations, nodes[1:], strict=False), target="abc"[count - 1])

    def words(seed: int) -> Iterator[Asked]:
        choose = random.Random(seed)
        while True:
            fact = graph.triple(choose.randrange(len(graph)))
            yield f"What is the {fact.relation} of {graph.label(fact.head)}?", None

    return {"one hop": hops(1, 1), "two hops": hops(2, 2), "words": words(3)}


def measure(size: str, folder: Path, share: int) -> dict[str, Any]:
    """Make a view, and ask it."""
    index = opened(size, folder)
    before, start = _resident_mb(), time.process_time()
    if share < 100:
        index = index.view({"tenant": [tenant(number) for number in range(TENANTS * share // 100)]})
    measured: dict[str, Any] = {
        "facts": len(index.graph),
        "entities": len(index.graph.entities),
        "made_s": round(time.process_time() - start, 1),
        "view_mb": _resident_mb() - before,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    retriever = SimGRAGRetriever.from_index(index, min_confidence=0.0)
    for kind, asked in questions(index.graph).items():
        times, answered = [], 0
        for question, pattern in islice(asked, TIMES + 1):
            start = time.process_time()
            answered += bool(retriever.invoke(question, **({"pattern": pattern} if pattern else {})))
            times.append(1000 * (time.process_time() - start))
        measured[kind] = {
            "first_s": round(times[0] / 1000, 2),
            "median_ms": round(statistics.median(times[1:]), 1),
            "greatest_ms": round(max(times[1:]), 1),
            "answered": answered,
        }
    return measured | {"asked_mb": _resident_mb() - before}


def main() -> None:
    """Print the times of the whole graph and of each view."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="1M")
    parser.add_argument("--folder", type=Path, help="the folder of the index, which is made if it is not there")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--share", type=int, choices=SHARES, help="measure one graph in this process")
    options = parser.parse_args()
    if options.share:
        print(json.dumps(measure(options.size, options.folder, options.share)))
        return
    measured = {}
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        opened(options.size, folder)
        command = [sys.executable, "-m", "benchmarks.views_at_scale", "--size", options.size, "--folder", str(folder)]
        for share in SHARES:
            done = subprocess.run([*command, "--share", str(share)], check=True, stdout=subprocess.PIPE, text=True)
            measured[f"{share} %"] = json.loads(done.stdout.strip().splitlines()[-1])
            print(f"{share} %", json.dumps(measured[f"{share} %"]), flush=True)
    if options.output:
        options.output.write_text(json.dumps({"size": options.size, "shares": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
