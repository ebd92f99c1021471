"""An entity of what a method considers that comes behind the first k: Documents, or facts one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle, role_of, shown_fact
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K
from kg_retrievers.graph.columns import Array


def document_rank_obstacle(
    retriever: BaseKGRetriever,
    entity: str,
    state: Mapping[str, Any],
    stage: str,
    last: Callable[[Any], dict[str, Any]],
) -> Obstacle:
    """Return what keeps an entity that evidence proposes out of the Documents.

    Args:
        retriever: The retriever.
        entity: Its key; in some evidence of the state: an answer, where the method proposes answers.
        state: What the stages wrote.
        stage: The name of the last stage, which ranks the evidence.
        last: The last stage; it takes as many Documents as the `k` of a state says.
    """
    documents, label = last({**state, "k": MAX_K})["documents"], retriever.graph.label(entity)
    as_answer = retriever.proposes_answers
    metadata = next((one.metadata for one in documents if role_of(entity, one.metadata, as_answer=as_answer)), None)
    if metadata is None:
        text = (
            f"{label!r} is in evidence whose facts all stand in Documents of better evidence: each fact is "
            f"a Document once (granularity)."
        )
        lift, granularity = Lift(fields={"granularity": "subgraph"}), retriever.granularity
        return Obstacle("outscored", stage, text, lift, {"granularity": granularity})
    rank, score, best = metadata["rank"], metadata["score"], documents[0].metadata["score"]
    stands = "an answer of" if as_answer else "in"
    text = (
        f"{label!r} is {stands} Document {rank}, whose score is {score:.3g}; that of the best is {best:.3g}, and k is "
        f"{state['k']}."
    )
    details = {"rank": rank, "score": score, "best": best, "k": state["k"]}
    return Obstacle("outscored", stage, text, Lift(inputs={"k": rank}), details)


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


def fact_rank_obstacle(
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
    what = f"The first fact with {retriever.graph.label(entity)!r}, {details['shown']},"
    return outscored(what, rank, ranking.scores, k, stage, ranking.measure, details)


def rank_details(retriever: BaseNeighborhoodRetriever, ranking: Ranking, rank: int) -> dict[str, Any]:
    """Return what fact has a rank, JSON-safe."""
    (fact,) = retriever.facts_of(ranking.triples[rank - 1 : rank])
    return {"fact": list(fact), "shown": shown_fact(retriever.graph, fact)}


def outscored(
    what: str,
    rank: int,
    scores: Sequence[float] | Array,
    k: int,
    stage: str,
    measure: str,
    details: Mapping[str, Any] | None = None,
) -> Obstacle:
    """Return the obstacle of what is ranked behind the first k.

    Args:
        what: What holds the entity.
        rank: Its rank, more than k.
        scores: The scores of all that is considered, falling.
        k: How many are returned.
        stage: The stage that ranks.
        measure: What the scores are called.
        details: Further figures.
    """
    score, last = float(scores[rank - 1]), float(scores[k - 1])
    text = (
        f"{what} is number {rank:,} of {len(scores):,} by {measure}, with {score:.3g}; k is {k}, and number {k} has "
        f"{last:.3g}."
    )
    figures = {"rank": rank, "score": score, "considered": len(scores), "k": k, "last_score": last}
    return Obstacle("outscored", stage, text, Lift(inputs={"k": rank}), {**(details or {}), **figures})
