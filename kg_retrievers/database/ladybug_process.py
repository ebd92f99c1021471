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
from kg_retrievers.database.ladybug_worker import LENGTH, Answer, Failure, SessionError, pack
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

#: How many bytes are read at once.
_CHUNK = 1 << 20

#: How many queries run side by side, each in a process of its own.
PROCESSES = 4

#: How many seconds `SessionPool.close` waits for queries to stop.
GRACE = 2.0

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
        self._end = weakref.finalize(self, _end, self._process)  # at the latest when the host ends
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

    def abandon(self) -> None:
        """Let go of a process that belongs to the process of which this one is a fork."""
        self._end.detach()
        _close_pipes(self._process)
        self._process.returncode = 0  # it is not this process's to wait for

    def _ask(self, request: dict[str, Any], seconds: float) -> Answer:
        """Send a request, and wait for its answer; end the process if there is none in time."""
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self.stop, ["interrupted"])
        timer.daemon = True
        timer.start()
        try:
            self._send(pack(request))
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

    def _send(self, data: bytes) -> None:
        assert self._process.stdin
        rest = memoryview(data)
        while rest:
            rest = rest[self._process.stdin.write(rest) :]

    def _received(self) -> bytes:
        (length,) = LENGTH.unpack(self._read(LENGTH.size))
        if length > self._most:
            raise SessionError("memory", f"its answer has {length:,} bytes, of at most {self._most:,}")
        return self._read(length)

    def _read(self, length: int) -> bytes:
        assert self._process.stdout
        parts = []
        while length:
            part = self._process.stdout.read(min(length, _CHUNK))
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


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
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
        _POOLS.add(self)

    def _start_afresh(self) -> None:
        self._changed = threading.Condition()
        self._in_use = 0
        self._idle: list[ProcessSession] = []
        self._busy: list[ProcessSession] = []

    @contextmanager
    def session(self, timeout: float) -> Iterator[ProcessSession]:
        """Hand out a session, once fewer than `PROCESSES` are in use.

        Raises:
            DatabaseUnavailableError: If the database is closed, or cannot be opened again.
            DatabaseTimeoutError: If all are in use for `timeout` seconds.
            KGRetrieversError: The error of the deadline of this context, if it comes first or is given up.
        """
        session = self._idle_session(timeout)
        try:
            session = session or ProcessSession(self._opening)
            with self._changed:
                self._busy.append(session)
            check_deadline()
            with stopped_when_given_up(partial(session.stop, "cancelled")):
                yield session
        finally:
            with self._changed:
                self._in_use -= 1
                if session is not None:
                    self._put_back(session)
                self._changed.notify_all()

    def _idle_session(self, timeout: float) -> ProcessSession | None:
        given_up = threading.Event()

        def wake() -> None:
            given_up.set()
            with self._changed:
                self._changed.notify_all()

        def is_over() -> bool:
            return self._closed or self._in_use < PROCESSES or given_up.is_set()

        with stopped_when_given_up(wake), self._changed:
            self._changed.wait_for(is_over, min(timeout, seconds_left()))
            if self._closed:
                raise DatabaseUnavailableError(
                    f"LadybugExecutor({str(self._opening.path)!r}) is closed. Open it again."
                )
            if self._in_use >= PROCESSES:
                check_deadline()
                told = f"LadybugExecutor: {PROCESSES} other queries took longer than {timeout:g} s."
                raise DatabaseTimeoutError(told, **RAISE_TIMEOUT)
            self._in_use += 1
            while self._idle:
                session = self._idle.pop()
                if session.usable:
                    return session
                session.close()  # somebody ended its process
        return None

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

    def cancel(self) -> None:
        """Stop the queries that run now."""
        with self._changed:
            for session in self._busy:
                session.stop("cancelled")

    def close(self) -> None:
        """Stop the queries that run, and end all sessions."""
        until = time.monotonic() + GRACE
        with self._changed:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            while self._in_use and time.monotonic() < until:
                for session in self._busy:
                    session.stop("closed")
                self._changed.notify_all()
                self._changed.wait(0.05)

    def after_fork(self) -> None:
        """Forget the sessions: they belong to the process of which this one is a fork."""
        for session in {*self._idle, *self._busy}:
            session.abandon()
        self._opening = self._opening._replace(temporary="")  # the other process removes it
        self._start_afresh()


#: The pools of this process.
_POOLS: weakref.WeakSet[SessionPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.after_fork()
    STARTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=STARTING.acquire, after_in_parent=STARTING.release, after_in_child=_after_fork)
