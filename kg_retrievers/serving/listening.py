"""Listens on an address, and runs an application there."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.serving.access import App
from kg_retrievers.serving.connections import CONNECTIONS
from kg_retrievers.serving.runs import without_questions_in_logs

try:
    import uvicorn
except ImportError as cause:
    raise MissingExtraError("listening for HTTP", "serve") from cause

# What to do next, in Python and on the shell, where the port cannot be had, and where the address cannot.
_OTHER_PORT = ("Choose another port; 0 is a free one.", "Choose another: --port 0 for a free one.")
_OTHER_HOST = ("Give an address of this machine, as 127.0.0.1.", "Give one of this machine: --host 127.0.0.1.")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Args:
        host: The address or name.
        port: The port; 0 for a free one.

    Raises:
        InvalidArgumentError: If the address is none of this machine, or its port is taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS["backlog"])
    except OSError as error:
        is_of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        python, shell = _OTHER_PORT if is_of_port else _OTHER_HOST
        message = f"cannot listen on {host} at port {port}: {error.strerror or error}."
        raise InvalidArgumentError(message, hint_python=python, hint_shell=shell) from error


def address_of(listening: socket.socket) -> str:
    """Return the URL of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run_server(app: App, listening: socket.socket, ready: Callable[[], object] = lambda: None) -> None:
    """Answer requests until the process is interrupted.

    Args:
        app: An ASGI application that takes part in the lifespan protocol, as all of Starlette do.
        listening: Where it listens.
        ready: Called once it answers.
    """
    config = uvicorn.Config(app, log_level="warning", lifespan="on", **CONNECTIONS)
    server = _Server(config, ready)
    with listening, without_questions_in_logs():
        server.run([listening])


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
