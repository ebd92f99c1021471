"""How sure a retriever is of what a question asks for, and the refusal where it is not sure enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import floor
from typing import Annotated

from pydantic import Field

from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.graph import readable
from kg_retrievers.index.hints import REPHRASE, hints_for

#: The least confidence of an answer: chosen on the graphs by hand in `benchmarks/own_graphs/dev`.
MIN_CONFIDENCE = 0.5

#: How likely answers are right, in [0, 1].
Confidence = Annotated[float, Field(ge=0, le=1, strict=True)]

#: How many words and relations a refusal names.
NAMED = 3


def check_confidence(
    who: str,
    question: str,
    confidence: float | None,
    wanted: float,
    *,
    unplaced: Sequence[str] = (),
    nearest: Sequence[str] = (),
    lacking: Sequence[str] = (),
) -> None:
    """Check that a question was understood surely enough.

    Args:
        who: The class that answers it, for the message.
        question: The question.
        confidence: How likely the answers are right, in [0, 1]; None, where nobody can tell, is enough.
        wanted: The least confidence that is enough.
        unplaced: The words of the question that nothing in the graph fits.
        nearest: The relations that came nearest to the question, the nearest first.
        lacking: What an entity of the question lacks and others have, as clauses; they say it all.

    Raises:
        LowConfidenceError: If not; it says what was not understood, and what came nearest.

    Example:
        >>> check_confidence("Retriever", "What salary does Ann have?", 0.125, 0.5, unplaced=["salary"])
        ... # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
        Traceback (most recent call last):
        kg_retrievers.errors.LowConfidenceError: Retriever: not sure what 'What salary does Ann have?' asks for
        (confidence 0.12, wanted 0.5): no relation fits 'salary'. Rephrase it ...
    """
    if confidence is None or confidence >= wanted:
        return
    shown = shown_confidence(confidence)
    if confidence >= MIN_CONFIDENCE:
        raise LowConfidenceError(
            f"{who}: the confidence of the answer to {question!r:.200} is {shown}; min_confidence is {wanted:g}.",
            confidence,
            unplaced,
            nearest,
            hint_python="Lower min_confidence to see it.",
            hint_shell="Lower --min-confidence to see it.",
        )
    why = list(lacking)
    if unplaced and not lacking:
        why.append(f"no relation fits {_named(unplaced)}")
    lacked = {word.casefold() for word in unplaced}
    others = [name for name in map(readable, nearest) if name.casefold() not in lacked]
    if others and not lacking:
        why.append(f"the nearest {'are' if unplaced else 'relations are'} {_named(others)}")
    raise LowConfidenceError(
        f"{who}: not sure what {question!r:.200} asks for (confidence {shown}, wanted {wanted:g})"
        f"{': ' if why else ''}{'; '.join(why)}.",
        confidence,
        unplaced,
        nearest,
        **hints_for(question, REPHRASE),
    )


def shown_confidence(confidence: float) -> str:
    """Return a confidence with two digits, cut, so that it is never shown as what was wanted and not reached.

    Example:
        >>> shown_confidence(0.9677)
        '0.96'
    """
    return f"{floor(100 * confidence) / 100:.2f}"


def _named(words: Iterable[str]) -> str:
    return ", ".join(map(repr, islice(words, NAMED)))
