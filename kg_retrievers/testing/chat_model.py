"""A chat model that follows a script, without a network."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

#: One for all models: it is held for a moment only, and a model stays copyable.
_LOCK = threading.Lock()


class ScriptedChatModel(BaseChatModel):
    """A chat model that gives prepared replies in order, without a network.

    It works with `invoke`, `ainvoke`, `stream` (by words), `astream` and `batch`, from any thread. In a batch, the
    threads decide which prompt gets which reply. Use a function as script there.

    The fakes of langchain_core do less. None records the prompts or raises a prepared error. `GenericFakeChatModel`
    takes an iterator, which threads cannot share and whose end shows as a bare `StopIteration`. `FakeListChatModel`
    starts again silently when it should have run out.

    Args:
        replies: The replies: a list of texts, of exceptions that a call should raise, and of messages that call tools,
            or a function from the text of the prompt to the reply.
        cycle: Whether to start again after the last reply of a list.

    Raises:
        AssertionError: On a call after the last reply of a list, unless `cycle` is set.

    Example:
        >>> model = ScriptedChatModel(replies=["Spike Jonze", TimeoutError("no answer")])
        >>> model.invoke("Who directed Her?").text
        'Spike Jonze'
        >>> model.prompts[0][0].text
        'Who directed Her?'
    """

    replies: list[str | Exception | AIMessage] | Callable[[str], str | AIMessage]
    cycle: bool = False
    #: The messages of each call so far, in order.
    prompts: list[list[BaseMessage]] = Field(default_factory=list, repr=False)

    @property
    def _llm_type(self) -> str:
        return "scripted-chat-model"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Self:
        """Return the model itself, whose script calls tools."""
        return self

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        """Refuse, so that replies are read as texts."""
        raise NotImplementedError("ScriptedChatModel has no structured output.")

    def _next_reply(self, messages: list[BaseMessage]) -> str | AIMessage:
        with _LOCK:
            position = len(self.prompts)
            self.prompts.append(messages)
        if not isinstance(self.replies, list):
            return self.replies("\n".join(message.text for message in messages))
        if self.cycle and self.replies:
            position %= len(self.replies)
        if position >= len(self.replies):
            raise AssertionError(
                f"ScriptedChatModel: call {position + 1}, but the script has {len(self.replies)} replies. "
                "Add a reply, or set cycle=True."
            )
        reply = self.replies[position]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._next_reply(messages)
        message = AIMessage(content=reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._next_reply(messages)
        if isinstance(reply, AIMessage):
            fields = {name: getattr(reply, name) for name in ("content", "tool_calls", "invalid_tool_calls")}
            yield ChatGenerationChunk(message=AIMessageChunk(**fields, chunk_position="last"))
            return
        words = re.findall(r"\s*\S+|\s+", reply) or [""]
        for count, word in enumerate(words, start=1):
            message = AIMessageChunk(content=word, chunk_position="last" if count == len(words) else None)
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
