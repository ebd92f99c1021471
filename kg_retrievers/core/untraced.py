"""Calls runnables without the runs that LangChain keeps for callbacks, where there are none.

What a runnable returns and raises is the same. A model that is called inside still makes its run, under that of the
retriever.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from inspect import iscoroutinefunction, isgeneratorfunction, signature
from types import FunctionType, MethodType
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableSequence
from langchain_core.runnables.config import run_in_executor, set_config_context

Input = TypeVar("Input")
Output = TypeVar("Output")


class UntracedRunnable(Runnable[Input, Output]):
    """A runnable that can do without a run of its own; `invoke` and `ainvoke` make one, under the name of the class."""

    @abstractmethod
    def run_untraced(self, input: Input, config: RunnableConfig) -> Output:
        """Return the output, without a run."""

    async def arun_untraced(self, input: Input, config: RunnableConfig) -> Output:
        """Return the output, without a run; from a thread, unless a class knows better."""
        return await run_in_executor(config, self.run_untraced, input, config)

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Return the output, traced."""
        return self._call_with_config(lambda value, config: self.run_untraced(value, config), input, config)

    async def ainvoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Return the output, traced."""

        async def run(value: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return await self.arun_untraced(value, config)

        return await self._acall_with_config(run, input, config)


def is_traced(config: RunnableConfig) -> bool:
    """Tell whether anybody listens to what runs under the config of a run.

    Example:
        >>> from langchain_core.callbacks import CallbackManager, StdOutCallbackHandler
        >>> [is_traced({"callbacks": CallbackManager(handlers)}) for handlers in ([], [StdOutCallbackHandler()])]
        [False, True]
    """
    callbacks = config.get("callbacks")
    return not isinstance(callbacks, BaseCallbackManager) or bool(callbacks.handlers)


def invoke(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    """Return what a runnable returns; where nobody listens, functions and sequences make no runs.

    Args:
        runnable: Any.
        input: Its input.
        config: That of the run which calls it.
    """
    if is_traced(config):
        return runnable.invoke(input, config)
    with set_config_context(config) as context:  # from there, a model that a function calls takes its config
        return context.run(_run, runnable, input, config)


async def ainvoke(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    """Do as `invoke`; functions run in a thread."""
    if is_traced(config):
        return await runnable.ainvoke(input, config)
    return await _arun(runnable, input, config)


def _run(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    if isinstance(runnable, UntracedRunnable) and type(runnable).invoke is UntracedRunnable.invoke:
        return runnable.run_untraced(input, config)
    if type(runnable) is RunnableSequence:
        for step in runnable.steps:
            input = _run(step, input, config)
        return input
    if (function := _function(runnable)) is None:
        return runnable.invoke(input, config)
    output = function(input)
    return output.invoke(input, config) if isinstance(output, Runnable) else output


async def _arun(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    if isinstance(runnable, UntracedRunnable) and type(runnable).ainvoke is UntracedRunnable.ainvoke:
        return await runnable.arun_untraced(input, config)
    if type(runnable) is RunnableSequence:
        for step in runnable.steps:
            input = await _arun(step, input, config)
        return input
    if _function(runnable) is None or hasattr(runnable, "afunc"):
        return await runnable.ainvoke(input, config)
    return await run_in_executor(config, invoke, runnable, input, config)


def _function(runnable: object) -> Callable[[Any], Any] | None:
    """Return the function of a runnable, if it is one and takes nothing but its input."""
    function = getattr(runnable, "func", None) if type(runnable) is RunnableLambda else None
    if isinstance(function, MethodType):
        return function if _parameters(function.__func__) == 2 else None
    return function if isinstance(function, FunctionType) and _parameters(function) == 1 else None


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> int:
    """Return how many parameters a function has; 0 of one that yields or is awaited."""
    if isgeneratorfunction(function) or iscoroutinefunction(function):
        return 0
    return len(signature(function).parameters)
