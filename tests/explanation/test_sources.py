"""Each reader of questions is told in words."""

from __future__ import annotations

from kg_retrievers.core.documents import SOURCES
from kg_retrievers.questions.carried_out import READERS


def test_each_reader_is_told_in_words() -> None:
    assert {*SOURCES} == READERS | {"llm"}
