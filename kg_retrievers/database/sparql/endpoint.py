"""Sends queries to a SPARQL endpoint over HTTP: politely, with a deadline, and bounded."""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from kg_retrievers.database.login import checked_url, credentials
from kg_retrievers.deadline import call_foreign, check_deadline, seconds_left, stopped_when_given_up
from kg_retrievers.errors import (
    DatabaseError,
    DatabaseLoginError,
    DatabaseMemoryError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
)
from kg_retrievers.redaction import hide_secrets

T = TypeVar("T")

#: How often a request is sent, and how many seconds are waited before the second time, then twice as many each time.
ATTEMPTS, FIRST_WAIT = 4, 0.5

#: How many bytes are decompressed at once, so that a small answer that becomes a huge one is noticed before.
PIECE = 1 << 20

#: How many characters of a server's message are shown.
MAX_MESSAGE = 1000

#: The longest wait for a server that says nothing, if there is no deadline.
LONGEST_SILENCE = 600.0

_BUSY_STATUS = frozenset((429, 502, 503, 504))
_JSON, _TRIPLES = "application/sparql-results+json", "application/n-triples"
_LOGIN = "Set the environment variables SPARQL_USERNAME and SPARQL_PASSWORD, or SPARQL_TOKEN, to one who may read there"


class _BusyError(Exception):
    """The server cannot answer now."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Endpoint:
    """A SPARQL endpoint. Safe to use from several threads.

    Args:
        url: Its address. Name and password, or a token, come from the environment variables SPARQL_USERNAME and
            SPARQL_PASSWORD, or SPARQL_TOKEN.
        user_agent: Who asks.
        requests_per_second: The most requests per second. None for no limit.
        max_bytes: The most bytes of an answer.
        login: Whether the variables are read. Public endpoints get none.

    Raises:
        InvalidArgumentError: If the address is none, or holds a password.
    """

    def __init__(
        self, url: str, *, user_agent: str, requests_per_second: float | None, max_bytes: int, login: bool = True
    ) -> None:
        """Prepare the connections. Nothing is sent."""
        self.url, self.max_bytes = checked_url(url), max_bytes
        self._interval = 1 / requests_per_second if requests_per_second else 0.0
        self._lock, self._next = threading.Lock(), 0.0
        headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip"}
        if login and (token := os.environ.get("SPARQL_TOKEN")):
            headers["Authorization"] = f"Bearer {token}"
        auth = credentials("SparqlExecutor", "SPARQL") if login else None
        try:
            self._client = httpx.Client(headers=headers, auth=auth, follow_redirects=False)
        except (UnicodeError, ValueError) as cause:
            hide_secrets(cause)
            raise InvalidArgumentError("SparqlExecutor: a header cannot hold these characters.") from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def select(self, query: str, graphs: Sequence[str] = ()) -> tuple[Mapping[str, Any], bool]:
        """Return the result of a SELECT as JSON.

        Also return whether the endpoint says that it cut it off.

        Args:
            query: The query.
            graphs: The IRIs of the named graphs that are its dataset. Empty for the dataset of the endpoint.
        """
        return self._until_deadline(self._select, query, graphs)

    def download(self, query: str, graphs: Sequence[str], path: str) -> None:
        """Write the triples of a CONSTRUCT to a file as N-Triples.

        Its dataset is as of `select`.
        """
        self._until_deadline(self._download, query, graphs, path)

    def _until_deadline(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function again while the server is busy, with growing waits."""
        wait = FIRST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            self._take_turn()
            try:
                return call_foreign(function, *args)
            except _BusyError as busy:
                pause = wait if busy.wait is None else busy.wait
                if attempt == ATTEMPTS or pause >= seconds_left():
                    later = f" It asks to wait {pause:g} s." if busy.wait is not None else ""
                    raise DatabaseUnavailableError(
                        f"SparqlExecutor: {self.url} cannot answer now: {busy}{later} Try again later, or ask less."
                    ) from None
                call_foreign(time.sleep, pause)
                wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _take_turn(self) -> None:
        """Wait until the next request may be sent."""
        check_deadline()
        if not self._interval:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(self._next, now)
            self._next = turn + self._interval
        if turn > now:
            call_foreign(time.sleep, turn - now)

    def _select(self, query: str, graphs: Sequence[str]) -> tuple[Mapping[str, Any], bool]:
        with self._answer(query, graphs, _JSON) as (response, stopped):
            body = b"".join(self._chunks(response, stopped, query, self.max_bytes))
            if "S1TAT" in response.headers.get("x-sql-state", ""):
                raise DatabaseTimeoutError(f"SparqlExecutor: {self.url} stopped the query before it was complete.")
            is_cut = "x-sparql-maxrows" in response.headers
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as cause:
            if b"TimeoutException" in body[-100_000:]:  # of Blazegraph, behind the rows that it had
                raise DatabaseTimeoutError(f"SparqlExecutor: {self.url} stopped the query at its own limit.") from None
            if body.startswith(b"{") and getattr(cause, "pos", 0) >= len(body.decode("utf-8", "replace")) - 1:
                raise DatabaseTimeoutError(  # so does Oxigraph
                    f"SparqlExecutor: {self.url} ended its answer in the middle, as at its own limit. Ask for less."
                ) from None
            raise self._no_sparql(f"its answer is no JSON ({cause!s:.100})") from None
        if not isinstance(found, dict):
            raise self._no_sparql(f"its answer is {found!r:.80}")
        return found, is_cut

    def _download(self, query: str, graphs: Sequence[str], path: str) -> None:
        with self._answer(query, graphs, _TRIPLES) as (response, stopped), open(path, "wb") as file:
            for chunk in self._chunks(response, stopped, query, None):
                file.write(chunk)

    @contextmanager
    def _answer(
        self, query: str, graphs: Sequence[str], accept: str
    ) -> Iterator[tuple[httpx.Response, threading.Event]]:
        """Send a query, and give the answer with its body still unread."""
        stopped = threading.Event()
        silence = min(seconds_left() + 1, LONGEST_SILENCE)  # so that the error of the deadline comes first
        timeout = httpx.Timeout(silence, connect=min(silence, 30.0))
        try:
            sent = {"query": query, "default-graph-uri": list(graphs)}
            request = self._client.build_request(
                "POST", self.url, data=sent, headers={"Accept": accept}, timeout=timeout
            )
            response = self._client.send(request, stream=True)
            try:
                self._check_status(response, stopped, query)
                self._check_type(response, accept)
                with stopped_when_given_up(stopped.set):
                    yield response, stopped
            finally:
                response.close()
        except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout):
            raise DatabaseTimeoutError(f"SparqlExecutor: {self.url} did not answer within {silence:.3g} s.") from None
        except (httpx.RequestError, httpx.InvalidURL, httpx.StreamError, RuntimeError) as cause:
            hide_secrets(cause)
            reset = isinstance(cause, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
            if reset:
                raise _BusyError(f"the connection broke ({cause!s:.200}).") from None
            raise DatabaseUnavailableError(
                f"SparqlExecutor: {self.url} cannot be reached: {cause!s:.200}. Is it running, and is this its address?"
            ) from None

    def _chunks(
        self, response: httpx.Response, stopped: threading.Event, query: str, most: int | None
    ) -> Iterator[bytes]:
        """Yield the body, until nobody waits for it or it is too large."""
        size = 0
        for chunk in self._decompressed(response):
            check_deadline()
            if stopped.is_set():
                raise DatabaseTimeoutError("SparqlExecutor: nobody waits for this answer any longer.")
            size += len(chunk)
            if most is not None and size > most:
                reason = f"The answer has more than {most:,} bytes."
                message = f"SparqlExecutor: {self.url}: {reason} Ask for less, or raise max_bytes."
                raise DatabaseMemoryError(message, query, reason)
            yield chunk

    def _decompressed(self, response: httpx.Response) -> Iterator[bytes]:
        """Yield the body in small pieces.

        httpx bounds none, and takes several compressions in one another.
        """
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("gzip", "identity"):
            raise self._no_sparql(f"its answer is compressed by {coding!r:.80}, not gzip")
        if coding == "identity":
            yield from response.iter_raw()
            return
        unzip = zlib.decompressobj(wbits=31)  # the header of gzip
        try:
            for chunk in response.iter_raw():
                rest = chunk
                while rest and not unzip.eof:
                    yield unzip.decompress(rest, PIECE)
                    rest = unzip.unconsumed_tail
            yield unzip.flush()
        except zlib.error as cause:
            raise self._no_sparql(f"its answer is no gzip ({cause!s:.100})") from None

    def _check_type(self, response: httpx.Response, accept: str) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (accept, "application/json", "text/plain"):
            raise self._no_sparql(f"its answer is of the type {kind!r:.80}")

    def _check_status(self, response: httpx.Response, stopped: threading.Event, query: str) -> None:
        """Raise the error that the status of an answer says."""
        status = response.status_code
        if status == 200:
            return
        if response.has_redirect_location:
            raise DatabaseUnavailableError(
                f"SparqlExecutor: {self.url} redirects to {response.headers['location']!r:.200}, which is not asked. "
                "Give that address, if you trust it."
            )
        body = b""
        for chunk in self._chunks(response, stopped, query, None):
            body += chunk
            if len(body) > 4 * MAX_MESSAGE:
                break
        reason = body.decode("utf-8", "replace").strip()[:MAX_MESSAGE] or f"HTTP status {status}"
        wait = response.headers.get("retry-after", "").strip()  # a date is not read
        raise self._error(status, reason, query, float(wait) if wait.isdecimal() else None)

    def _error(self, status: int, reason: str, query: str, wait: float | None) -> Exception:
        who = f"SparqlExecutor: {self.url}"
        if status in _BUSY_STATUS:
            return _BusyError(f"HTTP status {status}, {reason[:200]}", wait)
        if status in (401, 403):
            return DatabaseLoginError(
                f"{who} does not let this user in (HTTP status {status}).",
                hint_python=f"{_LOGIN}, before the executor is made.",
                hint_shell=f"{_LOGIN}.",
            )
        if status == 408 or (status >= 500 and any(word in reason.lower() for word in ("timeout", "timed out"))):
            return DatabaseTimeoutError(f"{who} stopped the query at its own limit: {reason[:200]}")
        if status in (400, 413, 414, 422) or status >= 500:
            message = f"{who} refused the query: {reason} Correct the query; it was: {query:.2000}"
            return DatabaseQueryError(message, query, reason)
        return self._no_sparql(f"HTTP status {status}")

    def _no_sparql(self, what: str) -> DatabaseError:
        return DatabaseUnavailableError(
            f"SparqlExecutor: {self.url} does not answer as a SPARQL endpoint: {what}. Is this the address of its "
            "queries, as http://localhost:7878/query?"
        )
