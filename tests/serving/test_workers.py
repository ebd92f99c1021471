"""A bounded number of threads, and an end for what nobody waits for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import BudgetError
from kg_retrievers.serving.workers import BusyError, Event, Workers


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def run_until_stopped(ended: threading.Event) -> None:
    """Work that looks at its deadline now and then."""
    try:
        until(lambda: check_deadline() is not None)
    finally:
        ended.set()


async def test_what_is_told_comes_in_order_and_errors_come_last() -> None:
    def work(tell: Callable[[Event], None]) -> None:
        for number in range(50):
            tell({"number": number})
        raise BudgetError("over")

    events = Workers().stream(work)
    assert [(await anext(events))["number"] for _ in range(50)] == list(range(50))
    with pytest.raises(BudgetError):
        await anext(events)


async def test_no_more_run_at_once_than_threads_and_no_more_wait_than_may() -> None:
    workers, go, running, most = Workers(threads=2, waiting=3), threading.Event(), [], []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        go.wait(20)
        running.pop()

    tasks = [asyncio.create_task(workers.run(work)) for _ in range(5)]
    while len(running) < 2:
        await asyncio.sleep(0.005)
    with pytest.raises(BusyError):
        await workers.run(work)
    go.set()
    await asyncio.gather(*tasks)
    assert max(most) == 2
    assert len(most) == 5


async def test_a_reader_who_leaves_ends_the_work_and_frees_its_thread() -> None:
    workers, ended = Workers(threads=1), threading.Event()

    def work(tell: Callable[[Event], None]) -> None:
        tell({})
        run_until_stopped(ended)

    events = workers.stream(work)
    await anext(events)
    await events.aclose()
    assert await asyncio.to_thread(ended.wait, 20)
    assert await asyncio.wait_for(workers.run(lambda: "next"), 20) == "next"


async def test_work_that_never_looks_at_its_deadline_ends_where_it_tells_and_keeps_its_thread_until_then() -> None:
    workers, go, ended = Workers(threads=1), threading.Event(), threading.Event()

    def work(tell: Callable[[Event], None]) -> None:
        tell({})
        go.wait(20)
        with pytest.raises(BudgetError, match="nobody waits"):  # rather than that it took too long
            tell({})
        ended.set()

    events = workers.stream(work)
    await anext(events)
    await events.aclose()
    following = asyncio.create_task(workers.run(lambda: "next"))
    await asyncio.sleep(0.4)  # longer than a cancelled call has to end
    assert not following.done()
    go.set()
    assert await asyncio.wait_for(following, 20) == "next"
    assert ended.is_set()


async def test_a_call_whose_time_is_over_is_stopped() -> None:
    ended = threading.Event()
    with pytest.raises(BudgetError, match=r"longer than 0\.1 seconds"):
        await Workers(seconds=0.1).run(lambda: run_until_stopped(ended))
    assert await asyncio.to_thread(ended.wait, 20)


async def test_a_call_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    workers, go = Workers(threads=1, waiting=1), threading.Event()
    first = asyncio.create_task(workers.run(lambda: go.wait(20)))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(workers.run(lambda: None))
    await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(workers.run(lambda: "third"))
    go.set()
    assert await first
    assert await third == "third"
