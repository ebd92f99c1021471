"""Requests of the page around a question: more facts of an entity, names near to a text, and why not an entity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from kg_retrievers.agents.neighborhoods import resolve
from kg_retrievers.drawing import draw
from kg_retrievers.explanation import why_not
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.graph.verbalize import one_line
from kg_retrievers.index import GraphIndex, PartRequest
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.requests import MOST_EVIDENCE, Ask, Name, Strict, read_text

#: The most facts of a picture that grows, and the facts that an entity brings.
MOST_FACTS, MORE_FACTS = 500, 30

Text = Annotated[str, StringConstraints(max_length=400)]


class Expand(Strict):
    """An entity of a picture, and the contents of the picture.

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


#: The most characters of a line.
CHARACTERS = 2_000

#: A change in the words of the page, by the name of the changed part, and one that only the server's start can make.
_WORDS = {
    "k": "show up to {value} pieces of evidence.",
    "min_confidence": "take the likeliest reading, however unsure.",
    "seed_entities": "ask about {value[0]}.",
}
_SETTING = "set {name} to {value} when the method is built in Python. The page cannot change it."


class AskWhyNot(Ask):
    """Why is an entity not among the answers?

    Attributes:
        entity: The key of the entity, its label or an alias.
    """

    entity: Name


def explain_why_not(service: GraphService, asked: AskWhyNot) -> dict[str, Any]:
    """Return how an entity is joined with the question, and which change brings it in.

    Raises:
        EntityLinkingError: If the graph has no such entity.
        InvalidArgumentError: If the method is not offered.
    """
    retriever = service.retriever(asked.method)
    edited = {key: read_text(key, text) for key, text in asked.edited.items()}
    given: dict[str, Any] = edited | asked.model_dump(include={"k", "min_confidence"}, exclude_none=True)
    if asked.seed_entities:
        given["seed_entities"] = [resolve(service.index, seed) for seed in asked.seed_entities]
    missed = why_not(retriever, asked.question, resolve(service.index, asked.entity), **given)
    change = missed.change
    words = _WORDS.get(change.name, _SETTING).format(name=change.name, value=change.value) if change else ""
    _, *lines = missed.lines(words)
    return {
        "entity": missed.entity,
        "label": one_line(missed.label)[:CHARACTERS],
        "found": missed.found,
        "role": missed.place.role if missed.place else None,
        "lines": [line.strip()[:CHARACTERS] for line in lines],
        "change": one_line(words)[:CHARACTERS] or None,
        "again": missed.inputs if missed.inputs.get("k", 0) <= MOST_EVIDENCE else {},
    }


#: How many entities are suggested, and the most characters of a name.
SUGGESTED, NAME_CHARACTERS = 8, 200


def suggest(index: GraphIndex, text: str) -> list[dict[str, str]]:
    """Return the entities with the nearest names, as `{"key", "label", "type"}`.

    Args:
        index: The indexed graph.
        text: What was typed.
    """
    index = index.part(PartRequest(names=(text,), k=SUGGESTED * 2, near=True))
    graph, [near] = index.graph, index.nearest_entities([text], SUGGESTED * 2)
    keys = [graph.entities[id] for id in near.ids.tolist()]
    wanted = text.casefold()
    keys.sort(key=lambda key: not graph.label(key).casefold().startswith(wanted))  # what goes on as typed comes first
    return [
        {
            "key": key,
            "label": one_line(graph.label(key))[:NAME_CHARACTERS],
            "type": one_line(", ".join(graph.types_of(key)[:2]))[:NAME_CHARACTERS],
        }
        for key in keys[:SUGGESTED]
    ]
