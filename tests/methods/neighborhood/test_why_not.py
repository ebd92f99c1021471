"""Every reason why the neighborhood lacks an entity, by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

from explanation.obstacle_cases import CASES
from explanation.random_graphs import random_steps

from kg_retrievers import NeighborhoodRetriever

FIELDS: list[dict[str, Any]] = [
    {},
    {"max_hops": 3, "max_triples": 4},
    {"max_hops": 2, "max_nodes": 4},
    {"max_hops": 3, "granularity": "triple", "k": 3},
    {"max_hops": 3, "max_nodes": 3, "granularity": "triple", "k": 9},
]


def test_every_reason_is_true() -> None:
    seen: Counter[str] = Counter()
    for step in random_steps(NeighborhoodRetriever.from_index, FIELDS, rounds=30):
        obstacle = step.obstacle
        seen[obstacle.why] += 1
        if step.lies_in_scope:
            continue
        rank = step.rank(granularity="triple")
        assert rank == obstacle.details["rank"], obstacle.text
        if obstacle.why == "pruned":
            assert rank > step.retriever.max_triples
        else:
            assert (obstacle.why, obstacle.lift.inputs) == ("outscored", {"k": rank})
            assert rank > step.k
    assert set(seen) == {"not_linked", "no_such_edge", "too_far", "pruned", "outscored"}
    assert min(seen.values()) >= CASES, seen
