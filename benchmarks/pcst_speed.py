"""G-Retriever's retrieval on arrays: ours against PyTorch Geometric's `retrieval_via_pcst`.

    python benchmarks/pcst_speed.py [--edges N ...] [--seed N]

Both sides get the same random graph: E edges between E / 3 nodes, relations drawn from 500 with Zipf frequencies, unit
vectors of 384 float32 for each node, each relation and the question. Both give prizes to 3 nodes and to the edges of 5
relations, at a cost of 0.5 an edge, lowered as in the published code, with pruning "gw". Each side and size has a
process of its own with one thread, which makes the inputs, warms up on a small graph and then measures calls: the
median of their CPU time, and the peak of the resident memory, in all and above that before the first call. Of 1,000,000
edges, PyG takes one to two minutes and 7 GB.

- PyG: a `Data` with x, edge_index, edge_attr (a vector for each edge), node_idx and edge_idx. It ranks by cosine, which
  it computes for every edge, gives prizes and converts edges in Python, solves by pcst_fast 1.0.10, which is built as
  for the tests (its wheel gives wrong results under NumPy 2), and cuts out the subgraph. The tables of text are stubs,
  so that writing CSV, which ours does not do, costs nothing.
- Ours: arrays of heads, tails and relations, vectors of nodes and of relations. `ExactSearch` ranks both, as in a
  `GraphIndex`; then `prize_nodes`, `prize_edges`, `solve_prizes`. Numbers of nodes and edges come back.

"Worth": prizes less costs of what was found, by the published rule. It may differ, and the nodes with it. PyG takes
0.01 off the cap of each prize, which the published code does not, so that prizes of frequent relations fall below 0;
and many trees are worth the same, as most edges cost the same. So a last line compares what is found in trees, where
paths are unique, with relations so rare that the rules agree: there all nodes and edges should be the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from os import environ
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.index.exact_search import ExactSearch
from kg_retrievers.methods.g_retriever.prizes import STEP, prize_edges, prize_nodes, solve_prizes

SEED = 20261121
DIMENSION, RELATIONS = 384, 500
K_NODES, K_RELATIONS, EDGE_COST = 3, 5, 0.5
#: A side is called until this many seconds of CPU or calls are spent, once at least.
SECONDS, CALLS = 10.0, 100
#: Where both must find the same: trees, their edges, edges of a relation.
TREES, TREE_EDGES, TIED = 50, 1000, 20


class Graph(NamedTuple):
    """The inputs of both sides."""

    heads: Array  # int32, (m)
    tails: Array  # int32, (m)
    relations: Array  # int32, (m)
    node_vectors: Array  # float32, (n, d)
    relation_vectors: Array  # float32, (r, d)
    question: Array  # float32, (d)


class Measured(NamedTuple):
    """What one side took; times in milliseconds, memory in MiB."""

    times: list[float]
    loaded: float
    peak: float
    nodes: Array
    worth: float


Found = tuple[Array, Array]  # nodes and edges


def main() -> None:
    """Measure every size and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("torch", "torch_geometric")):
        print('Skipped: it needs PyTorch and PyTorch Geometric (`pip install "torch-geometric==2.8.1"`).')
        return
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from reference_pcst import ReferenceMissingError, build_reference

    try:
        reference = build_reference()
    except ReferenceMissingError as error:
        print(f"Skipped: it needs the reference solver. {error}")
        return
    assert reference.__file__ is not None
    sys.path.insert(0, str(Path(reference.__file__).parent))  # where PyG is to find it, in other processes too
    environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    names = ("torch-geometric", "torch", "numpy", "numba")
    print(", ".join(f"{name} {version(name)}" for name in names) + f", seed {options.seed}\n")
    columns = ["edges", "PyG, CPU ms", "ours, CPU ms", "ratio", "PyG, peak MiB (above inputs)", "ours", "ratio"]
    print("| " + " | ".join([*columns, "nodes PyG / ours / both", "worth PyG / ours"]) + " |")
    print("|" + "---|" * (len(columns) + 2))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for edges in options.edges:
            pyg, our = (pool.submit(measure, side, edges, options.seed).result() for side in (by_pyg, by_ours))
            before, after = median(pyg.times), median(our.times)
            both = len(np.intersect1d(pyg.nodes, our.nodes))
            print(
                f"| {edges:,} | {before:,.2f} (n = {len(pyg.times)}) | {after:,.2f} (n = {len(our.times)}) "
                f"| {before / after:.0f}x | {pyg.peak:,.0f} ({pyg.peak - pyg.loaded:,.0f}) "
                f"| {our.peak:,.0f} ({our.peak - our.loaded:,.0f}) | {pyg.peak / our.peak:.1f}x "
                f"| {len(pyg.nodes)} / {len(our.nodes)} / {both} | {pyg.worth:.4f} / {our.worth:.4f} |",
                flush=True,
            )
        equal = pool.submit(count_equal, options.seed).result()
    print(f"\nTrees where both find the same nodes and edges: {equal} of {TREES}")


def measure(side: Callable[[Graph], Callable[[], Found]], edges: int, seed: int) -> Measured:
    """Measure a side in the process that this is called in."""
    side(random_graph(1000, seed))()  # compiles, loads, warms up
    graph = random_graph(edges, seed)
    call = side(graph)
    loaded, times = peak_memory(), list[float]()
    while not times or (sum(times) < 1000 * SECONDS and len(times) < CALLS):
        began = time.process_time()
        nodes, found = call()
        times.append(1000 * (time.process_time() - began))
    peak = peak_memory()
    node_prizes, edge_prizes, cost = prizes(graph)
    worth = node_prizes[nodes].sum() + edge_prizes[found].sum() - cost * len(found)
    return Measured(times, loaded, peak, nodes, float(worth))


def peak_memory() -> float:
    """Return the most resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def random_graph(edges: int, seed: int) -> Graph:
    """Draw a graph as described above; nothing large is held but what is returned."""
    drawn = np.random.default_rng(seed)
    nodes = edges // 3
    frequencies = 1 / np.arange(1, RELATIONS + 1)
    drawn_relations = drawn.choice(RELATIONS, edges, p=frequencies / frequencies.sum())
    occurring, relations = np.unique(drawn_relations, return_inverse=True)
    heads, tails = drawn.integers(nodes, size=(2, edges), dtype=np.int32)
    return Graph(heads, tails, relations.astype(np.int32), *random_vectors(nodes, len(occurring), drawn))


def random_tree(seed: int) -> Graph:
    """Draw a tree in which all relations are as frequent."""
    drawn = np.random.default_rng(seed)
    tails = np.arange(1, TREE_EDGES + 1, dtype=np.int32)
    relations = drawn.permutation(TREE_EDGES).astype(np.int32) // TIED
    heads = drawn.integers(tails, dtype=np.int32)
    return Graph(heads, tails, relations, *random_vectors(TREE_EDGES + 1, TREE_EDGES // TIED, drawn))


def random_vectors(nodes: int, relations: int, drawn: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draw those of nodes, relations and the question."""
    return unit_vectors(nodes, drawn), unit_vectors(relations, drawn), unit_vectors(1, drawn)[0]


def unit_vectors(count: int, drawn: np.random.Generator) -> Array:
    """Draw directions."""
    vectors = drawn.standard_normal((count, DIMENSION), dtype=np.float32)
    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return vectors


def prizes(graph: Graph) -> tuple[Array, Array, float]:
    """Return the prizes of nodes and edges, and the cost of an edge."""
    question = graph.question[None]
    nodes = ExactSearch(graph.node_vectors).search(question, K_NODES)[0][0]
    relations = ExactSearch(graph.relation_vectors).search(question, K_RELATIONS)[0][0]
    node_prizes = prize_nodes(nodes, len(graph.node_vectors), K_NODES)
    edge_prizes = prize_edges(graph.relations, relations, K_RELATIONS, "published")
    return node_prizes, edge_prizes, min(EDGE_COST, float(edge_prizes.max()) * (1 - STEP / 2))


def by_ours(graph: Graph) -> Callable[[], Found]:
    """Return our retrieval from a graph."""
    return lambda: solve_prizes(graph.heads, graph.tails, *prizes(graph), pruning="gw")


def by_pyg(graph: Graph) -> Callable[[], Found]:
    """Return PyG's retrieval from a graph, in the form that it asks for."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.llm.utils.backend_utils import retrieval_via_pcst

    torch.set_num_threads(1)
    data = Data(
        x=torch.from_numpy(graph.node_vectors),
        edge_index=torch.from_numpy(np.stack([graph.heads, graph.tails]).astype(np.int64)),
        edge_attr=torch.from_numpy(graph.relation_vectors[graph.relations]),
        node_idx=np.arange(len(graph.node_vectors)),
        edge_idx=np.arange(len(graph.heads)),
    )
    question, text = torch.from_numpy(graph.question), NoText()

    def call() -> Found:
        found, _ = retrieval_via_pcst(data, question, text, text, K_NODES, K_RELATIONS, EDGE_COST)
        return found.node_idx, found.edge_idx

    return call


class NoText:
    """Stands for a table of pandas, of which any rows are written as nothing."""

    @property
    def iloc(self) -> NoText:
        """The rows."""
        return self

    def __getitem__(self, rows: Any) -> NoText:
        """Some of them."""
        return self

    def to_csv(self, **options: Any) -> str:
        """Nothing."""
        return ""


def count_equal(seed: int) -> int:
    """Return in how many trees both sides find the same."""
    count = 0
    for number in range(TREES):
        tree = random_tree(seed + number)
        (nodes, edges), (others, other_edges) = by_ours(tree)(), by_pyg(tree)()
        count += np.array_equal(nodes, np.sort(others)) and np.array_equal(edges, np.sort(other_edges))
    return count


if __name__ == "__main__":
    main()
