"""Run LadybugDB in a process of its own.

The process reads requests from one pipe and writes answers to another. Extra: `ladybug`.

Both directions carry lines of JSON. The first request opens the database. If the pipe ends without a word, the host is
gone. The process then removes the temporary files of the database and ends.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NamedTuple, get_args

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

#: The most address space of one database, in bytes. (LadybugDB's own 8 TiB leave room for only 15 open databases.)
MAX_SIZE = 1 << 40

#: Why there is no answer to a query.
Failure = Literal["refused", "interrupted", "memory", "crashed", "closed", "cancelled", "unavailable"]

#: The types of columns that hold nodes, relationships and paths.
_STORED = {"NODE", "REL", "RECURSIVE_REL"}

#: The words in LadybugDB's messages about memory.
_NO_MEMORY = ("std::bad_alloc", "Unable to allocate memory", "Cannot allocate memory")


class Answer(NamedTuple):
    """The outcome of a query.

    Args:
        columns: The names of the columns.
        stored: Whether a column holds nodes, relationships or paths.
        rows: The rows, as JSON-safe values.
    """

    columns: list[str]
    stored: list[bool]
    rows: list[list[Any]]


class SessionError(Exception):
    """A query has no answer.

    `failure` is the kind of failure, and `reason` the database's own reason.
    """

    def __init__(self, failure: Failure, reason: str) -> None:
        """Keep both."""
        super().__init__(reason)
        self.failure: Failure = failure if failure in get_args(Failure) else "refused"
        self.reason = reason


def execute(connection: ladybug.Connection, query: str, parameters: dict[str, Any], most: int) -> Answer:
    """Run a query and fetch `most` rows of it at most.

    Raises:
        SessionError: If there is no answer.
    """
    try:
        result = connection.execute(query, parameters)
        with result[-1] if isinstance(result, list) else result as only:
            types = only.get_column_data_types()
            stored = [kind.rstrip("[0123456789]") in _STORED for kind in types]
            return Answer(only.get_column_names(), stored, plain(only.get_n(most)))
    except Exception as cause:  # such as a UnicodeDecodeError of text that LadybugDB cut inside a character
        raise SessionError(*_failure(cause)) from cause


def _failure(cause: Exception) -> tuple[Failure, str]:
    reason = str(cause)
    if isinstance(cause, MemoryError) or any(words in reason for words in _NO_MEMORY):
        return "memory", reason
    if reason == "Interrupted.":
        return "interrupted", reason
    return "refused", reason if isinstance(cause, RuntimeError) else f"{type(cause).__name__}: {reason}"


def write_line(pipe: IO[bytes] | None, message: dict[str, Any]) -> None:
    """Write a message as a line."""
    assert pipe
    pipe.write(json.dumps(message).encode("ascii") + b"\n")
    pipe.flush()


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
        write_line(answers, {"failure": "unavailable", "reason": str(cause)})
        return True
    # While loading, several threads would give relationships other ids each time.
    connect = partial(ladybug.Connection, database, num_threads=0 if opening["read_only"] else 1)
    with database:
        with connect() as connection:
            execute(connection, "RETURN 1", {}, 1)  # loads what every query needs
        if memory is not None:
            limit_memory(memory)
        write_line(answers, {"columns": [], "stored": [], "rows": []})
        while request := _read(requests):
            _answer(connect, request, answers)
    return True


def _answer(connect: Callable[[], ladybug.Connection], request: dict[str, Any], answers: BinaryIO) -> None:
    """Answer a query over a connection of its own.

    A connection keeps every statement that it prepared.
    """
    timeout = request["timeout"]
    _end_after(timeout + MARGIN)
    try:
        with connect() as connection:
            # LadybugDB does not look at the time while it plans a query.
            connection.set_query_timeout(max(1, math.ceil(1000 * timeout)))
            answer = execute(connection, request["query"], request["parameters"], request["most"])
        write_line(answers, answer._asdict())
    except SessionError as error:
        write_line(answers, {"failure": error.failure, "reason": error.reason})
    except MemoryError as error:
        write_line(answers, {"failure": "memory", "reason": str(error)})
    _end_after(0)


def _end_after(seconds: float) -> None:
    """Have the system end this process after some seconds.

    This works even if the host is gone by then. 0 stands for no longer.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def limit_memory(more: int) -> None:
    """Limit the memory of this process to its present use and `more` bytes.

    Only Linux counts memory in the necessary way.

    The limit is on the data segment: the address space says nothing, since the database maps a terabyte of addresses.
    """
    if sys.platform != "linux" or resource is None:
        return
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            most = 1024 * int(line.split()[1]) + more
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _read(requests: BinaryIO) -> dict[str, Any]:
    line = requests.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    request: dict[str, Any] = json.loads(line)
    return request
