"""The sessions of one LadybugDB database: started as they are needed, kept, and replaced when they end."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kg_retrievers.database.graph_parts import RAISE_TIMEOUT
from kg_retrievers.database.ladybug_process import STARTING, Opening, ProcessSession
from kg_retrievers.deadline import check_deadline, seconds_left, stopped_when_given_up
from kg_retrievers.errors import DatabaseTimeoutError, DatabaseUnavailableError

#: How many queries run side by side, each in a process of its own.
PROCESSES = 4

#: How many seconds `close` waits for queries to stop.
GRACE = 2.0


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
                raise DatabaseUnavailableError(f"LadybugExecutor({self._opening.shown}) is closed. Open it again.")
            if self._in_use >= PROCESSES:
                raise _all_busy(timeout)
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


def _all_busy(timeout: float) -> DatabaseTimeoutError:
    """Return the error for a query that waited for others until its own limit; raise that of an earlier deadline."""
    try:
        check_deadline()
    except DatabaseTimeoutError as error:  # it names the limit of the query
        return DatabaseTimeoutError(f"{error.message} It waited for {PROCESSES} other queries.", **error.hints)
    return DatabaseTimeoutError(
        f"LadybugExecutor: {PROCESSES} other queries took longer than {timeout:g} s.", **RAISE_TIMEOUT
    )


#: The pools of this process.
_POOLS: weakref.WeakSet[SessionPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.after_fork()
    STARTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=STARTING.acquire, after_in_parent=STARTING.release, after_in_child=_after_fork)
