"""Walks a pattern to write it as a query; a dialect has a writer that adds the syntax."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar, Literal

from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.errors import PatternError
from kg_retrievers.graph import Known, Pattern, Term, Unknown


@dataclass
class PatternWriter(ABC):
    """Writes a pattern, part by part.

    Attributes:
        pattern: The pattern.
        schema: What the database holds.
        keys: The keys of which each known node may take one.
        given: The keys of known nodes of absent triples, as a caller gives them.
        allowed: The keys that unknowns may have, by name.
        distinct: Which nodes must be different entities.
        direction: Whether the directions of triples count.
        names: The variable of each node.
        parameters: Those of the conditions written so far.
    """

    pattern: Pattern
    schema: DatabaseSchema
    keys: Mapping[Term, Sequence[str]]
    given: Mapping[Known, Sequence[str]]
    allowed: Mapping[str, Sequence[str]]
    distinct: Literal["known", "nodes", "none"]
    direction: Literal["ignore", "respect"]
    names: dict[Term, str] = field(init=False)
    parameters: dict[str, Any] = field(default_factory=dict)

    #: How variables begin.
    sign: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Name the nodes."""
        self.names = {node: f"{self.sign}n{position}" for position, node in enumerate(self.pattern.nodes)}

    @abstractmethod
    def lines(self, bindings: Sequence[str]) -> Iterator[str]:
        """Yield the lines of the query, without LIMIT.

        Args:
            bindings: The names of one or two unknowns whose keys are the columns; none for the facts.
        """

    @abstractmethod
    def has_key(self, name: str, keys: Sequence[str]) -> str:
        """Return the condition that a node has one of the keys."""

    @abstractmethod
    def has_type(self, name: str, type: str) -> str:
        """Return the condition that a node has a type."""

    @property
    def absent_directed(self) -> bool:
        """Whether the directions of absent triples count."""
        return self.direction == "respect" if self.pattern.directed is None else self.pattern.directed

    def columns_of(self, bindings: Sequence[str]) -> list[tuple[str, str]]:
        """Return the variables of unknowns, each with its column, "target" or "by"."""
        name_of = {node.name: name for node, name in self.names.items() if isinstance(node, Unknown)}
        if missing := [name for name in bindings if name not in name_of]:
            raise PatternError(f"render: {missing[0]!r} is none of the unknown nodes {list(name_of)}.")
        return [(name_of[name], column) for name, column in zip(bindings, ("target", "by"), strict=False)]

    def different(self) -> Iterator[tuple[Term, Term]]:
        """Yield the nodes that must be different entities, if their keys leave it open."""
        stated = {*self.pattern.different, *((other, one) for one, other in self.pattern.different)}
        for one, other in combinations(self.names, 2):
            apart = one in self.keys and other in self.keys and set(self.keys[one]).isdisjoint(self.keys[other])
            is_known = self.distinct == "known" and (one in self.keys or other in self.keys)
            if not apart and ((one, other) in stated or self.distinct == "nodes" or is_known):
                yield one, other

    def limits_of_absent(self, node: Term, name: str) -> list[str]:
        """Return the conditions on a node of absent triples alone."""
        keys = self.given.get(node) if isinstance(node, Known) else self.allowed.get(node.name)
        if keys is not None:
            return [self.has_key(name, keys)]
        found = []
        if isinstance(node, Known):
            found.append(self.has_key(name, [node.text if node.entity is None else node.entity]))
        return found if node.type is None else [*found, self.has_type(name, node.type)]
