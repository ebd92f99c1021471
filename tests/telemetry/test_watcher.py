"""What watches never breaks what is watched, and keeps nothing of what has ended."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from kept_spans import Kept
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from kg_retrievers import Counts, GraphIndex, SimGRAGRetriever, Spans, UnionRetriever, build_workflow
from kg_retrievers.telemetry import watcher as module
from kg_retrievers.telemetry import watching
from kg_retrievers.telemetry.runs import Run
from kg_retrievers.telemetry.watcher import Watcher

QUESTION, UNKNOWN = "Who starred in Amélie?", "Who starred in Xyzzyplugh?"


class Broken(Watcher):
    """Fails whenever it is told something."""

    def begin(self, run: Run) -> None:
        raise RuntimeError(f"cannot keep {run.given}")

    def finish(self, run: Run) -> None:
        raise RuntimeError(f"cannot keep {run.given}")


@pytest.mark.parametrize("together", [False, True])
def test_an_error_of_a_watcher_is_logged_once_and_breaks_nothing(
    retriever: SimGRAGRetriever, caplog: pytest.LogCaptureFixture, together: bool
) -> None:
    plain, broken, counts = retriever.invoke(QUESTION), Broken(), Counts()
    for _ in range(3):
        if together:
            with watching(broken, counts):
                found = retriever.invoke(QUESTION)
        else:
            found = retriever.invoke(QUESTION, {"callbacks": [broken, counts]})
        assert found == plain
    assert [record.name for record in caplog.records] == ["kg_retrievers.telemetry.watcher"]
    assert "Broken failed with RuntimeError" in caplog.text
    assert "Amélie" not in caplog.text
    assert counts.snapshot()["by_name"]["SimGRAGRetriever"]["stages"]["match_subgraphs"]["calls"] == 3


def test_strange_events_are_harmless(caplog: pytest.LogCaptureFixture) -> None:
    counts, nobody = Counts(), uuid4()
    counts.on_chain_end({}, run_id=nobody)
    counts.on_chain_error(ValueError("x"), run_id=nobody)
    counts.on_custom_event("kg_retrievers.refused", "no mapping", run_id=nobody)
    counts.on_llm_end(None, run_id=nobody)  # type: ignore[arg-type]
    assert not caplog.records
    assert counts.snapshot()["questions"]["calls"] == 0


async def test_nothing_is_kept_of_what_has_ended(index: GraphIndex, retriever: SimGRAGRetriever) -> None:
    counts = Counts()
    for question in (QUESTION, UNKNOWN):
        retriever.invoke(question, {"callbacks": [counts]})
        await retriever.ainvoke(question, {"callbacks": [counts]})
        build_workflow(retriever).invoke({"question": question}, {"callbacks": [counts]})
    asking = asyncio.create_task(retriever.ainvoke(QUESTION, {"callbacks": [counts]}))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert not counts._at


def test_runs_whose_end_nobody_tells_are_given_up(monkeypatch: pytest.MonkeyPatch, kept: Kept) -> None:
    monkeypatch.setattr(module, "MOST_UNDER_WAY", 5)
    spans = Spans(kept.provider)
    for _ in range(20):
        spans.on_retriever_start({}, "?", run_id=uuid4(), name="lost")
    assert len(spans._at) == len(spans._open) == 5
    assert {(span.attributes or {})["error.type"] for span in kept.all} == {"Abandoned"}
    assert len(kept.all) == 15


def test_a_pause_for_a_person_is_no_error() -> None:
    def ask_person(state: dict[str, Any]) -> dict[str, Any]:
        return {"reply": interrupt("Go on?")}

    graph: Any = StateGraph(dict)
    graph.add_node("ask_person", ask_person)
    graph.add_edge(START, "ask_person")
    graph.add_edge("ask_person", END)
    counts = Counts()
    compiled = graph.compile(InMemorySaver())
    compiled.invoke({"question": "?"}, {"callbacks": [counts], "configurable": {"thread_id": "1"}})
    row = counts.snapshot()["by_name"]["LangGraph"]["stages"]["ask_person"]
    assert (row["calls"], row["errors"]) == (1, {})


def test_the_members_of_a_union_are_told_apart(index: GraphIndex, retriever: SimGRAGRetriever, kept: Kept) -> None:
    other = SimGRAGRetriever.from_index(index, min_confidence=1.0)
    union = UnionRetriever(index=index, retrievers=(retriever, other))
    assert union.invoke(QUESTION, {"callbacks": [Spans(kept.provider)]})
    outer = kept.attributes("retrieval UnionRetriever")
    assert "kg_retrievers.refused" not in outer
    members = [span for span in kept.all if span.name == "retrieval SimGRAGRetriever"]
    assert sorted((span.attributes or {}).get("kg_retrievers.refusal", "") for span in members) == [
        "",
        "LowConfidenceError",
    ]


def test_what_is_watched_gives_the_same(index: GraphIndex, retriever: SimGRAGRetriever) -> None:
    for question in (QUESTION, UNKNOWN):
        assert retriever.invoke(question, {"callbacks": [Counts()]}) == retriever.invoke(question)


def test_a_step_that_handles_a_refusal_is_not_refused(kept: Kept, retriever: SimGRAGRetriever) -> None:
    def answer(question: str) -> str:
        return "nothing" if not retriever.invoke(question) else "something"

    RunnableLambda(answer).invoke(UNKNOWN, {"callbacks": [Spans(kept.provider)]})
    assert "kg_retrievers.refused" not in kept.attributes("chain answer")
    assert kept.attributes("retrieval SimGRAGRetriever")["kg_retrievers.refused"] is True
