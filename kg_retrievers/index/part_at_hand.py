"""PartAtHand: the part of a connected graph that some work looks at, and what is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kg_retrievers.errors import RefusalError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.connected_graph import GraphPart
from kg_retrievers.index.reach import Attempt, Reach
from kg_retrievers.index.triple_vectors import TripleVectors
from kg_retrievers.index.vector_store import ExactSearch


class PartNames(ExactSearch):
    """The vectors of the names of a part, each embedded when it is first needed.

    Args:
        graph: The part.
        embed: Embeds texts.
    """

    def __init__(self, graph: KnowledgeGraph, embed: Callable[[Sequence[str]], Array]) -> None:
        """Begin without vectors."""
        self.rows = None
        self._graph, self._embed = graph, embed

    def __len__(self) -> int:
        """The number of names."""
        return len(self._graph.names)

    @cached_property
    def vectors(self) -> Array:  # type: ignore[override]
        """Those of all names, float32, shape (names, d)."""
        return self.vectors_of(np.arange(len(self._graph.names)))

    def vectors_of(self, ids: Array) -> Array:
        """Return the vectors of some names, float32, shape (n, d)."""
        return self._embed([readable(self._graph.names[id]) for id in ids.tolist()])


@dataclass(frozen=True, eq=False)
class PartAtHand:
    """A part of the graph, with what is derived from it.

    Attributes:
        found: The part.
        types: Finds its types.
        names: Embeds its names.
        triples: Embeds its triples.
        derived: What else is derived from it.
        missing: The entities that the work on the part looked up by name, and that are not in it.
        facts: The facts that the work on it read by itself, and that are not in it.
        hops: How far the work looked, fact by fact.
    """

    found: GraphPart
    types: ExactSearch
    names: PartNames
    triples: TripleVectors
    derived: Cache = field(default_factory=Cache)
    missing: set[str] = field(default_factory=set)
    facts: set[Triple] = field(default_factory=set)
    hops: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        """The number of facts."""
        return len(self.found.graph)


#: The part that the work of this context looks at, by the id of its index.
CURRENT: ContextVar[Mapping[int, PartAtHand]] = ContextVar("parts")


class AtPart(Attempt):
    """Has a part at hand; where the work lacked something and may be done again, its refusal does not count.

    Args:
        index: The index whose part it is.
        part: The part.
        keys: The entities that it was made for.
        reach: The reach that it was made for.
        is_last: Whether the work is not done again.

    Attributes:
        lacked: The entities to add to the part, but those that were looked for already: the database lacks them.
        reach: The reach of the next attempt.
        is_done: Whether the part lacked nothing, or the work is not done again.
    """

    def __init__(self, index: object, part: PartAtHand, keys: frozenset[str], reach: Reach, *, is_last: bool) -> None:
        """Begin without anything lacked."""
        self._index, self._part, self._keys, self._is_last = index, part, keys, is_last
        self.lacked: frozenset[str] = frozenset()
        self.reach, self.is_done = reach, True

    def __enter__(self) -> None:
        """Put the part at hand."""
        self._token = CURRENT.set({**CURRENT.get({}), id(self._index): self._part})

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> bool | None:
        """Put it away."""
        CURRENT.reset(self._token)
        if not self._is_last:
            self._look_at_what_lacked()
        return not self.is_done and isinstance(error, RefusalError)

    def _look_at_what_lacked(self) -> None:
        reach = self.reach
        self.lacked = frozenset(self._part.missing) - self._keys
        facts = self._part.facts.difference(reach.facts)
        hops = reach.hops if reach.hops is None else max(self._part.hops | {reach.hops})
        self.reach = reach._replace(facts=(*reach.facts, *sorted(facts)), hops=hops)
        self.is_done = not self.lacked and self.reach == reach
