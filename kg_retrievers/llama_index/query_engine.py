"""A query engine of LlamaIndex that says why a question was refused."""

from __future__ import annotations

from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.types import TokenAsyncGen

from kg_retrievers.core.replies import refusal_of
from kg_retrievers.errors import RefusalError
from kg_retrievers.graph.verbalize import as_data


class RefusingQueryEngine(RetrieverQueryEngine):
    """LlamaIndex's `RetrieverQueryEngine`; where its retriever refuses a question, the response is the reason.

    No language model is asked then. Made by `LlamaIndexRetriever.as_query_engine`.
    """

    #: Whether responses are streams.
    streaming: bool = False

    @classmethod
    def from_args(cls, retriever: BaseRetriever, *, streaming: bool = False, **options: Any) -> Self:  # type: ignore[override]
        """Build the engine as LlamaIndex does, of the same options."""
        engine: Any = super().from_args(retriever, streaming=streaming, **options)
        engine.streaming = streaming
        built: Self = engine
        return built

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        try:
            return super()._query(query_bundle)
        except RefusalError as refusal:
            text = _reason(refusal)
            return StreamingResponse(part for part in [text]) if self.streaming else Response(text)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        try:
            return await super()._aquery(query_bundle)
        except RefusalError as refusal:
            text = _reason(refusal)
            return AsyncStreamingResponse(_atokens(text)) if self.streaming else Response(text)


def _reason(refusal: RefusalError) -> str:
    return f"{refusal_of(refusal)} {as_data(str(refusal))}"


async def _atokens(text: str) -> TokenAsyncGen:
    yield text
