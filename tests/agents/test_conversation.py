"""Follow-ups in the threads of workflows and routers, and in the messages of agents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import (
    GraphIndex,
    KGRetriever,
    KnowledgeGraphMiddleware,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    build_router,
    build_workflow,
    default_embeddings,
)
from kg_retrievers.chains import NOT_UNDERSTOOD
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import ScriptedChatModel

both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@pytest.fixture(scope="module")
def films() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(load_graph(), default_embeddings()))


async def ask(runnable: Any, asynchronous: bool, question: str, thread: str = "1", **more: Any) -> dict[str, Any]:
    given, config = {"question": question, **more}, {"configurable": {"thread_id": thread}}
    output: dict[str, Any] = await runnable.ainvoke(given, config) if asynchronous else runnable.invoke(given, config)
    return output


@both
async def test_a_thread_understands_follow_ups_and_threads_do_not_mix(
    films: SimGRAGRetriever, asynchronous: bool
) -> None:
    workflow = build_workflow(films, checkpointer=InMemorySaver())
    first = await ask(workflow, asynchronous, "Which films did Spike Jonze direct?")
    assert first["asked_as"] == first["question"]
    await ask(workflow, asynchronous, "Who directed Alien?", "2")
    second = await ask(workflow, asynchronous, "and who wrote the first one?")
    assert second["question"] == "and who wrote the first one?"
    assert second["asked_as"] == "who wrote Being John Malkovich?"
    assert second["answers"] == ["Charlie Kaufman"]
    assert (await ask(workflow, asynchronous, "when was it released?"))["answers"] == ["1999"]
    assert (await ask(workflow, asynchronous, "when was it released?", "2"))["answers"] == ["1979"]
    assert (await ask(workflow, asynchronous, "who wrote it?", "3"))["answer"] == NOT_UNDERSTOOD


@both
async def test_an_unclear_follow_up_is_refused_with_the_options_and_the_thread_goes_on(
    films: SimGRAGRetriever, asynchronous: bool
) -> None:
    other = TripleSimilarityRetriever.from_index(films.index)
    workflow = build_workflow(films, fallback=other, checkpointer=InMemorySaver())
    await ask(workflow, asynchronous, "Which films did Spike Jonze direct?")
    refused = await ask(workflow, asynchronous, "When was it released?")
    assert (refused["answer"], refused["documents"], refused["asked_as"]) == (NOT_UNDERSTOOD, [], None)
    assert "'it' may mean 'Spike Jonze' or 'Being John Malkovich' or 'Her'" in refused["reason"]
    assert (await ask(workflow, asynchronous, "the second one?"))["asked_as"] == "Tell me about Her."


@both
async def test_a_router_understands_them(films: SimGRAGRetriever, asynchronous: bool) -> None:
    others = {"simgrag": films, "kaping": TripleSimilarityRetriever.from_index(films.index)}
    router = build_router(others, checkpointer=InMemorySaver())
    await ask(router, asynchronous, "Who directed Her?")
    second = await ask(router, asynchronous, "And where was he born?")
    assert second["asked_as"] == "where was Spike Jonze born?"
    assert second["answers"] == ["United States"]


@both
async def test_a_caller_may_keep_the_turns(films: SimGRAGRetriever, asynchronous: bool) -> None:
    workflow = build_workflow(films)
    first = await ask(workflow, asynchronous, "Who directed Her?")
    assert first["turns"] == [{"question": "Who directed Her?", "entities": [], "answers": ["Spike Jonze"]}]
    second = await ask(workflow, asynchronous, "Who wrote it?", turns=first["turns"])
    assert second["asked_as"] == "Who wrote Her?"
    assert len(second["turns"]) == 2
    with pytest.raises(InvalidArgumentError, match="turns are a list"):
        await ask(workflow, asynchronous, "Who wrote it?", turns="Who directed Her?")


async def test_a_long_question_does_not_end_a_thread(films: SimGRAGRetriever) -> None:
    workflow = build_workflow(films, checkpointer=InMemorySaver())
    for question in ("Who directed Her?", "Who directed Alien? " + "I like it. " * 300):
        await ask(workflow, False, question)
    assert (await ask(workflow, False, "Where was Ridley Scott born?"))["answers"]


async def test_the_entities_that_a_caller_gives_are_those_of_the_question(films: SimGRAGRetriever) -> None:
    workflow = build_workflow(films, checkpointer=InMemorySaver())
    await ask(workflow, False, "Who directed Her?")
    second = await ask(workflow, False, "Who directed it?", seed_entities=["Alien"])
    assert second["answers"] == ["Ridley Scott"]
    assert (await ask(workflow, False, "And when was it released?"))["answers"] == ["1979"]


async def test_the_model_of_the_answerer_rewrites_what_the_rules_leave_open(films: SimGRAGRetriever) -> None:
    reply = '{"explanation": "", "answers": ["Arrival", "Her"], "citations": [1, 2]}'
    last = '{"explanation": "", "answers": ["2013"], "citations": [1]}'
    model = ScriptedChatModel(replies=[reply, '{"question": "When was Her released?"}', last])
    workflow = build_workflow(films, model, checkpointer=InMemorySaver())
    await ask(workflow, False, "Which films star Amy Adams?")
    second = await ask(workflow, False, "when was it released?")
    assert second["asked_as"] == "When was Her released?"
    assert second["cost"]["llm_calls"] == 2
    assert model.prompts[1][0].text.endswith("JSON:")


# --- agents -----------------------------------------------------------------------------------------------------------


@both
async def test_an_agent_is_shown_the_facts_for_a_follow_up(films: SimGRAGRetriever, asynchronous: bool) -> None:
    model = ScriptedChatModel(replies=["Spike Jonze [1].", "He did [1]."])
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(films)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for question in ("Who directed Her?", "and who wrote it?"):
        given = {"messages": [HumanMessage(question)]}
        state = await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)
    assert state["knowledge_graph_asked_as"] == "who wrote Her?"
    assert state["knowledge_graph_documents"][0].metadata["answers"] == ["Spike Jonze"]
    shown = model.prompts[1][0].text
    assert "The user's question was understood as: who wrote Her?" in shown
    assert "understood as" not in model.prompts[0][0].text


@both
async def test_an_agent_without_a_checkpointer_reads_the_earlier_messages(
    films: SimGRAGRetriever, asynchronous: bool
) -> None:
    agent: Any = create_agent(ScriptedChatModel(replies=["ok"]), middleware=[KnowledgeGraphMiddleware(films)])
    messages = [HumanMessage("Who directed Her?"), AIMessage("Spike Jonze."), HumanMessage("where was he born?")]
    given = {"messages": messages}
    state = await agent.ainvoke(given) if asynchronous else agent.invoke(given)
    assert state["knowledge_graph_asked_as"] == "where was Spike Jonze born?"


def test_an_agent_is_told_what_an_unclear_follow_up_may_mean(films: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=["ok"])
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(films)])
    said = "Being John Malkovich and Her."
    messages = [HumanMessage("Which films did Spike Jonze direct?"), AIMessage(said), HumanMessage("who wrote it?")]
    agent.invoke({"messages": messages})
    assert "'it' may mean" in model.prompts[0][0].text


def test_a_model_is_told_that_evidence_is_unsure(films: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=["I do not know."])
    agent: Any = create_agent(model, middleware=[KnowledgeGraphMiddleware(KGRetriever.from_index(films.index))])
    state = agent.invoke({"messages": [("user", "What salary has Amy Adams?")]})
    assert state["knowledge_graph_reason"].startswith("Not sure what ")
    assert "Not sure what " in model.prompts[0][0].text
