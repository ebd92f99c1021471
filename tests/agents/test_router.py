"""The router over several retrievers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.prompts import PromptTemplate
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import (
    Budget,
    Evidence,
    GraphIndex,
    HashedEmbeddings,
    KGRetriever,
    NeighborhoodRetriever,
    Pattern,
    SimGRAGRetriever,
    build_router,
)
from kg_retrievers.agents import question_shape
from kg_retrievers.agents.nodes import STOPPED
from kg_retrievers.chains import NOT_UNDERSTOOD
from kg_retrievers.core.replies import NO_TARGET
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

QUESTION = "Who starred in Amélie?"
CAST = ["Audrey Tautou", "Mathieu Kassovitz", "Dominique Pinon"]
UNKNOWN = "Who directed Xyzzyplugh?"


class OpenRetriever(SimGRAGRetriever):
    """Finds what is near to a description.

    Not this.
    """

    suits = frozenset({"no entity", "open"})


class FindsNothing(OpenRetriever):
    """Finds nothing at all."""

    def match(self, pattern: Pattern, k: int | None = None, **given: Any) -> list[Evidence]:
        return []


class _Joins(SimGRAGRetriever):
    """Joins entities."""

    suits = frozenset({"several entities"})


@pytest.fixture(scope="module")
def retrievers() -> dict[str, BaseKGRetriever]:
    index = GraphIndex.build(tiny_graph(), HashedEmbeddings())
    return {
        "open": OpenRetriever.from_index(index),
        "joins": _Joins.from_index(index, on_refusal="empty"),
        "patterns": SimGRAGRetriever.from_index(index),
    }


@pytest.mark.parametrize(
    ("question", "entities", "shape"),
    [
        ("Who directed Her?", 0, "no entity"),
        ("Who directed Her?", 1, "one entity"),
        ("Who wrote Her and Adaptation?", 2, "several entities"),
        ("Describe Her", 1, "open"),
        ("Please tell me about Her and Adaptation", 2, "open"),
        ("Who directed Unexplained?", 1, "one entity"),
    ],
)
def test_shapes(question: str, entities: int, shape: str) -> None:
    assert question_shape(question, entities) == shape


def order(workflow: Any, inputs: dict[str, Any]) -> tuple[list[str], str]:
    updates = {name: update for part in workflow.stream(inputs, stream_mode="updates") for name, update in part.items()}
    return updates["route"]["methods"], updates["route"]["routed_by"]


def test_rules_look_at_entities_and_words(retrievers: dict[str, BaseKGRetriever]) -> None:
    router = build_router(retrievers)
    assert order(router, {"question": QUESTION}) == (["patterns", "open", "joins"], "rule: one entity")
    both = "Who starred in Amélie and in Alien Resurrection?"
    assert order(router, {"question": both}) == (["joins", "patterns", "open"], "rule: several entities")
    assert order(router, {"question": "Describe Amélie."})[0] == ["open", "joins", "patterns"]
    assert order(router, {"question": UNKNOWN}) == (["open", "joins", "patterns"], "rule: no entity")
    seeds = ["Amélie", "Alien Resurrection"]
    assert order(router, {"question": "Who starred?", "seed_entities": seeds})[1] == "rule: several entities"
    alike = ["Dune (1984)", "Dune (2021)"]  # of one label: one of them is meant
    assert order(router, {"question": "Who directed Dune?", "seed_entities": alike})[1] == "rule: one entity"


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_it_answers_and_goes_on_where_nothing_is_found(
    retrievers: dict[str, BaseKGRetriever], asynchronous: bool
) -> None:
    nothing = FindsNothing.from_index(retrievers["open"].index)
    router = build_router({**retrievers, "open": nothing}, checkpointer=InMemorySaver())

    async def ask(**inputs: Any) -> Any:
        config: Any = {"configurable": {"thread_id": "1"}}
        return await router.ainvoke(inputs, config) if asynchronous else router.invoke(inputs, config)

    got = await ask(question=QUESTION)
    assert (got["answer"], got["retriever"]) == ("; ".join(CAST), "patterns")
    assert got["documents"] == retrievers["patterns"].invoke(QUESTION)
    assert (got["methods"][0], got["routed_by"]) == ("patterns", "rule: one entity")
    question = "Tell me about the cast: who starred?"  # for "open", which finds nothing, then for the next
    got = await ask(question=question, seed_entities=["Amélie"], k=2)
    assert (got["retriever"], got["reason"]) == ("joins", None)
    assert got["documents"] == retrievers["joins"].invoke(question, seed_entities=["Amélie"], k=2)
    got = await ask(question=UNKNOWN)
    assert (got["answer"], got["documents"], got["retriever"]) == (NOT_UNDERSTOOD, [], "patterns")
    assert "No entity" in got["reason"]


async def test_it_says_why_each_retriever_refuses(retrievers: dict[str, BaseKGRetriever]) -> None:
    index = retrievers["open"].index
    unsure = "not sure what 'Who is the hairdresser of Audrey Tautou?' asks for"
    question = {"question": "Who is the hairdresser of Audrey Tautou?"}
    facts = NeighborhoodRetriever.from_index(index)
    patterns = {"one": retrievers["patterns"], "two": _Joins.from_index(index)}
    got = await build_router({**patterns, "facts": facts}, choose=lambda _: ["one", "two", "facts"]).ainvoke(question)
    assert got["answer"] == NO_TARGET
    assert got["explanation"].startswith(f"{NO_TARGET} one, two: {unsure}")
    assert got["explanation"].count("not sure") == 1
    assert got["documents"] == facts.invoke(question["question"])  # as the retriever made them
    alike = build_router(patterns).invoke(question)
    assert (alike["answer"], alike["reason"].count("not sure")) == (NOT_UNDERSTOOD, 1)
    nothing = FindsNothing.from_index(index, min_confidence=0)
    both = build_router({"nothing": nothing, **patterns}, choose=lambda _: ["nothing", "one"]).invoke(question)
    assert both["answer"] == NOT_UNDERSTOOD  # what tells most, though it came last
    assert both["reason"].startswith(f"one: {unsure}")
    assert "or give examples= or llm=. nothing: nothing in the graph fits" in both["reason"]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_a_model_chooses_within_the_budget(retrievers: dict[str, BaseKGRetriever], asynchronous: bool) -> None:
    model = ScriptedChatModel(replies=["joins", "", TimeoutError("late")])
    choose = PromptTemplate.from_template("joins or open? {question}") | model | (lambda reply: reply.text or None)
    router = build_router(retrievers, choose=choose, retry=None)
    got = await router.ainvoke({"question": QUESTION}) if asynchronous else router.invoke({"question": QUESTION})
    assert (got["retriever"], got["routed_by"], got["cost"]["llm_calls"]) == ("joins", "choose", 1)
    assert model.prompts[0][0].text == f"joins or open? {QUESTION}"
    assert order(router, {"question": QUESTION}) == (["patterns", "open", "joins"], "rule: one entity")
    with pytest.raises(TimeoutError, match="late"):
        router.invoke({"question": QUESTION})
    got = build_router(retrievers, choose=choose, budget=Budget(llm_calls=0)).invoke({"question": QUESTION})
    assert got["answer"] == STOPPED
    assert "no more calls" in got["stopped"]
    assert len(model.prompts) == 3


def test_a_function_chooses(retrievers: dict[str, BaseKGRetriever]) -> None:
    router = build_router(retrievers, choose=lambda question: ["joins"])
    assert order(router, {"question": QUESTION}) == (["joins"], "choose")
    assert order(build_router(retrievers, choose=lambda question: "open"), {"question": QUESTION})[0] == ["open"]
    assert router.invoke({"question": UNKNOWN})["answer"] == NOT_UNDERSTOOD


def test_what_does_not_choose_is_refused(retrievers: dict[str, BaseKGRetriever]) -> None:
    without_parser = PromptTemplate.from_template("{question}") | ScriptedChatModel(replies=["joins"])
    choices: list[Any] = [
        without_parser,
        *(lambda _, chosen=chosen: chosen for chosen in (3, [["joins"]], [], "cypher")),
    ]
    for choose in choices:
        with pytest.raises(InvalidArgumentError, match=r"choose gave .*, wanted a name or a list of names of: open, "):
            build_router(retrievers, choose=choose).invoke({"question": QUESTION})
    with pytest.raises(InvalidArgumentError, match="choose is no function or Runnable: 'patterns'"):
        build_router(retrievers, choose="patterns")  # type: ignore[arg-type]


def test_answers_of_a_model_and_interrupts(retrievers: dict[str, BaseKGRetriever]) -> None:
    reply = json.dumps({"explanation": "", "answers": ["Audrey Tautou"], "citations": [1]})
    answering = ScriptedChatModel(replies=[reply])
    router = build_router(
        retrievers, answering, checkpointer=InMemorySaver(), interrupt_before=["patterns"], max_tokens=24
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    router.invoke({"question": QUESTION}, config)
    assert router.get_state(config).next == ("patterns",)
    with pytest.raises(InvalidArgumentError, match="k must be"):
        router.update_state(config, {"k": 0})
    got = router.invoke(None, config)
    assert [citation["triple"][2] for citation in got["citations"]] == ["Audrey Tautou"]
    assert "patterns" in router.get_graph().draw_mermaid()


def test_bad_arguments(retrievers: dict[str, BaseKGRetriever]) -> None:
    one = retrievers["patterns"]
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ({}, {}, "wanted retrievers by name"),
        ([one], {}, "wanted retrievers by name"),
        ({"a": "simgrag"}, {}, "'a' must be"),
        ({"answer": one}, {}, "'answer' is another node"),
        ({1: one}, {}, "1 is another node"),
        ({"a:b": one}, {}, "'a:b' is another node"),
        ({"a": one}, {"interrupt_before": ["b"]}, "the nodes are"),
    ]
    for given, arguments, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            build_router(given, **arguments)
    with pytest.raises(InvalidArgumentError, match="there is no input"):
        build_router({"a": one}).invoke({"question": QUESTION, "pattern": {}})


# --- operations -------------------------------------------------------------------------------------------------------


class _FactsOnly(SimGRAGRetriever):
    """Carries out no operation."""

    suits = frozenset({"one entity", "several entities", "no entity"})
    operations = False


@pytest.mark.parametrize(
    ("question", "first", "rule"),
    [
        ("Who starred in Amélie?", "facts", "rule: one entity"),
        ("How many people starred in Amélie?", "operations", "rule: operation"),
        ("Did Audrey Tautou star in Amélie?", "operations", "rule: operation"),
        ("Which films did not star Audrey Tautou?", "operations", "rule: operation"),
    ],
)
def test_a_question_with_an_operation_goes_to_who_carries_it_out(question: str, first: str, rule: str) -> None:
    index = GraphIndex.build(tiny_graph(), HashedEmbeddings())
    fields: Any = {"min_confidence": 0, "on_refusal": "empty"}
    able, facts = SimGRAGRetriever.from_index(index, **fields), _FactsOnly.from_index(index, **fields)
    state = build_router({"facts": facts, "operations": able}).invoke({"question": question})
    assert (state["methods"][0], state["routed_by"]) == (first, rule)
    seeds = {"question": question, "seed_entities": ["Amélie"]}
    assert build_router({"facts": facts, "operations": able}).invoke(seeds)["routed_by"] == rule


def test_it_goes_on_where_evidence_is_unsure_and_keeps_it(retrievers: dict[str, BaseKGRetriever]) -> None:
    index = retrievers["open"].index
    unsure, sure = KGRetriever.from_index(index), NeighborhoodRetriever.from_index(index)
    question = {"question": "What salary has Audrey Tautou?"}
    assert build_router({"kg": unsure, "around": sure}).invoke(question)["retriever"] == "around"
    output = build_router({"kg": unsure, "nothing": FindsNothing.from_index(index)}).invoke(question)
    assert output["documents"]
    assert "Not sure what" in output["reason"]
