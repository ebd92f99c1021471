"""Runs blocking calls in a bounded number of threads, each until its time is over or nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, TypeVar

from kg_retrievers.deadline import await_foreign_function, check_deadline, deadline
from kg_retrievers.errors import BudgetError, KGRetrieversError

T = TypeVar("T")

#: Something that a run reports while it is under way, JSON-safe.
Event = dict[str, Any]


class BusyError(KGRetrieversError):
    """As many questions wait as may wait."""

    hint_agent = "Ask again in a few seconds."


class Workers:
    """A bounded number of threads, and a bounded number of calls that wait for one.

    A cancelled or late call ends when it checks its deadline the next time. Until then its thread counts.

    Args:
        threads: How many calls run at once.
        waiting: How many more may wait.
        seconds: The most seconds of a call.
    """

    def __init__(self, threads: int = 4, waiting: int = 64, seconds: float = 120.0) -> None:
        """Start no thread yet."""
        self.seconds, self._waiting, self._most = seconds, 0, waiting
        self._free = asyncio.Semaphore(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of a function that blocks.

        Raises:
            BusyError: If too many wait already.
            BudgetError: If its time is over.
        """
        if self._free.locked() and self._waiting >= self._most:
            raise BusyError("The server has more to do than it can.", hint_python=BusyError.hint_agent)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        loop = asyncio.get_running_loop()

        def release() -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(self._free.release)

        def counted() -> T:
            try:
                return work()
            finally:
                release()

        with deadline(self.seconds, self._over):
            return await await_foreign_function(counted)

    async def stream(self, work: Callable[[Callable[[Event], None]], None]) -> AsyncGenerator[Event]:
        """Yield the events of a function that blocks, as it reports them. It is stopped if nobody reads on.

        Args:
            work: Takes the function by which it tells.

        Raises:
            BusyError: If too many wait already.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Event | None] = asyncio.Queue()

        def tell(event: Event) -> None:
            check_deadline()
            loop.call_soon_threadsafe(told.put_nowait, event)

        task = asyncio.create_task(self.run(lambda: work(tell)))
        task.add_done_callback(lambda _: told.put_nowait(None))
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # read, though nobody reads on
        try:
            while (event := await told.get()) is not None:
                yield event
            task.result()
        finally:
            task.cancel()

    def _over(self) -> KGRetrieversError:
        return BudgetError(
            f"The question took longer than {self.seconds:g} seconds, and was stopped.",
            hint_python="Ask a simpler one, or another method.",
            hint_agent="Ask about less at once.",
        )
