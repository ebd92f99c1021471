"""Runs the MCP server of a graph on stdio, or on HTTP at `/mcp`."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.serving.access import Access, AccessMiddleware
from kg_retrievers.serving.mcp.server import GraphServer
from kg_retrievers.serving.web.connections import CONNECTIONS

try:
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
except ImportError as cause:
    raise MissingExtraError("serving a graph over MCP", "mcp") from cause

#: Where clients find it.
PATH = "/mcp"

#: The most bytes of a request: more than the longest question and seed entities take.
MOST_BYTES = 2_000_000

#: The most sessions at once, and the seconds after which one that asks nothing ends.
MOST_SESSIONS, IDLE_SECONDS = 256, 600.0


def run_stdio(server: GraphServer) -> None:
    """Answer on stdin and stdout until stdin ends; what else is printed goes to stderr."""
    server.run("stdio")


def http_app(server: GraphServer, access: Access) -> AccessMiddleware:
    """Return an ASGI application that answers at `PATH`.

    Args:
        server: The server; it serves one application.
        access: Who may ask.
    """
    return AccessMiddleware(_routes(server), access)


def run_http(server: GraphServer, access: Access, listening: socket.socket, ready: Callable[[], object]) -> None:
    """Answer requests until the process is interrupted.

    Args:
        server: The server.
        access: Who may ask.
        listening: Where it listens.
        ready: Called once it answers.
    """
    app = _routes(server)
    begin = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncIterator[None]:
        async with begin(starlette):
            ready()
            yield

    app.router.lifespan_context = lifespan
    config = uvicorn.Config(AccessMiddleware(app, access), log_level="warning", lifespan="on", **CONNECTIONS)
    with listening:
        uvicorn.Server(config).run([listening])


def _routes(server: GraphServer) -> Starlette:
    return server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BYTES,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `access` looks at both
    )
