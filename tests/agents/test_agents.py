"""Retrievers in agents of LangChain: as a tool, and as middleware."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import PromptTemplate
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraphMiddleware, SimGRAGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

QUESTION = "Who starred in Amélie?"
SHOWN = "[1] Amélie -> starring -> Audrey Tautou\n[2] Amélie -> starring -> Mathieu Kassovitz"


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()))


class CallsTool(BaseChatModel):
    """Calls its first tool with the question, then repeats what the tool said."""

    @property
    def _llm_type(self) -> str:
        return "calls-tool"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[tool.name for tool in tools])

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            message = AIMessage(last.text)
        else:
            call = {"type": "tool_call", "id": "1", "name": kwargs["tools"][0], "args": {"query": last.text}}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def test_the_tool_keeps_the_documents(retriever: SimGRAGRetriever) -> None:
    agent: Any = create_agent(CallsTool(), [retriever.as_tool()])
    for got in (
        agent.invoke({"messages": [HumanMessage(QUESTION)]}),
        await agent.ainvoke({"messages": [HumanMessage(QUESTION)]}),
    ):
        tool, answer = got["messages"][-2:]
        assert tool.artifact == retriever.invoke(QUESTION)
        assert "Audrey Tautou" in answer.text


async def test_the_tool_says_what_was_not_found(retriever: SimGRAGRetriever) -> None:
    agent: Any = create_agent(CallsTool(), [retriever.as_tool()])
    for got in (
        agent.invoke({"messages": [HumanMessage("Who directed Xyzzyplugh?")]}),
        await agent.ainvoke({"messages": [HumanMessage("Who directed Xyzzyplugh?")]}),
    ):
        assert "No entity of the graph was found" in got["messages"][-1].text
        assert got["messages"][-2].artifact == []
        assert "Did you mean: 'David Lynch'" in got["messages"][-1].text


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_the_middleware_shows_the_evidence(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    model = ScriptedChatModel(replies=["Audrey Tautou [1]"])
    agent: Any = create_agent(model, system_prompt="Be {brief}.", middleware=[KnowledgeGraphMiddleware(retriever)])
    given = {"messages": [HumanMessage(QUESTION)]}
    got = await agent.ainvoke(given) if asynchronous else agent.invoke(given)
    system, human = model.prompts[0]
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("Be {brief}.\n\nA knowledge graph")
    assert SHOWN in system.text
    assert human.text == QUESTION
    assert got["messages"][-1].text == "Audrey Tautou [1]"
    assert got["knowledge_graph_documents"] == retriever.invoke(QUESTION)


async def test_each_question_has_its_own_evidence(retriever: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=["one", "two", "three"])
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(retriever)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for question in (QUESTION, "Who directed Her?", "Hello there!"):
        got = agent.invoke({"messages": [HumanMessage(question)]}, config)
    first, second, third = (messages[0].text for messages in model.prompts)
    assert "Audrey Tautou" in first
    assert "[1] Her -> directed by -> Spike Jonze" in second
    assert "Audrey Tautou" not in second
    assert "It holds no fact on it. No entity of the graph was found in 'Hello there!'." in third
    assert got["knowledge_graph_documents"] == []


@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_the_middleware_shows_why_there_is_no_evidence(
    retriever: SimGRAGRetriever, on_refusal: str, asynchronous: bool
) -> None:
    model = ScriptedChatModel(replies=["Whom do you mean?", "Spike Jonze"])
    refusing = retriever.model_copy(update={"on_refusal": on_refusal})
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(refusing)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    given = {"messages": [HumanMessage("Who directed Xyzzyplugh?")]}
    got = await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)
    assert "It holds no fact on it. No entity" in model.prompts[0][0].text
    assert "Did you mean: 'David Lynch'" in model.prompts[0][0].text
    assert got["knowledge_graph_reason"].startswith("No entity of the graph was found")
    again = {"messages": [HumanMessage("Who directed Her?")]}
    got = await agent.ainvoke(again, config) if asynchronous else agent.invoke(again, config)
    assert got["knowledge_graph_reason"] is None
    assert "No entity" not in model.prompts[1][0].text


def test_the_middleware_keeps_to_a_budget_and_takes_a_prompt(retriever: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=["one"])
    prompt = PromptTemplate.from_template("FACTS\n{evidence}")
    middleware = KnowledgeGraphMiddleware(retriever, max_tokens=20, prompt=prompt)
    agent: Any = create_agent(model, middleware=[middleware])
    agent.invoke({"messages": [HumanMessage(QUESTION)]})
    assert model.prompts[0][0].text == "FACTS\n[1] Amélie -> starring -> Audrey Tautou\n(2 more facts left out)"


def test_what_the_middleware_refuses(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a BaseKGRetriever"):
        KnowledgeGraphMiddleware("films.tsv")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="placeholders"):
        KnowledgeGraphMiddleware(retriever, prompt=PromptTemplate.from_template("{context}"))
