"""The pattern that is carried out for one with an operation, conditions or absent triples: one rule for every backend.

A triple whose relation is known is turned where the graph shows that only the other direction can be meant: see
`Directions.correct`. So a triple stays as it is

- where the entities that its nodes may be, by name or type, have facts in the written direction, or in neither;
- where heads and tails of its relation are of one kind, as of "parent of": there may be no answer;
- where another triple might be turned instead;
- where one would be both present and absent;
- where the pattern says whether directions count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.allowed_entities import NAMES, nearest_only, possible_entities
from kg_retrievers.questions.directions import Edge, directions_of
from kg_retrievers.questions.known_texts import check_known_texts


class CarriedOut(NamedTuple):
    """A pattern as it is carried out.

    Attributes:
        pattern: The pattern.
        turned: Those of its triples that are turned, as they were written.
    """

    pattern: Pattern
    turned: tuple[PatternTriple, ...] = ()

    @property
    def details(self) -> dict[str, Any]:
        """What evidence says of it: "turned", if triples are turned."""
        return {"turned": Pattern(self.turned).to_dict()["triples"]} if self.turned else {}


def carried_out(index: GraphIndex, pattern: Pattern, linked: Mapping[str, Sequence[str]] | None = None) -> CarriedOut:
    """Return the pattern that is carried out: the same one without an operation, conditions and absent triples.

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: The keys of the entities that are known for some texts.

    Raises:
        EntityLinkingError: If the graph lacks an entity that the pattern names; see `check_known_texts`.
        LowConfidenceError: If it lacks a relation.

    Example:
        >>> from kg_retrievers import KnowledgeGraph, default_embeddings
        >>> from kg_retrievers.graph.operations import Operation
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed by", "Jonze"), ("Tenet", "directed by", "Nolan")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> pattern = Pattern.of(("Nolan", "directed by", Unknown("x")), target="x", operation=Operation("count"))
        >>> carried_out(index, pattern).pattern.to_dict()["triples"]
        [[{'unknown': 'x'}, 'directed by', 'Nolan']]
    """
    if pattern.operation is None and not pattern.conditions and not pattern.absent:
        return CarriedOut(pattern)
    linked = linked or {}
    check_known_texts(index, pattern, linked)
    if pattern.directed is not None:
        return CarriedOut(pattern)
    turning = _Turning(index, pattern, linked)
    turned = {triple for group in _joined(pattern.triples) for triple in turning.among(group)}
    triples = _turn(pattern.triples, turned)
    for group in pattern.absent_groups():
        absent_ends = {node for triple in group for node in (triple.head, triple.tail) if isinstance(node, Unknown)}
        turned |= turning.among(group, [triple for triple in triples if absent_ends & {triple.head, triple.tail}])
    absent = _turn(pattern.absent, turned)
    if not turned or {*absent} & {*triples}:
        return CarriedOut(pattern)
    written = tuple(triple for triple in (*pattern.triples, *pattern.absent) if triple in turned)
    return CarriedOut(replace(pattern, triples=triples, absent=absent), written)


class _Turning:
    """Tells which triples of a pattern must be turned."""

    def __init__(self, index: GraphIndex, pattern: Pattern, linked: Mapping[str, Sequence[str]]) -> None:
        self._directions, self._absent = directions_of(index), {*pattern.absent}
        triples = (*pattern.triples, *pattern.absent)
        texts = list(dict.fromkeys(triple.relation.text for triple in triples if isinstance(triple.relation, Known)))
        nearest = map(nearest_only, index.nearest_relations(texts, NAMES))
        self._relations = {text: found.ids.tolist() for text, found in zip(texts, nearest, strict=True)}
        nodes = dict.fromkeys(node for triple in triples for node in (triple.head, triple.tail))
        self._entities: dict[Term, Array] = {}
        for node in nodes:
            if isinstance(node, Known) and node.entity is None and node.text in linked:
                self._entities[node] = np.array([index.graph.entities.find(key) for key in linked[node.text]], np.int32)
            elif isinstance(node, Known) or node.type is not None:
                self._entities[node] = possible_entities(index, node)

    def among(self, group: Sequence[PatternTriple], settled: Sequence[PatternTriple] = ()) -> set[PatternTriple]:
        """Return which triples of a group are turned, if others are settled."""
        triples = [triple for triple in (*settled, *group) if isinstance(triple.relation, Known)]
        edges = [self._edge(triple) for triple in triples]
        free = [triple in group for triple in triples]
        entities = {
            place: self._entities[place[0]]
            for edge in edges
            for place in (edge.head, edge.tail)
            if isinstance(place, tuple) and place[0] in self._entities
        }
        turned = self._directions.correct(edges, entities, lambda position, turn: free[position] or not turn, only=True)
        return {triple for triple, turn in zip(triples, turned, strict=True) if turn}

    def _edge(self, triple: PatternTriple) -> Edge:
        """Return a triple as an edge; a known text in absent triples stands in each for any entity called so."""
        absent = triple if triple in self._absent else None

        def place(node: Term) -> Hashable:
            return node, absent if isinstance(node, Known) else None

        assert isinstance(triple.relation, Known)
        return Edge(place(triple.head), self._relations[triple.relation.text], place(triple.tail))


def _joined(triples: Iterable[PatternTriple]) -> list[list[PatternTriple]]:
    """Return the groups of triples that share nodes, such as the sides of a comparison."""
    groups: list[list[PatternTriple]] = []
    for triple in triples:
        linked = [group for group in groups if any({*triple[::2]} & {*one[::2]} for one in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*chain(*linked), triple])
    return groups


def _turn(triples: Iterable[PatternTriple], turned: set[PatternTriple]) -> tuple[PatternTriple, ...]:
    return tuple(PatternTriple(*triple[::-1]) if triple in turned else triple for triple in triples)
