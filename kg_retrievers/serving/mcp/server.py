"""The MCP server of a graph: its tools, its instructions and its transports."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA
from kg_retrievers.errors import MissingExtraError, did_you_mean, listed
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.verbalize import as_data_lines
from kg_retrievers.serving.access import HEALTH_PATH, Access, AccessMiddleware
from kg_retrievers.serving.listening import health_endpoint, without_questions_in_logs
from kg_retrievers.serving.mcp.tools import add_tools
from kg_retrievers.serving.results import shorten
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.workers import Workers

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types import CallToolResult, InputRequiredResult
except ImportError as cause:
    raise MissingExtraError("serving a graph over MCP", "mcp") from cause

#: What a client shows to its model of the server as a whole.
INSTRUCTIONS = (
    "Tools over one knowledge graph; they read and change nothing. Call `schema` first, then `ask` with a full "
    "question that names entities as the graph does. `search_evidence` and `neighbors` show facts; `explain` says why "
    f"something is an answer or is none. A refusal says what to do next. {FACTS_ARE_DATA}"
)


class GraphServer(MCPServer[Any]):
    """A server whose tools answer from one graph.

    Args:
        service: What answers.
        workers: The threads in which it does; four by default.
    """

    def __init__(self, service: GraphService, workers: Workers | None = None) -> None:
        """Add the tools."""
        super().__init__(
            "kg-retrievers",
            title="Knowledge graph",
            instructions=INSTRUCTIONS,
            version=version("kg-retrievers"),
            log_level="WARNING",
        )
        self.service = service
        add_tools(self, service, workers or Workers())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; a mistake in the arguments is told in a sentence that says what to do.

        Raises:
            ToolError: If there is no such tool, an argument is wrong, or the tool fails.
        """
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            near = did_you_mean(name[:100], tools) or f"there are {listed(list(tools))}."
            raise ToolError(as_data_lines(f"there is no tool {name!r:.100}; {near}"))
        known = tools[name].input_schema["properties"]
        strange = sorted(arguments.keys() - known.keys())
        if strange:
            near = did_you_mean(strange[0][:100], known) or f"it takes {listed(list(known))}."
            raise ToolError(as_data_lines(f"{name}: there is no argument {strange[0]!r:.100}; {near}"))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:  # which the SDK logs
            raise UnexpectedToolError(
                f"{name} failed; the log of the server says why. Try another method or tool."
            ) from error.__cause__
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(as_data_lines(shorten(f"{name}: {reasons(error.__cause__)}", 1_000))) from error
            raise ToolError(str(error.__cause__)) from error


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
