"""Times questions about whole entities, counts and means on a large synthetic graph.

    OMP_NUM_THREADS=1 python -m benchmarks.shapes_at_scale --size 43M [--folder FOLDER] [--output FILE]

A tenth of the entities, or 100,000, are of the type "Vessel" and have a length in metres, and each fact belongs to one
of 100 tenants. CPU milliseconds of `invoke` with a pattern, over an index that was opened from its folder: the first
call, which reads the values of names, and the median of 20 more. `benchmarks/views_at_scale.py` uses the same folder.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.synthetic_graph import SIZES, synthetic_graph
from kg_retrievers import GraphIndex, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.operations import Operation
from kg_retrievers.index import default_embeddings

#: How many things of the type there are, how often a pattern is asked, and how many tenants share the facts.
MEMBERS, TIMES, TENANTS = 100_000, 20, 100


def tenant(number: int) -> str:
    """Return the name of a tenant."""
    return f"tenant {number}"


def build(size: str) -> KnowledgeGraph:
    """Return a synthetic graph with things of a type that have a length, and with a tenant of each fact."""
    drawn, draw = synthetic_graph(*SIZES[size]), np.random.default_rng(2)
    members = drawn.entities[: min(MEMBERS, len(drawn.entities) // 10)]
    builder = GraphBuilder(types={name: ["Vessel"] for name in members})
    sets = np.array([builder.attribute_set({"tenant": tenant(number)}) for number in range(TENANTS)])
    used, ends = np.unique(np.append(drawn.heads, drawn.tails), return_inverse=True)
    heads, tails = builder.entities([drawn.entities[id] for id in used.tolist()])[ends].reshape(2, -1)
    kinds = builder.relations(drawn.relation_names)[drawn.relations]
    builder.add_ids(heads, kinds, tails, draw.choice(sets, len(heads)))
    del drawn, used, ends, heads, tails, kinds
    for number, name in enumerate(members):
        builder.add(name, "hull length", f"{20 + number % 3_000 / 10} m", {"tenant": tenant(number % TENANTS)})
    return KnowledgeGraph._from_builder(builder)


def opened(size: str, folder: Path) -> GraphIndex:
    """Return the index in a folder, which is built if it is not there."""
    embeddings = default_embeddings()
    if not (folder / "manifest.json").exists():
        GraphIndex.build(build(size), embeddings, path=folder)
    return GraphIndex.open(folder, embeddings)


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
    parser.add_argument("--folder", type=Path, help="the folder of the index, which is made if it is not there")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        measure(opened(options.size, options.folder or Path(folder)), options)


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
