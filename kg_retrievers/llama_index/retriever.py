"""Any retriever of this package as one of LlamaIndex's: for its engines and agents."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

from langchain_core.documents import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool, ToolMetadata, ToolOutput
from llama_index.core.types import TokenAsyncGen

from kg_retrievers.core.documents import why_unsure
from kg_retrievers.core.facts_prompt import TOOL_MESSAGE
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, RefusalError, check_known, named_arguments
from kg_retrievers.graph.verbalize import as_data, as_data_lines
from kg_retrievers.llama_index.prompts import to_llama_index
from kg_retrievers.questions.follow_up import FollowUpReader, OpenFollowUp


@named_arguments
def as_llama_index(retriever: BaseKGRetriever, **inputs: Any) -> LlamaIndexRetriever:
    """Return a LlamaIndex retriever with the evidence of `retriever`.

    The evidence keeps its order.

    Args:
        retriever: Any retriever of this package. It is not changed, whatever is done to the result.
        **inputs: The arguments of `retriever.invoke` in addition to the question, such as `k` or `seed_entities`. They
            are the same for every query, since a query of LlamaIndex has no room for them. Make a second retriever for
            other inputs, at no cost.

    Raises:
        InvalidArgumentError: If `retriever` is none of this package, or an input is misspelt or out of range.
        EntityLinkingError: If a seed entity is not in the graph.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> node = as_llama_index(retriever).retrieve("Who directed Her?")[0]
        >>> node.text, node.metadata["triples"]
        ('Her -> directed by -> Spike Jonze', [['Her', 'directed_by', 'Spike Jonze']])
    """
    if not isinstance(retriever, BaseKGRetriever):
        raise InvalidArgumentError(f"as_llama_index: wanted a retriever of kg_retrievers, but got {retriever!r:.100}.")
    retriever.initial_state("?", **inputs)
    return LlamaIndexRetriever(retriever, inputs)


class LlamaIndexRetriever(BaseRetriever):
    """A LlamaIndex retriever over a retriever of this package.

    `as_llama_index` makes it.

    A node is one Document: its id and text, `score` from the metadata, all of the metadata, none of it shown to a
    language or embedding model. Of a query only the text is read, without white space at its ends. Embeddings that
    LlamaIndex put into it are not used. `aretrieve` awaits `ainvoke`, so that a cancelled query cancels the request to
    the model. Events go to the handlers of LlamaIndex's `Settings`, or to the handlers of a `callback_manager` that you
    set.

    A refused question gives no nodes, or raises the error if the retriever's `on_refusal` is "raise". The results of
    `as_query_engine` and `as_tool` answer it with the reason.

    `get_prompts()` gives the prompts of the retriever as LlamaIndex templates, with `query_str` and `context_str` for
    `question` and `evidence`. To change a prompt, build the retriever with another one.

    Raises:
        InvalidArgumentError: From `update_prompts`.
    """

    def __init__(self, retriever: BaseKGRetriever, inputs: dict[str, Any]) -> None:
        """Take arguments that `as_llama_index` has checked.

        Call that function instead.
        """
        super().__init__()
        self._retriever = retriever
        self._inputs = inputs

    @property
    def retriever(self) -> BaseKGRetriever:
        """The retriever that is asked."""
        return self._retriever

    @property
    def answer_template(self) -> BasePromptTemplate:
        """The method's prompt for answering, with `context_str` and `query_str`: a `text_qa_template` for engines."""
        return to_llama_index(self._retriever.answer_prompt)

    def as_query_engine(self, **options: Any) -> RefusingQueryEngine:
        """Return a query engine that answers a refused question with the reason.

        Other engines answer "Empty Response".

        Args:
            **options: The arguments of `RetrieverQueryEngine.from_args`, such as `llm`. The `text_qa_template` is the
                method's prompt for answering unless you give another one.

        Example:
            >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
            >>> from llama_index.core.llms import MockLLM
            >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
            >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
            >>> engine = as_llama_index(retriever).as_query_engine(llm=MockLLM())
            >>> print(engine.query("Who directed Xyzzyplugh?"))  # doctest: +ELLIPSIS
            The question was not understood. No entity of the graph was found in ...
        """
        return RefusingQueryEngine.from_args(self._raising(), **{"text_qa_template": self.answer_template, **options})

    def as_chat_engine(self, **options: Any) -> FollowUpChatEngine:
        """Return a chat engine that understands follow-ups by the rules of `FollowUpReader`.

        The language model rewrites a follow-up that the rules do not understand, by the engine's prompt.

        Args:
            **options: What `as_query_engine` takes. `memory` and `chat_history` go to the chat engine.
        """
        own = {name: options.pop(name) for name in ("memory", "chat_history") if name in options}
        engine: Any = FollowUpChatEngine.from_defaults(self.as_query_engine(**options), llm=options.get("llm"), **own)
        engine.follow_ups = FollowUpReader(self._retriever.index)
        built: FollowUpChatEngine = engine
        return built

    def as_tool(self, *, name: str | None = None, description: str | None = None) -> RetrieverTool:
        """Return a tool for agents.

        Its only argument, `input`, is the question. It says why a question is refused.

        Prefer it to `RetrieverTool.from_defaults(...)`: that one retrieves for "input is Who directed Her?" when an
        agent calls it with `input="Who directed Her?"`.
        """
        shown = name or "search_knowledge_graph"
        purpose = description or "Search a knowledge graph for facts that answer a question."
        return _QuestionTool(retriever=self._raising(), metadata=ToolMetadata(purpose, shown))

    def _raising(self) -> Self:
        """Return a copy that raises the error if a question is refused."""
        other = copy(self)
        other._inputs = {**self._inputs, "on_refusal": "raise"}
        return other

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(document) for document in self._retriever.invoke(query_bundle.query_str.strip(), **self._inputs)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        documents = await self._retriever.ainvoke(query_bundle.query_str.strip(), **self._inputs)
        return [_node(document) for document in documents]

    def _get_prompts(self) -> PromptDictType:
        return {name: to_llama_index(prompt) for name, prompt in self._retriever.prompts.items()}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        raise InvalidArgumentError(
            f"update_prompts: the prompts {sorted(prompts)} belong to the retriever. Build the "
            f"{type(self._retriever).__name__} with other prompts, and call as_llama_index again."
        )


class RefusingQueryEngine(RetrieverQueryEngine):
    """Answer a refused question with the reason.

    Otherwise this is LlamaIndex's `RetrieverQueryEngine`.

    No language model is asked then. Made by `LlamaIndexRetriever.as_query_engine`.
    """

    #: Whether responses are streams.
    streaming: bool = False

    @classmethod
    def from_args(cls, retriever: BaseRetriever, *, streaming: bool = False, **options: Any) -> Self:  # type: ignore[override]
        """Build the engine as LlamaIndex does, of the same options."""
        known = signature(super().from_args).parameters.keys() - {"retriever", "kwargs"}
        check_known("as_query_engine", options, sorted(known))
        engine: Any = super().from_args(retriever, streaming=streaming, **options)
        engine.streaming = streaming
        built: Self = engine
        return built

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        try:
            _check_clear(query_bundle)
            return super()._query(query_bundle)
        except RefusalError as refusal:
            text = _reason(refusal)
            return StreamingResponse(part for part in [text]) if self.streaming else Response(text)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        try:
            _check_clear(query_bundle)
            return await super()._aquery(query_bundle)
        except RefusalError as refusal:
            text = _reason(refusal)
            return AsyncStreamingResponse(_atokens(text)) if self.streaming else Response(text)


@dataclass
class _Unclear(QueryBundle):
    """A follow-up that is refused."""

    refusal: RefusalError | None = None


def _check_clear(query: QueryBundle) -> None:
    if isinstance(query, _Unclear) and query.refusal:
        raise query.refusal


class FollowUpChatEngine(CondenseQuestionChatEngine):
    """LlamaIndex's `CondenseQuestionChatEngine` with the rules of `FollowUpReader` before its language model.

    `response.sources[0].raw_input["query"]` is the question as it was understood. The answers of earlier questions are
    the entities that the chat history names. A follow-up that is not clear is answered with the options. Made by
    `LlamaIndexRetriever.as_chat_engine`.
    """

    follow_ups: FollowUpReader

    def _condense_question(self, chat_history: list[ChatMessage], last_message: str) -> Any:
        begun = self._begin(chat_history, last_message)
        if isinstance(begun, str):
            return begun
        return _end(begun, super()._condense_question(chat_history, last_message))

    async def _acondense_question(self, chat_history: list[ChatMessage], last_message: str) -> Any:
        begun = self._begin(chat_history, last_message)
        if isinstance(begun, str):
            return begun
        return _end(begun, await super()._acondense_question(chat_history, last_message))

    def _begin(self, chat_history: Sequence[ChatMessage], question: str) -> str | OpenFollowUp:
        exchanges = list[tuple[str, str]]()
        for message in chat_history:
            if message.role == MessageRole.USER:
                exchanges.append((message.content or "", ""))
            elif message.role == MessageRole.ASSISTANT and exchanges:
                exchanges[-1] = exchanges[-1][0], message.content or ""
        return self.follow_ups.begin(question, self.follow_ups.turns_of(exchanges))


def _end(begun: OpenFollowUp, written: str) -> str | QueryBundle:
    try:
        return begun.end(written)
    except RefusalError as refusal:
        return _Unclear(begun.question, refusal=refusal)


def _reason(refusal: RefusalError) -> str:
    return f"{refusal_of(refusal)} {as_data(str(refusal))}"


async def _atokens(text: str) -> TokenAsyncGen:
    yield text


class _QuestionTool(RetrieverTool):
    """A tool whose argument `input` is the question itself.

    Its output frames the facts, or says why there are none.
    """

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        try:
            return self._framed(super().call(self._question(args, kwargs)))
        except KGRetrieversError as error:
            return self._refusal(error)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        try:
            return self._framed(await super().acall(self._question(args, kwargs)))
        except KGRetrieversError as error:
            return self._refusal(error)

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the question.

        Raises:
            InvalidArgumentError: If there is none, or more than that.
        """
        given = [*args, *kwargs.values()]
        if len(given) == 1 and isinstance(given[0], str) and given[0].strip() and {*kwargs} <= {"input"}:
            return given[0]
        shown = kwargs or given
        raise InvalidArgumentError(
            f"{self.metadata.name}: wanted the question as one text, input, but got {shown!r:.200}.",
            hint_agent="Call it again with a full question as input.",
        )

    def _framed(self, output: ToolOutput) -> ToolOutput:
        why = as_data_lines(why_unsure(output.raw_output))
        content = "\n\n".join(filter(None, [why, TOOL_MESSAGE.format(evidence=output.content.strip())]))
        return ToolOutput(
            content=content, tool_name=output.tool_name, raw_input=output.raw_input, raw_output=output.raw_output
        )

    def _refusal(self, error: KGRetrieversError) -> ToolOutput:
        content = as_data_lines(error.on_agent)
        return ToolOutput(content=content, tool_name=self.metadata.name or "", raw_input={}, raw_output=[])


def _node(document: Document) -> NodeWithScore:
    keys = list(document.metadata)
    node = TextNode(
        **({} if document.id is None else {"id_": document.id}),
        text=document.page_content,
        metadata=document.metadata,
        excluded_llm_metadata_keys=keys,
        excluded_embed_metadata_keys=keys,
    )
    return NodeWithScore(node=node, score=document.metadata["score"])
