"""Every reason why the facts that resemble a question most lack an entity, by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from explanation.obstacle_cases import CASES
from explanation.random_graphs import Step, random_steps

from kg_retrievers import HashedEmbeddings, TripleSimilarityRetriever
from kg_retrievers.graph.verbalize import readable

FIELDS: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 4, "max_hops": 3},
    {"k": 5, "scope": "graph"},
    {"k": 10, "max_hops": 2, "max_nodes": 4},
]


def cosines(step: Step) -> list[tuple[float, str, str]]:
    """Return the cosine of the question with each fact in scope, embedded one by one, and its ends."""
    embeddings, graph = HashedEmbeddings(), step.retriever.graph
    direction = np.array(embeddings.embed_query(step.question))
    found = step.retriever.invoke(step.question, **{**step.inputs, "k": 10**6})
    rows = []
    for head, relation, tail in (document.metadata["triples"][0] for document in found):
        text = f"{graph.label(head)} {readable(relation)} {graph.label(tail)}"
        vector = np.array(embeddings.embed_documents([text])[0])
        rows.append((float(vector @ direction / np.linalg.norm(vector) / np.linalg.norm(direction)), head, tail))
    return rows


def test_every_reason_is_true() -> None:
    seen: Counter[str] = Counter()
    for step in random_steps(TripleSimilarityRetriever.from_index, FIELDS, rounds=32):
        obstacle = step.obstacle
        seen[obstacle.why] += 1
        if step.lies_in_scope:
            continue
        rows = cosines(step)
        best = max(score for score, head, tail in rows if step.entity in (head, tail))
        assert abs(best - obstacle.details["score"]) < 1e-4, obstacle.text
        assert sum(score > best + 1e-4 for score, _, _ in rows) < obstacle.details["rank"]
        assert sum(score > best - 1e-4 for score, _, _ in rows) >= obstacle.details["rank"]
        assert obstacle.details["considered"] == len(rows)
        assert obstacle.details["rank"] == step.rank() > step.k
        assert (obstacle.why, obstacle.lift.inputs) == ("outscored", {"k": step.rank()})
    assert set(seen) == {"not_linked", "no_such_edge", "too_far", "pruned", "outscored"}
    assert min(seen.values()) >= CASES, seen
