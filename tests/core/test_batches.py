"""How many questions of a batch run at once, and what comes of the configs of a caller."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig

from kg_retrievers import GraphIndex, NeighborhoodRetriever
from kg_retrievers.core.batches import ASKING_TOGETHER, narrowed, widened
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import HashedEmbeddings
from kg_retrievers.sample import load_graph

QUESTIONS = ["Who directed Her?", "Who stars in Arrival?", "Who wrote Her?"] * 4


class Running(BaseCallbackHandler):
    """Counts the questions that run at once, and keeps the tags of each."""

    def __init__(self) -> None:
        self.most, self.tags, self._now, self._lock = 0, list[Any](), 0, threading.Lock()

    def on_retriever_start(self, *args: Any, tags: list[str] | None = None, **kwargs: Any) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.tags.append(tags)

    def on_retriever_end(self, *args: Any, **kwargs: Any) -> None:
        with self._lock:
            self._now -= 1

    def on_retriever_error(self, *args: Any, **kwargs: Any) -> None:
        self.on_retriever_end()


@pytest.fixture(scope="module")
def retriever() -> NeighborhoodRetriever:
    return NeighborhoodRetriever.from_index(GraphIndex.build(load_graph(), HashedEmbeddings()))


def limit_of(configs: Any) -> list[int | None]:
    return [one.get("max_concurrency") for one in configs]


def test_limits() -> None:
    assert limit_of(widened(None, 3)) == [3, None, None]
    assert limit_of(widened(None, 1_000))[0] == ASKING_TOGETHER
    assert 1 <= (limit_of(narrowed({"tags": ["mine"]}, 2))[0] or 0) <= 32
    for limited in (widened, narrowed):
        assert limit_of(limited({"max_concurrency": 1}, 2)) == [1, 1]
        given: list[RunnableConfig] = [{"tags": ["one"]}, {"tags": ["other"]}]
        changed = limited(given, 2)
        assert isinstance(changed, list)
        assert [one["tags"] for one in changed] == [["one"], ["other"]]
        assert given == [{"tags": ["one"]}, {"tags": ["other"]}]  # of the caller, who may use them again


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_run_than_the_caller_says(retriever: NeighborhoodRetriever, most: int) -> None:
    for run in (retriever.batch, lambda *given: asyncio.run(retriever.abatch(*given))):
        seen = Running()
        found = run(QUESTIONS, {"max_concurrency": most, "callbacks": [seen], "tags": ["mine"]})
        assert len(found) == len(QUESTIONS)
        assert 1 <= seen.most <= most
        assert seen.tags == [["mine"]] * len(QUESTIONS)


def test_errors_stand_where_their_questions_do(retriever: NeighborhoodRetriever) -> None:
    asked = ["Who directed Her?", " ", "Who directed Her?"]
    first, error, third = retriever.batch(asked, return_exceptions=True)
    assert isinstance(error, InvalidArgumentError)
    assert [one.page_content for one in first] == [one.page_content for one in third]
    with pytest.raises(InvalidArgumentError, match="the question is empty"):
        retriever.batch(asked)


@pytest.mark.parametrize("asked", [[], QUESTIONS[:1], QUESTIONS[:2]])
def test_batches_of_all_sizes(retriever: NeighborhoodRetriever, asked: list[str]) -> None:
    loop = [[one.id for one in retriever.invoke(question)] for question in asked]
    assert [[one.id for one in found] for found in retriever.batch(asked)] == loop
    assert [[one.id for one in found] for found in asyncio.run(retriever.abatch(asked))] == loop


def test_configs_for_other_questions_are_refused(retriever: NeighborhoodRetriever) -> None:
    with pytest.raises(ValueError, match="length"):
        retriever.batch(QUESTIONS, [{}])
