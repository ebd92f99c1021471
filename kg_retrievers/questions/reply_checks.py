"""Checks that the pattern in a language model's reply is one of its question, and not of an example in the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kg_retrievers.errors import PatternParseError
from kg_retrievers.graph import Known, Pattern, PatternTriple, Unknown
from kg_retrievers.questions.prompts import parse_pattern

#: How a question begins that asks for things: "who", "in which", "how many", "when did".
_ASKS_FOR_THINGS = re.compile(
    r"\W*(?:\w+ )?(?:who|whom|whose|which|what|how (?:many|much)|"
    r"(?:when|where) (?:is|are|was|were|do|does|did|has|have|had|will|can))\b",
    re.IGNORECASE,
)


def check_meant(pattern: Pattern, question: str, shots: Iterable[tuple[str, Mapping[str, Any]]], reply: str) -> None:
    """Check that a pattern leaves open what its question asks for, and has no fact of an example about other things.

    Args:
        pattern: The pattern that was read.
        question: What the model was asked.
        shots: The examples that it was shown: questions with the objects that answer them.
        reply: Where the pattern was read, for the error.

    Raises:
        PatternParseError: If not; the message says why, so that a model can repair it.
    """
    if _ASKS_FOR_THINGS.match(question) and not _has_unknown(pattern):
        raise PatternParseError(
            "check_meant: the question asks for something, but no triple holds an UNKNOWN. Write UNKNOWN, its kind and "
            "a number for what is asked for.",
            reply,
        )
    words = question.casefold()
    strange = [triple for triple in pattern.triples if _is_about_others(triple, words)]
    if not strange:
        return
    shown = {triple for _, answer in shots for triple in parse_pattern(json.dumps(answer)).triples}
    if copied := next((triple for triple in strange if triple in shown), None):
        names = [node.text for node in (copied.head, copied.tail) if isinstance(node, Known)]
        raise PatternParseError(
            f"check_meant: a triple about {names} is copied from an example, and the question names none of it. Write "
            "the facts that the question speaks of.",
            reply,
        )


def _has_unknown(pattern: Pattern) -> bool:
    terms = (term for triple in pattern.triples for term in triple)
    return any(isinstance(term, Unknown) for term in terms)


def _is_about_others(triple: PatternTriple, words: str) -> bool:
    """Tell whether a triple names something, and nothing of a question."""
    names = [node.text.casefold() for node in (triple.head, triple.tail) if isinstance(node, Known)]
    return bool(names) and not any(name in words for name in names)
