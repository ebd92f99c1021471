"""The workflow of a retriever in LangGraph."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy
from typing_extensions import TypedDict

from kg_retrievers import (
    Budget,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LLMPatternGenerator,
    Pattern,
    SimGRAGRetriever,
    Unknown,
    answer_chain,
    build_workflow,
    cited_answer_chain,
)
from kg_retrievers.agents.nodes import STOPPED
from kg_retrievers.chains import NO_ANSWER, NOT_UNDERSTOOD, SEARCH_ENDED, ExtractiveAnswerer, llm_answerer
from kg_retrievers.core.stages import RetrievalState, Stage
from kg_retrievers.errors import (
    EntityLinkingError,
    InvalidArgumentError,
    KGRetrieversError,
    PatternError,
    SearchBudgetError,
)
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.testing import ScriptedChatModel

QUESTION = "Who starred in Amélie?"
CAST = ["Audrey Tautou", "Mathieu Kassovitz", "Dominique Pinon"]
TRIPLES = [["Amélie", "starring", name] for name in CAST]
UNKNOWN = "Who directed Xyzzyplugh?"
STAGES = ["prepare", "understand", "generate_pattern", "match_subgraphs", "verbalize", "answer", "check_citations"]
STARRING = '{"triples": [["Amélie", "starring", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
DIRECTED = Pattern.of(("Amélie", "directed by", Unknown("director")), target="director")


def thread(name: str = "1") -> Any:
    return {"configurable": {"thread_id": name}}


def reply(*citations: int, answers: Any = ("Audrey Tautou",), explanation: str = "So it says.") -> str:
    return json.dumps({"explanation": explanation, "answers": answers, "citations": citations})


def llm(*replies: str | Exception) -> ScriptedChatModel:
    return ScriptedChatModel(replies=list(replies))


async def run(workflow: Any, asynchronous: bool, *args: Any) -> Any:
    return await workflow.ainvoke(*args) if asynchronous else workflow.invoke(*args)


def by_model(index: GraphIndex, model: ScriptedChatModel) -> SimGRAGRetriever:
    """Return a retriever whose patterns the model writes."""
    return SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(model))


async def edit(workflow: Any, asynchronous: bool, values: dict[str, Any]) -> None:
    if asynchronous:
        await workflow.aupdate_state(thread(), values)
    else:
        workflow.update_state(thread(), values)


both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


# --- the way through --------------------------------------------------------------------------------------------------


@both
async def test_without_a_model(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    got = await run(build_workflow(retriever), asynchronous, {"question": QUESTION})
    assert got["documents"] == retriever.invoke(QUESTION)
    assert (got["answer"], got["answers"]) == ("; ".join(CAST), CAST)
    assert [citation["triple"] for citation in got["citations"]] == TRIPLES
    assert (got["retriever"], got["reason"], got["stopped"]) == ("SimGRAGRetriever", None, None)
    assert got["cost"]["llm_calls"] == got["cost"]["input_tokens"] == 0
    assert got["cost"]["seconds"] > 0


def test_schemas_ask_for_the_question_alone(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever)
    given = workflow.get_input_jsonschema()
    assert given["required"] == ["question"]
    assert set(given["properties"]) == {"question", "k", "seed_entities", "min_confidence", "pattern", "turns"}
    assert {"answer", "citations", "documents", "cost"} <= set(workflow.get_output_jsonschema()["properties"])


@both
async def test_with_a_model(index: GraphIndex, asynchronous: bool) -> None:
    model = llm(STARRING, reply(3, 1))
    workflow = build_workflow(by_model(index, model), model)
    got = await run(workflow, asynchronous, {"question": QUESTION})
    assert [citation["triple"] for citation in got["citations"]] == [TRIPLES[2], TRIPLES[0]]
    assert (got["answer"], got["answers"]) == ("Audrey Tautou", ["Audrey Tautou"])
    assert got["cost"]["llm_calls"] == 2
    assert got["cost"]["output_tokens"] == sum(map(approximate_tokens, (STARRING, reply(3, 1))))
    assert "[2] Amélie -> starring -> Mathieu Kassovitz" in model.prompts[1][0].text


def test_answerers_without_citations(retriever: SimGRAGRetriever) -> None:
    answerers: list[Any] = [
        ExtractiveAnswerer(),
        llm_answerer(retriever.answer_prompt, llm("; ".join(CAST))),
        RunnableLambda(lambda value: "; ".join(value["documents"][0].metadata["answers"])),
    ]
    for answerer in answerers:
        got = build_workflow(retriever, answerer).invoke({"question": QUESTION})
        assert (got["answer"], got["citations"], got["answers"]) == ("; ".join(CAST), [], CAST)


@both
@pytest.mark.parametrize("parsed", [False, True], ids=["as it comes", "parsed"])
async def test_the_answers_of_a_text_are_told_apart(
    retriever: SimGRAGRetriever, parsed: bool, asynchronous: bool
) -> None:
    parse_answers = retriever.parse_answers if parsed else None
    model = llm(
        f"They act in it [1].\nAnswer: {'; '.join(CAST)}", "No fact says it.\nAnswer: The evidence does not say."
    )
    workflow = build_workflow(retriever, llm_answerer(retriever.answer_prompt, model, parse_answers))
    got = await run(workflow, asynchronous, {"question": QUESTION})
    assert got["answers"] == CAST
    assert ("They act" in got["answer"]) != parsed
    got = await run(workflow, asynchronous, {"question": QUESTION})
    assert (got["answers"], got["reason"]) == ([], None)
    assert got["documents"]
    assert (got["answer"] == NO_ANSWER) == parsed


def test_the_retriever_that_found_the_evidence_reads_the_answers(retriever: SimGRAGRetriever) -> None:
    stuck = Stuck.from_index(retriever.index, parse_answers=str.splitlines)
    answerer = RunnableLambda(lambda value: "Her; Dune")
    got = build_workflow(stuck, answerer, fallback=retriever).invoke({"question": QUESTION})
    assert (got["retriever"], got["answers"]) == ("SimGRAGRetriever", ["Her", "Dune"])
    by_lines = retriever.model_copy(update={"parse_answers": str.splitlines})
    got = build_workflow(stuck, answerer, fallback=by_lines).invoke({"question": QUESTION})
    assert (got["retriever"], got["answers"]) == ("SimGRAGRetriever", ["Her; Dune"])


def test_answerers_are_shown_the_evidence_as_asked(retriever: SimGRAGRetriever) -> None:
    for style, shown in (("numbered", "[2] Amélie -> starring -> Mathieu"), ("documents", "; Dominique Pinon")):
        model = llm("Audrey Tautou")
        answerer = llm_answerer(retriever.answer_prompt, model)
        build_workflow(retriever, answerer, evidence_style=style).invoke({"question": QUESTION})  # type: ignore[arg-type]
        assert shown in model.prompts[0][0].text


def test_a_notebook_shows_the_nodes_without_a_network(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever)
    shown = workflow._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/markdown"}
    assert shown["text/plain"] == f"SimGRAGWorkflow({', '.join([*STAGES, 'refuse'])})"
    assert "generate_pattern --> match_subgraphs" in shown["text/markdown"]


def test_inputs_of_the_retriever(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever)
    for inputs in ({"k": 3}, {"seed_entities": ["Amélie"]}, {"pattern": DIRECTED}, {"pattern": DIRECTED.to_dict()}):
        got = workflow.invoke({"question": QUESTION, **inputs})
        assert got["documents"] == retriever.invoke(QUESTION, **inputs)
    assert got["answer"] == "Jean-Pierre Jeunet"


@both
async def test_bad_inputs_are_refused(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver())
    bad: list[tuple[Any, type[Exception], str]] = [
        ({"question": QUESTION, "kk": 3}, InvalidArgumentError, "there is no input 'kk'; did you mean 'k'"),
        ({"question": "  "}, InvalidArgumentError, "empty"),
        ({}, InvalidArgumentError, "question must be a text"),
        (QUESTION, InvalidArgumentError, "the input is"),
        ([QUESTION], InvalidArgumentError, "the input is"),
        ({"question": QUESTION, "k": 0}, InvalidArgumentError, "k must be"),
        ({"question": QUESTION, "seed_entities": ["Nobody"]}, EntityLinkingError, "Nobody"),
        ({"question": QUESTION, "pattern": {"triples": []}}, PatternError, "no triples"),
    ]
    for inputs, error, message in bad:
        with pytest.raises(error, match=message):
            await run(workflow, asynchronous, inputs, thread())


def test_bad_arguments_are_refused(retriever: SimGRAGRetriever) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"interrupt_before": ["match"]}, r"'match'.*the nodes are \['prepare', 'understand'"),
        ({"interrupt_before": "answer"}, "list of nodes"),
        ({"answerer": "openai:gpt-4.1-mini"}, "load_chat_model"),
        ({"fallback": "simgrag"}, "fallback must be"),
        ({"max_tokens": "10"}, "Workflow: max_tokens must be a valid integer, but got '10'"),
        ({"max_tokens": 0}, "max_tokens must be greater than or equal to 1, but got 0"),
        ({"count_tokens": "words"}, "count_tokens must be callable"),
        ({"budget": 3}, "budget must be a Budget or None"),
        ({"retry": 3}, "retry must be a RetryPolicy or None"),
        ({"evidence_style": "table"}, "evidence_style is"),
        ({"evidence_style": "documents"}, "for an answerer without citations"),
        ({"evidence_style": "documents", "answerer": llm()}, "for an answerer without citations"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            build_workflow(retriever, **arguments)
    with pytest.raises(InvalidArgumentError, match="retriever must be"):
        build_workflow(None)  # type: ignore[arg-type]
    for limit in (-1, "3", 1.5, True):
        with pytest.raises(InvalidArgumentError, match="Budget: llm_calls must be "):
            Budget(llm_calls=limit)  # type: ignore[arg-type]
    for seconds in (-0.5, "3", True, float("nan")):
        with pytest.raises(InvalidArgumentError, match="Budget: seconds must be "):
            Budget(seconds=seconds)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="an answerer gives a text or a CitedAnswer"):
        build_workflow(retriever, RunnableLambda(lambda value: 3)).invoke({"question": QUESTION})


# --- no evidence ------------------------------------------------------------------------------------------------------


def test_nothing_that_fits_is_refused(retriever: SimGRAGRetriever) -> None:
    far = retriever.model_copy(update={"max_distance": 0.01})
    pattern = Pattern.of(("Ameliee", "directed by", Unknown("x")), target="x")
    got = build_workflow(far).invoke({"question": QUESTION, "pattern": pattern})
    assert (got["answer"], got["reason"]) == (NO_ANSWER, "Nothing in the graph fits the question.")


@both
async def test_the_fallback_is_asked_where_nothing_is_found(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples([("Xyzzyplugh", "directed_by", "Ann")]), HashedEmbeddings())
    fallback = SimGRAGRetriever.from_index(other)
    workflow = build_workflow(retriever, fallback=fallback)
    got = await run(workflow, asynchronous, {"question": UNKNOWN})
    assert (got["answer"], got["reason"]) == ("Ann", None)
    assert got["citations"][0]["triple"] == ["Xyzzyplugh", "directed_by", "Ann"]
    got = await run(workflow, asynchronous, {"question": "Who directed Plugh the Unheard?"})
    assert (got["answer"], got["documents"]) == (NOT_UNDERSTOOD, [])
    assert "No entity" in got["reason"]
    got = await run(workflow, asynchronous, {"question": QUESTION})
    assert got["answers"] == CAST


def test_a_fallback_has_its_own_k_and_graph(retriever: SimGRAGRetriever) -> None:
    facts = [("Xyzzyplugh", "directed_by", name) for name in ("Ann", "Bob", "Cid")]
    other = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())
    fallback = SimGRAGRetriever.from_index(other, granularity="triple", k=3)
    far = retriever.model_copy(update={"max_distance": 0.01})
    workflow = build_workflow(far, fallback=fallback)
    assert len(workflow.invoke({"question": UNKNOWN})["documents"]) == 3
    assert len(workflow.invoke({"question": UNKNOWN, "k": 2})["documents"]) == 2
    nothing = Pattern.of(("Heer", "directed by", Unknown("x")), target="x")
    got = workflow.invoke({"question": UNKNOWN, "seed_entities": ["Her"], "pattern": nothing})
    assert len(got["documents"]) == 3  # the seed is none of its graph


def test_a_fallback_of_the_same_class_has_a_reason_of_its_own(retriever: SimGRAGRetriever) -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples([("Xyzzyplugh", "directed_by", "Ann")]), HashedEmbeddings())
    stuck = Stuck.from_index(retriever.index)
    workflow = build_workflow(stuck, fallback=Stuck.from_index(other))
    got = workflow.invoke({"question": QUESTION})
    assert got["retriever"] == "Stuck-2"
    assert got["reason"].startswith("Stuck: nothing was found in time. Stuck-2: No entity of the graph was found in ")


def test_a_search_without_time_goes_to_the_fallback(retriever: SimGRAGRetriever) -> None:
    slow = Stuck.from_index(retriever.index)
    got = build_workflow(slow).invoke({"question": QUESTION})
    assert (got["answer"], got["reason"]) == (SEARCH_ENDED, "nothing was found in time.")
    assert answer_chain(slow).invoke(QUESTION) == f"{SEARCH_ENDED} nothing was found in time."
    for answerer in (None, llm()):
        cited = cited_answer_chain(slow, answerer).invoke(QUESTION)
        assert (cited["answer"], cited["explanation"]) == (SEARCH_ENDED, "nothing was found in time.")
    assert build_workflow(slow, fallback=retriever).invoke({"question": QUESTION})["answers"] == CAST
    both = build_workflow(slow, fallback=Stuck.from_index(retriever.index)).invoke({"question": UNKNOWN})
    assert both["answer"] == NOT_UNDERSTOOD  # of the first refusal, as the reason
    assert both["reason"].startswith("No entity")
    assert slow.as_tool().invoke({"query": QUESTION}) == "nothing was found in time. Ask about one or two entities."


class Stuck(SimGRAGRetriever):
    """Never finds anything in time."""

    def match(self, pattern: Pattern, k: int | None = None, **given: Any) -> Any:
        raise SearchBudgetError("nothing was found in time.")


class _ClashState(RetrievalState, total=False):
    reason: str


class Clash(SimGRAGRetriever):
    """Has a key that workflows have."""

    state_class = _ClashState


class Twice(SimGRAGRetriever):
    """Has a stage that is called like a node of every workflow, or writes what it does not declare."""

    name_of_last: str = "answer"

    @property
    def stages(self) -> tuple[Stage, ...]:
        first, last = super().stages
        return first, Stage(self.name_of_last, last.run, ("documents",))


def test_what_a_workflow_needs_for_itself_is_refused(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match=r"keys \['reason'\] of its own"):
        build_workflow(Clash.from_index(retriever.index))
    with pytest.raises(InvalidArgumentError, match=r"\['answer'\] are nodes of every workflow"):
        build_workflow(Twice.from_index(retriever.index))
    undeclared = Twice.from_index(retriever.index, name_of_last="match")
    with pytest.raises(InvalidArgumentError, match=r"wrote .*but declares"):
        build_workflow(undeclared).invoke({"question": QUESTION})


# --- citations --------------------------------------------------------------------------------------------------------


@both
async def test_a_citation_that_was_not_shown_is_asked_for_once_more(
    retriever: SimGRAGRetriever, asynchronous: bool
) -> None:
    model = llm(reply(1, 99), reply(2))
    got = await run(build_workflow(retriever, model), asynchronous, {"question": QUESTION})
    assert [citation["number"] for citation in got["citations"]] == [2]
    assert (got["rejected_citations"], got["reason"], got["cost"]["llm_calls"]) == (0, None, 2)
    again = model.prompts[1][0].text
    assert "1 citation names a fact that was not shown; cite by number, 1 to 3." in again
    assert '"answers": ["Audrey Tautou"]' in again


def test_what_was_not_shown_never_reaches_the_final_state(retriever: SimGRAGRetriever) -> None:
    model = llm(reply(99, explanation="As [99] and [1] say."), reply(1, 98, explanation="See [98] and [1]."))
    workflow = build_workflow(retriever, model, checkpointer=InMemorySaver())
    got = workflow.invoke({"question": QUESTION}, thread())
    assert [citation["triple"] for citation in got["citations"]] == [TRIPLES[0]]
    assert got["rejected_citations"] == 1
    final = repr(workflow.get_state(thread()).values)
    assert "98" not in json.dumps([got["citations"], got["explanation"], got["answer"]])
    assert "[98]" not in final
    assert "[99]" not in final


def test_marks_in_answers_and_texts_are_citations_too(retriever: SimGRAGRetriever) -> None:
    model = llm(reply(1, answers=["Audrey Tautou [99]"]), reply(2, answers=["Mathieu Kassovitz [98]"]))
    got = build_workflow(retriever, model).invoke({"question": QUESTION})
    assert (got["answer"], got["answers"]) == ("Mathieu Kassovitz", ["Mathieu Kassovitz"])
    assert (got["rejected_citations"], got["cost"]["llm_calls"]) == (1, 2)
    said = ["Audrey Tautou [1], as [99] says.", "Audrey Tautou [1, 97], as [98] says."]
    got = build_workflow(retriever, llm_answerer(retriever.answer_prompt, llm(*said))).invoke({"question": QUESTION})
    assert got["answer"] == "Audrey Tautou [1], as says."
    assert [citation["triple"] for citation in got["citations"]] == [TRIPLES[0]]
    assert (got["rejected_citations"], got["cost"]["llm_calls"]) == (2, 2)


def test_an_answerer_of_ones_own_cannot_cite_what_was_not_shown(retriever: SimGRAGRetriever) -> None:
    seen: list[Any] = []

    def invent(value: Any) -> dict[str, Any]:
        seen.append(value.get("feedback"))
        real = {"number": 1, "triple": value["citable"][0]}
        return {"answers": ["x"], "citations": [real, {"number": 7, "triple": ["Her", "directed_by", "Nobody"]}]}

    got = build_workflow(retriever, RunnableLambda(invent)).invoke({"question": QUESTION})
    assert [citation["triple"] for citation in got["citations"]] == [TRIPLES[0]]
    assert got["rejected_citations"] == 1
    assert seen[0] is None
    assert "not shown" in seen[1]
    assert len(seen) == 2


def test_answers_without_citations_are_told(retriever: SimGRAGRetriever) -> None:
    got = build_workflow(retriever, llm(reply(), reply())).invoke({"question": QUESTION})
    assert got["citations"] == []
    assert got["reason"].startswith("The answer cannot be checked: its answers cite no fact")
    silent = build_workflow(retriever, llm(reply(answers=[]))).invoke({"question": QUESTION})
    assert (silent["answer"], silent["reason"], silent["cost"]["llm_calls"]) == (NO_ANSWER, None, 1)


def test_the_context_keeps_to_the_token_budget(retriever: SimGRAGRetriever) -> None:
    model = llm(reply(2), reply(2))
    got = build_workflow(retriever, model, max_tokens=25).invoke({"question": QUESTION})
    assert "[1] Amélie -> starring -> Audrey Tautou\n(2 more facts left out)" in model.prompts[0][0].text
    assert got["citations"] == []


# --- errors and retries -----------------------------------------------------------------------------------------------


@both
async def test_a_reply_that_cannot_be_read_is_told_as_the_reason(
    index: GraphIndex, retriever: SimGRAGRetriever, asynchronous: bool
) -> None:
    """The evidence answers in place of the answerer's model; without a pattern there is no evidence."""
    answered = await run(build_workflow(retriever, llm("bad", "worse")), asynchronous, {"question": QUESTION})
    alone = await run(build_workflow(retriever), asynchronous, {"question": QUESTION})
    assert (answered["answers"], answered["citations"]) == (alone["answers"], alone["citations"])
    assert "The reply was: 'worse'" in answered["reason"]
    by_llm = by_model(index, llm("bad", "worse"))
    refused = await run(build_workflow(by_llm), asynchronous, {"question": QUESTION})
    assert "The reply was: 'worse'" in refused["reason"]
    assert refused["documents"] == []


class FlakyError(Exception):
    """An error of a network, say."""


@both
async def test_nodes_that_call_a_model_are_tried_again(index: GraphIndex, asynchronous: bool) -> None:
    model = llm(FlakyError(), STARRING, FlakyError(), FlakyError(), reply(1))
    by_llm = by_model(index, model)
    quick = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    got = await run(build_workflow(by_llm, model, retry=quick), asynchronous, {"question": QUESTION})
    assert got["answer"] == "Audrey Tautou"
    assert got["cost"]["llm_calls"] == len(model.prompts) == 5
    by_llm = by_model(index, llm(FlakyError(), STARRING))
    with pytest.raises(FlakyError):
        await run(build_workflow(by_llm, retry=None), asynchronous, {"question": QUESTION})


@both
async def test_calls_of_failed_attempts_count(index: GraphIndex, asynchronous: bool) -> None:
    quick = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    for allowed in (2, 3):  # a pattern in three calls, of two attempts
        model = llm("unreadable", FlakyError(), STARRING)
        workflow = build_workflow(by_model(index, model), retry=quick, budget=Budget(llm_calls=allowed))
        got = await run(workflow, asynchronous, {"question": QUESTION})
        assert got["cost"]["llm_calls"] == len(model.prompts) == allowed
        assert (got["answers"], bool(got["stopped"])) == ((CAST, False) if allowed == 3 else ([], True))


def test_a_call_that_a_budget_refuses_is_logged_once(
    retriever: SimGRAGRetriever, caplog: pytest.LogCaptureFixture
) -> None:
    assert build_workflow(retriever, llm(), budget=Budget(llm_calls=0)).invoke({"question": QUESTION})["stopped"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "the budget allows no more calls of a language model." in line


@pytest.mark.parametrize("day", [0, 86_400, -86_400])
def test_pauses_between_attempts_take_time(index: GraphIndex, monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    """Whatever the clock of the machine says meanwhile."""
    told = itertools.count(time.time(), day)
    monkeypatch.setattr(time, "time", lambda: next(told))
    slow = RetryPolicy(max_attempts=2, initial_interval=0.2, jitter=False)
    by_llm = by_model(index, llm(FlakyError(), STARRING))
    got = build_workflow(by_llm, retry=slow, budget=Budget(seconds=0.15)).invoke({"question": QUESTION})
    assert got["stopped"] == "the budget of 0.15 seconds is used up."
    assert got["cost"]["llm_calls"] == 1
    assert 0.2 <= got["cost"]["seconds"] < 600


def test_errors_of_this_package_are_not_tried_again(retriever: SimGRAGRetriever) -> None:
    tried = []

    def fail(value: Any) -> str:
        tried.append(value)
        raise KGRetrieversError("no.")

    with pytest.raises(KGRetrieversError):
        build_workflow(retriever, RunnableLambda(fail)).invoke({"question": QUESTION})
    assert len(tried) == 1


# --- budgets ----------------------------------------------------------------------------------------------------------


@both
async def test_a_budget_of_calls_is_never_exceeded(index: GraphIndex, asynchronous: bool) -> None:
    for allowed in range(5):
        model = llm("unreadable", STARRING, reply(99), reply(1))
        workflow = build_workflow(by_model(index, model), model, budget=Budget(llm_calls=allowed))
        got = await run(workflow, asynchronous, {"question": QUESTION})
        assert got["cost"]["llm_calls"] == len(model.prompts) == min(allowed, 4)
        if allowed < 4:
            assert got["stopped"] == "the budget allows no more calls of a language model."
        if allowed < 2:  # no pattern yet
            assert (got["answer"], got["documents"]) == (STOPPED, [])
        elif allowed == 2:  # evidence, but no answer of the model: what the graph proposes
            assert got["answers"] == CAST
            assert [citation["triple"] for citation in got["citations"]] == TRIPLES
        elif allowed == 3:  # a first draft, whose citation fails
            assert (got["answer"], got["citations"], got["rejected_citations"]) == ("Audrey Tautou", [], 1)
        else:
            assert (got["stopped"], got["citations"][0]["number"]) == (None, 1)


def test_a_budget_of_tokens_and_of_time(retriever: SimGRAGRetriever) -> None:
    got = build_workflow(retriever, llm(reply(99), reply(1)), budget=Budget(tokens=1)).invoke({"question": QUESTION})
    assert got["stopped"] == "the budget allows no more tokens."
    assert got["cost"]["llm_calls"] == 1
    got = build_workflow(retriever, llm(), budget=Budget(seconds=0)).invoke({"question": QUESTION})
    assert "0 seconds is used up" in got["stopped"]
    assert (got["answer"], got["cost"]["llm_calls"]) == (STOPPED, 0)
    got = build_workflow(retriever, budget=Budget(llm_calls=0, tokens=0, seconds=3600)).invoke({"question": QUESTION})
    assert (got["answers"], got["stopped"]) == (CAST, None)


# --- threads, checkpoints, interrupts ---------------------------------------------------------------------------------


@both
async def test_a_second_question_starts_clean(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver())
    first: dict[str, Any] = {"question": QUESTION, "k": 3, "pattern": DIRECTED, "seed_entities": ["Amélie"]}
    fresh = build_workflow(retriever)
    got = await run(workflow, asynchronous, first, thread())
    assert got["answer"] == "Jean-Pierre Jeunet"
    for question in (QUESTION, UNKNOWN, "Who directed Her?"):
        got = await run(workflow, asynchronous, {"question": question}, thread())
        expected = fresh.invoke({"question": question})
        assert got.pop("turns")[-1:] == expected.pop("turns")
        assert _without_time(got) == _without_time(expected)
    again = await run(workflow, asynchronous, first, thread())
    assert again["answer"] == "Jean-Pierre Jeunet"


async def test_a_question_after_a_failure_starts_clean(index: GraphIndex) -> None:
    model = llm(STARRING, TimeoutError("late"), STARRING.replace("starring", "directed by"), reply(1))
    workflow = build_workflow(by_model(index, model), model, checkpointer=InMemorySaver())
    with pytest.raises(TimeoutError):
        workflow.invoke({"question": QUESTION}, thread())
    got = workflow.invoke({"question": "Who directed Amélie?"}, thread())
    assert got["documents"][0].metadata["answers"] == ["Jean-Pierre Jeunet"]
    assert got["cost"]["llm_calls"] == 2


async def test_a_failed_run_goes_on_where_it_failed(index: GraphIndex) -> None:
    model = llm(STARRING, "unreadable", TimeoutError("late"), reply(1))
    workflow = build_workflow(by_model(index, model), model, checkpointer=InMemorySaver())
    with pytest.raises(TimeoutError):
        workflow.invoke({"question": QUESTION}, thread())
    got = workflow.invoke(None, thread())
    assert got["answer"] == "Audrey Tautou"
    assert got["cost"]["llm_calls"] == len(model.prompts) == 4


def _without_time(output: dict[str, Any]) -> dict[str, Any]:
    return {**output, "cost": {**output["cost"], "seconds": None}}


@both
async def test_a_person_edits_the_pattern(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["match_subgraphs"])
    await run(workflow, asynchronous, {"question": QUESTION}, thread())
    state = workflow.get_state(thread())
    assert state.next == ("match_subgraphs",)
    assert Pattern.from_dict(state.values["pattern"]).target == "entity 1"
    wrong: list[tuple[Any, type[Exception]]] = [
        ({"pattern": {"triples": [["a", "b"]]}}, PatternError),
        ({"pattern": {"triples": [["a", "b", "c"]], "target": "x"}}, PatternError),
        ({"pattern": 3}, PatternError),
        ({"k": 0}, InvalidArgumentError),
        ({"patern": DIRECTED.to_dict()}, InvalidArgumentError),
        ({"question": "Who directed Her?"}, InvalidArgumentError),
        ({"pattern": None}, InvalidArgumentError),
        ({"documents": "foo"}, InvalidArgumentError),
        ({"citable": [["Fake", "is", "Fake"]]}, InvalidArgumentError),
        ({"spending": []}, InvalidArgumentError),
    ]
    for values, error in wrong:
        with pytest.raises(error):
            await edit(workflow, asynchronous, values)
    await edit(workflow, asynchronous, {"pattern": DIRECTED})
    got = await run(workflow, asynchronous, None, thread())
    assert (got["answer"], got["answers"]) == ("Jean-Pierre Jeunet", ["Jean-Pierre Jeunet"])
    assert got["documents"] == retriever.invoke(QUESTION, pattern=DIRECTED)


def test_a_person_writes_the_pattern_where_no_entity_was_found(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["match_subgraphs"])
    workflow.invoke({"question": UNKNOWN}, thread())
    assert "No entity" in workflow.get_state(thread()).values["reason"]
    workflow.update_state(thread(), {"pattern": DIRECTED})
    got = workflow.invoke(None, thread())
    assert (got["answer"], got["reason"]) == ("Jean-Pierre Jeunet", None)


@both
async def test_a_person_names_the_entity_that_was_not_found(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["match_subgraphs"])
    await run(workflow, asynchronous, {"question": UNKNOWN}, thread())
    await edit(workflow, asynchronous, {"seed_entities": ["Her"]})
    assert workflow.get_state(thread()).next == ("generate_pattern",)  # the pattern is made for it, and seen again
    await run(workflow, asynchronous, None, thread())
    assert workflow.get_state(thread()).next == ("match_subgraphs",)
    got = await run(workflow, asynchronous, None, thread())
    assert (got["answer"], got["reason"]) == ("Spike Jonze", None)


def test_what_comes_too_late_is_refused(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["verbalize"])
    workflow.invoke({"question": QUESTION}, thread())
    for values in ({"pattern": DIRECTED}, {"k": 3}):
        with pytest.raises(InvalidArgumentError, match=r"cannot be edited any more.*Ask again"):
            workflow.update_state(thread(), values)
    documents = retriever.invoke(QUESTION, pattern=DIRECTED)
    workflow.update_state(thread(), {"documents": documents})
    assert workflow.invoke(None, thread())["citations"][0]["triple"] == ["Amélie", "directed_by", "Jean-Pierre Jeunet"]


def test_commands_are_checked_like_edits(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["match_subgraphs"])
    workflow.invoke({"question": QUESTION}, thread())
    for update in ({"k": -3}, {"pattern": {"triples": []}}, {"spending": []}):
        with pytest.raises((InvalidArgumentError, PatternError)):
            workflow.invoke(Command(update=update), thread())
    assert workflow.get_state(thread()).values["k"] == 1


def test_a_refused_question_leaves_the_thread_alone(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver())
    before = workflow.invoke({"question": QUESTION}, thread())
    with pytest.raises(InvalidArgumentError):
        workflow.invoke({"question": "Who directed Her?", "k": 0}, thread())
    state = workflow.get_state(thread())
    assert (state.values["question"], state.values["answer"], state.next) == (QUESTION, before["answer"], ())


def test_what_is_saved_is_plain(retriever: SimGRAGRetriever) -> None:
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    workflow = build_workflow(retriever, llm(reply(99), reply(1)), checkpointer=InMemorySaver(serde=strict))
    got = workflow.invoke({"question": QUESTION}, thread())
    saved = workflow.get_state(thread()).values
    assert saved["documents"] == got["documents"]
    assert isinstance(saved["documents"][0], Document)
    assert json.loads(json.dumps({key: value for key, value in saved.items() if key != "documents"}))


_PROCESS = """
import json, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from kg_retrievers import GraphIndex, HashedEmbeddings, SimGRAGRetriever, build_workflow
from kg_retrievers.testing import tiny_graph

retriever = SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()))
config = {"configurable": {"thread_id": "1"}}
with SqliteSaver.from_conn_string(sys.argv[1]) as checkpointer:
    workflow = build_workflow(retriever, checkpointer=checkpointer, interrupt_before=["match_subgraphs"])
    if sys.argv[2] == "ask":
        workflow.invoke({"question": "Who starred in Amélie?"}, config)
        output = {"next": workflow.get_state(config).next}
    else:
        pattern = {"triples": [["Amélie", "directed_by", {"unknown": "director"}]], "target": "director"}
        workflow.update_state(config, {"pattern": pattern})
        output = workflow.invoke(None, config)
        output["documents"] = [document.model_dump() for document in output["documents"]]
    print(json.dumps(output))
"""


@pytest.mark.heavy
def test_another_process_goes_on_from_sqlite(retriever: SimGRAGRetriever, tmp_path: Path) -> None:
    def process(what: str) -> Any:
        command = [sys.executable, "-X", "utf8", "-c", _PROCESS, str(tmp_path / "checkpoints.sqlite"), what]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
        assert done.returncode == 0, done.stderr
        assert "unregistered" not in done.stderr
        return json.loads(done.stdout)

    assert process("ask") == {"next": ["match_subgraphs"]}
    got = process("go on")
    assert got["answer"] == "Jean-Pierre Jeunet"
    assert got["citations"][0]["triple"] == ["Amélie", "directed_by", "Jean-Pierre Jeunet"]
    expected = retriever.invoke(
        QUESTION, pattern=Pattern.of(("Amélie", "directed_by", Unknown("director")), target="director")
    )
    assert got["documents"] == [document.model_dump() for document in expected]


# --- streaming --------------------------------------------------------------------------------------------------------


def test_streams(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, llm(reply(1)))
    parts = list(workflow.stream({"question": QUESTION}, stream_mode=["updates", "messages", "custom"]))
    assert [next(iter(part)) for mode, part in parts if mode == "updates"] == STAGES
    tokens = [(chunk.text, told["langgraph_node"]) for mode, (chunk, told) in _of(parts, "messages")]
    assert "".join(text for text, _ in tokens) == reply(1)
    assert {node for _, node in tokens} == {"answer"}
    events = [part for mode, part in parts if mode == "custom"]
    assert [event["node"] for event in events] == ["understand", "generate_pattern", "match_subgraphs", "answer"]
    assert events[0]["asked_as"] == QUESTION
    assert events[1]["pattern"]["target"] == "entity 1"
    assert "documents" not in events[2]
    assert events[2]["answers"] == CAST


def _of(parts: list[Any], mode: str) -> list[Any]:
    return [part for part in parts if part[0] == mode]


# --- among other graphs -----------------------------------------------------------------------------------------------


@both
async def test_as_a_node_of_another_graph(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    class Outer(TypedDict, total=False):
        messages: list[Any]
        question: str
        answer: str

    graph = StateGraph(Outer)
    graph.add_node("ask", lambda state: {"question": state["messages"][-1].text})
    graph.add_node("knowledge_graph", build_workflow(retriever))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "knowledge_graph")
    graph.add_edge("knowledge_graph", END)
    got = await run(graph.compile(), asynchronous, {"messages": [AIMessage(QUESTION)]})
    assert got["answer"] == "; ".join(CAST)


def test_a_workflow_can_be_copied(retriever: SimGRAGRetriever) -> None:
    copied = build_workflow(retriever).copy(update={"checkpointer": InMemorySaver()})
    assert copied.invoke({"question": QUESTION}, thread())["answers"] == CAST
    with pytest.raises(InvalidArgumentError):
        copied.invoke({"question": QUESTION, "kk": 1}, thread())
    assert copied.with_config(tags=["x"]).invoke({"question": QUESTION}, thread())["answers"] == CAST


async def test_many_at_once(retriever: SimGRAGRetriever) -> None:
    workflow = build_workflow(retriever, checkpointer=InMemorySaver())
    questions = [QUESTION, "Who directed Her?", UNKNOWN] * 4
    one_by_one = [_without_time(build_workflow(retriever).invoke({"question": question})) for question in questions]
    tasks = [workflow.ainvoke({"question": question}, thread(str(n))) for n, question in enumerate(questions)]
    at_once = await asyncio.gather(*tasks)
    assert [_without_time(output) for output in at_once] == one_by_one


def test_a_stop_without_a_checkpointer_is_told(retriever: SimGRAGRetriever) -> None:
    with pytest.warns(UserWarning, match=r"cannot go on: give checkpointer=InMemorySaver\(\)") as caught:
        build_workflow(retriever, interrupt_before=["answer"])
    assert caught[0].filename == __file__
