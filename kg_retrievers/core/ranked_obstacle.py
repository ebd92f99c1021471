"""An entity whose facts are all ranked behind the first k."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.graph import Triple
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable


class Ranking(NamedTuple):
    """All facts that a method considers, best first.

    Attributes:
        triples: Their ids, shape (n).
        scores: Their scores, shape (n), falling.
        measure: What the scores are called.
    """

    triples: Array
    scores: Array
    measure: str

    @classmethod
    def of(cls, triples: Array, scores: Array, measure: str) -> Ranking:
        """Sort facts by falling score; ties keep their order."""
        order = np.argsort(-scores, kind="stable")
        return cls(triples[order], scores[order], measure)

    def rank_of(self, retriever: BaseNeighborhoodRetriever, entity: str) -> int | None:
        """Return the rank of the first fact with an entity, from 1; None where no fact has it."""
        (node,) = retriever.entity_ids([entity])
        at = np.flatnonzero((retriever.graph.edges[self.triples][:, [0, 2]] == node).any(1))
        return int(at[0]) + 1 if len(at) else None


def ranked_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, ranking: Ranking, k: int, stage: str
) -> Obstacle | None:
    """Return the obstacle of an entity whose first fact is ranked behind the first k; None where it is not.

    Args:
        retriever: The retriever; each of its Documents holds one fact.
        entity: The key of the entity.
        ranking: All facts that are considered.
        k: How many are returned.
        stage: The stage that ranks.
    """
    rank = ranking.rank_of(retriever, entity)
    if rank is None or rank <= k:
        return None
    details = rank_details(retriever, ranking, rank)
    last = float(ranking.scores[k - 1])
    text = (
        f"The first fact with {retriever.graph.label(entity)!r}, {details['shown']!r}, is number {rank} of "
        f"{len(ranking.triples)} by {ranking.measure}, with {details['score']:.3g}; k is {k}, and number {k} has "
        f"{last:.3g}."
    )
    return Obstacle("outscored", stage, text, Lift(inputs={"k": rank}), {**details, "k": k, "last_score": last})


def rank_details(retriever: BaseNeighborhoodRetriever, ranking: Ranking, rank: int) -> dict[str, Any]:
    """Return the figures of a fact by its rank, JSON-safe."""
    (fact,) = retriever.facts_of(ranking.triples[rank - 1 : rank])
    return {
        "rank": rank,
        "score": float(ranking.scores[rank - 1]),
        "fact": list(fact),
        "shown": shown_fact(retriever, fact),
        "considered": len(ranking.triples),
    }


def shown_fact(retriever: BaseNeighborhoodRetriever, fact: Triple) -> str:
    """Return a fact in words, with arrows."""
    label = retriever.graph.label
    return f"{label(fact.head)} -> {readable(fact.relation)} -> {label(fact.tail)}"
