"""Connected indexes: parts are bounded, flagged, kept and forgotten, and what a part cannot tell is refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from graph_reader import GraphReader, in_order, names_in_memory

from kg_retrievers import (
    CypherRetriever,
    GNNRAGRetriever,
    GraphIndex,
    GraphReasoner,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    PCSTRetriever,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    train_graph_reasoner,
    train_triple_scorer,
)
from kg_retrievers.agents import build_workflow
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import DatabaseTimeoutError, EntityLinkingError, InvalidArgumentError, SearchBudgetError
from kg_retrievers.graph import Pattern, Triple, Unknown
from kg_retrievers.graph.operations import Operation
from kg_retrievers.index import PartRequest
from kg_retrievers.sample import load_graph, load_questions

EMBEDDINGS = HashedEmbeddings()
GRAPH = in_order(load_graph())
LOCAL = GraphIndex.build(GRAPH, EMBEDDINGS)
STAR = in_order(KnowledgeGraph.from_triples([(f"film {i}", "has_genre", "Drama") for i in range(50)]))


OPERATIONS = [
    "How many films did Christopher Nolan direct?",
    "Which film by Christopher Nolan is the oldest?",
    "Which films did Christopher Nolan direct after 2010?",
    "Did Christopher Nolan direct Inception?",
    "Which is older, Alien or Inception?",
]


class QueryingReader(GraphReader):
    """Reads parts in memory, and has a database run queries."""

    def __init__(self, graph: KnowledgeGraph, executor: Any) -> None:
        super().__init__(graph)
        self.dialect, self.schema = executor.dialect, executor.schema
        self.run = executor.run


def connected(graph: KnowledgeGraph = GRAPH, *, store: bool = False, max_facts: int = 20_000) -> GraphIndex:
    names = names_in_memory(graph, EMBEDDINGS) if store else None
    return GraphIndex.connect(GraphReader(graph), EMBEDDINGS, names, max_facts=max_facts)


def reader_of(index: GraphIndex) -> GraphReader:
    reader = index.reader
    assert isinstance(reader, GraphReader)
    return reader


# --- what is asked of the database --------------------------------------------------------------------------------


def asked(retriever: BaseKGRetriever, question: str) -> list[str]:
    """Return the queries of a question that is asked for the second time, of whose part nothing is kept."""
    index = retriever.index
    assert index.connected
    retriever.invoke(question)
    index.connected.forget()
    before = len(reader_of(index).queries)
    assert retriever.invoke(question)
    return reader_of(index).queries[before:]


def test_a_neighborhood_is_three_queries() -> None:
    """Descriptions come with the facts."""
    retriever = NeighborhoodRetriever.from_index(connected(store=True), max_hops=2)
    assert asked(retriever, "Who directed Inception?") == ["facts_of", "facts_of", "facts_between"]


@pytest.mark.parametrize("kind", [SimGRAGRetriever, RelationPathRetriever])
def test_all_stages_share_one_part_of_three_hops(kind: type[BaseKGRetriever]) -> None:
    """The outermost entities are described in a query of their own."""
    retriever = kind.from_index(connected(store=True), min_confidence=0.0)
    question = "Which films did the director of Inception direct?"
    assert asked(retriever, question) == ["facts_of"] * 3 + ["describe"]


# --- as in memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [False, True], ids=["database", "vectors"])
@pytest.mark.parametrize(
    "kind", [SimGRAGRetriever, NeighborhoodRetriever, PCSTRetriever, TripleSimilarityRetriever, RelationPathRetriever]
)
def test_answers_are_those_of_the_graph_in_memory(kind: type[BaseKGRetriever], store: bool) -> None:
    index = connected(store=store)
    here, there = (kind.from_index(one, min_confidence=0.0) for one in (LOCAL, index))
    for question in load_questions()[::4]:
        seeds = list(question.seed_entities)
        expected = here.invoke(question.text, seed_entities=seeds)
        assert there.invoke(question.text, seed_entities=seeds) == expected, question.text


def test_queries_are_those_of_the_graph_in_memory() -> None:
    ladybug = pytest.importorskip("kg_retrievers.database.ladybug")
    with ladybug.LadybugExecutor.from_graph(GRAPH) as executor:
        index = GraphIndex.connect(QueryingReader(GRAPH, executor), EMBEDDINGS)
        here, there = CypherRetriever.from_index(LOCAL, executor=executor), CypherRetriever.from_index(index)
        asked = [question.text for question in load_questions()[::8]]
        for question in [*asked, *OPERATIONS]:
            expected, found = (_told(retriever, question) for retriever in (here, there))
            assert found == expected, question
        absent = "Which actors did not appear in Inception?"
        assert here.invoke(absent)
        with pytest.raises(SearchBudgetError, match="joined to no entity") as refused:
            there.invoke(absent, on_refusal="raise")
        assert "Ask CypherRetriever" not in str(refused.value)
        assert "sg-rag" not in refused.value.on_shell


def test_operations_are_those_of_the_graph_in_memory() -> None:
    here, there = (SimGRAGRetriever.from_index(index) for index in (LOCAL, connected()))
    for question in OPERATIONS:
        expected, found = (_told(retriever, question) for retriever in (here, there))
        assert found == expected, question


def expeditions() -> KnowledgeGraph:
    """Return a graph with types of which a question reaches some; each has dates of its own."""
    facts, types = list[Triple](), dict[str, list[str]]()

    def add(kind: str, name: str, **values: str) -> None:
        types[name] = [kind]
        facts.extend(Triple(name, relation.replace("_", " "), value) for relation, value in values.items())

    for one in range(6):
        add("Institute", f"Institute {one}", founded=f"{1900 + 7 * one}-02-{10 + one}")
        add("Seamount", f"Seamount {one}", depth=f"{900 + 70 * one} m", discovered=f"{1930 + 3 * one}-04-{10 + one}")
        add("Ship", f"RV {one}", launched=f"{1975 + 6 * one}-03-{10 + one}", length=f"{60 + 9 * one} m")
    for one in range(24):
        born = f"{1940 + (one * 7) % 50}-01-{1 + one:02}"
        add("Scientist", f"Scientist {one}", employed_by=f"Institute {one % 6}", birth_date=born)
    for one in range(24):
        begun = f"{2000 + (one * 5) % 20}-05-{1 + one:02}"
        add("Expedition", f"Expedition {one}", explored=f"Seamount {one % 6}", start_date=begun)
        add("Expedition", f"Expedition {one}", used_ship=f"RV {one % 5}", led_by=f"Scientist {(one * 5) % 24}")
    return in_order(KnowledgeGraph.from_triples(facts, types=types))


@pytest.mark.parametrize(
    "question",
    [
        "Which expeditions explored Seamount 3 after 2010?",
        "Which expeditions explored Seamount 2 before 2010?",
        "Who is the oldest scientist employed by Institute 4?",
    ],
)
def test_operations_over_a_part_that_lacks_some_relations_are_those_of_the_graph_in_memory(question: str) -> None:
    graph = expeditions()
    here, there = (
        SimGRAGRetriever.from_index(index) for index in (GraphIndex.build(graph, EMBEDDINGS), connected(graph))
    )
    expected = _told(here, question)
    assert expected
    assert _told(there, question) == expected


@pytest.mark.parametrize("question", ["Which ship is the longest?", "Which scientists were born before 1950?"])
def test_questions_about_all_entities_of_a_type_are_refused(question: str) -> None:
    graph = expeditions()
    assert SimGRAGRetriever.from_index(GraphIndex.build(graph, EMBEDDINGS)).invoke(question)
    with pytest.raises(SearchBudgetError, match="all entities of a type cannot be fetched") as refused:
        SimGRAGRetriever.from_index(connected(graph), on_refusal="raise").invoke(question)
    assert "CypherRetriever with llm=" in refused.value.hint_python
    assert "--method sg-rag --llm" in refused.value.hint_shell


def _told(retriever: BaseKGRetriever, question: str) -> list[Any]:
    found = [document.metadata for document in retriever.invoke(question)]
    return [(one["triples"], one["answers"], one["value"], one["truncated"]) for one in found]


# --- what a part cannot tell ------------------------------------------------------------------------------------------


def test_patterns_without_an_entity_are_refused() -> None:
    retriever = SimGRAGRetriever.from_index(connected(), on_refusal="raise")
    counted = Pattern.of((Unknown("film"), "starring", Unknown("actor")), target="film", operation=Operation("count"))
    for pattern in (counted, Pattern.of((Unknown("film"), "starring", Unknown("actor")), target="film")):
        with pytest.raises(SearchBudgetError, match="CypherRetriever"):
            retriever.invoke("How many films are there?", pattern=pattern)


def test_operations_over_a_cut_part_are_refused() -> None:
    count = Pattern.of((Unknown("film"), "has_genre", "Drama"), target="film", operation=Operation("count"))
    small, large = (
        SimGRAGRetriever.from_index(connected(STAR, max_facts=most), on_refusal="raise") for most in (10, 100)
    )
    with pytest.raises(SearchBudgetError, match="max_facts") as refused:
        small.invoke("How many films are dramas?", pattern=count)
    assert "Ask CypherRetriever" in refused.value.hint_python
    assert "max_facts" not in refused.value.on_shell
    assert "--max-facts N" in refused.value.on_shell
    assert large.invoke("How many films are dramas?", pattern=count)[0].metadata["value"] == 50


def test_evidence_is_flagged_where_its_pattern_was_generated_from_a_cut_part() -> None:
    """Three hops are cut where the pattern is generated; the one hop where it is matched is not."""
    graph = in_order(KnowledgeGraph.from_triples([*STAR.triples(), ("film 1", "directed_by", "Jonze")]))
    asked = "Who is film 1 directed by?"
    example = [Question("Who is film 2 directed by?", pattern=Pattern.of(("film 2", "directed_by", Unknown("x"))))]
    small, large = (connected(graph, max_facts=most) for most in (10, 100))
    for index, truncated in ((small, True), (large, False)):
        retriever = SimGRAGRetriever.from_index(index, min_confidence=0.0)
        (found,) = retriever.invoke(asked, k=1)
        assert found.metadata["triples"] == [["film 1", "directed_by", "Jonze"]]
        assert found.metadata["truncated"] == truncated
        pattern = found.metadata["details"]["pattern"]
        assert ("truncated" in pattern) == truncated
        (given,) = retriever.invoke(asked, k=1, pattern=pattern)
        assert not given.metadata["truncated"]
    (by_example,) = SimGRAGRetriever.from_index(small, examples=example, min_confidence=0.0).invoke(asked, k=1)
    assert by_example.metadata["details"]["pattern"]["source"] == "examples"
    assert not by_example.metadata["truncated"]


def test_nothing_in_a_cut_part_does_not_mean_that_there_is_nothing() -> None:
    graph = KnowledgeGraph.from_triples([*STAR.triples(), ("Cinema", "part_of", "Art")])
    pattern = Pattern.of(("Drama", "part_of", Unknown("x")), target="x")
    small, large = (
        SimGRAGRetriever.from_index(connected(graph, max_facts=most), on_refusal="raise") for most in (10, 100)
    )
    with pytest.raises(SearchBudgetError, match="max_facts"):
        small.invoke("What is it part of?", pattern=pattern)
    assert large.invoke("What is it part of?", pattern=pattern)[0].metadata["score"] < 1


def test_the_whole_graph_is_no_scope() -> None:
    for kind in (PCSTRetriever, TripleSimilarityRetriever):
        with pytest.raises(InvalidArgumentError, match="stays in its database"):
            kind.from_index(connected(), scope="graph")
        retriever = kind.from_index(connected())
        retriever.scope = "graph"
        with pytest.raises(InvalidArgumentError, match="stays in its database"):
            retriever.invoke("Who directed Alien?")


def test_models_are_trained_on_a_graph_at_hand_and_used_over_a_connected_one() -> None:
    examples = [question for question in load_questions() if question.answers][:20]
    for train in (train_graph_reasoner, train_triple_scorer):
        with pytest.raises(InvalidArgumentError, match="from_executor"):
            train(connected(), examples)
    model: GraphReasoner = train_graph_reasoner(LOCAL, examples, num_examples=100, width=16).model
    here, there = (GNNRAGRetriever.from_index(index, model=model) for index in (LOCAL, connected()))
    for question in examples[:5]:
        assert [document.metadata["triples"] for document in there.invoke(question.text)] == [
            document.metadata["triples"] for document in here.invoke(question.text)
        ]


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_second_question_reads_nothing_until_all_is_forgotten() -> None:
    index = connected()
    retriever = SimGRAGRetriever.from_index(index)
    first = retriever.invoke("Who directed Alien?")
    count = len(reader_of(index).queries)
    assert retriever.invoke("Who directed Alien?") == first
    assert len(reader_of(index).queries) == count
    assert index.connected
    index.connected.forget()
    assert retriever.invoke("Who directed Alien?") == first
    assert len(reader_of(index).queries) > count


class NotingReader(GraphReader):
    """Notes from which threads it is asked."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__(graph)
        self.threads = set[int]()

    def _count(self, what: str, rows: int) -> None:
        self.threads.add(threading.get_ident())
        super()._count(what, rows)


async def test_the_event_loop_does_not_wait_for_the_database() -> None:
    reader = NotingReader(GRAPH)
    index = GraphIndex.connect(reader, EMBEDDINGS)
    reader.threads.clear()
    for kind in (SimGRAGRetriever, PCSTRetriever):
        assert await kind.from_index(index).ainvoke("Who directed Alien?", seed_entities=["Alien"])
        assert await build_workflow(kind.from_index(index)).ainvoke({"question": "Who directed Inception?"})
    assert reader.threads
    assert threading.get_ident() not in reader.threads


def test_a_store_that_does_not_answer_is_waited_for_no_longer_than_for_a_query() -> None:
    store, released = names_in_memory(GRAPH, EMBEDDINGS), threading.Event()
    index = GraphIndex.connect(GraphReader(GRAPH), EMBEDDINGS, store, timeout=0.2)
    documents = store.store.get_by_ids
    store.store.get_by_ids = lambda keys: (released.wait(30), documents(keys))[1]  # type: ignore[method-assign]
    try:
        with pytest.raises(DatabaseTimeoutError, match=r"vector store did not answer within 0\.2 s"):
            NeighborhoodRetriever.from_index(index).invoke("What is known of Inception?")
    finally:
        released.set()


def test_facts_of_new_relations_are_left_out_until_connected_again(caplog: pytest.LogCaptureFixture) -> None:
    index = connected(STAR)
    assert index.connected
    before = NeighborhoodRetriever.from_index(index).invoke("What is film 7?")
    reader_of(index).graph = in_order(
        KnowledgeGraph.from_triples([*STAR.triples(), ("Drama", "part_of", "Cinema"), ("Cinema", "has_genre", "Art")])
    )
    index.connected.forget()
    part = index.part(PartRequest(("film 7",), 3))
    assert part.truncated
    assert set(part.graph.triples()) == set(STAR.triples())
    assert "Cinema" not in part.graph.entities  # behind a fact that is left out
    index.part(PartRequest(("Drama",), 1, between=True))
    assert len(caplog.records) == 1
    assert "['part_of']" in caplog.text
    assert "Connect again" in caplog.text
    named = index.part(PartRequest(("Drama",), 1, relations=("has_genre",)))
    assert (named.truncated, named.narrowed) == (False, True)
    marked = NeighborhoodRetriever.from_index(index).invoke("What is film 7?")
    assert [one.page_content for one in marked] == [one.page_content for one in before]
    assert not index.part(PartRequest(("film 7",), 1)).truncated  # nowhere near
    again = GraphIndex.connect(index.connected.reader, EMBEDDINGS)
    found = again.part(PartRequest(("Drama",), 1))
    assert not found.truncated
    assert ("Drama", "part_of", "Cinema") in set(found.graph.triples())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_facts", "x"),
        ("max_facts", 1.5),
        ("max_facts", True),
        ("fresh_seconds", None),
        ("fresh_seconds", float("nan")),
        ("timeout", "30"),
        ("timeout", 0),
    ],
)
def test_what_is_no_such_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"GraphIndex\.connect: {name} must be"):
        GraphIndex.connect(GraphReader(STAR), EMBEDDINGS, **{name: value})


def test_work_on_many_things_is_halved_where_the_part_is_too_large() -> None:
    index = connected(STAR, max_facts=12)
    films = [f"film {number}" for number in range(50)]
    parts = index.parts(films, lambda some: PartRequest(tuple(some), 1))
    facts = [len(list(part.graph.triples(film))) for part, some in parts for film in some]
    assert facts == [1] * 50


def test_a_name_that_is_not_found_without_a_store_says_how_it_would_be() -> None:
    retriever = NeighborhoodRetriever.from_index(connected(), on_refusal="raise")
    asked: list[dict[str, Any]] = [{"question": "Who is Cristofer Nolann?"}, {"seed_entities": ["Cristofer Nolann"]}]
    for one in asked:
        with pytest.raises(EntityLinkingError, match=r"only names that are written exactly .*load_names\(") as refusal:
            retriever.invoke(one.get("question", "Who?"), seed_entities=one.get("seed_entities", []))
        assert "index GRAPH --vectors ADDRESS" in refusal.value.on_shell
    with pytest.raises(EntityLinkingError, match=r"Did you mean: 'Christopher Nolan', .*\?$"):
        NeighborhoodRetriever.from_index(connected(store=True)).invoke("Who?", seed_entities=["Christofer Nolan"])
