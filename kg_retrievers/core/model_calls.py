"""Calls language models of others: each call ends at the deadline, and no secret and no untyped error comes out."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase

from kg_retrievers.deadline import (
    await_foreign,
    await_foreign_function,
    call_foreign,
    check_deadline,
    seconds_left,
)
from kg_retrievers.foreign import client_errors


class GuardedModel(RunnableBindingBase[Any, Any]):
    """A language model, or what was made of one, whose calls end at the deadline and raise typed errors."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model."""
        with client_errors(self._who):
            return call_foreign(partial(super().invoke, input, config, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model; one without an async side runs in a thread that nothing waits for after the deadline."""
        with client_errors(self._who):
            if seconds_left() < math.inf and _blocks(self.bound):
                return await await_foreign_function(partial(super().invoke, input, config, **kwargs))
            return await await_foreign(super().ainvoke(input, config, **kwargs))

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream from the model; the deadline is looked at after each part."""
        yield from self._checked(super().stream(input, config, **kwargs))

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Do as `stream`."""
        yield from self._checked(super().transform(input, config, **kwargs))

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Do as `stream`."""
        with client_errors(self._who):
            async for part in super().astream(input, config, **kwargs):
                check_deadline()
                yield part

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Do as `stream`."""
        with client_errors(self._who):
            async for part in super().atransform(input, config, **kwargs):
                check_deadline()
                yield part

    def _checked(self, parts: Iterator[Any]) -> Iterator[Any]:
        with client_errors(self._who):
            for part in parts:
                check_deadline()
                yield part

    @property
    def _who(self) -> str:
        return type(_model_in(self.bound) or self.bound).__name__


def guarded(model: Runnable[Any, Any]) -> GuardedModel:
    """Return a model whose calls end at the deadline of this context, and raise typed errors without secrets.

    Example:
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> guarded(ScriptedChatModel(replies=[KeyError("choices")])).invoke("Who directed Her?")
        Traceback (most recent call last):
        kg_retrievers.errors.ModelCallError: ScriptedChatModel: the client failed on what its server sent (KeyError: \
'choices'). Check the address of the server, and whether it speaks the protocol of this client.
    """
    return GuardedModel(bound=model)


def _model_in(runnable: object) -> BaseLanguageModel[Any] | None:
    """Return the language model in a runnable, inside of bindings and sequences."""
    if isinstance(runnable, BaseLanguageModel):
        return runnable
    if isinstance(runnable, RunnableBindingBase):
        return _model_in(runnable.bound)
    if isinstance(runnable, RunnableSequence):
        return next(filter(None, map(_model_in, runnable.steps)), None)
    steps = getattr(runnable, "steps__", None)  # of a RunnableParallel
    return next(filter(None, map(_model_in, steps.values())), None) if isinstance(steps, dict) else None


def _blocks(runnable: object) -> bool:
    """Tell whether the model in a runnable has no async side: its calls would fill the loop's pool of threads."""
    model = _model_in(runnable)
    if isinstance(model, BaseChatModel):
        return type(model)._agenerate is BaseChatModel._agenerate and type(model)._astream is BaseChatModel._astream
    return isinstance(model, BaseLLM) and type(model)._agenerate is BaseLLM._agenerate
