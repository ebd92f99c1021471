"""Runs one generator body in sync and async: it yields requests and is sent their outcomes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config, merge_configs

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
                    if _has_handlers(config):
                        dispatch_custom_event(request.name, request.data, config=config)
                else:
                    shown = merge_configs(config, request.shown_as)
                    outcome = call_foreign(request.runnable.invoke, request.input, shown)
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
                    if _has_handlers(config):
                        await adispatch_custom_event(request.name, request.data, config=config)
                else:
                    shown = merge_configs(config, request.shown_as)
                    outcome = await await_foreign(request.runnable.ainvoke(request.input, shown))
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


def _has_handlers(config: RunnableConfig) -> bool:
    """Tell whether somebody receives the events of a run."""
    return bool(get_callback_manager_for_config(config).handlers)


class GeneratorRunnable(Runnable[Input, Output]):
    """A runnable written once, as a generator body, for sync and async."""

    @abstractmethod
    def body(self, input: Input) -> Body[Output]:
        """Yield requests; return the output."""

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the body."""

        def run(value: Input, run_manager: CallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return run_sync(self.body(value), config)

        return self._call_with_config(run, input, config)

    async def ainvoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the body, awaiting its calls."""

        async def run(value: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return await run_async(self.body(value), config)

        return await self._acall_with_config(run, input, config)
