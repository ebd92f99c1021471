"""Cypher retrieval on an embedded database: under the contract of all retrievers, by hand, approved, and attacked."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from choosing_model import choosing
from films_and_claims import TINY_EXAMPLES
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, LLMPatternGenerator, Question
from kg_retrievers.agents import build_workflow
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseQueryError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    LowConfidenceError,
    MissingExtraError,
    StaleIndexError,
)
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.methods.sg_rag.writers import (
    MAX_QUERIES,
    CascadeCypherWriter,
    PatternCypherWriter,
    TemplateCypherWriter,
)
from kg_retrievers.questions.reader import CHOSEN_AGAIN
from kg_retrievers.questions.reading import Reading
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel, tiny_graph
from kg_retrievers.testing.other_process import call_in_other_process

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

_EXECUTORS: dict[str, LadybugExecutor] = {}


def executor_of(graph: KnowledgeGraph) -> LadybugExecutor:
    """One database for all tests on a graph."""
    if graph.fingerprint not in _EXECUTORS:
        _EXECUTORS[graph.fingerprint] = LadybugExecutor.from_graph(graph)
    return _EXECUTORS[graph.fingerprint]


class TestCypher(RetrieverContract):
    retriever_class = CypherRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"ties": "break"}

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        given = {"executor": executor_of(index.graph)} | ({} if "llm" in fields else {"examples": TINY_EXAMPLES})
        return super().make_retriever(index, **given | fields)


# --- by hand ----------------------------------------------------------------------------------------------------------

BY, STAR, YEAR = "directed_by", "starring", "release_year"
FILMS = [
    ("Her", BY, "Jonze"),
    ("Her", STAR, "Adams"),
    ("Her", STAR, "Mara"),
    ("Adaptation", BY, "Jonze"),
    ("Adaptation", STAR, "Streep"),
    ("Arrival", BY, "Q1"),
    ("Arrival", STAR, "Adams"),
    ("Dune 1", BY, "Lynch"),
    ("Dune 2", BY, "Q1"),
    ("DUNE", STAR, "Mara"),
]
INDEX = GraphIndex.build(
    KnowledgeGraph.from_triples(FILMS, labels={"Q1": "Denis Villeneuve", "Dune 1": "Dune", "Dune 2": "Dune"}),
    HashedEmbeddings(),
)
EXAMPLES = [
    Question("Who directed Her?", answers=("Jonze",)),
    Question("Who starred in Her?", answers=("Adams", "Mara")),
    Question("Who starred in films by Jonze?", answers=("Adams", "Mara", "Streep")),
]
FACTS = "MATCH (f)-[r0:starring]->(x) WHERE f.key = $film RETURN x.key AS target, r0"


def retriever(index: GraphIndex = INDEX, **fields: Any) -> CypherRetriever:
    source = {} if {"llm", "examples", "writer"} & set(fields) else {"examples": EXAMPLES}
    return CypherRetriever.from_index(index, **{"executor": executor_of(INDEX.graph)} | source | fields)


def test_a_template_by_hand() -> None:
    (document,) = retriever().invoke("Who starred in films by Denis Villeneuve?")
    assert document.page_content == "Arrival -> directed by -> Denis Villeneuve\nArrival -> starring -> Adams"
    assert document.metadata["answers"] == ["Adams"]
    assert document.metadata["score"] == 1.0
    details = document.metadata["details"]
    assert {name: details[name] for name in ("parameters", "from", "tried", "rows")} == {
        "parameters": {"n1": "Q1"},
        "from": "examples",
        "tried": 1,
        "rows": 1,
    }
    assert "Denis" not in details["query"]


def test_all_rows_or_one_each() -> None:
    question = "Who starred in films by Jonze?"
    (merged,) = retriever(k=5).invoke(question)
    assert merged.metadata["answers"] == ["Adams", "Mara", "Streep"]
    assert len(merged.metadata["triples"]) == 5  # that Jonze directed Her is said once
    rows = retriever(ties="break", k=5).invoke(question)
    assert [row.metadata["answers"] for row in rows] == [["Adams"], ["Mara"], ["Streep"]]
    assert [row.metadata["details"]["row"] for row in rows] == [1, 2, 3]
    assert all(len(row.metadata["triples"]) == 2 for row in rows)


def test_what_a_name_may_mean_is_tried_until_there_are_rows() -> None:
    (document,) = retriever().invoke("Who directed Dune?")
    assert (document.metadata["answers"], document.metadata["details"]["tried"]) == (["Lynch", "Q1"], 1)
    (document,) = retriever().invoke("Who starred in Dune?")  # neither "Dune", but "DUNE"
    assert (document.metadata["answers"], document.metadata["details"]["tried"]) == (["Mara"], 2)
    assert document.metadata["details"]["parameters"] == {"n0": "DUNE"}
    assert retriever().invoke("Who directed Dune?", seed_entities=["Dune 2"])[0].metadata["answers"] == ["Q1"]


LEADING = [
    Question("Who starred in Her?", pattern=Pattern.of(("Her", STAR, Unknown("x")), target="x")),
    Question("By whom is Adaptation?", pattern=Pattern.of(("Adaptation", BY, Unknown("x")), target="x")),
    Question(
        "Which other films star those of Her?",
        pattern=Pattern.of(("Her", STAR, Unknown("y")), (Unknown("x"), STAR, Unknown("y")), target="x"),
    ),
]


async def test_where_the_nearest_template_leads_nowhere_the_next_one_is_tried() -> None:
    found = retriever(writer=TemplateCypherWriter(INDEX, LEADING), min_confidence=0.0)
    question = "Which films, say, star those of Adaptation?"  # no other does
    (document,) = found.invoke(question)
    assert (await found.ainvoke(question)) == [document]
    details = document.metadata["details"]
    assert set(details) == {"query", "parameters", "from", "example", "tried", "rows", "entities"}
    assert (details["tried"], details["example"]["question"]) == (2, "Who starred in Her?")
    assert 0 < details["example"]["distance"] < 2
    assert document.metadata["answers"] == ["Streep"]
    assert 0 < document.metadata["confidence"] < 1
    with pytest.raises(LowConfidenceError, match="CypherRetriever: not sure what 'Which films, say, "):
        found.invoke(question, min_confidence=0.99, on_refusal="raise")
    state = found.initial_state(question)
    for stage in found.stages[:2]:
        state |= stage.run.invoke(state)
    assert json.loads(json.dumps(state)) == state
    assert len(state["cypher"]) == 4 <= MAX_QUERIES
    assert [query.get("widened", False) for query in state["cypher"]] == [False, False, False, True]
    assert found.invoke(question, cypher=state["cypher"][:1]) == []  # a query that is given is all that is run
    assert found.invoke("Which other films star those of Adaptation?") == []  # as is asked in an example
    (first,) = found.invoke("Which other films star those of Her?")
    assert (first.metadata["answers"], first.metadata["details"]["tried"]) == (["Arrival", "DUNE"], 1)
    assert first.metadata["details"]["example"] == {"question": LEADING[2].text, "distance": 0.0}


def test_more_rows_than_wanted() -> None:
    (document,) = retriever(max_rows=2).invoke("Who starred in films by Jonze?")
    assert (document.metadata["answers"], document.metadata["truncated"]) == (["Adams", "Mara"], True)
    assert not retriever(max_rows=3).invoke("Who starred in films by Jonze?")[0].metadata["truncated"]


def test_without_examples_or_model() -> None:
    alone = CypherRetriever.from_index(INDEX, executor=executor_of(INDEX.graph))
    (document,) = alone.invoke("Who directed Arrival?")
    assert (document.metadata["answers"], document.metadata["details"]["from"]) == (["Q1"], "zero-shot")


def test_the_first_that_is_sure_writes_the_query() -> None:
    """An example that is near, else the zero-shot pattern, else the language model, which is shown the examples."""

    def asked(question: str, confidence: float) -> tuple[str, Any, int]:
        llm = choosing("Arrival -> starring -> ?")
        found = retriever(examples=EXAMPLES, llm=llm)
        pattern = Pattern.of(("Arrival", BY, Unknown("x")), target="x", source="zero-shot", confidence=confidence)
        reader: Any = found.writer.generator  # type: ignore[attr-defined]
        reader.zero_shot.read = lambda _: Reading(pattern)
        (document,) = found.invoke(question)
        return document.metadata["details"]["from"], document.metadata["confidence"], len(llm.prompts)

    assert asked("Who directed Arrival?", 0.0)[::2] == ("examples", 0)
    far = "Tell me by whom the making of Arrival was led"
    assert asked(far, 0.9) == ("zero-shot", pytest.approx(0.9, abs=0.05), 0)
    assert asked(far, 0.1)[:2] == ("chosen", CHOSEN_AGAIN)


def test_an_unsure_query_is_not_run() -> None:
    alone = CypherRetriever.from_index(INDEX, executor=executor_of(INDEX.graph), on_refusal="raise")
    pattern = Pattern.of(("Her", BY, Unknown("x")), source="zero-shot", confidence=0.1, unplaced=["budget"])
    alone.writer = PatternCypherWriter(INDEX, RunnableLambda(lambda _: pattern))
    with pytest.raises(LowConfidenceError, match="'budget'"):
        alone.invoke("What was the budget of Her?")
    assert alone.invoke("What was the budget of Her?", min_confidence=0.1)[0].metadata["confidence"] == 0.1


def test_a_database_is_made_when_there_is_none() -> None:
    made = CypherRetriever.from_index(INDEX, examples=EXAMPLES)
    assert made.invoke("Who directed Arrival?")[0].metadata["answers"] == ["Q1"]
    assert made.database is made.database
    made.database.close()
    other = KnowledgeGraph.from_triples([("Arrival", BY, "Lynch")])
    made.index = GraphIndex.build(other, HashedEmbeddings())
    assert made.invoke("?", cypher=FACTS.replace("$film", "'Arrival'").replace("starring", BY))[0].metadata[
        "answers"
    ] == ["Lynch"]
    made.database.close()


@pytest.mark.heavy
def test_a_copy_makes_its_own_database() -> None:
    question = "Who starred in films by Denis Villeneuve?"
    made = CypherRetriever.from_index(INDEX, examples=EXAMPLES)
    expected = made.invoke(question)
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert copied.invoke(question) == expected
        assert copied.database is not made.database
        copied.database.close()
    assert call_in_other_process(made.invoke, question) == expected
    made.database.close()


def test_a_copy_shares_the_database_that_was_given(tmp_path: Path) -> None:
    with LadybugExecutor.from_graph(INDEX.graph, tmp_path / "films.lbdb") as executor:
        found = retriever(executor=executor)
        expected = found.invoke("Who directed Arrival?")
        assert copy.deepcopy(found).executor is executor
        assert call_in_other_process(found.invoke, "Who directed Arrival?") == expected
        pickled = pickle.dumps(found)
    with pytest.raises(DatabaseUnavailableError, match="is closed"):
        found.invoke("Who directed Arrival?")
    again = pickle.loads(pickled)
    assert again.invoke("Who directed Arrival?") == expected
    again.executor.close()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kg_retrievers.database.ladybug")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ladybug", None)
    with pytest.raises(MissingExtraError, match=r"LadybugExecutor needs .*\[ladybug\]"):
        CypherRetriever.from_index(INDEX, examples=EXAMPLES).invoke("Who directed Arrival?")


@pytest.mark.parametrize("missing", [("Arrival", BY, "Q1"), None])
def test_a_database_of_another_graph(missing: tuple[str, str, str] | None) -> None:
    here = INDEX.graph.with_changes(removed=[missing]) if missing else tiny_graph()
    stale = retriever(GraphIndex.build(here, HashedEmbeddings()), writer=RunnableLambda(lambda input: []))
    query = "MATCH (n)-[r0:directed_by]->(m) RETURN n AS target, r0"
    with pytest.raises(StaleIndexError, match=r"\. Index the graph of this database again"):
        stale.invoke("?", seed_entities=["Her"], cypher=query)


# --- queries that are given -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cypher",
    [
        {"query": FACTS, "parameters": {"film": "Her"}},
        [{"query": FACTS, "parameters": {"film": "nothing"}}, {"query": FACTS, "parameters": {"film": "Her"}}],
        FACTS.replace("$film", "'Her'"),
        FACTS.replace("$film", "'Her'") + " // of Her\n;",
        FACTS.replace("$film", "'Her'").replace("x.key AS target, r0", "x, r0"),
        FACTS.replace("$film", "'Her'").replace("x.key AS target, r0", "x.label, r0"),
        FACTS.replace("$film", "'Her'").replace("x.key AS target, r0", "f, r0, x AS target"),
        "MATCH p = (:Entity {key: 'Her'})-[:starring]->(x) RETURN [x.key] AS target, p",
        "MATCH (f {key: 'Her'})-[r:starring]->(x) RETURN collect(x.key) AS target, collect(r) AS facts",
    ],
)
def test_given_queries(cypher: Any) -> None:
    (document,) = retriever().invoke("Who is in it?", cypher=cypher)  # names no entity
    assert sorted(document.metadata["answers"]) == ["Adams", "Mara"]
    assert sorted(document.metadata["triples"]) == [["Her", STAR, "Adams"], ["Her", STAR, "Mara"]]
    assert document.metadata["details"]["from"] == "given"


def test_rows_without_facts_or_answers() -> None:
    query = "MATCH (f:Entity) OPTIONAL MATCH (f)-[r:directed_by]->(x) WITH f, r, x WHERE f.key IN ['Her', 'Mara'] "
    (document,) = retriever().invoke("?", seed_entities=["Her"], cypher=query + "RETURN x.key AS target, r")
    assert (document.metadata["triples"], document.metadata["answers"]) == ([["Her", BY, "Jonze"]], ["Jonze"])
    (document,) = retriever().invoke("?", seed_entities=["Her"], cypher=query + "RETURN 7 AS target, r")
    assert document.metadata["answers"] == []
    none = "MATCH (f {key: 'Mara'}) OPTIONAL MATCH (f)-[r:directed_by]->() RETURN f, r"
    assert retriever().invoke("?", seed_entities=["Her"], cypher=none) == []
    assert retriever().invoke("?", seed_entities=["Her"], cypher=[]) == []


def test_an_answer_as_text_is_first_looked_for_in_its_facts() -> None:
    facts = [("Q1", "capital", "Q90"), ("Paris", "lives in", "Q5")]
    graph = KnowledgeGraph.from_triples(facts, labels={"Q90": "Paris", "Paris": "Paris Hilton"})
    index = GraphIndex.build(graph, HashedEmbeddings())
    query = "MATCH (a {key: 'Q1'})-[r:capital]->(b) RETURN b.label, r"
    (document,) = CypherRetriever.from_index(index, executor=executor_of(graph)).invoke("?", cypher=query)
    assert document.metadata["answers"] == ["Q90"]


ATTACKS = [
    "MATCH (n) DETACH DELETE n",
    f"{FACTS}; MATCH (n) DETACH DELETE n",
    "CREATE (n:Entity {key: 'x'})",
    "MATCH (n) SET n.label = 'x' RETURN n",
    "LOAD FROM '/etc/passwd' (file_format='csv') RETURN *",
    "COPY (MATCH (n) RETURN n.key) TO '/tmp/x.csv'",
    "CALL timeout=0",
    "MATCH (n) CALL { MATCH (m) DETACH DELETE m } RETURN n",
    "INSTALL httpfs",
    "MATCH (f:Film)-[r]->(x) RETURN r",
    "MATCH (f)-[r:acted_in]->(x) RETURN r",
    "MATCH (f)-[r]->(x) WHERE f.key = $other RETURN r",
    "MATCH (f)-[r]->(x) RETURN x.key AS target",
    "no query at all",
]


@pytest.mark.parametrize("query", ATTACKS)
def test_given_queries_that_are_refused(query: str) -> None:
    for cypher in (query, {"query": query, "parameters": {"film": "Her"}}, [{"query": query}]):
        with pytest.raises(CypherSafetyError):
            retriever().invoke("Who is in it?", cypher=cypher)


@pytest.mark.parametrize(
    "cypher",
    [
        7,
        [7],
        {"query": 7},
        {"text": FACTS},
        {"query": FACTS, "parameters": ["Her"]},
        {"query": FACTS, "parameters": {"film": {1, 2}}},
        {"query": FACTS, "parameters": {"film": float("nan")}},
        {"query": FACTS, "from": 7},
        {"query": FACTS, "example": "Who is in Her?"},
        {"query": FACTS, "example": {"distance": float("inf")}},
        {"query": FACTS, "limit": 7},
        [FACTS] * 65,
    ],
)
def test_what_a_query_looks_like(cypher: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^CypherRetriever: .*Write a query as {\"query\": text, "):
        retriever().invoke("Who is in it?", cypher=cypher)


def test_an_error_of_the_database_is_raised() -> None:
    with pytest.raises(DatabaseQueryError):
        retriever().invoke("?", seed_entities=["Her"], cypher="MATCH (f)-[r]->(x) RETURN r, f.key + [1] AS y")


# --- approval ---------------------------------------------------------------------------------------------------------


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def test_a_query_is_approved_before_it_is_run() -> None:
    calls = 0

    class Counting:
        """Counts what is run."""

        dialect = "ladybug"
        schema = executor_of(INDEX.graph).schema

        def run(self, *arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            return executor_of(INDEX.graph).run(*arguments, **named)

    workflow = build_workflow(
        retriever(executor=Counting()), checkpointer=InMemorySaver(), interrupt_before=["run_cypher"]
    )
    workflow.invoke({"question": "Who directed Arrival?"}, thread("1"))
    state = workflow.get_state(thread("1"))
    assert (state.next, calls) == (("run_cypher",), 0)
    (row,) = state.values["cypher"]
    assert row["parameters"] == {"n0": "Arrival"}

    for attack in ATTACKS:
        with pytest.raises(CypherSafetyError):
            workflow.update_state(thread("1"), {"cypher": [{**row, "query": attack}]})
    assert workflow.get_state(thread("1")).values["cypher"] == [row]

    edited = {**row, "query": row["query"].replace("directed_by", "starring"), "from": "a person"}
    workflow.update_state(thread("1"), {"cypher": [edited]})
    output = workflow.invoke(None, thread("1"))
    assert (output["documents"][0].metadata["answers"], calls) == (["Adams"], 1)
    assert output["documents"][0].metadata["details"]["from"] == "a person"


# --- writers ----------------------------------------------------------------------------------------------------------


def test_what_writers_are_taken() -> None:
    llm = ScriptedChatModel(replies=[])
    assert not retriever().stages[1].calls_model
    assert not CypherRetriever.from_index(INDEX).stages[1].calls_model
    assert retriever(llm=llm, examples=EXAMPLES).stages[1].calls_model
    assert retriever(writer=PatternCypherWriter(INDEX, LLMPatternGenerator(llm))).stages[1].calls_model
    assert isinstance(retriever().writer, CascadeCypherWriter)
    assert set(retriever(llm=llm, examples=EXAMPLES).prompts) == {"choice", "pattern", "repair", "answer"}
    assert set(retriever().prompts) == {"answer"}
    with pytest.raises(InvalidArgumentError, match="writer= beside"):
        retriever(writer=retriever().writer, llm=llm)
    with pytest.raises(InvalidArgumentError, match="not trained"):
        retriever(model=7)
    with pytest.raises(InvalidArgumentError, match="wanted an executor"):
        retriever(executor="bolt://localhost")


def test_queries_of_other_writers_are_checked() -> None:
    good = retriever(writer=RunnableLambda(lambda input: [{"query": FACTS, "parameters": {"film": "Her"}}]))
    assert sorted(good.invoke("Who is in Her?")[0].metadata["answers"]) == ["Adams", "Mara"]
    bad = retriever(writer=RunnableLambda(lambda input: [{"query": "MATCH (n) DETACH DELETE n"}]))
    with pytest.raises(CypherSafetyError):
        bad.invoke("Who is in Her?")


def test_a_model_is_asked_where_an_operation_is_not_understood() -> None:
    question = "Which is the oldest film by Jonze?"
    with pytest.raises(LowConfidenceError, match="needs an operation that was not understood"):
        retriever().invoke(question, on_refusal="raise")
    reply = '{"triples": [["UNKNOWN film 1", "directed_by", "Jonze"]]}'
    (document,) = retriever(llm=ScriptedChatModel(replies=[reply]), chooses=False).invoke(question)
    assert (document.metadata["answers"], document.metadata["details"]["from"]) == (["Adaptation", "Her"], "llm")


def test_a_model_is_asked_without_entities_too() -> None:
    reply = '{"triples": [["UNKNOWN film 1", "directed_by", "Q1"], ["UNKNOWN film 1", "starring", "UNKNOWN actor 1"]], '
    reply += '"target": "UNKNOWN actor 1"}'
    (document,) = retriever(llm=ScriptedChatModel(replies=[reply]), chooses=False).invoke(
        "who worked for the Canadian ?"
    )
    assert document.metadata["answers"] == ["Adams"]
