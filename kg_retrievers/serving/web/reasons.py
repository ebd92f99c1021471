"""Why an entity is not among the answers, in words that the page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.explanation import why_not
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.serving.neighborhoods import resolve
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.editing import FORMS, read_text, write_text
from kg_retrievers.serving.web.requests import EditedTexts, Name, Question, Strict

#: The most characters of a text, and the most facts that are named.
CHARACTERS, FACTS = 2_000, 10


class AskWhyNot(Strict):
    """The question why an entity is not among the answers.

    Attributes:
        question: The question that was asked.
        entity: The key of the entity, its label or an alias.
        method: The method that was asked; the server's default where none is named.
        edited: What a person wrote in place of a stage, as of `Ask`.
    """

    question: Question
    entity: Name
    method: Name | None = None
    edited: EditedTexts = Field(default_factory=dict)


def explain_why_not(service: GraphService, asked: AskWhyNot) -> dict[str, Any]:
    """Return what keeps an entity out, and what would bring it in.

    Raises:
        EntityLinkingError: If the graph has no such entity.
        InvalidArgumentError: If the method is not offered.
    """
    retriever = service.retriever(asked.method)
    edited = {key: read_text(key, text, retriever.graph) for key, text in asked.edited.items()}
    told = why_not(retriever, asked.question, resolve(service.index, asked.entity), **edited)
    return {
        "entity": told.entity,
        "label": one_line(told.label)[:CHARACTERS],
        "found": told.found,
        "rank": told.place.rank if told.place else None,
        "role": told.place.role if told.place else None,
        "obstacles": [_obstacle(retriever, obstacle) for obstacle in told.obstacles],
        "lifted": told.lifted,
    }


def _obstacle(retriever: BaseKGRetriever, obstacle: Obstacle) -> dict[str, Any]:
    about: dict[str, Any] = {"why": obstacle.why, "stage": obstacle.stage, "text": one_line(obstacle.text)[:CHARACTERS]}
    written = {key: value for key, value in obstacle.lift.inputs.items() if key in FORMS}
    about["lift"] = list(_changes(obstacle.lift))
    about["edited"] = {}
    if obstacle.lift == Lift(inputs=written):  # else editing alone does not bring it in
        about["edited"] = {key: write_text(key, value, retriever.graph) for key, value in written.items()}
    elif "pattern" in written:
        lines = "; ".join(pattern_lines(written["pattern"]))
        about["lift"].append(one_line(f"the question read as {lines}")[:CHARACTERS])
    return about


def _changes(lift: Lift) -> Iterator[str]:
    """Yield what would bring the entity in: settings, and facts that the graph lacks."""
    settings = {**lift.fields, **{key: value for key, value in lift.inputs.items() if key not in FORMS}}
    for name, value in settings.items():
        yield one_line(f"{name} = {json.dumps(value, default=str, ensure_ascii=False)}")[:CHARACTERS]
    for head, relation, tail in lift.facts[:FACTS]:
        yield one_line(f"the fact {head} -> {relation} -> {tail}")[:CHARACTERS]
    if len(lift.facts) > FACTS:
        yield f"and {len(lift.facts) - FACTS} facts more"
