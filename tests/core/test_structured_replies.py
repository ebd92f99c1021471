"""Replies of a schema: how it is closed and bounded, and what comes of a reply that is cut or withheld."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from openai_server import Cut, OpenAIServer, Reply, client

from kg_retrievers import SimGRAGRetriever
from kg_retrievers.chains import cited_answer_chain, fact_verification_chain
from kg_retrievers.chains.prompts import AnswerReply, VerdictReply
from kg_retrievers.core.structured_replies import StructuredModel, bounded_schema, read_object, reply_text, was_cut
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError, ModelCallError
from kg_retrievers.questions.prompts import PatternReply
from kg_retrievers.testing import ScriptedChatModel

QUESTION = "Who starred in Amélie?"
GOOD = '{"explanation": "So says the first.", "answers": ["Audrey Tautou"], "citations": [1]}'


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(part)


# --- the schema ---


@pytest.mark.parametrize("form", [AnswerReply, VerdictReply, PatternReply])
def test_each_form_is_closed_and_bounded(form: Any) -> None:
    parts = list(nodes(bounded_schema(form)))
    assert all(part["additionalProperties"] is False for part in parts if part.get("type") == "object")
    assert all(part["maxItems"] for part in parts if part.get("type") == "array")
    texts = [part for part in parts if part.get("type") == "string"]
    assert all(part.get("maxLength") or part.get("enum") or part.get("const") for part in texts)


def test_evidence_bounds_the_citations(retriever: SimGRAGRetriever) -> None:
    with OpenAIServer(Reply(GOOD)) as server:
        cited_answer_chain(retriever, client(server)).invoke(QUESTION)
    sent = server.requests[0]
    facts = sent["messages"][0]["content"].rpartition("<facts>")[2].count("\n[")
    schema = sent["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["citations"]["maxItems"] == facts
    assert schema["properties"]["citations"]["items"] == {"type": "integer", "minimum": 1, "maximum": facts}
    assert "maxItems" not in AnswerReply.model_json_schema()["properties"]["citations"]


def test_a_model_without_structured_output_is_asked_for_text() -> None:
    llm = ScriptedChatModel(replies=[GOOD])
    reply = StructuredModel(llm, AnswerReply, who="me").asked(answers={"maxItems": 1}).invoke("Who?")
    assert read_object(reply, AnswerReply).answers == ["Audrey Tautou"]
    with pytest.raises(InvalidArgumentError, match="me: structured=True, but ScriptedChatModel has no structured"):
        StructuredModel(llm, AnswerReply, structured=True, who="me")


# --- replies ---


def test_arguments_of_a_call_are_the_reply() -> None:
    call = {"name": "answer", "args": json.loads(GOOD), "id": "1", "type": "tool_call"}
    assert json.loads(reply_text({"raw": AIMessage("", tool_calls=[call]), "parsed": None})) == json.loads(GOOD)
    invalid = {"name": "answer", "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"}
    assert reply_text(AIMessage("text", invalid_tool_calls=[invalid])) == "{"


@pytest.mark.parametrize(
    "told", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "MAX_TOKENS"}], ids=str
)
def test_clients_say_that_a_reply_was_cut(told: dict[str, str]) -> None:
    assert was_cut({"raw": AIMessage("{", response_metadata=told)})
    with pytest.raises(AnswerParseError, match="cut at the limit of its length"):
        read_object(AIMessage("{", response_metadata=told), AnswerReply)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_cut_reply_is_repaired(retriever: SimGRAGRetriever, streaming: bool, asynchronous: bool) -> None:
    with OpenAIServer(Cut(GOOD[:40]), Reply(GOOD)) as server:
        chain = cited_answer_chain(retriever, client(server, streaming=streaming))
        got = await chain.ainvoke(QUESTION) if asynchronous else chain.invoke(QUESTION)
    assert got["answers"] == ["Audrey Tautou"]
    asked = server.requests[1]["messages"][0]["content"]
    assert "The reply:\n" + GOOD[:40] in asked
    assert "cut at the limit of its length" in asked


@pytest.mark.parametrize("make", [cited_answer_chain, fact_verification_chain])
def test_two_cut_replies_raise_a_typed_error(retriever: SimGRAGRetriever, make: Any) -> None:
    cut = pytest.raises(AnswerParseError, match="cut at the limit of its length")
    with OpenAIServer(Cut(GOOD[:40]), Cut(GOOD[:30])) as server, cut as caught:
        make(retriever.with_fields({"on_refusal": "raise"}), client(server)).invoke(QUESTION)
    assert caught.value.reply == GOOD[:30]


def test_a_reply_that_is_withheld_is_a_typed_error(retriever: SimGRAGRetriever) -> None:
    withheld = pytest.raises(ModelCallError, match="ChatOpenAI: the server withheld its reply")
    with OpenAIServer(Cut("", "content_filter")) as server, withheld:
        cited_answer_chain(retriever, client(server)).invoke(QUESTION)
