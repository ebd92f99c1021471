"""Retrievers inside LlamaIndex, with LlamaIndex's own mocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate as LangChainChatPrompt
from langchain_core.prompts import PromptTemplate as LangChainPrompt
from langchain_core.tracers.context import collect_runs
from llama_index.core import Settings
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata, MessageRole, MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field

from kg_retrievers import (
    GraphIndex,
    KGRetriever,
    KnowledgeGraphToolkit,
    LLMPatternGenerator,
    Pattern,
    SimGRAGRetriever,
    Unknown,
)
from kg_retrievers.chains import NOT_UNDERSTOOD
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.llama_index import as_llama_index, as_llama_index_tools
from kg_retrievers.testing import ScriptedChatModel

QUESTION = "Who starred in Amélie?"
NO_ENTITY = "Who directed Davd Lunch?"
REPLY = '{"triples": [["Amélie", "starring", "UNKNOWN actor 1"]], "target": "UNKNOWN actor 1"}'
EVIDENCE = "Amélie -> starring -> Audrey Tautou; Mathieu Kassovitz; Dominique Pinon"
SHORT = LangChainPrompt.from_template('Use {evidence} for {question} as {{"answer": ...}}')
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@pytest.fixture
def retriever(index: GraphIndex) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(index, on_refusal="empty", answer_prompt=SHORT)


async def retrieve(bridge: Any, asynchronous: bool, query: str | QueryBundle = QUESTION) -> list[NodeWithScore]:
    """Retrieve as LlamaIndex's users do."""
    return await bridge.aretrieve(query) if asynchronous else bridge.retrieve(query)


def triples(nodes: Sequence[NodeWithScore]) -> list[Any]:
    return [node.metadata["triples"] for node in nodes]


class RecordingLLM(CustomLLM):
    """Replies in order, by words where it streams, and keeps what it was asked."""

    replies: list[str] = Field(default_factory=list)
    asked: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="recording")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.asked.append(prompt)
        return CompletionResponse(text=self.replies[len(self.asked) - 1])

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:
        text = ""
        for word in self.complete(prompt).text.split(" "):
            text += word
            yield CompletionResponse(text=text, delta=word)


# --- retrieving -----------------------------------------------------------------------------------------------------


@both
async def test_inputs_are_the_same_for_every_query(index: GraphIndex, asynchronous: bool) -> None:
    retriever = SimGRAGRetriever.from_index(index)
    pattern = Pattern.of((Unknown("film"), "directed_by", "Spike Jonze"), target="film")
    nodes = await retrieve(as_llama_index(retriever, pattern=pattern), asynchronous, "Which?")
    assert nodes[0].metadata["answers"] == ["Her", "Adaptation"]
    nodes = await retrieve(as_llama_index(retriever, seed_entities=["Spirited Away"], k=2), asynchronous, "directed by")
    assert triples(nodes)[0] == [["Q155653", "directed_by", "Q55400"]]
    assert len(nodes) == 2


@pytest.mark.parametrize("inputs", [{"top": 3}, {"k": 0}, {"k": "3"}, {"seed_entities": "Her"}], ids=str)
def test_wrong_inputs_are_refused_at_once(retriever: SimGRAGRetriever, inputs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(inputs))):
        as_llama_index(retriever, **inputs)


def test_unknown_seed_is_refused_at_once(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(EntityLinkingError, match="Xyzzyplugh"):
        as_llama_index(retriever, seed_entities=["Xyzzyplugh"])


def test_other_retrievers_are_refused(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="wanted a retriever of kg_retrievers"):
        as_llama_index(as_llama_index(retriever))  # type: ignore[arg-type]


@both
async def test_only_the_text_of_a_query_is_read(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    bridge, expected = as_llama_index(retriever), triples(as_llama_index(retriever).retrieve(QUESTION))
    bundle = QueryBundle(f"\n{QUESTION} \n", embedding=[1.0, 2.0], custom_embedding_strs=["Who directed Her?"])
    assert triples(await retrieve(bridge, asynchronous, bundle)) == expected


@both
async def test_errors_come_through(index: GraphIndex, asynchronous: bool) -> None:
    assert await retrieve(as_llama_index(SimGRAGRetriever.from_index(index)), asynchronous, NO_ENTITY) == []
    strict = SimGRAGRetriever.from_index(index, on_refusal="raise")
    with pytest.raises(EntityLinkingError, match="Davd Lunch"):
        await retrieve(as_llama_index(strict), asynchronous, NO_ENTITY)
    with pytest.raises(InvalidArgumentError, match="empty"):
        await retrieve(as_llama_index(SimGRAGRetriever.from_index(index)), asynchronous, " ")
    late = SimGRAGRetriever.from_index(
        index, pattern_generator=LLMPatternGenerator(ScriptedChatModel(replies=[TimeoutError("late")]))
    )
    with pytest.raises(TimeoutError, match="late"):
        await retrieve(as_llama_index(late), asynchronous)


class AwaitingChatModel(BaseChatModel):
    """A chat model whose replies wait on the event loop, as those of a server do."""

    wait: Callable[[], Any]

    @property
    def _llm_type(self) -> str:
        return "awaiting"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("the sync method was called")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await self.wait()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(REPLY))])


async def test_cancelling_a_query_cancels_the_request(index: GraphIndex) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    bridge = as_llama_index(
        SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(AwaitingChatModel(wait=wait)))
    )
    task = asyncio.create_task(bridge.aretrieve(QUESTION))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


# --- events ---------------------------------------------------------------------------------------------------------


@both
async def test_callback_events(
    retriever: SimGRAGRetriever, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    monkeypatch.setattr(Settings, "_callback_manager", CallbackManager([debug]))
    nodes = await retrieve(as_llama_index(retriever), asynchronous)
    ((start, end),) = debug.get_event_pairs(CBEventType.RETRIEVE)
    assert start.payload == {"query_str": QUESTION}
    assert end.payload == {"nodes": nodes}


@both
async def test_langchain_traces_go_on(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    with collect_runs() as runs:
        await retrieve(as_llama_index(retriever), asynchronous)
    (run,) = runs.traced_runs
    assert (run.name, len(run.child_runs)) == ("SimGRAGRetriever", len(retriever.stages))


# --- prompts --------------------------------------------------------------------------------------------------------


def test_prompts_are_templates_of_llama_index(index: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(ScriptedChatModel(replies=[])))
    templates = as_llama_index(retriever).get_prompts()
    assert list(templates) == list(retriever.prompts) == ["pattern", "repair", "answer"]
    assert set(templates["answer"].template_vars) == {"query_str", "context_str"}
    for name, prompt in retriever.prompts.items():
        values = {variable: f"<{variable}> {{0}} {{千}} %s" for variable in prompt.input_variables}
        theirs = {"question": "query_str", "evidence": "context_str"}
        shown = templates[name].format(**{theirs.get(variable, variable): text for variable, text in values.items()})
        assert shown == prompt.format_prompt(**values).to_messages()[0].text


def test_prompt_of_several_messages(retriever: SimGRAGRetriever) -> None:
    retriever.answer_prompt = LangChainChatPrompt.from_messages(
        [("system", "Be {{brief}}."), ("human", "{question}"), ("ai", "Facts?"), ("human", "{evidence}")]
    )
    bridge = as_llama_index(retriever)
    messages = bridge.answer_template.format_messages(query_str="Q", context_str="{E}")
    roles = [MessageRole.SYSTEM, MessageRole.USER, MessageRole.ASSISTANT, MessageRole.USER]
    assert [message.role for message in messages] == roles
    assert [message.content for message in messages] == ["Be {brief}.", "Q", "Facts?", "{E}"]


def test_prompt_with_an_image_is_refused(retriever: SimGRAGRetriever) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    retriever.answer_prompt = LangChainChatPrompt.from_messages(
        [("human", "{question} {evidence}"), ("human", [image])]
    )
    with pytest.raises(InvalidArgumentError, match="only texts"):
        _ = as_llama_index(retriever).answer_template


def test_prompts_are_changed_in_the_retriever(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="Build the SimGRAGRetriever with other prompts"):
        as_llama_index(retriever).update_prompts({"answer": PromptTemplate("{query_str} {context_str}")})


# --- engines --------------------------------------------------------------------------------------------------------


async def ask(engine: RetrieverQueryEngine, question: str, asynchronous: bool) -> tuple[list[str], Any]:
    """Return the answer, in the parts in which it came, and the response."""
    response = await engine.aquery(question) if asynchronous else engine.query(question)
    if isinstance(response, StreamingResponse):
        return list(response.response_gen), response
    if isinstance(response, AsyncStreamingResponse):
        return [part async for part in response.async_response_gen()], response
    assert isinstance(response, Response)
    return [str(response)], response


@both
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
async def test_engine(retriever: SimGRAGRetriever, streaming: bool, asynchronous: bool) -> None:
    llm, bridge = RecordingLLM(replies=["Audrey and others."]), as_llama_index(retriever, k=2)
    template = bridge.answer_template
    engine = RetrieverQueryEngine.from_args(bridge, llm=llm, text_qa_template=template, streaming=streaming)
    parts, response = await ask(engine, QUESTION, asynchronous)
    assert parts == (["Audrey", "and", "others."] if streaming else ["Audrey and others."])
    evidence = "\n\n".join(document.page_content for document in retriever.invoke(QUESTION, k=2))
    assert llm.asked == [f'Use {evidence} for {QUESTION} as {{"answer": ...}}']
    assert triples(response.source_nodes) == triples(bridge.retrieve(QUESTION))
    assert set(response.metadata) == {node.node_id for node in response.source_nodes}


@both
@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
async def test_an_engine_says_why_a_question_is_refused(
    retriever: SimGRAGRetriever, on_refusal: str, streaming: bool, asynchronous: bool
) -> None:
    llm = RecordingLLM(replies=[])
    bridge = as_llama_index(retriever.model_copy(update={"on_refusal": on_refusal}), k=2)
    engine = bridge.as_query_engine(llm=llm, streaming=streaming)
    parts, response = await ask(engine, NO_ENTITY, asynchronous)
    (reason,) = parts
    assert reason.startswith(
        f"{NOT_UNDERSTOOD} No entity of the graph was found in '{NO_ENTITY}'. Did you mean: 'David Lynch'"
    )
    assert (response.source_nodes, llm.asked) == ([], [])
    assert bridge.retriever.on_refusal == on_refusal


@both
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
async def test_a_chat_understands_follow_ups_without_asking_the_model(
    retriever: SimGRAGRetriever, streaming: bool, asynchronous: bool
) -> None:
    llm = RecordingLLM(replies=["It was Jean-Pierre Jeunet.", "Audrey Tautou and others."])
    chat = as_llama_index(retriever).as_chat_engine(llm=llm, streaming=streaming)
    for question in ("Who directed Amélie?", "and who starred in it?"):
        response = await say(chat, question, streaming, asynchronous)
    assert response.sources[0].raw_input["query"] == "who starred in Amélie?"
    assert len(llm.asked) == 2
    assert EVIDENCE in llm.asked[1]


@both
async def test_a_chat_asks_the_model_of_a_follow_up_that_the_rules_leave_open(
    retriever: SimGRAGRetriever, asynchronous: bool
) -> None:
    answers = "Her and Adaptation"
    llm = RecordingLLM(replies=[answers, "Who starred in Her?", "Who starred in Amélie?"])
    chat = as_llama_index(retriever).as_chat_engine(llm=llm)
    await say(chat, "Which films did Spike Jonze direct?", False, asynchronous)
    response = await say(chat, "Who starred in it?", False, asynchronous)
    assert response.sources[0].raw_input["query"] == "Who starred in Her?"
    chat.reset()
    history = [ChatMessage(content="Which films did Spike Jonze direct?"), ChatMessage(answers, role="assistant")]
    response = await say(chat, "Who starred in it?", False, asynchronous, history)
    assert response.response.startswith(f"{NOT_UNDERSTOOD} 'it' may mean 'Spike Jonze' or 'Her' or 'Adaptation'.")
    assert len(llm.asked) == 3  # no cast of Her is known


async def say(chat: Any, text: str, streaming: bool, asynchronous: bool, history: Any = None) -> Any:
    """Say something in a chat, and read the whole reply."""
    if not streaming:
        return await chat.achat(text, history) if asynchronous else chat.chat(text, history)
    if not asynchronous:
        response = chat.stream_chat(text, history)
        "".join(response.response_gen)
        return response
    response = await chat.astream_chat(text, history)
    "".join([part async for part in response.async_response_gen()])
    return response


@both
async def test_fusion_keeps_the_evidence(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    bridges: list[Any] = [as_llama_index(retriever, k=3), as_llama_index(retriever, seed_entities=["Her"], k=2)]
    fusion = QueryFusionRetriever(bridges, llm=MockLLM(), num_queries=1, similarity_top_k=9)
    nodes = await retrieve(fusion, asynchronous)
    assert {node.node_id for node in nodes} == {node.node_id for part in bridges for node in part.retrieve(QUESTION)}


# --- tools ----------------------------------------------------------------------------------------------------------


@both
async def test_tool(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    bridge = as_llama_index(retriever, k=2)
    expected = bridge.retrieve(QUESTION)
    tool = bridge.as_tool(name="films", description="Facts about films.")
    assert (tool.metadata.name, tool.metadata.description) == ("films", "Facts about films.")
    assert list(tool.metadata.get_parameters_dict()["properties"]) == ["input"]
    by_name = await tool.acall(input=QUESTION) if asynchronous else tool.call(input=QUESTION)
    by_place = await tool.acall(QUESTION) if asynchronous else tool.call(QUESTION)
    assert by_name.content == by_place.content
    assert by_name.content.endswith(f"<facts>\n{expected[0].text}\n\n{expected[1].text}\n</facts>")
    assert by_name.raw_output == by_place.raw_output == expected


@both
@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
async def test_tool_says_why_a_question_is_refused(
    retriever: SimGRAGRetriever, on_refusal: str, asynchronous: bool
) -> None:
    tool = as_llama_index(retriever.model_copy(update={"on_refusal": on_refusal})).as_tool()
    output = await tool.acall(input=NO_ENTITY) if asynchronous else tool.call(input=NO_ENTITY)
    assert output.content.startswith("No entity of the graph was found")
    assert "Did you mean: 'David Lynch'" in output.content
    assert output.raw_output == []


def test_tool_says_why_evidence_is_unsure(retriever: SimGRAGRetriever) -> None:
    unsure = KGRetriever.from_index(retriever.index)
    output = as_llama_index(unsure).as_tool().call(input="What salary has Audrey Tautou?")
    assert output.content.startswith("Not sure what ")
    assert "Audrey Tautou" in output.content


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's workflows
async def test_agent_calls_the_tool(retriever: SimGRAGRetriever) -> None:
    asked: list[list[ChatMessage]] = []

    async def replies(messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        asked.append(list(messages))
        call = ToolCallBlock(tool_call_id="1", tool_name="films", tool_kwargs={"input": QUESTION})
        yield (
            ChatMessage(role="assistant", blocks=[call]) if len(asked) == 1 else ChatMessage("Them.", role="assistant")
        )

    llm = MockFunctionCallingLLM(response_generator=replies, is_chat_model=True)
    agent = FunctionAgent(tools=[as_llama_index(retriever).as_tool(name="films")], llm=llm)
    assert str(await agent.run("Which actors?")) == "Them."
    assert EVIDENCE in str(asked[1][-1].content)


async def test_agents_get_the_tools_of_a_toolkit(retriever: SimGRAGRetriever) -> None:
    tools = {
        tool.metadata.name: tool for tool in as_llama_index_tools(KnowledgeGraphToolkit(retriever.index).get_tools())
    }
    facts = tools["facts"]
    assert facts.metadata.get_parameters_dict()["required"] == ["entity"]
    found = facts.call(entity="Amélie", relation="starring").content
    assert "<facts>\nAmélie: " in found
    assert "Amélie -> starring -> Audrey Tautou" in found
    assert (await facts.acall(entity="Amélie", relation="starring")).content == found
    assert "Next step: Call search_entities" in facts.call(entity="Ameli").content
    for wrong in ({"entty": "Amélie"}, {"entity": ["Amélie"]}):
        told = facts.call(**wrong).content
        assert told.startswith("facts: entity")
        assert "It takes 'entity', 'relation', 'limit', 'start'." in told
        assert told.endswith("Next step: Correct this, and call facts again.")
    assert facts.call("Amélie", "starring").content == found


async def test_the_tool_refuses_what_is_no_question(retriever: SimGRAGRetriever) -> None:
    tool = as_llama_index(retriever).as_tool()
    wanted = "search_knowledge_graph: wanted the question as one text, input, but got "
    for args, wrong in (((), {}), ((), {"query": QUESTION}), ((), {"input": 7}), ((" ",), {}), (("Who", "What"), {})):
        told = tool.call(*args, **wrong).content
        assert told == (await tool.acall(*args, **wrong)).content
        assert told.startswith(wanted)
        assert told.endswith("Call it again with a full question as input.")
