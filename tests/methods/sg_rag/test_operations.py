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
from operation_patterns import operation_patterns
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


def with_unknowns(graph: KnowledgeGraph) -> st.SearchStrategy[Pattern]:
    """A pattern that asks for a node, and names something, as the matcher in memory wants."""

    def asks(pattern: Pattern) -> bool:
        named = any(isinstance(term, Known) for triple in pattern.triples for term in triple)
        return named and any(isinstance(node, Unknown) for node in pattern.nodes)

    return operation_patterns(graph).filter(asks)


@pytest.mark.heavy
@settings(max_examples=150)
@given(st.integers(0, 1), st.data())
def test_an_endpoint_finds_what_the_matcher_finds(endpoints: list[Backends], number: int, data: st.DataObject) -> None:
    """Or refuses a pattern of parts that share nothing and name nothing: their rows multiply."""
    pattern = data.draw(with_unknowns(endpoints[number].indexed.graph))
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
@given(st.integers(0, 7), st.data())
def test_a_database_finds_what_the_matcher_finds_in_thousands_of_cases(
    backends: list[Backends], number: int, data: st.DataObject
) -> None:
    pattern = data.draw(with_unknowns(backends[number].indexed.graph))
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
