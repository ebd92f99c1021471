"""Runs one generator body in sync and async: it yields requests and is sent their outcomes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import get_callback_manager_for_config, merge_configs, run_in_executor

from kg_retrievers.deadline import await_foreign, call_foreign
from kg_retrievers.redaction import hide_secrets

Input = TypeVar("Input")
Output = TypeVar("Output")

#: A runnable, or a function of one argument. The function may return a runnable, which is run on the same input.
Work = Runnable[Any, Any] | Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """Run a runnable or a function on an input; the body is sent its output.

    Attributes:
        work: The runnable or function.
        input: Its input.
        shown_as: The name and metadata of its run in callbacks; None for the defaults.
    """

    work: Work
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
    """Run a body to its end. The error of a call is raised inside of the body, which may handle it.

    A call ends at the deadline, if there is one (`kg_retrievers.deadline`), and its error holds no secrets. Each call
    is a LangChain run if callbacks listen; otherwise functions and bodies are called directly.
    """
    watched = _is_watched(config)
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Call):
                    run = _invoke if watched else _call
                    outcome = call_foreign(run, request.work, request.input, config, request.shown_as)
                elif watched:
                    dispatch_custom_event(request.name, request.data, config=config)
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
    """Run a body to its end, as `run_sync` does; functions run in a thread."""
    watched = _is_watched(config)
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Call):
                    run = _ainvoke if watched else _acall
                    outcome = await await_foreign(run(request.work, request.input, config, request.shown_as))
                elif watched:
                    await adispatch_custom_event(request.name, request.data, config=config)
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


def _is_watched(config: RunnableConfig) -> bool:
    """Tell whether callbacks listen to the runs and events under a run, those of a context or the environment too."""
    return bool(get_callback_manager_for_config(config).handlers)


def _invoke(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    return coerce_to_runnable(work).invoke(input, merge_configs(config, shown_as))


def _call(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    if isinstance(work, GeneratorRunnable):
        return run_sync(work.body(input), config)
    if isinstance(work, Runnable):
        return work.invoke(input, merge_configs(config, shown_as))
    output = work(input)
    return _call(output, input, config, shown_as) if isinstance(output, Runnable) else output


async def _ainvoke(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    return await coerce_to_runnable(work).ainvoke(input, merge_configs(config, shown_as))


async def _acall(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    if isinstance(work, GeneratorRunnable):
        return await run_async(work.body(input), config)
    if isinstance(work, Runnable):
        return await work.ainvoke(input, merge_configs(config, shown_as))
    output = await run_in_executor(config, work, input)
    return await _acall(output, input, config, shown_as) if isinstance(output, Runnable) else output


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


class Steps(GeneratorRunnable[Mapping[str, Any], dict[str, Any]]):
    """A stage with several calls, written as a generator function."""

    def __init__(self, steps: Callable[[Any], Body[dict[str, Any]]]) -> None:
        """Keep the generator function."""
        self._steps = steps

    def body(self, input: Mapping[str, Any]) -> Body[dict[str, Any]]:
        """Make the calls."""
        return self._steps(input)
