"""Reach: which part of a graph some work looks at, where not all of it is at hand."""

from __future__ import annotations

from typing import NamedTuple

from kg_retrievers.graph.types import Triple


class Reach(NamedTuple):
    """Which part of a connected graph some work looks at: what is around some entities.

    Attributes:
        keys: The entities.
        hops: How many facts an entity is away from these at most; 0 for the entities alone, None for any number.
        between: Whether the facts between the outermost entities belong to the part.
        question: A text; the entities whose names it holds are begun from, too.
        names: Texts; the entities with the names nearest to each are begun from, too.
        k: How many names are near to each of these.
        relations: The relations that are looked at where the part would be too large with all; none for any.
        steps: The relations that are looked at, hop by hop; none for any.
        also: Further entities, without the facts around them.
        facts: Facts that were read already.
        max_facts: The most facts of the part; None for those that the index says.
        names_ends: Whether the part knows what all of its entities are called; if not, all but the outermost.
    """

    keys: tuple[str, ...] = ()
    hops: int | None = 0
    between: bool = False
    question: str = ""
    names: tuple[str, ...] = ()
    k: int = 1
    relations: tuple[str, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    also: tuple[str, ...] = ()
    facts: tuple[Triple, ...] = ()
    max_facts: int | None = None
    names_ends: bool = True


class Attempt:
    """A context in which some work has what it looks at at hand: here, the whole graph."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> bool | None:
        """End; true where an error of the work does not count, since it is done again."""
        return None
