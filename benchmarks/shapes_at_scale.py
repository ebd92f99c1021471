"""Times questions about whole entities, counts and means on a large synthetic graph.

    python -m benchmarks.shapes_at_scale --size 43M [--output FILE]

A tenth of the entities, or 100,000, are of the type "Vessel" and have a length in metres. CPU milliseconds of `invoke`
with a pattern, over an index that was opened from its folder: the first call, which reads the values of names, and the
median of 20 more.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.synthetic_graph import SIZES, synthetic_graph
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.graph.operations import Operation

#: How many things of the type there are, and how often a pattern is asked.
MEMBERS, TIMES = 100_000, 20


def build(size: str) -> KnowledgeGraph:
    """Return a synthetic graph with things of a type that have a length."""
    drawn = synthetic_graph(*SIZES[size])
    names, relations = drawn.entities, drawn.relation_names
    members = names[: min(MEMBERS, len(names) // 10)]

    def facts() -> Iterator[tuple[str, str, str]]:
        for head, kind, tail in zip(drawn.heads.tolist(), drawn.relations.tolist(), drawn.tails.tolist(), strict=True):
            yield names[head], relations[kind], names[tail]
        for number, name in enumerate(members):
            yield name, "hull length", f"{20 + number % 3_000 / 10} m"

    return KnowledgeGraph.from_triples(facts(), types={name: ["Vessel"] for name in members})


def patterns(graph: KnowledgeGraph) -> dict[str, list[Pattern]]:
    """Return the patterns of each kind."""
    choose = random.Random(1)
    keys = [graph.entities[choose.randrange(len(graph.entities))] for _ in range(2 * TIMES + 2)]
    nodes = [Known(key, entity=key) for key in keys]
    vessel, length = Unknown("vessel", "Vessel"), Unknown("length")
    mean = Operation("mean", by="length")
    measured = Pattern.of((vessel, "hull length", length), target="vessel", typed=True, directed=True, operation=mean)
    count = Pattern.of(alone=[vessel], target="vessel", typed=True, operation="count")
    return {
        "connect": [Pattern.of(alone=pair, operation="connect") for pair in zip(nodes[::2], nodes[1::2], strict=True)],
        "describe": [Pattern.of(alone=[node], operation="describe") for node in nodes[: TIMES + 1]],
        "count of a type": [count] * (TIMES + 1),
        "mean over a type": [measured] * (TIMES + 1),
    }


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="1M")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    embeddings = HashedEmbeddings(16)
    with TemporaryDirectory() as folder:
        GraphIndex.build(build(options.size), embeddings, path=folder)
        index = GraphIndex.open(folder, embeddings)
        measure(index, options)


def measure(index: GraphIndex, options: argparse.Namespace) -> None:
    """Ask the patterns of each kind, and print and keep the times."""
    retriever = SimGRAGRetriever.from_index(index)
    measured = {}
    for kind, asked in patterns(index.graph).items():
        times = []
        for pattern in asked:
            start = time.process_time()
            retriever.invoke("?", pattern=pattern)
            times.append(1000 * (time.process_time() - start))
        measured[kind] = {"first": round(times[0], 1), "median": round(statistics.median(times[1:]), 1)}
        measured[kind]["greatest"] = round(max(times[1:]), 1)
        print(kind, measured[kind], flush=True)
    if options.output:
        options.output.write_text(json.dumps({"size": options.size, "cpu_ms": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
