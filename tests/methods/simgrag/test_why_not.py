"""Why SimGRAG does not find an entity, checked by runs with what is lifted and by a plain evaluator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from explanation.obstacle_cases import CASES, check_case, is_found
from langchain_core.runnables import RunnableLambda
from methods.random_patterns import random_graph, random_pattern
from methods.simgrag.plain_matches import RULES, nearest_distance
from plain_evaluator import evaluate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.errors import PatternError
from kg_retrievers.explanation.why_not import WhyNot, lift
from kg_retrievers.graph import Term
from kg_retrievers.graph.operations import Operation
from kg_retrievers.questions.operations import carried_out

QUESTION, EXCLUDING = "What is there?", "What else is there?"


def random_fields(choose: random.Random) -> dict[str, Any]:
    """Fields of the retriever, tight ones among them."""
    return {
        "distinct": choose.choice(["auto", "auto", "known", "nodes", "none"]),
        "direction": choose.choice(["ignore", "respect"]),
        "k_nodes": choose.choice([1, 2, 16]),
        "k_relations": choose.choice([1, 2, 16]),
        "k_types": choose.choice([1, 16]),
        "node_types": choose.choice(["distance", "candidates", "ignore"]),
        "ties": choose.choice(["merge", "merge", "break"]),
        "granularity": choose.choice(["subgraph", "subgraph", "triple"]),
        "max_distance": choose.choice([None, None, 0.0, 1.0]),
        "max_bindings": choose.choice([1, 2, 10_000]),
        "max_scans": choose.choice([50_000_000, 5, 20]),
    }


def retriever_of(graph: KnowledgeGraph, pattern: Pattern, **fields: Any) -> SimGRAGRetriever:
    index = GraphIndex.build(graph, HashedEmbeddings(64))
    return SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(lambda _: pattern), **fields)


def checked(seeds: range, **fields: Any) -> Iterator[tuple[SimGRAGRetriever, str, str, WhyNot]]:
    """Yield random questions with an entity that is no answer, and why; see `check_case`."""
    for seed in seeds:
        choose = random.Random(seed)
        graph = random_graph(choose)
        try:
            pattern = random_pattern(choose, graph)
            retriever = retriever_of(graph, pattern, **{**random_fields(choose), **fields})
            question, entity = choose.choice([QUESTION, QUESTION, EXCLUDING]), choose.choice(list(graph.entities))
            if is_found(retriever, question, entity, {}):
                continue
        except PatternError:  # absent triples around two unknowns, or nothing known
            continue
        yield retriever, question, entity, check_case(retriever, question, entity, {})


# --- what each reason claims ------------------------------------------------------------------------------------------


def pattern_of(retriever: SimGRAGRetriever, given: dict[str, Any]) -> Pattern:
    """The pattern of a run, as it is carried out."""
    read = Pattern.from_dict(given["pattern"]) if "pattern" in given else retriever.pattern_generator.invoke("")
    carried = carried_out(retriever.index, read).pattern
    return replace(carried, directed=retriever.respects_direction(carried))


def fits(graph: KnowledgeGraph, pattern: Pattern, entity: str, left_out: tuple[int, ...] = ()) -> bool:
    """Whether the triples of a pattern, perhaps without some, fit a graph with an entity as the target."""
    one = Known("?", None, entity)

    def node(term: Term) -> Term:
        if isinstance(term, Unknown):
            return one if term.name == pattern.target else Unknown(term.name)
        return term

    kept = [triple for at, triple in enumerate(pattern.triples) if at not in left_out]
    triples = [(node(head), relation, node(tail)) for head, relation, tail in kept]
    if not triples:
        return True
    plain = Pattern.of(*triples, directed=pattern.directed, operation=Operation("exists"))
    return bool(evaluate(graph, plain, distinct="none", direction="ignore").value)


def claim_no_such_edge(now: SimGRAGRetriever, question: str, entity: str, given: Any, obstacle: Obstacle) -> None:
    if not obstacle.lift.facts:  # an operation names a relation that the graph has not got
        terms = [triple.relation for triple in now.pattern_generator.invoke("").triples]
        assert any(isinstance(term, Known) and term.text not in now.graph.relations for term in terms)
        return
    pattern, graph, facts = Pattern.from_dict(obstacle.lift.inputs["pattern"]), now.graph, obstacle.lift.facts
    assert nearest_distance(now, replace(pattern, target=pattern.target), question, entity, ()) is None
    assert not {*facts} & {*graph.triples()}
    lacking = len(obstacle.details["asked"])
    exact = {node.text for node in pattern.nodes if isinstance(node, Known)} <= {"?", *graph.names, *graph.entities}
    if exact and all(t.relation.text in graph.relations for t in pattern.triples if isinstance(t.relation, Known)):
        positions = range(len(pattern.triples))
        assert not any(
            fits(graph, pattern, entity, some) for n in range(lacking) for some in combinations(positions, n)
        )
        assert fits(graph.with_changes(added=facts), pattern, entity)


def claim_excluded(now: SimGRAGRetriever, question: str, entity: str, given: Any, obstacle: Obstacle) -> None:
    details, pattern = obstacle.details, pattern_of(now, given)
    if "asks" in details:
        kind = pattern.operation.kind if pattern.operation else "list"
        assert kind == details["asks"] or kind in ("exists", "compare")
    elif "max_distance" in obstacle.lift.fields:
        assert now.max_distance is not None
        assert details["distance"] > now.max_distance
        if not any(node.type for node in pattern.nodes):
            assert_distance(now, pattern, question, entity, details["distance"])
    elif "own" in details:
        assert entity not in evaluated(now, pattern).answers
    else:
        broken = next(rule for rule in RULES if rule in rule_names(obstacle))
        kept = RULES[: RULES.index(broken)]
        assert nearest_distance(now, pattern, question, entity, kept) is not None
        assert nearest_distance(now, pattern, question, entity, [*kept, broken]) is None


def assert_distance(now: SimGRAGRetriever, pattern: Pattern, question: str, entity: str, said: float) -> None:
    """Assert that the nearest match is as far away as is said, by the strict rule or, without one, by the wider one."""
    near = nearest_distance(now, pattern, question, entity)
    if near is None:
        near = nearest_distance(now, pattern, question, entity, [rule for rule in RULES if rule != "distinct"])
    assert near == pytest.approx(said, abs=1e-4)


def rule_names(obstacle: Obstacle) -> list[str]:
    """The rule that an obstacle says to be broken."""
    by_detail = {"condition": "conditions", "absent": "absent", "different": "different", "same": "distinct"}
    named = [rule for detail, rule in by_detail.items() if detail in obstacle.details]
    return named or ["direction" if "other way round" in obstacle.text else "types"]


def evaluated(now: SimGRAGRetriever, pattern: Pattern) -> Any:
    return evaluate(now.graph, pattern, distinct=now.distinct, direction=now.direction)


def claim_outscored(now: SimGRAGRetriever, question: str, entity: str, given: Any, obstacle: Obstacle) -> None:
    pattern, details = pattern_of(now, given), obstacle.details
    typed = any(node.type for node in pattern.nodes)
    if "rank" in details:
        assert details["rank"] > given.get("k", 1)
        assert not is_found(now, question, entity, {**given, "k": details["rank"] - 1})
        assert details["distance"] >= details["best_distance"]
        if not typed:
            assert_distance(now, pattern, question, entity, details["distance"])
    elif "own" in details and not typed:
        assert entity not in evaluated(now, pattern).answers
        assert entity in evaluated(now, replace(pattern, operation=None)).answers
        assert details["value"] == evaluated(now, pattern).value


def claim_pruned(now: SimGRAGRetriever, question: str, entity: str, given: Any, obstacle: Obstacle) -> None:
    pattern, fields = pattern_of(now, given), obstacle.lift.fields
    for name in ("k_nodes", "k_relations"):
        if name in fields:
            wide = now.with_fields({"k_nodes": 100, "k_relations": 100} | fields)
            fewer = now.with_fields({"k_nodes": 100, "k_relations": 100, name: fields[name] - 1})
            assert nearest_distance(wide, pattern, question, entity, ()) is not None
            assert nearest_distance(now, pattern, question, entity, ()) is None
            assert fields[name] > getattr(now, name)
            assert fewer is not None
    if "max_bindings" in fields and "needed" in obstacle.details:
        fewer = now.with_fields({"max_bindings": fields["max_bindings"] - 1})
        assert not is_found(fewer, question, entity, given)
    if "max_scans" in fields:
        documents = now.invoke(question, **given)
        assert all(document.metadata["truncated"] for document in documents)


def claim_not_linked(now: SimGRAGRetriever, question: str, entity: str, given: Any, obstacle: Obstacle) -> None:
    if "other" not in obstacle.details:  # an operation or condition names what the graph has not got
        assert "which the graph lacks" in obstacle.text
        return
    one, other = obstacle.details["read_as"], obstacle.details["other"]
    pattern = pattern_of(now, given)
    assert nearest_distance(now, pattern, question, entity, ()) is None
    pinned = Pattern.from_dict(obstacle.lift.inputs["pattern"])
    assert nearest_distance(now, pinned, question, entity, ()) is not None
    assert other != one
    assert now.graph.label(other) == now.graph.label(one)


CLAIMS = {
    "no_such_edge": claim_no_such_edge,
    "excluded": claim_excluded,
    "outscored": claim_outscored,
    "pruned": claim_pruned,
    "not_linked": claim_not_linked,
}


def test_every_reason_is_true() -> None:
    counts = Counter[str]()
    for retriever, question, entity, result in checked(range(400)):
        now, given = retriever, dict[str, Any]()
        for obstacle in result.obstacles:
            counts[obstacle.why] += 1
            CLAIMS[obstacle.why](now, question, entity, given, obstacle)
            now, given = lift(now, given, obstacle.lift)
    assert {why: count for why, count in counts.items() if count < CASES} == {}
    assert counts.keys() == CLAIMS.keys()
