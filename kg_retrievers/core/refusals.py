"""Why several retrievers refuse a question: each reason once, the one that tells most first."""

from __future__ import annotations

import re
from collections.abc import Mapping

from langchain_core.documents import Document

from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph.shown_text import as_data

#: Errors by how much they tell, the most first; "" stands for those that are no refusal.
_TELLING = ("LowConfidenceError", "SearchBudgetError", "NoEvidenceError", "", "EntityLinkingError")

# The class of an error, and the class that raised it.
_WHO = re.compile(r"(?:\w+: ){0,2}")


def reason_of(error: Exception) -> str:
    """Return the class of an error and what it says, without what to do next."""
    return f"{type(error).__name__}: {error.message if isinstance(error, KGRetrieversError) else error}"


def said(reason: str) -> str:
    """Return what a reason, as `reason_of` gives it, says, without who says it."""
    return _WHO.sub("", reason, count=1)


def order_of(reason: str) -> int:
    """Return the position of a reason, as `reason_of` gives it, among those of others: what tells most comes first."""
    kind = reason.partition(":")[0]
    return _TELLING.index(kind if kind in _TELLING else "")


def tell_reasons(reasons: Mapping[str, str]) -> str:
    """Return each reason once, with the names of all that give it, the one that tells most first.

    Args:
        reasons: What `reason_of` gives, by the names of those who refuse.

    Example:
        >>> unsure = {name: f"LowConfidenceError: {name}: not sure what 'Who?' asks for." for name in ("B", "C")}
        >>> tell_reasons({"A": "EntityLinkingError: No entity was found.", **unsure})
        "B, C: not sure what 'Who?' asks for. A: No entity was found."
    """
    names: dict[str, list[str]] = {}
    for name, reason in sorted(reasons.items(), key=lambda item: order_of(item[1])):
        names.setdefault(said(reason), []).append(name)
    return as_data(" ".join(f"{', '.join(group)}: {text}" for text, group in names.items()))


def tell_failed(documents: list[Document]) -> str:
    """Return why retrievers found nothing beside the evidence, from `details["failed"]`; nothing where none failed."""
    return tell_reasons(documents[0].metadata.get("details", {}).get("failed") or {})
