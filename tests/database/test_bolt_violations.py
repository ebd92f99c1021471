"""Servers on loopback that break the protocol Bolt, or never end: a typed error each, in time, without secrets."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from bolt_stub import (
    FAILURE,
    HELLO,
    LOGON,
    PULL,
    RECORD,
    RUN,
    SUCCESS,
    Structure,
    chunked,
    message,
    pack,
    read,
    receive,
)
from misbehaving import Conduct, MisbehavingServer, cut, http, say_nothing, send

from kg_retrievers import Budget, CypherRetriever, GraphIndex, HashedEmbeddings, build_workflow
from kg_retrievers.database.neo4j import Neo4jExecutor
from kg_retrievers.errors import DatabaseError, DatabaseTimeoutError, InvalidArgumentError
from kg_retrievers.testing import tiny_graph

PASSWORD = "a-password-that-nobody-may-see"
#: In seconds: a budget, and how much later a busy machine may end it. Each fault lasts a minute.
TIMEOUT, LATE = 0.5, 20.0
HELLO_SUCCESS = {"server": "Neo4j/5.26.0", "connection_id": "bolt-1", "hints": {}}

#: What a server sends for a request, by its tag; a function is called with the socket, to send as it likes.
Answers = Mapping[int, bytes | Callable[[socket.socket, threading.Event], None]]


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_USERNAME", "reader")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)


def bolt(answers: Answers, version: bytes = bytes([0, 0, 4, 5])) -> Conduct:
    """Speak Bolt, but for the requests that are answered as is said here."""
    well = {HELLO: message(SUCCESS, HELLO_SUCCESS), RUN: message(SUCCESS, {"fields": ["x"]})}
    well |= {PULL: message(RECORD, [1]) + message(SUCCESS, {"type": "r"})}
    replies = {**well, **answers}

    def conduct(connection: socket.socket, stopped: threading.Event) -> None:
        read(connection, 20)
        connection.sendall(version)
        while True:
            tag, _ = receive(connection)
            answer = replies.get(tag, message(SUCCESS, {}))
            if callable(answer):
                answer(connection, stopped)
            else:
                connection.sendall(answer)

    return conduct


def repeat(part: bytes, pause: float = 0.1) -> Callable[[socket.socket, threading.Event], None]:
    """Send a part after each pause, without end."""

    def answer(connection: socket.socket, stopped: threading.Event) -> None:
        while not stopped.wait(pause):
            connection.sendall(part)

    return answer


VIOLATIONS: dict[str, Conduct] = {
    "another protocol": send(http(b"<html>")),
    "no common version": bolt({}, bytes(4)),
    "a version that was not offered": bolt({}, bytes([0, 0, 0, 99])),
    "a version of two bytes": bolt({}, b"\0\0"),
    "closed": cut,
    "garbage for the greeting": bolt({HELLO: b"\xff" * 64}),
    "a greeting that is a list": bolt({HELLO: message(SUCCESS, ["server"])}),
    "a greeting without fields": bolt({HELLO: message(SUCCESS)}),
    "an unknown message": bolt({RUN: message(0x33, {})}),
    "no message": bolt({RUN: chunked(pack("words"))}),
    "an empty structure": bolt({RUN: chunked(b"\xb0")}),
    "columns that are a number": bolt({RUN: message(SUCCESS, {"fields": 7})}),
    "no columns": bolt({RUN: message(SUCCESS, {})}),
    "a row that is a number": bolt({PULL: message(RECORD, 7) + message(SUCCESS, {})}),
    "a text that is cut": bolt({PULL: chunked(b"\xb1\x71\x91\xd0\xff" + b"abc")}),
    "a text of 4 GB": bolt({PULL: chunked(b"\xb1\x71\x91\xd2\xff\xff\xff\xff" + b"abc")}),
    "a text that is no UTF-8": bolt({PULL: chunked(b"\xb1\x71\x91\x82\xff\xfe")}),
    "an unknown mark": bolt({PULL: chunked(b"\xb1\x71\x91\xc7")}),
    "lists without end": bolt({PULL: chunked(b"\xb1\x71" + b"\x91" * 60_000)}),
    "a node without fields": bolt({PULL: message(RECORD, [Structure(ord("N"), ())]) + message(SUCCESS, {})}),
    "a node of numbers": bolt({PULL: message(RECORD, [Structure(ord("N"), (1, 2, 3, 4))]) + message(SUCCESS, {})}),
    "an unknown structure": bolt({PULL: message(RECORD, [Structure(0x77, (1,))]) + message(SUCCESS, {})}),
    "a summary that is a text": bolt({PULL: message(SUCCESS, "done")}),
    "a failure without a code": bolt({RUN: message(FAILURE, {})}),
    "a failure that is a list": bolt({RUN: message(FAILURE, [1])}),
    "a failure of numbers": bolt({RUN: message(FAILURE, {"code": 1, "message": 2})}),
}


def executor(server: MisbehavingServer, **options: Any) -> Neo4jExecutor:
    return Neo4jExecutor(f"bolt://127.0.0.1:{server.port}", key="name", explain=False, **options)


ENDLESS: dict[str, Conduct] = {
    "silence": say_nothing,
    "the greeting drips": bolt({HELLO: repeat(b"\0\0")}),
    "the login drips": bolt({LOGON: repeat(b"\0\0")}),
    "signs of life for a query": bolt({RUN: repeat(b"\0\0")}),
    "one byte at a time": bolt({RUN: repeat(b"\1")}),
    "rows without end": bolt({PULL: repeat(message(RECORD, [1]))}),
}


@pytest.mark.parametrize(
    "conduct",
    [
        pytest.param(conduct, id=name, marks=[pytest.mark.heavy] if name in ENDLESS or number % 3 else [])
        for number, (name, conduct) in enumerate((VIOLATIONS | ENDLESS).items())
    ],
)
def test_a_violation_is_a_typed_error_in_time(conduct: Conduct) -> None:
    with MisbehavingServer(conduct) as server, executor(server) as database:
        began = time.monotonic()
        with pytest.raises(DatabaseError) as caught:
            database.run("MATCH (n) RETURN n.name AS x", timeout=TIMEOUT)
        assert time.monotonic() - began < TIMEOUT + LATE
        assert caught.value.__cause__ is not None or isinstance(caught.value, DatabaseTimeoutError)


@pytest.mark.parametrize("asynchronous", [pytest.param(False, marks=pytest.mark.heavy), True], ids=["sync", "async"])
async def test_a_run_ends_at_its_budget_and_cancels_the_query(asynchronous: bool) -> None:
    index = GraphIndex.build(tiny_graph(), HashedEmbeddings())
    with MisbehavingServer(bolt({RUN: say_nothing})) as server, executor(server) as database:
        retriever = CypherRetriever.from_index(index, executor=database)
        workflow = build_workflow(retriever, budget=Budget(seconds=TIMEOUT))
        question = {"question": "Who starred in Amélie?"}
        while not server.abandoned.is_set():  # until everything is compiled, and the query is sent in time
            workflow.invoke(question)
        server.abandoned.clear()
        began = time.monotonic()
        got = await workflow.ainvoke(question) if asynchronous else workflow.invoke(question)
        assert time.monotonic() - began < TIMEOUT + LATE
        assert "seconds is used up" in got["stopped"]
        assert await asyncio.to_thread(server.abandoned.wait, 30)


def test_a_password_that_a_server_repeats_stands_nowhere() -> None:
    said = f"The password={PASSWORD} of bolt://reader:{PASSWORD}@host is wrong, and so is {PASSWORD}."
    for code in ("Neo.ClientError.Security.Unauthorized", "Neo.ClientError.Statement.SyntaxError", "Neo.X", "no code"):
        failing = bolt({RUN: message(FAILURE, {"code": code, "message": said})})
        with MisbehavingServer(failing) as server, executor(server) as database:
            with pytest.raises(DatabaseError) as caught:
                database.run("MATCH (n) RETURN n.name AS x", timeout=5)
            shown = [str(caught.value), repr(vars(caught.value)), *traceback.format_exception(caught.value)]
            assert not [text for text in shown if PASSWORD in text]
            assert PASSWORD.encode() not in pickle.dumps(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "neo4j://localhost:7687?region=x&Password=hunter22",
        "bolt://localhost?pass%77ord=hunter22",
        "bolt://me:hunter22@localhost:7687",
        "bolt://localhost:7687?region=hunter22",
        "ftp://localhost/x?pw=hunter22",
        *("localhost:7687", "bolt://", "bolt://x:port", "", "ftp://localhost:7474"),
    ],
)
def test_an_address_with_a_password_is_not_repeated(uri: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Neo4jExecutor(uri)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter22" not in shown or "region=hunter22" in uri
