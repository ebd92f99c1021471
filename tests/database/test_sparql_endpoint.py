"""What a SPARQL endpoint may do wrong: each ends in a typed error, in time, and is tried again where that is safe."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest
from loopback import LoopbackServer

from kg_retrievers.database.sparql.endpoint import PIECE
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.database.sparql.schema import SAMPLE
from kg_retrievers.database.sparql.terms import Iri, Text, values
from kg_retrievers.errors import (
    DatabaseLoginError,
    DatabaseMemoryError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    KGRetrieversError,
)

ROWS = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}}
JSON = {"Content-Type": "application/sparql-results+json"}
QUERY = "SELECT ?x WHERE { ?x ?p ?o }"

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the next of the answers of its server says."""

    protocol_version = "HTTP/1.1"
    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        owner: Scripted = self.server.owner
        owner.requests.append((self.path, dict(self.headers), parse_qs(body)["query"][0]))
        owner.times.append(time.monotonic())
        owner.answers[min(len(owner.requests), len(owner.answers)) - 1](self)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Scripted(LoopbackServer):
    """An endpoint whose answers are given; the last one is given again and again."""

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(Handler)
        self.answers = answers
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.times: list[float] = []


def good(handler: Handler) -> None:
    handler.reply(200, JSON, json.dumps(ROWS).encode())


def status(code: int, body: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.reply(code, named, body.encode())


def body(text: str | bytes, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.reply(200, JSON | named, text.encode() if isinstance(text, str) else text)


def reset(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def broken_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", JSON["Content-Type"])
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"head"')
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def slow(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", JSON["Content-Type"])
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.owner.stopped.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def silent(handler: Handler) -> None:
    handler.server.owner.stopped.wait(20)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.database.sparql.endpoint.FIRST_WAIT", 0.01)
    for name in ("SPARQL_USERNAME", "SPARQL_PASSWORD", "SPARQL_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def ask(*answers: Answer, timeout: float = 20.0, **options: Any) -> tuple[Any, Scripted]:
    """Run a query at an endpoint that answers so; the rows or the error, and the endpoint."""
    with (
        Scripted(list(answers)) as server,
        SparqlExecutor(f"http://127.0.0.1:{server.port}/query", **options) as executor,
        executor._within(timeout, "run"),
    ):
        try:
            return executor._ask(QUERY), server  # what a row holds needs no schema here
        except KGRetrieversError as error:
            return error, server


@pytest.mark.parametrize("failure", [*map(status, (429, 502, 503, 504)), reset, broken_off])
def test_a_request_is_sent_again(failure: Answer) -> None:
    found, server = ask(failure, failure, good)
    assert found.rows[0][0].value == "urn:a"
    assert len(server.requests) == 3
    error, server = ask(failure)
    assert isinstance(error, DatabaseUnavailableError)
    assert "cannot answer now" in str(error)
    assert len(server.requests) == 4


@pytest.mark.heavy
def test_the_endpoint_says_when_to_ask_again() -> None:
    found, server = ask(status(429, Retry_After="1"), good)
    assert found.rows
    assert server.times[1] - server.times[0] >= 1
    error, server = ask(status(503, Retry_After="3600"), timeout=5.0)
    assert isinstance(error, DatabaseUnavailableError)
    assert "asks to wait 3600 s" in str(error)
    assert len(server.requests) == 1
    assert ask(status(503, Retry_After="soon"), good)[0].rows


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(401), DatabaseLoginError, "SPARQL_TOKEN"),
        (status(400, "no such thing"), DatabaseQueryError, "no such thing"),
        (status(500, "it broke"), DatabaseQueryError, "it broke"),
        (status(500, "Query timed out"), DatabaseTimeoutError, "its own limit"),
        (status(408), DatabaseTimeoutError, "its own limit"),
        (status(404), DatabaseUnavailableError, "HTTP status 404"),
        (status(200, "<html>", Content_Type="text/html"), DatabaseUnavailableError, "of the type 'text/html'"),
        (status(302, Location="http://example.org/"), DatabaseUnavailableError, "redirects to"),
        (status(308, Location="/query"), DatabaseUnavailableError, "Give that address"),
        (body('{"head":{"vars":["n"]},"results":{"bindings":['), DatabaseTimeoutError, "in the middle"),
        (body("[" * 100_000), DatabaseUnavailableError, "no JSON"),
        (body("no"), DatabaseUnavailableError, "no JSON"),
        (body("{}"), DatabaseUnavailableError, "another form"),
        (body(json.dumps(ROWS).replace("uri", "url")), DatabaseUnavailableError, "another form"),
        (body(json.dumps(ROWS).replace('"urn:a"', "3")), DatabaseUnavailableError, "another form"),
        (body('{"results": [ java.util.concurrent.TimeoutException'), DatabaseTimeoutError, "its own limit"),
        (body(json.dumps(ROWS), X_SQL_State="S1TAT"), DatabaseTimeoutError, "before it was complete"),
        (body(b"\x1f\x8bnothing", Content_Encoding="gzip"), DatabaseUnavailableError, "no gzip"),
        (body(b"", Content_Encoding="gzip, gzip"), DatabaseUnavailableError, "compressed by 'gzip, gzip'"),
        (body('{"boolean": true}'), DatabaseUnavailableError, "another form"),
        (body('{"head":{"vars":["y"]},"results":{"bindings":[]}}'), DatabaseUnavailableError, "no column x"),
        (body(json.dumps(ROWS).replace('"uri"', '"literal","datatype":1')), DatabaseUnavailableError, "another form"),
    ],
)
def test_what_is_wrong_is_told(answer: Answer, kind: type[KGRetrieversError], words: str) -> None:
    error, server = ask(answer)
    assert type(error) is kind
    assert words in str(error)
    assert len(server.requests) <= 4


def test_an_answer_that_is_too_large() -> None:
    error, _ = ask(body(json.dumps(ROWS) + " " * 2000), max_bytes=1000)
    assert isinstance(error, DatabaseMemoryError)
    assert "more than 1,000 bytes" in str(error)
    assert ask(good, max_bytes=1000)[0].rows


def test_a_compressed_answer() -> None:
    assert ask(body(gzip.compress(json.dumps(ROWS).encode()), Content_Encoding="gzip"))[0].rows
    huge = gzip.compress(b" " * (PIECE << 5))
    tracemalloc.start()
    error, _ = ask(body(huge, Content_Encoding="gzip"), max_bytes=PIECE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(error, DatabaseMemoryError)
    assert peak < PIECE << 4


def test_what_no_query_can_hold() -> None:
    """An IRI or a language that some engines store, and that would end what is written into the next query."""
    odd = [Iri("urn:a> } #"), Iri("a"), Text("a", "@en } #"), Text("a", "urn:a> } #")]
    assert values("?x", [*odd, Iri("urn:a"), Text("a", "@en-GB")]) == 'VALUES ?x { <urn:a> "a"@en-GB }'


def test_a_number_that_is_too_long() -> None:
    with (
        Scripted([good]) as server,
        SparqlExecutor(f"http://127.0.0.1:{server.port}/") as executor,
        pytest.raises(InvalidArgumentError, match="at most 100 digits"),
    ):
        executor.run("SELECT ?x { ?x ?p $n }", {"n": 10**5000})


def test_a_count_that_is_none() -> None:
    answer = {"head": {"vars": ["triples"]}, "results": {"bindings": []}}
    with (
        Scripted([body(json.dumps(answer))]) as server,
        SparqlExecutor(f"http://127.0.0.1:{server.port}/") as executor,
        pytest.raises(DatabaseUnavailableError, match="no number"),
    ):
        executor.read_graph(10)


@pytest.mark.heavy
def test_an_endpoint_that_drips_while_it_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.database.sparql.schema.LISTING_TIMEOUT", 0.1)
    monkeypatch.setattr("kg_retrievers.database.sparql.executor.SCHEMA_TIMEOUT", 1.0)
    with Scripted([slow]) as server, SparqlExecutor(f"http://127.0.0.1:{server.port}/") as executor:
        with pytest.raises(DatabaseTimeoutError):
            executor.schema()
        assert len(server.requests) == 2
        assert f"LIMIT {SAMPLE}" in server.requests[1][2]


def test_an_answer_that_the_endpoint_cut_off() -> None:
    assert not ask(good)[0].is_cut
    assert ask(body(json.dumps(ROWS), X_SPARQL_MaxRows="1"))[0].is_cut


@pytest.mark.parametrize("answer", [slow, silent])
def test_a_slow_endpoint(answer: Answer) -> None:
    error, _ = ask(answer, timeout=0.5)
    assert isinstance(error, DatabaseTimeoutError)


def test_nothing_listens() -> None:
    with Scripted([good]) as server:
        url = f"http://127.0.0.1:{server.port}/query"
    with SparqlExecutor(url) as executor, pytest.raises(DatabaseUnavailableError, match="cannot be reached"):
        executor.run(QUERY)
    with pytest.raises(DatabaseUnavailableError, match="is closed"):
        executor.run(QUERY)


def test_the_rate_is_kept() -> None:
    with (
        Scripted([good]) as server,
        SparqlExecutor(f"http://127.0.0.1:{server.port}/", requests_per_second=10) as executor,
    ):
        threads = [threading.Thread(target=executor._ask, args=(QUERY,)) for _ in range(5)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert max(server.times) - began >= 0.4  # four times 0.1 s behind the first, whenever that arrives


def test_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = ask(good)
    headers = server.requests[0][1]
    assert headers["User-Agent"].startswith("kg-retrievers/")
    assert "Authorization" not in headers
    assert ask(good, user_agent="me (me@example.org)")[1].requests[0][1]["User-Agent"] == "me (me@example.org)"
    monkeypatch.setenv("SPARQL_USERNAME", "ann")
    with pytest.raises(InvalidArgumentError, match="SPARQL_PASSWORD is not set"):
        SparqlExecutor("http://127.0.0.1/query")
    monkeypatch.setenv("SPARQL_PASSWORD", "very secret")
    sent = ask(good)[1].requests[0][1]["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ann:very secret"
    monkeypatch.delenv("SPARQL_USERNAME")
    monkeypatch.delenv("SPARQL_PASSWORD")
    monkeypatch.setenv("SPARQL_TOKEN", "a-secret-token")
    error, server = ask(status(400, "refused the token a-secret-token"))
    assert server.requests[0][1]["Authorization"] == "Bearer a-secret-token"
    assert "a-secret-token" not in f"{error} {error.reason}"
