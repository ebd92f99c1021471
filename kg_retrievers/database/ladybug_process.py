"""LadybugDB's own processes, as the host sees them: started, asked, stopped, ended and replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, NamedTuple

from kg_retrievers.database.ladybug_worker import Answer, Failure, SessionError, write_line
from kg_retrievers.deadline import check_deadline, seconds_left, stopped_when_given_up, wait_for
from kg_retrievers.errors import DatabaseUnavailableError
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.parts import MAX_TIMEOUT

#: How many seconds a process may take to start and to open its database.
STARTUP = 120.0

#: How many seconds after its timeout a query that LadybugDB does not stop is ended with its process.
MARGIN = 0.25

#: How many seconds the host waits for a process that it killed. The system may free the memory later.
KILL_WAIT = 1.0

#: The part of the memory of a query that its answer may take on its way to the host: there it takes several times that.
ANSWER_PART = 8

#: The largest answer where memory has no limit, in bytes.
MAX_ANSWER = 1 << 27

#: How many queries run side by side, each in a process of its own.
PROCESSES = 4

#: How many seconds pass before a query that waits for a process looks whether somebody still waits for it.
LOOK_AGAIN = 0.05

#: The code that a new process runs. It finds the modules in the same places as this process.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from kg_retrievers.database import ladybug_worker as w; w.main()"


class Opening(NamedTuple):
    """The database that a process opens, and its limits.

    Args:
        path: The file of the database.
        max_memory: The most bytes that queries may take. None for no limit.
        temporary: A folder that the process removes if it finds its host gone. "" for none.
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
        opening: The database to open.
    """

    def __init__(self, opening: Opening) -> None:
        """Start the process, and have it open the database meanwhile."""
        self._opening = opening
        self._stopped: Failure | None = None
        self._most = opening.max_memory // ANSWER_PART if opening.max_memory else MAX_ANSWER
        # `multiprocessing` would run the module of the host's main program in the process once more.
        self._process = subprocess.Popen(
            [sys.executable or "python", "-c", _PROGRAM, *(path or os.getcwd() for path in sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._end = weakref.finalize(self, _end, self._process, os.getpid())  # at the latest when the host ends
        self._opened = futures.Future[Answer]()
        self._opened.set_running_or_notify_cancel()  # so that nobody who gives up cancels it
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        opening = self._opening
        half = None if opening.max_memory is None else opening.max_memory // 2  # for pages, and all else
        try:
            self._opened.set_result(self._ask(opening._asdict() | {"path": str(opening.path), "memory": half}, STARTUP))
        except SessionError as error:
            self.close()
            told = f"LadybugExecutor: {str(opening.path)!r} cannot be opened ({error.reason}). "
            told += "Close it where it is written, or make it again: it may be damaged, or of another version."
            self._opened.set_exception(DatabaseUnavailableError(told))

    def wait_until_ready(self) -> None:
        """Wait until the database is open, or the deadline.

        The process continues to start after the deadline.

        Raises:
            DatabaseUnavailableError: If it cannot be opened.
            KGRetrieversError: The error of the deadline.
        """
        check_deadline()
        wait_for(self._opened)

    @property
    def usable(self) -> bool:
        """Whether the process lives, and nobody stopped it."""
        return self._stopped is None and self._end.alive and self._process.poll() is None

    def execute(self, query: str, parameters: dict[str, Any], most: int) -> Answer:
        """Run a query.

        See `ladybug_worker.execute`. One that does not stop at the deadline is ended with the process.

        The start of a process that has just been replaced is part of the time.
        """
        self.wait_until_ready()
        left = min(seconds_left(), MAX_TIMEOUT)
        return self._ask({"query": query, "parameters": parameters, "most": most, "timeout": left}, left + MARGIN)

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
        """End the process.

        Nothing is lost, since it only reads.
        """
        self._end()

    def _ask(self, request: dict[str, Any], seconds: float) -> Answer:
        """Send a request, and wait for its answer.

        Without an answer in time, the process is ended.
        """
        timer = threading.Timer(seconds, self.stop, ["interrupted"])
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
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        self.close()
        if code is not None and code < 0:
            with suppress(ValueError):
                return signal.Signals(-code).name
        return f"exit status {code}"


def _answer_in(data: bytes) -> Answer:
    """Read an answer. The process that wrote it ran the queries that it was given, so nothing in it is trusted."""
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


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process, unless another process started it, and let go of it."""
    if os.getpid() == owner:
        with suppress(OSError):
            process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_WAIT)
    process.returncode = process.returncode or 0  # nobody waits for it any longer
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            pipe.close()


class SessionPool:
    """Hands out sessions, each to one query at a time. A fork of the process starts with none.

    Args:
        opening: The database to open.

    Raises:
        DatabaseUnavailableError: If the database cannot be opened.
    """

    def __init__(self, opening: Opening) -> None:
        """Start the first session."""
        self._opening, self._closed, self._lock = opening, False, LocalLock()
        self._start_afresh()
        self._free.get()
        session = ProcessSession(opening)
        session.wait_until_ready()
        self._free.put(session)

    def _start_afresh(self) -> None:
        self._owner = os.getpid()
        self._busy = set[ProcessSession | None]()
        self._free = LifoQueue[ProcessSession | None]()  # None for one that was not needed yet
        for _ in range(PROCESSES):
            self._free.put(None)

    def _own(self) -> None:
        """Forget the sessions of the process that this one is a fork of.

        That process removes the temporary files.
        """
        with self._lock:
            if os.getpid() != self._owner:
                self._opening = self._opening._replace(temporary="")
                self._start_afresh()

    @contextmanager
    def session(self) -> Iterator[ProcessSession]:
        """Hand out a session, once fewer than `PROCESSES` are in use.

        Raises:
            DatabaseUnavailableError: If the database is closed, or cannot be opened again.
            KGRetrieversError: The error of the deadline, if all are in use until then.
        """
        self._own()
        session = self._next()
        try:
            session = self._usable(session)
            self._busy.add(session)
            self._check_open()  # again, since `close` stops only those that it finds there
            with stopped_when_given_up(partial(session.stop, "cancelled")):
                yield session
        finally:
            self._busy.discard(session)
            try:
                with suppress(OSError, RuntimeError):  # of a process or thread that the system does not start
                    session = self._usable(session)  # a new process starts while nobody waits for it
            finally:
                self._free.put(session)
            if self._closed and session is not None:
                session.close()

    def _next(self) -> ProcessSession | None:
        """Wait for a session that is not in use.

        None stands for a session that is still to be started.
        """
        while True:
            check_deadline()
            self._check_open()
            with suppress(Empty):
                return self._free.get(timeout=min(LOOK_AGAIN, seconds_left()))

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailableError(f"LadybugExecutor({str(self._opening.path)!r}) is closed. Open it again.")

    def _usable(self, session: ProcessSession | None) -> ProcessSession:
        """Return a session, or a new one if its process has ended."""
        if session is not None and (session.usable or self._closed):
            return session
        if session is not None:
            session.close()
        return ProcessSession(self._opening)

    def stop(self, failure: Failure) -> None:
        """Stop the queries that run now."""
        self._own()
        for session in filter(None, list(self._busy)):
            session.stop(failure)

    def close(self) -> None:
        """Stop the queries that run, and end all sessions."""
        self._closed = True
        self.stop("closed")
        with suppress(Empty):
            while True:
                if session := self._free.get_nowait():
                    session.close()
