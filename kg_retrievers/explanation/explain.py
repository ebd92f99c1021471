"""explain: the chain from the words of a question to the answers of a Document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from langchain_core.documents import Document
from pydantic_core import to_jsonable_python

from kg_retrievers.core.documents import result_answers, tell_result
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import shown_confidence
from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.explanation.named import (
    NamedEntity,
    NamedRelation,
    named_entities,
    named_relations,
)
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.verbalize import as_data, facts_of, one_line, readable

#: Who read a question, by the `source` of a pattern or a query.
SOURCES = {
    "examples": "as the nearest example",
    "zero-shot": "by its entities and words",
    "llm": "by a language model",
}

#: How many relation paths are told.
MOST_PATHS = 3


def reading_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return how a question was read: the pattern, the relation path or the query; nothing where it was not."""
    details, lines = metadata["details"], list[str]()
    if pattern := details.get("pattern"):
        lines += [*pattern_lines(pattern), *_read(pattern.get("source"))]
    elif details.get("query"):
        lines += [as_data(line) for line in details["query"].splitlines()]
        lines += [
            as_data(f"${name} = {json.dumps(value)}") for name, value in (details.get("parameters") or {}).items()
        ]
        lines += _read(details.get("from"))
    elif path := details.get("relation_path"):
        lines.append(path_line(path))
        source = next((one.get("from") for one in _proposed(details) if one["relations"] == path), None)
        lines += _read(source)
    return [*lines, *filter(None, [tell_result(metadata)])]


def weighed_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return the numbers, the proposals and the finders that a Document names."""
    details = metadata["details"]
    lines = [
        f"{readable(name)}: {value:.3g}" if isinstance(value, float) else f"{readable(name)}: {value}"
        for name, value in details.items()
        if isinstance(value, int | float)
    ]
    path = details.get("relation_path")
    others = [one for one in _proposed(details) if one["relations"] != path]
    for one in others[:MOST_PATHS]:
        lines.append(f"Also proposed: {path_line(one['relations'])}, with the score {one['score']:.3g}.")
    for name, found in (details.get("found_by") or {}).items():
        lines.append(f"Found by {as_data(name)}, at rank {found['rank']} with the score {found['score']:.3g}.")
    read = details.get("pattern") or details
    if unplaced := read.get("unplaced"):
        lines.append(f"No relation fits {', '.join(as_data(repr(one)) for one in unplaced)}: left out of the reading.")
    if nearest := read.get("nearest"):
        named = ", ".join(as_data(readable(one)) for one in nearest)
        lines.append(f"The relations that came nearest when it was read, its entities in mind: {named}.")
    return lines


def path_line(path: Sequence[Sequence[str]]) -> str:
    """Return a relation path in words.

    Example:
        >>> path_line([["directed_by", "forward"], ["directed_by", "backward"]])
        '-> directed by ->, <- directed by <-'
    """
    arrows = {"forward": "->", "backward": "<-"}
    steps = (f"{arrows[direction]} {readable(relation)} {arrows[direction]}" for relation, direction in path)
    return as_data(", ".join(steps))


def _proposed(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(details.get("relation_paths") or ())


def _read(source: str | None) -> list[str]:
    return [f"(read {SOURCES.get(source, f'by {source}')})"] if source else []


#: The most lines of one section of the text; the data have all.
MOST_LINES = 12


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


@dataclass(frozen=True)
class Explanation:
    """Why a Document says what it says.

    Attributes:
        document: The Document.
        entities: The entities that it is about, with the words that name them.
        relations: The relations of its facts that a pattern names in words.
        reading: How the question was read: the lines of a pattern, a relation path or a query; nothing where a method
            reads none.
        weighed: What was weighed, as far as the Document says, in sentences.
        facts: The facts, in their order.
    """

    document: Document
    entities: tuple[NamedEntity, ...]
    relations: tuple[NamedRelation, ...]
    reading: tuple[str, ...]
    weighed: tuple[str, ...]
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
        explained = ("entities", "relations", "reading", "weighed", "facts")
        return {
            "question": self.question,
            **{name: self.metadata[name] for name in told},
            **{name: to_jsonable_python(getattr(self, name)) for name in explained},
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
            *_section("Relations", [one.line for one in self.relations]),
            *_section("Read as", self.reading),
            *_section("Weighed", self.weighed),
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


def explain(document: Document, retriever: BaseKGRetriever | None = None) -> Explanation:
    """Return the chain from the words of a question to what a Document says.

    Cost: without a retriever, nothing is looked up. With one, a few words are embedded.

    Args:
        document: A Document of a retriever of this package.
        retriever: The retriever that found it, to measure how like words and names are.

    Raises:
        InvalidArgumentError: If it is no such Document or retriever.

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


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a title with the first of some lines below it; nothing if there are none."""
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {more} more"] if more > 0 else [])]
    return [title, *(f"  {line}" for line in shown)] if shown else []


def shown_as_html(text: str, drawing: Drawing) -> str:
    """Return a text, escaped, above a picture that has something to show."""
    picture = drawing._repr_html_() if drawing.labels else ""
    return f'<div><pre style="white-space:pre-wrap">{escape(text)}</pre>{picture}</div>'
