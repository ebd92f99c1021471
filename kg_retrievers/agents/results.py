"""Define the answers of tools and services.

Results are typed, JSON-safe, and short enough for a model to read or a page to show. Each has a text for a model.

A key is as the graph has it, unless it holds characters that `as_data` changes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from kg_retrievers.core.facts_prompt import TOOL_MESSAGE
from kg_retrievers.core.stages import shown_confidence
from kg_retrievers.graph.verbalize import as_data, readable

#: The most characters of a text of a result.
LONGEST = 2_000


def shorten(text: str, length: int = LONGEST) -> str:
    """Return a text, or its beginning if it is longer.

    Example:
        >>> shorten("abcdefgh", 4)
        'abcd ...'
    """
    return text if len(text) <= length else f"{text[:length]} ..."


def shown(text: str) -> str:
    """Return a text of a graph, a model or a user for a result.

    The text is data, and not too long.
    """
    return as_data(shorten(text))


#: A text that becomes `shown`.
Text = Annotated[str, AfterValidator(shown)]

#: The result of a question's operation: a number, a date, a text, whether something holds, or several of these.
Scalar = bool | int | float | Text


class Part(BaseModel):
    """A part of a result, without further fields."""

    model_config = ConfigDict(extra="forbid")


class Table(Part):
    """A table, as of "how many ports per country".

    Attributes:
        columns: The names of the columns.
        rows: A cell for each column.
        left_out: How many further rows there are.
    """

    columns: list[Text]
    rows: list[list[Scalar | list[Scalar]]]
    left_out: int = 0


Value = Scalar | list[Scalar] | Table


class Named(Part):
    """An entity, or an answer that is none.

    Attributes:
        key: The key of the entity. Absent for an answer that is no entity of the graph.
        label: Its name.
    """

    key: Text | None = None
    label: Text


class Fact(Part):
    """A fact of the graph.

    Attributes:
        triple: Head, relation and tail, in stored direction, by entity key.
        text: The fact in words.
        sources: The origins of the fact, if the graph records them.
        attributes: Its attributes, such as a role or a time, in words.
    """

    triple: tuple[Text, Text, Text]
    text: Text
    sources: list[Text] | None = None
    attributes: Text | None = None


class CitedFact(Fact):
    """A fact that an answer rests on.

    The answer cites it by its `number`, from 1.
    """

    number: int


#: Gives the text before a fact, such as "[3] ".
Mark = Callable[[Fact], str]


def _own_number(fact: Fact) -> str:
    return f"[{fact.number}] " if isinstance(fact, CitedFact) else ""


def _facts(facts: Iterable[Fact], mark: Mark) -> Iterable[str]:
    for fact in facts:
        sources = f" (from {'; '.join(fact.sources)})" if fact.sources else ""
        yield f"{mark(fact)}{fact.text}{sources}"


def _counted(facts: int) -> str:
    return f"{facts:,} {'fact' if facts == 1 else 'facts'}"


def _row(cells: Iterable[Any]) -> str:
    def said(cell: Any) -> str:
        return "" if cell is None else "; ".join(map(said, cell)) if isinstance(cell, list) else str(cell)

    return " | ".join(map(said, cells))


class Refusal(Part):
    """Why a question is not answered.

    Attributes:
        reason: The words that were not understood or not found, and the nearest matches.
        next_step: The next action to take.
    """

    reason: Text
    next_step: Text


class Result(Part):
    """The base of all answers of tools and services.

    Attributes:
        further: How an agent sees the items that were left out.
        left_out: How many items of lists were left out, so that the answer is short enough.
        truncated: Whether a limit ended the search, so that there may be more.
    """

    further: ClassVar[str] = "Ask for less at once."

    left_out: int = 0
    truncated: bool = False

    def go_on(self) -> str:
        """Return how an agent sees the items that were left out."""
        return self.further

    @abstractmethod
    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""

    def in_words(self, mark: Mark = _own_number) -> str:
        """Return it as a text for a model.

        Everything that comes from the graph stands in the frame of `TOOL_MESSAGE`.
        """
        lines = [*self.lines(mark)]
        if self.truncated:
            lines.append("(A limit ended the search; there may be more.)")
        if self.left_out:
            lines.append(f"({self.left_out:,} more left out. {self.go_on()})")
        return TOOL_MESSAGE.format(evidence="\n".join(lines))


class Answer(Result):
    """An answer, or why there is none.

    Attributes:
        answer: The answer in one text. If there is none, this says so.
        answers: The answers one by one.
        citations: The facts that the answer rests on.
        explanation: How the facts answer the question.
        supported: Whether each answer stands in a cited fact. Absent if not known.
        confidence: How likely the answers are right, from 0 to 1. Absent if not known.
        value: The result of an operation, such as a count. Absent without an operation.
        refusal: Why there is no answer, and the next step.
    """

    further = "Ask about fewer things, or call facts for all facts of one entity and relation."

    answer: Text
    answers: list[Named] = []
    citations: list[CitedFact] = []
    explanation: Text = ""
    supported: bool | None = None
    confidence: float | None = None
    value: Value | None = None
    refusal: Refusal | None = None

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        yield f"Answer: {self.answer}"
        if self.refusal is not None:
            yield f"Why: {self.refusal.reason}"
            yield f"Next step: {self.refusal.next_step}"
        if isinstance(self.value, Table):
            yield " | ".join(self.value.columns)
            yield from (_row(row) for row in self.value.rows)
        if self.confidence is not None:
            yield f"Confidence: {shown_confidence(self.confidence)}"
        if self.supported is False:
            yield "Not supported: the cited facts do not name the answer."
        yield from _facts(self.citations, mark)


class FoundEntity(Named):
    """An entity that a text may mean.

    Attributes:
        types: Its types.
        aliases: Its further names.
        facts: How many facts it has. Absent if a database holds them.
    """

    types: list[Text] = []
    aliases: list[Text] = []
    facts: int | None = None

    def line(self) -> str:
        """Return its line for a model."""
        said = [self.label]
        said += [f"key {self.key}"] if self.key != self.label else []
        said += [", ".join(self.types)] if self.types else []
        said += [f"also called {'; '.join(self.aliases)}"] if self.aliases else []
        said += [_counted(self.facts)] if self.facts is not None else []
        return " | ".join(said)


class FoundEntities(Result):
    """The entities that a text may mean.

    Attributes:
        asked: The text.
        entities: The entities that it names, perhaps misspelt or in part, the likeliest first.
        nearest: The entities with the nearest names that it does not name.
    """

    further = "Call search_entities with more of the name, with a type, or with a greater limit."

    asked: Text = ""
    entities: list[FoundEntity] = []
    nearest: list[FoundEntity] = []

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        if not self.entities:
            yield f"Nothing is named {self.asked!r}. Try other words, or relations_of for the types of the graph."
        yield from map(FoundEntity.line, self.entities)
        if self.nearest:
            yield "Nearest other names:" if self.entities else "The nearest names:"
            yield from map(FoundEntity.line, self.nearest)


class Chain(Part):
    """Facts that join entities, from the first entity to the last."""

    facts: list[Fact]


class FoundPaths(Result):
    """How entities are joined, by the shortest chains first."""

    further = "Call find_paths about two entities, or with a smaller max_hops."

    chains: list[Chain] = []

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        for number, chain in enumerate(self.chains, 1):
            yield f"Chain {number}:"
            yield from _facts(chain.facts, mark)


class QueryRows(Result):
    """The rows that a query of a database gives, and the facts in them."""

    further = "Write the query so that it counts, sorts or limits in the database, and call run_query again."

    columns: list[Text]
    rows: list[list[Value | None]]
    facts: list[Fact] = []

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        yield " | ".join(self.columns)
        yield from map(_row, self.rows)
        yield from _facts(self.facts, mark)


class Counted(Part):
    """A name, and how often it occurs."""

    name: Text
    count: int


class RelationSummary(Part):
    """The facts, types and range of one relation.

    Attributes:
        relation: Its name.
        facts: The number of its facts.
        head_types: The types of its heads.
        tail_types: The types of its tails.
        least: The least of its tails, if they are numbers or dates.
        greatest: The greatest of them.
    """

    relation: Text
    facts: int
    head_types: list[Text] = []
    tail_types: list[Text] = []
    least: Text | None = None
    greatest: Text | None = None


class SchemaSummary(Result):
    """The contents of a graph.

    Attributes:
        entities: The number of entities. Absent if a database holds the graph.
        facts: The number of facts. Absent if a database does not count them.
        relation_count: The number of relations.
        type_count: The number of types.
        relations: The relations, most facts first.
        types: The types of entities, the most frequent first.
        sources: The origins of the facts.
        attributes: The attributes of facts.
        methods: The methods that questions can be asked by.
    """

    further = "Call relations_of with words that describe the relation or type."

    entities: int | None = None
    facts: int | None = None
    relation_count: int
    type_count: int
    relations: list[RelationSummary] = []
    types: list[Counted] = []
    sources: list[Counted] = []
    attributes: list[Counted] = []
    methods: list[Text] = []

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        entities = "" if self.entities is None else f"{self.entities:,} entities, "
        facts = "" if self.facts is None else f"{self.facts:,} facts, "
        yield f"{entities}{facts}{self.relation_count:,} relations, {self.type_count:,} types"
        for relation in self.relations:
            ends = f"{' or '.join(relation.head_types) or '?'} -> {' or '.join(relation.tail_types) or '?'}"
            values = "" if relation.least is None else f", {relation.least} to {relation.greatest}"
            yield f"{relation.relation}: {ends}{values} ({relation.facts:,})"
        if self.types:
            yield f"Types: {'; '.join(f'{kind.name} ({kind.count:,})' for kind in self.types)}"


class RelationCount(Part):
    """How many facts of a relation an entity has.

    Attributes:
        relation: Its name.
        outgoing: Facts with the entity as the head.
        incoming: Facts with the entity as the tail.
    """

    relation: Text
    outgoing: int
    incoming: int


class NeighborFact(Fact):
    """A fact of an entity.

    `other` is the name of the entity at the other end.
    """

    other: Text


class Neighbors(Result):
    """The facts around an entity.

    Attributes:
        entity: The entity.
        types: Its types.
        aliases: Its further names.
        total: How many facts it has. With a relation given, how many of this relation.
        facts: Some of each relation.
        relations: How many facts it has of each relation.
        start: How many facts come before these. Absent if some are chosen.
    """

    further = "Call facts with this entity, and with a relation, for all of its facts."

    entity: Named
    types: list[Text] = []
    aliases: list[Text] = []
    total: int
    facts: list[NeighborFact] = []
    relations: list[RelationCount] = []
    start: int | None = None

    def go_on(self) -> str:
        """Return how an agent sees the items that were left out."""
        return self.further if self.start is None else f"Call facts again with start={self.start + len(self.facts)}."

    def lines(self, mark: Mark) -> Iterable[str]:
        """Yield its lines for a model."""
        yield f"{self.entity.label}: {_counted(self.total)}"
        if self.types:
            yield f"Types: {'; '.join(self.types)}"
        if self.aliases:
            yield f"Also called: {'; '.join(self.aliases)}"
        yield from _facts(self.facts, mark)
        counts = (f"{readable(one.relation)} ({one.outgoing + one.incoming:,})" for one in self.relations)
        yield f"All relations: {'; '.join(counts)}"
