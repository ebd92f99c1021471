"""Questions whose answer is a value: how many, whether."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    ExtractiveAnswerer,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Pattern,
    Question,
    SimGRAGRetriever,
    Unknown,
)
from kg_retrievers.evaluation import Report, compare, evaluate
from kg_retrievers.graph.operations import Condition, Operation

GRAPH = KnowledgeGraph.from_triples(
    [("Her", "directed_by", "Spike Jonze"), ("Adaptation", "directed_by", "Spike Jonze")]
)
COUNT = Pattern.of((Unknown("film"), "directed_by", "Spike Jonze"), target="film", operation=Operation("count"))
WHETHER = Pattern.of(
    ("Her", "directed_by", Unknown("who")),
    conditions=[Condition("who", "contains", "Gondry")],
    operation=Operation("exists"),
)
PATTERNS = {"How many films did Spike Jonze direct?": COUNT, "Was Her directed by a Gondry?": WHETHER}
MANY, POLAR = PATTERNS


@pytest.fixture
def retriever() -> SimGRAGRetriever:
    generator: Any = RunnableLambda(lambda given: PATTERNS[given["question"]])
    index = GraphIndex.build(GRAPH, HashedEmbeddings())
    return SimGRAGRetriever.from_index(index, pattern_generator=generator)


@pytest.mark.parametrize(
    ("question", "value", "wanted"),
    [(MANY, 2, 1.0), (MANY, 3, 0.0), (MANY, True, 0.0), (POLAR, False, 1.0), (POLAR, True, 0.0), (POLAR, 0, 0.0)],
)
def test_exact_value(retriever: SimGRAGRetriever, question: str, value: Any, wanted: float) -> None:
    report = evaluate(retriever, [Question(question, value=value)])
    assert report.metrics["exact_value"] == wanted
    assert report.intervals["exact_value"] == [wanted, wanted]
    assert len(report.failures) == 1 - wanted
    assert report.metrics["false_refusals"] == 0


def test_records_keep_the_value(retriever: SimGRAGRetriever, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    report = evaluate(retriever, [Question(MANY, value=3), Question(POLAR, value=False)], records=path)
    assert Report.read(path).metrics == report.metrics
    first, second = report.records
    assert (first["gold_value"], first["value"], second["value"]) == (3, 2, False)
    table = compare([report])
    assert "exact value" in table.columns
    assert "Wanted: 3. Got: 2." in table.failures["SimGRAGRetriever"][0]


def test_replies_are_compared_with_the_value_as_text(retriever: SimGRAGRetriever) -> None:
    questions = [Question(MANY, value=2), Question(POLAR, value=False)]
    report = evaluate(retriever, questions, answerer=ExtractiveAnswerer())
    assert report.metrics["text_hit"] == report.metrics["exact_value"] == 1
