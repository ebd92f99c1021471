"""Watching a context: what is called inside, also in threads and tasks, and nothing outside."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from kg_retrievers import Counts, GraphIndex, SimGRAGRetriever, as_llama_index
from kg_retrievers.telemetry import watching

QUESTION = "Who starred in Amélie?"


def calls(counts: Counts) -> int:
    """Return how many questions were counted."""
    number: int = counts.snapshot()["questions"]["calls"]
    return number


async def test_inside_and_not_outside(retriever: SimGRAGRetriever) -> None:
    counts = Counts()
    retriever.invoke(QUESTION)
    with watching(counts):
        retriever.invoke(QUESTION)
        await retriever.ainvoke(QUESTION)
        await asyncio.to_thread(retriever.invoke, QUESTION)
        retriever.batch([QUESTION] * 3)
        as_llama_index(retriever).retrieve(QUESTION)
    retriever.invoke(QUESTION)
    assert calls(counts) == 7


def test_a_thread_without_the_context_takes_the_handler(retriever: SimGRAGRetriever) -> None:
    counts = Counts()
    with watching(counts) as handler, ThreadPoolExecutor(1) as threads:
        threads.submit(retriever.invoke, QUESTION).result()
        assert calls(counts) == 0
        threads.submit(retriever.invoke, QUESTION, {"callbacks": [handler]}).result()
        retriever.invoke(QUESTION, {"callbacks": [handler]})
    assert calls(counts) == 2


def test_the_inner_context_takes_the_place_of_the_outer(retriever: SimGRAGRetriever) -> None:
    outer, inner = Counts(), Counts()
    with watching(outer):
        with watching(inner):
            retriever.invoke(QUESTION)
        retriever.invoke(QUESTION)
    assert (calls(outer), calls(inner)) == (1, 1)


def test_contexts_of_several_threads_are_apart(index: GraphIndex) -> None:
    counts = [Counts() for _ in range(4)]

    def ask(own: Counts, times: int) -> None:
        retriever = SimGRAGRetriever.from_index(index)
        with watching(own):
            for _ in range(times):
                retriever.invoke(QUESTION)

    threads = [threading.Thread(target=ask, args=(own, times)) for times, own in enumerate(counts, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [calls(own) for own in counts] == [1, 2, 3, 4]
