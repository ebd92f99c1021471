"""What tools and services answer with: typed, JSON-safe, and short enough to be read by a model or shown on a page.

A key is as the graph has it, unless it holds what `as_data` changes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kg_retrievers.graph.verbalize import as_data

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
    """Return a text of a graph, a model or a user as results hold it: as data, and not too long."""
    return as_data(shorten(text))


#: A text that becomes `shown`.
Text = Annotated[str, AfterValidator(shown)]

#: What an operation of a question gives: a number, a date or a text, whether something holds, or several of these.
Scalar = bool | int | float | Text


class Part(BaseModel):
    """A part of a result; it has no further fields."""

    model_config = ConfigDict(extra="forbid")


class Table(Part):
    """A table, as of "how many ports per country"."""

    columns: list[Text]
    rows: list[list[Scalar | list[Scalar]]] = Field(description="A cell for each column.")
    left_out: int = Field(default=0, description="How many further rows there are.")


Value = Scalar | list[Scalar] | Table


class Named(Part):
    """An entity, or an answer that is none."""

    key: Text | None = Field(
        default=None, description="The key of the entity; absent for an answer that is no entity of the graph."
    )
    label: Text = Field(description="What it is called.")


class Fact(Part):
    """A fact of the graph."""

    triple: tuple[Text, Text, Text] = Field(description="Head, relation and tail, in stored direction, by entity key.")
    text: Text = Field(description="The fact in words.")
    sources: list[Text] | None = Field(default=None, description="Where it is from, if the graph says so.")
    attributes: Text | None = Field(default=None, description="Its attributes, such as a role or a time, in words.")


class CitedFact(Fact):
    """A fact that an answer rests on."""

    number: int = Field(description="The number by which the answer cites it, from 1.")


class Refusal(Part):
    """Why a question is not answered."""

    reason: Text = Field(description="What was not understood or not found, and what came nearest.")
    next_step: Text = Field(description="What to do next.")


class Result(Part):
    """What every tool and service answers with."""

    left_out: int = Field(
        default=0, description="How many items of lists were left out, so that the answer is short enough."
    )
    truncated: bool = Field(default=False, description="Whether a limit ended the search, so that there may be more.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Ask for less at once."


class Answer(Result):
    """An answer, or why there is none."""

    answer: Text = Field(description="The answer in one text; if there is none, this says so.")
    answers: list[Named] = Field(default_factory=list, description="The answers one by one.")
    citations: list[CitedFact] = Field(default_factory=list, description="The facts that the answer rests on.")
    explanation: Text = Field(default="", description="How the facts answer the question.")
    supported: bool | None = Field(
        default=None, description="Whether each answer stands in a cited fact; absent if not known."
    )
    confidence: float | None = Field(
        default=None, description="How likely the answers are right, from 0 to 1; absent if not known."
    )
    value: Value | None = Field(
        default=None, description="What an operation gave, as a count; absent where there was none."
    )
    refusal: Refusal | None = Field(default=None, description="Why there is no answer, and what to do next.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Ask about fewer things, or call facts for all facts of one entity and relation."


class FoundEntity(Named):
    """An entity that a text may mean."""

    types: list[Text] = Field(default_factory=list)
    aliases: list[Text] = Field(default_factory=list, description="Its further names.")
    facts: int | None = Field(default=None, description="How many facts it has; absent if a database holds them.")


class FoundEntities(Result):
    """The entities that a text may mean."""

    asked: Text = Field(default="", description="The text.")
    entities: list[FoundEntity] = Field(
        default_factory=list, description="Those that it names, perhaps misspelt or in part; the likeliest first."
    )
    nearest: list[FoundEntity] = Field(
        default_factory=list, description="Those whose names are nearest, but that it does not name."
    )

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Call search_entities with more of the name, with a type, or with a greater limit."


class Chain(Part):
    """Facts that join entities."""

    facts: list[Fact] = Field(description="From the first entity to the last.")


class FoundPaths(Result):
    """How entities are joined."""

    chains: list[Chain] = Field(default_factory=list, description="The shortest first.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Call find_paths about two entities, or with a smaller max_hops."


class QueryRows(Result):
    """The rows that a query of a database gives."""

    columns: list[Text]
    rows: list[list[Value | None]]
    facts: list[Fact] = Field(default_factory=list, description="The facts in the rows.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Write the query so that it counts, sorts or limits in the database, and call run_query again."


class Counted(Part):
    """A name, and how often it occurs."""

    name: Text
    count: int


class RelationSummary(Part):
    """What a relation joins."""

    relation: Text
    facts: int = Field(description="The number of its facts.")
    head_types: list[Text] = Field(default_factory=list, description="The types of its heads.")
    tail_types: list[Text] = Field(default_factory=list, description="The types of its tails.")
    least: Text | None = Field(default=None, description="The least of its tails, where they are numbers or dates.")
    greatest: Text | None = Field(default=None, description="The greatest of them.")


class SchemaSummary(Result):
    """What is in a graph."""

    entities: int | None = Field(
        default=None, description="The number of entities; absent where a database holds the graph."
    )
    facts: int | None = Field(
        default=None, description="The number of facts; absent where a database does not count them."
    )
    relation_count: int
    type_count: int
    relations: list[RelationSummary] = Field(default_factory=list, description="Those with most facts first.")
    types: list[Counted] = Field(default_factory=list, description="The types of entities, the most frequent first.")
    sources: list[Counted] = Field(default_factory=list, description="Where the facts are from.")
    attributes: list[Counted] = Field(default_factory=list, description="The attributes of facts.")
    methods: list[Text] = Field(default_factory=list, description="The methods that questions can be asked by.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        return "Call relations_of with words that describe the relation or type."


class RelationCount(Part):
    """How many facts of a relation an entity has."""

    relation: Text
    outgoing: int = Field(description="Facts with the entity as the head.")
    incoming: int = Field(description="Facts with the entity as the tail.")


class NeighborFact(Fact):
    """A fact of an entity."""

    other: Text = Field(description="What the entity at the other end is called.")


class Neighbors(Result):
    """The facts around an entity."""

    entity: Named
    types: list[Text] = Field(default_factory=list)
    aliases: list[Text] = Field(default_factory=list, description="Its further names.")
    total: int = Field(description="How many facts it has; with a relation given, of this relation.")
    facts: list[NeighborFact] = Field(default_factory=list, description="Some of each relation.")
    relations: list[RelationCount] = Field(default_factory=list, description="How many facts it has of each relation.")
    start: int | None = Field(default=None, description="How many facts come before these; absent if some are chosen.")

    def go_on(self) -> str:
        """Return how an agent sees what was left out."""
        if self.start is None:
            return "Call facts with this entity, and with a relation, for all of its facts."
        return f"Call facts again with start={self.start + len(self.facts)}."
