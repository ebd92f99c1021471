"""What the questions of a batch ask together is answered at once, and as each alone would be answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, gathering, nearest
from kg_retrievers.index.gathering import answer_together, gather, one_of_many


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a thread may sleep for longer than others wait for it."""
    monkeypatch.setattr(gathering, "PATIENCE", 60)


class Squares:
    """Squares numbers, and keeps what it was asked for at once."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[int]:
        self.calls.append(list(texts))
        return [int(text) ** 2 for text in texts]


def in_threads(questions: Sequence[Callable[[], object]], at_once: int | None = None) -> list[object]:
    """Run questions in one gathering, each in a thread."""

    def run(question: Callable[[], object]) -> object:
        with one_of_many():
            try:
                return question()
            except ValueError as error:
                return type(error)

    with gather(at_once), ThreadPoolExecutor(max(len(questions), 1)) as threads:
        contexts = [copy_context() for _ in questions]
        futures = [threads.submit(context.run, run, one) for context, one in zip(contexts, questions, strict=True)]
        return [future.result() for future in futures]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_one_call_answers_all(at_once: int | None) -> None:
    square, all_run = Squares(), threading.Barrier(3)

    def question(*texts: str) -> Callable[[], object]:
        def asks_twice() -> object:
            if at_once is None:
                all_run.wait()
            first = answer_together("square", texts, square)
            return [*first, *answer_together("square", [str(value) for value in first], square)]

        return asks_twice

    found = in_threads([question("1", "2"), question("2"), question("3", "3")], at_once)
    assert found == [[1, 4, 1, 16], [4, 16], [9, 9, 81, 81]]
    if at_once is None:
        assert [sorted(call) for call in square.calls] == [["1", "2", "3"], ["1", "4", "9"]]


def test_outside_of_a_batch_each_asks_alone() -> None:
    square = Squares()
    assert answer_together("square", ["1", "1"], square) == [1, 1]
    with gather(), one_of_many():
        assert answer_together("square", ["2"], square) == [4]
    assert square.calls == [["1", "1"], ["2"]]


def test_different_kinds_are_different_calls() -> None:
    one, other = Squares(), Squares()
    asked = [lambda: answer_together("one", ["1"], one), lambda: answer_together("other", ["2"], other)]
    assert in_threads(asked) == [[1], [4]]
    assert (one.calls, other.calls) == ([["1"]], [["2"]])


@pytest.mark.usefixtures("patient")
def test_each_gets_the_error_of_its_own_texts() -> None:
    square, all_run = Squares(), threading.Barrier(3)

    def question(text: str) -> Callable[[], object]:
        def asks() -> object:
            all_run.wait()
            return answer_together("square", [text], square)

        return asks

    assert in_threads([question("1"), question("two"), question("3")]) == [[1], ValueError, [9]]


def test_who_asks_does_not_wait_for_ever_for_who_does_not() -> None:
    answered = threading.Event()

    def asks() -> object:
        found = answer_together("square", ["2"], Squares())
        answered.set()
        return found

    assert in_threads([asks, lambda: answered.wait(60)]) == [[4], True]


def test_what_a_question_asks_inside_of_an_answer_is_asked_at_once() -> None:
    square = Squares()

    def cube(texts: Sequence[str]) -> list[int]:
        squares = answer_together("square", texts, square)
        return [int(text) * value for text, value in zip(texts, squares, strict=True)]

    assert in_threads([lambda: answer_together("cube", ["2"], cube)] * 2) == [[8], [8]]


def test_a_question_inside_of_a_question_is_no_further_one() -> None:
    def outer() -> object:
        with one_of_many():
            return answer_together("square", ["3"], Squares())

    assert in_threads([outer] * 2, at_once=1) == [[9], [9]]


@pytest.mark.usefixtures("patient")
def test_others_go_on_when_a_task_is_cancelled_while_it_asks() -> None:
    square, asked = Squares(), threading.Event()

    async def question(text: str) -> list[int]:
        with one_of_many():
            if text != "1":  # comes when the other has asked, and is gone
                await asyncio.to_thread(asked.wait, 60)
                await asyncio.sleep(0.05)
            asks = asyncio.to_thread(answer_together, "square", [text], square)
            asked.set()
            return list(await asks)

    async def ask_all() -> list[list[int]]:
        with gather():
            gone, *others = [asyncio.create_task(question(text)) for text in "123"]
            await asyncio.to_thread(asked.wait, 60)
            gone.cancel()
            return await asyncio.wait_for(asyncio.gather(*others), 30)

    assert asyncio.run(ask_all()) == [[4], [9]]


@pytest.mark.usefixtures("patient")
def test_an_interrupt_of_who_answers_leaves_nobody_waiting() -> None:
    all_run = threading.Barrier(2)

    def interrupted(texts: Sequence[str]) -> list[int]:
        if len(texts) > 1:
            raise KeyboardInterrupt
        return [int(text) ** 2 for text in texts]

    def question(text: str) -> Callable[[], object]:
        def asks() -> object:
            all_run.wait()
            try:
                return answer_together("square", [text], interrupted)
            except KeyboardInterrupt:
                return "interrupted"

        return asks

    found = in_threads([question("2"), question("3")])
    assert found in (["interrupted", [9]], [[4], "interrupted"])


NAMES = [f"{first} {second}" for first in ("Amber", "Basin", "Cedar") for second in ("Grove", "Harbor", "Keeper")]
INDEX = GraphIndex.build(
    KnowledgeGraph.from_triples([(name, "near", NAMES[number - 1]) for number, name in enumerate(NAMES)]),
    HashedEmbeddings(),
)


@given(
    st.lists(st.tuples(st.lists(st.sampled_from([*NAMES, "ambr grove", "ceder"]), max_size=3), st.integers(1, 4))),
    st.sampled_from([None, 1, 3]),
)
def test_nearest_names_are_those_of_single_questions(asked: list[tuple[list[str], int]], at_once: int | None) -> None:
    alone = [INDEX.nearest_entities(texts, k) for texts, k in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "SHARED_SCAN", 0)
        found = in_threads([lambda one=one: INDEX.nearest_entities(*one) for one in asked], at_once)  # type: ignore[misc]
    for one, other in zip(alone, found, strict=True):
        assert isinstance(other, list)
        for expected, got in zip(one, other, strict=True):
            np.testing.assert_array_equal(expected.ids, got.ids)
            np.testing.assert_array_equal(expected.distances, got.distances)
