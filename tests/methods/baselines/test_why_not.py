"""Every reason why a baseline lacks an entity, by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from explanation.obstacle_cases import CASES
from explanation.random_graphs import Step, random_steps

from kg_retrievers import DenseSubgraphRetriever, PageRankRetriever, PassageRetriever, RandomTripleRetriever
from kg_retrievers.core.retriever import BaseKGRetriever

NEAR = {"max_hops": 1}
CUT = {"max_hops": 3, "max_nodes": 4}
IN_SCOPE = {"not_linked", "no_such_edge", "too_far", "pruned"}

BASELINES: dict[type[BaseKGRetriever], tuple[list[dict[str, Any]], set[str]]] = {
    DenseSubgraphRetriever: ([NEAR, CUT, {"granularity": "triple", "k": 3}], IN_SCOPE | {"outscored"}),
    PageRankRetriever: ([{"k": 4}, {"k": 2, **NEAR}, {"k": 9, **CUT}], IN_SCOPE | {"outscored"}),
    PassageRetriever: (
        [{"k": 2}, {"scope": "neighborhood", **NEAR}, {"scope": "neighborhood", "max_hops": 3, "max_nodes": 3}],
        IN_SCOPE | {"outscored"},
    ),
    RandomTripleRetriever: (
        [{"k": 4}, {"k": 3, **NEAR}, {"k": 9, **CUT}, {"k": 5, "scope": "graph"}],
        IN_SCOPE | {"outscored"},
    ),
}


def check_rank(step: Step) -> None:
    """Check the rank in all that the retriever would return."""
    assert step.obstacle.why == "outscored"
    rank = step.document_rank()
    assert rank == step.obstacle.details["rank"] > step.k
    assert step.obstacle.lift.inputs == {"k": rank}


@pytest.mark.parametrize("kind", BASELINES, ids=lambda kind: kind.__name__)
def test_every_reason_is_true(kind: type[BaseKGRetriever]) -> None:
    fields, reasons = BASELINES[kind]
    seen: Counter[str] = Counter()
    make: Callable[..., BaseKGRetriever] = kind.from_index
    for step in random_steps(make, fields, rounds=36):
        seen[step.obstacle.why] += 1
        if not step.lies_in_scope:
            check_rank(step)
    assert set(seen) == reasons
    assert min(seen.values()) >= CASES, seen


def answers_left_out(retriever: BaseKGRetriever, question: str) -> dict[str, Any]:
    """Return half of the entities as gold answers."""
    return {"left_out": list(retriever.graph.entities)[::2]}


def test_gold_answers_are_left_out() -> None:
    seen: Counter[str] = Counter()
    fields = [{"k": 20, "without_answers": True}]
    for step in random_steps(RandomTripleRetriever.from_index, fields, rounds=12, inputs=answers_left_out):
        seen[step.obstacle.why] += 1
        if step.lies_in_scope:
            continue
        drawn = step.retriever.invoke(step.question, **{**step.inputs, "k": 10**6, "left_out": []})
        facts = [set(document.metadata["triples"][0][::2]) for document in drawn]
        own = [rank for rank, ends in enumerate(facts, 1) if step.entity in ends]
        left_out = set(step.inputs["left_out"])
        if step.obstacle.why == "excluded":
            assert all(facts[rank - 1] & left_out for rank in own)
            assert set(step.obstacle.lift.inputs["left_out"]) == left_out - facts[own[0] - 1]
        else:
            assert step.obstacle.lift.inputs["k"] == next(rank for rank in own if not facts[rank - 1] & left_out)
    assert seen["excluded"] >= CASES
