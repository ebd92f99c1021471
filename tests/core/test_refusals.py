"""Why several retrievers refuse a question."""

from __future__ import annotations

import pytest

from kg_retrievers.core.refusals import read_reason
from kg_retrievers.errors import ModelCallError, NoEvidenceError


class Retriever:
    """Stands for one that refuses."""


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
