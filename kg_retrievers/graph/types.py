"""The types that all packages share: Triple, Path, Evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError


class Triple(NamedTuple):
    """One fact, in the direction in which the graph stores it. `head` and `tail` are entity keys."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Path:
    """A walk over triples, each crossed forwards or backwards.

    Args:
        entities: The n + 1 entity keys in the order of the walk.
        triples: The n triples between them, in stored direction.

    Raises:
        InvalidArgumentError: If a triple does not join its two entities.
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]

    def __post_init__(self) -> None:
        """Check that each triple joins neighbouring entities."""
        if len(self.entities) != len(self.triples) + 1:
            raise InvalidArgumentError(
                f"Path: {len(self.triples)} triples join {len(self.triples) + 1} entities, "
                f"but got {len(self.entities)}."
            )
        for here, there, triple in zip(self.entities, self.entities[1:], self.triples, strict=False):
            if (here, there) not in ((triple.head, triple.tail), (triple.tail, triple.head)):
                raise InvalidArgumentError(f"Path: {triple} does not join {here!r} and {there!r}.")

    @classmethod
    def along(cls, start: str, triples: Sequence[Triple]) -> Path:
        """Return the walk from an entity over these triples, one after the other.

        Raises:
            InvalidArgumentError: If a triple does not begin or end at the present end of the walk.
        """
        entities = [start]
        for triple in triples:
            entities.append(triple.tail if triple.head == entities[-1] else triple.head)
        return cls(tuple(entities), tuple(triples))

    @property
    def relations(self) -> tuple[str, ...]:
        """The relation path: the relations in the order of the walk."""
        return tuple(triple.relation for triple in self.triples)


def path_rows(paths: Iterable[Path], triples: Sequence[Triple]) -> list[list[Any]]:
    """Return walks in the JSON form that stands with their triples.

    The form is `[[first entity, [position of a triple, ...]], ...]`.

    Args:
        paths: The walks.
        triples: All triples of the walks, each once. Positions count from 0.

    Example:
        >>> triples = [Triple("Her", "directed_by", "Jonze"), Triple("Jackass", "directed_by", "Jonze")]
        >>> path_rows([Path.along("Her", triples), Path.along("Jackass", triples[1:])], triples)
        [['Her', [0, 1]], ['Jackass', [1]]]
    """
    positions = {triple: position for position, triple in enumerate(triples)}
    return [[path.entities[0], [positions[triple] for triple in path.triples]] for path in paths]


def read_paths(rows: object, triples: Sequence[Triple]) -> list[Path]:
    """Return the walks that `path_rows` wrote.

    A row that is no walk over one or more of the triples is left out.
    """
    read = []
    for row in rows if isinstance(rows, list | tuple) else ():
        match row:
            case [str(start), [_, *_] as positions]:
                known = [at for at in positions if type(at) is int and 0 <= at < len(triples)]
                crossed = [triples[at] for at in known]
                if len(crossed) == len(positions):
                    with suppress(InvalidArgumentError):
                        read.append(Path.along(start, crossed))
    return read


@dataclass(frozen=True)
class Evidence:
    """A part of the graph that supports an answer to a question.

    It has everything needed to cite it.

    Args:
        triples: The facts, in stored direction, most important first.
        score: How well they fit. Higher is better, always.
        answers: The entity keys proposed as answers, best first. Empty if the method proposes none.
        truncated: True if a limit cut the search, so that there may be more or better evidence.
        confidence: How likely the answers are right, in [0, 1]. None if the method cannot tell. The score rates the
            evidence against the pattern, the confidence rates the pattern against the question.
        details: The method's additions, as JSON-safe values. "paths" holds the walks that the facts form, if any, as
            `path_rows` writes them, "lone_entities" the keys of entities that are evidence by themselves.
        value: The result of an operation: a number, a truth value, or the values by which the answers were chosen. None
            if only the answers were requested.
    """

    triples: tuple[Triple, ...]
    score: float
    answers: tuple[str, ...] = ()
    truncated: bool = False
    confidence: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
