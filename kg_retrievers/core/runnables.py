"""Runs one generator body in sync and async: it yields requests and is sent their outcomes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.core.untraced import UntracedRunnable, ainvoke, invoke, is_traced
from kg_retrievers.deadline import await_foreign, call_foreign
from kg_retrievers.redaction import hide_secrets

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class Call:
    """Run a runnable on an input; the body is sent its output.

    Attributes:
        runnable: Any.
        input: Its input.
        shown_as: What callbacks are told of its run, as a name; None for nothing of its own.
    """

    runnable: Runnable[Any, Any]
    input: Any
    shown_as: RunnableConfig | None = None


@dataclass(frozen=True)
class Event:
    """Send a custom event to LangChain's callbacks; the body is sent None."""

    name: str
    data: dict[str, Any]


#: A generator that yields requests and returns the output.
Body = Generator[Call | Event, Any, Output]


def run_sync(body: Body[Output], config: RunnableConfig) -> Output:
    """Run a body to its end with `invoke`. Raises the error of a call inside of the body, which may handle it.

    A call ends at the deadline, if there is one (`kg_retrievers.deadline`), and its error holds no secrets.
    """
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Event):
                    if is_traced(config):
                        dispatch_custom_event(request.name, request.data, config=config)
                else:
                    outcome = call_foreign(invoke, request.runnable, request.input, config, request.shown_as)
            except Exception as error:
                hide_secrets(error)
                request = body.throw(error)
            else:
                request = body.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output
    finally:
        body.close()


async def run_async(body: Body[Output], config: RunnableConfig) -> Output:
    """Run a body to its end with `ainvoke`, as `run_sync` does with `invoke`."""
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Event):
                    if is_traced(config):
                        await adispatch_custom_event(request.name, request.data, config=config)
                else:
                    outcome = await await_foreign(ainvoke(request.runnable, request.input, config, request.shown_as))
            except Exception as error:
                hide_secrets(error)
                request = body.throw(error)
            else:
                request = body.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output
    finally:
        body.close()


class GeneratorRunnable(UntracedRunnable[Input, Output]):
    """A runnable written once, as a generator body, for sync and async."""

    @abstractmethod
    def body(self, input: Input) -> Body[Output]:
        """Yield requests; return the output."""

    def run_untraced(self, input: Input, config: RunnableConfig) -> Output:
        """Run the body."""
        return run_sync(self.body(input), config)

    async def arun_untraced(self, input: Input, config: RunnableConfig) -> Output:
        """Run the body, awaiting its calls."""
        return await run_async(self.body(input), config)
