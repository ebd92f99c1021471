"""Whether the server works: for people, and for what starts it again where it does not."""

from __future__ import annotations

from time import monotonic
from typing import Any

from kg_retrievers.serving.service import GraphService
from kg_retrievers.telemetry import Counts, health


class Health:
    """What `/healthz` tells.

    Args:
        service: What the server asks.
        counts: Counts what it does, if anything does.
    """

    def __init__(self, service: GraphService, counts: Counts | None) -> None:
        """Note when the server began."""
        self._began, self._service, self._counts = monotonic(), service, counts

    def told(self) -> dict[str, Any]:
        """Return how the server is, as JSON takes it; nothing that anybody asked."""
        told = {**health(self._service), "index": self._service.index.fingerprint}
        told["uptime_seconds"] = round(monotonic() - self._began, 1)
        return told if self._counts is None else told | {"counts": self._counts.snapshot()}
