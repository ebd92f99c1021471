"""Listens on an address, runs an application there, and ends connections that stay silent.

uvicorn itself lets silent connections stay for ever.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

from kg_retrievers.core.stages import REFUSALS_LOGGER
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.serving.access import Access, AccessMiddleware
from kg_retrievers.serving.service import GraphService

try:
    import h11
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState
except ImportError as cause:
    raise MissingExtraError("listening for HTTP", "serve") from cause

#: How many seconds a client has to send the head of a request.
HEAD_SECONDS = 10.0

#: How many connections may say nothing at once. The one that has said nothing longest makes room for another.
MOST_SILENT = 256

#: The most bytes of the head of a request.
HEAD_BYTES = 16_384

#: The connections of each server whose request is not there yet, the one that has waited longest first.
_SILENT: WeakKeyDictionary[ServerState, dict[Connection, None]] = WeakKeyDictionary()


class Connection(H11Protocol):
    """A connection that ends if the head of a request is late, or too many others wait for theirs."""

    _over: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take the data of the client, and wait for more if it is no whole head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._waited()
        elif self._over is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._waited()
        super().connection_lost(exc)

    @property
    def _silent(self) -> dict[Connection, None]:
        return _SILENT.setdefault(self.server_state, {})

    def _wait(self) -> None:
        silent = self._silent
        if len(silent) >= MOST_SILENT:
            next(iter(silent))._end()
        silent[self] = None
        self._over = self.loop.call_later(HEAD_SECONDS, self._end)

    def _waited(self) -> None:
        self._silent.pop(self, None)
        if self._over is not None:
            self._over.cancel()
            self._over = None

    def _end(self) -> None:
        self._waited()
        self.transport.abort()


#: How a server of uvicorn treats its connections: arguments of `uvicorn.Config`.
CONNECTIONS: dict[str, Any] = {
    "http": Connection,
    "ws": "none",
    "h11_max_incomplete_event_size": HEAD_BYTES,
    "timeout_keep_alive": 5,
    "timeout_graceful_shutdown": 1,
    "backlog": 512,
    "access_log": False,  # it would keep what people ask
    "server_header": False,
    "proxy_headers": False,
}


# What to do next, in Python and on the shell, where the port cannot be had, and where the address cannot.
_OTHER_PORT = ("Choose another port; 0 is a free one.", "Choose another: --port 0 for a free one.")
_OTHER_HOST = ("Give an address of this machine, as 127.0.0.1.", "Give one of this machine: --host 127.0.0.1.")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Args:
        host: The address or name.
        port: The port; 0 for a free one.

    Raises:
        InvalidArgumentError: If the address is none of this machine, or its port is taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS["backlog"])
    except OSError as error:
        is_of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        python, shell = _OTHER_PORT if is_of_port else _OTHER_HOST
        message = f"cannot listen on {host} at port {port}: {error.strerror or error}."
        raise InvalidArgumentError(message, hint_python=python, hint_shell=shell) from error


def address_of(listening: socket.socket) -> str:
    """Return the URL of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run_server(app: ASGIApp, listening: socket.socket, ready: Callable[[], object] = lambda: None) -> None:
    """Answer requests until the process is interrupted.

    Args:
        app: An ASGI application that takes part in the lifespan protocol, as all of Starlette do.
        listening: Where it listens.
        ready: Called once it answers.
    """
    config = uvicorn.Config(app, log_level="warning", lifespan="on", **CONNECTIONS)
    server = _Server(config, ready)
    with listening, without_questions_in_logs():
        server.run([listening])


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


@contextmanager
def without_questions_in_logs() -> Iterator[None]:
    """Silence the warnings about refused questions, which quote the questions of users."""
    logger = logging.getLogger(REFUSALS_LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def health_endpoint(service: GraphService, access: Access) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for `HEALTH_PATH`.

    Everybody learns that the server works. A request that shows the token also learns the contents of the server,
    without any name of the graph.

    Args:
        service: Answers the questions.
        access: Knows the token.
    """

    async def healthz(request: Request) -> Response:
        report: dict[str, Any] = {"status": "ok"}
        if access.shows_token(request.headers.raw):
            index, methods = service.index, list(service.methods)
            report |= {"version": version("kg-retrievers"), "index": index.fingerprint, "methods": methods}
            if not index.is_connected:
                report |= {"entities": len(index.graph.entities), "triples": len(index.graph)}
        return JSONResponse(report, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    return healthz


def app_by_token(service: GraphService, access: Access, make: Callable[[GraphService], Starlette]) -> AccessMiddleware:
    """Return an application that answers each token from its own view of the graph.

    Tokens with the same view share an application, and thus sessions.

    Args:
        service: Answers the questions.
        access: Who may ask, and what each may see.
        make: Makes the application over a service.

    Raises:
        InvalidArgumentError: If a view cannot be made.
    """
    made: dict[str, Starlette] = {}
    apps: dict[str | None, ASGIApp] = {}
    for line, (token, view) in enumerate(access.tokens.items(), 1):
        condition = json.dumps(view, sort_keys=True)
        try:
            apps[token] = made[condition] = made.get(condition) or make(service.view(**view))
        except InvalidArgumentError as error:
            message = f"the token in line {line}: {error.message}"
            raise InvalidArgumentError(message, **error.hints) from error
    made = made or {"": make(service)}
    apps[None] = next(iter(made.values()))  # without a token, only open paths get here, or there is no token

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for app in made.values():
                await running.enter_async_context(app.router.lifespan_context(app))
            yield

    return AccessMiddleware(Starlette(lifespan=lifespan), access, apps)
