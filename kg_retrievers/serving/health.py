"""`/healthz`: reports to people and to supervisors that a server works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.serving.access import Access
from kg_retrievers.serving.service import GraphService

try:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
except ImportError as cause:
    raise MissingExtraError("listening for HTTP", "serve") from cause


def health_endpoint(service: GraphService, access: Access) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for `HEALTH_PATH`.

    Everybody learns that the server works. A request that shows the token also learns what the server serves.

    Args:
        service: Answers the questions.
        access: Knows the token.
    """

    async def healthz(request: Request) -> Response:
        report = _health(service) if access.shows_token(request.headers.raw) else {"status": "ok"}
        return JSONResponse(report, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    return healthz


def _health(service: GraphService) -> dict[str, Any]:
    """Return the served version, index, sizes and methods, without any name of the graph."""
    index = service.index
    size = {} if index.is_connected else {"entities": len(index.graph.entities), "triples": len(index.graph)}
    return {
        "status": "ok",
        "version": version("kg-retrievers"),
        "index": index.fingerprint,
        **size,
        "methods": list(service.methods),
    }
