"""Serves connections on loopback, each in a thread of its own, while a context is open."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Generic, Self, TypeVar

Owner = TypeVar("Owner", bound="LoopbackServer")


class LoopbackServer:
    """Takes a free port, and answers once its context is entered.

    Args:
        handler: What answers one connection; it finds this object as `self.server.owner`.
    """

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        """Take a free port."""
        #: Set when the server stops.
        self.stopped = threading.Event()
        self._server: ServerOf[Self] = ServerOf(("127.0.0.1", 0), handler)
        self._server.owner = self
        # shutdown() waits for the next poll, so poll often
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.server_address[1]
        return port

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop to answer, delayed requests included, and free the port."""
        self.stop()

    def stop(self) -> None:
        """Take no more connections."""
        if not self.stopped.is_set():
            self.stopped.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class ServerOf(socketserver.ThreadingTCPServer, Generic[Owner]):
    """The server of a `LoopbackServer`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    owner: Owner
