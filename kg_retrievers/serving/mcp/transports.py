"""The transports of the MCP server of a graph: stdio, or HTTP at `/mcp`."""

from __future__ import annotations

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.serving.access import HEALTH_PATH, Access, AccessMiddleware
from kg_retrievers.serving.health import health_endpoint
from kg_retrievers.serving.mcp.server import GraphServer
from kg_retrievers.serving.runs import without_questions_in_logs

try:
    from mcp.server.transport_security import TransportSecuritySettings
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
    with without_questions_in_logs():
        server.run("stdio")


def http_app(server: GraphServer, access: Access) -> AccessMiddleware:
    """Return an ASGI application that answers at `PATH`, and under `HEALTH_PATH` says that it works.

    Args:
        server: The server; it serves one application.
        access: Who may ask.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BYTES,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `access` looks at both
    )
    app.add_route(HEALTH_PATH, health_endpoint(server.service, access), methods=["GET"])
    return AccessMiddleware(app, access)
