"""Counts: sums by retriever and stage."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableLambda

from kg_retrievers import Counts, GraphIndex, PCSTRetriever, SimGRAGRetriever, answer_chain, build_workflow
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.telemetry import counts as module
from kg_retrievers.testing import ScriptedChatModel

QUESTION, UNKNOWN = "Who starred in Amélie?", "Who starred in Xyzzyplugh?"
REPLY = '{"explanation": "", "answers": ["Audrey Tautou"], "citations": [1]}'


class Failing(FakeListLLM):
    """A model whose server is gone."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ConnectionError("gone")


def test_by_retriever_and_stage(retriever: SimGRAGRetriever) -> None:
    counts = Counts()
    for question in (QUESTION, QUESTION, UNKNOWN):
        retriever.invoke(question, {"callbacks": [counts]})
    snapshot = counts.snapshot()
    assert snapshot["questions"]["calls"] == 3
    assert snapshot["questions"]["refusals"] == {"EntityLinkingError": 1}
    row = snapshot["by_name"]["SimGRAGRetriever"]
    assert (row["calls"], row["refusals"], row["errors"]) == (3, {"EntityLinkingError": 1}, {})
    first, second = row["stages"]["generate_pattern"], row["stages"]["match_subgraphs"]
    assert (first["calls"], first["refusals"], second["calls"]) == (3, {"EntityLinkingError": 1}, 2)
    assert 0 < first["seconds"] + second["seconds"] < row["seconds"]
    assert json.loads(json.dumps(snapshot)) == snapshot
    snapshot["questions"]["refusals"]["EntityLinkingError"] = 99
    assert counts.snapshot()["questions"]["refusals"] == {"EntityLinkingError": 1}


def test_calls_and_tokens_are_those_of_the_cost_counter(index: GraphIndex) -> None:
    counts, costs = Counts(), CostCounter()
    workflow = build_workflow(PCSTRetriever.from_index(index), ScriptedChatModel(replies=[REPLY] * 2))
    for _ in range(2):
        workflow.invoke({"question": QUESTION}, {"callbacks": [counts, costs]})
    snapshot, cost = counts.snapshot(), costs.cost(0)
    assert cost["llm_calls"] == 2
    rows = snapshot["questions"], snapshot["by_name"]["PCSTWorkflow"]["stages"]["answer"]
    for row in rows:
        assert row["model_calls"] == cost["llm_calls"]
        assert (row["input_tokens"], row["output_tokens"]) == (cost["input_tokens"], cost["output_tokens"])
    assert snapshot["by_name"]["PCSTRetriever"]["stages"]["solve_pcst"]["calls"] == 2
    assert snapshot["by_name"]["PCSTRetriever"]["calls"] == 0  # its stages ran as nodes of the workflow


def test_a_call_that_failed_is_counted(index: GraphIndex) -> None:
    counts, costs = Counts(), CostCounter()
    chain = answer_chain(PCSTRetriever.from_index(index), Failing(responses=[""]))
    with pytest.raises(ConnectionError):
        chain.invoke(QUESTION, {"callbacks": [counts, costs]})
    questions = counts.snapshot()["questions"]
    assert (questions["model_calls"], questions["errors"]) == (1, {"ConnectionError": 1})
    assert questions["input_tokens"] == costs.input_tokens > 0


def test_threads_lose_nothing(retriever: SimGRAGRetriever) -> None:
    counts = Counts()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: retriever.invoke(QUESTION, {"callbacks": [counts]}), range(100)))
    row = counts.snapshot()["by_name"]["SimGRAGRetriever"]
    assert [row["calls"], *(stage["calls"] for stage in row["stages"].values())] == [100, 100, 100]


def test_names_that_never_end_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    counts = Counts()
    for number in range(10):
        RunnableLambda(str.upper).invoke("x", {"callbacks": [counts], "run_name": f"asked {number}"})
    rows = counts.snapshot()["by_name"]
    assert {name: row["calls"] for name, row in rows.items()} == {"asked 0": 1, "asked 1": 1, "asked 2": 1, "others": 7}
