"""What keeps an entity out of the facts around a question's entities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.scope_obstacle import scope_obstacle

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
    if (obstacle := scope_obstacle(retriever, entity, seeds, STAGE)) is not None:
        return obstacle
    triples, hops, _ = retriever.facts_by_distance(seeds)
    (node,) = retriever.entity_ids([entity])
    positions = np.flatnonzero((retriever.graph.edges[triples][:, [0, 2]] == node).any(1))
    if not len(positions):
        return None
    rank = int(positions[0]) + 1
    first = f"the first fact with {retriever.graph.label(entity)!r} is number {rank}, the nearest first"
    details = {"rank": rank, "hops": int(hops[rank - 1])}
    if max_triples is not None:
        text = f"A Document holds {max_triples} facts (max_triples); {first}."
        return Obstacle("pruned", STAGE, text, Lift(fields={"max_triples": rank}), details)
    return Obstacle("outscored", STAGE, f"k is {state['k']}; {first}.", Lift(inputs={"k": rank}), details)
