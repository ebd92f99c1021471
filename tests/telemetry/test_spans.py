"""Spans of OpenTelemetry: each under what it is part of, and without texts of users."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kept_spans import Kept
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from opentelemetry.trace import StatusCode

from kg_retrievers import (
    GraphIndex,
    PCSTRetriever,
    SimGRAGRetriever,
    Spans,
    answer_chain,
    as_llama_index,
    build_router,
    build_workflow,
)
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.telemetry import watching
from kg_retrievers.testing import ScriptedChatModel

QUESTION, UNKNOWN = "Who starred in Amélie?", "Who starred in Xyzzyplugh?"
STAGES = ["stage generate_pattern", "stage match_subgraphs"]


class Failing(FakeListLLM):
    """A model whose server is gone."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ConnectionError("the secret question of a user")


def test_a_retriever_and_its_stages(retriever: SimGRAGRetriever, kept: Kept) -> None:
    retriever.invoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
    assert kept.tree() == ["retrieval SimGRAGRetriever", STAGES]
    attributes = kept.attributes("retrieval SimGRAGRetriever")
    assert attributes.pop("kg_retrievers.confidence") > 0.5
    assert attributes == {
        "gen_ai.operation.name": "retrieval",
        "kg_retrievers.retriever": "SimGRAGRetriever",
        "kg_retrievers.documents": 1,
        "kg_retrievers.answers": 3,
        "kg_retrievers.truncated": False,
    }
    stage = kept.attributes("stage match_subgraphs")
    assert (stage["kg_retrievers.stage"], stage["kg_retrievers.retriever"]) == ("match_subgraphs", "SimGRAGRetriever")
    assert (stage["kg_retrievers.documents"], stage["kg_retrievers.answers"]) == (1, 3)


async def test_async_gives_the_same_spans(retriever: SimGRAGRetriever, kept: Kept) -> None:
    await retriever.ainvoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
    assert kept.tree() == ["retrieval SimGRAGRetriever", STAGES]


def test_questions_in_threads_are_told_apart(retriever: SimGRAGRetriever, kept: Kept) -> None:
    spans = Spans(kept.provider)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: retriever.invoke(QUESTION, {"callbacks": [spans]}), range(16)))
    retriever.batch([QUESTION] * 4, {"callbacks": [spans]})
    assert kept.tree() == ["retrieval SimGRAGRetriever", STAGES] * 20
    assert len({span.context.trace_id for span in kept.all}) == 20


async def test_questions_asked_at_once_are_told_apart(retriever: SimGRAGRetriever, kept: Kept) -> None:
    spans = Spans(kept.provider)
    await asyncio.gather(*(retriever.ainvoke(QUESTION, {"callbacks": [spans]}) for _ in range(10)))
    assert kept.tree() == ["retrieval SimGRAGRetriever", STAGES] * 10


def test_the_first_span_is_under_that_of_the_caller(retriever: SimGRAGRetriever, kept: Kept) -> None:
    with kept.provider.get_tracer("app").start_as_current_span("request"):
        retriever.invoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
        asyncio.run(retriever.ainvoke(QUESTION, {"callbacks": [Spans(kept.provider)]}))
    assert kept.tree() == ["request", ["retrieval SimGRAGRetriever", STAGES] * 2]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_workflow_has_one_span_for_each_node(index: GraphIndex, kept: Kept, asynchronous: bool) -> None:
    usage = {"input_tokens": 70, "output_tokens": 9, "total_tokens": 79}
    reply = AIMessage('{"explanation": "", "answers": ["Audrey Tautou"], "citations": [1]}', usage_metadata=usage)
    workflow = build_workflow(PCSTRetriever.from_index(index), GenericFakeChatModel(messages=iter([reply])))
    given: tuple[Any, ...] = {"question": QUESTION}, {"callbacks": [Spans(kept.provider)]}
    output = asyncio.run(workflow.ainvoke(*given)) if asynchronous else workflow.invoke(*given)
    assert output["answers"] == ["Audrey Tautou"]
    name = "invoke_workflow PCSTWorkflow"
    stages = ["stage prepare", "stage rank_nodes_and_edges", "stage solve_pcst", "stage verbalize", "stage answer"]
    model = next(span.name for span in kept.all if span.name.startswith("chat"))
    assert kept.tree() == [name, [*stages, [model], "stage check_citations"]]
    assert kept.attributes("stage solve_pcst")["kg_retrievers.retriever"] == "PCSTRetriever"
    assert kept.attributes(name)["kg_retrievers.answers"] == 1
    for spent in (name, "stage answer", model):
        attributes = kept.attributes(spent)
        assert attributes["kg_retrievers.model_calls"] == 1
        assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (70, 9)
        assert attributes["kg_retrievers.usage_estimated"] is False
    assert "gen_ai.usage.input_tokens" not in kept.attributes("stage verbalize")


def test_a_refused_workflow(retriever: SimGRAGRetriever, kept: Kept) -> None:
    build_workflow(retriever).invoke({"question": UNKNOWN}, {"callbacks": [Spans(kept.provider)]})
    refused = {span.name for span in kept.all if (span.attributes or {}).get("kg_retrievers.refused")}
    assert refused == {"invoke_workflow SimGRAGWorkflow", "stage generate_pattern"}
    for name in refused:
        assert kept.attributes(name)["kg_retrievers.refusal"] == "EntityLinkingError"
    assert "Xyzzyplugh" not in kept.texts()


def test_a_workflow_whose_fallback_answers_is_not_refused(index: GraphIndex, kept: Kept) -> None:
    nothing = SimGRAGRetriever.from_index(index, min_confidence=1.0)
    workflow = build_workflow(nothing, fallback=PCSTRetriever.from_index(index))
    output = workflow.invoke({"question": QUESTION}, {"callbacks": [Spans(kept.provider)]})
    assert output["retriever"] == "PCSTRetriever"
    assert "kg_retrievers.refused" not in kept.attributes("invoke_workflow SimGRAGWorkflow")
    refusals = [(span.name, (span.attributes or {}).get("kg_retrievers.refusal")) for span in kept.all]
    assert ("stage match_subgraphs", "LowConfidenceError") in refusals
    assert "retrieval PCSTRetriever" in str(kept.tree())


def test_a_router(index: GraphIndex, retriever: SimGRAGRetriever, kept: Kept) -> None:
    router = build_router({"patterns": retriever, "evidence": PCSTRetriever.from_index(index)})
    router.invoke({"question": QUESTION}, {"callbacks": [Spans(kept.provider)]})
    assert ["retrieval SimGRAGRetriever", STAGES] in kept.tree()[1]


def test_a_chain_and_its_model(index: GraphIndex, kept: Kept) -> None:
    chain = answer_chain(PCSTRetriever.from_index(index), ScriptedChatModel(replies=["Audrey Tautou"]))
    chain.invoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
    model = next(span.name for span in kept.all if span.name.startswith("chat"))
    stages = ["stage rank_nodes_and_edges", "stage solve_pcst"]
    assert kept.tree() == ["chain RunnableSequence", ["retrieval PCSTRetriever", stages, model]]
    assert kept.attributes(model)["kg_retrievers.usage_estimated"] is True


async def test_llamaindex_is_watched_in_its_context(index: GraphIndex, kept: Kept) -> None:
    bridge = as_llama_index(PCSTRetriever.from_index(index))
    with watching(Spans(kept.provider)):
        bridge.retrieve(QUESTION)
        await bridge.aretrieve(QUESTION)
    bridge.retrieve(QUESTION)
    one = ["retrieval PCSTRetriever", ["stage rank_nodes_and_edges", "stage solve_pcst"]]
    assert kept.tree() == one * 2


def test_a_tool(retriever: SimGRAGRetriever, kept: Kept) -> None:
    retriever.as_tool().invoke({"query": UNKNOWN}, {"callbacks": [Spans(kept.provider)]})
    assert kept.tree() == [
        "execute_tool search_knowledge_graph",
        ["retrieval SimGRAGRetriever", ["stage generate_pattern"]],
    ]
    assert kept.attributes("retrieval SimGRAGRetriever")["kg_retrievers.refusal"] == "EntityLinkingError"


def test_a_refusal_is_no_error(retriever: SimGRAGRetriever, kept: Kept) -> None:
    spans = Spans(kept.provider)
    assert retriever.invoke(UNKNOWN, {"callbacks": [spans]}) == []
    with pytest.raises(EntityLinkingError):
        retriever.invoke(UNKNOWN, {"callbacks": [spans]}, on_refusal="raise")
    refused = [span for span in kept.all if span.name == "retrieval SimGRAGRetriever"]
    assert [(span.attributes or {})["kg_retrievers.refusal"] for span in refused] == ["EntityLinkingError"] * 2
    assert {span.status.status_code for span in kept.all} == {StatusCode.UNSET}
    assert "Xyzzyplugh" not in kept.texts()


def test_an_error_is_told_by_its_class(index: GraphIndex, kept: Kept) -> None:
    chain = answer_chain(PCSTRetriever.from_index(index), Failing(responses=[""]))
    with pytest.raises(ConnectionError):
        chain.invoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
    failed = {span.name for span in kept.all if span.status.status_code == StatusCode.ERROR}
    assert failed == {"chain RunnableSequence", *(span.name for span in kept.all if span.name.startswith("chat"))}
    assert kept.attributes("chain RunnableSequence")["error.type"] == "ConnectionError"
    assert "secret" not in kept.texts()
    assert "Amélie" not in kept.texts()


def test_texts_where_they_are_asked_for(index: GraphIndex, retriever: SimGRAGRetriever, kept: Kept) -> None:
    spans = Spans(kept.provider, texts=True)
    retriever.invoke(UNKNOWN, {"callbacks": [spans]})
    attributes = kept.attributes("retrieval SimGRAGRetriever")
    assert attributes["gen_ai.retrieval.query.text"] == UNKNOWN
    assert "No entity of the graph was found" in attributes["kg_retrievers.told"]
    with pytest.raises(ConnectionError):
        Failing(responses=[""]).invoke("Hello", {"callbacks": [spans]})
    assert kept.all[-1].status.description == "the secret question of a user"


async def test_a_cancelled_question_ends_its_spans(index: GraphIndex, kept: Kept) -> None:
    async def wait(_: Any) -> Any:
        await asyncio.sleep(60)

    waiting = SimGRAGRetriever(index=index, pattern_generator=RunnableLambda(lambda _: None, wait))
    asking = asyncio.create_task(waiting.ainvoke(QUESTION, {"callbacks": [Spans(kept.provider)]}))
    await asyncio.sleep(0.2)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert kept.tree() == ["retrieval SimGRAGRetriever", ["stage generate_pattern"]]
    assert {(span.attributes or {})["error.type"] for span in kept.all} == {"CancelledError"}


def test_without_the_package_it_says_what_is_missing() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "import kg_retrievers\n"
        "from kg_retrievers import Counts, log_events\n"
        "from kg_retrievers.errors import MissingExtraError\n"
        "try:\n"
        "    kg_retrievers.Spans\n"
        "except MissingExtraError as error:\n"
        "    print(error.extra)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("otel\n", 0), done.stderr
