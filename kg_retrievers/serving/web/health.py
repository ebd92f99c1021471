"""Whether the server works: for people and for what starts it again where it does not."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

from kg_retrievers.serving.service import GraphService


class Health:
    """What `/healthz` tells.

    Args:
        service: What the server asks.
    """

    def __init__(self, service: GraphService) -> None:
        """Note when the server began."""
        self._began, self._service = time.monotonic(), service

    def told(self) -> dict[str, Any]:
        """Return the state of the server, JSON-safe; nothing that anybody asked."""
        return {
            "status": "ok",
            "version": version("kg-retrievers"),
            "graph": self._service.index.fingerprint,
            "uptime_seconds": round(time.monotonic() - self._began, 1),
        }
