"""The thirty-line rivals: cosine and BM25 over all facts, personalised PageRank as in HippoRAG, and ego graphs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Literal

import networkx as nx
import numpy as np

from benchmarks.rivals.contestants import MINILM, Contestant
from benchmarks.rivals.ground import LARGE, MOST_FACTS, FindFacts, Ground, best_first
from kg_retrievers import Triple


def cosine(ground: Ground, embeddings: str) -> FindFacts:
    """Order all facts by the cosine between their line and the question."""
    vectors = ground.fact_vectors(embeddings)

    def find(question: str) -> list[Triple]:
        return ground.best(vectors @ ground.embed(embeddings, [question])[0])

    return find


def bm25(ground: Ground, method: str = "lucene", stopwords: str | None = "en") -> FindFacts:
    """Order all facts by BM25 of their words, with the package bm25s."""
    import bm25s

    def tokens(texts: list[str]) -> list[list[str]]:
        split: list[list[str]] = bm25s.tokenize(texts, stopwords=stopwords, return_ids=False, show_progress=False)
        return split

    ranker = bm25s.BM25(method=method)
    ranker.index(tokens(ground.texts), show_progress=False)

    def find(question: str) -> list[Triple]:
        words = tokens([question.replace("_", " ")])[0]  # as in the lines; embeddings split underscores themselves
        return ground.best(np.asarray(ranker.get_scores(words))) if words else []

    return find


def pagerank(
    ground: Ground,
    damping: float = 0.5,
    ends: Literal["sum", "product"] = "sum",
    seeds: Literal["ours", "facts"] = "ours",
) -> FindFacts:
    """Order facts by the personalised PageRank of their ends; the walk restarts at the question's entities.

    As in HippoRAG (arXiv:2405.14831): the damping factor is 0.5, and an entity counts less the more facts it has. As in
    its second version (arXiv:2502.14802), the entities may come from the five facts nearest to the question.
    """
    graph = nx.Graph()
    graph.add_nodes_from(ground.graph.entities)
    graph.add_edges_from((fact.head, fact.tail) for fact in ground.facts)
    place = {key: position for position, key in enumerate(graph)}
    heads = np.array([place[fact.head] for fact in ground.facts])
    tails = np.array([place[fact.tail] for fact in ground.facts])

    def starts(question: str) -> dict[str, float]:
        if seeds == "ours":
            return {key: 1 / len(ground.facts_of.get(key, [0])) for key in ground.link(question)}
        scores = ground.fact_vectors("static") @ ground.embed("static", [question])[0]
        found: dict[str, float] = {}
        for at in best_first(scores, 5):
            for key in (ground.facts[at].head, ground.facts[at].tail):
                found[key] = found.get(key, 0.0) + float(scores[at]) / len(ground.facts_of[key])
        return found

    def find(question: str) -> list[Triple]:
        weights = starts(question)
        if not weights:
            return []
        ranks = nx.pagerank(graph, alpha=damping, personalization=weights)
        values = np.array([ranks[key] for key in graph])
        return ground.best(values[heads] + values[tails] if ends == "sum" else values[heads] * values[tails])

    return find


def ego_graph(ground: Ground, radius: int) -> FindFacts:
    """Return the facts within a radius of the question's entities, by networkx; the nearest first.

    The radius is at most 2 on a large graph: 3 is most of FB15k-237, and copying it takes minutes for some questions.
    """
    if len(ground.facts) > LARGE:
        radius = min(radius, 2)
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_nodes_from(ground.graph.entities)
    graph.add_edges_from((fact.head, fact.tail, position) for position, fact in enumerate(ground.facts))

    def around(keys: Iterable[str]) -> list[tuple[int, int]]:
        found: dict[int, int] = {}
        for key in keys:
            hops = nx.single_source_shortest_path_length(graph, key, cutoff=radius)
            for one, other, position in nx.ego_graph(graph, key, radius=radius).edges(keys=True):
                distance = min(hops[one], hops[other])
                found[position] = min(found.get(position, distance), distance)
        return sorted((distance, position) for position, distance in found.items())[:MOST_FACTS]

    def find(question: str) -> list[Triple]:
        return [ground.facts[position] for _, position in around(ground.link(question))]

    return find


PLAIN = {
    "Cosine": Contestant(partial(cosine, embeddings="static")),
    "Cosine, MiniLM": Contestant(partial(cosine, embeddings="minilm"), packages=MINILM),
    "BM25": Contestant(
        bm25,
        {
            "bm25+, without stop words": {"method": "bm25+"},
            "lucene, without stop words (default)": {},
            "lucene, all words": {"stopwords": None},
            "robertson, without stop words": {"method": "robertson"},
        },
        ("bm25s",),
    ),
    "PageRank from entities": Contestant(
        pagerank,
        {
            "0.5, sum": {},
            "0.5, product": {"ends": "product"},
            "0.85, sum": {"damping": 0.85},
            "0.85, product": {"damping": 0.85, "ends": "product"},
        },
        ("networkx",),
        is_given_entities=True,
    ),
    "PageRank from facts": Contestant(
        partial(pagerank, seeds="facts"),
        {"0.5, sum": {}, "0.5, product": {"ends": "product"}, "0.85, sum": {"damping": 0.85}},
        ("networkx",),
    ),
    "Ego graph": Contestant(
        ego_graph,
        {"radius 3 (large graphs: 2)": {"radius": 3}, "radius 2": {"radius": 2}, "radius 1": {"radius": 1}},
        ("networkx",),
        is_given_entities=True,
    ),
}
