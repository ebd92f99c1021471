"""Every method of the table in forks, from threads, and after calls that were cancelled: no hang, same results.

Copies, pickles, spawned processes and threads that begin at once are part of `RetrieverContract`.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from built_methods import built

from kg_retrievers import GraphIndex, HashedEmbeddings, Question, build_workflow
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.methods.registry import METHODS, Method
from kg_retrievers.testing import tiny_graph

QUESTIONS = ["Who starred in Amélie?", "Who directed 千と千尋の神隠し?", "Who directed Her?"]
EXAMPLES = [Question("Who directed Adaptation?", answers=("Spike Jonze",))]

#: The most seconds that a fork may take.
PATIENCE = 60

each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@cache
def index() -> GraphIndex:
    return GraphIndex.build(tiny_graph(), HashedEmbeddings())


@cache
def retriever_of(method: Method) -> BaseKGRetriever:
    """Return one retriever for all tests of a method; models have drawn weights."""
    given: dict[str, Any] = {"k": 3}
    if method.runs_queries:
        pytest.importorskip("ladybug")
        from kg_retrievers.database.ladybug import LadybugExecutor

        given |= {"executor": LadybugExecutor.from_graph(index().graph), "examples": EXAMPLES}
    return built(method, index(), **given)


def found_by(retriever: BaseKGRetriever) -> str:
    """Return what a retriever finds, sync, async and in a workflow, as text."""
    workflow = build_workflow(retriever)
    found = [retriever.invoke(question) for question in QUESTIONS]
    found += [asyncio.run(retriever.ainvoke(question)) for question in QUESTIONS]
    found += [workflow.invoke({"question": question})["documents"] for question in QUESTIONS]
    return json.dumps([[document.model_dump() for document in documents] for documents in found])


def in_fork(function: Callable[[], str]) -> str:
    """Return what a function returns in a fork of this process, which is killed where it hangs."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "wb") as file:
                file.write(_result_or_error(function).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _read_all(reading)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _result_or_error(function: Callable[[], str]) -> str:
    try:
        return function()
    except BaseException as error:
        return repr(error)


def _read_all(reading: int) -> str:
    parts: list[bytes] = []
    while select.select([reading], [], [], PATIENCE)[0]:
        if not (part := os.read(reading, 1 << 20)):
            return b"".join(parts).decode()
        parts.append(part)
    return "it hangs"


@contextmanager
def asked_all_the_time(retriever: BaseKGRetriever) -> Iterator[None]:
    """Ask a retriever from four threads until the block ends."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            for question in QUESTIONS:
                retriever.invoke(question)

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            yield
        finally:
            ended.set()
    for one in asking:
        one.result()


@each_method
@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=pytest.mark.heavy)], ids=["idle", "while asked"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_finds_the_same(method: Method, busy: bool) -> None:
    retriever = retriever_of(method)
    expected = found_by(retriever)
    if not busy:
        assert in_fork(lambda: found_by(retriever)) == expected
        return
    with asked_all_the_time(retriever):
        for _ in range(3):
            assert in_fork(lambda: found_by(retriever)) == expected
    assert found_by(retriever) == expected


@each_method
async def test_a_cancelled_call_leaves_no_trace(method: Method) -> None:
    """Wherever it is cancelled: right away, before the first stage, and some milliseconds later."""
    retriever = retriever_of(method)
    expected = await asyncio.to_thread(found_by, retriever)
    for delay in (None, 0, 0.001, 0.002, 0.005, 0.01):
        tasks = [asyncio.create_task(retriever.ainvoke(question)) for question in QUESTIONS]
        if delay is not None:
            await asyncio.sleep(delay)
        for task in tasks:
            task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
        assert all(isinstance(one, asyncio.CancelledError | list) for one in ended)
    assert await asyncio.to_thread(found_by, retriever) == expected
