"""LadybugDB's own processes, as the host sees them: started, asked, stopped, ended and replaced."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import spawn
from pathlib import Path
from typing import Any, NamedTuple

from kg_retrievers.database.executor import RAISE_TIMEOUT
from kg_retrievers.database.ladybug_worker import Answer, Failure, SessionError, write_line
from kg_retrievers.deadline import check_deadline, seconds_left, stopped_when_given_up
from kg_retrievers.errors import DatabaseTimeoutError, DatabaseUnavailableError

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

#: How many queries run side by side, each in a process of its own.
PROCESSES = 4

#: What a new process runs: it finds the modules where this one does.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from kg_retrievers.database import ladybug_worker as w; w.main()"


class Opening(NamedTuple):
    """What a process opens, and within which limits.

    Args:
        path: The file of the database.
        max_memory: The most bytes that queries may take; None for no limit.
        temporary: A folder that the process removes if it finds its host gone; "" for none.
        read_only: Whether the database refuses to be written.
    """

    path: Path
    max_memory: int | None
    temporary: str = ""
    read_only: bool = True


class ProcessSession:
    """A process that runs one query at a time. It ends with whatever goes wrong in it.

    A timer ends a process that does not answer in time, whatever it is doing then.

    Args:
        opening: What it opens.
    """

    def __init__(self, opening: Opening) -> None:
        """Start the process, and have it open the database meanwhile."""
        self._opening = opening
        self._stopped: Failure | None = None
        self._most = opening.max_memory // ANSWER_PART if opening.max_memory else MAX_ANSWER
        self._process = _start()
        self._end = weakref.finalize(self, _end, self._process, os.getpid())  # at the latest when the host ends
        self._opened = Future[Answer]()
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        half = None if self._opening.max_memory is None else self._opening.max_memory // 2  # for pages, and all else
        request = self._opening._asdict() | {"path": str(self._opening.path), "memory": half}
        try:
            self._opened.set_result(self._ask(request, STARTUP))
        except SessionError as error:
            self._opened.set_exception(error)

    def wait_until_ready(self, seconds: float = math.inf) -> None:
        """Wait until the database is open, at most some seconds; the process goes on starting.

        Raises:
            SessionError: If it is not open by then.
            DatabaseUnavailableError: If it cannot be opened.
        """
        who = f"LadybugExecutor: {str(self._opening.path)!r} cannot be opened"
        try:
            self._opened.result(min(seconds, threading.TIMEOUT_MAX))
        except TimeoutError:
            raise SessionError("interrupted", "its process was still starting") from None
        except SessionError as error:
            self.close()
            if error.failure == "unavailable":
                told = f"{who}: {error.reason} Close it where it is written, or make it again."
            else:
                told = f"{who}: the process that was to open it ended ({error.reason}). The file may be damaged, or "
                told += "be of another version: make it again."
            raise DatabaseUnavailableError(told) from None

    @property
    def usable(self) -> bool:
        """Whether the process lives, and nobody stopped it."""
        return self._stopped is None and self._end.alive and self._process.poll() is None

    def execute(self, query: str, parameters: dict[str, Any], most: int, timeout: float | None) -> Answer:
        """Run a query; see `LadybugSession.execute`. One that does not stop is ended with the process.

        The timeout counts from now: the start of a process that has just been replaced is part of it.
        """
        until = time.monotonic() + (math.inf if timeout is None else timeout)
        self.wait_until_ready(until - time.monotonic())
        left = max(0.0, until - time.monotonic())
        limit = None if timeout is None else left
        request = {"query": query, "parameters": parameters, "most": most, "timeout": limit}
        return self._ask(request, left + MARGIN)

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

    def _ask(self, request: dict[str, Any], seconds: float) -> Answer:
        """Send a request, and wait for its answer; end the process if there is none in time."""
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self.stop, ["interrupted"])
        timer.daemon = True
        timer.start()
        try:
            write_line(self._process.stdin, request)
            return _answer_in(self._received())
        except SessionError as error:
            if error.failure in ("crashed", "memory"):
                self.close()  # what it goes on to say cannot be read, and the next query shall find all of its memory
            raise
        except (OSError, EOFError, ValueError):  # of a pipe that ended, or was closed meanwhile
            ended = self._how_it_ended()
            late: Failure | None = "interrupted" if ended == "SIGALRM" else None
            raise SessionError(self._stopped or late or "crashed", ended) from None
        except BaseException:  # such as Ctrl-C: the query shall not run on
            self.close()
            raise
        finally:
            timer.cancel()
            timer.join()

    def _received(self) -> bytes:
        assert self._process.stdout
        line = self._process.stdout.readline(self._most + 1)
        if len(line) > self._most:
            raise SessionError("memory", f"its answer has more than {self._most:,} bytes")
        if not line.endswith(b"\n"):
            raise EOFError
        return line

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
        raise SessionError("crashed", f"it answered what cannot be read ({type(cause).__name__})") from cause
    if not fits or not all(isinstance(name, str) for name in answer.columns):
        raise SessionError("crashed", "it answered rows and columns that do not fit")
    return answer


def _start() -> subprocess.Popen[bytes]:
    """Start a process. `multiprocessing` would run the module of the host's main program in it once more."""
    executable = os.fsdecode(spawn.get_executable() or sys.executable or "python")
    paths = [path or os.getcwd() for path in sys.path]
    return subprocess.Popen(
        [executable, "-c", _PROGRAM, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process, unless this is a fork of the one that started it, and let go of it."""
    if os.getpid() == owner:
        with suppress(OSError):
            process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_WAIT)
    process.returncode = process.returncode or 0  # nobody waits for it any longer
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


class SessionPool:
    """Hands out sessions, each to one query at a time. A fork of the process starts with none.

    Args:
        opening: What is opened.

    Raises:
        DatabaseUnavailableError: If the database cannot be opened.
    """

    def __init__(self, opening: Opening) -> None:
        """Start the first session."""
        self._opening, self._closed = opening, False
        self._start_afresh()
        session = ProcessSession(opening)
        session.wait_until_ready()
        self._idle.append(session)

    def _start_afresh(self) -> None:
        self._owner, self._changed = os.getpid(), threading.Condition()
        self._idle: list[ProcessSession] = []
        self._busy: list[ProcessSession] = []

    def _own(self) -> threading.Condition:
        """Return the lock of this process; a fork forgets the sessions of the process that it was."""
        if os.getpid() != self._owner:
            self._opening = self._opening._replace(temporary="")  # the other process removes it
            self._start_afresh()
        return self._changed

    @contextmanager
    def session(self, timeout: float) -> Iterator[ProcessSession]:
        """Hand out a session, once fewer than `PROCESSES` are in use.

        Raises:
            DatabaseUnavailableError: If the database is closed, or cannot be opened again.
            DatabaseTimeoutError: If all are in use for `timeout` seconds.
            KGRetrieversError: The error of the deadline of this context, if it comes first or is given up.
        """
        session = self._free_session(timeout)
        try:
            with stopped_when_given_up(partial(session.stop, "cancelled")):
                yield session
        finally:
            with self._own():
                self._put_back(session)
                self._changed.notify_all()

    def _free_session(self, timeout: float) -> ProcessSession:
        changed = self._own()

        def is_free() -> bool:
            check_deadline()
            return self._closed or len(self._busy) < PROCESSES

        def wake() -> None:
            with changed:
                changed.notify_all()

        with stopped_when_given_up(wake), changed:
            found = changed.wait_for(is_free, min(timeout, seconds_left()))
            if self._closed:
                raise DatabaseUnavailableError(
                    f"LadybugExecutor({str(self._opening.path)!r}) is closed. Open it again."
                )
            if not found:
                told = f"LadybugExecutor: {PROCESSES} other queries took longer than {timeout:g} s."
                raise DatabaseTimeoutError(told, **RAISE_TIMEOUT)
            session = self._idle.pop() if self._idle else ProcessSession(self._opening)
            if not session.usable:  # somebody ended its process
                session.close()
                session = ProcessSession(self._opening)
            self._busy.append(session)
        return session

    def _put_back(self, session: ProcessSession) -> None:
        if session in self._busy:
            self._busy.remove(session)
        if not session.usable and not self._closed:
            session.close()
            session = ProcessSession(self._opening)  # it starts while nobody waits for it
        if self._closed:
            session.close()
        else:
            self._idle.append(session)

    def stop(self, failure: Failure) -> None:
        """Stop the queries that run now."""
        with self._own():
            for session in self._busy:
                session.stop(failure)

    def close(self) -> None:
        """Stop the queries that run, and end all sessions."""
        self._closed = True
        self.stop("closed")
        with self._changed:
            while self._idle:
                self._idle.pop().close()
            self._changed.notify_all()
