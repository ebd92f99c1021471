"""Watcher: reads LangChain's callbacks once, for all that watch."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from kg_retrievers.core.cost import approximate_reply, read_usage
from kg_retrievers.core.stages import REFUSAL_EVENT, RETRIEVER_KEY, STAGE_KEY
from kg_retrievers.errors import RefusalError
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.telemetry.runs import Kind, Run

_LOGGER = logging.getLogger(__name__)

#: How many runs may be under way; beyond that the oldest is taken for one whose end nobody told.
MOST_UNDER_WAY = 20_000

#: The error of such a run.
ABANDONED = "Abandoned"

Callback = TypeVar("Callback", bound=Callable[..., None])


def _harmless(method: Callback) -> Callback:
    """Make a callback that never raises: what it watches goes on."""

    @wraps(method)
    def call(self: Watcher, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.tell_once(error)

    return cast(Callback, call)


class Watcher(BaseCallbackHandler):
    """A handler for LangChain's callbacks that knows questions, stages and calls of models; from any thread.

    A subclass does something where a run begins (`begin`) or has ended (`finish`). An error in it is logged once, by
    its class alone, and what is watched goes on.
    """

    run_inline = True  # in order, and in the context of the run, where a span of the caller may be open

    def __init__(self) -> None:
        """Begin with no runs."""
        self._at: dict[UUID, Run] = {}  # by each run of LangChain, the watched one that it is, or is part of
        self._lock = threading.Lock()
        self._failed = False

    def begin(self, run: Run) -> None:
        """Take note of a run that begins."""

    def finish(self, run: Run) -> None:
        """Take note of a run that has ended."""

    def tell_once(self, error: Exception) -> None:
        """Log the first error of the watcher itself, without its text, which may be a user's."""
        if not self._failed:
            self._failed = True
            kind = type(error).__name__
            _LOGGER.warning("%s failed with %s and is not told again; nothing else is lost.", type(self).__name__, kind)

    def _start(self, run: Run) -> None:
        with self._lock:
            self._at[run.id] = run
            oldest = next(iter(self._at)) if len(self._at) > MOST_UNDER_WAY else None
        if oldest is not None:
            self._abandon(oldest)
        self.begin(run)

    def _abandon(self, run_id: UUID) -> None:
        run = self._at.pop(run_id, None)
        if run is not None and run.id == run_id:
            run.error = ABANDONED
            self._finish(run)

    def _finish(self, run: Run) -> None:
        with self._lock:
            run.end()
        self.finish(run)

    def _parent(self, parent_run_id: UUID | None) -> Run | None:
        return self._at.get(parent_run_id) if parent_run_id else None

    def _ended(self, run_id: UUID, output: object) -> None:
        run = self._at.pop(run_id, None)
        if run is not None and run.id == run_id:
            run.give(output)
            self._finish(run)

    def _raised(self, run_id: UUID, error: BaseException) -> None:
        run = self._at.pop(run_id, None)
        if run is None:
            return
        if run.id != run_id:  # a step inside of it, whose error may be handled
            if isinstance(error, RefusalError):
                run.refused_under = type(error).__name__
            return
        run.fail(error)
        self._finish(run)
        above = run.parent
        if above and above.kind == "retriever" and isinstance(error, asyncio.CancelledError):
            self._raised(above.id, error)  # LangChain does not tell of a retriever that is cancelled

    # --- what LangChain calls ---------------------------------------------------------------------------------------

    @_harmless
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a workflow, a stage, or a chain; a step inside of one is part of it."""
        parent, told, name = self._parent(parent_run_id), metadata or {}, kwargs.get("name") or "chain"
        kind = _kind_of_chain(name, tags or (), told, parent)
        if parent and parent.kind == "stage" and told.get(STAGE_KEY) == parent.name:
            parent.retriever = told.get(RETRIEVER_KEY)
        if kind:
            given = inputs.get("question") if isinstance(inputs, Mapping) else inputs
            retriever = told.get(RETRIEVER_KEY) if told.get(STAGE_KEY) == name else None
            self._start(Run(run_id, kind, name, parent, retriever, given=given if isinstance(given, str) else ""))
        elif parent:
            self._at[run_id] = parent

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note what it gave."""
        self._ended(run_id, outputs)

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the error."""
        self._raised(run_id, error)

    @_harmless
    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a retriever."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        self._start(Run(run_id, "retriever", name, self._parent(parent_run_id), given=query))

    @_harmless
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a retriever refused its question."""
        run = self._at.get(run_id)
        if name == REFUSAL_EVENT and run is not None:
            run.refusal, run.told = data["kind"], data["reason"]

    @_harmless
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        """Note the Documents."""
        self._ended(run_id, documents)

    @_harmless
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the error."""
        self._raised(run_id, error)

    def _start_model(self, prompt: str, run_id: UUID, parent_run_id: UUID | None, told: Mapping[str, Any]) -> None:
        metadata = told.get("metadata") or {}
        name = metadata.get("ls_model_name") or told.get("name") or ""
        run = Run(
            run_id, "model", name, self._parent(parent_run_id), provider=metadata.get("ls_provider"), given=prompt
        )
        with self._lock:
            for one in run.lineage():
                one.model_calls += 1
        self._start(run)

    @_harmless
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a call of a chat model."""
        prompt = "\n".join(message.text for part in messages for message in part)
        self._start_model(prompt, run_id, parent_run_id, kwargs)

    @_harmless
    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a call of a completion model."""
        self._start_model("\n".join(prompts), run_id, parent_run_id, kwargs)

    def _spend(self, run: Run, read: int, written: int, estimated: bool) -> None:
        with self._lock:
            for one in run.lineage():
                one.input_tokens += read
                one.output_tokens += written
                one.estimated = one.estimated or estimated

    @_harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the tokens of a call."""
        run = self._at.get(run_id)
        if run is not None:
            read, written = read_usage(response)
            prompt = approximate_tokens(run.given) if read is None else read
            reply = approximate_reply(response) if written is None else written
            self._spend(run, prompt, reply, read is None or written is None)
        self._ended(run_id, None)

    @_harmless
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the error, and the prompt that was sent."""
        run = self._at.get(run_id)
        if run is not None:
            self._spend(run, approximate_tokens(run.given), 0, True)
        self._raised(run_id, error)

    @_harmless
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a tool."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "tool"
        self._start(Run(run_id, "tool", name, self._parent(parent_run_id), given=input_str))

    @_harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note its end."""
        self._ended(run_id, None)

    @_harmless
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the error."""
        self._raised(run_id, error)


def _kind_of_chain(name: str, tags: Sequence[str], metadata: Mapping[str, Any], parent: Run | None) -> Kind | None:
    """Return what a run of a chain is; None for a step inside of another."""
    is_node = name == metadata.get("langgraph_node") and any(tag.startswith("graph:step:") for tag in tags)
    if is_node or name == metadata.get(STAGE_KEY):
        inside = parent is not None and parent.kind == "stage" and parent.name == name
        return None if inside else "stage"
    if parent is not None:
        return None
    return "workflow" if metadata.get("ls_integration") == "langgraph" else "chain"
