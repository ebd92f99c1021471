"""Corrects the direction of relations in a pattern or query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of, label_sources
from kg_retrievers.index import GraphIndex

#: The most edges among which some are turned; where there are more, none is.
MAX_TURNED = 10


class Edge(NamedTuple):
    """One of some relations, given by id, joins the head to the tail."""

    head: Hashable
    relations: Collection[int]
    tail: Hashable


class Directions:
    """Tells which ends of relations meet in the graph of an index. Safe to share between threads."""

    def __init__(self, index: GraphIndex) -> None:
        """Take the index of the graph."""
        self.index = index

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph."""
        return self.index.graph

    @cached_property
    def _meet(self) -> dict[tuple[int, int], bool]:
        """The pairs of labels that were compared so far."""
        return {}

    def correct(
        self,
        edges: Sequence[Edge],
        entities: Mapping[Any, Sequence[int]],
        allowed: Callable[[int, bool], bool] = lambda edge, turned: True,
    ) -> list[bool]:
        """Return which edges must be turned so that all of them can be in the graph; as few as possible.

        They can be in the graph if, at each node, all ends of relations meet in some entity: in one of the node's own,
        where these are known. Where nothing is wrong, or no choice is right, none is turned. An edge whose relation
        joins entities of one kind, as "parent of" does, is not turned for missing facts: there may be no answer.

        Args:
            edges: Edges with relations of the graph.
            entities: The ids of the entities that a node may be, where that is known.
            allowed: Whether an edge, by its position, may stand as it is, or turned.
        """
        positions = range(len(edges))
        choices = product([False, True], repeat=len(edges)) if len(edges) <= MAX_TURNED else [(False,) * len(edges)]

        def may_be(position: int, turned: bool) -> bool:
            free = not turned or not allowed(position, False) or self._is_one_way(edges[position].relations)
            return free and allowed(position, turned)

        for turned in sorted(choices, key=sum):
            if all(map(may_be, positions, turned)) and self._fits(edges, turned, entities):
                return list(turned)
        return [False] * len(edges)

    def _is_one_way(self, relations: Collection[int]) -> bool:
        """Tell whether no entity is both head and tail of one of the relations."""
        return not any(self._meets(label_of(relation, False), label_of(relation, True)) for relation in relations)

    def _fits(self, edges: Sequence[Edge], turned: Sequence[bool], entities: Mapping[Any, Sequence[int]]) -> bool:
        ends: dict[Hashable, list[list[int]]] = {}
        for (head, relations, tail), turn in zip(edges, turned, strict=True):
            ends.setdefault(head, []).append([label_of(relation, turn) for relation in relations])
            ends.setdefault(tail, []).append([label_of(relation, not turn) for relation in relations])
        for node, labels in ends.items():
            if node in entities:
                if not any(all(self._has(entity, choice) for choice in labels) for entity in entities[node]):
                    return False
            elif not all(any(self._meets(*pair) for pair in product(*two)) for two in combinations(labels, 2)):
                return False
        return True

    def _has(self, entity: int, labels: Collection[int]) -> bool:
        """Tell whether an entity has an edge of one of the labels."""
        return any(self.graph.adjacency.has_label(entity, label) for label in labels)

    def _meets(self, one: int, other: int) -> bool:
        """Tell whether an entity has edges of both adjacency labels."""
        pair = (min(one, other), max(one, other))
        if pair not in self._meet:
            first, second = (np.unique(label_sources(self.graph.edges, label)) for label in pair)
            self._meet[pair] = bool(np.isin(first, second).any())
        return self._meet[pair]
