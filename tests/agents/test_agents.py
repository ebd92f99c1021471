"""Retrievers in agents of LangChain: as a tool, and as middleware."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import KnowledgeGraphMiddleware, SimGRAGRetriever
from kg_retrievers.chains import LESS_SURE, NO_ANSWER, NOT_UNDERSTOOD
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.testing import ScriptedChatModel

QUESTION = "Who starred in Amélie?"
UNSURE = Pattern.of(
    ("Spike Jonze", "directed_by", Unknown("x")),
    target="x",
    confidence=0.125,
    unplaced=["salary"],
    nearest=["directed_by", "starring"],
)
SHOWN = "[1] Amélie -> starring -> Audrey Tautou\n[2] Amélie -> starring -> Mathieu Kassovitz"


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


@pytest.mark.parametrize(
    ("question", "told"),
    [(QUESTION, "Audrey Tautou"), ("Who directed Davd Lunch?", "No entity .* was found .*Did you mean: 'David Lynch'")],
)
async def test_the_tool_keeps_the_documents_and_says_what_was_not_found(
    retriever: SimGRAGRetriever, question: str, told: str
) -> None:
    agent: Any = create_agent(CallsTool(), [retriever.as_tool()])
    given = {"messages": [HumanMessage(question)]}
    for got in (agent.invoke(given), await agent.ainvoke(given)):
        tool, answer = got["messages"][-2:]
        assert tool.artifact == retriever.invoke(question)
        assert re.search(told, answer.text)


def test_the_tool_says_what_is_wrong_with_its_arguments(retriever: SimGRAGRetriever) -> None:
    for arguments in ({}, {"question": QUESTION}, {"query": [QUESTION]}):
        call = {"type": "tool_call", "id": "1", "name": "search_knowledge_graph", "args": arguments}
        message = retriever.as_tool().invoke(call)
        assert message.status == "error"
        assert message.text.startswith("search_knowledge_graph: query ")
        assert message.text.endswith("Next step: Call it again with the question, as query.")


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
    first, second = (messages[0].text for messages in model.prompts[:2])
    assert "Audrey Tautou" in first
    assert "[1] Her -> directed by -> Spike Jonze" in second
    assert "Audrey Tautou" not in second
    assert not any(isinstance(message, SystemMessage) for message in model.prompts[2])
    assert got["knowledge_graph_documents"] == []


@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_the_middleware_shows_why_there_is_no_evidence(
    retriever: SimGRAGRetriever, on_refusal: str, asynchronous: bool
) -> None:
    model = ScriptedChatModel(replies=["Whom do you mean?", "Spike Jonze"])

    def last_word(value: dict[str, Any]) -> Pattern:
        return Pattern.of((value["question"].split()[-1].rstrip("?"), "directed by", Unknown("who")), target="who")

    far = {"on_refusal": on_refusal, "max_distance": 0.01, "pattern_generator": RunnableLambda(last_word)}
    refusing = retriever.model_copy(update=far)
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(refusing)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    given = {"messages": [HumanMessage("Who directed Adaptatiom?")]}
    got = await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)
    told = f"{NO_ANSWER} Nothing in the graph fits the question 'Who directed Adaptatiom?', read as: "
    assert told in model.prompts[0][0].text
    assert got["knowledge_graph_reason"].startswith("SimGRAGRetriever: nothing in the graph fits")
    again = {"messages": [HumanMessage("Who directed Her?")]}
    got = await agent.ainvoke(again, config) if asynchronous else agent.invoke(again, config)
    assert got["knowledge_graph_reason"] is None
    assert NO_ANSWER not in model.prompts[1][0].text


@pytest.mark.parametrize("message", ["Hello!", "Who directed Xyzzyplugh?"])
async def test_the_middleware_says_nothing_of_a_message_that_names_no_entity(
    retriever: SimGRAGRetriever, message: str
) -> None:
    model = ScriptedChatModel(replies=["Hello!", "Hello!"])
    agent: Any = create_agent(model, system_prompt="Be brief.", middleware=[KnowledgeGraphMiddleware(retriever)])
    given = {"messages": [HumanMessage(message)]}
    got, same = agent.invoke(given), await agent.ainvoke(given)
    assert [messages[0].text for messages in model.prompts] == ["Be brief."] * 2
    assert got["knowledge_graph_reason"].startswith("No entity of the graph was found")
    assert got["knowledge_graph_refusal"] is same["knowledge_graph_refusal"] is None


@pytest.mark.parametrize(
    ("confidence", "wanted", "told"),
    [
        (0.125, 0.5, f"{NOT_UNDERSTOOD} Not sure what 'What salary has Spike Jonze?' asks for"),
        (0.9, 1.0, f"{LESS_SURE} The confidence of the answer"),
    ],
)
def test_the_middleware_says_what_was_not_understood_or_not_sure(
    retriever: SimGRAGRetriever, confidence: float, wanted: float, told: str
) -> None:
    model = ScriptedChatModel(replies=["What do you mean?"])
    unsure = SimGRAGRetriever.from_index(
        retriever.index,
        pattern_generator=RunnableLambda(lambda _: replace(UNSURE, confidence=confidence)),
        min_confidence=wanted,
    )
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(unsure)])
    agent.invoke({"messages": [HumanMessage("What salary has Spike Jonze?")]})
    assert told in model.prompts[0][0].text


def test_the_middleware_keeps_to_a_budget_and_takes_a_prompt(retriever: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=["one"])
    prompt = PromptTemplate.from_template("FACTS\n{evidence}")
    middleware = KnowledgeGraphMiddleware(retriever, max_tokens=25, prompt=prompt)
    agent: Any = create_agent(model, middleware=[middleware])
    agent.invoke({"messages": [HumanMessage(QUESTION)]})
    assert model.prompts[0][0].text == "FACTS\n[1] Amélie -> starring -> Audrey Tautou\n(2 more facts left out)"


def test_what_the_middleware_refuses(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a BaseKGRetriever"):
        KnowledgeGraphMiddleware("films.tsv")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="placeholders"):
        KnowledgeGraphMiddleware(retriever, prompt=PromptTemplate.from_template("{context}"))
