"""What keeps an entity out of what the baselines find.

The reasons of all: "not_linked", "too_far" and "pruned" (by `max_nodes`), unless the scope is the whole graph, and
"no_such_edge" (no fact has it). Single facts and passages are "outscored" (by `k`); drawn facts are "excluded" where
they hold gold answers that are left out. None states a confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.rank_obstacles import Ranking, fact_rank_obstacle, outscored
from kg_retrievers.core.scope_obstacle import scope_obstacle
from kg_retrievers.graph import Triple


def by_rank(
    retriever: BaseNeighborhoodRetriever,
    entity: str,
    state: Mapping[str, Any],
    stage: str,
    rank_all: Callable[[], Ranking],
) -> Obstacle | None:
    """Return what keeps an entity out of the first `k` facts of a ranking.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        stage: The stage that ranks.
        rank_all: Ranks all facts in scope.
    """
    seeds = state["seed_entities"]
    obstacle = scope_obstacle(retriever, entity, seeds, stage, state["question"])
    return obstacle or fact_rank_obstacle(retriever, entity, rank_all(), state["k"], stage)


def by_distance(retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any]) -> Obstacle | None:
    """Return what keeps an entity out of all facts between the entities around those of the question."""

    def rank_all() -> Ranking:
        triples, hops, _ = retriever.facts_by_distance(state["seed_entities"])
        return Ranking(triples, 1 / hops, "1 / hops")

    if retriever.granularity == "subgraph":  # with all facts in one Document
        return scope_obstacle(retriever, entity, state["seed_entities"], "take_subgraph", state["question"])
    return by_rank(retriever, entity, state, "take_subgraph", rank_all)


def by_draw(
    retriever: BaseNeighborhoodRetriever,
    entity: str,
    state: Mapping[str, Any],
    draw_all: Callable[[], Mapping[Triple, float]],
) -> Obstacle | None:
    """Return what keeps an entity out of the facts that are drawn.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        draw_all: Draws all facts in scope, with their numbers.
    """
    stage, left_out = "draw_triples", list(state.get("left_out") or ())
    obstacle = scope_obstacle(retriever, entity, state.get("seed_entities") or [], stage, state["question"])
    if obstacle is not None:
        return obstacle
    label, k, drawn = retriever.graph.label(entity), state["k"], draw_all()
    facts = [(rank, fact) for rank, fact in enumerate(drawn, 1) if entity in (fact.head, fact.tail)]
    kept = [(rank, fact) for rank, fact in facts if not {fact.head, fact.tail} & set(left_out)]
    if not facts:
        return None
    if not kept:
        ends = {facts[0][1].head, facts[0][1].tail}
        text = f"All facts with {label!r} hold a gold answer, and those are left out (left_out)."
        lift = Lift(inputs={"left_out": [key for key in left_out if key not in ends]})
        return Obstacle("excluded", stage, text, lift, {"left_out": left_out})
    rank, fact = kept[0]
    if rank <= k:
        return None
    text = f"The first fact with {label!r} is drawn as number {rank} of {len(drawn)}; k is {k}."
    details = {"rank": rank, "score": drawn[fact], "fact": list(fact), "considered": len(drawn), "k": k}
    return Obstacle("outscored", stage, text, Lift(inputs={"k": rank}), details)


def by_passage(
    retriever: BaseNeighborhoodRetriever,
    entity: str,
    state: Mapping[str, Any],
    rank_all: Callable[[], Sequence[tuple[Sequence[int], float]]],
) -> Obstacle | None:
    """Return what keeps an entity out of the first `k` passages.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        rank_all: Ranks all passages in scope: the ids of their triples, and their scores.
    """
    stage, k, ranked = "rank_passages", state["k"], rank_all()
    (node,) = retriever.entity_ids([entity])
    edges = retriever.graph.edges
    holds = ((edges[np.array(triples)][:, [0, 2]] == node).any() for triples, _ in ranked)
    rank = next((rank for rank, has in enumerate(holds, 1) if has), None)
    if rank is None:  # a passage on an entity at the rim holds facts with entities beyond it
        return scope_obstacle(retriever, entity, state.get("seed_entities") or [], stage, state["question"])
    if rank <= k:
        return None
    scores = [score for _, score in ranked]
    what = f"The first passage with {retriever.graph.label(entity)!r}"
    return outscored(what, rank, scores, k, stage, "its cosine with the question")
