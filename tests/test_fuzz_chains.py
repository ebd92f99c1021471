"""Mutants of replies through whole chains, workflows, writers of patterns, paths and Cypher, and agents with tools.

`make fuzz SECONDS=600` runs them for as long as asked, after the tests of `test_fuzz.py`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from mutants import SECONDS, SEED, Readings, mutant, rounds
from pydantic import Field

from kg_retrievers import CypherRetriever, GraphIndex, LLMPatternGenerator, RelationPathRetriever, SimGRAGRetriever
from kg_retrievers.agents import build_workflow
from kg_retrievers.chains import answer_chain, cited_answer_chain, fact_verification_chain, llm_answerer
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter

pytestmark = pytest.mark.heavy

#: Of what is asked for; `test_fuzz.py` takes the other half.
HALF = SECONDS / 2

QUESTION = "Who starred in Amélie?"
#: Asks for what the graph does not hold, so that a cascade asks its language model.
UNCLEAR = "How much did the tickets of Amélie cost?"
PATTERN = Pattern.of(("Amélie", "starring", Unknown("x")), target="x")


class MutantModel(BaseChatModel):
    """Replies with a mutant of a good reply, each time another; calls tools where it has some."""

    draw: Any
    #: What good replies hold that are drawn more often.
    marker: str = ""
    sent: list[str] = Field(default_factory=list)
    #: Whether replies come as arguments of a tool.
    structured: bool = False

    @property
    def _llm_type(self) -> str:
        return "mutants"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[])

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        if not self.structured:
            raise NotImplementedError
        return self.bind(tools=[]) | (lambda message: {"raw": message, "parsed": None, "parsing_error": None})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        reply = mutant(self.draw, self.marker)
        self.sent.append(reply)
        again = isinstance(messages[-1], ToolMessage)
        message = _calling(reply) if "tools" in kwargs and not again else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _calling(reply: str) -> AIMessage:
    """Return the message that a client makes of a reply with a call: valid where its arguments are an object."""
    try:
        call = json.loads(reply)
        arguments = call.get("args", call)
        if not isinstance(arguments, dict):
            raise TypeError
        name = call.get("name", "search_knowledge_graph")
        return AIMessage("", tool_calls=[tool_call(name=str(name), args=arguments, id="1")])
    except (ValueError, TypeError, AttributeError, RecursionError):
        return AIMessage(reply, invalid_tool_calls=[invalid_tool_call(name="?", args=reply, id="1", error="no JSON")])


@dataclass
class Asked:
    """What reads replies: a runnable, its input and its model."""

    runnable: Runnable[Any, Any]
    input: Any
    model: MutantModel


@pytest.fixture(scope="module")
def executor(index: GraphIndex) -> Iterator[Any]:
    pytest.importorskip("ladybug")
    from kg_retrievers.database.ladybug import LadybugExecutor

    with LadybugExecutor.from_graph(index.graph) as opened:
        yield opened


def readers(index: GraphIndex, executor: Any, draw: random.Random) -> dict[str, Asked]:
    """Build once all that reads replies."""
    found: dict[str, Asked] = {}

    def add(name: str, marker: str, make: Callable[[Any], Any], input: Any, structured: bool = False) -> None:
        model = MutantModel(draw=draw, marker=marker, structured=structured)
        found[name] = Asked(make(model), input, model)

    simgrag, rog = SimGRAGRetriever.from_index(index), RelationPathRetriever.from_index(index)
    by_model = {
        "simgrag": lambda model: SimGRAGRetriever.from_index(index, pattern_generator=LLMPatternGenerator(model)),
        "rog": lambda model: RelationPathRetriever.from_index(index, llm=model, asks_model="always"),
        "sg-rag": lambda model: CypherRetriever.from_index(
            index, executor=executor, writer=PatternCypherWriter(index, LLMPatternGenerator(model))
        ),
    }
    markers = {"simgrag": "triples", "rog": "choice", "sg-rag": "triples"}
    asked = {"question": QUESTION}
    add("answer_chain, marked", "nswer", lambda model: answer_chain(simgrag, model), QUESTION)
    add("answer_chain, listed", "\n", lambda model: answer_chain(rog, model), QUESTION)
    for structured in (False, True):
        how = ", tool calls" if structured else ""
        add(f"cited_answer_chain{how}", "answers", lambda m: cited_answer_chain(simgrag, m), QUESTION, structured)
        add(f"fact_verification{how}", "verdict", lambda m: fact_verification_chain(simgrag, m), QUESTION, structured)
        add(f"workflow, cited answer{how}", "answers", lambda m: build_workflow(simgrag, m), asked, structured)
    add("workflow, answer in words", "[1]", lambda m: build_workflow(simgrag, _in_words(simgrag, m)), asked)
    for name, make in by_model.items():
        add(f"retriever {name}", markers[name], make, QUESTION)
        add(f"workflow {name}", markers[name], partial(_workflow, make), asked)
    add("cascade of patterns", "choice", lambda m: SimGRAGRetriever.from_index(index, llm=m), UNCLEAR)
    add("cascade of paths", "choice", lambda m: RelationPathRetriever.from_index(index, llm=m), UNCLEAR)
    messages = {"messages": [HumanMessage(QUESTION)]}
    add("agent with a tool", "query", lambda m: create_agent(m, [simgrag.as_tool()]), messages)
    return found


def _workflow(make: Callable[[Any], Any], model: Any) -> Any:
    return build_workflow(make(model))


def _in_words(retriever: SimGRAGRetriever, model: Any) -> Any:
    return llm_answerer(retriever.answer_prompt, model)


def test_mutants_of_replies_in_chains_and_workflows(
    index: GraphIndex, executor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every tenth call is async."""
    caplog.set_level(logging.ERROR, logger="kg_retrievers")  # a warning for each refusal
    asked, readings = readers(index, executor, random.Random(SEED)), Readings()
    for one in asked.values():  # compiles
        with suppress(KGRetrieversError):
            one.runnable.invoke(one.input)
    with readings.all(), asyncio.Runner() as runner:
        for count, _ in enumerate(rounds(HALF)):
            for name, one in asked.items():
                one.model.sent.clear()
                with readings.one(name, one.model.sent):
                    if count % 10 == 9:
                        runner.run(one.runnable.ainvoke(one.input))
                    else:
                        one.runnable.invoke(one.input)
    assert all(readings.replies.values())
