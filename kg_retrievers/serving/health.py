"""`/healthz`: whether a server works, for people, and for what starts it again where it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.serving.access import Access
from kg_retrievers.serving.service import GraphService
from kg_retrievers.telemetry import ServiceWatch, health

try:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
except ImportError as cause:
    raise MissingExtraError("listening for HTTP", "serve") from cause


def health_endpoint(
    service: GraphService, access: Access, watch: ServiceWatch | None
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers under `HEALTH_PATH`.

    It says that the server works, and to whoever shows the token, of which graph, since when, and what it has done;
    nothing that anybody asked.

    Args:
        service: What the server asks.
        access: Who may ask.
        watch: Watches the server, if anything does.
    """

    async def healthz(request: Request) -> Response:
        told = {"status": "ok"}
        if access.shows_token(request.headers.raw):
            told = watch.health(service) if watch else health(service)
        return JSONResponse(told, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    return healthz
