"""Find the combinations of a pattern's unknowns, joined edge by edge over arrays."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph.adjacency import Adjacency, label_of, relation_of
from kg_retrievers.graph.columns import Array, are_among, are_first, distinct, entries_between

#: The most rows of a join at a time.
MAX_ROWS = 20_000_000

#: From how many entities at once a join goes on: if a limit ends it, those before are done.
STARTS = 1 << 18

#: From this number of labels on, all entries of an entity are looked at, rather than the entries of each label.
MANY_LABELS = 8


class JoinEdge(NamedTuple):
    """An edge of a pattern.

    Attributes:
        head: The number of its head.
        tail: The number of its tail.
        relations: The ids of the relations that it may have. None for any.
        relation: The number of its relation, if it is unknown and must be the same in other edges. Otherwise None.
        directed: Whether it must point from head to tail.
        fact: The number of its fact, if it is wanted: the id of a triple. Otherwise None.
    """

    head: int
    tail: int
    relations: Array | None
    relation: int | None = None
    directed: bool = True
    fact: int | None = None


class Limits(NamedTuple):
    """The limits at which a join ends.

    Attributes:
        entries: The most adjacency entries that it looks at.
        until: The time, by `time.monotonic`.
    """

    entries: float = math.inf
    until: float = math.inf


NO_LIMITS = Limits()


class _CutError(Exception):
    """A limit is reached."""


class Join:
    """Find the combinations of entities for the nodes of a pattern.

    Args:
        adjacency: The graph.
        edges: The edges of the pattern, between nodes by number.
        candidates: The ids of the entities that a node may be, ascending, by number. Any entity for a node without.
        different: Pairs of nodes that must not be the same entity.
        limits: The limits at which it ends.

    Attributes:
        truncated: Whether a limit ended the join, so that there may be further rows.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [0, 0, 2], [3, 0, 2]]), 4)
        >>> Join(adjacency, [JoinEdge(0, 1, np.array([0]))], {1: np.array([2])}).bindings([0]).tolist()
        [[0], [3]]
    """

    def __init__(
        self,
        adjacency: Adjacency,
        edges: Sequence[JoinEdge],
        candidates: Mapping[int, Array],
        different: Sequence[tuple[int, int]] = (),
        limits: Limits = NO_LIMITS,
    ) -> None:
        """Keep them."""
        self._adjacency, self._edges, self._limits = adjacency, edges, limits
        self.truncated, self._looked_at = False, 0
        self._candidates, self._different = candidates, different
        self._size = len(adjacency.indptr) - 1
        self._ids = max(self._size, len(adjacency.backward_triples)) + 1

    def bindings(self, wanted: Sequence[int]) -> Array:
        """Return the combinations of some nodes in matches: int64 (rows, wanted), each row once, ascending.

        Edges are joined one after the other. A node that nothing further needs is dropped at once, so that on a tree
        there are never more rows than the wanted nodes and one edge allow.

        Raises:
            SearchBudgetError: If there are more than `MAX_ROWS` rows at a time.
        """
        rows, columns = np.zeros((1, 0), np.int64), list[int]()
        for part in self._parts(wanted):
            own = [node for node in wanted if node in part.nodes]
            found = self._of_part(part.edges, own or sorted(part.nodes)[:1])
            if not own:
                found = found[:1, :0]
            self._check_size(len(rows) * len(found))
            rows = np.hstack([np.repeat(rows, len(found), axis=0), np.tile(found, (len(rows), 1))])
            columns += own
        return self._once(rows[:, [columns.index(node) for node in wanted]])

    def _parts(self, wanted: Sequence[int]) -> list[_Part]:
        """Return the parts of the pattern that share no node, and between which nothing must differ."""
        links: list[tuple[set[int], list[JoinEdge]]] = [({node}, []) for node in (*wanted, *self._candidates)]
        links += [({edge.head, edge.tail} | _numbers(edge), [edge]) for edge in self._edges]
        links += [({*pair}, []) for pair in self._different]
        parts: list[_Part] = []
        for nodes, edges in links:
            joined = [part for part in parts if part.nodes & nodes]
            parts = [part for part in parts if part not in joined]
            whole = nodes.union(*(part.nodes for part in joined))
            parts.append(_Part(whole, [*(edge for part in joined for edge in part.edges), *edges]))
        return parts

    def _of_part(self, edges: Sequence[JoinEdge], wanted: Sequence[int]) -> Array:
        """Return the bindings of a part that is joined."""
        left = sorted(edges, key=lambda edge: min(self._count(edge.head), self._count(edge.tail)))
        start = min(left, key=lambda edge: min(self._count(edge.head), self._count(edge.tail)), default=None)
        first = wanted[0] if start is None else min((start.head, start.tail), key=self._count)
        starts, found = self._starts(first, left), [np.zeros((0, len(wanted)), np.int64)]
        try:
            for at in range(0, len(starts), STARTS):
                found.append(self._from(starts[at : at + STARTS], first, list(left), wanted))
        except _CutError:
            self.truncated = True
        return found[-1] if len(found) < 3 else self._once(np.concatenate(found))

    def _from(self, starts: Array, first: int, left: list[JoinEdge], wanted: Sequence[int]) -> Array:
        """Return the bindings of a part in which a node is one of some entities."""
        columns, rows = [first], starts[:, None]
        waiting = [node for pair in self._different for node in pair] + [*wanted]
        while left or any(node not in columns for node in waiting):
            check_deadline()
            edge = next((one for one in left if {one.head, one.tail} <= {*columns}), None)
            edge = edge or next((one for one in left if {one.head, one.tail} & {*columns}), None)
            if edge is None:  # a node that only must differ, or is only wanted
                other = left[0].head if left else next(node for node in waiting if node not in columns)
                starts = self._starts(other, left)
                self._check_size(len(rows) * len(starts))
                rows = np.hstack([np.repeat(rows, len(starts), axis=0), np.tile(starts, len(rows))[:, None]])
                columns.append(other)
            else:
                left.remove(edge)
                rows, columns = self._extended(rows, columns, edge)
            rows = rows[self._differ(rows, columns)]
            needed = {*wanted, *(node for one in left for node in (one.head, one.tail, *_numbers(one)))}
            needed |= {node for pair in self._different for node in pair if not {*pair} <= {*columns}}
            kept = [at for at, node in enumerate(columns) if node in needed]
            waiting = [node for node in waiting if node not in columns]
            rows, columns = self._once(rows[:, kept]), [columns[at] for at in kept]
        return rows[:, [columns.index(node) for node in wanted]]

    def _count(self, node: int) -> int:
        return len(self._candidates[node]) if node in self._candidates else self._size

    def _starts(self, node: int, edges: Sequence[JoinEdge]) -> Array:
        """Return the entities with which a join begins: the candidates of a node, or the ends of one of its edges."""
        if node in self._candidates:
            return self._candidates[node].astype(np.int64)
        own = next((edge for edge in edges if node in (edge.head, edge.tail) and edge.relations is not None), None)
        if own is None or own.relations is None:
            return np.arange(self._size)
        ways = [node == own.tail] if own.directed else [False, True]
        labels = np.concatenate([label_of(own.relations, way) for way in ways])
        return distinct(self._adjacency.entries_labelled(labels)[1])

    def _extended(self, rows: Array, columns: Sequence[int], edge: JoinEdge) -> tuple[Array, list[int]]:
        """Join rows with the facts of an edge, of which one end is a column of them."""
        here = edge.head if edge.head in columns else edge.tail
        there = edge.tail if here == edge.head else edge.head
        ids, of_rows = np.unique(rows[:, columns.index(here)], return_inverse=True)
        owners, ends, relations, facts = self._facts(ids, edge, backward=here == edge.tail)
        if there in self._candidates:
            fits = are_among(ends, self._candidates[there])
            owners, ends, relations, facts = owners[fits], ends[fits], relations[fits], facts[fits]
        firsts = np.searchsorted(owners, np.arange(len(ids) + 1))
        starts, lasts = firsts[:-1][of_rows], firsts[1:][of_rows]
        self._check_size(int((lasts - starts).sum()))
        entries, at = entries_between(starts, lasts)
        found = {there: ends[entries]}
        found |= {edge.relation: relations[entries]} if edge.relation is not None else {}
        found |= {edge.fact: facts[entries]} if edge.fact is not None else {}
        fits = np.ones(len(entries), bool)
        if there == here:
            fits &= ends[entries] == ids[of_rows][at]
        for node, values in found.items():
            if node in columns:
                fits &= rows[at, columns.index(node)] == values
        new = [node for node in found if node not in columns]
        joined = np.hstack([rows[at[fits]], *(found[node][fits][:, None] for node in new)])
        return joined, [*columns, *new]

    def _facts(self, ids: Array, edge: JoinEdge, *, backward: bool) -> tuple[Array, Array, Array, Array]:
        """Return the facts of an edge at some of its ends: the place of each, the other end, the relation, the id."""
        adjacency, relations = self._adjacency, edge.relations
        ways = [backward] if edge.directed else [False, True]
        owners, entries = list[Array](), list[Array]()
        if relations is not None and len(relations) <= MANY_LABELS:
            for label in (int(label_of(relation, way)) for relation in relations.tolist() for way in ways):
                some, own = entries_between(*adjacency.ranges_with(ids, label))
                owners.append(own)
                entries.append(some)
        else:
            some, own = entries_between(adjacency.indptr[ids], adjacency.indptr[ids + 1])
            labels = adjacency.labels[some]
            fits = np.isin(labels % 2, ways)
            if relations is not None:
                fits &= np.isin(relation_of(labels), relations)
            owners.append(own[fits])
            entries.append(some[fits])
        whole, at = np.concatenate(owners), np.concatenate(entries)
        self._looked_at += len(at)
        if self._looked_at > self._limits.entries or time.monotonic() > self._limits.until:
            raise _CutError
        order = np.argsort(whole, kind="stable")
        owner, at = whole[order], at[order]
        return (
            owner,
            adjacency.neighbors[at].astype(np.int64),
            relation_of(adjacency.labels[at]).astype(np.int64),
            at if edge.fact is None else adjacency.triples_of(at, ids[owner]).astype(np.int64),
        )

    def _differ(self, rows: Array, columns: Sequence[int]) -> Array:
        fits = np.ones(len(rows), bool)
        for one, other in self._different:
            if one in columns and other in columns:
                fits &= rows[:, columns.index(one)] != rows[:, columns.index(other)]
        return fits

    def _once(self, rows: Array) -> Array:
        """Return each row once, ascending."""
        if not rows.shape[1]:
            return rows[:1]
        keys, size = rows[:, 0], self._ids
        for column in range(1, rows.shape[1]):
            if column > 1:  # the keys of two columns fit 63 bits
                keys = np.unique(keys, return_inverse=True)[1]
            keys = keys * size + rows[:, column]
        order = np.argsort(keys, kind="stable")
        return rows[order[are_first(keys[order])]]

    def _check_size(self, rows: int) -> None:
        if rows > MAX_ROWS:
            raise SearchBudgetError(f"The pattern's unknowns have more than {MAX_ROWS:,} combinations.")


class _Part(NamedTuple):
    """Nodes that edges join, and these edges."""

    nodes: set[int]
    edges: list[JoinEdge]


def _numbers(edge: JoinEdge) -> set[int]:
    """Return the numbers of the relation and of the fact of an edge, if it has them."""
    return {number for number in (edge.relation, edge.fact) if number is not None}
