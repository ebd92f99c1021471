"""Keeps connections that say nothing from holding up others: uvicorn itself lets them stay for ever."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

from kg_retrievers.errors import MissingExtraError

try:
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState
except ImportError as cause:
    raise MissingExtraError("listening for HTTP", "serve") from cause

#: How many seconds a client has to send the head of a request.
HEAD_SECONDS = 10.0

#: How many connections may say nothing at once; the one that has said nothing longest makes room for another.
MOST_SILENT = 256

#: The most bytes of the head of a request.
HEAD_BYTES = 16_384

#: The connections of each server whose request is not there yet, the one that has waited longest first.
_SILENT: WeakKeyDictionary[ServerState, dict[Connection, None]] = WeakKeyDictionary()


class Connection(H11Protocol):
    """A connection that ends where the head of a request does not come in time, or too many others wait for theirs."""

    _over: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends, and wait on where it is no whole head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._waited()
        elif self._over is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._waited()
        super().connection_lost(exc)

    @property
    def _silent(self) -> dict[Connection, None]:
        return _SILENT.setdefault(self.server_state, {})

    def _wait(self) -> None:
        silent = self._silent
        if len(silent) >= MOST_SILENT:
            next(iter(silent))._end()
        silent[self] = None
        self._over = self.loop.call_later(HEAD_SECONDS, self._end)

    def _waited(self) -> None:
        self._silent.pop(self, None)
        if self._over is not None:
            self._over.cancel()
            self._over = None

    def _end(self) -> None:
        self._waited()
        self.transport.abort()


#: How a server of uvicorn treats its connections: arguments of `uvicorn.Config`.
CONNECTIONS: dict[str, Any] = {
    "http": Connection,
    "ws": "none",
    "h11_max_incomplete_event_size": HEAD_BYTES,
    "timeout_keep_alive": 5,
    "timeout_graceful_shutdown": 3,
    "backlog": 512,
    "access_log": False,  # it would keep what people ask
    "server_header": False,
    "proxy_headers": False,
}
