"""Why a union does not find an entity: the story of the member that needs least, and what fusing leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, NeighborhoodRetriever, UnionRetriever, why_not
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.explanation.run import run_stages
from kg_retrievers.explanation.why_not import combined, lift
from tests.explanation.obstacle_cases import CASES, check_case, is_found
from tests.methods.gnn_rag import test_why_not as of_gnn_rag
from tests.methods.rog import test_why_not as of_rog

#: All reasons: those of the members and those of fusing.
WHYS = (*of_rog.CHECKS, "outscored by fusing")


def members_of(rng: np.random.Generator) -> tuple[tuple[BaseKGRetriever, ...], str]:
    """Return one to three members on one graph, and a question."""
    rog, question, _ = of_rog.random_case(rng)
    if rng.random() < 0.15:
        return (NeighborhoodRetriever(index=rog.index, max_triples=int(rng.integers(1, 4))),), question
    members: list[BaseKGRetriever] = [rog]
    if rng.random() < 0.5:
        model = of_gnn_rag.MODELS[rng.integers(len(of_gnn_rag.MODELS))]
        fields = {"threshold": 0.3, "max_nodes": int(rng.integers(3, 9)), "max_hops": int(rng.integers(1, 3))}
        members.append(of_gnn_rag.GNNRAGRetriever.from_index(rog.index, model=model, **fields))  # type: ignore[arg-type]
    if rng.random() < 0.3:
        members.append(NeighborhoodRetriever(index=rog.index))
    order = rng.permutation(len(members))
    return tuple(members[at] for at in order), question


def random_case(rng: np.random.Generator) -> tuple[UnionRetriever, str, dict[str, Any]]:
    members, question = members_of(rng)
    fields: dict[str, Any] = {
        "k": int(rng.choice([1, 2, 1000])),
        "granularity": str(rng.choice(["subgraph", "triple"])),
    }
    if rng.random() < 0.4:
        fields["member_k"] = int(rng.integers(1, 3))
    return UnionRetriever(index=members[0].index, retrievers=members, **fields), question, {}


def needed(union: UnionRetriever, question: str, key: str, arguments: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """Return how many obstacles each member has for itself."""
    counts = {}
    for name, member in union.members.items():
        if member.proposes_answers or not union.proposes_answers:
            result = why_not(member, question, key, **arguments[name])
            counts[name] = len(result.obstacles) if result.lifted else 99
    return counts


def check_reason(union: UnionRetriever, question: str, inputs: dict[str, Any], key: str, one: Obstacle) -> None:
    """Check what an obstacle of a union states, as things are before it is lifted."""
    state = run_stages(union, question, inputs).state
    arguments = union.member_arguments(state)
    found_by = [name for name, member in union.members.items() if is_found(member, question, key, arguments[name])]
    if union.proposes_answers:
        found_by = [name for name in found_by if union.members[name].proposes_answers]
    if (name := one.details.get("member")) is None:
        assert one.why == "outscored"
        assert found_by
        every = union.invoke(question, **{**inputs, "k": 10_000})
        holding = [
            document.metadata["rank"]
            for document in every
            if key in document.metadata["answers"]
            or (not union.proposes_answers and any(key in fact for fact in document.metadata["triples"]))
        ]
        assert holding[0] == one.details["rank"] > state["k"]
        return
    assert not found_by
    counts = needed(union, question, key, arguments)
    assert counts[name] == min(counts.values())
    assert name == next(other for other, count in counts.items() if count == counts[name])
    theirs = why_not(union.members[name], question, key, **arguments[name]).obstacles[0]
    assert (theirs.why, theirs.stage) == (one.why, one.details["member_stage"])
    assert one.text.startswith(f"{name}: {theirs.text}")
    if one.lift.fields:
        assert one.lift == Lift(fields={"member_k": theirs.lift.inputs["k"]})
    if isinstance(union.members[name], of_rog.RelationPathRetriever):
        of_rog.check_reason(union.members[name], question, arguments[name], key, theirs)
    elif isinstance(union.members[name], of_gnn_rag.GNNRAGRetriever):
        there = run_stages(union.members[name], question, arguments[name]).state
        of_gnn_rag.CHECKS[theirs.why](union.members[name], there, key, theirs)


def check(union: UnionRetriever, question: str, key: str, inputs: dict[str, Any]) -> list[str]:
    """Return the reasons why an entity is not found, each checked."""
    result = check_case(union, question, key, inputs)
    now, given = union, inputs
    for one in result.obstacles:
        check_reason(now, question, given, key, one)
        now, given = lift(now, given, one.lift)  # type: ignore[assignment]
    return [_why(one) for one in result.obstacles]


def _why(one: Obstacle) -> str:
    return one.why if "member" in one.details else f"{one.why} by fusing"


def checked(seed: int, enough: Collection[str] = ()) -> Counter[str]:
    """Check some of the entities that the union of a case does not find, but for reasons seen often enough."""
    rng = np.random.default_rng(seed)
    union, question, inputs = random_case(rng)
    missing = [key for key in union.graph.entities if not is_found(union, question, key, inputs)]
    whys: Counter[str] = Counter()
    for key in sorted(rng.permutation(missing).tolist(), key=lambda key: key not in question)[:4]:
        if any(_why(one) not in enough for one in why_not(union, question, key, **inputs).obstacles):
            whys.update(check(union, question, key, inputs))
    return whys


def test_each_reason_is_true_and_its_lift_brings_the_entity_in() -> None:
    whys: Counter[str] = Counter()
    for seed in range(150):
        enough = [why for why in WHYS if whys[why] >= CASES]
        whys += checked(seed, enough) if len(enough) < len(WHYS) else Counter()
    assert all(whys[why] >= CASES for why in WHYS), whys


@pytest.mark.heavy
def test_many_more_cases() -> None:
    whys: Counter[str] = Counter()
    for seed in range(1000, 2500):
        whys += checked(seed)
    assert all(whys[why] >= CASES for why in WHYS), whys


# --- by hand ----------------------------------------------------------------------------------------------------------

FACTS = [("Her", "directed_by", "Jonze"), ("Her", "starring", "Adams"), ("Her", "release_year", "2013")]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())


def paths(*relations: str) -> dict[str, Any]:
    return {"relation_paths": [{"relations": [[relation, "forward"]]} for relation in relations]}


def test_a_member_is_given_arguments_of_its_own() -> None:
    rows = [{"relations": [["directed_by", "forward"]], "score": 1.0}]
    rog = of_rog.RelationPathRetriever.from_index(INDEX, proposer=of_rog.Proposer(rows))
    union = UnionRetriever.of(rog)
    assert union.invoke("What of Her?")[0].metadata["answers"] == ["Jonze"]
    inputs = {"member_inputs": {"RelationPathRetriever": paths("starring")}}
    assert union.invoke("What of Her?", **inputs)[0].metadata["answers"] == ["Adams"]
    with pytest.raises(InvalidArgumentError, match="by the names of members"):
        union.invoke("What of Her?", member_inputs={"Nobody": {}})
    with pytest.raises(InvalidArgumentError, match="no argument 'paths'"):
        union.invoke("What of Her?", member_inputs={"RelationPathRetriever": {"paths": []}})


def test_what_was_given_as_found_is_asked_for_anew() -> None:
    rows = [{"relations": [["directed_by", "forward"]], "score": 1.0}]
    union = UnionRetriever.of(of_rog.RelationPathRetriever.from_index(INDEX, proposer=of_rog.Proposer(rows)))
    found = {"RelationPathRetriever": [{"triples": [list(FACTS[1])], "score": 1.0, "answers": ["Adams"]}]}
    result = check_case(union, "What of Her?", "Jonze", {"found": found})
    assert [one.why for one in result.obstacles] == ["excluded"]
    assert result.lift.inputs == {"found": None, "failed": None}


def test_the_result_of_an_operation_counts_alone() -> None:
    rows = [{"relations": [["directed_by", "forward"]], "score": 1.0}]
    rog = of_rog.RelationPathRetriever.from_index(INDEX, proposer=of_rog.Proposer(rows))
    union = UnionRetriever.of(rog, NeighborhoodRetriever(index=INDEX))
    found = {
        "RelationPathRetriever": [{"triples": [list(FACTS[0])], "score": 1.0, "answers": ["Jonze"]}],
        "NeighborhoodRetriever": [{"triples": [list(FACTS[1])], "score": 1.0, "value": 1}],
    }
    result = check_case(union, "How many of Her?", "Jonze", {"found": found})
    assert [one.why for one in result.obstacles] == ["excluded"]
    assert result.obstacles[0].details == {
        "found_by": ["RelationPathRetriever"],
        "carried_out_by": ["NeighborhoodRetriever"],
    }


def test_lifts_of_members_are_joined() -> None:
    first = Lift(members={"A": Lift({"k": 2}, {"min_confidence": 0.1}), "B": Lift({"k": 3})})
    second = Lift(inputs={"k": 5}, members={"A": Lift(inputs={"k": 7})})
    both = combined([first, second])
    assert both == Lift(
        inputs={"k": 5}, members={"A": Lift({"k": 2}, {"min_confidence": 0.1, "k": 7}), "B": Lift({"k": 3})}
    )
    assert both.to_dict()["members"]["B"]["fields"] == {"k": 3}
