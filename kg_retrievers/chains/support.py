"""Tells whether answers stand in the facts that they rest on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.documents import Document

from kg_retrievers.chains.evidence import MARK, lone_names, show_evidence
from kg_retrievers.core.replies import without_reasoning
from kg_retrievers.core.results import agrees, result_value
from kg_retrievers.graph.values import read_value
from kg_retrievers.index.words import words_of

# What separates the names in a line; a name may hold it, too.
_PARTS = re.compile(r" (?:->|<-) ")


def are_supported(
    answers: Sequence[str], facts: Sequence[str], reply: str = "", documents: Sequence[Document] = ()
) -> bool | None:
    """Tell whether no answer is `unsupported`; None where that returns None.

    Example:
        >>> are_supported(["Jonze"], ["Her -> directed by -> Spike Jonze"]), are_supported(["Jonze"], [])
        (True, False)
    """
    missing = unsupported(answers, facts, reply, documents)
    return None if missing is None else not missing


def unsupported(
    answers: Sequence[str], facts: Sequence[str], reply: str = "", documents: Sequence[Document] = ()
) -> list[str] | None:
    """Return the answers whose names stand in none of some facts; None where no names are known.

    A name stands in a fact where its words stand in one name of that fact, in their order. Case, accents, signs and
    marks such as "[1]" do not count. Where an operation gave a value, an answer is supported if it says that value, as
    "6 films" says 6, or the name of an entity that the operation chose.

    Args:
        answers: The answers; without any, no names are known.
        facts: Facts as `triple_lines` writes them.
        reply: The text that the answers were read from. An answer that is all of it and stands in no fact may be a
            sentence, whose names are not known.
        documents: The evidence. The first tells what an operation gave.

    Example:
        >>> unsupported(["spike jonze [1]", "Amy Adams"], ["Her -> directed by -> Spike Jonze"])
        ['Amy Adams']
    """
    if result_value(documents) is not None:
        missing = [answer for answer in answers if not agrees(MARK.sub("", answer), documents[0].metadata)]
        reply = "" if answers and read_value(answers[0]) else reply  # a number is no sentence
    else:
        missing = [answer for answer in answers if not any(_stands_in(answer, fact) for fact in facts)]
    is_whole_reply = len(answers) == 1 and words_of(answers[0]) == words_of(without_reasoning(reply))
    return None if not answers or (missing and is_whole_reply) else missing


def _stands_in(answer: str, fact: str) -> bool:
    name = MARK.sub("", answer)
    words = words_of(name)
    if not words or _PARTS.search(name):
        return name.strip() in fact
    wanted = f" {' '.join(words)} "
    return any(wanted in f" {' '.join(words_of(part))} " for part in _PARTS.split(fact))


def fact_lines(documents: Sequence[Document]) -> list[str]:
    """Return a line for each fact of some Documents, and one for each entity that is evidence by itself."""
    shown = show_evidence(documents, "numbered")
    numbers = range(1, len(shown.citable) + 1)
    return [*(citation["text"] for citation in shown.cite(numbers)[0]), *lone_names(documents)]
