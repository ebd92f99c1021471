"""What keeps an entity out of what a retriever finds, and what would bring it in.

A retriever that does not find an entity drops it at one of its stages, for one reason at a time. The reason is stated
so that it can be checked: its `Lift` says what to change, and with that changed the entity is no longer dropped there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.facts import LONE_ENTITIES
from kg_retrievers.graph.verbalize import readable

#: Why an entity is not found:
#:
#: - "not_linked": none of the entities that the question is read to name leads to it.
#: - "below_min_confidence": the question is refused, since it is not understood surely enough.
#: - "too_far": it is more facts away from these entities than the method looks.
#: - "no_such_edge": the question is read to ask for facts that the graph has not got of it.
#: - "excluded": it fits, but for a condition, an inequality or a rule that excludes it.
#: - "outscored": it is considered, and others score higher.
#: - "pruned": a limit on entities, paths, facts, rows or time cuts it off.
Why = Literal["not_linked", "below_min_confidence", "too_far", "no_such_edge", "excluded", "outscored", "pruned"]


@dataclass(frozen=True)
class Lift:
    """What brings an entity past an obstacle; all of it together.

    Attributes:
        fields: Fields of the retriever, with the values that they need.
        inputs: Arguments of `invoke`, with the values that they need.
        facts: Triples that the graph lacks.
        members: For a retriever that asks others, fields and inputs of these, by their names.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[Triple, ...] = ()
    members: Mapping[str, Lift] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        members = {name: member.to_dict() for name, member in self.members.items()}
        return {
            "fields": dict(self.fields),
            "inputs": dict(self.inputs),
            "facts": [list(triple) for triple in self.facts],
            **({"members": members} if members else {}),
        }


def shown_fact(graph: KnowledgeGraph, fact: Triple) -> str:
    """Return a fact in words; it may name entities that the graph has not got.

    Example:
        >>> fact = Triple("Her", "directed_by", "Spike Jonze")
        >>> shown_fact(KnowledgeGraph.from_triples([fact]), fact)
        "'Her' -> directed by -> 'Spike Jonze'"
    """
    head, tail = (repr(graph.label(key) if key in graph.entities else key) for key in (fact.head, fact.tail))
    return f"{head} -> {readable(fact.relation)} -> {tail}"


def role_of(entity: str, metadata: Mapping[str, Any], *, as_answer: bool) -> Literal["answer", "evidence"] | None:
    """Return whether an entity is an answer of a Document, or stands in its facts; None where it does not.

    Args:
        entity: Its key.
        metadata: That of the Document.
        as_answer: Whether it counts only as an answer, unless an operation gave a value in place of answers.
    """
    if entity in metadata["answers"]:
        return "answer"
    if as_answer and metadata["value"] is None:
        return None
    alone = metadata["details"].get(LONE_ENTITIES, ())
    stands = entity in alone or any(entity in (head, tail) for head, _, tail in metadata["triples"])
    return "evidence" if stands else None


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps an entity out.

    Attributes:
        why: Its kind.
        stage: The name of the stage at which the entity falls out.
        text: What happens there, in a sentence.
        lift: What brings the entity past it.
        details: The figures behind the sentence, JSON-safe: ranks, scores, what outscores it, limits.
    """

    why: Why
    stage: str
    text: str
    lift: Lift
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return {
            "why": self.why,
            "stage": self.stage,
            "text": self.text,
            "lift": self.lift.to_dict(),
            "details": dict(self.details),
        }
