"""The whole server over real sockets: streams, clients that leave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from web_server import WebServer

from kg_retrievers import GraphIndex
from kg_retrievers.agents import Workflow, build_workflow
from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import BudgetError
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.app import make_app
from kg_retrievers.serving.web.requests import Ask
from kg_retrievers.serving.web.stages import tell_stages
from kg_retrievers.serving.workers import Workers

BODY = {"question": "Who directed Her?", "method": "rog"}


class Gate(threading.Event):
    """Keeps a stage under way until it is opened, or until nobody waits for the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.left = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        while not self.wait(0.01):
            try:
                check_deadline()
            except BudgetError:
                self.left.set()
                raise


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate before the second stage."""
    from kg_retrievers.methods.rog.retriever import RelationPathRetriever

    gate, follow = Gate(), RelationPathRetriever._follow_relation_paths

    def gated(self: Any, state: Any) -> Any:
        gate.pass_through()
        return follow(self, state)

    monkeypatch.setattr(RelationPathRetriever, "_follow_relation_paths", gated)
    return gate


@pytest.fixture
def server(index: GraphIndex) -> Iterator[WebServer]:
    with WebServer(make_app(GraphService(index), workers=Workers(threads=1, waiting=8))) as running:
        yield running


def test_stages_are_sent_as_they_end_while_others_are_answered(server: WebServer, gate: Gate) -> None:
    with httpx.stream("POST", server.address + "api/ask", json=BODY, timeout=60) as response:
        lines = response.iter_lines()
        names = [json.loads(next(lines)).get("name") for _ in range(3)]
        assert names == [None, "link_entities", "propose_relation_paths"]
        assert gate.reached.wait(30)
        assert httpx.get(server.address + "healthz", timeout=30).json()["status"] == "ok"  # others are answered
        gate.set()
        assert json.loads([*lines][-1])["answers"] == ["Spike Jonze"]


def test_what_a_client_who_leaves_has_asked_is_stopped(server: WebServer, gate: Gate) -> None:
    with httpx.stream("POST", server.address + "api/ask", json=BODY, timeout=60) as response:
        lines = response.iter_lines()
        next(lines)
        assert gate.reached.wait(30)
    assert gate.left.wait(30)
    gate.set()
    assert httpx.post(server.address + "api/ask", json=BODY, timeout=60).status_code == 200  # the thread is free again


def test_the_run_of_a_client_who_leaves_is_closed_at_once(index: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow, closed, stream = build_workflow(GraphService(index).retriever()), list[bool](), Workflow.stream

    def watched(self: Workflow, *arguments: Any, **more: Any) -> Iterator[Any]:
        try:
            yield from stream(self, *arguments, **more)
        finally:
            closed.append(True)

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "stage":
            raise BudgetError("nobody waits for this call any longer.")

    monkeypatch.setattr(Workflow, "stream", watched)
    with pytest.raises(BudgetError):
        tell_stages(workflow, Ask(question="Who directed Her?"), tell)
    assert closed == [True]


def test_clients_that_do_not_read_cost_nobody_an_answer(index: GraphIndex) -> None:
    asked = {"question": "Who directed Her?"}
    body = json.dumps(asked).encode()
    with WebServer(make_app(GraphService(index), workers=Workers(waiting=200))) as running, ExitStack() as left_open:
        head = f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        for _ in range(100):
            client = left_open.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            client.connect(("127.0.0.1", running.port))
            client.sendall(head.encode() + body)
        answer = httpx.post(running.address + "api/ask", json=asked, timeout=120)
        assert json.loads(answer.text.splitlines()[-1])["answers"] == ["Spike Jonze"]


@pytest.mark.heavy
def test_many_clients_get_what_one_gets(index: GraphIndex) -> None:
    questions = ["Who directed Her?", "Which films did Christopher Nolan direct?", "Where is Paris?"]
    with WebServer(make_app(GraphService(index))) as running:

        def answer(question: str) -> dict[str, Any]:
            response = httpx.post(running.address + "api/ask", json={"question": question}, timeout=120)
            told: dict[str, Any] = json.loads(response.text.splitlines()[-1])
            return {key: value for key, value in told.items() if key != "cost"}

        alone = [answer(question) for question in questions]
        with ThreadPoolExecutor(12) as pool:
            assert [*pool.map(answer, questions * 12)] == alone * 12


def test_a_language_model_answers_with_citations(index: GraphIndex) -> None:
    reply = '{"answer": "Spike Jonze", "answers": ["Spike Jonze"], "explanation": "He did.", "citations": [1, 999]}'
    llm = GenericFakeChatModel(messages=iter([AIMessage(reply)] * 4))
    with WebServer(make_app(GraphService(index, llm=llm))) as running:
        response = httpx.post(running.address + "api/ask", json={"question": "Who directed Her?"}, timeout=60)
    told = json.loads(response.text.splitlines()[-1])
    assert (told["answers"], told["rejected_citations"], told["cost"]["llm_calls"]) == (["Spike Jonze"], 1, 2)
    assert [citation["text"] for citation in told["citations"]] == ["Her -> directed by -> Spike Jonze"]
