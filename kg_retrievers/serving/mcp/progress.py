"""Tells a client which stages of a retriever have ended, while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.deadline import check_deadline

T = TypeVar("T")

#: Sends how many steps are done, of how many, and the name of the last one.
Report = Callable[[float, float | None, str | None], Awaitable[None]]


class StageProgress(BaseCallbackHandler):
    """Hears of stages in another thread, and tells of them in the loop in which it is made.

    A stage that ends when nobody waits any longer ends the work.
    """

    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        """Begin with no stage."""
        #: How many steps are expected.
        self.total = 1
        self._ended: asyncio.Queue[str] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note a stage that has ended.

        Raises:
            KGRetrieversError: The error of the deadline, if nobody waits any longer.
        """
        check_deadline()
        if name == STAGE_EVENT:
            self._loop.call_soon_threadsafe(self._ended.put_nowait, data["stage"])

    async def told(self, report: Report, work: Awaitable[T]) -> T:
        """Return the result of some work, while stages are told of, and at last that it is done."""
        teller = asyncio.create_task(self._tell(report))
        try:
            result = await work
            self._ended.put_nowait("")
            await teller
            return result
        finally:
            teller.cancel()

    async def _tell(self, report: Report) -> None:
        number = 0
        while stage := await self._ended.get():
            number += 1
            await report(number, max(self.total, number + 1), stage)
        await report(max(self.total, number + 1), max(self.total, number + 1), "done")
