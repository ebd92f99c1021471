"""Connections that say nothing, over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from web_server import WebServer

from kg_retrievers.serving import listening as connections


@pytest.fixture
def server() -> Iterator[WebServer]:
    async def answer(request: object) -> PlainTextResponse:
        return PlainTextResponse("yes")

    with WebServer(Starlette(routes=[Route("/", answer)])) as running:
        yield running


def connect(server: WebServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def is_ended(connection: socket.socket) -> bool:
    """Whether the server ends a connection without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def is_ended_while_sending(connection: socket.socket) -> bool:
    """Whether the server ends a connection to which something is sent all the time."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            connection.sendall(b"a")
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_many_that_say_nothing_hold_up_nobody(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_SILENT", 20)
    with ExitStack() as stack:
        for number in range(200):
            stack.enter_context(connect(server))
            if number % 40 == 0:
                assert httpx.get(server.address, timeout=20).text == "yes"
        assert httpx.get(server.address, timeout=20).text == "yes"
        assert len(server.server.server_state.connections) <= 30


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_head_that_does_not_come_ends_the_connection(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    with connect(server) as silent:
        silent.sendall(begun)
        assert is_ended(silent)


def test_a_head_in_small_pieces_has_no_more_time(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with connect(server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert is_ended_while_sending(slow)


def test_a_connection_that_asks_again_stays(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with connect(server) as used:
        for _ in range(3):
            used.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert used.recv(4096).startswith(b"HTTP/1.1 200")
            time.sleep(0.2)


def test_a_head_that_is_too_long_is_refused(server: WebServer) -> None:
    with connect(server) as long:
        long.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * (2 * connections.HEAD_BYTES))
        assert long.recv(4096).startswith(b"HTTP/1.1 400")
