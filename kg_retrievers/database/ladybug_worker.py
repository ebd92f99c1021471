"""The process in which LadybugDB runs: reads requests from one pipe, writes answers to another. Extra: `ladybug`.

Both directions carry frames: 8 bytes with the length, and as many of JSON. The first request opens the database. If
the pipe ends without a word, the host is gone. The process then removes the temporary files of the database and ends.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

from kg_retrievers.database.plain_values import plain
from kg_retrievers.errors import MissingExtraError

try:
    import ladybug
except ImportError as cause:
    raise MissingExtraError("LadybugExecutor", "ladybug") from cause
try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

#: How many seconds after the timeout of a query the system ends this process, if the host did not.
MARGIN = 2.0

#: The length of a frame.
LENGTH = struct.Struct(">Q")

#: The most address space of one database, in bytes. (LadybugDB's own 8 TiB leave room for only 15 open databases.)
MAX_SIZE = 1 << 40

#: After so many queries a connection is replaced, since it keeps every statement that it ever prepared: about 2 MB for
#: a query of several MATCH clauses.
QUERIES_OF_A_CONNECTION = 100

#: Why there is no answer to a query.
Failure = Literal["refused", "interrupted", "memory", "crashed", "closed", "cancelled", "unavailable"]

#: The types of columns that hold nodes, relationships and paths.
_STORED = {"NODE", "REL", "RECURSIVE_REL"}

#: What stands in LadybugDB's messages about memory.
_NO_MEMORY = ("std::bad_alloc", "Unable to allocate memory", "Cannot allocate memory")


class Answer(NamedTuple):
    """What came of a query.

    Args:
        columns: The names of the columns.
        stored: Whether a column holds nodes, relationships or paths.
        rows: The rows, as JSON-safe values.
    """

    columns: list[str]
    stored: list[bool]
    rows: list[list[Any]]


class SessionError(Exception):
    """A query has no answer: what kind of `failure` it is, and the database's own `reason`."""

    def __init__(self, failure: Failure, reason: str) -> None:
        """Keep both."""
        super().__init__(reason)
        self.failure: Failure = failure if failure in get_args(Failure) else "refused"
        self.reason = reason


class LadybugSession:
    """Runs queries over a connection to an open database.

    Args:
        database: The database, which outlives this session.
    """

    def __init__(self, database: ladybug.Database) -> None:
        """Connect."""
        self._database = database
        self._connection = ladybug.Connection(database)
        self._queries = 0

    def execute(self, query: str, parameters: dict[str, Any], most: int, timeout: float | None) -> Answer:
        """Run a query, fetch `most` rows of it at most, and stop it after `timeout` seconds, if there are any.

        LadybugDB does not look at the time while it plans a query.

        Raises:
            SessionError: If there is no answer.
        """
        if self._queries == QUERIES_OF_A_CONNECTION:
            self._reconnect()
        self._queries += 1
        self._connection.set_query_timeout(0 if timeout is None else max(1, math.ceil(1000 * timeout)))
        try:
            return self._executed(query, parameters, most)
        except Exception as cause:  # such as a UnicodeDecodeError of text that LadybugDB cut inside a character
            failure, reason = self._failure(cause)
            if failure != "memory" or self._queries == 1:
                raise SessionError(failure, reason) from cause
        self._reconnect()  # the memory may be that of earlier statements
        return self.execute(query, parameters, most, timeout)

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection, self._queries = ladybug.Connection(self._database), 0

    def _executed(self, query: str, parameters: dict[str, Any], most: int) -> Answer:
        result = self._connection.execute(query, parameters)
        with result[-1] if isinstance(result, list) else result as only:
            types = only.get_column_data_types()
            stored = [kind.rstrip("[0123456789]") in _STORED for kind in types]
            return Answer(only.get_column_names(), stored, plain(only.get_n(most)))

    @staticmethod
    def _failure(cause: Exception) -> tuple[Failure, str]:
        reason = str(cause)
        if isinstance(cause, MemoryError) or any(words in reason for words in _NO_MEMORY):
            return "memory", reason
        if reason == "Interrupted.":
            return "interrupted", reason
        return "refused", reason if isinstance(cause, RuntimeError) else f"{type(cause).__name__}: {reason}"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def pack(message: dict[str, Any]) -> bytes:
    """Return a message as a frame.

    Example:
        >>> len(pack({"a": 1}))
        16
    """
    text = json.dumps(message).encode("ascii")
    return LENGTH.pack(len(text)) + text


def main() -> None:
    """Serve the host until it ends the conversation."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's, which ends this process then
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file
    temporary = ""
    try:
        opening = _read(requests)
        temporary = opening["temporary"]
        served = _serve(opening, requests, answers)
    except (EOFError, OSError):
        served = False
    if not served and temporary:
        shutil.rmtree(temporary, ignore_errors=True)


def _serve(opening: dict[str, Any], requests: BinaryIO, answers: BinaryIO) -> bool:
    """Open the database, then answer until the host says that it is done."""
    memory = opening["memory"]
    try:
        database = ladybug.Database(
            opening["path"],
            buffer_pool_size=memory or 0,  # 0 for 80 % of the machine's memory
            max_db_size=MAX_SIZE,
            read_only=opening["read_only"],
            auto_checkpoint=False,  # while loading, one at the end is ten times faster
        )
    except Exception as cause:  # of a damaged file LadybugDB reports all sorts of errors
        _write(answers, {"failure": "unavailable", "reason": str(cause)})
        return True
    with database:
        session = LadybugSession(database)
        session.execute("RETURN 1", {}, 1, None)  # loads what every query needs
        if memory is not None:
            limit_memory(memory)
        _write(answers, {"columns": [], "stored": [], "rows": []})
        while request := _read(requests):
            _answer(session, request, answers)
        session.close()
    return True


def _answer(session: LadybugSession, request: dict[str, Any], answers: BinaryIO) -> None:
    timeout = request["timeout"]
    _end_after(timeout)
    try:
        frame = pack(session.execute(request["query"], request["parameters"], request["most"], timeout)._asdict())
    except SessionError as error:
        frame = pack({"failure": error.failure, "reason": error.reason})
    except MemoryError as error:
        frame = pack({"failure": "memory", "reason": str(error)})
    answers.write(frame)
    answers.flush()
    _end_after(None)


def _end_after(timeout: float | None) -> None:
    """Have the system end this process some time after a timeout, even if the host is gone by then."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0 if timeout is None else timeout + MARGIN)


def limit_memory(more: int) -> None:
    """Limit the memory of this process to what it takes now and `more` bytes. Only Linux counts it as is needed here.

    The limit is on the data segment: the address space says nothing, since the database maps a terabyte of addresses.
    """
    if sys.platform != "linux" or resource is None:
        return
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            most = 1024 * int(line.split()[1]) + more
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _read(requests: BinaryIO) -> dict[str, Any]:
    length = requests.read(LENGTH.size)
    if len(length) < LENGTH.size:
        raise EOFError
    (wanted,) = LENGTH.unpack(length)
    text = requests.read(wanted)
    if len(text) < wanted:
        raise EOFError
    request: dict[str, Any] = json.loads(text)
    return request


def _write(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(pack(message))
    answers.flush()
