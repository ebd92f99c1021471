"""A server of HTTP on loopback, in a thread of the test."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from kg_retrievers.serving.listening import CONNECTIONS, address_of, listen


class WebServer:
    """A server while its context is open.

    Args:
        app: What it runs.

    Attributes:
        address: Its URL, with "/" at the end.
        port: Where it listens on 127.0.0.1.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._listening = listen("127.0.0.1", 0)
        self.address = address_of(self._listening)
        self.port: int = self._listening.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="warning", **CONNECTIONS))
        self._thread = threading.Thread(target=self.server.run, args=([self._listening],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + 30
        while not self.server.started:
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.server.should_exit = True
        self._thread.join(15)
        self._listening.close()
        assert not self._thread.is_alive(), "the server does not end"
