"""Shows an agent's model evidence from a knowledge graph, as middleware. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NotRequired

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.prompts import PromptTemplate

from kg_retrievers.chains.evidence import check_token_budget, show_evidence
from kg_retrievers.core.documents import documents_answers, why_unsure
from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.errors import (
    EntityLinkingError,
    InvalidArgumentError,
    MissingExtraError,
    RefusalError,
    named_arguments,
)
from kg_retrievers.graph.verbalize import approximate_tokens, as_data
from kg_retrievers.questions.follow_up import FollowUpReader, Turn, with_turn

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

#: Stands before the evidence for a follow-up. Placeholder: the question as it was understood.
UNDERSTOOD = "The user's question was understood as: {}"

#: Stands before the answer to a refused question, and the reason.
REFUSED = "A knowledge graph was asked the user's question."


class KnowledgeGraphState(AgentState[Any]):
    """The keys that the middleware adds to the state of an agent."""

    #: The evidence for the last question.
    knowledge_graph_documents: NotRequired[list[Document]]
    #: Why there is none: the words that were not understood, and the nearest matches.
    knowledge_graph_reason: NotRequired[str | None]
    #: The text that the model is shown in that case. None if the message names no entity of the graph.
    knowledge_graph_refusal: NotRequired[str | None]
    #: The last question as it was understood, so that it stands alone.
    knowledge_graph_asked_as: NotRequired[str | None]
    #: The questions that were understood until now, with their answers.
    knowledge_graph_turns: NotRequired[list[Turn]]


class KnowledgeGraphMiddleware(AgentMiddleware[KnowledgeGraphState, Any, Any]):
    """Retrieve evidence for the user's last message, once per run.

    The middleware shows the evidence to the model of `create_agent`.

    The Documents stay in the state of the agent, as `knowledge_graph_documents`. If the retriever refuses the question,
    whatever its `on_refusal`, the reason stays there as `knowledge_graph_reason`. The model is shown it, so that it can
    ask the user, unless the message names no entity of the graph: then it is shown nothing, since "Hello" is no
    question about the graph.

    The message may be a follow-up, such as "and who wrote it?". The state keeps the questions before it and their
    answers. If it has none, since there is no checkpointer, they are read from the earlier messages. The model is shown
    how the follow-up was understood, which stays in the state as `knowledge_graph_asked_as`.

    Args:
        retriever: Any retriever of this package.
        llm: Rewrites the follow-ups that the rules of `FollowUpReader` do not understand.
        max_tokens: The most tokens of evidence that the model is shown. None for no limit.
        count_tokens: Counts them, as the model at hand does.
        prompt: In place of ours, with the placeholder `evidence`.

    Raises:
        InvalidArgumentError: If `retriever` is none of this package, or the prompt has other placeholders.
    """

    state_schema = KnowledgeGraphState

    @named_arguments
    def __init__(
        self,
        retriever: BaseKGRetriever,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        max_tokens: int | None = 4000,
        count_tokens: Callable[[str], int] = approximate_tokens,
        prompt: PromptTemplate = EVIDENCE_PROMPT,
    ) -> None:
        """Check the arguments."""
        super().__init__()
        check_retriever(retriever, "KnowledgeGraphMiddleware")
        check_token_budget(max_tokens, count_tokens, "KnowledgeGraphMiddleware")
        check_placeholders(prompt, ["evidence"], "KnowledgeGraphMiddleware: prompt")
        self.retriever, self.prompt = retriever, prompt
        self._search = _Search(retriever, FollowUpReader(retriever.index, llm))
        self.max_tokens, self.count_tokens = max_tokens, count_tokens

    def before_agent(self, state: KnowledgeGraphState, runtime: Any) -> dict[str, Any]:
        """Retrieve evidence for the last message of the user."""
        return self._search.invoke(state)

    async def abefore_agent(self, state: KnowledgeGraphState, runtime: Any) -> dict[str, Any]:
        """Do as `before_agent`."""
        return await self._search.ainvoke(state)

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
            why = why_unsure(documents)
            text = "\n\n".join(filter(None, [as_data(why), self.prompt.format(evidence=shown.text)]))
        if not text:
            return request
        asked_as: Any = request.state.get("knowledge_graph_asked_as")
        if asked_as and asked_as != _exchanges(request.state["messages"])[-1][0]:
            text = f"{UNDERSTOOD.format(as_data(asked_as))}\n\n{text}"
        before = request.system_message.content_blocks if request.system_message else []
        text = f"\n\n{text}" if before else text
        return request.override(system_message=SystemMessage(content_blocks=[*before, {"type": "text", "text": text}]))


class _Search(GeneratorRunnable[Any, dict[str, Any]]):
    """Understands the last message of the user, and retrieves evidence for it."""

    def __init__(self, retriever: BaseKGRetriever, reader: FollowUpReader) -> None:
        self.retriever, self.reader = retriever.bind(on_refusal="raise"), reader

    def body(self, input: Any) -> Body[dict[str, Any]]:
        """Return the update of the state."""
        *earlier, (question, _) = _exchanges(input["messages"]) or [("", "")]
        found: dict[str, Any] = {"documents": [], "reason": None, "refusal": None, "asked_as": None}
        turns: list[Turn] = input.get("knowledge_graph_turns") or (yield Call(self.reader.turns_of, earlier))
        try:
            if question.strip():
                found["asked_as"] = yield Call(self.reader, {"question": question, "turns": turns})
                found["documents"] = yield Call(self.retriever, found["asked_as"])
                found["reason"] = why_unsure(found["documents"]) or None
        except RefusalError as refusal:
            found |= {"reason": str(refusal), "refusal": _describe(refusal)}
        except InvalidArgumentError as error:  # the message is too long for a question, and the agent goes on
            found |= {"reason": str(error), "refusal": as_data(error.on_agent)}
        if found["asked_as"]:
            turns = with_turn(turns, found["asked_as"], documents_answers(found["documents"]))
        return {f"knowledge_graph_{key}": value for key, value in {**found, "turns": turns}.items()}


def _describe(refusal: RefusalError) -> str | None:
    """Return the text that the model is shown if a question is refused.

    None if the question names no entity of the graph.
    """
    if isinstance(refusal, EntityLinkingError):
        return None
    return f"{REFUSED} {refusal_of(refusal)} {as_data(refusal.on_agent)}"


def _exchanges(messages: Sequence[AnyMessage]) -> list[tuple[str, str]]:
    """Return the messages of the user, each with the replies after it."""
    exchanges = list[tuple[str, str]]()
    for message in messages:
        if isinstance(message, HumanMessage):
            exchanges.append((message.text, ""))
        elif isinstance(message, AIMessage) and exchanges:
            question, reply = exchanges[-1]
            exchanges[-1] = question, f"{reply}\n{message.text}"
    return exchanges
