"""Times relative to today, in questions."""

from __future__ import annotations

from datetime import date

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, QuestionReader, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.questions.clock import in_dates, is_relative

TODAY = date(2026, 1, 15)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("founded last year", "founded in 2025"),
        ("founded in this month", "founded in 2026-01"),
        ("founded last month", "founded in 2025-12"),
        ("founded a year ago", "founded in 2025"),
        ("founded twelve months ago", "founded in 2025-01"),
        ("founded in the last decade", "founded since 2016-01"),
        ("founded within the past 3 years", "founded since 2023-01"),
        ("founded last century", "founded in the 20th century"),
        ("opened yesterday", "opened on 2026-01-14"),
        ("the last of the year", "the last of the year"),
        ("Two years ago, who won?", "in 2024, who won?"),
        ("founded before last year", "founded before 2025"),
        ("founded within the last 300 years", "founded since 1726-01"),
    ],
)
def test_a_relative_time_is_written_as_a_date(said: str, written: str) -> None:
    assert in_dates(said, TODAY) == written


def test_a_clock_answers_what_is_refused_without() -> None:
    facts = [("Nordyard", "founded in", "2025"), ("Sudyard", "founded in", "2019"), ("Vega", "built by", "Nordyard")]
    types = {"Nordyard": ["Shipyard"], "Sudyard": ["Shipyard"], "Vega": ["Ship"]}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, types=types), default_embeddings())
    question = "Which shipyards were founded last year?"
    assert is_relative(question)
    with pytest.raises(LowConfidenceError, match=r"no clock.*clock=datetime\.date\.today"):
        QuestionReader(index).read(question)
    reader = QuestionReader(index, clock=lambda: TODAY)
    assert not is_relative("Who wrote This Year?", [(10, 19)])
    documents = SimGRAGRetriever.from_index(index, pattern_generator=reader).invoke(question)
    assert documents[0].metadata["answers"] == ["Nordyard"]
