"""The facts that a graph lacks for a pattern to fit: as few as possible."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import entries_between, label_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct

#: So many ways to leave out edges are tried, those with the fewest edges first; then all of them count as lacking.
TRIED = 1_000

#: So many bindings of unknowns are tried for one way, which only a cycle can need.
BINDINGS = 1_000


class AskedEdge(NamedTuple):
    """An edge of a pattern by ids.

    Attributes:
        head: A node.
        relations: The ids of the relations that fit; the first is the one to name.
        tail: A node.
        directed: Whether the head must be the head.
    """

    head: Hashable
    relations: Sequence[int]
    tail: Hashable
    directed: bool


class MissingFacts(NamedTuple):
    """What is lacking.

    Attributes:
        edges: The positions of the edges that no fact fits.
        facts: A fact for each.
        stand_ins: The nodes for which nothing is known, with the key of an entity that the graph has not got.
    """

    edges: tuple[int, ...]
    facts: tuple[Triple, ...]
    stand_ins: dict[Hashable, str]


def missing_facts(
    graph: KnowledgeGraph, edges: Sequence[AskedEdge], allowed: Mapping[Hashable, Array], last: Hashable
) -> MissingFacts:
    """Return the fewest facts without which edges do not fit; of equally few, those around one node.

    Cost: one arc-consistency for each way to leave out edges; `TRIED` at most.

    Args:
        graph: The graph.
        edges: The edges.
        allowed: The ids of the entities that some nodes may be, each one or more; other nodes may be any.
        last: The node around which facts are lacking rather than elsewhere.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Tenet", "starring", "Pattinson")])
        >>> find = graph.entities.find
        >>> edges = [AskedEdge("film", [graph.relations.find("directed_by")], "who", True)]
        >>> allowed = {"film": np.array([find("Her")]), "who": np.array([find("Pattinson")])}
        >>> missing_facts(graph, edges, allowed, "who").facts
        (Triple(head='Her', relation='directed_by', tail='Pattinson'),)
    """
    order = sorted(range(len(edges)), key=lambda at: last not in (edges[at].head, edges[at].tail))
    ways = (lost for count in range(len(edges)) for lost in combinations(order, count))
    for lost in islice(ways, TRIED):
        kept = [edge for at, edge in enumerate(edges) if at not in lost]
        found = _Solver(graph, kept).solve(allowed)
        if found is not None:
            return _lacking(graph, edges, sorted(lost), {**_firsts(allowed), **found})
    return _lacking(graph, edges, range(len(edges)), _firsts(allowed))


def _firsts(allowed: Mapping[Hashable, Array]) -> dict[Hashable, int]:
    return {node: int(ids[0]) for node, ids in allowed.items()}


def _lacking(
    graph: KnowledgeGraph, edges: Sequence[AskedEdge], lost: Sequence[int], found: Mapping[Hashable, int]
) -> MissingFacts:
    keys = {node: graph.entities[entity] for node, entity in found.items()}
    ends = dict.fromkeys(node for at in lost for node in (edges[at].head, edges[at].tail))
    stand_ins: dict[Hashable, str] = {}
    for node in ends:
        if node not in keys:
            stand_ins[node] = stand_in_key(graph, len(stand_ins) + 1)
    keys |= stand_ins
    facts = [
        Triple(keys[edge.head], graph.relations[edge.relations[0]], keys[edge.tail])
        for edge in map(edges.__getitem__, lost)
    ]
    return MissingFacts(tuple(lost), tuple(dict.fromkeys(facts)), stand_ins)


def stand_in_key(graph: KnowledgeGraph, number: int) -> str:
    """Return a key that the graph has not got."""
    names = (
        f"something {number}{mark}" for mark in ("", *(f" ({more})" for more in range(2, len(graph.entities) + 3)))
    )
    return next(name for name in names if name not in graph.entities and not graph.entities_named(name))


class _Solver:
    """Binds the nodes of edges to entities, so that a fact fits each edge."""

    def __init__(self, graph: KnowledgeGraph, edges: Sequence[AskedEdge]) -> None:
        self._graph, self._edges = graph, edges
        self._left = BINDINGS

    def solve(self, allowed: Mapping[Hashable, Array]) -> dict[Hashable, int] | None:
        """Return what each node is, the first ids that fit; None where nothing fits."""
        nodes = dict.fromkeys(node for edge in self._edges for node in (edge.head, edge.tail))
        sets = {node: allowed[node] for node in nodes if node in allowed}
        return self._bound(sets)

    def _bound(self, sets: dict[Hashable, Array]) -> dict[Hashable, int] | None:
        consistent = self._consistent(sets)
        if consistent is None:
            return None
        node = next((node for node, ids in consistent.items() if len(ids) > 1), None)
        if node is None:
            return _firsts(consistent)
        for entity in consistent[node].tolist():
            self._left -= 1
            if self._left < 0:
                return None
            if (found := self._bound({**consistent, node: np.array([entity])})) is not None:
                return found
        return None

    def _consistent(self, sets: dict[Hashable, Array]) -> dict[Hashable, Array] | None:
        """Return the sets without what no edge supports; None where one is empty."""
        sets, changed = dict(sets), True
        while changed:
            changed = False
            for here, there, edge, backward in self._arcs():
                supported = self._supported(sets.get(here), edge, backward, loop=here == there)
                before = sets.get(there)
                kept = supported if before is None else np.intersect1d(before, supported)
                if not len(kept):
                    return None
                changed |= before is None or len(kept) < len(before)
                sets[there] = kept
        return sets

    def _arcs(self) -> Iterator[tuple[Hashable, Hashable, AskedEdge, bool]]:
        for edge in self._edges:
            yield edge.head, edge.tail, edge, False
            yield edge.tail, edge.head, edge, True

    def _supported(self, entities: Array | None, edge: AskedEdge, backward: bool, *, loop: bool) -> Array:
        """Return the entities to which an edge leads from some entities, or from any; of a loop, from themselves."""
        ways = [backward] if edge.directed else [False, True]
        labels = [int(label) for way in ways for label in label_of(np.array(edge.relations, np.int64), way)]
        adjacency, found = self._graph.adjacency, [np.empty(0, np.int64)]
        if loop or entities is None:
            entries, sources = adjacency.entries_labelled(np.array([reversed_label(label) for label in labels]))
            found.append(sources[adjacency.neighbors[entries] == sources] if loop else sources)
        else:
            for label in labels:
                entries, _ = entries_between(*adjacency.ranges_with(entities, label))
                found.append(adjacency.neighbors[entries])
        return distinct(np.concatenate(found))
