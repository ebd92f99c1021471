"""Which words name which entity and which relation, and what else they might have named."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.verbalize import as_data, one_line, readable
from kg_retrievers.index import GraphIndex, linker_of

#: How words name an entity.
HOW = {
    "exact": "exactly",
    "case": "except for case or signs",
    "alias": "by another name",
    "short": "in short",
    "fuzzy": "except for some letters",
    "similar": "as the nearest name",
}


@dataclass(frozen=True)
class Other:
    """What words may mean besides.

    Attributes:
        key: The key of an entity, or a relation.
        label: What it is called.
        likeness: How like the words are, as that of the one taken.
    """

    key: str
    label: str
    likeness: float


@dataclass(frozen=True)
class NamedEntity:
    """An entity that evidence is about.

    Attributes:
        text: The words of the question that name it, or the name that a pattern or a caller gives it.
        key: Its key.
        label: What it is called.
        likeness: How like its name the words are, in (0, 1]; of a name that is only similar, the cosine between the
            embeddings of words and label, in [-1, 1]; None if nobody can tell.
        how: See `kg_retrievers.core.documents.Linked`.
        others: What else the words may mean, best first; nothing without a retriever.
    """

    text: str
    key: str
    label: str
    likeness: float | None
    how: str
    others: tuple[Other, ...] = ()

    @property
    def line(self) -> str:
        """The words that name the entity, and what else they may mean."""
        text, label = one_line(self.text), one_line(self.label)
        key = "" if self.key == self.label else f" [{one_line(self.key)}]"
        likeness = "" if self.likeness is None else f" ({self.likeness:.2f})"
        if self.how == "given":
            line = f"{label!r}{key} is given; the question does not name it"
        else:
            line = f"{text!r} names {label!r}{key} {HOW.get(self.how, self.how)}{likeness}"
        others = [f"{one_line(one.label)!r} [{one_line(one.key)}] ({one.likeness:.2f})" for one in self.others[:3]]
        return f"{line}; or {', '.join(others)}" if others else line


@dataclass(frozen=True)
class NamedRelation:
    """A relation of evidence that a pattern names.

    Attributes:
        relation: The relation.
        text: Its text in the pattern.
        likeness: The cosine between the embeddings of text and relation, in [-1, 1]; None without a retriever.
    """

    relation: str
    text: str
    likeness: float | None

    @property
    def line(self) -> str:
        """The words that name the relation."""
        name = as_data(readable(self.relation))
        if readable(self.text) == readable(self.relation):
            return f"{name!r}, as the pattern says"
        likeness = "" if self.likeness is None else f" (cosine {self.likeness:.2f})"
        return f"{one_line(self.text)!r} of the pattern stands for {name!r}{likeness}"


def named_entities(metadata: Mapping[str, Any], retriever: BaseKGRetriever | None) -> tuple[NamedEntity, ...]:
    """Return the entities that a Document is about, with the words that name them."""
    labels = metadata["labels"]
    names = {key: name for name, key in metadata["details"].get("entities") or ()}
    linked = {one["key"]: one for one in metadata.get("linked") or ()}
    others = _others(metadata.get("question") or "", retriever.index) if retriever else {}
    found = []
    for key, name in names.items():
        one = linked.get(key) or {"text": name, "likeness": None, "how": "given"}
        label, likeness = labels.get(key) or name, one["likeness"]
        if retriever is not None and key in retriever.graph.entities:
            label = retriever.graph.label(key)
        if one["how"] == "similar" and retriever is not None:
            likeness = _cosine(retriever.index, one["text"], label)
        found.append(NamedEntity(one["text"], key, label, likeness, one["how"], others.get(key, ())))
    return tuple(found)


def _others(question: str, index: GraphIndex) -> dict[str, tuple[Other, ...]]:
    """Return for each entity that the linker finds in a question what else it takes the words for."""
    others: dict[str, tuple[Other, ...]] = {}
    with suppress(EntityLinkingError):
        for mention in linker_of(index).link(question) if question.strip() else ():
            candidates = [Other(one.entity, one.label, one.score) for one in mention.candidates]
            for one in candidates:
                others.setdefault(one.key, tuple(other for other in candidates if other.key != one.key))
    return others


def named_relations(metadata: Mapping[str, Any], retriever: BaseKGRetriever | None) -> tuple[NamedRelation, ...]:
    """Return the relations of a Document's facts that a pattern names, with the words of the pattern."""
    texts = {relation: text for text, relation in metadata["details"].get("relations") or () if relation}
    found = dict.fromkeys(relation for _, relation, _ in metadata["triples"] if relation in texts)
    return tuple(
        NamedRelation(
            relation,
            texts[relation],
            _cosine(retriever.index, readable(texts[relation]), readable(relation)) if retriever else None,
        )
        for relation in found
    )


def _cosine(index: GraphIndex, one: str, other: str) -> float:
    """Return the cosine between the embeddings of two texts."""
    first, second = np.asarray(index.embed([one, other]), np.float64)
    norm = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / norm if norm else 0.0
