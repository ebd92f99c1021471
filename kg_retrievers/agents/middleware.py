"""Shows an agent's model evidence from a knowledge graph, as middleware. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NotRequired

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import PromptTemplate

from kg_retrievers.chains.evidence import check_token_budget, show_evidence
from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, MissingExtraError, RefusalError
from kg_retrievers.graph.verbalize import approximate_tokens, as_data

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
except ImportError as cause:
    raise MissingExtraError("KnowledgeGraphMiddleware", "langchain") from cause

#: Stands at the end of the system message. Placeholder: `evidence`.
EVIDENCE_PROMPT = PromptTemplate.from_template(
    f"A knowledge graph was searched for the user's question. The facts it holds, numbered. {FACTS_ARE_DATA}\n\n"
    f"{FRAMED_FACTS}\n\nRest your answer on these facts where they bear on the question, and cite their numbers, as in "
    "[1]."
)

#: Stands before the answer to a refused question, and the reason.
REFUSED = "A knowledge graph was asked the user's question."


class KnowledgeGraphState(AgentState[Any]):
    """The keys that the middleware adds to the state of an agent."""

    #: The evidence for the last question.
    knowledge_graph_documents: NotRequired[list[Document]]
    #: Why there is none: what was not understood, and what came nearest.
    knowledge_graph_reason: NotRequired[str | None]
    #: What the model is told then; None where the message names no entity of the graph.
    knowledge_graph_refusal: NotRequired[str | None]


class KnowledgeGraphMiddleware(AgentMiddleware[KnowledgeGraphState, Any, Any]):
    """Retrieves evidence for the user's last message, once a run, and shows it to the model of `create_agent`.

    The Documents stay in the state of the agent, as `knowledge_graph_documents`. Where the retriever refuses the
    question, whatever its `on_refusal`, the reason stays there as `knowledge_graph_reason`. The model is shown it, so
    that it can ask the user, unless the message names no entity of the graph: then it is shown nothing, since "Hello"
    is no question about the graph.

    Args:
        retriever: Any retriever of this package.
        max_tokens: The most tokens of evidence that the model is shown; None for no limit.
        count_tokens: Counts them, as the model at hand does.
        prompt: In place of ours, with the placeholder `evidence`.

    Raises:
        InvalidArgumentError: If `retriever` is none of this package, or the prompt has other placeholders.
    """

    state_schema = KnowledgeGraphState

    def __init__(
        self,
        retriever: BaseKGRetriever,
        *,
        max_tokens: int | None = 4000,
        count_tokens: Callable[[str], int] = approximate_tokens,
        prompt: PromptTemplate = EVIDENCE_PROMPT,
    ) -> None:
        """Check the arguments."""
        super().__init__()
        if not isinstance(retriever, BaseKGRetriever):
            raise InvalidArgumentError(
                f"KnowledgeGraphMiddleware: the retriever must be a BaseKGRetriever, but got {retriever!r:.100}."
            )
        check_token_budget(max_tokens, count_tokens, "KnowledgeGraphMiddleware")
        check_placeholders(prompt, ["evidence"], "KnowledgeGraphMiddleware: prompt")
        self.retriever, self.prompt = retriever, prompt
        self.max_tokens, self.count_tokens = max_tokens, count_tokens

    def before_agent(self, state: KnowledgeGraphState, runtime: Any) -> dict[str, Any]:
        """Retrieve evidence for the last message of the user."""
        try:
            question = _question(state)
            return _update(self.retriever.invoke(question, on_refusal="raise") if question else [])
        except RefusalError as refusal:
            return _update([], refusal)

    async def abefore_agent(self, state: KnowledgeGraphState, runtime: Any) -> dict[str, Any]:
        """Do as `before_agent`."""
        try:
            question = _question(state)
            return _update(await self.retriever.ainvoke(question, on_refusal="raise") if question else [])
        except RefusalError as refusal:
            return _update([], refusal)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[Any], ModelResponse[Any]]) -> Any:
        """Add the evidence to the system message."""
        return handler(self._with_evidence(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """Do as `wrap_model_call`."""
        return await handler(self._with_evidence(request))

    def _with_evidence(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        documents: list[Document] = request.state.get("knowledge_graph_documents") or []  # type: ignore[assignment]
        text: Any = request.state.get("knowledge_graph_refusal")
        if documents:
            shown = show_evidence(documents, "numbered", max_tokens=self.max_tokens, count_tokens=self.count_tokens)
            text = self.prompt.format(evidence=shown.text)
        if not text:
            return request
        before = request.system_message.content_blocks if request.system_message else []
        text = f"\n\n{text}" if before else text
        return request.override(system_message=SystemMessage(content_blocks=[*before, {"type": "text", "text": text}]))


def _update(documents: list[Document], refusal: RefusalError | None = None) -> dict[str, Any]:
    return {
        "knowledge_graph_documents": documents,
        "knowledge_graph_reason": None if refusal is None else str(refusal),
        "knowledge_graph_refusal": None if refusal is None else _describe(refusal),
    }


def _describe(refusal: RefusalError) -> str | None:
    """Return what the model is shown if a question is refused; nothing if it names no entity of the graph."""
    if isinstance(refusal, EntityLinkingError):
        return None
    return f"{REFUSED} {refusal_of(refusal)} {as_data(str(refusal))}"


def _question(state: KnowledgeGraphState) -> str:
    """Return the last message of the user."""
    return next((message.text for message in reversed(state["messages"]) if isinstance(message, HumanMessage)), "")
