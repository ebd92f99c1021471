"""How many facts a question joins, where its set does not say it: as far as its answers are from its entities."""

from __future__ import annotations

from collections import defaultdict

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.graph import KnowledgeGraph


def hops_of(question: Question) -> int | None:
    """Return the number of facts that a question joins; None where nothing tells it.

    Of a question with a graph of its own that does not say it, the most facts between an answer and the entity of the
    question that is nearest to it, in either direction: the maximum number of hops of GNN-RAG's table 9
    (arXiv:2405.20139). Answers that no path leads to do not count.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("c", "r", "b")])
        >>> hops_of(GraphQuestion("q", seed_entities=("a",), answers=("b", "c"), graph=graph, id="0"))
        2
    """
    if question.hops is not None or not isinstance(question, GraphQuestion):
        return question.hops
    distances = _distances(question.graph, question.seed_entities)
    found = [distances[answer] for answer in question.answers if distances.get(answer)]
    return max(found, default=None)


def _distances(graph: KnowledgeGraph, seeds: tuple[str, ...]) -> dict[str, int]:
    """Return how many facts each entity is away from the nearest of some."""
    neighbors: dict[str, set[str]] = defaultdict(set)
    for head, _, tail in graph.triples():
        neighbors[head].add(tail)
        neighbors[tail].add(head)
    distances = dict.fromkeys(seeds, 0)
    frontier = list(distances)
    while frontier:
        reached = {there for here in frontier for there in neighbors[here]} - distances.keys()
        distances |= dict.fromkeys(reached, distances[frontier[0]] + 1)
        frontier = list(reached)
    return distances
