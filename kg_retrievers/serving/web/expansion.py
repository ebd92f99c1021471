"""More facts around an entity of a picture."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from kg_retrievers.drawing import draw
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.requests import Name, Strict

#: The most facts of a picture that grows, and the facts that an entity brings.
MOST_FACTS, MORE_FACTS = 500, 30

Text = Annotated[str, StringConstraints(max_length=400)]


class Expand(Strict):
    """An entity of a picture, and what the picture shows.

    Attributes:
        entity: Its key.
        facts: The facts of the picture, by entity key.
        labels: What the entities are called, by key.
        answers: The keys of those that are marked as answers.
        known: The keys of those that are marked as known.
    """

    entity: Name
    facts: Annotated[list[Annotated[list[Text], Field(min_length=3, max_length=3)]], Field(max_length=MOST_FACTS)]
    labels: dict[Text, Text] = Field(default_factory=dict)
    answers: list[Text] = Field(default_factory=list)
    known: list[Text] = Field(default_factory=list)


def expand(service: GraphService, asked: Expand) -> dict[str, Any]:
    """Return the picture with more facts around an entity, those that it shows first: see `Drawing.page_data`.

    Raises:
        EntityLinkingError: If the graph has no such entity.
    """
    shown = [Triple(*fact) for fact in asked.facts]
    around = service.neighbors(asked.entity, limit=MORE_FACTS)
    more = [Triple(*fact.triple) for fact in around.facts]
    key = around.entity.key or asked.entity
    labels = {key: around.entity.label}
    for fact in around.facts:
        head, _, tail = fact.triple
        labels.setdefault(tail if head == key else head, fact.other)
    labels |= asked.labels
    evidence = Evidence(
        tuple(dict.fromkeys([*shown, *more])),
        score=0.0,
        answers=tuple(asked.answers),
        details={"entities": [[key, key] for key in asked.known]},
    )
    drawing = draw(evidence, label=lambda key: labels.get(key, key), max_triples=MOST_FACTS)
    return drawing.page_data() | {"more": around.left_out}
