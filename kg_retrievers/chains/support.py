"""Tells whether answers stand in the facts that they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

from kg_retrievers.chains.evidence import MARK, show_evidence
from kg_retrievers.index.words import words_of

# What separates the names in a line; a name may hold it, too.
_PARTS = re.compile(r" (?:->|<-) ")


def are_supported(answers: Sequence[str], facts: Sequence[str]) -> bool | None:
    """Tell whether the name of each answer stands in one of some facts; None without answers.

    Args:
        answers: The answers.
        facts: Facts as `triple_lines` writes them.

    Example:
        >>> are_supported(["Jonze"], ["Her -> directed by -> Spike Jonze"]), are_supported(["Jonze"], [])
        (True, False)
    """
    return not unsupported(answers, facts) if answers else None


def unsupported(answers: Iterable[str], facts: Sequence[str]) -> list[str]:
    """Return the answers whose names stand in none of some facts.

    A name stands in a fact where its words stand in one name of that fact, in their order. Case, accents, signs and
    marks such as "[1]" do not count.

    Example:
        >>> unsupported(["spike jonze [1]", "Amy Adams"], ["Her -> directed by -> Spike Jonze"])
        ['Amy Adams']
    """
    return [answer for answer in answers if not any(_stands_in(answer, fact) for fact in facts)]


def _stands_in(answer: str, fact: str) -> bool:
    name = MARK.sub("", answer)
    words = words_of(name)
    if not words or _PARTS.search(name):
        return name.strip() in fact
    wanted = f" {' '.join(words)} "
    return any(wanted in f" {' '.join(words_of(part))} " for part in _PARTS.split(fact))


def fact_lines(documents: Sequence[Document]) -> list[str]:
    """Return a line for each fact of some Documents."""
    shown = show_evidence(documents, "numbered")
    numbers = range(1, len(shown.citable) + 1)
    return [citation["text"] for citation in shown.cite(numbers)[0]]
