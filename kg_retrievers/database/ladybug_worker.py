"""The process in which LadybugDB runs: reads requests from one pipe, writes answers to another.

Both directions carry frames: 8 bytes with the length, and as many of JSON. The first request opens the database. Where
the pipe ends without a word, the host is gone; then so are the temporary files of the database, and this process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

from kg_retrievers.database.ladybug_session import Answer, LadybugSession, SessionError, open_database

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

#: How many seconds after the timeout of a query the system ends this process, if the host did not.
MARGIN = 2.0

#: The length of a frame.
LENGTH = struct.Struct(">Q")


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
    pages, query_memory = opening["pages"], opening["query_memory"]
    try:
        database = open_database(Path(opening["path"]), pages, read_only=opening["read_only"])
    except SessionError as error:
        _write(answers, {"failure": error.failure, "reason": error.reason})
        return True
    with database:
        session = LadybugSession(database)
        session.execute("RETURN 1", {}, 1, None)  # loads what every query needs
        if query_memory is not None:
            limit_memory(query_memory)
        _write(answers, {"columns": [], "stored": [], "rows": []})
        while request := _read(requests):
            _answer(session, request, answers)
        session.close()
    return True


def _answer(session: LadybugSession, request: dict[str, Any], answers: BinaryIO) -> None:
    timeout = request["timeout"]
    _end_after(timeout)
    try:
        answer: Answer = session.execute(request["query"], request["parameters"], request["most"], timeout)
        message = pack(answer._asdict())
    except SessionError as error:
        message = pack({"failure": error.failure, "reason": error.reason})
    except MemoryError as error:
        message = pack({"failure": "memory", "reason": str(error)})
    answers.write(message)
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


if __name__ == "__main__":
    main()
