"""Wraps LlamaIndex's embedding and language models as LangChain's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from inspect import getattr_static
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.token_counting import get_tokens_from_response
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, CustomLLM, MessageRole

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import embedding_name

#: Who may speak in a message, for LangChain and for LlamaIndex.
ROLES: dict[type[BaseMessage], MessageRole] = {
    HumanMessage: MessageRole.USER,
    AIMessage: MessageRole.ASSISTANT,
    SystemMessage: MessageRole.SYSTEM,
}


class LlamaIndexEmbeddings(Embeddings):
    """Embeddings of LlamaIndex, for `GraphIndex.build` and whatever else takes LangChain's.

    The async methods run the sync ones in a thread: those of LlamaIndex block the event loop where a model runs on this
    machine.

    Args:
        embed_model: The embedding model. An index tells models apart by class, model name, dimension and vectors.

    Raises:
        InvalidArgumentError: If it is no embedding model of LlamaIndex.

    Example:
        >>> from llama_index.core import MockEmbedding
        >>> LlamaIndexEmbeddings(MockEmbedding(embed_dim=2)).embed_query("Her")
        [0.5, 0.5]
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        """Check the model."""
        if not isinstance(embed_model, BaseEmbedding):
            raise InvalidArgumentError(
                f"LlamaIndexEmbeddings: wanted an embedding model of LlamaIndex, but got {embed_model!r:.100}."
            )
        self.embed_model = embed_model
        #: Names the model in the fingerprint of an index.
        self.model = embedding_name(cast(Embeddings, embed_model))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self.embed_model.get_text_embedding_batch(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return a vector, with the model's own instruction for queries where it has one."""
        return self.embed_model.get_query_embedding(text)


class LlamaIndexChatModel(BaseChatModel):
    """A language model of LlamaIndex, for retrievers, answerers and whatever else takes a chat model of LangChain.

    It is called through `chat`, `achat`, `stream_chat` and `astream_chat`; a `CustomLLM` whose async methods are
    LlamaIndex's own, which block the event loop, is called in a thread. Tokens are passed on where the reply tells
    them. Messages are texts by a human, an AI or the system; no tools, no structured output.

    Args:
        llm: The language model. Its `system_prompt` is not used: our prompts are complete.
        **fields: Fields of LangChain's chat models, as `tags` or `rate_limiter`.

    Raises:
        InvalidArgumentError: If `llm` is no language model of LlamaIndex; from a call, if a message is something else.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> LlamaIndexChatModel(MockLLM(max_tokens=2)).invoke("Who directed Her?").text
        'text text'
    """

    llm: LLM

    def __init__(self, llm: LLM, **fields: Any) -> None:
        """Check the model."""
        if not isinstance(llm, LLM):
            raise InvalidArgumentError(
                f"LlamaIndexChatModel: wanted a language model of LlamaIndex, but got {llm!r:.100}."
            )
        super().__init__(llm=llm, **fields)  # type: ignore[call-arg]

    @property
    def _llm_type(self) -> str:
        return "llama-index"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"class_name": self.llm.class_name(), **self.llm.metadata.model_dump()}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._result(self.llm.chat(chat_messages(messages), **_options(stop, kwargs)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if _blocks(self.llm, "achat"):
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return self._result(await self.llm.achat(chat_messages(messages), **_options(stop, kwargs)))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        usage = None
        for reply in self.llm.stream_chat(chat_messages(messages), **_options(stop, kwargs)):
            usage = _usage(reply) or usage
            chunk = _chunk(reply.delta or "")
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
        yield self._last_chunk(usage)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if _blocks(self.llm, "astream_chat"):
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
            return
        usage = None
        async for reply in await self.llm.astream_chat(chat_messages(messages), **_options(stop, kwargs)):
            usage = _usage(reply) or usage
            chunk = _chunk(reply.delta or "")
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
        yield self._last_chunk(usage)

    def _result(self, reply: ChatResponse) -> ChatResult:
        message = AIMessage(
            reply.message.content or "", usage_metadata=_usage(reply), response_metadata=self._response_metadata
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _last_chunk(self, usage: UsageMetadata | None) -> ChatGenerationChunk:
        return _chunk("", usage_metadata=usage, response_metadata=self._response_metadata, chunk_position="last")

    @property
    def _response_metadata(self) -> dict[str, Any]:
        return {"model_name": self.llm.metadata.model_name}


def _blocks(llm: LLM, method: str) -> bool:
    """Whether an async method is that of CustomLLM, which calls the sync one on the event loop."""
    return getattr_static(type(llm), method) is getattr_static(CustomLLM, method)


def _chunk(text: str, **fields: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text, **fields))


def _options(stop: list[str] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"stop": stop, **kwargs} if stop else kwargs


def chat_messages(messages: Sequence[BaseMessage]) -> list[ChatMessage]:
    """Convert messages to LlamaIndex's; they may hold nothing but text."""
    written = []
    for message in messages:
        role = next((role for kind, role in ROLES.items() if isinstance(message, kind)), None)
        blocks = [message.content] if isinstance(message.content, str) else message.content
        if role is None or any(not isinstance(block, str) and block.get("type") != "text" for block in blocks):
            raise InvalidArgumentError(
                "LlamaIndex is given only texts by a human, an AI or the system, but a message is "
                f"{message!r:.200}. Leave out images, files and tools."
            )
        written.append(ChatMessage(content=str(message.text), role=role))
    return written


def _usage(reply: ChatResponse) -> UsageMetadata | None:
    try:
        read, wrote = get_tokens_from_response(reply)
    except (TypeError, ValueError, AttributeError):  # LlamaIndex expects `raw` to be like a dictionary
        return None
    return UsageMetadata(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote) if read or wrote else None
