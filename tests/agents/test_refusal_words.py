"""Refusals in the words of their readers: no arguments of Python for agents, and no advice that is followed already."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from graph_reader import GraphReader
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from kg_retrievers import (
    GraphIndex,
    KGRetriever,
    KnowledgeGraphMiddleware,
    KnowledgeGraphToolkit,
    RelationPathRetriever,
    SimGRAGRetriever,
    build_workflow,
    default_embeddings,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.llama_index import as_llama_index
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import ScriptedChatModel

#: What only a programmer or a user of the shell can do, or know.
FOR_PROGRAMMERS = re.compile(
    r"\b[a-z_]+=|--\w|\w+Retriever\b|\w+Reader\b|\w+Generator\b|GraphIndex|\bllm\b|min_confidence|max_\w+"
    r"|generate_questions|load_names|\b\w+_pattern: "
)

QUESTIONS = (
    "What is the colour of the moon?",
    "Who directed Davd Lunch?",
    "What is the annual revenue of Her?",
    "Wer leitet Her?",
    "Wer leitet den Mond?",
    "Which of the films that Spike Jonze directed is the oldest?",
    "How many films are there per country?",
)

Build = Callable[[GraphIndex], BaseKGRetriever]


def garbage() -> ScriptedChatModel:
    return ScriptedChatModel(replies=["no JSON"], cycle=True)


def connected(index: GraphIndex) -> BaseKGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.connect(GraphReader(index.graph), index.embeddings, max_facts=3))


RETRIEVERS: dict[str, Build] = {
    "plain": SimGRAGRetriever.from_index,
    "evidence": KGRetriever.from_index,
    "strict": lambda index: SimGRAGRetriever.from_index(index, min_confidence=1.0),
    "short of time": lambda index: SimGRAGRetriever.from_index(index, max_scans=1, min_confidence=0.0),
    "paths": RelationPathRetriever.from_index,
    "connected": connected,
    "model": lambda index: SimGRAGRetriever.from_index(index, llm=garbage()),
    "model that writes": lambda index: SimGRAGRetriever.from_index(index, llm=garbage(), preset="paper"),
    "paths by a model": lambda index: RelationPathRetriever.from_index(index, llm=garbage(), chooses=False),
}
WITH_MODEL = ("model", "model that writes", "paths by a model")


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(load_graph(), default_embeddings())


def told_to_agents(retriever: BaseKGRetriever, question: str) -> dict[str, str]:
    """Return what each tool says, and what the model of an agent with middleware is shown."""
    call: Any = {"type": "tool_call", "id": "1", "name": "", "args": {"query": question}}
    tools = {tool.name: tool for tool in KnowledgeGraphToolkit(retriever.index, method=retriever).get_tools()}
    model = ScriptedChatModel(replies=["Well."])
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(retriever)])
    agent.invoke({"messages": [HumanMessage(question)]})
    return {
        "as_tool": retriever.as_tool().invoke(call).text,
        "ask": tools["ask"].invoke({**call, "args": {"question": question}}).text,
        "LlamaIndex": as_llama_index(retriever).as_tool().call(input=question).content,
        "middleware": "\n".join(message.text for message in model.prompts[0][:-1]),
    }


@pytest.mark.parametrize("name", RETRIEVERS)
def test_agents_are_told_nothing_for_programmers(index: GraphIndex, name: str) -> None:
    retriever = RETRIEVERS[name](index)
    refused = [question for question in QUESTIONS if not retriever.invoke(question)]
    assert len(refused) > 1
    for question in refused:
        for reader, told in told_to_agents(retriever, question).items():
            assert not FOR_PROGRAMMERS.search(told), (reader, told)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_model_is_advised_only_if_there_is_none(
    index: GraphIndex, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    retriever = RETRIEVERS[name](index)
    workflow = build_workflow(retriever)
    for question in QUESTIONS:
        documents = retriever.invoke(question)
        reason = "" if documents else workflow.invoke({"question": question})["reason"]
        if name in WITH_MODEL:
            assert "llm" not in f"{reason} {caplog.text}"
        elif name == "plain" and question == "What is the annual revenue of Her?":
            assert "or give examples= or llm=." in reason
