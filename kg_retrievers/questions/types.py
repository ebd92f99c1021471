"""What every question set becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kg_retrievers.graph.types import Pattern, Triple


@dataclass(frozen=True)
class Question:
    """A question with what its set says about it; everything but the text may be absent.

    Args:
        text: The question as a person would type it.
        seed_entities: The keys of the entities that it names.
        answers: The keys of all gold answers.
        pattern: The small graph that it asks for.
        triples: The gold triples, in stored direction.
        kind: The question type, in the words of the set.
        answerable: Whether the graph holds an answer; where it does not, the right reply is a refusal.

    Example:
        >>> Question("who directed Her", seed_entities=("Her",)).to_dict()
        {'question': 'who directed Her', 'seed_entities': ['Her']}
    """

    text: str
    seed_entities: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    pattern: Pattern | None = None
    triples: tuple[Triple, ...] = ()
    kind: str | None = None
    answerable: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the row that `write_questions` writes; what is absent is left out, and so is a true `answerable`."""
        row: dict[str, Any] = {
            "question": self.text,
            "seed_entities": list(self.seed_entities),
            "answers": list(self.answers),
            "pattern": self.pattern.to_dict() if self.pattern else None,
            "triples": [list(triple) for triple in self.triples],
            "kind": self.kind,
        }
        row = {key: value for key, value in row.items() if value}
        return row if self.answerable else row | {"answerable": False}
