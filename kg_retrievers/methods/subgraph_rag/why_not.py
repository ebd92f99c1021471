"""What keeps an entity out of the facts that a trained model scores highest.

The reasons: "not_linked", "no_such_edge" (no fact has it), "too_far", "pruned" (by `max_nodes`, or by `max_triples`
where facts are packed into subgraphs), "excluded" (facts that a caller scored by hand do not hold it) and "outscored"
(by `k`). The method states no confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.rank_obstacles import Ranking, fact_rank_obstacle, outscored
from kg_retrievers.core.scope_obstacle import scope_obstacle
from kg_retrievers.graph import Evidence

#: The stages that score facts, and that choose of those scored.
SCORE, SELECT = "score_triples", "select_triples"

#: A row of the state: head, relation, tail, score.
Row = Sequence[Any]


def find_obstacle(
    retriever: BaseNeighborhoodRetriever,
    entity: str,
    state: Mapping[str, Any],
    *,
    rank_all: Callable[[], Ranking],
    select: Callable[[], Sequence[Evidence]],
    max_triples: int | None,
) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the first `k` facts or subgraphs.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        rank_all: Ranks all facts in scope, by the model.
        select: Makes evidence of the facts that were scored, best first, not only the first `k`.
        max_triples: How many facts are packed into subgraphs; None where each fact is a Document.
    """
    rows: list[Row] = state["scored_triples"]["triples"]
    place = next((number for number, row in enumerate(rows, 1) if entity in (row[0], row[2])), None)
    if place is not None and max_triples is not None and place > max_triples:
        return _unpacked(retriever, entity, place, len(rows), max_triples, SELECT)
    if place is not None:
        return _later(retriever, entity, select(), state["k"])
    ranking, wanted = rank_all(), state["k"] if max_triples is None else max_triples
    obstacle = scope_obstacle(retriever, entity, state["seed_entities"], SCORE, state["question"])
    is_given = [tuple(row[:3]) for row in rows] != retriever.facts_of(ranking.triples[:wanted])
    if is_given and (obstacle is None or obstacle.why != "no_such_edge"):
        return _given_without(retriever, entity, state["scored_triples"])
    if obstacle is not None:
        return obstacle
    if max_triples is None:
        return fact_rank_obstacle(retriever, entity, ranking, state["k"], SCORE)
    rank = ranking.rank_of(retriever, entity)
    return None if rank is None else _unpacked(retriever, entity, rank, len(ranking.triples), max_triples, SCORE)


def _later(retriever: BaseNeighborhoodRetriever, entity: str, evidence: Sequence[Evidence], k: int) -> Obstacle | None:
    """Return the obstacle of an entity whose fact or subgraph comes after the first k."""
    holds = (any(entity in (fact.head, fact.tail) for fact in item.triples) for item in evidence)
    rank = next((number for number, has in enumerate(holds, 1) if has), None)
    if rank is None or rank <= k:
        return None
    what = "fact" if retriever.granularity == "triple" else "subgraph"
    scores = [item.score for item in evidence]
    return outscored(f"The first {what} with {retriever.graph.label(entity)!r}", rank, scores, k, SELECT, "its score")


def _unpacked(
    retriever: BaseNeighborhoodRetriever, entity: str, rank: int, count: int, max_triples: int, stage: str
) -> Obstacle:
    text = (
        f"The first {max_triples} facts are packed into subgraphs (max_triples); the first with "
        f"{retriever.graph.label(entity)!r} is number {rank} of {count}."
    )
    details = {"rank": rank, "considered": count, "max_triples": max_triples}
    return Obstacle("pruned", stage, text, Lift(fields={"max_triples": rank}), details)


def _given_without(retriever: BaseNeighborhoodRetriever, entity: str, scored: Mapping[str, Any]) -> Obstacle:
    """Return the obstacle of an entity that is in none of the facts that a caller scored."""
    graph, last = retriever.graph, min((row[3] for row in scored["triples"]), default=0.0)
    fact = next(chain(graph.triples(head=entity), graph.triples(tail=entity)))
    text = f"None of the {len(scored['triples'])} facts that were given (scored_triples) has {graph.label(entity)!r}."
    rows = [*scored["triples"], [*fact, last]]
    lift = Lift(inputs={"scored_triples": {"triples": rows, "truncated": scored["truncated"]}})
    return Obstacle("excluded", SCORE, text, lift, {"given": len(scored["triples"]), "fact": list(fact)})
