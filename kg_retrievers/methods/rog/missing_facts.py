"""Which entities the walks along a relation path come to, and which facts they lack to end at an entity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.neighborhood import Neighborhood
from kg_retrievers.graph import Adjacency, KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import entries_between, is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.questions.missing_facts import stand_in_key

#: For each hop the labels that will do.
Labels = Sequence[Sequence[int]]


class Missing(NamedTuple):
    """The facts that the walk nearest to an entity lacks.

    Attributes:
        start: The id of the entity where it starts.
        hops: How many relations it follows before the first fact that is missing.
        facts: In the order of the walk.
    """

    start: int
    hops: int
    facts: tuple[Triple, ...]


def ends_by_hop(adjacency: Adjacency, start: int, labels: Labels, *, without: int = -1) -> list[Array]:
    """Return where walks from an entity are after each number of hops; they may cross a triple twice.

    Args:
        adjacency: The graph, both directions.
        start: The id of the entity.
        labels: The relation path.
        without: The id of an entity that no walk comes to; -1 for none.
    """
    found = [np.array([start], np.int64)]
    for step in labels:
        found.append(_crossed(adjacency, found[-1], step, back=False, without=without))
    return found


def starts_by_hop(adjacency: Adjacency, end: int, labels: Labels, *, without: int = -1) -> list[Array]:
    """Return from where walks come to an entity, after each number of hops of the relation path; as `ends_by_hop`."""
    found = [np.array([end], np.int64)]
    for position, step in reversed(list(enumerate(labels))):
        found.append(_crossed(adjacency, found[-1], step, back=True, without=without if position else -1))
    return found[::-1]


def shortest_walk(adjacency: Adjacency, around: Neighborhood, end: int) -> tuple[int, list[int]]:
    """Return where a shortest walk to an entity starts, and its labels; there and back to an entity in the middle.

    Args:
        adjacency: The graph, both directions.
        around: All that is around the entities where walks may start, this one included.
        end: The id of the entity.
    """
    row = adjacency.row(end)
    hops, neighbors = _hops(around, np.array([end])), adjacency.neighbors[row]
    if not hops[0]:
        first = adjacency.labels[row][:1].tolist()
        if (neighbors[:1] == end).any():
            return end, [label_of(relation_of(label), False) for label in first]
        return end, [way for label in first for way in (label, reversed_label(label))]
    here, labels = end, list[int]()
    for hop in reversed(range(int(hops[0]))):
        row = adjacency.row(here)
        neighbors = adjacency.neighbors[row]
        at = int(np.flatnonzero(_hops(around, neighbors) == hop)[0])
        labels.append(int(reversed_label(int(adjacency.labels[row][at]))))
        here = int(neighbors[at])
    return here, labels[::-1]


def _hops(around: Neighborhood, nodes: Array) -> Array:
    found: Array = around.hops[np.searchsorted(around.nodes, nodes)]
    return found


def missing_facts(
    graph: KnowledgeGraph, starts: Sequence[int], end: int, labels: Labels, *, may_return: bool
) -> Missing | None:
    """Return the fewest facts that a walk along a relation path lacks to end at an entity, the last ones of a walk.

    Args:
        graph: The graph.
        starts: The ids of the entities where walks may start.
        end: The id of the entity.
        labels: The relation path; no walk along it ends there.
        may_return: Whether walks may come back to where they start.

    Returns:
        None where no fact helps: a fact that joins an entity to itself is not crossed from its tail.
    """
    found = (_missing_from(graph, start, end, labels, may_return) for start in starts)
    return min(filter(None, found), key=lambda missing: (len(missing.facts), -missing.hops), default=None)


def _missing_from(graph: KnowledgeGraph, start: int, end: int, labels: Labels, may_return: bool) -> Missing | None:
    without = -1 if may_return else start
    ahead = ends_by_hop(graph.adjacency, start, labels, without=without)
    behind = starts_by_hop(graph.adjacency, end, labels, without=without)
    for lacking in range(1, len(labels) + 1):
        for hop in reversed(range(len(labels) - lacking + 1)):
            if (pair := _apart(ahead[hop], behind[hop + lacking], lacking)) is not None:
                return Missing(start, hop, _facts(graph, *pair, labels[hop : hop + lacking]))
    return None


def _apart(heres: Array, theres: Array, lacking: int) -> tuple[int, int] | None:
    """Return the first two entities between which facts may be lacking: one fact only between different ones."""
    for here in heres[:2].tolist():
        for there in theres[:2].tolist():
            if here != there or lacking > 1:
                return here, there
    return None


def _facts(graph: KnowledgeGraph, here: int, there: int, labels: Labels) -> tuple[Triple, ...]:
    between = [stand_in_key(graph, position) for position in range(1, len(labels))]
    passed = [graph.entities[here], *between, graph.entities[there]]
    facts = []
    for position, step in enumerate(labels):
        head, tail = passed[position], passed[position + 1]
        if is_backward(step[0]):
            head, tail = tail, head
        facts.append(Triple(head, graph.relations[relation_of(step[0])], tail))
    return tuple(facts)


def _crossed(adjacency: Adjacency, heres: Array, labels: Sequence[int], *, back: bool, without: int) -> Array:
    """Return where one hop leads; a triple that joins an entity to itself is crossed from its head only."""
    theres = [np.empty(0, np.int64)]
    for label in labels if len(heres) else ():
        entries, came = entries_between(*adjacency.ranges_with(heres, reversed_label(label) if back else label))
        there = adjacency.neighbors[entries]
        theres.append(there[(there != heres[came]) | (not is_backward(label))])
    found = np.unique(np.concatenate(theres))
    kept: Array = found[found != without]
    return kept
