"""Servers on loopback that misbehave: they drip, say nothing, cut connections, send garbage, or repeat the key."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable

from loopback import LoopbackServer, ServerOf

#: What a server does with one connection: it is given the socket, and an event that is set when the server stops.
Conduct = Callable[[socket.socket, threading.Event], None]


class MisbehavingServer(LoopbackServer):
    """Lets each connection be treated by a function, in a thread of its own, while its context is open.

    Args:
        conduct: What is done with a connection; it is closed afterwards.
    """

    def __init__(self, conduct: Conduct) -> None:
        """Take a free port."""
        super().__init__(_Handler)
        self.conduct = conduct
        self.reached, self.abandoned = threading.Event(), threading.Event()


class _Handler(socketserver.BaseRequestHandler):
    server: ServerOf[MisbehavingServer]

    def handle(self) -> None:
        owner = self.server.owner
        owner.reached.set()
        try:
            owner.conduct(self.request, owner.stopped)
        except OSError:
            owner.abandoned.set()


def request(connection: socket.socket) -> bytes:
    """Read an HTTP request, headers and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while lengths and len(body) < lengths[0]:
        body += connection.recv(65536)
    return data


def http(content: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """Write an HTTP response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def send(answer: bytes) -> Conduct:
    """Send an HTTP response, whatever was asked."""

    def conduct(connection: socket.socket, stopped: threading.Event) -> None:
        request(connection)
        connection.sendall(answer)

    return conduct


def drip(head: bytes, part: bytes, pause: float = 0.1) -> Conduct:
    """Send the beginning of an HTTP response, and then a part after each pause, without end."""

    def conduct(connection: socket.socket, stopped: threading.Event) -> None:
        request(connection)
        connection.sendall(head)
        while not stopped.wait(pause):
            connection.sendall(part)

    return conduct


def say_nothing(connection: socket.socket, stopped: threading.Event) -> None:
    """Read, and never answer; a client that goes away is noticed."""
    connection.settimeout(0.02)
    while not stopped.is_set():
        try:
            if not connection.recv(65536):
                raise ConnectionResetError
        except TimeoutError:
            continue


def cut(connection: socket.socket, stopped: threading.Event) -> None:
    """Read the request, and close the connection."""
    request(connection)


#: A stream of tokens that never ends, in the protocol of OpenAI, and a plain response that never ends.
ENDLESS_STREAM = drip(
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"word "},"finish_reason":null}]}\n\n',
)
ENDLESS_REPLY = drip(
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n", b" "
)
