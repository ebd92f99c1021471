"""The entities that a question is about, given or found, and the question without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph, Known
from kg_retrievers.index.connected_graph import PartRequest
from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.linking import EntityLinker

#: Replaces an entity in a question whose entities are masked.
MASK = "_"

#: The answers of how many questions are looked up in a connected graph, to say what is wrong with them.
LOOKED_UP = 100


@dataclass(frozen=True)
class QuestionEntity:
    """An entity that the question names, or several candidates with the same name.

    Attributes:
        start: The position of its first character in the question.
        end: The position after its last; both are the question's length where it is not named.
        name: What the question calls it; the label of a given one.
        entities: The keys of what it may be, best first.
        best: How many of the first candidates are tied.
        given: Whether the caller named it by key.
        short: Whether the question shortens its name.
    """

    start: int
    end: int
    name: str
    entities: tuple[str, ...]
    best: int
    given: bool
    short: bool = False

    @property
    def term(self) -> Known:
        """The node that represents it in a pattern: the given or shortened entity, else anything with the name."""
        only = (self.given or self.short) and len(self.entities) == 1  # of several, any may be meant
        return Known(self.name, entity=self.entities[0] if only else None)


def question_entities(linker: EntityLinker, question: str, given: Sequence[str] = ()) -> list[QuestionEntity]:
    """Return the entities that a question is about, the likeliest first: those given, else those found in it.

    Raises:
        InvalidArgumentError: If the question is empty.
        EntityLinkingError: If none is given and none is found, unless the linker returns an empty list then.
    """
    if not given:
        found = []
        for mention in sorted(linker.link(question), key=lambda mention: mention.rank):
            scores = [candidate.score for candidate in mention.candidates]
            keys = tuple(candidate.entity for candidate in mention.candidates)
            best, short = scores.count(scores[0]), mention.candidates[0].how == "short"
            found.append(QuestionEntity(mention.start, mention.end, mention.text, keys, best, False, short))
        return found
    return _given_entities(linker, question, given)


def _given_entities(linker: EntityLinker, question: str, given: Sequence[str]) -> list[QuestionEntity]:
    graph = linker.index.holding(given).graph
    alike: dict[str, list[str]] = {}
    for key in dict.fromkeys(given):
        alike.setdefault(graph.label(key), []).append(key)
    entities = []
    for label, group in alike.items():
        names = (label, *(name for key in group for name in (key, *graph.aliases(key))))
        spans = [span for name in names if (span := find_name(name, question))]
        start, end = spans[0] if spans else _linked_span(linker, question, group)
        entities.append(QuestionEntity(start, end, label, tuple(group), len(group), True))
    return entities


def _linked_span(linker: EntityLinker, question: str, keys: Sequence[str]) -> tuple[int, int]:
    """Return where a question names one of some entities in other letters or in short; its end where it does not."""
    mentions = []
    with suppress(EntityLinkingError):
        mentions = linker.link(question) if question.strip() else []
    for mention in sorted(mentions, key=lambda mention: mention.rank):
        if any(candidate.entity in keys for candidate in mention.candidates):
            return mention.start, mention.end
    return len(question), len(question)


def link_question(linker: EntityLinker, question: str, given: Sequence[str] = ()) -> tuple[list[str], str]:
    """Return the keys of all that a question may be about, the likeliest first, and the question without their names.

    Raises:
        InvalidArgumentError: If the question is empty.
        EntityLinkingError: As `question_entities`.
    """
    entities = question_entities(linker, question, given)
    keys = dict.fromkeys(key for entity in entities for key in entity.entities[: entity.best])
    return list(keys), mask(question, [(entity.start, entity.end) for entity in entities])


def tell_unknown_answer(index: GraphIndex, questions: Sequence[Question]) -> str:
    """Return what `describe_unknown_answer` says of the graph of an index; of a connected one by few queries."""
    asked = questions[:LOOKED_UP] if index.is_connected else questions
    answers = tuple(sorted({key for one in asked for key in one.answers}))
    return describe_unknown_answer(index.part(PartRequest(answers, names=answers)).graph, asked)


def describe_unknown_answer(graph: KnowledgeGraph, questions: Iterable[Question]) -> str:
    """Return a sentence, after a blank, about an answer that is no key of the graph; nothing where all are keys.

    It prefers an answer that is the name of an entity, and then says which key to write instead.
    """
    unknown = [(key, one.text) for one in questions for key in one.answers if key not in graph.entities]
    if not unknown:
        return ""
    key, question = min(unknown, key=lambda pair: not graph.entities_named(pair[0]))
    keys = " or ".join(map(repr, graph.entities_named(key)[:3]))
    problem = f"a name of {keys}: write the key" if keys else "no key of the graph"
    return f" {key!r:.100}, an answer to {question!r:.200}, is {problem}."


def mask(question: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace parts of a question by `MASK`, overlapping ones by a single one, and squeeze blanks.

    Example:
        >>> mask("who directed Her ?", [(13, 16)])
        'who directed _ ?'
    """
    parts, at = list[str](), 0
    for start, end in sorted(spans):
        if at <= start < end:
            parts += [question[at:start], MASK]
        at = max(at, end) if start < end else at
    return " ".join("".join([*parts, question[at:]]).split())


def find_name(name: str, text: str) -> tuple[int, int] | None:
    """Return the span of a name that occurs as whole words in a text, in any case; None where it does not occur."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found.span() if found else None
