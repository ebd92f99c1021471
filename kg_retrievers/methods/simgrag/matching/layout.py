"""Lays a pattern out as a tree of steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array

#: Kinds of steps: place a root, place a node at the end of an edge, join two placed nodes.
START, TREE, CYCLE = 0, 1, 2

#: The part of a node that distinguishes matches: nothing, its entity, or its level.
NOTHING, ENTITY, LEVEL = 0, 1, 2


class Shape(NamedTuple):
    """The input of a plan's layout: neither the graph nor the candidates.

    Attributes:
        edges: As in the query.
        different: As in the query.
        roots: The nodes in the order in which they may become roots.
        known: Whether each node is known.
        typed: Whether each node has a type.
        unknown: Whether each relation term is unknown.
        distinct: As in `match_pattern`.
        direction: As in `match_pattern`.
        ties: As in `match_pattern`.
    """

    edges: tuple[tuple[int, int, int], ...]
    different: tuple[tuple[int, int], ...]
    roots: tuple[int, ...]
    known: tuple[bool, ...]
    typed: tuple[bool, ...]
    unknown: tuple[bool, ...]
    distinct: str
    direction: str
    ties: str


class _Edge(NamedTuple):
    """A step in the order of the layout: places `far`, from `near` by an edge, or closes a cycle with it."""

    kind: int
    near: int
    far: int
    edge: int


@lru_cache(maxsize=1024)
def lay_out(shape: Shape) -> tuple[Array, ...]:
    """Return the columns of a plan that tell of its steps, of its nodes, and of pairs of them."""
    order = _Order(shape).steps
    step = {far: s for s, (kind, _, far, _) in enumerate(order) if kind != CYCLE}
    differs = _differing(shape)
    as_set = _carried_as_sets(shape, order, step, differs)
    steps = _step_table(shape, order, as_set)
    nodes = _node_table(shape, order, step, as_set)
    return (*_columns(steps), *_columns(nodes), _outside(steps, step).ravel(), differs.ravel())


def _columns(rows: Sequence[tuple[Any, ...]]) -> Array:
    return np.ascontiguousarray(np.array(rows, np.int64).T)


def _differing(shape: Shape) -> Array:
    """Return the pairs of nodes that must not take the same entity, int64, (nodes, nodes)."""
    nodes, known = range(len(shape.known)), shape.known
    differs = np.zeros((len(nodes), len(nodes)), np.int64)
    for a, b in product(nodes, nodes):
        stated = (a, b) in shape.different or (b, a) in shape.different
        by_mode = shape.distinct == "nodes" or (shape.distinct == "known" and (known[a] or known[b]))
        differs[a, b] = a != b and (stated or by_mode)
    return differs


def _carried_as_sets(shape: Shape, order: Sequence[_Edge], step: dict[int, int], differs: Array) -> list[bool]:
    """Return which nodes are carried as sets. Of two that must be distinguished, the upper one is bound."""
    nodes = range(len(shape.known))
    closing = [{near, far} for kind, near, far, _ in order if kind == CYCLE]
    as_set = [shape.ties == "merge" and not shape.known[v] for v in nodes]
    for a in sorted(nodes, key=step.__getitem__):
        below = [b for b in nodes if as_set[b] and step[a] < step[b]]
        as_set[a] = as_set[a] and not any(differs[a, b] or {a, b} in closing for b in below)
    return as_set


def _step_table(shape: Shape, order: Sequence[_Edge], as_set: Sequence[bool]) -> list[tuple[Any, ...]]:
    terms = [relation for _, relation, _ in shape.edges]
    merge, unknown = shape.ties == "merge", shape.unknown
    free = [unknown[t] and terms.count(t) == 1 and merge for t in range(len(unknown))]
    bound_by: dict[int, int] = {}
    steps: list[tuple[Any, ...]] = []
    for s, (kind, near, far, e) in enumerate(order):
        if kind == START:
            steps.append((kind, near, far, -1, -1, -1, 0, -1, 0, -1))
            continue
        if kind == CYCLE and as_set[far] and not as_set[near]:
            near, far = far, near
        head, term, _ = shape.edges[e]
        side = -1 if shape.direction == "ignore" else int(head != near)
        first = bound_by.setdefault(term, s) if unknown[term] and not free[term] else -1
        in_key = not unknown[term] or shape.ties == "break"
        closes_at = _closed_at(shape, kind, near, far)
        steps.append((kind, near, far, term, side, e, free[term], first, in_key, closes_at))
    return steps


def _closed_at(shape: Shape, kind: int, near: int, far: int) -> int:
    """Return the end of an edge that closes a cycle if the other, known end bounds it, or -1."""
    if kind != CYCLE or near == far:
        return -1
    return near if shape.known[far] else far if shape.known[near] else -1


def _outside(steps: Sequence[tuple[Any, ...]], step: dict[int, int]) -> Array:
    """Return which later steps are not in the subtree that a step places, int64, (steps, steps)."""
    outside = np.zeros((len(steps), len(steps)), np.int64)
    for s, (kind, _, far, *_) in enumerate(steps):
        for later, (later_kind, later_near, *_) in enumerate(steps[s + 1 :], s + 1):
            pending = step.get(later_near, 0) <= s and (later_near != far or kind == CYCLE)
            outside[s, later] = later_kind != TREE or pending
    return outside


def _node_table(
    shape: Shape, order: Sequence[_Edge], step: dict[int, int], as_set: Sequence[bool]
) -> list[tuple[Any, ...]]:
    known, typed = shape.known, shape.typed
    parent = {far: near for kind, near, far, _ in order if kind != CYCLE}
    informs, closes = list(known), list(known)
    for kind, near, far, _ in order:
        if (closed_at := _closed_at(shape, kind, near, far)) >= 0:
            closes[closed_at] = True
    for kind, near, far, _ in reversed(order):
        if kind == TREE:
            informs[near] |= informs[far]
            closes[near] |= closes[far]
    has_levels = [typed[v] and not known[v] for v in range(len(known))]
    table = []
    for v, level_row in zip(range(len(known)), accumulate(has_levels, initial=0), strict=False):
        key = ENTITY if known[v] or shape.ties == "break" else LEVEL if typed[v] else NOTHING
        row = level_row if has_levels[v] else -1
        table.append((parent[v], step[v], as_set[v], informs[v], known[v], row, key, closes[v]))
    return table


class _Order:
    """Orders the edges depth first. Branches that lead to a known node come first."""

    def __init__(self, shape: Shape) -> None:
        """Order the edges of a pattern into `steps`."""
        self.steps: list[_Edge] = []
        self._edges, self._known = shape.edges, shape.known
        self._placed: set[int] = set()
        self._done: set[int] = set()
        self._around: list[list[int]] = [[] for _ in shape.known]
        for e, (head, _, tail) in enumerate(shape.edges):
            for node in dict.fromkeys((head, tail)):
                self._around[node].append(e)
        for root in shape.roots:
            if root not in self._placed:
                self.steps.append(_Edge(START, -1, root, -1))
                self._place(root)

    def _other_end(self, e: int, v: int) -> int:
        head, _, tail = self._edges[e]
        return tail if head == v else head

    def _leads_to_known(self, v: int, crossed: set[int]) -> bool:
        if self._known[v]:
            return True
        beyond = [(e, self._other_end(e, v)) for e in self._around[v] if e not in crossed]
        return any(self._leads_to_known(w, crossed | {e}) for e, w in beyond if w not in self._placed)

    def _place(self, v: int) -> None:
        """Close the cycles at a node, then place the nodes next to it."""
        self._placed.add(v)
        onward = []
        for e in self._around[v]:
            w = self._other_end(e, v)
            if e not in self._done and w in self._placed:
                self._done.add(e)
                self.steps.append(_Edge(CYCLE, v, w, e))
            elif e not in self._done:
                onward.append((not self._leads_to_known(w, {e}), e, w))
        for _, e, w in sorted(onward):
            if e not in self._done:  # else a deeper branch came round to it
                self._done.add(e)
                self.steps.append(_Edge(TREE, v, w, e))
                self._place(w)
