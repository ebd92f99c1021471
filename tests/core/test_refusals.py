"""Why several retrievers refuse a question."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from kg_retrievers.chains import ExtractiveAnswerer
from kg_retrievers.core.refusals import (
    Reason,
    read_reason,
    sort_reasons,
    summarize_failures,
)
from kg_retrievers.core.replies import NO_TARGET
from kg_retrievers.errors import (
    EntityLinkingError,
    LowConfidenceError,
    ModelCallError,
    NoEvidenceError,
    SearchBudgetError,
)


class Retriever:
    """Stands for one that refuses."""


class UnsureError(LowConfidenceError):
    """A refusal of another package."""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoEvidenceError("Retriever: nothing fits."), "nothing fits."),
        (NoEvidenceError("note: this: that."), "note: this: that."),
        (NoEvidenceError(), "NoEvidenceError"),
        (TimeoutError(), "TimeoutError"),
        (KeyError("x"), "KeyError: 'x'"),
        (ModelCallError("Retriever: no reply."), "ModelCallError: no reply."),
    ],
)
def test_reasons_say_what_errors_say(error: Exception, text: str) -> None:
    assert read_reason(error, Retriever())["text"] == text


def test_the_most_telling_first() -> None:
    errors = {
        "a": EntityLinkingError("a"),
        "b": TimeoutError("b"),
        "c": NoEvidenceError("c"),
        "d": SearchBudgetError("d"),
        "e": UnsureError("e", 0.1),
    }
    reasons = {name: read_reason(error, None) for name, error in errors.items()}
    assert [*sort_reasons(reasons)] == ["e", "d", "c", "b", "a"]


def test_failures_of_any_document() -> None:
    documents = [Document("", metadata={"details": {}}), Document("", metadata={"details": {"failed": {"a": "Late."}}})]
    before: dict[str, Reason] = {"b": {"rank": 0, "text": "Not sure.", "hint": "Rephrase it."}}
    assert summarize_failures(documents) == "a: Late."
    assert summarize_failures(documents, before) == "b: Not sure. a: Late."
    assert summarize_failures([Document("")]) == ""


def test_an_answerer_says_the_refusals_of_its_input() -> None:
    documents = [Document("", metadata={"answers": [], "labels": {}})]
    said = ExtractiveAnswerer().invoke({"question": "?", "documents": documents, "refusals": "a: Late."})
    assert said == f"{NO_TARGET} a: Late."
