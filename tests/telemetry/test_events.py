"""Logged events: one JSON object a line, without texts of users unless they are asked for."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from langchain_core.language_models import FakeListLLM

from kg_retrievers import GraphIndex, PCSTRetriever, SimGRAGRetriever, answer_chain, build_workflow, log_events
from kg_retrievers.testing import ScriptedChatModel

QUESTION, UNKNOWN = "Who starred in Amélie?", "Who starred in Xyzzyplugh?"
REPLY = '{"explanation": "", "answers": ["Audrey Tautou"], "citations": [1]}'


class Failing(FakeListLLM):
    """A model whose server is gone."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ConnectionError("the question was about Amélie")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return the lines that were logged, parsed."""
    caplog.set_level(logging.INFO, "kg_retrievers.events")

    def read() -> list[dict[str, Any]]:
        return [json.loads(one.getMessage()) for one in caplog.records if one.name == "kg_retrievers.events"]

    return read


def test_a_line_for_the_question_and_each_stage(retriever: SimGRAGRetriever, lines: Any) -> None:
    retriever.invoke(QUESTION, {"callbacks": [log_events()]})
    first, second, question = lines()
    assert [first["name"], second["name"], question["name"]] == [
        "generate_pattern",
        "match_subgraphs",
        "SimGRAGRetriever",
    ]
    assert (first["event"], second["event"], question["event"]) == ("stage", "stage", "question")
    assert first["retriever"] == second["retriever"] == "SimGRAGRetriever"
    assert first["trace"] == second["trace"] == question["trace"]
    assert question["seconds"] >= first["seconds"] + second["seconds"]
    assert (question["documents"], question["answers"], question["truncated"]) == (1, 3, False)
    assert 0.5 < question["confidence"] <= 1
    assert not {"refusal", "error", "question", "told"} & set(question)


def test_no_text_of_a_user(index: GraphIndex, retriever: SimGRAGRetriever, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger("kg_retrievers.refusals").setLevel(logging.ERROR)
    try:
        config: Any = {"callbacks": [log_events()]}
        retriever.invoke(UNKNOWN, config)
        build_workflow(retriever).invoke({"question": UNKNOWN}, config)
        retriever.as_tool().invoke({"query": UNKNOWN}, config)
        chain = answer_chain(PCSTRetriever.from_index(index), Failing(responses=[""]))
        with pytest.raises(ConnectionError):
            chain.invoke(QUESTION, config)
    finally:
        logging.getLogger("kg_retrievers.refusals").setLevel(logging.NOTSET)
    assert "EntityLinkingError" in caplog.text
    assert "ConnectionError" in caplog.text
    for word in ("Xyzzyplugh", "Amélie", "starred"):
        assert word not in caplog.text


def test_texts_where_they_are_asked_for(retriever: SimGRAGRetriever, lines: Any) -> None:
    retriever.invoke(UNKNOWN, {"callbacks": [log_events(texts=True)]})
    stage, question = lines()
    assert stage["question"] == question["question"] == UNKNOWN
    assert "No entity of the graph was found" in question["told"]
    assert question["refusal"] == "EntityLinkingError"


def test_models_are_told_of_by_what_called_them(index: GraphIndex, lines: Any) -> None:
    workflow = build_workflow(PCSTRetriever.from_index(index), ScriptedChatModel(replies=[REPLY]))
    workflow.invoke({"question": QUESTION}, {"callbacks": [log_events()]})
    told = {line["name"]: line for line in lines()}
    assert "model_calls" not in told["verbalize"]
    assert told["answer"]["model_calls"] == told["PCSTWorkflow"]["model_calls"] == 1
    assert told["answer"]["output_tokens"] > 0
    assert told["PCSTWorkflow"]["event"] == "question"


def test_an_error_is_a_warning(index: GraphIndex, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("of the application")
    chain = answer_chain(PCSTRetriever.from_index(index), Failing(responses=[""]))
    with caplog.at_level(logging.INFO, logger.name), pytest.raises(ConnectionError):
        chain.invoke(QUESTION, {"callbacks": [log_events(logger)]})
    levels = {json.loads(one.getMessage())["name"]: one.levelname for one in caplog.records}
    assert levels["RunnableSequence"] == "WARNING"
    assert levels["PCSTRetriever"] == "INFO"
    assert {one.name for one in caplog.records} == {"of the application"}
