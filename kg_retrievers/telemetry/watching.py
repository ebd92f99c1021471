"""Watches all that runs in a context, without a word at each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from kg_retrievers.telemetry.runs import Run
from kg_retrievers.telemetry.watcher import Watcher

_WATCHER: ContextVar[BaseCallbackHandler | None] = ContextVar("kg_retrievers_watcher", default=None)
register_configure_hook(_WATCHER, inheritable=True)


class Together(Watcher):
    """Several watchers that read the callbacks once; the failure of one is not the others'."""

    def __init__(self, watchers: tuple[Watcher, ...]) -> None:
        """Take the watchers."""
        super().__init__()
        self._watchers = watchers

    def begin(self, run: Run) -> None:
        """Tell all."""
        for watcher in self._watchers:
            try:
                watcher.begin(run)
            except Exception as error:
                watcher.tell_once(error)

    def finish(self, run: Run) -> None:
        """Tell all."""
        for watcher in self._watchers:
            try:
                watcher.finish(run)
            except Exception as error:
                watcher.tell_once(error)


@contextmanager
def watching(*watchers: Watcher) -> Iterator[Watcher]:
    """Watch every retriever, workflow, chain and model that is called inside, LlamaIndex's engines over them included.

    What is called in a thread is watched where the thread has the context of its caller, as those of LangChain and
    `asyncio.to_thread` have; elsewhere, hand in the handler that is yielded: `{"callbacks": [handler]}`. It is heard
    once, also where both are so.

    Args:
        *watchers: Spans, Counts, or what `log_events` returns.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from kg_retrievers.telemetry import Counts
        >>> counts = Counts()
        >>> with watching(counts):
        ...     RunnableLambda(str.upper).invoke("her")
        'HER'
        >>> counts.snapshot()["questions"]["calls"]
        1
    """
    handler = Together(watchers)
    token = _WATCHER.set(handler)
    try:
        yield handler
    finally:
        _WATCHER.reset(token)
