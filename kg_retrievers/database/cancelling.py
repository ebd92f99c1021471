"""Stops the queries of a caller who no longer waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import ParamSpec, TypeVar

from kg_retrievers.errors import DatabaseCancelledError
from kg_retrievers.graph.deadline import stopped_when_given_up

P = ParamSpec("P")
T = TypeVar("T")


class Cancellation:
    """What runs for one caller, and how each of it is stopped."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._lock = Lock()
        self._stops: dict[int, Callable[[], None]] = {}
        self._cancelled = False

    def cancel(self) -> None:
        """Stop what runs, and let nothing else begin."""
        with self._lock:
            self._cancelled = True
            for stop in self._stops.values():
                stop()

    @contextmanager
    def runs(self, stop: Callable[[], None]) -> Iterator[None]:
        """Say that something runs, and what stops it.

        Raises:
            DatabaseCancelledError: If the caller is gone already.
        """
        with self._lock:
            if self._cancelled:
                raise DatabaseCancelledError("The query was not run: nobody waits for it any longer.")
            self._stops[id(stop)] = stop
        try:
            yield
        finally:
            with self._lock:
                del self._stops[id(stop)]


#: The cancellation of whoever waits for this thread, where somebody does.
_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def stopped_by_caller(stop: Callable[[], None]) -> Iterator[None]:
    """Have `stop` called if the caller of `in_thread` is cancelled meanwhile, or gives up at a deadline."""
    cancellation = _CURRENT.get()
    if cancellation is None:
        with stopped_when_given_up(stop):
            yield
    else:
        with cancellation.runs(stop):
            yield


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread; if the task that waits for it is cancelled, its queries are stopped.

    Example:
        >>> asyncio.run(in_thread(max, 1, 2))
        2
    """
    cancellation = Cancellation()
    token = _CURRENT.set(cancellation)
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except asyncio.CancelledError:
        cancellation.cancel()
        raise
    finally:
        _CURRENT.reset(token)
