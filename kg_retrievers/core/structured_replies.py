"""Ask language models for JSON objects of a bounded schema.

The schema is closed. Replies are read even if they were cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel

from kg_retrievers.core.replies import parse_object
from kg_retrievers.deadline import (
    await_foreign,
    await_foreign_function,
    call_foreign,
    check_deadline,
    seconds_left,
)
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError, ModelCallError
from kg_retrievers.foreign import client_errors


class GuardedModel(RunnableBindingBase[Any, Any]):
    """A language model, or a runnable made of one, with typed errors and a deadline."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model."""
        with client_errors(self._who):
            return call_foreign(partial(super().invoke, input, config, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model. A model without an async side runs in a thread that nothing waits for after the deadline."""
        with client_errors(self._who):
            if seconds_left() < math.inf and _blocks(self.bound):
                return await await_foreign_function(partial(super().invoke, input, config, **kwargs))
            return await await_foreign(super().ainvoke(input, config, **kwargs))

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream from the model, as chains do, and check the deadline after each part."""
        with client_errors(self._who):
            for part in super().transform(input, config, **kwargs):
                check_deadline()
                yield part

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Do as `transform`."""
        with client_errors(self._who):
            async for part in super().atransform(input, config, **kwargs):
                check_deadline()
                yield part

    @property
    def _who(self) -> str:
        return type(_model_in(self.bound) or self.bound).__name__


def guarded(model: Runnable[Any, Any]) -> GuardedModel:
    """Return a model whose calls end at the deadline.

    The deadline is the one of this context. Errors are typed and hold no secrets.

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
    """Tell whether the model in a runnable has no async side.

    Its calls would fill the loop's pool of threads.
    """
    model = _model_in(runnable)
    if isinstance(model, BaseChatModel):
        return type(model)._agenerate is BaseChatModel._agenerate and type(model)._astream is BaseChatModel._astream
    return isinstance(model, BaseLLM) and type(model)._agenerate is BaseLLM._agenerate


#: The longest list, and the longest text in characters, unless a form sets another limit. Without such bounds, a model
#: that repeats itself writes on until its reply is cut.
MAX_ITEMS, MAX_TEXT = 20, 300

#: Says of a reply that it was cut at the limit of its length.
CUT = "the reply was cut at the limit of its length. Be shorter."

#: How clients say why a reply ended, and by which words they say that it was cut.
_REASONS = ("finish_reason", "stop_reason", "done_reason")
_CUT_REASONS = ("length", "max_tokens", "model_length")

#: The errors of clients, by name, whose package need not be there: a reply was cut, or withheld.
_CUT_ERROR, _WITHHELD_ERROR = "LengthFinishReasonError", "ContentFilterFinishReasonError"

Form = TypeVar("Form", bound=BaseModel)


def bounded_schema(form: type[BaseModel], **fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a form, with bounds.

    No object is open, and every list and every text has a limit.

    Args:
        form: A pydantic model of the object.
        **fields: Additions to the schema of a field, by its name.

    Example:
        >>> class Reply(BaseModel):
        ...     names: list[str]
        >>> schema = bounded_schema(Reply, names={"maxItems": 3})
        >>> schema["additionalProperties"], schema["properties"]["names"]["maxItems"]
        (False, 3)
        >>> schema["properties"]["names"]["items"]
        {'type': 'string', 'maxLength': 300}
    """
    schema = form.model_json_schema()
    for name, added in fields.items():
        schema["properties"][name] |= added
    bounded: dict[str, Any] = _bounded(schema)
    return bounded


def _bounded(node: Any) -> Any:
    if isinstance(node, list):
        return [_bounded(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _bounded(value) for key, value in node.items()}
    if node.get("type") == "object":
        node.setdefault("additionalProperties", False)
    elif node.get("type") == "array":
        node.setdefault("maxItems", MAX_ITEMS)
    elif node.get("type") == "string" and not {"enum", "const"} & {*node}:
        node.setdefault("maxLength", MAX_TEXT)
    return node


class StructuredModel:
    """A language model that is asked for objects of a form.

    It uses the structured output of the model, if the model has it.

    Args:
        llm: The language model.
        form: A pydantic model of the object.
        structured: Whether to use the model's structured output. None uses it if the model has it.
        who: Who asks, for errors.

    Raises:
        InvalidArgumentError: If structured output is asked of a model that has it not.
    """

    def __init__(
        self, llm: BaseLanguageModel[Any], form: type[BaseModel], *, structured: bool | None = None, who: str
    ) -> None:
        """Find out whether the model has structured output."""
        self._llm, self._form = llm, form
        self._has_schema = structured is not False and _has_structured_output(llm, form)
        if structured and not self._has_schema:
            raise InvalidArgumentError(
                f"{who}: structured=True, but {type(llm).__name__} has no structured output. Leave it out."
            )

    def asked(self, **fields: Mapping[str, Any]) -> GuardedModel:
        """Return the runnable to call.

        `reply_text` and `read_object` read its output.

        Args:
            **fields: Additions to the schema of a field, by its name, for this question.
        """
        if not self._has_schema:
            return guarded(self._llm)
        # As a schema: for a class, the client of OpenAI raises an error of its own where a reply does not fit.
        schema = bounded_schema(self._form, **fields)
        return _CutReplies(bound=self._llm.with_structured_output(schema, include_raw=True))


def _has_structured_output(llm: BaseLanguageModel[Any], form: type[BaseModel]) -> bool:
    if not isinstance(llm, BaseChatModel):
        return False
    try:
        llm.with_structured_output(bounded_schema(form), include_raw=True)
    except NotImplementedError:
        return False
    return True


class _CutReplies(GuardedModel):
    """A model whose client raises an error if a reply was cut.

    Here the reply comes as far as it goes.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model."""
        try:
            return super().invoke(input, config, **kwargs)
        except Exception as error:
            return self._cut_reply(error)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the model."""
        try:
            return await super().ainvoke(input, config, **kwargs)
        except Exception as error:
            return self._cut_reply(error)

    def _cut_reply(self, error: Exception) -> AIMessage:
        """Return the reply that an error of a client holds.

        Raises:
            ModelCallError: If the server withheld the reply.
        """
        kind = type(error).__name__
        if kind == _WITHHELD_ERROR:
            raise ModelCallError(
                f"{self._who}: the server withheld its reply, for what it says. Ask otherwise, or ask another model."
            ) from error
        if kind != _CUT_ERROR:
            raise error
        choices = getattr(getattr(error, "completion", None), "choices", None) or [None]
        text = getattr(getattr(choices[0], "message", None), "content", None)
        return AIMessage(text or "", response_metadata={"finish_reason": "length"})


def reply_text(reply: Any) -> str:
    """Return the text of a reply.

    The reply is a message, the arguments of a call, or a structured output with either.
    """
    if isinstance(reply, Mapping):  # a structured output, with the message it came in
        reply = reply["raw"]
    if isinstance(reply, AIMessage) and reply.tool_calls:
        return json.dumps(reply.tool_calls[0]["args"], ensure_ascii=False)
    text = reply.text if isinstance(reply, BaseMessage) else str(reply)
    if isinstance(reply, AIMessage) and reply.invalid_tool_calls:
        return reply.invalid_tool_calls[0]["args"] or text
    return text


def was_cut(reply: Any) -> bool:
    """Tell whether a reply was cut at its length limit, by the client's account.

    Example:
        >>> was_cut(AIMessage("{", response_metadata={"finish_reason": "length"})), was_cut("{")
        (True, False)
    """
    message = reply["raw"] if isinstance(reply, Mapping) else reply
    told = getattr(message, "response_metadata", None) or {}
    return any(str(told.get(name)).casefold() in _CUT_REASONS for name in _REASONS)


def read_object(reply: Any, form: type[Form]) -> Form:
    """Read the object in a reply.

    Raises:
        AnswerParseError: If there is no object of the wanted form. The message says so if the reply was cut.
    """
    try:
        return parse_object(reply_text(reply), form)
    except AnswerParseError as error:
        if not was_cut(reply):
            raise
        raise AnswerParseError(f"{CUT} {error.reason}", error.reply) from error
