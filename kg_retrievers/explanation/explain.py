"""explain: the chain from the words of a question to what a Document says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.confidence import shown_confidence
from kg_retrievers.core.results import result_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.explanation.considered import Considered, considered
from kg_retrievers.explanation.named import NamedEntity, NamedRelation, named_entities, named_relations
from kg_retrievers.explanation.readings import reading_lines, weighed_lines
from kg_retrievers.explanation.shown import shown_as_html
from kg_retrievers.explanation.wording import considered_lines, entity_line, relation_line, section
from kg_retrievers.graph.facts import facts_of
from kg_retrievers.graph.shown_text import as_data, one_line
from kg_retrievers.graph.verbalize import readable


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
        considered: What was considered besides; None without a retriever.
        facts: The facts, in their order.
    """

    document: Document
    entities: tuple[NamedEntity, ...]
    relations: tuple[NamedRelation, ...]
    reading: tuple[str, ...]
    weighed: tuple[str, ...]
    considered: Considered | None
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
            "considered": None if self.considered is None else self.considered.to_dict(),
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
            *section("Entities", [entity_line(one) for one in self.entities]),
            *section("Relations", [relation_line(one) for one in self.relations if one.is_telling]),
            *section("Read as", self.reading),
            *section("Weighed", self.weighed),
            *section("Considered", considered_lines(self.considered) if self.considered else []),
            *section("Facts", [fact.line for fact in self.facts]),
            *(["A limit was reached: there may be more."] if metadata["truncated"] else []),
        ]
        return "\n".join([*lines, *(section("Answers", self.answers) or ["It proposes no answers."])])

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
        retriever: The retriever that found it, for what it considered besides.
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
          'her' names 'Her' but for case or signs (0.90)
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
        None if retriever is None else considered(document, retriever, inputs),
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
