"""Count and limit the cost of language models during their calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import TypedDict

from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import BudgetError
from kg_retrievers.graph.verbalize import approximate_tokens

#: No call has as many tokens. A report of more is not believed.
MOST_TOKENS = 10**9


class Cost(TypedDict):
    """The cost of a run.

    Attributes:
        llm_calls: Requests to language models, failed ones included.
        input_tokens: Tokens of the prompts, as the model reports them. Without a report, the count of
            `approximate_tokens`.
        output_tokens: Tokens of the replies, likewise.
        seconds: Wall time.
    """

    llm_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class CostCounter(BaseCallbackHandler):
    """Count calls and tokens of all language models under it.

    The models may run in any thread.

    Args:
        llm_calls: How many calls are allowed. None allows any number.
        tokens: How many tokens of prompts and replies together are allowed. None allows any number. A call that begins
            below the limit is let through, since its length is not known before.

    Raises:
        BudgetError: In place of a call beyond a limit, and of a call or token after the deadline of the context.
            LangChain logs it as a warning, too.

    Example:
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> counter = CostCounter()
        >>> ScriptedChatModel(replies=["Spike Jonze"]).invoke("Who directed Her?", {"callbacks": [counter]}).text
        'Spike Jonze'
        >>> counter.llm_calls, counter.input_tokens, counter.output_tokens
        (1, 5, 3)
    """

    raise_error = True
    run_inline = True

    def __init__(self, llm_calls: int | None = None, tokens: int | None = None) -> None:
        """Start at zero."""
        self.llm_calls = self.input_tokens = self.output_tokens = 0
        self._limits = llm_calls, tokens
        self._prompts: dict[UUID, str] = {}
        self._lock = threading.Lock()

    def cost(self, seconds: float) -> Cost:
        """Return the counts, with the seconds of the run."""
        with self._lock:
            under_way = sum(map(approximate_tokens, self._prompts.values()))
            return Cost(
                llm_calls=self.llm_calls,
                input_tokens=self.input_tokens + under_way,
                output_tokens=self.output_tokens,
                seconds=seconds,
            )

    def _start(self, run_id: UUID, prompt: str) -> None:
        check_deadline()
        calls, tokens = self._limits
        with self._lock:
            if calls is not None and self.llm_calls >= calls:
                raise BudgetError("the budget allows no more calls of a language model.")
            if tokens is not None and self.input_tokens + self.output_tokens >= tokens:
                raise BudgetError("the budget allows no more tokens.")
            self.llm_calls += 1
            self._prompts[run_id] = prompt

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Count a call of a chat model, or refuse it."""
        self._start(run_id, "\n".join(message.text for part in messages for message in part))

    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **kwargs: Any) -> None:
        """Count a call of a completion model, or refuse it."""
        self._start(run_id, "\n".join(prompts))

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """End a stream for which nobody waits any longer."""
        check_deadline()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call."""
        generations = [one for part in response.generations for one in part]
        messages = [one.message for one in generations if isinstance(one, ChatGeneration)]
        usage = next((m.usage_metadata for m in messages if isinstance(m, AIMessage) and m.usage_metadata), None)
        read, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        with self._lock:
            prompt = self._prompts.pop(run_id, "")
            self.input_tokens += approximate_tokens(prompt) if read is None else read
            said = sum(approximate_tokens(one.text) for one in generations)
            self.output_tokens += said if written is None else written

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the prompt of a call that failed."""
        with self._lock:
            self.input_tokens += approximate_tokens(self._prompts.pop(run_id, ""))


def _count(usage: object, name: str) -> int | None:
    """Return a count that a model reports, or None if it is no count.

    Servers send texts, None and negative numbers, too.
    """
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < MOST_TOKENS else None
