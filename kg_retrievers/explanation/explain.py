"""explain: the chain from the words of a question to the answers of a Document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from langchain_core.documents import Document
from pydantic_core import to_jsonable_python

from kg_retrievers.core.documents import result_answers, tell_reader, tell_result
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import shown_confidence
from kg_retrievers.drawing import Drawing, draw
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, named_arguments
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.verbalize import as_data, facts_of, one_line, readable, words_of_documents
from kg_retrievers.index import GraphIndex, LinkedEntity, linker_of

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
class NamedEntity:
    """An entity that evidence is about.

    Attributes:
        text: The words of the question that name it, or the name that a pattern or a caller gives it.
        key: Its key.
        label: Its label.
        likeness: How like its name the words are, in (0, 1]. None if they do not name it by themselves.
        how: See `kg_retrievers.core.documents.Linked`.
        others: The other entities that the words may mean, each with its likeness, best first. Empty without a
            retriever.
    """

    text: str
    key: str
    label: str
    likeness: float | None
    how: str
    others: tuple[LinkedEntity, ...] = ()

    @property
    def line(self) -> str:
        """The words that name the entity, and the other entities that they may mean."""
        text, label = one_line(self.text), one_line(self.label)
        key = "" if self.key == self.label else f" [{one_line(self.key)}]"
        likeness = "" if self.likeness is None else f" ({self.likeness:.2f})"
        if self.how == "given":
            line = f"{label!r}{key} is given; the question does not name it"
        else:
            line = f"{text!r} names {label!r}{key} {HOW.get(self.how, self.how)}{likeness}"
        others = [f"{one_line(one.label)!r} [{one_line(one.entity)}] ({one.score:.2f})" for one in self.others[:3]]
        return f"{line}; or {', '.join(others)}" if others else line


def named_entities(metadata: Mapping[str, Any], retriever: BaseKGRetriever | None) -> tuple[NamedEntity, ...]:
    """Return the entities that a Document is about, with the words that name them."""
    labels = metadata["labels"]
    names = {key: name for name, key in metadata["details"].get("entities") or ()}
    linked = {one["key"]: one for one in metadata.get("linked") or ()}
    others = _others(metadata.get("question") or "", retriever.index) if retriever else {}
    found = []
    for key, name in names.items():
        one = linked.get(key) or {"text": name, "likeness": None, "how": "given"}
        label = labels.get(key) or name
        if retriever is not None and key in retriever.graph.entities:
            label = retriever.graph.label(key)
        found.append(NamedEntity(one["text"], key, label, one["likeness"], one["how"], others.get(key, ())))
    return tuple(found)


def _others(question: str, index: GraphIndex) -> dict[str, tuple[LinkedEntity, ...]]:
    """Return for each entity that the linker finds in a question the other entities that its words may mean."""
    others: dict[str, tuple[LinkedEntity, ...]] = {}
    with suppress(EntityLinkingError):
        for mention in linker_of(index).link(question) if question.strip() else ():
            for one in mention.candidates:
                others.setdefault(one.entity, tuple(other for other in mention.candidates if other is not one))
    return others


def relation_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return the relations of a Document's facts that a pattern names, with the words of the pattern."""
    texts = {relation: text for text, relation in metadata["details"].get("relations") or () if relation}
    lines = []
    for relation in dict.fromkeys(relation for _, relation, _ in metadata["triples"] if relation in texts):
        name, text = as_data(readable(relation)), texts[relation]
        named = readable(text) == readable(relation)
        lines.append(
            f"{name!r}, as the pattern says" if named else f"{one_line(text)!r} of the pattern stands for {name!r}"
        )
    return lines


def reading_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return how a question was read: the pattern, the relation path or the query. Empty if it was not read."""
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
        proposed = details.get("relation_paths") or ()
        source = next((one.get("from") for one in proposed if one["relations"] == path), None)
        lines += _read(source)
    return [*lines, *filter(None, [tell_result(metadata)])]


def weighed_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return the numbers and the relations that a Document names."""
    details = metadata["details"]
    lines = [
        f"{readable(name)}: {value:.3g}" if isinstance(value, float) else f"{readable(name)}: {value}"
        for name, value in details.items()
        if isinstance(value, int | float)
    ]
    if why := details.get("why"):
        lines.append(as_data(why))
    read = details.get("pattern") or details
    if unplaced := read.get("unplaced"):
        lines.append(f"No relation fits {', '.join(as_data(repr(one)) for one in unplaced)}: left out of the reading.")
    if nearest := read.get("nearest"):
        named = ", ".join(as_data(readable(one)) for one in nearest)
        lines.append(f"The relations that came nearest when it was read, its entities in mind: {named}.")
    return lines


def _found(part: str) -> str:
    """Return how a part of `KGRetriever` found a fact, in words."""
    name, _, position = part.partition(" ")
    words = {
        "reading": f"in reading {position} of the question",
        "model": "by the trained model",
        "around": "near an entity of the question",
        "text": "its text is near to the question",
    }
    return words.get(name, as_data(part))


def path_line(path: Sequence[Sequence[str]]) -> str:
    """Return a relation path in words.

    Example:
        >>> path_line([["directed_by", "forward"], ["directed_by", "backward"]])
        '-> directed by ->, <- directed by <-'
    """
    arrows = {"forward": "->", "backward": "<-"}
    steps = (f"{arrows[direction]} {readable(relation)} {arrows[direction]}" for relation, direction in path)
    return as_data(", ".join(steps))


def _read(source: str | None) -> list[str]:
    return [f"({tell_reader(source)})"] if source else []


#: The most lines of one section of the text. The data have all.
MOST_LINES = 12


@dataclass(frozen=True)
class CitedFact:
    """A fact of the evidence.

    Attributes:
        number: Its number, from 1. A chain that is given this Document alone shows it under this number.
        triple: Head, relation and tail by entity key.
        text: The fact in words.
        sources: Its sources. Empty if the graph does not say.
        part: The part of `KGRetriever` that found it, as `details["parts"]` names it. Empty for other methods.
    """

    number: int
    triple: tuple[str, str, str]
    text: str
    sources: tuple[str, ...]
    part: str = ""

    @property
    def line(self) -> str:
        """The fact with its number, how it was found, and its sources."""
        found = f" ({_found(self.part)})" if self.part else ""
        sources = f" (from {'; '.join(map(one_line, self.sources))})" if self.sources else ""
        return f"[{self.number}] {self.text}{found}{sources}"


@dataclass(frozen=True)
class Explanation:
    """The explanation of a Document.

    Attributes:
        document: The Document.
        entities: The entities that it is about, with the words that name them.
        relations: The relations of its facts that a pattern names in words.
        reading: How the question was read: the lines of a pattern, a relation path or a query. Empty if a method reads
            none.
        weighed: The weights and scores that mattered, as far as the Document says, in sentences.
        facts: The facts, in their order.
    """

    document: Document
    entities: tuple[NamedEntity, ...]
    relations: tuple[str, ...]
    reading: tuple[str, ...]
    weighed: tuple[str, ...]
    facts: tuple[CitedFact, ...]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the Document."""
        return self.document.metadata

    @property
    def question(self) -> str:
        """The question, or an empty text if the Document does not say it."""
        return str(self.metadata.get("question") or "")

    @property
    def answers(self) -> list[str]:
        """The answers in words: labels of entities, or the result of an operation."""
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
        limit = metadata["details"].get("limit", "A limit")
        lines = [
            *([f"Question: {one_line(self.question)}"] if self.question else []),
            f"Found by {metadata['retriever']}: {place}",
            *_section("Entities", [one.line for one in self.entities]),
            *_section("Relations", self.relations),
            *_section("Read as", self.reading),
            *_section("Weighed", self.weighed),
            *_section("Facts", [fact.line for fact in self.facts]),
            *([f"{limit} was reached: there may be more."] if metadata["truncated"] else []),
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


@named_arguments
def explain(document: Document, retriever: BaseKGRetriever | None = None) -> Explanation:
    """Return the chain from the words of a question to a Document's content.

    Cost: without a retriever, nothing is looked up. With one, the question's entities are linked again.

    Args:
        document: A Document of a retriever of this package.
        retriever: The retriever that found it, to find the other entities that the words of the question may mean.

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
    call = "explain(retriever.invoke(question)[0], retriever)"
    if not isinstance(document, Document) or "details" not in document.metadata:
        message = f"explain: wanted a Document of a retriever, but got {document!r:.200}."
        raise InvalidArgumentError(message, hint_python=f"Call {call}.")
    if retriever is not None:
        check_retriever(retriever, "explain", call=call)
    metadata = document.metadata
    return Explanation(
        document,
        named_entities(metadata, retriever),
        tuple(relation_lines(metadata)),
        tuple(reading_lines(metadata)),
        tuple(weighed_lines(metadata)),
        _cited(document),
    )


def _cited(document: Document) -> tuple[CitedFact, ...]:
    triples, labels = facts_of(document, "explain")
    said = words_of_documents([document])
    sources = document.metadata.get("sources") or [[]] * len(triples)
    parts = document.metadata["details"].get("parts") or [""] * len(triples)
    texts = [as_data(f"{labels[one.head]} -> {said(one)} -> {labels[one.tail]}") for one in triples]
    rows = zip(triples, texts, map(tuple, sources), parts, strict=True)
    return tuple(CitedFact(number, *row) for number, row in enumerate(rows, 1))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a title with the first of some lines below it, or nothing if there are none."""
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {more} more"] if more > 0 else [])]
    return [title, *(f"  {line}" for line in shown)] if shown else []


def shown_as_html(text: str, drawing: Drawing) -> str:
    """Return a text, escaped, above a picture that has something to show."""
    picture = drawing._repr_html_() if drawing.labels else ""
    return f'<div><pre style="white-space:pre-wrap">{escape(text)}</pre>{picture}</div>'
