"""Which words of a question name which entity and which relation, and what else they might have named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.verbalize import as_data, one_line, readable
from kg_retrievers.index import GraphIndex, linker_of
from kg_retrievers.index.linking import MASK, find_name, mask
from kg_retrievers.index.names import FUNCTION_WORDS, words_of

#: The most words of a question that are taken together for a relation.
MOST_WORDS = 3

#: Ours. Words of a question that are less like a relation, by their cosine, hardly name it.
LEAST_LIKENESS = 0.3

#: How words name an entity.
HOW = {
    "exact": "exactly",
    "case": "except for case or signs",
    "alias": "by another name",
    "short": "in short",
    "fuzzy": "except for some letters",
    "similar": "as the nearest name",
}

#: Words with the same first letters as one of a relation are taken for it where there are no embeddings.
STEM = 4


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
            embeddings of words and label, in [-1, 1]; None where nobody can tell.
        how: See `kg_retrievers.core.documents.Linked`.
        others: What else the words may mean, best first; nothing without a retriever.
    """

    text: str
    key: str
    label: str
    likeness: float | None
    how: str
    others: tuple[Other, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return {**asdict(self), "others": [asdict(one) for one in self.others]}

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
    """A relation of evidence.

    Attributes:
        relation: The relation.
        text: What names it: its text in a pattern, else the nearest words of the question; empty where none do.
        likeness: The cosine between the embeddings of text and relation, in [-1, 1]; None without a retriever.
        how: "pattern" or "question", where the text stands.
        facts: How many facts of the evidence have it.
    """

    relation: str
    text: str
    likeness: float | None
    how: str
    facts: int

    @property
    def is_telling(self) -> bool:
        """Whether the text names the relation, and is not just the least unlike of some words."""
        return bool(self.text) and (self.how == "pattern" or self.likeness is None or self.likeness >= LEAST_LIKENESS)

    @property
    def line(self) -> str:
        """The words that name the relation."""
        likeness = "" if self.likeness is None else f" (cosine {self.likeness:.2f})"
        name, text = as_data(readable(self.relation)), one_line(self.text)
        if self.how == "pattern" and readable(self.text) == readable(self.relation):
            return f"{name!r}, as the pattern says"
        if self.how == "pattern":
            return f"{text!r} of the pattern stands for {name!r}{likeness}"
        return f"{text!r} comes nearest to {name!r}{likeness}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return asdict(self)


def named_entities(metadata: Mapping[str, Any], retriever: BaseKGRetriever | None) -> tuple[NamedEntity, ...]:
    """Return the entities that a Document is about, with the words that name them."""
    labels = metadata["labels"]
    names = {key: name for name, key in metadata["details"].get("entities") or ()}
    linked = {one["key"]: one for one in metadata.get("linked") or ()}
    found = []
    for key, name in names.items():
        one = linked.get(key) or {"text": name, "likeness": None, "how": "given"}
        label = labels.get(key) or (_label(retriever, key) if retriever else name)
        likeness = one["likeness"]
        if one["how"] == "similar" and retriever is not None:
            likeness = _cosines(retriever.index, one["text"], [label])[0]
        found.append(NamedEntity(one["text"], key, label, likeness, one["how"]))
    return tuple(found if retriever is None else _with_others(found, metadata.get("question") or "", retriever.index))


def _label(retriever: BaseKGRetriever, key: str) -> str:
    graph = retriever.graph
    return graph.label(key) if key in graph.entities else key


def _with_others(found: Sequence[NamedEntity], question: str, index: GraphIndex) -> list[NamedEntity]:
    """Return entities with what else the linker takes their words for."""
    others: dict[str, tuple[Other, ...]] = {}
    with suppress(EntityLinkingError):
        for mention in linker_of(index).link(question) if question.strip() else ():
            candidates = [Other(one.entity, one.label, one.score) for one in mention.candidates]
            for one in candidates:
                others.setdefault(one.key, tuple(other for other in candidates if other.key != one.key))
    return [NamedEntity(one.text, one.key, one.label, one.likeness, one.how, others.get(one.key, ())) for one in found]


def masked_question(metadata: Mapping[str, Any]) -> str:
    """Return the question of a Document without the words that name its entities."""
    question = metadata.get("question") or ""
    spans = [find_name(one["text"], question) for one in metadata.get("linked") or () if one["text"]]
    return mask(question, [span for span in spans if span is not None])


def named_relations(metadata: Mapping[str, Any], retriever: BaseKGRetriever | None) -> tuple[NamedRelation, ...]:
    """Return the relations of a Document's facts, the most frequent first, with the words that name them."""
    facts = [relation for _, relation, _ in metadata["triples"]]
    counts = {relation: facts.count(relation) for relation in dict.fromkeys(facts)}
    texts = {relation: text for text, relation in metadata["details"].get("relations") or () if relation}
    windows = _windows(masked_question(metadata))
    found = []
    for relation in sorted(counts, key=lambda relation: -counts[relation]):
        how = "pattern" if relation in texts else "question"
        text, likeness = texts.get(relation, ""), None
        if retriever is None:
            text = text or _shared_words(relation, windows)
        elif text:
            likeness = _cosines(retriever.index, readable(relation), [readable(text)])[0]
        elif windows:
            cosines = _cosines(retriever.index, readable(relation), windows)
            text, likeness = max(zip(windows, cosines, strict=True), key=lambda pair: round(pair[1], 6))
        found.append(NamedRelation(relation, text, likeness, how, counts[relation]))
    return tuple(found)


def _windows(question: str) -> list[str]:
    """Return the words of a question that may name a relation, alone and together, the shortest first."""
    words = [word.strip("?!.,;:\"'()") for word in question.split()]
    parts = [words[at : at + size] for size in range(1, MOST_WORDS + 1) for at in range(len(words) - size + 1)]
    telling = [part for part in parts if MASK not in part and all(part) and _tells(part)]
    return list(dict.fromkeys(" ".join(part) for part in telling))


def _tells(words: Iterable[str]) -> bool:
    return any(word not in FUNCTION_WORDS for text in words for word in words_of(text))


def _shared_words(relation: str, windows: Iterable[str]) -> str:
    """Return the first word of a question that begins as one of a relation; nothing where none does."""
    stems = {word[:STEM] for word in words_of(readable(relation)) if word not in FUNCTION_WORDS}
    return next((text for text in windows if stems & {word[:STEM] for word in words_of(text)}), "")


def _cosines(index: GraphIndex, text: str, others: Sequence[str]) -> list[float]:
    """Return the cosines between the embeddings of a text and of others."""
    direction, *rows = np.asarray(index.embed([text, *others]), np.float64)
    norms = [float(np.linalg.norm(direction) * np.linalg.norm(row)) for row in rows]
    return [float(direction @ row) / norm if norm else 0.0 for row, norm in zip(rows, norms, strict=True)]
