"""What the questions of a batch ask an index, gathered: one call embeds all their texts, one scan finds their names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from threading import Condition, Semaphore
from typing import Any, TypeVar

T = TypeVar("T")

#: How many seconds one waits for others to ask, too, while none of them does: a language model may keep them.
PATIENCE = 0.1


@dataclass(eq=False)
class _Request:
    """What one question asks; `answer` takes its texts, or those of all requests of its kind."""

    kind: Hashable
    texts: Sequence[str]
    answer: Callable[[Sequence[str]], Iterable[Any]]
    found: list[Any] | None = None
    taken: bool = False
    done: bool = False


class _Gathering:
    """The questions of a batch, each in a thread or a task of its own."""

    def __init__(self, at_once: int | None) -> None:
        self._changed = Condition()
        self._requests: list[_Request] = []
        self._running = self._asked = 0
        self._turns = None if at_once is None else Semaphore(at_once)

    def begin(self) -> None:
        """Count a question that runs, when it is its turn."""
        with self._changed:
            self._running += 1
        self._take_turn()

    def end(self) -> None:
        """Count a question that is done; if the others wait for it, wake them."""
        self._leave_turn()
        with self._changed:
            self._running -= 1
            if self._running <= 0 and self._requests:
                self._changed.notify_all()

    def ask(self, request: _Request) -> None:
        """Wait for the others, and have the request answered with theirs, unless it is the only one of its kind."""
        self._leave_turn()
        with self._changed:
            self._requests.append(request)
            self._asked += 1
            self._running -= 1
            taken = self._take(request)
            if not taken:
                self._changed.wait_for(lambda: request.done)
        if taken:
            try:
                _answer(taken)
            finally:
                with self._changed:
                    for one in taken:
                        one.done = True
                    self._changed.notify_all()
        self._take_turn()

    def _take(self, own: _Request) -> list[_Request]:
        """Take all requests when nobody runs, or nobody asked for some time; none where another one took them."""
        while not own.taken:
            asked = self._asked
            if self._running <= 0 or (not self._changed.wait(PATIENCE) and asked == self._asked):
                taken, self._requests = self._requests, []
                self._running += len(taken)
                for one in taken:
                    one.taken = True
                return taken
        return []

    def _take_turn(self) -> None:
        if self._turns is not None:
            self._turns.acquire()

    def _leave_turn(self) -> None:
        if self._turns is not None:
            self._turns.release()


#: The gathering that the next question joins, and the one that the question which runs has joined.
_OPEN: ContextVar[_Gathering | None] = ContextVar("kg_retrievers_open_gathering", default=None)
_JOINED: ContextVar[_Gathering | None] = ContextVar("kg_retrievers_joined_gathering", default=None)


@contextmanager
def gather(at_once: int | None = None) -> Iterator[None]:
    """Have the questions that run inside of this block, in copies of its context, ask together.

    A question that asks an index waits until all others ask, too, or are done; then all requests of one kind are one
    call. Where nobody asks for `PATIENCE`, those who wait go on. Answers are those of single calls.

    Args:
        at_once: How many questions run at once while the others wait for their turn, so that as many hold memory and
            want the interpreter lock; None for all of them.
    """
    token = _OPEN.set(_Gathering(at_once))
    try:
        yield
    finally:
        _OPEN.reset(token)


@contextmanager
def one_of_many() -> Iterator[None]:
    """Run a question inside of this block; it joins the gathering around it, if there is one."""
    if (gathering := _OPEN.get()) is None:
        yield
        return
    opened, joined = _OPEN.set(None), _JOINED.set(gathering)  # what it asks inside is a part of this question
    gathering.begin()
    try:
        yield
    finally:
        gathering.end()
        _JOINED.reset(joined)
        _OPEN.reset(opened)


def answer_together(
    kind: Hashable, texts: Sequence[str], answer: Callable[[Sequence[str]], Iterable[T]]
) -> Iterable[T]:
    """Return the answer to each text, in one call with the texts of other questions where some run together.

    Args:
        kind: Equal where one call can answer both.
        texts: The texts.
        answer: Returns one answer for each of some texts, which depends on that text alone. An error that others' texts
            cause is not raised.
    """
    if (gathering := _JOINED.get()) is None or not texts:
        return answer(texts)
    request = _Request(kind, texts, answer)
    gathering.ask(request)
    if request.found is not None:
        return request.found
    joined = _JOINED.set(None)
    try:
        return answer(texts)
    finally:
        _JOINED.reset(joined)


def _answer(requests: Sequence[_Request]) -> None:
    """Answer requests by one call for each kind that is asked for twice; not those whose call fails."""
    kinds: dict[Hashable, list[_Request]] = {}
    for request in requests:
        kinds.setdefault(request.kind, []).append(request)
    joined = _JOINED.set(None)
    try:
        for same in kinds.values():
            if len(same) > 1:
                _answer_at_once(same)
    finally:
        _JOINED.reset(joined)


def _answer_at_once(requests: Sequence[_Request]) -> None:
    texts = list(dict.fromkeys(chain.from_iterable(request.texts for request in requests)))
    try:
        found = dict(zip(texts, requests[0].answer(texts), strict=True))
    except Exception:  # each then asks alone, and raises what is its own
        return
    for request in requests:
        request.found = [found[text] for text in request.texts]
