"""Merge: the ids that the parts of one graph get in another one, its triples, and rows of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, label_of, rank_triples
from kg_retrievers.graph.columns import Array, StringTable, offset_type

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


class Merge(NamedTuple):
    """A graph, what is added to it, and which ids this gets: those of the graph, or new ones behind them.

    Attributes:
        graph: The graph.
        addition: What is added, as a graph.
        entities: The id of each entity of the addition.
        relations: The id of each relation of the addition.
    """

    graph: KnowledgeGraph
    addition: KnowledgeGraph
    entities: Array
    relations: Array

    @classmethod
    def of(cls, graph: KnowledgeGraph, addition: KnowledgeGraph) -> Merge:
        """Look up what is added."""
        entities = numbered(graph.entities.ids_of(addition.entities), len(graph.entities))
        relations = numbered(find_relations(graph, written_relations(addition)), len(graph.relations))
        return cls(graph, addition, entities, relations)

    @property
    def is_new_entity(self) -> Array:
        """Which entities of the addition the graph lacks."""
        return self.entities >= len(self.graph.entities)

    @property
    def is_new_relation(self) -> Array:
        """Which relations of the addition the graph lacks."""
        return self.relations >= len(self.graph.relations)

    @property
    def are_names_keys(self) -> bool:
        """Whether the entities of both are called by their keys alone."""
        return "labels" not in self.graph._columns and "labels" not in self.addition._columns

    @property
    def entity_count(self) -> int:
        """How many entities both have."""
        return len(self.graph.entities) + int(self.is_new_entity.sum())

    @property
    def relation_count(self) -> int:
        """How many relations both have."""
        return len(self.graph.relations) + int(self.is_new_relation.sum())

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many heads, relations and tails both have."""
        return self.entity_count, self.relation_count, self.entity_count

    def edges(self) -> tuple[Array, Array]:
        """Return the added triples, each once, and which of them each triple of the addition is."""
        heads, relations, tails = self.addition.edges[:].T
        edges = np.stack([self.entities[heads], self.relations[relations], self.entities[tails]], axis=1)
        if len(np.unique(self.relations)) == len(self.relations):
            return edges, np.arange(len(edges))
        _, first, inverse = np.unique(edges, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return edges[first[order]], np.argsort(order)[inverse.reshape(-1)]


def written_relations(graph: KnowledgeGraph) -> StringTable:
    """Return how the source of a graph wrote its relations."""
    return graph.relations if graph.relation_ids is None else graph.relation_ids


def written_types(graph: KnowledgeGraph) -> list[str]:
    """Return how the source of a graph wrote its types."""
    return [graph.type_ids.get(name, name) for name in graph.types]


def find_relations(graph: KnowledgeGraph, texts: StringTable) -> Array:
    """Return the id of each relation that is written so by the source, or else called so; -1 where it is missing."""
    found = written_relations(graph).ids_of(texts)
    return np.where(found < 0, graph.relations.ids_of(texts), found)


def numbered(found: Array, count: int) -> Array:
    """Return ids with those that are missing (-1) numbered from `count` on.

    Example:
        >>> numbered(np.array([4, -1, 0, -1]), 5).tolist()
        [4, 5, 0, 6]
    """
    ids, missing = found.copy(), found < 0
    ids[missing] = count + np.arange(int(missing.sum()))
    return ids


class Rows(NamedTuple):
    """Rows of different lengths, one after the other.

    Attributes:
        indptr: int32 or int64, shape (n + 1): row i is `values[indptr[i]:indptr[i + 1]]`.
        values: int32.
    """

    indptr: Array
    values: Array

    @classmethod
    def named(cls, columns: Mapping[str, Array], name: str) -> Rows:
        """Return the rows that two columns hold; rows of entities that a graph lacks are empty."""
        if f"{name}.indptr" not in columns:
            return cls(np.zeros(len(columns["entities.hashes"]) + 1, np.int32), np.empty(0, np.int32))
        return cls(columns[f"{name}.indptr"], columns[f"{name}.values"])

    @classmethod
    def of_pairs(cls, rows: Array, values: Array, size: int, values_below: int) -> Rows:
        """Return the values of each row, ascending, each once.

        Args:
            rows: The row of each value.
            values: The values.
            size: How many rows there are.
            values_below: All values are smaller.

        Example:
            >>> Rows.of_pairs(np.array([1, 0, 1]), np.array([5, 2, 3]), 3, 6).columns("x")["x.values"].tolist()
            [2, 3, 5]
        """
        width = max(values_below, 1)
        pairs = np.sort(rows.astype(np.int64) * width + values)  # np.unique hashes them before it sorts them
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]
        counts = np.bincount(pairs // width, minlength=size)
        return cls(_starts(counts), (pairs % width).astype(np.int32))

    def columns(self, name: str) -> dict[str, Array]:
        """Return the two columns under names that start with `name`."""
        indptr = self.indptr.astype(offset_type(len(self.values)), copy=False)
        return {f"{name}.indptr": indptr, f"{name}.values": self.values}

    @property
    def lengths(self) -> Array:
        """The length of each row."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> Array:
        """The row of each value."""
        lengths = self.lengths
        return np.repeat(np.arange(len(lengths)), lengths)

    def row(self, id: int) -> list[int]:
        """Return one row."""
        values: list[int] = self.values[self.indptr[id] : self.indptr[id + 1]].tolist()
        return values

    def subset(self, kept: Array) -> Rows:
        """Return some rows, in their order.

        Args:
            kept: Which rows stay: bool, shape (n).
        """
        if kept.all():
            return self
        lengths = self.lengths
        return Rows(_starts(lengths[kept]), self.values[np.repeat(kept, lengths)])

    def joined(self, others: Rows) -> Rows:
        """Return these rows and others behind them."""
        if len(others.indptr) == 1:
            return self
        indptr = np.append(self.indptr, int(self.indptr[-1]) + others.indptr[1:].astype(np.int64))
        return Rows(indptr, np.append(self.values, others.values))

    def replaced(self, rows: Mapping[int, list[int]]) -> Rows:
        """Return the rows with others in place of some.

        Example:
            >>> rows = Rows(np.array([0, 2, 3]), np.array([7, 8, 9]))
            >>> rows.replaced({0: [1]}).values.tolist()
            [1, 9]
        """
        if not rows:
            return self
        ids = sorted(rows)
        lengths = self.lengths
        others = np.ones(len(lengths), np.bool_)
        others[ids] = False
        new_lengths = lengths.copy()
        new_lengths[ids] = [len(rows[id]) for id in ids]
        values = np.empty(int(new_lengths.sum()), np.int32)
        of_others = np.repeat(others, new_lengths)
        values[of_others] = self.values[np.repeat(others, lengths)]
        values[~of_others] = [value for id in ids for value in rows[id]]
        return Rows(_starts(new_lengths), values)


def new_ids(kept: Array) -> Array:
    """Return the id of each item once only some stay: int32, -1 for the others.

    Example:
        >>> new_ids(np.array([True, False, True])).tolist()
        [0, -1, 1]
    """
    ids = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    ids[~kept] = -1
    return ids


def _starts(lengths: Array) -> Array:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def find_triples(adjacency: Adjacency, edges: Array) -> Array:
    """Return the id of each triple, -1 if the graph lacks it: int64.

    Cost: some dozens of array operations, which halve all rows at once.

    Args:
        adjacency: The adjacency of the graph.
        edges: int, shape (n, 3): ids of heads, relations and tails. Ids may be -1, or beyond those of the graph.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [1, 0, 0]]), 2)
        >>> find_triples(adjacency, np.array([[1, 0, 0], [0, 0, 0], [5, 0, -1]])).tolist()
        [1, -1, -1]
    """
    found = np.full(len(edges), -1, np.int64)
    known = np.flatnonzero((edges >= 0).all(axis=1) & (edges[:, 0] < len(adjacency.indptr) - 1))
    if not len(known) or not len(adjacency.labels):
        return found
    heads, relations, tails = edges[known].astype(np.int64).T
    first_triples, starts = adjacency.first_triples.astype(np.int64), adjacency.indptr[heads].astype(np.int64)
    low, last = starts, starts + first_triples[heads + 1] - first_triples[heads]
    wanted, high = label_of(relations, False), last
    while (apart := low < high).any():
        at = np.where(apart, (low + high) // 2, 0)
        labels = adjacency.labels[at]
        is_less = (labels < wanted) | ((labels == wanted) & (adjacency.neighbors[at] < tails))
        low, high = np.where(apart & is_less, at + 1, low), np.where(apart & ~is_less, at, high)
    at = np.where(low < last, low, 0)
    is_there = (low < last) & (adjacency.labels[at] == wanted) & (adjacency.neighbors[at] == tails)
    found[known[is_there]] = (low - starts + first_triples[heads])[is_there]
    return found


class ChangedTriples(NamedTuple):
    """The triples that stay, and new ones.

    Attributes:
        adjacency: All of them, by the ids of the entities and relations that stay.
        origins: The earlier id of each, -1 if it is new: int64.
        kept_ids: The id now of each triple of before, -1 if it is gone: int64.
        new_ids: The id of each new triple: int64.
    """

    adjacency: Adjacency
    origins: Array
    kept_ids: Array
    new_ids: Array


def change_triples(columns: list[Array], kept: Array, new: Array, entities: Array, relations: Array) -> ChangedTriples:
    """Leave some triples out, and sort new ones between the others.

    Cost: a few passes over the columns, and two sorts of nearly sorted triples.

    Args:
        columns: Heads, relations and tails of the triples of before.
        kept: Which of them stay: bool.
        new: Triples that are none of those that stay, each once: int, shape (m, 3).
        entities: Which entities stay: bool. Those that go have no triples.
        relations: Which relations stay: bool.
    """
    tables = [new_ids(table) for table in (entities, relations, entities)]
    given = [table[np.append(column[kept], added)] for table, column, added in zip(tables, columns, new.T, strict=True)]
    triples, ranks = rank_triples(given)
    stay = np.flatnonzero(kept)
    kept_ids, origins = np.full(len(kept), -1), np.full(len(ranks), -1)
    kept_ids[stay], origins[ranks[: len(stay)]] = ranks[: len(stay)], stay
    return ChangedTriples(Adjacency.of_triples(triples, int(entities.sum())), origins, kept_ids, ranks[len(stay) :])
