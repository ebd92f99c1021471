"""Deadlines: every wait ends in time, what can be cancelled is, and errors of what is called come through."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from concurrent.futures import Future
from contextvars import ContextVar

import pytest

from kg_retrievers.deadline import (
    await_foreign,
    await_foreign_function,
    call_foreign,
    check_deadline,
    deadline,
    seconds_left,
    stopped_when_given_up,
    wait_for,
)
from kg_retrievers.errors import BudgetError

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="none")


def late() -> BudgetError:
    return BudgetError("too late")


def test_without_a_deadline_nothing_changes() -> None:
    assert call_foreign(threading.current_thread) is threading.current_thread()
    assert seconds_left() == math.inf
    check_deadline()


def test_a_call_in_time() -> None:
    token = VARIABLE.set("mine")
    with deadline(10, late):
        assert call_foreign(VARIABLE.get) == "mine"
        assert call_foreign(divmod, 7, 2) == (3, 1)
        assert call_foreign(threading.current_thread).daemon
        with pytest.raises(ZeroDivisionError):
            call_foreign(divmod, 1, 0)
        with pytest.raises(TimeoutError, match="its own"):
            call_foreign(_raise, TimeoutError("its own"))
    VARIABLE.reset(token)


def _raise(error: Exception) -> None:
    raise error


def test_a_call_that_is_late_goes_on_alone() -> None:
    go_on, ended, stopped = threading.Event(), threading.Event(), threading.Event()

    def foreign() -> None:
        with stopped_when_given_up(stopped.set):
            go_on.wait(60)
        with pytest.raises(BudgetError):
            call_foreign(ended.set)  # nothing else is begun
        ended.set()

    with deadline(0.1, late), pytest.raises(BudgetError, match="too late"):
        call_foreign(foreign)
    assert stopped.is_set()
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(10)


def test_the_earlier_deadline_counts() -> None:
    def inner() -> None:
        with deadline(0.05, lambda: BudgetError("inner")):
            call_foreign(time.sleep, 5)

    with deadline(10, late), pytest.raises(BudgetError, match="inner"):
        call_foreign(inner)
    with deadline(0.05, late), deadline(10, lambda: BudgetError("inner")), pytest.raises(BudgetError, match="too late"):
        call_foreign(time.sleep, 5)
    with deadline(0, late), pytest.raises(BudgetError):
        check_deadline()
    with deadline(None, late):
        assert seconds_left() == math.inf


def test_a_future_of_another_thread_is_cancelled() -> None:
    future: Future[int] = Future()
    with deadline(0.05, late), pytest.raises(BudgetError):
        wait_for(future)
    assert future.cancelled()
    done: Future[int] = Future()
    done.set_result(3)
    with deadline(10, late):
        assert wait_for(done) == 3


async def test_a_coroutine_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def foreign() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with deadline(0.1, late), pytest.raises(BudgetError):
        await await_foreign(foreign())
    assert cancelled.is_set()


async def test_a_coroutine_that_cannot_be_cancelled_goes_on_alone() -> None:
    go_on, ended = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        for _ in range(6000):
            try:
                await asyncio.wait_for(go_on.wait(), 0.01)
                break
            except (asyncio.CancelledError, TimeoutError):
                continue
        ended.set()

    with deadline(0.1, late), pytest.raises(BudgetError):
        await await_foreign(stubborn())
    assert not ended.is_set()
    go_on.set()


async def test_a_function_that_blocks_is_left_alone() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def block() -> None:
        go_on.wait(60)
        ended.set()

    with deadline(10, late):
        assert await await_foreign_function(divmod, 7, 2) == (3, 1)
    with deadline(0.1, late), pytest.raises(BudgetError):
        await await_foreign_function(block)
    assert not ended.is_set()
    go_on.set()


async def test_who_is_cancelled_stops_what_runs_for_it() -> None:
    """Also without a deadline, in a thread of the loop's pool."""
    began, stopped = threading.Event(), threading.Event()

    def work() -> None:
        with stopped_when_given_up(stopped.set):
            began.set()
            stopped.wait(60)

    task = asyncio.ensure_future(await_foreign(asyncio.to_thread(work)))
    assert await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(stopped.wait, 10)


@pytest.mark.parametrize("innermost", ["deadline", "function"])
async def test_all_nested_waits_end_with_the_error_of_the_outermost(innermost: str) -> None:
    began, stopped = threading.Event(), threading.Event()
    errors: list[str] = []

    def work() -> None:
        with stopped_when_given_up(stopped.set):
            began.set()
            stopped.wait(60)
        with pytest.raises(BudgetError) as caught:
            check_deadline()
        errors.append(str(caught.value))

    def nested() -> None:
        with deadline(20, lambda: BudgetError("middle")):
            if innermost == "deadline":
                with deadline(10, lambda: BudgetError("inner")):
                    work()
            else:
                asyncio.run(await_foreign_function(work))

    task = asyncio.ensure_future(await_foreign_function(nested))
    assert await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(100):
        if not errors:
            await asyncio.sleep(0.05)
    assert errors == ["nobody waits for this call any longer."]
