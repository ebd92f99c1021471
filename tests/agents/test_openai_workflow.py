"""The real `openai` client against a server on loopback, through chains and workflows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from langgraph.types import RetryPolicy
from openai_server import Hang, OpenAIServer, RateLimit, Reply, client

from kg_retrievers import (
    GraphIndex,
    LLMPatternGenerator,
    SimGRAGRetriever,
    build_workflow,
    cited_answer_chain,
    llm_answerer,
)
from kg_retrievers.chains import LLMCitedAnswerer

QUESTION = "Who starred in Amélie?"
PATTERN = '{"triples": [["Amélie", "starring", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
ANSWER = json.dumps({"explanation": "So says the first.", "answers": ["Audrey Tautou"], "citations": [1]})
QUICK = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_a_workflow_streams_tokens(index: GraphIndex, asynchronous: bool) -> None:
    with OpenAIServer(Reply(PATTERN), Reply("Audrey Tautou and others")) as server:
        llm = client(server)
        retriever = SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(llm))
        workflow = build_workflow(retriever, llm_answerer(retriever.answer_prompt, llm))
        if asynchronous:
            parts = [part async for part in workflow.astream({"question": QUESTION}, stream_mode="messages")]
        else:
            parts = list(workflow.stream({"question": QUESTION}, stream_mode="messages"))
    nodes: dict[str, str] = {}
    for chunk, told in parts:
        nodes[told["langgraph_node"]] = nodes.get(told["langgraph_node"], "") + chunk.text
    assert nodes == {"generate_pattern": PATTERN, "answer": "Audrey Tautou and others"}
    assert len(parts) > 8


@pytest.mark.parametrize("structured", [None, False])
async def test_citations_with_and_without_structured_output(
    retriever: SimGRAGRetriever, structured: bool | None
) -> None:
    with OpenAIServer(Reply(ANSWER), Reply(ANSWER), Reply(ANSWER)) as server:
        answerer = LLMCitedAnswerer(client(server), structured=structured)
        chain, workflow = cited_answer_chain(retriever, answerer), build_workflow(retriever, answerer)
        got: list[Any] = [chain.invoke(QUESTION), await chain.ainvoke(QUESTION)]
        got.append(workflow.invoke({"question": QUESTION}))
    for output in got:
        assert [citation["triple"] for citation in output["citations"]] == [["Amélie", "starring", "Audrey Tautou"]]
    assert [("response_format" in request) for request in server.requests] == [structured is None] * 3
    assert got[2]["cost"]["llm_calls"] == 1
    assert (got[2]["cost"]["input_tokens"], got[2]["cost"]["output_tokens"]) == (1, 1)  # as the server reports


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_a_rate_limit_is_waited_for(index: GraphIndex, asynchronous: bool) -> None:
    limited = RateLimit(retry_after=0.01)
    with OpenAIServer(limited, Reply(PATTERN), limited, limited, Reply(ANSWER)) as server:
        llm = client(server)
        workflow = build_workflow(
            SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(llm)), llm, retry=QUICK
        )
        given = {"question": QUESTION}
        got = await workflow.ainvoke(given) if asynchronous else workflow.invoke(given)
        assert got["answer"] == "Audrey Tautou"
        assert got["cost"]["llm_calls"] == len(server.requests) == 5
    with OpenAIServer(*[limited] * 3) as server:
        llm = client(server)
        workflow = build_workflow(
            SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(llm)), llm, retry=QUICK
        )
        with pytest.raises(openai.RateLimitError):
            await workflow.ainvoke(given) if asynchronous else workflow.invoke(given)
        assert len(server.requests) == 3


@pytest.mark.parametrize("what", ["retriever", "chain", "workflow"])
async def test_a_cancelled_call_ends_the_request(index: GraphIndex, what: str) -> None:
    with OpenAIServer(Hang()) as server:
        retriever = SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(client(server)))
        running = {
            "retriever": lambda: retriever.ainvoke(QUESTION),
            "chain": lambda: cited_answer_chain(retriever, client(server)).ainvoke(QUESTION),
            "workflow": lambda: build_workflow(retriever, client(server)).ainvoke({"question": QUESTION}),
        }
        task = asyncio.ensure_future(running[what]())
        assert await asyncio.to_thread(server.hanging.wait, 60)
        assert not server.abandoned.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.abandoned.wait, 60)
        assert len(server.requests) == 1
