"""The application of `kg-retrievers serve`: a page, and the JSON that it asks for."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from kg_retrievers.agents import Workflow, build_workflow
from kg_retrievers.methods import registry
from kg_retrievers.serving.access import HEALTH_PATH, Access, AccessMiddleware
from kg_retrievers.serving.listening import app_by_token, health_endpoint
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.exploring import AskWhyNot, Expand, expand, explain_why_not, suggest
from kg_retrievers.serving.web.requests import FORMS, Ask, RequestError, describe, error_response, read_body
from kg_retrievers.serving.web.stages import tell_stages
from kg_retrievers.serving.workers import Event, Workers

#: The files of the page, by path: the package that holds each, and its type.
PAGE = {
    "/": ("kg_retrievers.serving.web", "index.html", "text/html"),
    **{
        f"/page/{name}": ("kg_retrievers.serving.web", name, "text/javascript")
        for name in ("app.js", "answer.js", "facts.js", "explore.js", "server.js", "elements.js")
    },
    "/page/app.css": ("kg_retrievers.serving.web", "app.css", "text/css"),
    "/page/style.css": ("kg_retrievers.drawing", "style.css", "text/css"),
    "/page/graph_view.js": ("kg_retrievers.drawing", "graph_view.js", "text/javascript"),
    "/page/cytoscape.min.js": ("kg_retrievers.drawing", "cytoscape.min.js", "text/javascript"),
}

#: The paths that need no token: they show nothing of the graph.
OPEN_PATHS = frozenset((*PAGE, HEALTH_PATH))

#: The rights of a browser over the server's responses: nothing of another server, nothing that stands in a text.
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

#: The most bytes of a picture that grows, and the most characters of a name that is being typed.
EXPAND_BYTES, MOST_TYPED = 1_048_576, 200

Answers = Callable[[Request], Awaitable[Response]]


class WebApp:
    """Answers the requests of the page.

    Args:
        service: Asks the graph.
        name: What the graph is called.
        workers: Run what blocks.
    """

    def __init__(self, service: GraphService, name: str, workers: Workers) -> None:
        """Build nothing yet: a retriever is built when it is first asked."""
        self.service, self.name, self.workers = service, name, workers
        self._workflow = cache(self._make_workflow)

    def routes(self) -> list[Route]:
        """Return the route of each path."""
        pages = [Route(path, partial(_page, *place)) for path, place in PAGE.items()]
        return [
            *pages,
            Route("/api/about", _json(self.about)),
            Route("/api/schema", _json(self.schema)),
            Route("/api/examples", _json(self.examples)),
            Route("/api/entities", _json(self.entities)),
            Route("/api/ask", _json(self.ask), methods=["POST"]),
            Route("/api/expand", _json(self.expand), methods=["POST"]),
            Route("/api/why-not", _json(self.why_not), methods=["POST"]),
        ]

    async def about(self, request: Request) -> Any:
        """Return the possible requests: the methods, and the parts of each that can be edited."""
        return await self.workers.run(self._about)

    def _about(self) -> dict[str, Any]:
        names = self.service.methods
        return {
            "graph": self.name,
            "version": version("kg-retrievers"),
            "default_method": names[0],
            "methods": [{"name": name, "finds": registry.find_method(name).finds} for name in names],
            "answers": "a language model" if self.service.llm else "the best evidence",
            "forms": FORMS,
        }

    async def schema(self, request: Request) -> Any:
        """Return the relations and types of the graph, with their numbers."""
        return (await self.workers.run(self.service.schema)).model_dump()

    async def examples(self, request: Request) -> Any:
        """Return questions that the graph answers."""
        return {"examples": await self.workers.run(self.service.examples)}

    async def entities(self, request: Request) -> Any:
        """Return the entities whose names are near to a text."""
        text = request.query_params.get("text", "").strip()
        if not 0 < len(text) <= MOST_TYPED:
            message = f"The text has {len(text):,} characters; wanted 1 to {MOST_TYPED}."
            raise RequestError(400, message, "Send ?text=...")
        return {"entities": await self.workers.run(lambda: suggest(self.service.index, text))}

    async def expand(self, request: Request) -> Any:
        """Return a picture with more facts around one of its entities."""
        asked = await read_body(request, Expand, most=EXPAND_BYTES)
        return await self.workers.run(lambda: expand(self.service, asked))

    async def why_not(self, request: Request) -> Any:
        """Return why an entity is not among the answers, and the changes that would bring it in."""
        asked = await read_body(request, AskWhyNot)
        return await self.workers.run(lambda: explain_why_not(self.service, asked))

    async def ask(self, request: Request) -> Response:
        """Stream the stages of an answer, a JSON object a line."""
        asked = await read_body(request, Ask)
        events = self.workers.stream(lambda tell: tell_stages(self._workflow(asked.method), asked, tell))
        first = await anext(events)  # what cannot be asked is told before the head of the response is sent
        return StreamingResponse(_lines(first, events), media_type="application/x-ndjson")

    def _make_workflow(self, method: str | None) -> Workflow:
        """Return the workflow of a method, with the language model if there is one."""
        return build_workflow(self.service.retriever(method), self.service.llm)


def make_app(
    service: GraphService, *, name: str = "graph", access: Access | None = None, workers: Workers | None = None
) -> AccessMiddleware:
    """Return the application. Any ASGI server runs it.

    Args:
        service: Asks the graph.
        name: What the graph is called.
        access: Who may ask, and what each may see; by default who asks this machine under a name of its own.
        workers: Run what blocks.

    Raises:
        InvalidArgumentError: If the view of a token cannot be made.
    """
    who, threads = access or Access(open_paths=OPEN_PATHS), workers or Workers()

    def app_of(service: GraphService) -> Starlette:
        health = Route(HEALTH_PATH, health_endpoint(service, who))
        app = Starlette(routes=[*WebApp(service, name, threads).routes(), health])
        app.add_exception_handler(HTTPException, _no_route)
        return app

    return app_by_token(service, who, app_of)


def _json(answers: Callable[[Request], Awaitable[Any]]) -> Answers:
    """Return what answers a request by JSON or a response of its own, errors too."""

    async def answered(request: Request) -> Response:
        try:
            found = await answers(request)
            response = found if isinstance(found, Response) else JSONResponse(found)
        except Exception as error:
            response = error_response(error)
        response.headers.update(SAFE | {"Cache-Control": "no-store"})
        return response

    return answered


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = "There is nothing under this path." if status == 404 else "This path is not asked in this way."
    response = error_response(RequestError(status, what, "See docs/serve-http.md for the paths."))
    response.headers.update(SAFE)
    return response


async def _page(package: str, name: str, kind: str, request: Request) -> Response:
    content = files(package).joinpath("page", name).read_bytes()
    return Response(content, media_type=kind, headers=SAFE)


async def _lines(first: Event, events: AsyncGenerator[Event]) -> AsyncIterator[bytes]:
    try:
        async with aclosing(events):
            yield _line(first)
            async for event in events:
                yield _line(event)
    except Exception as error:  # the head of the response is sent
        yield _line({"event": "error", **describe(error)})


def _line(event: Event) -> bytes:
    return json.dumps(event, ensure_ascii=True, default=str).encode() + b"\n"
