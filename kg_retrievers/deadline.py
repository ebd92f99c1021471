"""End every wait for foreign code at a deadline.

Foreign code is clients of models, embeddings, databases and vector stores.

The deadline is a context variable, so that threads and tasks that are started with a copy of the context know it.
Foreign code that may never come back runs in a daemon thread. Its caller goes on at the deadline, and the thread ends
when it can. It holds up neither its caller nor the end of the process.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from kg_retrievers.errors import BudgetError, KGRetrieversError

T = TypeVar("T")

#: How many seconds a cancelled coroutine has to close its connections.
GRACE = 0.25


class _Wait:
    """The end of a wait, its error, and the work to stop.

    The work stops when nobody waits any longer.
    """

    def __init__(self, ends: float, error: Callable[[], KGRetrieversError]) -> None:
        self.ends, self.error = ends, error
        self.given_up = False
        self._stops: dict[object, Callable[[], object]] = {}
        self._lock = threading.Lock()

    @property
    def timeout(self) -> float | None:
        """How many seconds are left, in [0, TIMEOUT_MAX].

        None if the wait has no end.
        """
        left = min(max(self.ends - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
        return left if self.ends < math.inf else None

    def check(self) -> None:
        if self.given_up or time.monotonic() >= self.ends:
            raise self.error()

    def give_up(self, error: Callable[[], KGRetrieversError] | None = None) -> None:
        """Stop whatever this wait started, and refuse to start more.

        If given, `error` is raised in place of its own.
        """
        with self._lock:
            if not self.given_up:  # the first reason holds
                self.error = error or self.error
            self.given_up, stops, self._stops = True, self._stops, {}
        for stop in stops.values():
            stop()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop`, from any thread, if the wait is given up in this block."""
        key = object()
        with self._lock:
            given_up = self.given_up
            self._stops[key] = stop
        if given_up:
            stop()
        try:
            yield
        finally:
            with self._lock:
                self._stops.pop(key, None)


def _left_alone() -> KGRetrieversError:
    return BudgetError("nobody waits for this call any longer.")


#: The wait that this code is a part of. The default one has no end, and nobody gives it up.
_WAIT: ContextVar[_Wait] = ContextVar("kg_retrievers_wait", default=_Wait(math.inf, _left_alone))  # noqa: B039

#: The time at which the one who waits for this thread gives up. If it is not set, nobody gives up.
_THREAD = threading.local()


@contextmanager
def deadline(seconds: float | None, error: Callable[[], KGRetrieversError]) -> Iterator[None]:
    """End all waits inside of this block after some seconds.

    They end earlier if an outer deadline is earlier.

    Args:
        seconds: The seconds. None for no limit of its own.
        error: Makes the error that is raised at the deadline.
    """
    outer = _WAIT.get()
    ends = math.inf if seconds is None else time.monotonic() + seconds
    if outer.ends <= ends:
        yield
        return
    wait = _Wait(ends, error)
    token = _WAIT.set(wait)
    try:
        with outer.stopping(lambda: wait.give_up(outer.error)):  # the error that it has by then
            yield
    finally:
        with suppress(ValueError):  # of a generator that is thrown away, in another context
            _WAIT.reset(token)


def check_deadline() -> None:
    """Check that there is time left, and that somebody still waits.

    Raises:
        KGRetrieversError: The error of the deadline, if not.
    """
    _WAIT.get().check()


def seconds_left() -> float:
    """Return how many seconds are left until waits end here, in [0, inf].

    It is inf if they do not end.

    Example:
        >>> seconds_left()
        inf
    """
    return max(_WAIT.get().ends - time.monotonic(), 0.0)


@contextmanager
def stopped_when_given_up(stop: Callable[[], object]) -> Iterator[None]:
    """Have `stop` called when nobody waits for this block any longer.

    The call comes from another thread.
    """
    with _WAIT.get().stopping(stop):
        yield


def call_foreign(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function that may never come back.

    Without a deadline it is simply called.

    Raises:
        KGRetrieversError: The error of the deadline, when it is reached. The function may end later, in its own thread.
    """
    wait = _WAIT.get()
    wait.check()
    if getattr(_THREAD, "ends", math.inf) <= wait.ends:  # who waits for this thread gives up in time
        return function(*args, **kwargs)
    return _outcome(_start(wait, lambda: function(*args, **kwargs)), wait)


def wait_for(future: futures.Future[T]) -> T:
    """Return the result of a future that another thread works on.

    It is cancelled when nobody waits any longer.

    Raises:
        KGRetrieversError: The error of the deadline, when it is reached.
    """
    wait = _WAIT.get()
    with wait.stopping(future.cancel):
        return _outcome(future, wait)


async def await_foreign(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that may never come back.

    It is cancelled at the deadline, and when this is cancelled.

    A coroutine that does not let itself be cancelled goes on alone.

    Raises:
        KGRetrieversError: The error of the deadline, when it is reached.
    """
    try:
        check_deadline()
    except KGRetrieversError:
        work.close()
        raise

    loop = asyncio.get_running_loop()
    return await _awaited_inside(lambda wait: loop.create_task(work, context=_context_with(wait)))


async def await_foreign_function(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Await a function that blocks, in a daemon thread.

    Unlike for threads of the loop's pool, nothing waits for its end.

    Work of the function inside of `stopped_when_given_up` is stopped at the deadline, and when this is cancelled.

    Raises:
        KGRetrieversError: The error of the deadline, when it is reached.

    Example:
        >>> asyncio.run(await_foreign_function(max, 1, 2))
        2
    """
    check_deadline()
    return await _awaited_inside(lambda wait: asyncio.wrap_future(_start(wait, lambda: function(*args, **kwargs))))


async def _awaited_inside(start: Callable[[_Wait], asyncio.Future[T]]) -> T:
    """Await work that is started with a wait of its own.

    The wait ends with this one.
    """
    outer = _WAIT.get()
    wait = _Wait(outer.ends, outer.error)
    with outer.stopping(lambda: wait.give_up(outer.error)):
        future = start(wait)
        try:
            await asyncio.wait({future}, timeout=wait.timeout)
        except asyncio.CancelledError:
            wait.give_up(_left_alone)
            await _cancel(future, wait)
            raise
        if not future.done():
            await _cancel(future, wait)
            raise wait.error()
        return future.result()


def _start(wait: _Wait, work: Callable[[], T]) -> futures.Future[T]:
    """Run work in a daemon thread.

    It runs in a copy of this context with this wait.
    """
    future: futures.Future[T] = futures.Future()
    future.set_running_or_notify_cancel()
    context = _context_with(wait)

    def run() -> None:
        _THREAD.ends = wait.ends
        try:
            result = context.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="kg_retrievers-foreign", daemon=True).start()
    return future


def _context_with(wait: _Wait) -> Context:
    context = copy_context()
    context.run(_WAIT.set, wait)
    return context


def _outcome(future: futures.Future[T], wait: _Wait) -> T:
    try:
        done, _ = futures.wait([future], wait.timeout)
    except BaseException:  # as by Ctrl-C
        wait.give_up(_left_alone)
        raise
    if not done:
        wait.give_up()
        raise wait.error()
    if future.cancelled() and wait.given_up:
        raise wait.error()
    return future.result()


async def _cancel(future: asyncio.Future[Any], wait: _Wait) -> None:
    """Cancel a future, give it a moment, and forget its outcome."""
    wait.give_up()
    future.cancel()
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    await asyncio.wait({future}, timeout=GRACE)
