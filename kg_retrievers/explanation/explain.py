"""explain: the chain from the words of a question to the answers of a Document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.confidence import shown_confidence
from kg_retrievers.core.results import result_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K
from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.errors import InvalidArgumentError, RefusalError
from kg_retrievers.explanation.named import (
    NamedEntity,
    NamedRelation,
    Other,
    named_entities,
    named_relations,
    nearest_relations,
)
from kg_retrievers.explanation.readings import reading_lines, weighed_lines
from kg_retrievers.graph.verbalize import as_data, facts_of, one_line, readable

#: How many of the next Documents an explanation names.
NEXT = 3

#: The most lines of one section of the text; the data have all.
MOST_LINES = 12


@dataclass(frozen=True)
class NextDocument:
    """A Document that comes after the one explained.

    Attributes:
        rank: Its rank.
        score: Its score.
        shown: Its answers, or its first fact if it proposes none.
        is_returned: Whether it is among the first `k`.
    """

    rank: int
    score: float
    shown: str
    is_returned: bool


@dataclass(frozen=True)
class Alternatives:
    """What else the retriever might have taken.

    Attributes:
        relations: The relations of the graph nearest to the question without its entities, with their cosines.
        after: The Documents that come next.
        note: Why the next Documents are not known.
    """

    relations: tuple[Other, ...]
    after: tuple[NextDocument, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return {**asdict(self), "relations": [*map(asdict, self.relations)], "after": [*map(asdict, self.after)]}


@dataclass(frozen=True)
class CitedFact:
    """A fact of the evidence.

    Attributes:
        number: Its number, from 1; under it a chain shows it that is given this Document alone.
        triple: Head, relation and tail by entity key.
        text: The fact in words.
        sources: Where it is from; nothing where the graph does not say.
    """

    number: int
    triple: tuple[str, str, str]
    text: str
    sources: tuple[str, ...]

    @property
    def line(self) -> str:
        """The fact behind its number, and where it is from."""
        sources = f" (from {'; '.join(map(one_line, self.sources))})" if self.sources else ""
        return f"[{self.number}] {self.text}{sources}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return {**vars(self), "triple": list(self.triple), "sources": list(self.sources)}


@dataclass(frozen=True)
class Explanation:
    """Why a Document says what it says.

    Attributes:
        document: The Document.
        entities: The entities that it is about, with the words that name them.
        relations: The relations of its facts, with the words that name them.
        reading: How the question was read: the lines of a pattern, a relation path or a query; nothing where a method
            reads none.
        weighed: What was weighed, as far as the Document says, in sentences.
        alternatives: What else might have been taken; None without a retriever.
        facts: The facts, in their order.
    """

    document: Document
    entities: tuple[NamedEntity, ...]
    relations: tuple[NamedRelation, ...]
    reading: tuple[str, ...]
    weighed: tuple[str, ...]
    alternatives: Alternatives | None
    facts: tuple[CitedFact, ...]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the Document."""
        return self.document.metadata

    @property
    def question(self) -> str:
        """The question; empty where the Document does not say it."""
        return str(self.metadata.get("question") or "")

    @property
    def answers(self) -> list[str]:
        """The answers in words: labels of entities, or what an operation gave."""
        return result_answers(self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        told = ("retriever", "rank", "score", "confidence", "truncated", "value")
        return {
            "question": self.question,
            **{name: self.metadata[name] for name in told},
            "entities": [one.to_dict() for one in self.entities],
            "relations": [one.to_dict() for one in self.relations],
            "reading": list(self.reading),
            "weighed": list(self.weighed),
            "alternatives": None if self.alternatives is None else self.alternatives.to_dict(),
            "facts": [one.to_dict() for one in self.facts],
            "answers": [{"key": key, "label": self.metadata["labels"][key]} for key in self.metadata["answers"]],
        }

    @property
    def text(self) -> str:
        """Plain lines, from the words of the question to the answers."""
        metadata, confidence = self.metadata, self.metadata["confidence"]
        sure = "" if confidence is None else f", confidence {shown_confidence(confidence)}"
        place = f"Document {metadata['rank']}, score {metadata['score']:.3f}{sure}"
        lines = [
            *([f"Question: {one_line(self.question)}"] if self.question else []),
            f"Found by {metadata['retriever']}: {place}",
            *_section("Entities", [one.line for one in self.entities]),
            *_section("Relations", [one.line for one in self.relations if one.is_telling]),
            *_section("Read as", self.reading),
            *_section("Weighed", self.weighed),
            *_section("Alternatives", _alternative_lines(self.alternatives) if self.alternatives else []),
            *_section("Facts", [fact.line for fact in self.facts]),
            *(["A limit was reached: there may be more."] if metadata["truncated"] else []),
        ]
        return "\n".join([*lines, *(_section("Answers", self.answers) or ["It proposes no answers."])])

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def draw(self) -> Drawing:
        """Return a picture of the facts, with the entities of the question and the answers marked."""
        return draw(self.document)

    def _repr_html_(self) -> str:
        return shown_as_html(self.text, self.draw())


def explain(document: Document, retriever: BaseKGRetriever | None = None, **inputs: Any) -> Explanation:
    """Return the chain from the words of a question to what a Document says.

    Cost: without a retriever, nothing is looked up. With one, its question is asked again for the Documents that come
    next, unless a stage calls a language model; and a few words are embedded.

    Args:
        document: A Document of a retriever of this package.
        retriever: The retriever that found it, for likeness and alternatives.
        **inputs: Further arguments of `invoke`, as they were given when it was found.

    Raises:
        InvalidArgumentError: If it is no such Document or retriever, or as `invoke`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> print(explain(retriever.invoke("What of her?", seed_entities=["Her"])[0]))
        Question: What of her?
        Found by NeighborhoodRetriever: Document 1, score 1.000
        Entities
          'her' names 'Her' except for case or signs (0.90)
        Facts
          [1] Her -> directed by -> Spike Jonze
        It proposes no answers.
    """
    if not isinstance(document, Document) or "details" not in document.metadata:
        raise InvalidArgumentError(f"explain: wanted a Document of a retriever, but got {document!r:.200}.")
    if not isinstance(retriever, BaseKGRetriever | None):
        raise InvalidArgumentError(f"explain: wanted a retriever of this package, but got {retriever!r:.200}.")
    metadata = document.metadata
    return Explanation(
        document,
        named_entities(metadata, retriever),
        named_relations(metadata, retriever),
        tuple(reading_lines(metadata)),
        tuple(weighed_lines(metadata)),
        None if retriever is None else _alternatives(document, retriever, inputs),
        _cited(document),
    )


def _cited(document: Document) -> tuple[CitedFact, ...]:
    triples, labels = facts_of(document, "explain")
    sources = document.metadata.get("sources") or [[]] * len(triples)
    return tuple(
        CitedFact(
            number,
            triple,
            as_data(f"{labels[triple.head]} -> {readable(triple.relation)} -> {labels[triple.tail]}"),
            tuple(of_fact),
        )
        for number, (triple, of_fact) in enumerate(zip(triples, sources, strict=True), 1)
    )


def _alternatives(document: Document, retriever: BaseKGRetriever, inputs: Mapping[str, Any]) -> Alternatives:
    """Return the nearest relations and, by asking again, the Documents that come next."""
    metadata = document.metadata
    relations, question = nearest_relations(metadata, retriever), metadata.get("question") or ""
    if not question.strip():
        return Alternatives(relations, (), "The Document does not say what was asked.")
    if any(stage.calls_model for stage in retriever.stages):
        return Alternatives(relations, (), "The language model is not asked again: the next Documents are not known.")
    given = dict(inputs)
    seeds = [one["key"] for one in metadata["linked"] if one["how"] == "given"]
    if seeds and not set(given) - {"k", "min_confidence"}:
        given["seed_entities"] = [one["key"] for one in metadata["linked"]]
    k = given.get("k", retriever.k)
    wanted = min(max(k, metadata["rank"]) + NEXT, MAX_K)
    try:
        found = retriever.invoke(question, **{**given, "k": wanted, "min_confidence": 0.0, "on_refusal": "raise"})
    except RefusalError:
        found = []
    place = next((place for place, one in enumerate(found) if one.id == document.id), None)
    if place is None:
        note = "Asked again, the retriever finds something else. Give the arguments that it was asked with."
        return Alternatives(relations, (), note)
    return Alternatives(relations, tuple(_next(one, k) for one in found[place + 1 : place + 1 + NEXT]))


def _next(document: Document, k: int) -> NextDocument:
    metadata = document.metadata
    shown = "; ".join(result_answers(metadata)[:NEXT])
    if not shown and metadata["triples"]:
        head, relation, tail = metadata["triples"][0]
        shown = f"{metadata['labels'][head]} -> {readable(relation)} -> {metadata['labels'][tail]}"
    return NextDocument(metadata["rank"], metadata["score"], one_line(shown), metadata["rank"] <= k)


def _alternative_lines(found: Alternatives) -> list[str]:
    lines = list[str]()
    if found.relations:
        nearest = ", ".join(f"{as_data(one.label)!r} ({one.likeness:.2f})" for one in found.relations)
        lines.append(f"the relations nearest to the words of the question alone: {nearest}")
    for one in found.after:
        beyond = "" if one.is_returned else ", beyond k"
        lines.append(f"next: Document {one.rank}, score {one.score:.3f}{beyond}: {one.shown}")
    return lines if found.after else [*lines, found.note or "nothing comes next"]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a title with the first of some lines below it; nothing if there are none."""
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {more} more"] if more > 0 else [])]
    return [title, *(f"  {line}" for line in shown)] if shown else []


def shown_as_html(text: str, drawing: Drawing) -> str:
    """Return a text, escaped, above a picture that has something to show."""
    picture = drawing._repr_html_() if drawing.labels else ""
    return f'<div><pre style="white-space:pre-wrap">{escape(text)}</pre>{picture}</div>'
