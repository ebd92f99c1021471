"""Sessions over HTTP: an idle one makes room for another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from web_server import WebServer

from kg_retrievers import GraphIndex
from kg_retrievers.serving.access import Access
from kg_retrievers.serving.mcp import server
from kg_retrievers.serving.service import GraphService

MOST = 3
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def address(index: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(server, "MOST_SESSIONS", MOST)
    with WebServer(server.http_app(GraphService(index), Access())) as running:
        yield f"{running.address}mcp"


def post(address: str, method: str, session: str | None = None, **params: Any) -> httpx.Response:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = HEADERS if session is None else {**HEADERS, "mcp-session-id": session}
    return httpx.post(address, json=request, headers=headers, timeout=60)


def opened(address: str) -> str:
    reply = post(address, "initialize", **CLIENT)
    assert reply.status_code == 200, reply.text
    return str(reply.headers["mcp-session-id"])


def test_the_session_that_has_asked_nothing_for_longest_makes_room(address: str) -> None:
    first, second, third = (opened(address) for _ in range(MOST))
    assert post(address, "ping", first).status_code == 200
    fourth = opened(address)
    assert [post(address, "ping", one).status_code for one in (first, second, third, fourth)] == [200, 404, 200, 200]
    for _ in range(20):
        opened(address)
    assert post(address, "ping", opened(address)).status_code == 200


def test_a_session_that_ended_itself_leaves_room(address: str) -> None:
    first, second, _ = (opened(address) for _ in range(MOST))
    assert httpx.delete(address, headers={**HEADERS, "mcp-session-id": second}).status_code == 200
    opened(address)
    assert post(address, "ping", first).status_code == 200


def test_a_session_with_a_request_under_way_stays(index: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, call = threading.Event(), threading.Event(), server.GraphServer.call_tool

    async def slow(self: server.GraphServer, *arguments: Any) -> Any:
        begun.set()
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return await call(self, *arguments)

    monkeypatch.setattr(server, "MOST_SESSIONS", MOST)
    monkeypatch.setattr(server.GraphServer, "call_tool", slow)
    with ThreadPoolExecutor(2) as pool, WebServer(server.http_app(GraphService(index), Access())) as running:
        place = f"{running.address}mcp"
        busy, ended = opened(place), opened(place)
        arguments = {"question": "Who directed Her?"}
        reply = pool.submit(post, place, "tools/call", busy, name="ask", arguments=arguments)
        assert begun.wait(60)
        begun.clear()
        pool.submit(post, place, "tools/call", ended, name="ask", arguments=arguments)
        assert begun.wait(60)
        assert httpx.delete(place, headers={**HEADERS, "mcp-session-id": ended}).status_code == 200
        for _ in range(2 * MOST):
            opened(place)
        go_on.set()
        assert "Spike Jonze" in reply.result(60).text
        first, _, _ = (opened(place) for _ in range(MOST))
        assert post(place, "ping", first).status_code == 200, "the one that ended itself takes no room"


def test_sessions_that_timed_out_take_no_room(index: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_SESSIONS", MOST)
    monkeypatch.setattr(server, "IDLE_SECONDS", 3.0)
    with WebServer(server.http_app(GraphService(index), Access())) as running:
        place = f"{running.address}mcp"
        listening, *others = (opened(place) for _ in range(MOST))
        with httpx.stream("GET", place, headers={**HEADERS, "mcp-session-id": listening}, timeout=60):
            time.sleep(4)
            opened(place)
            assert [post(place, "ping", one).status_code for one in (listening, *others)] == [200, 404, 404]
