"""One run of a retriever with all that its stages wrote, whether it ends with Documents or with a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.documents import Document

from kg_retrievers.core.obstacles import role_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import NoEvidenceError, RefusalError


@dataclass(frozen=True)
class Place:
    """Where an entity stands in what a retriever found.

    Attributes:
        rank: The rank of the first Document that holds it, from 1.
        role: Whether it is an answer there, or stands in the facts alone.
    """

    rank: int
    role: Literal["answer", "evidence"]


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        state: What the stages wrote, until the refusal where there is one.
        refusal: Why there are no Documents.
        stage: The stage that refused, or the last one.
    """

    state: Mapping[str, Any]
    refusal: RefusalError | None
    stage: str

    @property
    def documents(self) -> list[Document]:
        """What was found."""
        return list(self.state.get("documents") or ())

    def place_of(self, entity: str, *, as_answer: bool) -> Place | None:
        """Return where an entity stands; None where it does not.

        Args:
            entity: Its key.
            as_answer: Whether it counts only as an answer, unless an operation gave a value in place of answers.
        """
        places = [
            Place(document.metadata["rank"], role)
            for document in self.documents
            if (role := role_of(entity, document.metadata, as_answer=as_answer)) is not None
        ]
        return min(places, key=lambda place: place.rank, default=None)


def run_stages(retriever: BaseKGRetriever, question: str, inputs: Mapping[str, Any]) -> Run:
    """Run the stages of a retriever one after the other, as `invoke` does, and keep what they write.

    Raises:
        InvalidArgumentError: As `invoke`.
    """
    state, name = retriever.initial_state(question, **inputs), ""
    for stage in retriever.running_stages:
        name = stage.name
        if all(key in state for key in stage.writes):
            continue
        try:
            state |= stage.run.invoke(dict(state), stage.shown_as(type(retriever).__name__))
        except RefusalError as refusal:
            return Run(state, refusal, name)
    if not state["documents"]:
        return Run(state, NoEvidenceError("Nothing in the graph fits the question."), name)
    return Run(state, None, name)
