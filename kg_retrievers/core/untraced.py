"""Calls runnables without the runs that LangChain keeps for callbacks, where no callback listens.

A runnable returns, raises and finds in its context what it does with runs. A model that it calls still makes its run,
under that of the retriever.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from inspect import CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType, MethodType
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableSequence
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    merge_configs,
    run_in_executor,
    set_config_context,
)

Input = TypeVar("Input")
Output = TypeVar("Output")

#: A function of this kind yields, is awaited, or takes more than its input.
_SPECIAL = CO_GENERATOR | CO_COROUTINE | CO_VARARGS | CO_VARKEYWORDS


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
    """Tell whether a run under this config would have a handler, set by a caller, the context or the environment.

    Example:
        >>> from langchain_core.callbacks import CallbackManager, StdOutCallbackHandler
        >>> [is_traced({"callbacks": CallbackManager(handlers)}) for handlers in ([], [StdOutCallbackHandler()])]
        [False, True]
    """
    return bool(get_callback_manager_for_config(config).handlers)


def invoke(
    runnable: Runnable[Any, Any], input: Any, config: RunnableConfig, shown_as: RunnableConfig | None = None
) -> Any:
    """Return what a runnable returns; where nobody listens, functions and sequences make no runs.

    Args:
        runnable: Any.
        input: Its input.
        config: That of the run which calls it.
        shown_as: What whoever listens is told of its run besides.
    """
    if is_traced(config):
        return runnable.invoke(input, merge_configs(config, shown_as))
    config = ensure_config(config)  # what a function calls without a config takes this one from the context
    with set_config_context(config) as context:
        return context.run(_run, runnable, input, config)


async def ainvoke(
    runnable: Runnable[Any, Any], input: Any, config: RunnableConfig, shown_as: RunnableConfig | None = None
) -> Any:
    """Do as `invoke`; functions run in a thread."""
    if is_traced(config):
        return await runnable.ainvoke(input, merge_configs(config, shown_as))
    config = ensure_config(config)
    with set_config_context(config) as context:
        return await asyncio.create_task(_arun(runnable, input, config), context=context)


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
    function = _function(runnable)
    if function is None or hasattr(runnable, "afunc"):
        return await runnable.ainvoke(input, config)
    output = await run_in_executor(config, function, input)
    return await output.ainvoke(input, config) if isinstance(output, Runnable) else output


def _function(runnable: object) -> Callable[[Any], Any] | None:
    """Return the function of a runnable, if it is a plain one and takes nothing but its input."""
    function = getattr(runnable, "func", None) if type(runnable) is RunnableLambda else None
    plain, parameters = (function.__func__, 2) if isinstance(function, MethodType) else (function, 1)
    if not isinstance(plain, FunctionType):
        return None
    code = plain.__code__
    takes_input_alone = code.co_argcount == parameters and not code.co_kwonlyargcount and not code.co_flags & _SPECIAL
    return function if takes_input_alone else None
