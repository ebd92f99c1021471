"""Which way relations point in a pattern or query, where it was written the other way round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of, label_sources
from kg_retrievers.index import GraphIndex

#: The most edges that are turned; of more, each by itself.
MAX_TURNED = 10


class Edge(NamedTuple):
    """Something is joined to something else by one of some relations, given by number."""

    head: Hashable
    relations: Collection[int]
    tail: Hashable


class Directions:
    """Knows which ends of relations meet in the graph of an index. Safe to share between threads."""

    def __init__(self, index: GraphIndex) -> None:
        """Take the index of the graph."""
        self.index = index

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph."""
        return self.index.graph

    @cached_property
    def _meet(self) -> dict[tuple[int, int], bool]:
        """What was asked so far."""
        return {}

    def correct(
        self,
        edges: Sequence[Edge],
        entities: Mapping[Any, Sequence[int]],
        allowed: Callable[[int, bool], bool] = lambda edge, turned: True,
    ) -> list[bool]:
        """Say which edges must be turned so that all of them can be in the graph, as few as possible.

        They can be there if at each node all ends of relations meet in some entity: in one of the node's own, where
        these are known. Where nothing is wrong, or no choice is right, none is turned. That facts are missing does not
        turn an edge whose relation joins things of one kind, as "parent of" does: the right answer may be none.

        Args:
            edges: Edges with relations of the graph.
            entities: The numbers of the entities that a node may be, where that is known.
            allowed: Whether an edge, by its number, may be there as it is, or turned.
        """
        numbers = range(len(edges))
        choices = product([False, True], repeat=len(edges)) if len(edges) <= MAX_TURNED else [(False,) * len(edges)]

        def may_be(number: int, turned: bool) -> bool:
            free = not turned or not allowed(number, False) or self._is_one_way(edges[number].relations)
            return free and allowed(number, turned)

        for turned in sorted(choices, key=sum):
            if all(map(may_be, numbers, turned)) and self._fits(edges, turned, entities):
                return list(turned)
        return [False] * len(edges)

    def _is_one_way(self, relations: Collection[int]) -> bool:
        """Whether no entity is both head and tail of one of the relations."""
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
        """Whether an entity has an edge of one of the labels."""
        return any(self.graph.adjacency.has_label(entity, label) for label in labels)

    def _meets(self, one: int, other: int) -> bool:
        """Whether an entity has edges of both adjacency labels."""
        pair = (min(one, other), max(one, other))
        if pair not in self._meet:
            first, second = (np.unique(label_sources(self.graph.edges, label)) for label in pair)
            self._meet[pair] = bool(np.isin(first, second).any())
        return self._meet[pair]
