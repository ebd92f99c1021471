"""Runs blocking work beside the event loop: so many calls at once, and each for so long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from kg_retrievers.deadline import await_foreign_function, deadline
from kg_retrievers.errors import BudgetError, InvalidArgumentError

T = TypeVar("T")


class Workers:
    """Threads that work for the requests of one event loop.

    A request that is cancelled, or whose time is up, is no longer waited for; its work ends at the next stage or call of
    a model, and keeps its place until then.

    Args:
        at_once: How many calls run at the same time.
        waiting: How many more may wait for one of these to end.
        seconds: How long a call may take.

    Raises:
        InvalidArgumentError: If one of them is below 1.
    """

    def __init__(self, at_once: int = 4, waiting: int = 32, seconds: float = 120.0) -> None:
        """Begin with no work."""
        if min(at_once, waiting, seconds) < 1:
            raise InvalidArgumentError(
                f"Workers: at_once, waiting and seconds must be 1 or more, but got {at_once}, {waiting}, {seconds}."
            )
        self.seconds, self._most_waiting, self._waiting = seconds, waiting, 0
        self._free = asyncio.Semaphore(at_once)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what some work returns, from a thread.

        Raises:
            BudgetError: If too many calls wait already, or this one takes too long.
        """
        await self._begin()
        loop = asyncio.get_running_loop()

        def run() -> T:
            try:
                return work()
            finally:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._free.release)

        with deadline(self.seconds, self._too_slow):
            return await await_foreign_function(run)

    async def _begin(self) -> None:
        if self._waiting >= self._most_waiting:
            raise BudgetError("the server has too much to do.", hint_python="Ask again in a few seconds.")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    def _too_slow(self) -> BudgetError:
        return BudgetError(
            f"the call took more than {self.seconds:g} seconds.",
            hint_python="Ask a narrower question, name its entities, or choose another method.",
        )
