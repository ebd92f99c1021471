"""Why several retrievers refuse a question: each reason once, the most telling first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from langchain_core.documents import Document
from typing_extensions import TypedDict

from kg_retrievers.errors import (
    EntityLinkingError,
    KGRetrieversError,
    LowConfidenceError,
    NoEvidenceError,
    RefusalError,
    SearchBudgetError,
)
from kg_retrievers.graph.verbalize import as_data

# How telling errors are, the most telling first. All other failures come before an unknown name.
_RANKS = {LowConfidenceError: 0, SearchBudgetError: 1, NoEvidenceError: 2, EntityLinkingError: 4}
_OTHERS = 3

# The advice to give a language model, in hints for Python and for the shell.
_GIVE_MODEL = re.compile(r" (?:or|give|with) llm=,?| (?:or|give) --llm\b,?| --llm MODEL")


class Reason(TypedDict):
    """Why a retriever gives no evidence, as plain data that the state of a workflow can hold.

    Attributes:
        rank: How telling the error is, from 0; reasons of a lower rank come first.
        text: What the error says, without the retriever's class; with its own class, unless it is a refusal that says
            something.
        hint: What to do next.
    """

    rank: int
    text: str
    hint: str


def drop_model_advice(error: RefusalError, retriever: object) -> None:
    """Leave the advice to give a language model out of the hints, if a part of the retriever calls one.

    Example:
        >>> from types import SimpleNamespace
        >>> error = NoEvidenceError("Nothing fits.", hint_python="Rephrase it, or give examples= or llm=.")
        >>> drop_model_advice(error, SimpleNamespace(generator=SimpleNamespace(calls_model=True)))
        >>> error.hint_python
        'Rephrase it, or give examples=.'
    """
    if any(getattr(part, "calls_model", False) for part in vars(retriever).values()):
        error.hint_python = _GIVE_MODEL.sub("", error.hint_python)
        error.hint_shell = _GIVE_MODEL.sub("", error.hint_shell)


def read_reason(error: Exception, retriever: object) -> Reason:
    """Return why a retriever gives no evidence.

    Example:
        >>> read_reason(NoEvidenceError("nothing fits."), None)["text"], read_reason(KeyError("x"), None)["text"]
        ('nothing fits.', "KeyError: 'x'")
    """
    text, hint = (error.message, error.hint_python) if isinstance(error, KGRetrieversError) else (str(error), "")
    text = text.removeprefix(f"{type(retriever).__name__}: ")
    if not isinstance(error, RefusalError) or not text:
        text = ": ".join(filter(None, [type(error).__name__, text]))
    ranks = (rank for kind, rank in _RANKS.items() if isinstance(error, kind))
    return Reason(rank=next(ranks, _OTHERS), text=text, hint=hint)


def sort_reasons(reasons: Mapping[str, Reason]) -> dict[str, str]:
    """Return the texts of reasons by the names of the retrievers, the most telling first."""
    return {name: reason["text"] for name, reason in sorted(reasons.items(), key=lambda item: item[1]["rank"])}


def summarize_reasons(texts: Mapping[str, str], hint: str = "") -> str:
    """Return each reason once, behind the names of all retrievers that give it.

    Args:
        texts: What `sort_reasons` returns.
        hint: What to do about the first reason.

    Example:
        >>> summarize_reasons({"B": "Not sure.", "C": "Not sure.", "A": "No entity was found."}, "Rephrase it.")
        'B, C: Not sure. Rephrase it. A: No entity was found.'
    """
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    sentences = [f"{', '.join(group)}: {text}" for text, group in names.items()]
    if hint:
        sentences.insert(1, hint)
    return as_data(" ".join(sentences))


def summarize_refusals(reasons: Mapping[str, Reason]) -> str:
    """Return each reason once, and the hint of the most telling one right after it."""
    best = min(reasons.values(), key=lambda reason: reason["rank"])
    return summarize_reasons(sort_reasons(reasons), best["hint"])


def summarize_failures(documents: Sequence[Document], before: Mapping[str, Reason] | None = None) -> str:
    """Return each reason why retrievers gave no evidence beside these Documents.

    Args:
        documents: The evidence; in that of a union, `details["failed"]` holds the reasons of its members.
        before: The reasons of retrievers that were asked before.
    """
    texts = sort_reasons(before or {})
    for document in documents:
        texts |= (document.metadata.get("details") or {}).get("failed") or {}
    return summarize_reasons(texts)
