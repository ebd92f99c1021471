"""The matcher on graphs of up to 43 million triples, with as many candidates as figure 5 of SimGRAG's paper suggests.

    python -m benchmarks.matching_at_scale --size 4.3M        # or --graph FOLDER of a saved graph or index
    python -m benchmarks.matching_at_scale --size 1M --python # also the paper's algorithm in plain Python

Patterns are parts of the graph, drawn by random walks. Every known node has 16,384 candidates and every relation 512,
or all that there are, at distances of 1.3 (i / N)^(1 / 16) over ranks i, as those of sentence embeddings over many
names; the right one stands at a log-uniform rank, half of the others are drawn by degree. k = 3. Times are CPU time of
one thread, one call a query, after one call a shape that is not counted. The Python side is that of `pattern_match`:
algorithm 1 with section 5.2, pruning at B >= worst; it is stopped after 2 s, which then count.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pattern_match import plain_python
from benchmarks.synthetic_graph import SIZES, synthetic_graph
from kg_retrievers import KnowledgeGraph
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching import Candidates, MatchNode, MatchQuery, match_pattern

SEED, K = 20261123, 3

#: How many candidates a known node has, and a relation.
K_NODES, K_RELATIONS = 16_384, 512

#: Name -> edges over nodes; nodes are known (K) or unknown (U).
SHAPES: dict[str, tuple[str, list[tuple[int, int]]]] = {
    "K-?": ("KU", [(0, 1)]),
    "K-K": ("KK", [(0, 1)]),
    "K-?-K": ("KUK", [(0, 1), (1, 2)]),
    "star ?(K,K,K)": ("UKKK", [(0, 1), (0, 2), (0, 3)]),
    "K-?-?-K": ("KUUK", [(0, 1), (1, 2), (2, 3)]),
    "4-cycle K-?-K-?": ("KUKU", [(0, 1), (1, 2), (2, 3), (3, 0)]),
}

#: Entities, and a relation for each edge, of a part of the graph.
Part = tuple[list[int], list[int]]


class Drawer(NamedTuple):
    """Draws queries over a graph.

    Attributes:
        adjacency: The graph.
        relations: How many relations it has.
        draw: Draws.
    """

    adjacency: Adjacency
    relations: int
    draw: np.random.Generator

    def query(self, shape: str) -> MatchQuery:
        """Draw a part of the graph in a shape, and candidates for what is known of it."""
        kinds, edges = SHAPES[shape]
        part = None
        while part is None:
            part = self._part(len(kinds), edges)
        entities, relations = part
        return MatchQuery(
            [
                MatchNode(self._entities(entity) if kind == "K" else None)
                for entity, kind in zip(entities, kinds, strict=True)
            ],
            [self._relations(relation) for relation in relations],
            [(head, term, tail) for term, (head, tail) in enumerate(edges)],
        )

    def _part(self, size: int, edges: Sequence[tuple[int, int]]) -> Part | None:
        """Draw a part of the graph; None where a walk does not close its cycle or comes back."""
        nodes, relations = [-1] * size, []
        nodes[0] = int(self.draw.integers(len(self.adjacency.indptr) - 1))
        for near, far in edges:
            low, high = (int(self.adjacency.indptr[nodes[near] + more]) for more in (0, 1))
            places = np.arange(low, high)
            if nodes[far] >= 0:
                places = places[self.adjacency.neighbors[low:high] == nodes[far]]
            elif far == size - 1 and (far, 0) in edges:  # what closes a cycle
                places = places[np.isin(self.adjacency.neighbors[low:high], self._neighbors(nodes[0]))]
            if not len(places):
                return None
            place = self.draw.choice(places)
            entity = int(self.adjacency.neighbors[place])
            if nodes[far] < 0 and entity in nodes:
                return None
            nodes[far] = entity
            relations.append(int(relation_of(self.adjacency.labels[place])))
        return nodes, relations

    def _neighbors(self, entity: int) -> Array:
        return self.adjacency.neighbors[self.adjacency.indptr[entity] : self.adjacency.indptr[entity + 1]]

    def _entities(self, right: int) -> Candidates:
        size, ends = len(self.adjacency.indptr) - 1, self.adjacency.neighbors
        by_degree = ends[self.draw.integers(len(ends), size=K_NODES)].astype(np.int64)
        others = np.column_stack([by_degree, self.draw.integers(size, size=K_NODES)]).ravel()
        _, firsts = np.unique(others, return_index=True)
        return self._planted(right, others[np.sort(firsts)], min(K_NODES, size), size)

    def _relations(self, right: int) -> Candidates:
        others = self.draw.permutation(self.relations)
        return self._planted(right, others, min(K_RELATIONS, self.relations), self.relations)

    def _planted(self, right: int, others: Array, count: int, names: int) -> Candidates:
        """Put the right one at a log-uniform rank among others."""
        rank = int(count ** self.draw.random())
        ids = np.insert(others[others != right][: count - 1], rank - 1, right)
        distances = 1.3 * (np.arange(1, count + 1) / names) ** (1 / 16)
        return Candidates(ids.astype(np.int32), distances[: len(ids)].astype(np.float32))


class Timed(NamedTuple):
    """What searches took.

    Attributes:
        milliseconds: CPU time of each.
        distances: What each found; None where a budget ended it before.
        truncated: How many a budget ended.
    """

    milliseconds: list[float]
    distances: list[list[float] | None]
    truncated: int


def time_matches(adjacency: Adjacency, relations: int, queries: Sequence[MatchQuery], **options: Any) -> Timed:
    """Time one call a query, after one call that is not counted."""
    milliseconds, found, truncated = [], [], 0
    for counted, query in enumerate([queries[0], *queries]):
        began = time.thread_time()
        try:
            matches = match_pattern(adjacency, relations, query, k=K, **options)
            distances, cut = [match.distance for match in matches], any(match.truncated for match in matches)
        except SearchBudgetError:
            distances, cut = None, True
        took = 1000 * (time.thread_time() - began)
        if counted:
            milliseconds.append(took)
            found.append(distances)
            truncated += cut
    return Timed(milliseconds, found, truncated)


def time_python(adjacency: Adjacency, relations: int, queries: Sequence[MatchQuery]) -> list[float]:
    """Time the paper's algorithm in plain Python over a prebuilt list of neighbors, in milliseconds of CPU."""
    rows = plain_rows(adjacency)
    milliseconds = []
    for query in queries:
        began = time.thread_time()
        plain_python(rows, query, relations)
        milliseconds.append(1000 * (time.thread_time() - began))
    return milliseconds


def plain_rows(adjacency: Adjacency) -> list[list[tuple[int, int]]]:
    """Return the neighbors of each entity as pairs of relation and entity; this takes 200 bytes a triple."""
    ends = adjacency.indptr.tolist()
    pairs = list(zip(relation_of(adjacency.labels).tolist(), adjacency.neighbors.tolist(), strict=True))
    return [pairs[low:high] for low, high in itertools.pairwise(ends)]


def measure_matching(graph: KnowledgeGraph, plain: bool, queries: int = 9) -> dict[str, Any]:
    """Return the CPU milliseconds of each shape on a graph, and of the paper's algorithm in `plain` Python."""
    adjacency, relations = graph.adjacency, len(graph.relations)
    measured: dict[str, Any] = {}
    for position, shape in enumerate(SHAPES):
        drawer = Drawer(adjacency, relations, np.random.default_rng((SEED, position)))
        drawn = [drawer.query(shape) for _ in range(queries)]
        timed = time_matches(adjacency, relations, drawn)
        took = timed.milliseconds
        of_shape = {"median_ms": round(float(np.median(took)), 1), "worst_ms": round(max(took), 1)}
        of_shape |= {"truncated": timed.truncated}
        if plain:
            slow = time_python(adjacency, relations, drawn)
            of_shape["plain_python_ratio"] = round(float(np.median(slow) / np.median(took)), 1)
        measured[shape] = of_shape
    return measured


def main() -> None:
    """Time every shape and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=Path, help="a folder of a saved graph or index")
    parser.add_argument("--size", choices=SIZES, default="1M", help="of a graph that is drawn")
    parser.add_argument("--queries", type=int, default=7)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--seconds", type=float, help="max_seconds of a search")
    parser.add_argument("--python", action="store_true", help="also time the paper's algorithm in plain Python")
    arguments = parser.parse_args()
    if arguments.graph:
        graph = KnowledgeGraph.open(arguments.graph)
        adjacency, relations = graph.adjacency, len(graph.relations)
    else:
        drawn = synthetic_graph(*SIZES[arguments.size])
        columns = np.column_stack([drawn.heads, drawn.relations, drawn.tails]).astype(np.int32)
        adjacency, relations = Adjacency.of_edges(columns, len(drawn.entities)), len(drawn.relation_names)
    print("| pattern | median ms | mean ms | worst ms | truncated |" + " Python, median ms |" * arguments.python)
    print("|---|---|---|---|---|" + "---|" * arguments.python)
    for position, shape in enumerate(arguments.shapes):
        drawer = Drawer(adjacency, relations, np.random.default_rng((SEED, position)))
        queries = [drawer.query(shape) for _ in range(arguments.queries)]
        timed = time_matches(adjacency, relations, queries, max_seconds=arguments.seconds)
        took = timed.milliseconds
        figures = f"{np.median(took):.1f} | {np.mean(took):.1f} | {max(took):.1f} | {timed.truncated} of {len(took)}"
        if arguments.python:
            figures += f" | {np.median(time_python(adjacency, relations, queries)):.1f}"
        print(f"| {shape} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
