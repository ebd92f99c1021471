"""Why an entity is not among the answers, in words that the page shows."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kg_retrievers.explanation import why_not
from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.serving.neighborhoods import resolve
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.editing import read_text
from kg_retrievers.serving.web.requests import EditedTexts, Name, Question, Strict

#: The most characters of a text.
CHARACTERS = 2_000


class AskWhyNot(Strict):
    """The question why an entity is not among the answers.

    Attributes:
        question: The question that was asked.
        entity: The key of the entity, its label or an alias.
        method: The method that was asked; None for the default of the server.
        edited: The texts that a person wrote in place of stages, as of `Ask`.
    """

    question: Question
    entity: Name
    method: Name | None = None
    edited: EditedTexts = Field(default_factory=dict)


def explain_why_not(service: GraphService, asked: AskWhyNot) -> dict[str, Any]:
    """Return how an entity is joined with the question, and which change brings it in.

    Raises:
        EntityLinkingError: If the graph has no such entity.
        InvalidArgumentError: If the method is not offered.
    """
    retriever = service.retriever(asked.method)
    edited = {key: read_text(key, text, retriever.graph) for key, text in asked.edited.items()}
    missed = why_not(retriever, asked.question, resolve(service.index, asked.entity), **edited)
    _, *lines = missed.text.split("\n")
    return {
        "entity": missed.entity,
        "label": one_line(missed.label)[:CHARACTERS],
        "found": missed.found,
        "role": missed.place.role if missed.place else None,
        "lines": [line.strip()[:CHARACTERS] for line in lines],
        "changes": [one_line(change.in_python)[:CHARACTERS] for change in missed.changes],
    }
