"""Every reason why the subgraphs with the most prizes lack an entity, by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

from explanation.obstacle_cases import CASES
from explanation.random_graphs import Step, hops_between, random_steps

from kg_retrievers import PCSTRetriever
from kg_retrievers.core.retriever import BaseKGRetriever

PAPER = {"prizes": "paper", "edge_cost": 0.5}
FIELDS: list[dict[str, Any]] = [
    {"edge_cost": 2.0},
    {"edge_cost": 1.0, "k": 2, "max_hops": 1},
    {"granularity": "triple", "k": 4},
    {"max_triples": 2, "k": 2},
    {"max_nodes": 4},
    {"scope": "graph", "max_hops": 2},
    {**PAPER, "k_relations": 2, "k": 2},
    {**PAPER, "edge_cost": 3.0, "k_relations": 3},
    {**PAPER, "prizes": "published", "k_relations": 2, "granularity": "triple", "k": 2},
    {**PAPER, "scope": "graph", "k_relations": 2, "k_nodes": 6, "lone_entities": True},
    {**PAPER, "scope": "graph", "edge_cost": 4.5, "k_nodes": 5},
    {"max_hops": None, "edge_cost": 3.0},
]


def sets_of(step: Step, **fields: Any) -> list[set[str]]:
    """Return the entities of each subgraph that the retriever would return."""
    found = step.retriever.model_copy(update=fields).invoke(step.question, **{**step.inputs, "k": 10**6})
    return [set(document.metadata["labels"]) for document in found]


def check(step: Step, seen: Counter[str]) -> None:
    obstacle, retriever = step.obstacle, step.retriever
    seen[obstacle.why] += 1
    fields, state = obstacle.lift.fields, step.state
    starts = step.seeds or [key for key, _ in state["ranked_entities"]][: retriever.k_nodes]
    if obstacle.why == "too_far":
        assert hops_between(retriever.index, starts, step.entity) == fields["max_hops"] > retriever._longest_walk
        seen["walk"] += retriever.scope == "graph" or retriever.max_hops is None
    elif obstacle.why == "outscored":
        ranks = [step.entity in keys for keys in sets_of(step)]
        assert obstacle.lift.inputs == {"k": 1 + ranks.index(True)}
        assert 1 + ranks.index(True) > step.k
    elif "max_triples" in fields:
        assert not any(step.entity in keys for keys in sets_of(step)[: step.k])
        whole = sets_of(step, max_triples=10**9)
        assert step.entity in whole[obstacle.details["subgraph"] - 1]
        assert step.entity not in set().union(*whole[: obstacle.details["subgraph"] - 1])
    elif obstacle.why == "excluded":
        assert not any(step.entity in keys for keys in sets_of(step))
        (name,) = {*fields, *obstacle.lift.inputs}
        seen[name] += 1
        check_excluded(step, name, state)
    else:
        in_scope = step.lies_in_scope
        assert in_scope or hops_between(retriever.index, starts, step.entity) is None


def check_excluded(step: Step, name: str, state: Any) -> None:
    """Check that the entity has no edge with a prize that pays."""
    retriever = step.retriever
    scope = retriever.triples_in_scope(step.seeds)[0].tolist()
    facts = [retriever.graph.triple(id) for id in scope]
    present = {fact.relation for fact in facts}
    ranked = [relation for relation, _ in state["ranked_relations"] if relation in present]
    own = {fact.relation for fact in facts if step.entity in (fact.head, fact.tail)}
    best = min((ranked.index(relation) + 1 for relation in own & set(ranked)), default=None)
    if name == "lone_entities":
        assert step.entity in {*step.seeds, *(key for key, _ in state["ranked_entities"])}
    elif name == "ranked_relations":
        assert best is None
    elif name == "k_relations":
        assert best == step.obstacle.lift.fields[name] > retriever.k_relations
    else:
        assert retriever.k_relations - best + 1 <= retriever.edge_cost
        assert step.obstacle.lift.fields[name] < retriever.k_relations - best + 1


def few_relations(retriever: BaseKGRetriever, question: str) -> dict[str, Any]:
    """Return two relations that a caller ranks."""
    return {"ranked_relations": [["starring", 0.9], ["born_in", 0.8]]}


def test_every_reason_is_true() -> None:
    seen: Counter[str] = Counter()
    for step in random_steps(PCSTRetriever.from_index, FIELDS, rounds=60):
        check(step, seen)
    for step in random_steps(PCSTRetriever.from_index, [{**PAPER}], rounds=6, inputs=few_relations):
        check(step, seen)
    reasons = {"not_linked", "no_such_edge", "too_far", "pruned", "excluded", "outscored"}
    causes = {"walk", "lone_entities", "k_relations", "ranked_relations", "edge_cost"}
    assert set(seen) == reasons | causes
    assert min(seen[reason] for reason in reasons) >= CASES, seen
