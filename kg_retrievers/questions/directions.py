"""Corrects the direction of relations in a pattern or query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex

#: The most edges among which some are turned; where there are more, none is.
MAX_TURNED = 10

#: Ours. Heads and tails of a relation are of different kinds if at most these shares of the smaller and of the larger
#: of both sets are in both, as where names are keys and two of 23 genres are also the names of films, of 11,947. Of the
#: 237 relations of FB15k-237, 173 share no ends, 5 more are within the limits, and none of these joins things of one
#: kind.
SHARED_OF_FEWER, SHARED_OF_MORE = 0.1, 0.002

#: Of up to so many entities, each is asked for a label; of more, all at once; of many, all that have it are found.
FEW, MANY = 100, 100_000


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
        """The graph; of a connected one, some facts of each relation."""
        return self.index.whole.graph

    @property
    def _meet(self) -> dict[tuple[int, int], bool]:
        """The pairs of labels that were compared so far."""
        return self.index.whole.derived.get("meeting labels", (), dict)

    @property
    def _two_kinds(self) -> dict[int, bool]:
        """Of the relations that were looked at so far, whether heads and tails are of different kinds."""
        return self.index.whole.derived.get("kinds of ends", (), dict)

    def correct(
        self,
        edges: Sequence[Edge],
        entities: Mapping[Any, Sequence[int] | Array],
        allowed: Callable[[int, bool], bool] = lambda edge, turned: True,
        *,
        only: bool = False,
    ) -> list[bool]:
        """Return which edges must be turned so that all of them can be in the graph; as few as possible.

        They can be in the graph if, at each node, all ends of relations meet in some entity: in one of the node's own,
        where these are known. Where nothing is wrong, or no choice is right, none is turned. An edge whose relation
        joins entities of one kind, as "parent of" does, is not turned for missing facts: there may be no answer.

        Args:
            edges: Edges with relations of the graph.
            entities: The ids of the entities that a node may be, where that is known.
            allowed: Whether an edge, by its position, may stand as it is, or turned.
            only: Whether none is turned where as few others might be turned instead.
        """
        positions = range(len(edges))
        choices = product([False, True], repeat=len(edges)) if len(edges) <= MAX_TURNED else [(False,) * len(edges)]

        def may_be(position: int, turned: bool) -> bool:
            free = not turned or not allowed(position, False) or self._is_one_way(edges[position].relations)
            return free and allowed(position, turned)

        @cache
        def having(node: Hashable, label: int) -> Array:
            return self._having(self.index.graph, np.asarray(entities[node], np.int32), label)

        free = (turned for turned in sorted(choices, key=sum) if all(map(may_be, positions, turned)))
        fitting = (list(turned) for turned in free if self._fits(edges, turned, entities, having))
        first = next(fitting, none := [False] * len(edges))
        if only and any(first) and sum(next(fitting, none)) == sum(first):
            return none
        return first

    def _is_one_way(self, relations: Collection[int]) -> bool:
        """Tell whether the heads of each of the relations are of another kind than its tails."""
        return all(map(self._has_two_kinds, relations))

    def _has_two_kinds(self, relation: int) -> bool:
        if relation not in self._two_kinds:
            heads, tails = (self._sources(label_of(relation, backward)) for backward in (False, True))
            shared = int(np.isin(heads, tails).sum())
            fewer, more = sorted([len(heads), len(tails)])
            self._two_kinds[relation] = shared <= SHARED_OF_FEWER * fewer and shared <= SHARED_OF_MORE * more
        return self._two_kinds[relation]

    def _fits(
        self,
        edges: Sequence[Edge],
        turned: Sequence[bool],
        entities: Collection[Any],
        having: Callable[[Hashable, int], Array],
    ) -> bool:
        ends: dict[Hashable, list[list[int]]] = {}
        for (head, relations, tail), turn in zip(edges, turned, strict=True):
            ends.setdefault(head, []).append([label_of(relation, turn) for relation in relations])
            ends.setdefault(tail, []).append([label_of(relation, not turn) for relation in relations])
        for node, labels in ends.items():
            if node in entities:
                of_edges = [np.any([having(node, label) for label in choice], axis=0) for choice in labels]
                if not np.all(of_edges, axis=0).any():
                    return False
            elif not all(any(self._meets(*pair) for pair in product(*two)) for two in combinations(labels, 2)):
                return False
        return True

    def _having(self, graph: KnowledgeGraph, entities: Array, label: int) -> Array:
        """Return which of some entities of a graph have an edge of a label."""
        adjacency = graph.adjacency
        if len(entities) <= FEW:
            return np.array([adjacency.has_label(entity, label) for entity in entities.tolist()], bool)
        if len(entities) > MANY:
            return np.isin(entities, graph.relation_samples.all_sources_of(label, adjacency))
        firsts, lasts = adjacency.ranges_with(entities, label)
        having: Array = firsts < lasts
        return having

    def _sources(self, label: int) -> Array:
        """Return the entities that have an edge of a label, ascending."""
        return self.graph.relation_samples.all_sources_of(label, self.graph.adjacency)

    def _meets(self, one: int, other: int) -> bool:
        """Tell whether an entity has edges of both adjacency labels."""
        pair = (min(one, other), max(one, other))
        if pair not in self._meet:
            samples = self.graph.relation_samples
            fewer, more = sorted(pair, key=lambda label: int(samples.sources[label]))
            meet = bool(self._having(self.graph, samples.sources_of(fewer), more).any())
            if not meet and not samples.has_all(fewer):
                meet = bool(np.isin(self._sources(fewer), self._sources(more)).any())
            self._meet[pair] = meet
        return self._meet[pair]


def directions_of(index: GraphIndex) -> Directions:
    """Return the directions of an index, the same ones every time, so that its relations are compared once."""
    return index.derived.get("directions", (), lambda: Directions(index))
