"""Why queries do not find an entity, checked by runs with what is lifted and by a plain evaluator."""

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
from plain_evaluator import evaluate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, Unknown, why_not
from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.errors import PatternError
from kg_retrievers.explanation.why_not import WhyNot, lift
from kg_retrievers.graph import Term
from kg_retrievers.graph.operations import Operation
from kg_retrievers.methods.sg_rag import CypherRetriever, PatternCypherWriter

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

#: How many questions are asked of a graph.
QUESTIONS = 8


@pytest.fixture(autouse=True)
def one_database_for_each_graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Load equal graphs into one database, since it takes a second each time."""
    make, made = LadybugExecutor.from_graph, dict[str, LadybugExecutor]()

    def from_graph(graph: KnowledgeGraph) -> LadybugExecutor:
        if graph.fingerprint not in made:
            made[graph.fingerprint] = make(graph)
        return made[graph.fingerprint]

    monkeypatch.setattr(LadybugExecutor, "from_graph", from_graph)
    yield
    for executor in made.values():
        executor.close()


class Asked:
    """A pattern that is asked of a graph, and an entity that is no answer."""

    def __init__(self, choose: random.Random, index: GraphIndex) -> None:
        self.graph, self.pattern = index.graph, random_pattern(choose, index.graph, exact=True)
        self.distinct: Any = choose.choice(["auto", "known", "nodes", "none"])
        self.retriever = CypherRetriever(
            index=index,
            writer=PatternCypherWriter(index, RunnableLambda(lambda _: self.pattern), distinct=self.distinct),
            ties=choose.choice(["merge", "break", "overlap"]),
            granularity=choose.choice(["subgraph", "subgraph", "triple"]),
            max_rows=choose.choice([1, 1_000]),
            max_bindings=choose.choice([1, 2, 1_000]),
        )
        self.entity = choose.choice(list(index.graph.entities))

    def answers(self, pattern: Pattern, distinct: str) -> list[str]:
        """What a pattern gives, by the plain evaluator."""
        return evaluate(self.graph, pattern, distinct=distinct, direction="ignore").answers

    def fits(self, graph: KnowledgeGraph, left_out: tuple[int, ...] = (), pattern: Pattern | None = None) -> bool:
        """Whether the triples of the pattern, without some, fit a graph with the entity as the target."""
        asked = pattern or self.pattern
        pinned = Known("?", None, self.entity)

        def node(term: Term) -> Term:
            if isinstance(term, Unknown):
                return pinned if term.name == asked.target else Unknown(term.name)
            return term

        kept = [triple for at, triple in enumerate(asked.triples) if at not in left_out]
        apart = [  # that two relations are the same is a condition of a query
            relation if isinstance(relation, Known) else Unknown(f"{relation.name} {at}")
            for at, (_, relation, _) in enumerate(kept)
        ]
        triples = [(node(head), one, node(tail)) for (head, _, tail), one in zip(kept, apart, strict=True)]
        if not triples:
            return True
        plain = Pattern.of(*triples, directed=asked.directed, operation=Operation("exists"))
        return bool(evaluate(graph, plain, distinct="none", direction="ignore").value)


def checked(graphs: range) -> Iterator[tuple[Asked, WhyNot]]:
    """Yield random questions of random graphs, and why an entity is no answer; see `check_case`."""
    for seed in graphs:
        choose = random.Random(seed)
        index = GraphIndex.build(random_graph(choose), HashedEmbeddings(64))
        for _ in range(QUESTIONS):
            try:
                asked = Asked(choose, index)
                if is_found(asked.retriever, "What is there?", asked.entity, {}):
                    continue
            except PatternError:  # absent triples around two unknowns
                continue
            yield asked, check_case(asked.retriever, "What is there?", asked.entity, {})


def claim_no_such_edge(asked: Asked, now: CypherRetriever, given: Any, obstacle: Obstacle) -> None:
    facts, graph, triples = obstacle.lift.facts, now.graph, asked.pattern.triples
    assert not {*facts} & {*graph.triples()}
    assert not asked.fits(graph)
    if asked.pattern.operation is None or asked.pattern.operation.kind != "compare":
        ways = (some for fewer in range(len(facts)) for some in combinations(range(len(triples)), fewer))
        assert not any(asked.fits(graph, some) for some in ways)
        assert asked.fits(graph.with_changes(added=facts))


def claim_excluded(asked: Asked, now: CypherRetriever, given: Any, obstacle: Obstacle) -> None:
    pattern, distinct = asked.pattern, asked.distinct
    kind = pattern.operation.kind if pattern.operation else "list"
    typed = any(node.type for node in pattern.nodes)  # an entity without type fits in memory alone
    if kind not in ("count", "exists", "compare") and "condition" in obstacle.details and not typed:
        assert asked.entity not in asked.answers(pattern, distinct)
    if "condition" in obstacle.details:
        free = replace(pattern, operation=None, conditions=(), absent=(), different=(), directed=False)
        assert asked.fits(now.graph, (), free) or kind == "compare"
        (query,) = [one for one in obstacle.lift.inputs["cypher"] if "side" not in one] or [{"query": ""}]
        assert obstacle.details["condition"] not in query["query"]


def claim_outscored(asked: Asked, now: CypherRetriever, given: Any, obstacle: Obstacle) -> None:
    if "rank" in obstacle.details:
        assert obstacle.details["rank"] > given.get("k", 1)
        assert not is_found(now, "What is there?", asked.entity, {**given, "k": obstacle.details["rank"] - 1})
    elif "own" in obstacle.details and not given and not any(node.type for node in asked.pattern.nodes):
        assert asked.entity not in asked.answers(asked.pattern, asked.distinct)
        assert asked.entity in asked.answers(replace(asked.pattern, operation=None), asked.distinct)


def claim_pruned(asked: Asked, now: CypherRetriever, given: Any, obstacle: Obstacle) -> None:
    fields = obstacle.lift.fields
    if "max_rows" in fields:
        assert fields["max_rows"] == obstacle.details["row"] > now.max_rows
        assert not is_found(
            now.with_fields({"max_rows": fields["max_rows"] - 1}), "What is there?", asked.entity, given
        )
    elif "max_bindings" in fields:
        assert not now.invoke("What is there?", **given)


CLAIMS = {
    "no_such_edge": claim_no_such_edge,
    "excluded": claim_excluded,
    "outscored": claim_outscored,
    "pruned": claim_pruned,
}


def check_claims(graphs: range) -> Counter[str]:
    """Check what is said of random questions; return how often each reason is given."""
    counts = Counter[str]()
    for asked, result in checked(graphs):
        now, given = asked.retriever, dict[str, Any]()
        for obstacle in result.obstacles:
            counts[obstacle.why] += 1
            CLAIMS[obstacle.why](asked, now, given, obstacle)
            now, given = lift(now, given, obstacle.lift)
    return counts


def test_reasons_are_true() -> None:
    assert check_claims(range(2)).keys() >= {"no_such_edge", "excluded"}


@pytest.mark.heavy
def test_every_reason_is_true() -> None:
    counts = check_claims(range(2, 45))
    assert {why: count for why, count in counts.items() if count < CASES} == {}
    assert counts.keys() == CLAIMS.keys()


FILMS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Her", "starring", "Amy Adams"),
    ("Arrival", "starring", "Amy Adams"),
]


@pytest.fixture
def films() -> CypherRetriever:
    index = GraphIndex.build(KnowledgeGraph.from_triples(FILMS), HashedEmbeddings(64))
    return CypherRetriever.from_index(index)


def test_a_query_by_hand_is_read(films: CypherRetriever) -> None:
    query = "MATCH (f)-[r:directed_by]->(d) WHERE f.key = 'Her' RETURN d, r"
    result = why_not(films, "Who directed Her?", "Amy Adams", cypher=query)
    assert [obstacle.why for obstacle in result.obstacles] == ["no_such_edge"]
    assert result.lift.facts == (("Her", "directed_by", "Amy Adams"),)
    assert result.lifted


def test_the_direction_of_a_query_is_a_reason(films: CypherRetriever) -> None:
    query = "MATCH (d)-[r:directed_by]->(f) WHERE d.key = 'Spike Jonze' RETURN f, r"
    result = why_not(films, "What did Spike Jonze direct?", "Her", cypher=query)
    assert [obstacle.why for obstacle in result.obstacles] == ["excluded"]
    assert "the other way round" in result.obstacles[0].text
    assert result.lifted


def test_a_later_query_does_not_run(films: CypherRetriever) -> None:
    first = "MATCH (f)-[r:directed_by]->(d) WHERE f.key = 'Her' RETURN d, r"
    second = "MATCH (f)-[r:starring]->(d) WHERE f.key = 'Her' RETURN d, r"
    result = why_not(films, "Who made Her?", "Amy Adams", cypher=[first, second])
    assert [obstacle.why for obstacle in result.obstacles] == ["outscored"]
    assert result.obstacles[0].details == {"query": 2, "ran": 1}
    assert result.lifted


@pytest.mark.parametrize("clause", ["OPTIONAL MATCH (d)-[s:starring]->(x)", "WITH f, d, r", "UNWIND [1] AS one"])
def test_nothing_is_said_of_a_query_that_cannot_be_read(films: CypherRetriever, clause: str) -> None:
    query = f"MATCH (f)-[r:directed_by]->(d) WHERE f.key = 'Her' {clause} RETURN d, r"
    result = why_not(films, "Who directed Her?", "Amy Adams", cypher=query)
    assert (result.obstacles, result.lifted) == ((), None)
