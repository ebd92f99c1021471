"""What keeps an entity out of the facts around a question's entities.

The reasons: "not_linked", "no_such_edge" (no fact has it), "too_far", "pruned" (by `max_nodes` or `max_triples`) and
"outscored" (single facts, by `k`). None is excluded otherwise, and the method states no confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.rank_obstacles import Ranking, fact_rank_obstacle, rank_details
from kg_retrievers.core.scope_obstacle import cut_off, scope_obstacle

#: The stage that collects the facts.
STAGE = "collect_facts"


def find_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any], max_triples: int | None
) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the facts around the question's entities.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        max_triples: The most facts of one Document; None where each fact is one.
    """
    seeds = state["seed_entities"]
    if (obstacle := scope_obstacle(retriever, entity, seeds, STAGE, state["question"])) is not None:
        return obstacle
    triples, hops, _ = retriever.facts_by_distance(seeds)
    near = np.ones(len(hops), np.bool_) if retriever.max_hops is None else hops <= retriever.max_hops
    ranking = Ranking(triples[near], 1 / hops[near], "1 / hops")
    rank = ranking.rank_of(retriever, entity)
    if rank is None:  # its facts in reach lead over entities that are cut off
        return cut_off(retriever, entity, seeds, STAGE, int(retriever.max_hops or 0))
    if max_triples is None:
        return fact_rank_obstacle(retriever, entity, ranking, state["k"], STAGE)
    text = (
        f"A Document holds {max_triples} facts (max_triples), the nearest first; the first with "
        f"{retriever.graph.label(entity)!r} is number {rank:,} of {len(ranking.triples):,}."
    )
    details = {**rank_details(retriever, ranking, rank), "rank": rank, "considered": len(ranking.triples)}
    return Obstacle("pruned", STAGE, text, Lift(fields={"max_triples": rank}), details)
