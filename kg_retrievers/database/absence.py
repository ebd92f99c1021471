"""Writes the absent triples of a pattern as conditions of a Cypher query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kg_retrievers.errors import PatternError
from kg_retrievers.graph import Known, Term
from kg_retrievers.graph.pattern import PatternTriple


@dataclass
class AbsentTriples:
    """Writes groups of absent triples, each a tree around one node, as `NOT EXISTS { ... }`.

    Each triple has an EXISTS of its own inside that of the triple before it, since Neo4j never binds two relationships
    of one MATCH to the same fact.

    Attributes:
        arrow: "->" or "-".
        type_of: Writes the type of a relationship from the relation, as ":`T`"; "" where it is unknown.
        limit: Writes the conditions on a node from the node and what the query calls it.
    """

    arrow: str
    type_of: Callable[[Term], str]
    limit: Callable[[Term, str], list[str]]
    _count: int = field(default=0, init=False)

    def condition(self, root: Term, name: str, group: Sequence[PatternTriple]) -> str:
        """Return the condition that a node, which the query calls `name`, is not joined to all of a group.

        Raises:
            PatternError: If the triples form a cycle.
        """
        found = self._present(root, name, group, {root})
        return f"NOT {found[0]}" if len(found) == 1 else f"NOT ({' AND '.join(found)})"

    def _present(self, node: Term, name: str, triples: Sequence[PatternTriple], seen: set[Term]) -> list[str]:
        """Return the conditions that a node is joined to some triples."""
        return [
            self._exists(node, name, triple, [other for other in triples if other is not triple], seen)
            for triple in triples
            if node in (triple.head, triple.tail)
        ]

    def _exists(
        self, node: Term, name: str, triple: PatternTriple, rest: Sequence[PatternTriple], seen: set[Term]
    ) -> str:
        there = triple.tail if node == triple.head else triple.head
        if there in seen:
            raise PatternError(f"Pattern: the absent triples around {node} form a cycle; that is not supported.")
        inner, self._count = f"a{self._count}", self._count + 1
        ends = (name, inner) if node == triple.head else (inner, name)
        conditions = self.limit(there, inner)
        if not isinstance(there, Known):
            seen.add(there)
            beyond = [other for other in rest if node not in (other.head, other.tail) or there in other]
            conditions += self._present(there, inner, beyond, seen)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"EXISTS {{ MATCH ({ends[0]})-[{self.type_of(triple.relation)}]{self.arrow}({ends[1]}){where} }}"
