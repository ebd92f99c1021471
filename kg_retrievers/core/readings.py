"""Names of a question that are read as entities of another name: noted in the details of evidence, and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypedDict

from langchain_core.documents import Document

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Evidence
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.index import GraphIndex, linker_of
from kg_retrievers.index.question_entities import find_name
from kg_retrievers.index.words import words_of


class Reading(TypedDict):
    """What a question says, and the entity that it is taken for, as JSON."""

    text: str
    key: str
    label: str


def note_readings(evidence: Sequence[Evidence], index: GraphIndex, question: str) -> list[Evidence]:
    """Return evidence with `details["read_as"]`, the entities that the question calls by another name, as by a typo.

    Only entities that the details name count. Letters, accents and signs aside, a label or key is no other name. The
    key is left out where there is none.
    """
    graph, labels = index.graph, dict[str, str]()
    for item in evidence:
        labels |= {key: graph.label(key) for _, key in item.details.get("entities") or () if key in graph.entities}
    other = {
        key: label for key, label in labels.items() if not (find_name(label, question) or find_name(key, question))
    }
    read = _readings(index, question, other) if other else {}
    if not read:
        return list(evidence)
    noted = []
    for item in evidence:
        keys = dict.fromkeys(key for _, key in item.details["entities"])
        own = [read[key] for key in keys if key in read]
        noted.append(replace(item, details={**item.details, "read_as": own}) if own else item)
    return noted


def _readings(index: GraphIndex, question: str, labels: Mapping[str, str]) -> dict[str, Reading]:
    """Return how a question calls entities of these labels, where it calls them otherwise."""
    readings: dict[str, Reading] = {}
    with suppress(EntityLinkingError):
        for mention in linker_of(index).link(question):
            for key in (candidate.entity for candidate in mention.candidates):
                if key in labels and words_of(mention.text) != words_of(labels[key]):
                    readings.setdefault(key, Reading(text=mention.text, key=key, label=labels[key]))
    return readings


def tell_readings(documents: Sequence[Document]) -> str:
    """Return a sentence on each name that is read as another one; nothing where there is none.

    Example:
        >>> details = {"read_as": [{"text": "Paymnets", "key": "Q1", "label": "Payments"}]}
        >>> tell_readings([Document("", metadata={"details": details})])
        "'Paymnets' is read as 'Payments'."
    """
    details = (document.metadata.get("details") or {} for document in documents)
    told = [f"{one['text']!r} is read as {one['label']!r}." for each in details for one in each.get("read_as") or ()]
    return as_data(" ".join(dict.fromkeys(told)))
