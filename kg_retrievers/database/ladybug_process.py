"""A process of its own for LadybugDB, as the host sees it: started, asked, stopped and ended."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from multiprocessing import spawn
from pathlib import Path
from typing import IO, Any, NamedTuple

from kg_retrievers.database.ladybug_session import Answer, Failure, SessionError, cannot_open
from kg_retrievers.database.ladybug_worker import LENGTH, pack
from kg_retrievers.errors import DatabaseUnavailableError

#: How many seconds a process may take to start and to open its database.
STARTUP = 120.0

#: How many seconds after its timeout a query that LadybugDB does not stop is ended with its process.
MARGIN = 0.25

#: How many seconds the host waits for a process that it killed; the system may free the memory later.
KILL_WAIT = 1.0

#: The part of the memory of a query that its answer may take on its way to the host: there it takes several times that.
ANSWER_PART = 8

#: The largest answer where memory has no limit, in bytes.
MAX_ANSWER = 1 << 27

#: How many bytes are read or written at once.
_CHUNK = 1 << 20

#: Whether the system can wait for a pipe; where it cannot, a timer ends the process.
WAITS_FOR_PIPES = hasattr(select, "poll")

#: What a new process runs: it finds the modules where this one does.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from kg_retrievers.database import ladybug_worker as w; w.main()"


class Opening(NamedTuple):
    """What a process opens, and within which limits.

    Args:
        path: The file of the database.
        max_memory: The most bytes that queries may take; None for no limit.
        temporary: A folder that the process removes if it finds its host gone; "" for none.
        read_only: Whether the database refuses to be written.
        name: The file as errors name it; "" for its path.
    """

    path: Path
    max_memory: int | None
    temporary: str = ""
    read_only: bool = True
    name: str = ""

    @property
    def shown(self) -> str:
        """The file as errors name it."""
        return repr(self.name or str(self.path))


class ProcessSession:
    """A process that runs one query at a time. It ends with whatever goes wrong in it.

    Args:
        opening: What it opens.
    """

    def __init__(self, opening: Opening) -> None:
        """Start the process, and have it open the database meanwhile."""
        self._opening = opening
        self._ready = False
        self._stopped: Failure | None = None
        self._most = opening.max_memory // ANSWER_PART if opening.max_memory else MAX_ANSWER
        self._latest_ready = time.monotonic() + STARTUP
        self._process = _start()
        self._end = weakref.finalize(self, _end, self._process)  # at the latest when the host ends
        self._into, self._out = (pipe.fileno() for pipe in _pipes(self._process))
        if WAITS_FOR_PIPES:
            os.set_blocking(self._into, False)
        half = None if opening.max_memory is None else opening.max_memory // 2  # for pages, and for all else
        request = {"path": str(opening.path), "pages": half, "query_memory": half}
        request |= {"temporary": opening.temporary, "read_only": opening.read_only}
        with suppress(OSError, TimeoutError):  # `wait_until_ready` says why
            self._send(pack(request), self._latest_ready)

    def wait_until_ready(self, until: float = math.inf) -> None:
        """Wait until the database is open.

        Args:
            until: When the wait ends, on the monotonic clock; the process goes on starting.

        Raises:
            SessionError: If it is not open by then.
            DatabaseUnavailableError: If it cannot be opened.
        """
        if self._ready:
            return
        if until < self._latest_ready:
            try:
                _wait(self._out, "POLLIN", until)
            except TimeoutError:
                raise SessionError("interrupted", "its process was still starting") from None
        try:
            self._ask(None, max(0.0, self._latest_ready - time.monotonic()))
        except SessionError as error:
            self.close()
            if error.failure == "unavailable":
                raise cannot_open(self._opening.shown, error.reason) from None
            raise DatabaseUnavailableError(
                f"LadybugExecutor: {self._opening.shown} cannot be opened: the process that was to open it ended "
                f"({error.reason}). The file may be damaged, or be of another version: make it again."
            ) from error
        self._ready = True

    @property
    def usable(self) -> bool:
        """Whether the process lives."""
        return self._end.alive and self._process.poll() is None

    def execute(self, query: str, parameters: dict[str, Any], most: int, timeout: float | None) -> Answer:
        """Run a query; see `LadybugSession.execute`. One that does not stop is ended with the process.

        The timeout counts from now: the start of a process that has just been replaced is part of it.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        self.wait_until_ready(until)
        left = None if timeout is None else max(0.0, until - time.monotonic())
        request = {"query": query, "parameters": parameters, "most": most, "timeout": left}
        try:
            return self._ask(request, None if left is None else left + MARGIN)
        except SessionError as error:
            if error.failure == "memory":
                self.close()  # the next query shall find all of its memory
            raise

    def stop(self, failure: Failure) -> None:
        """End the process, from any thread."""
        self._stopped = self._stopped or failure
        with suppress(OSError):
            self._process.kill()

    def finish(self) -> None:
        """Let the process close its database, then end it."""
        with suppress(SessionError):
            self._ask({}, STARTUP)
        self.close()

    def close(self) -> None:
        """End the process; nothing is lost, since it only reads."""
        self._end()

    def abandon(self) -> None:
        """Let go of a process that belongs to the process of which this one is a fork."""
        self._end.detach()
        _close_pipes(self._process)
        self._process.returncode = 0  # it is not this process's to wait for

    def _ask(self, request: dict[str, Any] | None, seconds: float | None) -> Answer:
        """Send a request, if there is one, and wait for an answer."""
        until = None if seconds is None else time.monotonic() + seconds
        timer: threading.Timer | None = None
        if seconds is not None and not WAITS_FOR_PIPES:
            timer = threading.Timer(seconds, self.stop, ["interrupted"])
            timer.start()
        try:
            if request is not None:
                self._send(pack(request), until)
            return _answer_in(self._received(until))
        except SessionError:
            raise
        except _UnreadableError as error:
            self.close()
            raise SessionError("crashed", str(error)) from error
        except TimeoutError:
            self.stop("interrupted")
            self.close()
            raise SessionError("interrupted", "it did not stop in time") from None
        except (OSError, EOFError):
            ended = self._how_it_ended()
            late: Failure | None = "interrupted" if ended == "SIGALRM" else None
            raise SessionError(self._stopped or late or "crashed", ended) from None
        except BaseException:  # such as Ctrl-C: the query shall not run on
            self.close()
            raise
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()

    def _send(self, data: bytes, until: float | None) -> None:
        rest = memoryview(data)
        while rest:
            _wait(self._into, "POLLOUT", until)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._into, rest[:_CHUNK]) :]

    def _received(self, until: float | None) -> bytes:
        (length,) = LENGTH.unpack(self._read(LENGTH.size, until))
        if length > self._most:
            self.close()
            raise SessionError("memory", f"its answer has {length:,} bytes, of at most {self._most:,}")
        return self._read(length, until)

    def _read(self, length: int, until: float | None) -> bytes:
        parts = []
        while length:
            _wait(self._out, "POLLIN", until)
            part = os.read(self._out, min(length, _CHUNK))
            if not part:
                raise EOFError
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        if code is not None and code < 0:
            with suppress(ValueError):
                return signal.Signals(-code).name
        return f"exit status {code}"


class _UnreadableError(Exception):
    """What came is no answer."""


def _answer_in(data: bytes) -> Answer:
    """Read an answer. The process that wrote it ran what it was given: nothing in it is taken on trust."""
    try:
        message = json.loads(data)
        if "failure" in message:
            raise SessionError(message["failure"], str(message["reason"]))
        answer = Answer(message["columns"], message["stored"], message["rows"])
        width = len(answer.columns)
        fits = len(answer.stored) == width and all(len(row) == width for row in answer.rows)
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise _UnreadableError(f"it answered what cannot be read ({type(cause).__name__})") from cause
    if not fits or not all(isinstance(name, str) for name in answer.columns):
        raise _UnreadableError("it answered rows and columns that do not fit")
    return answer


def _wait(pipe: int, event: str, until: float | None) -> None:
    if not WAITS_FOR_PIPES:
        return
    poll = select.poll()
    poll.register(pipe, getattr(select, event))
    left = None if until is None else max(0.0, 1000 * (until - time.monotonic()))
    if not poll.poll(left):
        raise TimeoutError


def _start() -> subprocess.Popen[bytes]:
    """Start a process. `multiprocessing` would run the module of the host's main program in it once more."""
    executable = os.fsdecode(spawn.get_executable() or sys.executable or "python")
    paths = [path or os.getcwd() for path in sys.path]
    with STARTING:
        return subprocess.Popen(
            [executable, "-c", _PROGRAM, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )


#: Held while a process is started: a fork in between would keep its pipes open.
STARTING = threading.Lock()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILL_WAIT)
    _close_pipes(process)


def _pipes(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [pipe for pipe in (process.stdin, process.stdout) if pipe is not None]


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in _pipes(process):
        with suppress(OSError):
            pipe.close()
