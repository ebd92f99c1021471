"""Ends searches when their time is up."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kg_retrievers.graph.columns import Array


class _Clock:
    """Sets flags at their times: one thread for all of them, since to start one takes as long as most searches."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[int, tuple[float, Array]] = {}
        self._thread: threading.Thread | None = None
        self._wakes = float("inf")

    def add(self, due: float, stop: Array) -> None:
        with self._changed:
            self._due[id(stop)] = due, stop
            if self._thread is None or not self._thread.is_alive():
                self._wakes = float("inf")
                self._thread = threading.Thread(target=self._run, name="kg-retrievers time limits", daemon=True)
                self._thread.start()
            elif due < self._wakes:
                self._changed.notify()

    def remove(self, stop: Array) -> None:
        with self._changed:
            self._due.pop(id(stop), None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for key, (due, stop) in list(self._due.items()):
                    if due <= now:
                        stop.fill(1)
                        del self._due[key]
                self._wakes = min((due for due, _ in self._due.values()), default=float("inf"))
                self._changed.wait(None if self._wakes == float("inf") else self._wakes - now)


_CLOCK = _Clock()
if hasattr(os, "register_at_fork"):  # a forked process has no thread, and may have inherited a lock that is held
    os.register_at_fork(after_in_child=_CLOCK.reset)


@contextmanager
def stopped_after(seconds: float | None, stop: Array) -> Iterator[None]:
    """Set `stop` to 1 once so many seconds have gone by inside of the block; None for never.

    Example:
        >>> import numpy as np
        >>> stop = np.zeros(1, np.int64)
        >>> with stopped_after(0.001, stop):
        ...     while not stop[0]:
        ...         pass
    """
    if seconds is None:
        yield
        return
    _CLOCK.add(time.monotonic() + seconds, stop)
    try:
        yield
    finally:
        _CLOCK.remove(stop)
