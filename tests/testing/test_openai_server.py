"""The loopback server behaves as the real `openai` client expects."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI
from openai_server import Delay, Garbage, OpenAIServer, RateLimit, Reply, ServerError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a proxy of the environment away from loopback."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def client(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    """Return a real client of the server."""
    settings: dict[str, Any] = {"model": "scripted", "base_url": server.base_url, "api_key": "test", "max_retries": 0}
    return ChatOpenAI(**settings | options)


def test_replies_in_order_and_records_requests() -> None:
    with OpenAIServer(Reply("first"), Reply("zweite Ü")) as server:
        llm = client(server, temperature=0)
        assert llm.invoke("one").text == "first"
        assert asyncio.run(llm.ainvoke("two")).text == "zweite Ü"
    assert [request["messages"] for request in server.requests] == [
        [{"role": "user", "content": "one"}],
        [{"role": "user", "content": "two"}],
    ]
    assert server.requests[0]["model"] == "scripted"


@pytest.mark.parametrize("refusal", [RateLimit(retry_after=0.01), ServerError()], ids=["rate limit", "server error"])
def test_client_tries_again_after_refusal(refusal: RateLimit | ServerError) -> None:
    with OpenAIServer(refusal, Reply("at last")) as server:
        assert client(server, max_retries=1).invoke("?").text == "at last"
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("refusal", "error"),
    [(RateLimit(), openai.RateLimitError), (ServerError(), openai.InternalServerError)],
    ids=["rate limit", "server error"],
)
def test_refusal_raises_without_retries(refusal: RateLimit | ServerError, error: type[Exception]) -> None:
    with OpenAIServer(refusal) as server, pytest.raises(error):
        client(server).invoke("?")


def test_delay_is_a_timeout() -> None:
    with OpenAIServer(Delay(30, "too late")) as server, pytest.raises(openai.APITimeoutError):
        client(server, timeout=0.1).invoke("?")


def test_short_delay_is_waited_for() -> None:
    with OpenAIServer(Delay(0.01, "late")) as server:
        assert client(server, timeout=10).invoke("?").text == "late"


def test_garbage_raises() -> None:
    with OpenAIServer(Garbage()) as server, pytest.raises((ValueError, openai.OpenAIError)):
        client(server).invoke("?")


def test_streams_by_words() -> None:
    with OpenAIServer(Reply("one two  three")) as server:
        parts = [chunk.text for chunk in client(server).stream("?")]
    assert "".join(parts) == "one two  three"
    assert len([part for part in parts if part]) >= 3
    assert server.requests[0]["stream"] is True


def test_beyond_the_script_and_elsewhere() -> None:
    with OpenAIServer() as server:
        with pytest.raises(openai.BadRequestError, match="request 1, but the script has 0"):
            client(server).invoke("?")
        with pytest.raises(openai.NotFoundError):
            openai.OpenAI(base_url=server.base_url, api_key="test").embeddings.create(model="m", input="text")


def test_concurrent_requests_get_one_behaviour_each() -> None:
    with OpenAIServer(*[Reply(str(number)) for number in range(8)]) as server:
        replies = client(server).batch(["?"] * 8)
    assert sorted(reply.text for reply in replies) == list("01234567")
