"""Conditions, absent triples and operations: what databases find is what the matcher in memory finds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from oxigraph_server import Oxigraph

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import (
    CypherSafetyError,
    InvalidArgumentError,
    KGRetrieversError,
    NoEvidenceError,
    PatternError,
    SearchBudgetError,
    StaleIndexError,
)
from kg_retrievers.graph import FactAttribute
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.methods.sg_rag import operations
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

THINGS = ["Ann", "Bert", "Cleo", "Dora"]
VALUES = ["3", "12", "1,200", "7 m", "1987", "March 1987", "1987-03-02", "1990", "yes", "blue"]
RELATIONS = ["likes", "knows", "height", "born"]


class Backends(NamedTuple):
    """One graph, in memory and in a database."""

    indexed: GraphIndex
    executor: LadybugExecutor | SparqlExecutor

    def found(self, pattern: Pattern) -> tuple[Any, Any]:
        """What a pattern gives in memory and in the database, in a form that can be compared."""
        writer = PatternCypherWriter(self.indexed, RunnableLambda(lambda _: pattern))
        in_database = CypherRetriever(index=self.indexed, writer=writer, executor=self.executor, on_refusal="raise")
        in_memory = SimGRAGRetriever.from_index(
            self.indexed, pattern_generator=RunnableLambda(lambda _: pattern), max_distance=0.0, on_refusal="raise"
        )
        return _outcome(in_memory), _outcome(in_database)


def _outcome(retriever: Any) -> Any:
    try:
        documents: list[Document] = retriever.invoke("?")
    except KGRetrieversError as error:
        return type(error).__name__
    keys = ("without_value", "at_least", "shown", "of")
    return [
        (
            document.metadata["value"],
            document.metadata["answers"] if document.metadata["value"] is not None else {*document.metadata["answers"]},
            {tuple(triple) for triple in document.metadata["triples"]},
            {name: part for name, part in document.metadata["details"].items() if name in keys},
        )
        for document in documents
    ]


def value_graph(seed: int) -> KnowledgeGraph:
    """A small graph of things and their values."""
    choose = random.Random(seed)
    facts = [
        (choose.choice(THINGS), relation, choose.choice(THINGS if relation in RELATIONS[:2] else VALUES))
        for relation in RELATIONS
        for _ in range(5)
    ]
    named = [("a list", "mentions", name) for name in (*THINGS, *VALUES)]  # each name of a pattern is in the graph
    return with_attributes(KnowledgeGraph.from_triples([*facts, *named]), choose)


def with_attributes(graph: KnowledgeGraph, choose: random.Random) -> KnowledgeGraph:
    """The graph with attributes of some facts."""
    said: list[dict[str, Any]] = [{}, {"role": "Neo"}, {"role": ["Neo", "Ann"], "since": 1987}, {"since": "1990-03-01"}]
    facts = [(*triple, choose.choice(said)) for triple in graph.triples()]
    return KnowledgeGraph.from_triples([*facts, *((*triple, said[2]) for *triple, _ in facts[::7])])


@pytest.fixture(scope="module")
def backends() -> Iterator[list[Backends]]:
    """Graphs in memory and in databases."""
    graphs = [value_graph(seed) for seed in range(8)]
    found = [
        Backends(GraphIndex.build(graph, HashedEmbeddings()), LadybugExecutor.from_graph(graph)) for graph in graphs
    ]
    yield found
    for one in found:
        one.executor.close()


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Backends]]:
    """Graphs in memory and behind SPARQL endpoints."""
    with ExitStack() as servers:
        found = []
        for seed in range(2):
            folder = tmp_path_factory.mktemp("oxigraph")
            value_graph(seed).write(folder / "graph.nt", on_loss="drop")
            graph = with_attributes(KnowledgeGraph.from_file(folder / "graph.nt"), random.Random(seed))
            server = servers.enter_context(Oxigraph(folder, folder / "graph.nt"))
            found.append(Backends(GraphIndex.build(graph, HashedEmbeddings()), server.executor()))
        yield found


UNKNOWNS = st.sampled_from("xyz").map(Unknown)
NODES = st.one_of(UNKNOWNS, UNKNOWNS, st.sampled_from([*THINGS, *VALUES]).map(Known))
TRIPLES = st.tuples(NODES, st.sampled_from(RELATIONS).map(Known), NODES)
CONDITIONS: st.SearchStrategy[tuple[Any, Any]] = st.one_of(
    st.tuples(st.sampled_from(["=", "!="]), st.sampled_from(VALUES)),
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from([5, 12, 1988, "1987-03-01", "1,000"])),
    st.tuples(st.just("between"), st.sampled_from([(1, 20), (1980, 1990), ("1987-01", "1987-12")])),
    st.tuples(st.just("contains"), st.sampled_from(["e", "87", "zz"])),
    st.tuples(st.just("in"), st.lists(st.sampled_from([*THINGS, *VALUES]), min_size=1, max_size=3).map(tuple)),
)


@st.composite
def questions(draw: st.DrawFn) -> Pattern:
    """A pattern with any of conditions, absent triples and an operation."""
    while True:
        try:
            return _drawn(draw)
        except PatternError:  # absent triples that name no unknown, or two
            continue


def _drawn(draw: st.DrawFn) -> Pattern:
    triples = draw(st.lists(TRIPLES, min_size=1, max_size=3))
    nodes = dict.fromkeys(node for triple in triples for node in (triple[0], triple[2]))
    unknowns = [node.name for node in nodes if isinstance(node, Unknown)]
    attributes = draw(st.lists(_attributes(len(triples)), max_size=draw(st.sampled_from([0, 0, 2]))))
    unknowns += dict.fromkeys(one.unknown for one in attributes)
    inside = [name for name in unknowns if name in "xyz"]
    absent = draw(st.lists(_absent_triples(inside), max_size=2)) if inside else []
    target = draw(st.sampled_from(unknowns)) if unknowns else None
    named = st.sampled_from([*unknowns, *(["w"] if any(Unknown("w") in triple for triple in absent) else [])])
    conditions = draw(st.lists(st.tuples(named, CONDITIONS), max_size=2)) if unknowns else []
    operation = draw(_operations(unknowns))
    return Pattern.of(
        *triples,
        target=target,
        directed=draw(st.booleans() if operation is None else st.sampled_from([None, True, False])),
        revisits=draw(st.sampled_from([None, True, False])),
        conditions=[Condition(name, operator, value) for name, (operator, value) in conditions],
        absent=absent,
        operation=operation,
        attributes=attributes,
    )


def _attributes(triples: int) -> st.SearchStrategy[FactAttribute]:
    names, unknowns = st.sampled_from(["role", "since"]), st.sampled_from("ab")
    return st.builds(FactAttribute, st.integers(0, triples - 1), names, unknowns, st.booleans())


def _absent_triples(unknowns: list[str]) -> st.SearchStrategy[Any]:
    ends = st.sampled_from(unknowns).map(Unknown)
    others = st.one_of(st.just(Unknown("w")), st.just(Unknown("v")), st.sampled_from([*THINGS, *VALUES]).map(Known))
    relation = st.one_of(st.sampled_from(RELATIONS).map(Known), st.just(Unknown("r")))
    chained = st.tuples(st.just(Unknown("w")), relation, others.filter(lambda node: node != Unknown("w")))
    return st.one_of(st.tuples(ends, relation, others), st.tuples(others, relation, ends), chained)


def _operations(unknowns: list[str]) -> st.SearchStrategy[Operation | None]:
    if not unknowns:
        return st.sampled_from([None, Operation("exists")])
    of, by, signs = (
        st.sampled_from(["value", "count"]),
        st.sampled_from(unknowns),
        st.sampled_from(["<", ">", "=", "!="]),
    )
    kinds = st.sampled_from(["max", "min", "sum", "mean", "range"])
    group = st.sampled_from([None, None, *unknowns])
    return st.one_of(
        st.sampled_from([None, Operation("exists"), Operation("list")]),
        st.builds(lambda kind, group: Operation(kind, group=group), st.sampled_from(["list", "count"]), group),
        st.builds(lambda kind, by, of, group: Operation(kind, by=(by,), of=of, group=group), kinds, by, of, group),
        st.builds(
            lambda kind, by, of, group, period: Operation(kind, by=(by,), of=of, group=group, period=period),
            kinds, by, of, by, st.sampled_from(["day", "month", "year", "decade", "century"]),
        ),
        st.builds(lambda by: Operation("share", by=(by,)), by),
        st.builds(lambda whole: Operation("share", whole=whole), st.integers(1, 2)),
        st.builds(lambda one, other: Operation("table", by=(one, other)), by, by),
        st.builds(
            lambda by, of, limit, down, offset: Operation(
                "order", by=(by,), of=of, limit=limit, descending=down, offset=offset
            ),
            by, of, st.sampled_from([None, 1, 2]), st.booleans(), st.integers(0, 1),
        ),
        st.builds(lambda by, sign: Operation("list", by=(by,), comparison=sign, number=1), by, signs),
        st.builds(
            lambda one, other, of, sign: Operation("compare", by=(one, other), of=of, comparison=sign),
            by, by, of, signs,
        ),
    )  # fmt: skip


@pytest.mark.heavy
@settings(max_examples=150)
@given(st.integers(0, 1), questions())
def test_an_endpoint_finds_what_the_matcher_finds(endpoints: list[Backends], number: int, pattern: Pattern) -> None:
    """Or refuses a pattern of parts that share nothing and name nothing: their rows multiply."""
    in_memory, at_endpoint = endpoints[number].found(pattern)
    if at_endpoint == "SparqlSafetyError":
        assert unnamed_parts(pattern) > 1
    else:
        assert at_endpoint == in_memory


def unnamed_parts(pattern: Pattern) -> int:
    """Count the parts of a pattern that are joined to no other and name no node."""
    joined = nx.Graph((triple.head, triple.tail) for triple in pattern.triples)
    return sum(not any(isinstance(node, Known) for node in part) for part in nx.connected_components(joined))


@pytest.mark.heavy  # the same in seconds above
@settings(max_examples=6_000)
@given(st.integers(0, 7), questions())
def test_a_database_finds_what_the_matcher_finds_in_thousands_of_cases(
    backends: list[Backends], number: int, pattern: Pattern
) -> None:
    in_memory, in_database = backends[number].found(pattern)
    assert in_database == in_memory


LIKES = [(f"person {number}", "likes", f"thing {number % 3}") for number in range(30)]


@pytest.fixture(scope="module")
def likes() -> Iterator[CypherRetriever]:
    """A graph of 30 people who like three things, in a database."""
    index = GraphIndex.build(KnowledgeGraph.from_triples(LIKES), HashedEmbeddings())
    with LadybugExecutor.from_graph(index.graph) as executor:
        yield CypherRetriever.from_index(index, executor=executor, on_refusal="raise")


def answered(retriever: CypherRetriever, pattern: Pattern) -> Document:
    """The Document for a pattern."""
    return retriever.model_copy(update={"writer": writer_of(retriever, pattern)}).invoke("?")[0]


def writer_of(retriever: CypherRetriever, pattern: Pattern) -> PatternCypherWriter:
    """A writer that writes one pattern."""
    return PatternCypherWriter(retriever.index, RunnableLambda(lambda _: pattern))


WHO, THING = Unknown("who"), Unknown("thing")
WHO_LIKES = (WHO, "likes", THING)


def test_a_count_shows_some_of_the_facts(likes: CypherRetriever) -> None:
    document = answered(likes, Pattern.of(WHO_LIKES, target="who", operation=Operation("count")))
    assert document.metadata["value"] == 30
    assert len(document.metadata["triples"]) == 20
    details = document.metadata["details"]
    assert (details["shown"], details["of"], details["tried"]) == (20, 30, 1)
    assert details["operation"] == {"kind": "count"}
    assert not document.metadata["truncated"]


def test_a_share_of_those_with_an_attribute() -> None:
    """In memory and in a database; those without the attribute are no part of the whole."""
    jobs = [(f"person {number}", "works for", "Acme", {"since": 1990 + number}) for number in range(8)]
    graph = KnowledgeGraph.from_triples([*jobs, ("Ann", "works for", "Acme")])
    pattern = Pattern.of(
        (WHO, "works for", "Acme"),
        attributes=[FactAttribute(0, "since", "since")],
        conditions=[Condition("since", ">=", 1996)],
        target="who",
        operation=Operation("share", by=("since",)),
    )
    index = GraphIndex.build(graph, HashedEmbeddings())
    with LadybugExecutor.from_graph(graph) as executor:
        document = answered(CypherRetriever.from_index(index, executor=executor), pattern)
    (in_memory,) = SimGRAGRetriever.from_index(index).invoke("?", pattern=pattern)
    assert document.metadata["value"] == in_memory.metadata["value"] == 25
    assert document.metadata["triples"] == [["person 6", "works for", "Acme"], ["person 7", "works for", "Acme"]]


def test_more_bindings_than_are_fetched(likes: CypherRetriever, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Pattern.of(
        ("thing 0", "likes", Unknown("a")),
        ("thing 1", "likes", Unknown("b")),
        directed=False,
        operation=Operation("compare", by=("a", "b"), of="count", comparison="="),
    )
    assert answered(likes, two).metadata["value"] is True
    monkeypatch.setattr(operations, "MAX_ROWS", 7)
    document = answered(likes, Pattern.of(WHO_LIKES, target="who", operation=Operation("count")))
    assert document.metadata["value"] == 30  # counted by the database
    assert not document.metadata["truncated"]
    by_hand = {"query": "MATCH (who)-[:likes]->() RETURN DISTINCT who AS target", "operation": {"kind": "count"}}
    document = likes.invoke("?", cypher=by_hand)[0]
    assert document.metadata["value"] == 7
    assert document.metadata["truncated"]
    assert document.metadata["details"]["at_least"] is True
    most = Pattern.of(WHO_LIKES, target="thing", operation=Operation("max", by=("who",), of="count"))
    with pytest.raises(SearchBudgetError, match="more than 7 bindings, so that 'max' is not known"):
        answered(likes, most)
    with pytest.raises(SearchBudgetError, match="'compare' is not known"):
        answered(likes, two)


def test_nothing_found(likes: CypherRetriever) -> None:
    nobody = [Condition("who", "contains", "nobody")]
    count = answered(likes, Pattern.of(WHO_LIKES, target="who", conditions=nobody, operation=Operation("count")))
    assert count.metadata["value"] == 0
    assert count.metadata["triples"] == []
    assert (
        answered(likes, Pattern.of(WHO_LIKES, conditions=nobody, operation=Operation("exists"))).metadata["value"]
        is False
    )
    oldest = Pattern.of(WHO_LIKES, target="who", operation=Operation("max", by=("thing",)))
    with pytest.raises(NoEvidenceError):  # no thing is a number or a date
        answered(likes, oldest)


def test_queries_with_an_operation_that_a_caller_gives(likes: CypherRetriever) -> None:
    pattern = Pattern.of(WHO_LIKES, target="thing", operation=Operation("max", by=("who",), of="count"))
    written = list(writer_of(likes, pattern).write(pattern, likes.database))
    document = likes.invoke("?", cypher=written)[0]
    assert document.metadata["value"] == 10
    assert document.metadata["answers"] == ["thing 0", "thing 1", "thing 2"]
    assert len(document.metadata["triples"]) == 30
    by_hand = "MATCH (who)-[:likes]->(thing) RETURN DISTINCT who AS target"
    counted = likes.invoke("?", cypher={"query": by_hand, "operation": {"kind": "count"}})[0]
    assert (counted.metadata["value"], counted.metadata["triples"]) == (30, [])
    few = likes.model_copy(update={"max_rows": 7})  # of facts: bindings have a limit of their own
    assert few.invoke("?", cypher={"query": by_hand, "operation": {"kind": "count"}})[0].metadata["value"] == 30
    with pytest.raises(InvalidArgumentError, match=r"needs the columns .'target', 'by'. .* but 'by' is not"):
        likes.invoke("?", cypher={"query": by_hand, "operation": {"kind": "max", "by": ["thing"]}})
    comparison = {"kind": "compare", "by": ["a", "b"], "comparison": "="}
    with pytest.raises(InvalidArgumentError, match="no query finds the side 'a'"):
        likes.invoke("?", cypher={"query": by_hand, "operation": comparison})
    with pytest.raises(PatternError, match="kind must be 'list', 'count'"):
        likes.invoke("?", cypher={"query": by_hand, "operation": {"kind": "median"}})
    with pytest.raises(CypherSafetyError, match="returns no relationship"):
        likes.invoke("?", cypher={"query": by_hand, "operation": {"kind": "exists"}})
    with pytest.raises(StaleIndexError, match="which is not in the indexed graph"):
        likes.invoke("?", cypher={"query": "MATCH (n) RETURN 'nobody' AS target", "operation": {"kind": "count"}})


@pytest.mark.parametrize("triple", [("Zoltan", "likes", Unknown("x")), ("Ann", "is priced at", Unknown("x"))])
def test_text_that_the_graph_lacks_is_refused(triple: Any) -> None:
    graph = KnowledgeGraph.from_triples([("Ann", "likes", "Bert"), ("Bert", "knows", "Cleo")])
    backends = Backends(GraphIndex.build(graph, HashedEmbeddings(64)), LadybugExecutor.from_graph(graph))
    pattern = Pattern.of(triple, target="x", operation=Operation("count"))
    refused = "EntityLinkingError" if triple[0] == "Zoltan" else "LowConfidenceError"
    assert backends.found(pattern) == (refused, refused)
