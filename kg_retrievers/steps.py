"""One generator body for sync and async: it yields what it wants to be run and gets the outcome back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class Call:
    """Run a runnable on an input; the body is sent its output."""

    runnable: Runnable[Any, Any]
    input: Any


@dataclass(frozen=True)
class Event:
    """Tell whoever watches, as a custom event of LangChain's callbacks; the body is sent None."""

    name: str
    data: dict[str, Any]


Steps = Generator[Call | Event, Any, Output]


def drive(steps: Steps[Output], config: RunnableConfig) -> Output:
    """Run a body to its end. Errors of a call are raised inside of the body, which may handle them."""
    try:
        wish = next(steps)
        while True:
            try:
                outcome = None
                if isinstance(wish, Event):
                    dispatch_custom_event(wish.name, wish.data, config=config)
                else:
                    outcome = wish.runnable.invoke(wish.input, config)
            except Exception as error:
                wish = steps.throw(error)
            else:
                wish = steps.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output


async def adrive(steps: Steps[Output], config: RunnableConfig) -> Output:
    """As `drive`, with `ainvoke`."""
    try:
        wish = next(steps)
        while True:
            try:
                outcome = None
                if isinstance(wish, Event):
                    await adispatch_custom_event(wish.name, wish.data, config=config)
                else:
                    outcome = await wish.runnable.ainvoke(wish.input, config)
            except Exception as error:
                wish = steps.throw(error)
            else:
                wish = steps.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output


class SteppedRunnable(Runnable[Input, Output]):
    """A runnable that is written once, as a generator body."""

    @abstractmethod
    def steps(self, input: Input) -> Steps[Output]:
        """Yield calls and events; return the output."""

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the body, traced under the name of the class."""
        return self._call_with_config(lambda value, config: drive(self.steps(value), config), input, config)

    async def ainvoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the same body, awaiting its calls."""

        async def run(value: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return await adrive(self.steps(value), config)

        return await self._acall_with_config(run, input, config)
