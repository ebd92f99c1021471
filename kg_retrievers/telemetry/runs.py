"""A question, a stage or a call of a model while it runs, and what is known of it when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp

from kg_retrievers.core.documents import documents_answers
from kg_retrievers.errors import NoEvidenceError, RefusalError

#: What runs: a retriever, a workflow of LangGraph, a chain that nothing else runs, a stage of a retriever or a node of
#: a workflow, a language model, a tool.
Kind = Literal["retriever", "workflow", "chain", "stage", "model", "tool"]


@dataclass(eq=False)
class Run:
    """What runs, or has run. Calls and tokens of models are those of all that ran under it.

    Attributes:
        id: As LangChain gives it.
        kind: What it is.
        name: The class of the retriever, the name of the workflow, stage or tool, or the name of the model.
        parent: What it runs under; None where a question begins.
        retriever: The class of the retriever whose stage it is.
        provider: Who serves the model, as LangChain's client names it.
        given: The question, or what a model or tool was given: a text of a user.
        seconds: Wall time, from the start to the end.
        documents: How many Documents it gave; None if it gives none. `entities` and `answers` likewise.
        confidence: Of the first Document.
        truncated: Whether a limit cut the search.
        refusal: The class of the error by which a question was refused.
        error: The class of the error that ended it, if that is no refusal.
        told: What the error or the refusal says: it may hold texts of users.
        model_calls: Calls of language models, failed ones included.
        input_tokens: Of their prompts.
        output_tokens: Of their replies.
        estimated: Whether a model did not report its tokens, so that they are counted approximately.
    """

    id: UUID
    kind: Kind
    name: str
    parent: Run | None = None
    retriever: str | None = None
    provider: str | None = None
    given: str = ""
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    documents: int | None = None
    entities: int | None = None
    answers: int | None = None
    confidence: float | None = None
    truncated: bool | None = None
    refusal: str | None = None
    error: str | None = None
    told: str = ""
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    refused_under: str | None = None  # the last refusal of what ran under it

    @property
    def root(self) -> Run:
        """The run with which the question began."""
        return self.parent.root if self.parent else self

    def lineage(self) -> Iterator[Run]:
        """Yield the run and all that it runs under."""
        run: Run | None = self
        while run:
            yield run
            run = run.parent

    def end(self) -> None:
        """Take the time; tell the run above of a refusal."""
        self.seconds = time.perf_counter() - self.began
        refused = self.refusal or self.refused_under
        if self.parent and refused:
            self.parent.refused_under = refused

    def fail(self, error: BaseException) -> None:
        """Note the error that ended it; a pause for a person is none."""
        if isinstance(error, GraphBubbleUp):
            return
        self.told = str(error)
        if isinstance(error, RefusalError):
            self.refusal = type(error).__name__
        else:
            self.error = type(error).__name__

    def give(self, output: object) -> None:
        """Note how much it gave, of an output of any form."""
        if self.kind == "retriever" and isinstance(output, Sequence):
            self._give_documents(output)
        if isinstance(output, Mapping) and self.kind in ("stage", "workflow"):
            self._give_state(output)

    def _give_state(self, output: Mapping[str, Any]) -> None:
        documents, answers, entities = (output.get(key) for key in ("documents", "answers", "seed_entities"))
        if isinstance(documents, list):
            self._give_documents(documents)
        if isinstance(answers, list):
            self.answers = len(answers)
        if isinstance(entities, list):
            self.entities = len(entities)
        node_refused = self.kind == "stage" and bool(output.get("refusals"))
        workflow_refused = self.kind == "workflow" and bool(output.get("reason"))
        if not documents and (node_refused or workflow_refused):
            self.refusal = self.refused_under or NoEvidenceError.__name__
            self.told = str(output.get("reason") or "")

    def _give_documents(self, documents: Sequence[object]) -> None:
        found = [document for document in documents if isinstance(document, Document)]
        self.documents = len(found)
        ours = [document for document in found if "triples" in document.metadata]
        if ours:
            self.answers = len(documents_answers(ours))
            self.confidence = ours[0].metadata.get("confidence")
            self.truncated = any(bool(document.metadata.get("truncated")) for document in ours)
