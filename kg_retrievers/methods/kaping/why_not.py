"""What keeps an entity out of the facts that resemble a question most.

The reasons: "outscored" (by `k`) and, unless the scope is the whole graph, "not_linked", "too_far" and "pruned" (by
`max_nodes`); "no_such_edge" where no fact has the entity. None is excluded otherwise, and the method states no
confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.core.rank_obstacles import Ranking, fact_rank_obstacle
from kg_retrievers.core.scope_obstacle import scope_obstacle

#: The stage that ranks the facts.
STAGE = "rank_triples"


def find_obstacle(retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any]) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the first `k` facts.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
    """
    seeds, question = state.get("seed_entities") or [], state["question"]
    if (obstacle := scope_obstacle(retriever, entity, seeds, STAGE, question)) is not None:
        return obstacle
    triples, _ = retriever.triples_in_scope(seeds)
    scores = retriever.index.triple_similarities(question, None if retriever.scope == "graph" else triples)
    ranking = Ranking.of(triples, scores, "its cosine with the question")
    return fact_rank_obstacle(retriever, entity, ranking, state["k"], STAGE)
