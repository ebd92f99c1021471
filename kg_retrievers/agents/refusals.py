"""Collect why the retrievers of a workflow refuse a question.

Each reason comes once, the most telling first.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import TypedDict

from kg_retrievers.errors import (
    EntityLinkingError,
    LowConfidenceError,
    NoEvidenceError,
    RefusalError,
    SearchBudgetError,
)
from kg_retrievers.graph.verbalize import as_data

# How telling errors are, the most telling first. Replies that cannot be read come before an unknown name.
_RANKS = {LowConfidenceError: 0, SearchBudgetError: 1, NoEvidenceError: 2, EntityLinkingError: 4}
_OTHERS = 3


class Reason(TypedDict):
    """Why a retriever gives no evidence, as plain data for workflow states.

    Attributes:
        rank: How telling the error is, from 0. Reasons of a lower rank come first.
        text: The message of the error, without the retriever's class. The class of the error if it has no message.
        hint: The next step.
    """

    rank: int
    text: str
    hint: str


def read_reason(error: RefusalError, retriever: object) -> Reason:
    """Return why a retriever gives no evidence.

    Example:
        >>> read_reason(NoEvidenceError("nothing fits."), None)["text"], read_reason(NoEvidenceError(), None)["text"]
        ('nothing fits.', 'NoEvidenceError')
    """
    text = error.message.removeprefix(f"{type(retriever).__name__}: ") or type(error).__name__
    ranks = (rank for kind, rank in _RANKS.items() if isinstance(error, kind))
    return Reason(rank=next(ranks, _OTHERS), text=text, hint=error.hint_python)


def summarize_reasons(reasons: Mapping[str, Reason], *, with_hint: bool) -> str:
    """Return each reason once, behind the names of all retrievers that give it.

    Args:
        reasons: By the names of the retrievers.
        with_hint: Whether the hint of the most telling reason stands right after it.

    Example:
        >>> nobody = Reason(rank=4, text="Nobody.", hint="")
        >>> unsure = Reason(rank=0, text="Not sure.", hint="Rephrase it.")
        >>> summarize_reasons({"A": nobody, "B": unsure, "C": unsure}, with_hint=True)
        'B, C: Not sure. Rephrase it. A: Nobody.'
    """
    ordered = sorted(reasons.items(), key=lambda item: item[1]["rank"])
    names: dict[str, list[str]] = {}
    for name, reason in ordered:
        names.setdefault(reason["text"], []).append(name)
    sentences = [f"{', '.join(group)}: {text}" for text, group in names.items()]
    if with_hint:
        sentences.insert(1, ordered[0][1]["hint"])
    return as_data(" ".join(filter(None, sentences)))
