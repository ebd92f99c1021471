"""Builds a pattern from walks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.operations import Condition, Operation

_Triple = tuple[Term, Term, Term]


class PatternBuilder:
    """Collects what a pattern consists of.

    Args:
        graph: Gives the names of relations.
        type: The type of what is looked for.
    """

    def __init__(self, graph: KnowledgeGraph, type: str | None = None) -> None:
        """Begin with nothing."""
        self._graph = graph
        self.triples: list[_Triple] = []
        self.absent: list[_Triple] = []
        self.conditions: list[Condition] = []
        self.operation: Operation | None = None
        self.confidence = 1.0
        self._unknowns = 0
        self.target = self.unknown(type)

    def unknown(self, type: str | None = None) -> Unknown:
        """Return an unknown that is not used yet, of a type where one is given."""
        self._unknowns += 1
        return Unknown(f"entity {self._unknowns}", type)

    def walk(self, start: Term, labels: Sequence[int], end: Term, *, absent: bool = False) -> None:
        """Add a walk from one node to another."""
        nodes = [start, *(self.unknown() for _ in labels[1:]), end]
        into = self.absent if absent else self.triples
        for (here, there), label in zip(pairwise(nodes), labels, strict=True):
            relation = Known(self._graph.relations[relation_of(label)])
            into.append((there, relation, here) if is_backward(label) else (here, relation, there))

    def pattern(self) -> Pattern:
        """Return the pattern."""
        nodes = {node for triple in self.triples for node in triple}
        return Pattern.of(
            *self.triples,
            target=self.target.name if self.target in nodes else None,
            directed=True,
            conditions=self.conditions,
            absent=self.absent,
            operation=self.operation,
            typed=True if any(isinstance(node, Unknown) and node.type for node in nodes) else None,
            source="question-forms",
            confidence=self.confidence,
        )
