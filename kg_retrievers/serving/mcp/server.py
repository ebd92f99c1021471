"""The MCP server of a graph: the tools of `KnowledgeGraphToolkit`, its instructions and its transports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.metadata import version
from time import monotonic
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.utils.function_calling import convert_to_openai_tool

from kg_retrievers.agents.toolkit import no_such_tool
from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA
from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.deadline import call_foreign, check_deadline, deadline
from kg_retrievers.errors import KGRetrieversError, MissingExtraError
from kg_retrievers.graph.verbalize import as_data_lines
from kg_retrievers.serving.access import HEALTH_PATH, Access, AccessMiddleware
from kg_retrievers.serving.listening import app_by_token, health_endpoint, without_questions_in_logs
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.workers import Workers

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as cause:
    raise MissingExtraError("serving a graph over MCP", "mcp") from cause

#: A tool changes nothing, and knows nothing but the graph.
READS_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


class StageProgress(BaseCallbackHandler):
    """Hears of stages in another thread, and reports them in the loop in which it is made.

    A stage that ends when nobody waits any longer ends the work.

    Args:
        report: Sends how many stages are done, of how many, and the name of the last one.
    """

    raise_error = True
    run_inline = True

    def __init__(self, report: Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]) -> None:
        """Begin with no stage."""
        self._report = report
        self._sent: list[Future[None]] = []
        self._loop = asyncio.get_running_loop()

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Report a stage that has ended.

        Raises:
            KGRetrieversError: The error of the deadline, if nobody waits any longer.
        """
        check_deadline()
        if name == STAGE_EVENT:
            step = self._report(len(self._sent) + 1, None, data["stage"])
            self._sent.append(asyncio.run_coroutine_threadsafe(step, self._loop))

    async def done(self) -> None:
        """Wait until all stages are reported."""
        for sent in self._sent:
            await asyncio.wrap_future(sent)


#: The text that a client shows to its model about the server as a whole.
INSTRUCTIONS = (
    "Tools over one knowledge graph; they read and change nothing. Call `ask` with a full question first. If it "
    "refuses, find entities and relations with the other tools, and conclude from facts or from `run_pattern`. "
    f"Names may be written as the graph writes them, or by key. {FACTS_ARE_DATA}"
)


class GraphServer(MCPServer[Any]):
    """A server whose tools answer from one graph.

    Args:
        service: What answers.
        workers: The threads in which it does; four by default.
    """

    def __init__(self, service: GraphService, workers: Workers | None = None) -> None:
        """Make the tools."""
        super().__init__(
            "kg-retrievers",
            title="Knowledge graph",
            instructions=INSTRUCTIONS,
            version=version("kg-retrievers"),
            log_level="WARNING",
        )
        self.service, self.workers = service, workers or Workers()
        self.tools = {tool.name: tool for tool in service.toolkit().get_tools()}

    async def list_tools(self) -> list[Tool]:
        """Return the tools as a client shows them to its model."""
        return [
            Tool(
                name=name,
                title=name.replace("_", " ").capitalize(),
                description=tool.description,
                input_schema=convert_to_openai_tool(tool)["function"]["parameters"],
                annotations=READS_ONLY,
            )
            for name, tool in self.tools.items()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult:
        """Call a tool. A mistake in the arguments is reported in a sentence that says how to correct it.

        Raises:
            ToolError: If there is no such tool, too many calls wait, or the call takes too long.
            UnexpectedToolError: If the tool fails.
        """
        if name not in self.tools:
            raise ToolError(no_such_tool(name, [*self.tools]))
        tool, call = self.tools[name], {"name": name, "args": arguments, "id": name, "type": "tool_call"}
        progress = None if context is None else StageProgress(context.report_progress)
        heard: Any = {"callbacks": [] if progress is None else [progress]}
        try:
            message = await self.workers.run(lambda: tool.invoke(call, heard))
        except KGRetrieversError as error:
            raise ToolError(as_data_lines(error.on_agent)) from error
        except Exception as error:  # the log says why
            raise UnexpectedToolError(f"{name} failed; the log of the server says why. Try another tool.") from error
        if progress is not None:
            await progress.done()
        text = TextContent(type="text", text=str(message.content))
        return CallToolResult(content=[text], is_error=message.status == "error")


#: The path at which clients find it.
PATH = "/mcp"

#: The most bytes of a request: more than the longest question and seed entities take.
MOST_BYTES = 2_000_000

#: The most sessions at once, and the seconds after which one that asks nothing ends.
MOST_SESSIONS, IDLE_SECONDS = 256, 600.0


def run_stdio(server: GraphServer) -> None:
    """Answer on stdin and stdout until stdin ends, or Ctrl-C. All other output goes to stderr."""
    with without_questions_in_logs(), deadline(threading.TIMEOUT_MAX, KGRetrieversError):
        call_foreign(server.run, "stdio")  # in a daemon thread: nothing else stops a thread that reads stdin


@dataclass
class _Session:
    """The requests under way in a session, the streams that its client keeps open, and when the last of them ended."""

    asking: int = 0
    listening: int = 0
    since: float = field(default_factory=monotonic)

    @property
    def timed_out(self) -> bool:
        """Whether the SDK has ended it."""
        return not self.asking and not self.listening and monotonic() - self.since > IDLE_SECONDS


class RoomForSessions:
    """Ends the session that has asked nothing for longest if another one needs its room.

    A session with a request under way stays. The client of an ended one opens another, as the protocol has it.

    Args:
        app: The application of the SDK.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Know no session yet."""
        self.app = app
        self._sessions: dict[str, _Session] = {}  # the last to ask last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        name = Headers(scope=scope).get(MCP_SESSION_ID_HEADER) if scope["type"] == "http" else ""
        if name is None:
            await self._make_room(scope)

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                made = MutableHeaders(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if name is None and made and message["status"] < 400:
                    self._sessions[made] = _Session()
                elif name and message["status"] == 404:
                    self._sessions.pop(name, None)
            await send(message)

        if name and scope["method"] == "DELETE":
            self._sessions.pop(name, None)
        session = self._sessions.get(name or "", _Session())
        asks = bool(name) and scope["method"] == "POST"
        session.asking += asks
        session.listening += not asks
        try:
            await self.app(scope, receive, noted)
        finally:
            session.asking -= asks
            session.listening -= not asks
            session.since = monotonic()
            if asks and name in self._sessions:
                self._sessions[name] = self._sessions.pop(name)

    async def _make_room(self, scope: Scope) -> None:
        self._sessions = {name: one for name, one in self._sessions.items() if not one.timed_out}
        idle = next((name for name, one in self._sessions.items() if not one.asking), None)
        if idle is None or len(self._sessions) < MOST_SESSIONS:
            return
        del self._sessions[idle]
        headers = MutableHeaders(raw=[*scope["headers"]])
        headers[MCP_SESSION_ID_HEADER] = idle
        ending = {**scope, "method": "DELETE", "headers": headers.raw}

        async def nothing() -> Message:
            return {"type": "http.request"}

        async def unheard(message: Message) -> None:
            pass

        await self.app(ending, nothing, unheard)


def http_app(service: GraphService, access: Access) -> AccessMiddleware:
    """Return an ASGI application that answers at `PATH`, and under `HEALTH_PATH` says that it works.

    Args:
        service: What answers.
        access: Who may ask, and what each may see.

    Raises:
        InvalidArgumentError: If the view of a token cannot be made.
    """
    workers = Workers()

    def app_of(service: GraphService) -> Starlette:
        app = GraphServer(service, workers).streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MOST_BYTES,
            max_sessions=MOST_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `access` looks
        )
        app.add_middleware(RoomForSessions)
        app.add_route(HEALTH_PATH, health_endpoint(service, access), methods=["GET"])
        return app

    return app_by_token(service, access, app_of)
