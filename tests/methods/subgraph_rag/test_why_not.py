"""Every reason why the facts that a model scores highest lack an entity, by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from explanation.obstacle_cases import CASES
from explanation.random_graphs import Step, random_steps

from kg_retrievers import GraphIndex, HashedEmbeddings, SubgraphRAGRetriever, TripleScorer
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.methods.subgraph_rag.model import TripleScorerConfig

FIELDS: list[dict[str, Any]] = [
    {"k": 3},
    {"k": 6, "max_hops": 1},
    {"k": 2, "granularity": "subgraph", "max_triples": 5, "max_hops": 2},
    {"k": 1, "granularity": "subgraph", "max_triples": 8},
    {"k": 5, "max_hops": 3, "max_nodes": 4},
]


def drawn() -> TripleScorer:
    """Return a model whose weights are drawn."""
    probe = np.array(HashedEmbeddings().embed_documents([PROBE])[0], np.float32)
    config = TripleScorerConfig(dimension=len(probe), hidden=8, rank=4)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in config.shapes.items()}
    return TripleScorer(config, weights, probe=probe, embeddings="hashed")


MODEL = drawn()


def make(index: GraphIndex, **fields: Any) -> SubgraphRAGRetriever:
    return SubgraphRAGRetriever.from_index(index, model=MODEL, **fields)


def half_scored(retriever: BaseKGRetriever, question: str) -> dict[str, Any]:
    """Return a few facts that a caller scores by hand."""
    found = retriever.invoke(question, k=10**6)
    rows = [[*fact, 0.5] for document in found for fact in document.metadata["triples"]]
    return {"scored_triples": {"triples": rows[::4], "truncated": False}}


def check_rank_by_model(step: Step) -> None:
    """Check a rank by the scores that the model gives to all facts at once."""
    retriever, rank = step.retriever, step.obstacle.details["rank"]
    scope, _ = retriever.triples_in_scope(step.seeds)
    text = step.state["masked_question" if MODEL.config.mask_entities else "question"]
    scores = retriever._ready_model().score(text, scope, retriever.entity_ids(step.seeds)).tolist()
    facts = retriever.facts_of(scope)
    best = max(score for fact, score in zip(facts, scores, strict=True) if step.entity in (fact.head, fact.tail))
    assert sum(score > best + 1e-6 for score in scores) < rank <= sum(score > best - 1e-6 for score in scores)


def check(step: Step, seen: Counter[str]) -> None:
    obstacle, retriever = step.obstacle, step.retriever
    seen[obstacle.why] += 1
    if step.lies_in_scope:
        return
    if obstacle.why == "excluded":
        assert all(step.entity not in row[:3:2] for row in step.inputs["scored_triples"]["triples"])
    elif obstacle.why == "outscored":
        if retriever.granularity == "triple" and "scored_triples" not in step.inputs:
            check_rank_by_model(step)
        assert step.document_rank() == obstacle.details["rank"] > step.k
        assert obstacle.lift.inputs == {"k": step.document_rank()}
    elif "scored_triples" not in step.inputs:
        assert obstacle.why == "pruned"
        assert step.rank(granularity="triple") == obstacle.details["rank"] > retriever.max_triples
        assert obstacle.lift.fields == {"max_triples": step.rank(granularity="triple")}
    else:
        places = [step.entity in row[:3:2] for row in step.inputs["scored_triples"]["triples"]]
        assert places.index(True) + 1 == obstacle.details["rank"] > retriever.max_triples


def test_every_reason_is_true() -> None:
    seen: Counter[str] = Counter()
    for step in random_steps(make, FIELDS, rounds=32):
        check(step, seen)
    for step in random_steps(make, FIELDS, rounds=10, inputs=half_scored):
        check(step, seen)
    assert set(seen) == {"not_linked", "no_such_edge", "too_far", "pruned", "excluded", "outscored"}
    assert min(seen.values()) >= CASES, seen
