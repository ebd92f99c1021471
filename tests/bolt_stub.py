"""A small server on loopback that speaks Bolt 5.4, the protocol of Neo4j, and follows a script."""

from __future__ import annotations

import re
import socket
import socketserver
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from loopback import LoopbackServer, ServerOf
from neo4j._codec import packstream
from neo4j._codec.packstream.v1 import PackableBuffer, Packer, UnpackableBuffer, Unpacker

HELLO, GOODBYE, RESET, RUN, DISCARD, PULL, ROUTE, LOGON = 0x01, 0x02, 0x0F, 0x10, 0x2F, 0x3F, 0x66, 0x6A
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F

UNAUTHORIZED = ("Neo.ClientError.Security.Unauthorized", "The client is unauthorized due to authentication failure.")
TIMED_OUT = (
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
    "The transaction has been terminated. Retry your operation in a new transaction.",
)
SYNTAX = "Neo.ClientError.Statement.SyntaxError"


class Structure(packstream.Structure):
    """A PackStream structure: a tag and fields."""

    def __init__(self, tag: int, fields: Sequence[Any]) -> None:
        super().__init__(bytes([tag]), *fields)


def node(id: int, labels: Sequence[str], **properties: Any) -> Structure:
    """A node, as Neo4j sends it."""
    return Structure(ord("N"), (id, list(labels), properties, f"4:db:{id}"))


def relationship(id: int, start: int, type: str, end: int, **properties: Any) -> Structure:
    """A relationship, as Neo4j sends it: with the ids of its ends, and nothing else of them."""
    ids = (f"5:db:{id}", f"4:db:{start}", f"4:db:{end}")
    return Structure(ord("R"), (id, start, end, type, properties, *ids))


def path(nodes: Sequence[Structure], steps: Sequence[tuple[Structure, bool]]) -> Structure:
    """A path over nodes by relationships, each with whether it is crossed forwards."""
    unbound = [Structure(ord("r"), (r.fields[0], r.fields[3], r.fields[4], r.fields[5])) for r, _ in steps]
    indices = [index for i, (_, forwards) in enumerate(steps, 1) for index in (i if forwards else -i, i)]
    return Structure(ord("P"), (list(nodes), unbound, indices))


@dataclass(frozen=True)
class Reply:
    """What a query gets.

    Args:
        columns: The columns.
        rows: The rows, or what makes them one by one.
        type: What the summary says the query is: "r", "rw", "w" or "s".
        failure: A code and message instead.
        notifications: What the summary notes, as pairs of code and description.
        hangs: Whether there is never an answer, not even to a timeout.
        slow: Whether there is none but the one to a timeout.
    """

    columns: Sequence[str] = ()
    rows: Iterable[Sequence[Any]] | Callable[[], Iterator[Sequence[Any]]] = ()
    type: str = "r"
    failure: tuple[str, str] | None = None
    notifications: Sequence[tuple[str, str]] = ()
    hangs: bool = False
    slow: bool = False


@dataclass(frozen=True)
class Request:
    """A query as it came."""

    query: str
    parameters: dict[str, Any]
    extra: dict[str, Any]


Script = Callable[[str, dict[str, Any]], Reply | None]


@dataclass
class BoltStub(LoopbackServer):
    """Answers queries by a script while its context is open, each connection in a thread of its own.

    Args:
        script: From query and parameters to a reply; None is a syntax error.
        user: The one user who is let in; None lets everybody in.
        password: The user's password.
    """

    script: Script
    user: str | None = None
    password: str = ""
    #: The queries so far, and how many rows were sent.
    requests: list[Request] = field(default_factory=list)
    rows_sent: int = 0
    connections: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take a free port."""
        super().__init__(_Handler)

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"bolt://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Close all connections and take no more."""
        super().stop()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def queries(self) -> list[str]:
        """The texts of the queries so far."""
        return [request.query for request in self.requests]


def by_pattern(*replies: tuple[str, Reply]) -> Script:
    """A script of regular expressions; the first that is found in a query counts.

    EXPLAIN gets the type alone, unless the expression begins with it.
    """

    def script(query: str, parameters: dict[str, Any]) -> Reply | None:
        for expression, reply in replies:
            if re.search(expression, query):
                if query.startswith("EXPLAIN ") and reply.failure is None and not expression.startswith("^EXPLAIN"):
                    return Reply(reply.columns, type=reply.type)
                return reply
        return None

    return script


class _FailedError(Exception):
    """A request that gets a FAILURE."""


class _Handler(socketserver.BaseRequestHandler):
    server: ServerOf[BoltStub]

    def handle(self) -> None:
        self.stub = self.server.owner
        self.stub.connections.append(self.request)
        self.failed = False
        self.rows: Iterator[Sequence[Any]] = iter(())
        self.reply = Reply()
        try:
            magic, *_ = struct.unpack(">I16s", read(self.request, 20))
            assert magic == 0x6060B017
            self.request.sendall(bytes([0, 0, 4, 5]))
            while True:
                tag, fields = receive(self.request)
                if tag == GOODBYE:
                    return
                self.answer(tag, fields)
        except ConnectionError:
            return

    def answer(self, tag: int, fields: list[Any]) -> None:
        if tag == RESET:
            self.failed, self.rows = False, iter(())
            self.send(SUCCESS, {})
        elif self.failed:
            self.send(IGNORED)
        else:
            try:
                self.send(SUCCESS, self.done(tag, fields))
            except _FailedError as failure:
                code, message = failure.args
                self.failed = True
                self.send(FAILURE, {"code": code, "message": message})

    def done(self, tag: int, fields: list[Any]) -> dict[str, Any]:
        """Do what a request asks, and return what its SUCCESS says."""
        match tag:
            case _ if tag == HELLO:
                return {"server": "Neo4j/5.26.0", "connection_id": "bolt-1", "hints": {}}
            case _ if tag == LOGON:
                name, password = fields[0].get("principal"), fields[0].get("credentials")
                if self.stub.user is not None and (name, password) != (self.stub.user, self.stub.password):
                    raise _FailedError(*UNAUTHORIZED)
            case _ if tag == RUN:
                return self.run(*fields)
            case _ if tag == PULL:
                return self.pull(fields[0]["n"])
            case _ if tag == DISCARD:
                self.rows = iter(())
                return self.pull(1)
            case _ if tag == ROUTE:
                address = "{}:{}".format(*self.request.getsockname())
                servers = [{"addresses": [address], "role": role} for role in ("READ", "WRITE", "ROUTE")]
                return {"rt": {"ttl": 300, "db": "neo4j", "servers": servers}}
        return {}

    def run(self, query: str, parameters: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
        self.stub.requests.append(Request(query, parameters, extra))
        reply = self.stub.script(query, parameters)
        if reply is None:
            raise _FailedError(SYNTAX, f"Invalid input {query[:20]!r}")
        if reply.hangs or reply.slow:
            timeout = extra.get("tx_timeout")
            self.stub.stopped.wait(None if reply.hangs or timeout is None else timeout / 1000)
            raise _FailedError(*TIMED_OUT)
        if reply.failure:
            raise _FailedError(*reply.failure)
        self.reply = reply
        self.rows = iter(reply.rows() if callable(reply.rows) else reply.rows)
        return {"fields": list(reply.columns), "t_first": 1}

    def pull(self, count: int) -> dict[str, Any]:
        while count:
            row = next(self.rows, None)
            if row is None:
                notes = [
                    {"code": code, "title": "", "description": text, "severity": "WARNING", "category": "UNRECOGNIZED"}
                    for code, text in self.reply.notifications
                ]
                return {"type": self.reply.type, "t_last": 1, "db": "neo4j"} | (
                    {"notifications": notes} if notes else {}
                )
            self.send(RECORD, list(row))
            self.stub.rows_sent += 1
            count -= 1
        return {"has_more": True}

    def send(self, tag: int, *fields: Any) -> None:
        self.request.sendall(message(tag, *fields))


def pack(value: Any) -> bytes:
    """Write a value in PackStream, as the driver does."""
    buffer = PackableBuffer()
    Packer(buffer).pack(value)
    return bytes(buffer.data)


def chunked(data: bytes) -> bytes:
    """Return data as a message."""
    chunks = (data[i : i + 0xFFFF] for i in range(0, len(data), 0xFFFF))
    return b"".join(struct.pack(">H", len(chunk)) + chunk for chunk in chunks) + b"\0\0"


def message(tag: int, *fields: Any) -> bytes:
    """Return a structure as a message."""
    return chunked(pack(Structure(tag, fields)))


def read(connection: socket.socket, size: int) -> bytes:
    """Read some bytes."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


def receive(connection: socket.socket) -> tuple[int, list[Any]]:
    """Read a message: the tag and the fields of a structure."""
    data, size = b"", 1
    while not data or size:
        (size,) = struct.unpack(">H", read(connection, 2))
        data += read(connection, size)
    structure = Unpacker(UnpackableBuffer(data)).unpack()
    return structure.tag[0], structure.fields
