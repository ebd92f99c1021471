"""Calls of language models: each ends at the deadline, and no secret and no untyped error comes out."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from misbehaving import ENDLESS_REPLY, ENDLESS_STREAM, Conduct, MisbehavingServer, cut, http, say_nothing, send
from openai import APIConnectionError

from kg_retrievers import Budget, GraphIndex, LLMPatternGenerator, SimGRAGRetriever, build_workflow
from kg_retrievers.core.structured_replies import guarded
from kg_retrievers.errors import KGRetrieversError, ModelCallError
from kg_retrievers.testing import ScriptedChatModel

QUESTION = {"question": "Who starred in Amélie?"}
KEY = "a-key-that-nobody-may-see"
#: In seconds: a budget, and how much later a busy machine may end it. Each fault lasts a minute.
LIMIT, LATE = 1.5, 20.0
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def client(server: MisbehavingServer, **options: Any) -> ChatOpenAI:
    settings: dict[str, Any] = {"base_url": f"http://127.0.0.1:{server.port}/v1", "max_retries": 0, "timeout": 60}
    return ChatOpenAI(model="m", **settings | options)


def by_model(index: GraphIndex, llm: BaseChatModel) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(llm))


def completion(**changes: Any) -> bytes:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": {"role": "assistant", "content": "words"}, "finish_reason": "stop"}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(reply | changes).encode()


def sleeper(seconds: float) -> ScriptedChatModel:
    """Return a model without an async side, whose call cannot be cancelled."""

    def reply(prompt: str) -> str:
        time.sleep(seconds)
        return "late"

    return ScriptedChatModel(replies=reply)


# --- deadlines --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("conduct", [ENDLESS_REPLY, ENDLESS_STREAM, say_nothing], ids=["reply", "stream", "silence"])
async def test_a_run_ends_at_its_budget(
    index: GraphIndex, conduct: Conduct, streaming: bool, asynchronous: bool
) -> None:
    with MisbehavingServer(cut) as server:  # the first call loads modules, which may take longer than the budget
        workflow = build_workflow(by_model(index, client(server, streaming=streaming)))
        with suppress(APIConnectionError):
            await workflow.ainvoke(QUESTION) if asynchronous else workflow.invoke(QUESTION)
    with MisbehavingServer(conduct) as server:
        workflow = build_workflow(by_model(index, client(server, streaming=streaming)), budget=Budget(seconds=LIMIT))
        began = time.monotonic()
        got = await workflow.ainvoke(QUESTION) if asynchronous else workflow.invoke(QUESTION)
        assert time.monotonic() - began < LIMIT + LATE
        assert got["stopped"] == f"the budget of {LIMIT} seconds is used up."
        assert got["cost"]["llm_calls"] == 1
        assert got["cost"]["input_tokens"] > 0
        assert server.reached.wait(LATE)
        if asynchronous or (streaming and conduct is ENDLESS_STREAM):  # what can be cancelled is
            assert server.abandoned.wait(30)


@pytest.mark.heavy
def test_a_call_that_cannot_be_cancelled_holds_up_nothing() -> None:
    """Neither the caller nor the end of the process, in sync and in async."""
    code = f"""
import asyncio, sys, time
sys.path[:0] = {[*sys.path]!r}
from kg_retrievers import Budget, GraphIndex, HashedEmbeddings, SimGRAGRetriever, build_workflow
from kg_retrievers.testing import tiny_graph
from test_model_calls import sleeper
retriever = SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()))
workflow = build_workflow(retriever, sleeper(600), budget=Budget(seconds=0.5))
print(workflow.invoke({QUESTION!r})["stopped"])
print(asyncio.run(workflow.ainvoke({QUESTION!r}))["stopped"])
"""
    folder = __file__.rpartition("/")[0]
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=folder, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["the budget of 0.5 seconds is used up."] * 2


def test_nothing_is_asked_after_the_deadline(index: GraphIndex) -> None:
    """The thread that was left alone goes on with an unreadable reply, and does not ask for another one."""
    model = sleeper(0.6)
    workflow = build_workflow(by_model(index, model), budget=Budget(seconds=0.3))
    assert workflow.invoke(QUESTION)["stopped"]
    while any(thread.name == "kg_retrievers-foreign" for thread in threading.enumerate()):
        time.sleep(0.02)
    assert len(model.prompts) == 1


# --- errors -----------------------------------------------------------------------------------------------------------

NO_COMPLETIONS: dict[str, bytes] = {
    "html": http(b"<html>not JSON</html>"),
    "html as html": http(b"<html>", kind="text/html"),
    "a list": http(b"[]"),
    "null": http(b"null"),
    "no choices": http(completion(choices=[])),
    "choices are null": http(completion(choices=None)),
    "choices are a text": http(completion(choices="words")),
    "a choice is null": http(completion(choices=[None])),
    "no message": http(completion(choices=[{"index": 0}])),
    "content is a number": http(completion(choices=[{"message": {"role": "assistant", "content": 3}}])),
    "usage is a text": http(completion(usage="many")),
    "usage of texts": http(completion(usage={"prompt_tokens": "many", "completion_tokens": "x"})),
    "usage of null": http(completion(usage={"prompt_tokens": None, "completion_tokens": None})),
    "usage is negative": http(completion(usage={"prompt_tokens": -1, "completion_tokens": -7})),
    "usage is huge": http(completion(usage={"prompt_tokens": 10**400, "completion_tokens": 1})),
    "usage is not a number": http(completion().replace(b'"prompt_tokens": 1', b'"prompt_tokens": NaN')),
    "a lone surrogate": http(completion(choices=[{"message": {"role": "assistant", "content": "\ud800 {"}}])),
    "bad UTF-8": http(b'{"choices": "\xff\xfe"}'),
    "deeply nested": http(b"[" * 50_000),
    "cut in the middle": http(completion())[:-20],
    "not HTTP": b"220 this is no HTTP\r\n",
}


@both
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(reply, id=name, marks=() if number % 7 == 0 else pytest.mark.heavy)
        for number, (name, reply) in enumerate(NO_COMPLETIONS.items())
    ],
)
async def test_what_is_no_completion_is_a_typed_error(index: GraphIndex, reply: bytes, asynchronous: bool) -> None:
    with MisbehavingServer(send(reply)) as server:
        workflow = build_workflow(by_model(index, client(server)), retry=None)
        try:
            output = await workflow.ainvoke(QUESTION) if asynchronous else workflow.invoke(QUESTION)
        except (KGRetrieversError, openai.OpenAIError):
            return
    assert "The reply was: " in output["reason"]  # the client took it for one


@pytest.mark.parametrize(
    "cause", [KeyError("choices"), TypeError("no"), IndexError(), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "")]
)
def test_errors_of_python_are_typed_and_keep_their_cause(cause: Exception) -> None:
    def fail(_: object) -> str:
        raise cause

    with pytest.raises(ModelCallError, match=type(cause).__name__) as caught:
        guarded(RunnableLambda(fail)).invoke("Who?")
    assert caught.value.__cause__ is cause


ECHOES: dict[str, Callable[[str], bytes]] = {
    "401": lambda key: http(json.dumps({"error": {"message": f"Wrong key {key}.", "code": key}}).encode(), "401 No"),
    "500": lambda key: http(f"Authorization: Bearer {key}".encode(), "500 Oh", "text/plain"),
    "200": lambda key: http(completion(choices=key)),
}


@both
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("whose", ["pattern", "answer"])
async def test_a_key_that_a_server_repeats_stands_nowhere(
    index: GraphIndex, echo: Callable[[str], bytes], whose: str, asynchronous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    memory, config = InMemorySaver(), RunnableConfig(configurable={"thread_id": "1"})
    with MisbehavingServer(send(echo(KEY))) as server:
        llm, plain = client(server), SimGRAGRetriever.from_index(index)
        parts = (by_model(index, llm),) if whose == "pattern" else (plain, llm)
        workflow = build_workflow(*parts, checkpointer=memory, retry=None)
        with pytest.raises((KGRetrieversError, openai.OpenAIError)) as caught:
            _ = await workflow.ainvoke(QUESTION, config) if asynchronous else workflow.invoke(QUESTION, config)
    error = caught.value
    shown = [str(error), repr(error), *traceback.format_exception(error), repr(vars(error).get("body")), caplog.text]
    assert not [text for text in shown if KEY in text]
    assert KEY not in repr(memory.storage) + repr(memory.writes) + repr(memory.blobs)
    if isinstance(error, KGRetrieversError):
        assert KEY.encode() not in pickle.dumps(error)


async def test_a_cancelled_task_cancels_its_request(index: GraphIndex) -> None:
    with MisbehavingServer(say_nothing) as server:
        workflow = build_workflow(by_model(index, client(server)), budget=Budget(seconds=60))
        task = asyncio.ensure_future(workflow.ainvoke(QUESTION))
        assert await asyncio.to_thread(server.reached.wait, 10)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.abandoned.wait, 10)
