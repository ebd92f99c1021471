"""What `ask` says of how it found something, and of why it did not find something else."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

import kg_retrievers
from kg_retrievers.cli.show import lines_of
from kg_retrievers.errors import LowConfidenceError, RefusalError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.explanation import Explanation, WhyNot


#: What stands above the explanation of evidence that is refused.
REFUSED = "The question is refused; with --min-confidence 0 this is what is found:"

#: What stands in place of an explanation.
NOTHING_FOUND = "There is no evidence to explain; the answer says why. --why-not ENTITY says what keeps an entity out."


@dataclass(frozen=True)
class Explained:
    """What was asked for beside the answer.

    Attributes:
        explanation: How the question leads to the best evidence; None where it was not asked for, or there is none.
        why_not: What keeps an entity out; None where none was named.
        note: What stands above the explanation, or in place of one; empty where nothing is refused.
    """

    explanation: Explanation | None
    why_not: WhyNot | None
    note: str = ""

    @property
    def parts(self) -> list[Text]:
        """What a person is shown."""
        told = [*filter(None, [self.note]), *([] if self.explanation is None else [self.explanation.text])]
        explanation = "\n".join(told) or None
        why_not = None if self.why_not is None else self.why_not.shell_text
        titled = (("Explanation", explanation), ("Why not", why_not))
        return [Text.assemble((f"\n{title}\n", "bold"), lines_of(text)) for title, text in titled if text is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return what a program is shown; nothing of what was not asked for."""
        named = (("explanation", self.explanation), ("why_not", self.why_not))
        return {name: one.to_dict() for name, one in named if one is not None}


def given_inputs(retriever: BaseKGRetriever, options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `invoke` that the options name."""
    seeds = retriever.check_inputs({"seed_entities": options.seed}) if options.seed else {}
    return {"min_confidence": options.min_confidence, **seeds}


def explain_found(
    documents: list[Document],
    refusal: RefusalError | None,
    retriever: BaseKGRetriever,
    options: argparse.Namespace,
    k: int,
) -> Explained:
    """Explain the best Document, and why an entity is not found, as the options ask for."""
    given = given_inputs(retriever, options) | {"k": k}
    given = {name: value for name, value in given.items() if value is not None}
    explanation = why_not = None
    note = ""
    if options.explained and not documents:
        documents = _refused_documents(refusal, retriever, options.question, given)
        note = REFUSED if documents else NOTHING_FOUND
    if options.explained and documents:
        explanation = kg_retrievers.explain(documents[0], retriever, **given)
    if options.why_not is not None:
        why_not = kg_retrievers.why_not(retriever, options.question, options.why_not, **given)
    return Explained(explanation, why_not, note)


def _refused_documents(
    refusal: RefusalError | None, retriever: BaseKGRetriever, question: str, given: dict[str, Any]
) -> list[Document]:
    """Return what is found for a question that is not understood surely enough; no language model is asked again."""
    if not isinstance(refusal, LowConfidenceError) or any(stage.calls_model for stage in retriever.stages):
        return []
    return retriever.invoke(question, **(given | {"min_confidence": 0.0, "on_refusal": "empty"}))
