"""Our matcher against a plain Python rendering of SimGRAG's optimised algorithm, on MetaQA.

    python benchmarks/pattern_match.py [--queries N]

Both get the same candidates and are timed the same way in one run: CPU time of one thread, one call a query, all
queries of a shape one after the other, first through one side, then through the other. The Python side is algorithm 1
with section 5.2 of the paper (greedy order, lower bound B), pruning at B >= worst (the paper prints >; the other is the
first thing to do, so it is not counted as ours), over a prebuilt adjacency of tuples. Patterns are parts of the real
graph; every known node has 16 candidates, every relation all 9. k = 3, isomorphism, ties broken: the paper's setting.
The distances found are asserted to be equal. The Python side is stopped after LIMIT seconds, counted as such. Two kinds
of candidates:

- vague: distances follow 1.3 (i / N)^(1 / 16) over ranks i, as those of sentence embeddings do over many names; the
  right one stands at a log-uniform rank, half of the others are drawn by degree. Texts that do not name things exactly.
- typo: every known name lacks one letter, and its candidates are the 16 nearest by hashed embeddings; relations by
  name. The right one mostly comes first, by far, so that both sides prune almost everything.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.methods.simgrag.matching import Candidates, MatchNode, MatchQuery, match_pattern

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261120
K = 3
#: Seconds of CPU after which the Python side is stopped; its time then counts as this, which flatters it.
LIMIT = 2.0

#: Name -> edges over nodes; nodes are known (K) or unknown (U).
SHAPES: dict[str, tuple[str, list[tuple[int, int]]]] = {
    "K-?": ("KU", [(0, 1)]),
    "K-K": ("KK", [(0, 1)]),
    "K-?-?": ("KUU", [(0, 1), (1, 2)]),
    "K-?-K": ("KUK", [(0, 1), (1, 2)]),
    "K-?-?-?": ("KUUU", [(0, 1), (1, 2), (2, 3)]),
    "K-?-?-K": ("KUUK", [(0, 1), (1, 2), (2, 3)]),
    "star ?(K,K,K)": ("UKKK", [(0, 1), (0, 2), (0, 3)]),
    "star K(?,?,K)": ("KUUK", [(0, 1), (0, 2), (0, 3)]),
    "square K-?-K-?": ("KUKU", [(0, 1), (1, 2), (2, 3), (3, 0)]),
}

Row = list[tuple[int, int]]


def main() -> None:
    """Time every shape and print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=30, help="queries per shape")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments = parser.parse_args()
    count = arguments.queries
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()))
    indptr, neighbors, labels = graph.adjacency.indptr, graph.adjacency.neighbors, graph.adjacency.labels
    rows: list[Row] = [
        list(dict.fromkeys(zip(relation_of(labels[low:high]).tolist(), neighbors[low:high].tolist(), strict=True)))
        for low, high in itertools.pairwise(indptr)
    ]
    mode: dict[str, Any] = {"k": K, "distinct": "nodes", "ties": "break"}
    drawn = random.Random(SEED)
    print(f"{graph}, {count} queries a shape, CPU time\n")
    columns = ["candidates", "pattern", "plain Python, median ms", "ours, median ms", "ratio of medians", "of totals"]
    print("| " + " | ".join([*columns, "our worst", "Python stopped"]) + " |")
    print("|" + "---|" * (len(columns) + 2))
    for kind, name in ((kind, name) for kind in ("vague", "typo") for name in arguments.shapes):
        patterns = [draw(name, graph, rows, drawn) for _ in range(count)]
        if kind == "vague":
            queries = [vague(pattern, graph, drawn) for pattern in patterns]
        else:
            queries = [retriever.query(with_typos(pattern, drawn)) for pattern in patterns]
        expected, slow = timed(lambda query: plain_python(rows, query, len(graph.relations)), queries)
        found, fast = timed(lambda query: match_pattern(graph.adjacency, len(graph.relations), query, **mode), queries)
        for matches, distances in zip(found, expected, strict=True):
            if distances is not None:
                np.testing.assert_allclose([match.distance for match in matches], distances, atol=1e-5)
        medians = float(np.median(slow)), float(np.median(fast))
        print(
            f"| {kind} | {name} | {medians[0]:.2f} | {medians[1]:.2f} | {medians[0] / medians[1]:.1f} "
            f"| {sum(slow) / sum(fast):.1f} | {max(fast):.1f} ms | {expected.count(None)} |",
            flush=True,
        )


def timed(run: Callable[[MatchQuery], Any], queries: Sequence[MatchQuery]) -> tuple[list[Any], list[float]]:
    """Return the results and the milliseconds of CPU of one call each, after a first one that is not counted."""
    run(queries[0])
    results, times = [], []
    for query in queries:
        began = time.thread_time()
        results.append(run(query))
        times.append(1000 * (time.thread_time() - began))
    return results, times


def draw(name: str, graph: KnowledgeGraph, rows: Sequence[Row], drawn: random.Random) -> Pattern:
    """Draw a part of the graph in a shape."""
    kinds, edges = SHAPES[name]
    while True:
        nodes: dict[int, int] = {}
        relations = []
        for a, b in edges:
            if a not in nodes:
                nodes[a] = drawn.randrange(len(rows))
            options = [
                (r, e) for r, e in rows[nodes[a]] if nodes.get(b, e) == e and (b in nodes or e not in nodes.values())
            ]
            if not options:
                break
            relation, nodes[b] = drawn.choice(options)
            relations.append(relation)
        if len(relations) == len(edges):
            break
    terms = [Known(graph.entities[nodes[v]]) if kind == "K" else Unknown(f"node {v}") for v, kind in enumerate(kinds)]
    triples = [
        (terms[a], Known(graph.relations[relation]), terms[b])
        for (a, b), relation in zip(edges, relations, strict=True)
    ]
    return Pattern.of(*triples)


def vague(pattern: Pattern, graph: KnowledgeGraph, drawn: random.Random) -> MatchQuery:
    """Give every known node 16 candidates and every relation all, the right one at a log-uniform rank."""
    nodes, relations = pattern.nodes, list(dict.fromkeys(triple.relation for triple in pattern.triples))
    ends = graph.adjacency.neighbors

    def planted(right: int, others: list[int], names: int) -> Candidates:
        count = len(others) + 1
        rank = int(count ** drawn.random())
        ids = [*others[: rank - 1], right, *others[rank - 1 :]]
        distances = 1.3 * (np.arange(1, count + 1) / names) ** (1 / 16)
        return Candidates(np.array(ids, np.int32), distances.astype(np.float32))

    def entity_candidates(key: str) -> Candidates:
        right = graph.entities.find(key)
        others: list[int] = []
        while len(others) < 15:
            by_degree = len(others) % 2 == 0
            other = int(ends[drawn.randrange(len(ends))]) if by_degree else drawn.randrange(len(graph.entities))
            if other != right and other not in others:
                others.append(other)
        return planted(right, others, len(graph.entities))

    def relation_candidates(name: str) -> Candidates:
        right = graph.relations.find(name)
        others = [relation for relation in range(len(graph.relations)) if relation != right]
        drawn.shuffle(others)
        return planted(right, others, len(graph.relations))

    return MatchQuery(
        [MatchNode(entity_candidates(node.text) if isinstance(node, Known) else None) for node in nodes],
        [relation_candidates(relation.text) if isinstance(relation, Known) else None for relation in relations],
        [(nodes.index(head), relations.index(relation), nodes.index(tail)) for head, relation, tail in pattern.triples],
    )


def with_typos(pattern: Pattern, drawn: random.Random) -> Pattern:
    """Drop one letter of every known name."""
    terms = {node: Known(typo(node.text, drawn)) for node in pattern.nodes if isinstance(node, Known)}
    return Pattern.of(*((terms.get(head, head), r, terms.get(tail, tail)) for head, r, tail in pattern.triples))


def typo(name: str, drawn: random.Random) -> str:
    """Drop one letter."""
    position = drawn.randrange(len(name))
    return (name[:position] + name[position + 1 :]).strip() or name


def plain_python(rows: Sequence[Row], query: MatchQuery, relations: int) -> list[float] | None:
    """Return the K smallest distances by the paper's algorithm: isomorphism, direction ignored; None if stopped."""
    deadline = time.thread_time() + LIMIT
    nodes = [
        None
        if node.entities is None
        else dict(zip(node.entities.ids.tolist(), node.entities.distances.tolist(), strict=True))
        for node in query.nodes
    ]
    terms = [
        dict.fromkeys(range(relations), 0.0)
        if term is None
        else dict(zip(term.ids.tolist(), term.distances.tolist(), strict=True))
        for term in query.relations
    ]
    root = min((v for v in range(len(nodes)) if nodes[v] is not None), key=lambda v: len(nodes[v] or {}), default=0)
    order, placed, left = [], {root}, list(query.edges)
    stack = [root]
    while left:  # depth first
        here = stack[-1]
        edge = next((e for e in left if here in (e[0], e[2])), None)
        if edge is None:
            stack.pop()
            continue
        left.remove(edge)
        there = edge[2] if edge[0] == here else edge[0]
        order.append((here, edge[1], there))
        if there not in placed:
            placed.add(there)
            stack.append(there)
    rest = [0.0] * (len(order) + 1)
    seen = {root}
    fresh = []
    for u, _, v in order:
        fresh.append(v not in seen)
        seen |= {u, v}
    for i in range(len(order) - 1, -1, -1):
        _, t, v = order[i]
        cheapest = nodes[v]
        own = min(cheapest.values()) if fresh[i] and cheapest is not None else 0.0
        rest[i] = rest[i + 1] + min(terms[t].values()) + own
    best: list[float] = []  # a heap of negated distances

    def worst() -> float:
        return -best[0] if len(best) == K else float("inf")

    def expand(i: int, cost: float, bound: dict[int, int]) -> None:
        if i < len(order) and time.thread_time() > deadline:
            raise TimeoutError
        if i == len(order):
            heapq.heappush(best, -cost)
            if len(best) > K:
                heapq.heappop(best)
            return
        u, t, v = order[i]
        of_relation, of_node = terms[t], nodes[v]
        options = []
        if fresh[i]:
            taken = set(bound.values())
            for relation, e in rows[bound[u]]:
                if e in taken or relation not in of_relation:
                    continue
                if of_node is None:
                    options.append((of_relation[relation], e))
                elif e in of_node:
                    options.append((of_relation[relation] + of_node[e], e))
        else:
            options = [(of_relation[r], e) for r, e in rows[bound[u]] if e == bound[v] and r in of_relation]
        options.sort()
        for price, e in options:
            if cost + price + rest[i + 1] >= worst():
                break
            expand(i + 1, cost + price, {**bound, v: e})

    candidates = nodes[root]
    starts = (
        sorted((d, e) for e, d in candidates.items())
        if candidates is not None
        else [(0.0, e) for e in range(len(rows))]
    )
    try:
        for price, e in starts:
            if price + rest[0] >= worst():
                break
            expand(0, price, {root: e})
    except TimeoutError:
        return None
    return sorted(-distance for distance in best)


if __name__ == "__main__":
    main()
