"""The triples by entity in both directions, by id, and some of each relation.

A label says by which relation a triple leads from an entity to its neighbor, and in which direction: forward from head
to tail, backward from tail to head. The direction is the lowest bit of the label, and no other file knows that. The
functions take integers and arrays alike, and compiled code may call the functions that `algorithms/compiled.py` lists.

Triples are numbered by head, then relation, then tail. So the forward entries of an entity, sorted by relation and
neighbor, are its triples in their order, and their ids need not be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array, StringTable, are_first, distinct, offset_type, roomy, starts_of

#: How many triples are worked on at once where whole columns of int64 would take much memory.
BLOCK = 1 << 20

#: How many triples are sorted at once. More of them are sorted by ranges of entities, each with about so many triples,
#: or a 32nd of all if that is more.
PART = 1 << 20

_BITS = 63

#: The most triples, and the most entities.
MAX_COUNT = 2**31 - 1


class TripleColumns(NamedTuple):
    """Triples by column, sorted by head, relation and tail, each once.

    The position of a triple is its id.

    Attributes:
        heads: int32, shape (n).
        relations: int16 if `id_type` says so, else int32, shape (n).
        tails: int32, shape (n).
    """

    heads: Array
    relations: Array
    tails: Array


def sort_triples(columns: list[Array]) -> TripleColumns:
    """Sort triples, and drop repeated ones.

    More than `PART` triples are sorted range by range of heads.

    Args:
        columns: Heads, relations and tails: three columns of ids. The list is emptied, so that its memory is free soon.

    Raises:
        InvalidArgumentError: If there are more than `MAX_COUNT` triples, or ids of that size.

    Example:
        >>> sort_triples([np.array([2, 0, 2]), np.array([0, 1, 0]), np.array([1, 1, 1])]).heads.tolist()
        [0, 2]
    """
    _check_widths(columns)
    if len(columns[0]) <= PART:
        return _sorted_once(columns)
    heads, relations, tails = columns
    columns.clear()
    kinds = np.int32, id_type(int(relations.max()) + 1), np.int32
    made, count = TripleColumns(*(roomy(len(heads), kind) for kind in kinds)), 0
    for low, high in parts_of(_starts(heads, int(heads.max()) + 1, np.int32)):
        rows = rows_between(heads, low, high)
        part = _sorted_once([heads[rows] - low, relations[rows], tails[rows]])
        some = slice(count, count + len(part.heads))
        made.heads[some], made.relations[some], made.tails[some] = part.heads + low, part.relations, part.tails
        count = some.stop
    return TripleColumns(*(column[:count] for column in made))


def _sorted_once(columns: list[Array]) -> TripleColumns:
    """Return triples sorted, each once. The list is emptied."""
    widths = _widths(columns)
    if sum(widths) > _BITS:
        return _once(columns, _order_of(columns))[0]
    codes = _packed(columns, widths)
    columns.clear()
    codes.sort()
    if len(codes) and not (is_first := are_first(codes)).all():
        codes = codes[is_first]
    _, of_relation, of_tail = widths
    kinds = np.int32, id_type(1 << of_relation), np.int32
    made = TripleColumns(*(np.empty(len(codes), kind) for kind in kinds))
    for block in blocks(len(codes)):
        some = codes[block]
        made.tails[block] = some & ((1 << of_tail) - 1)
        some >>= of_tail
        made.relations[block] = some & ((1 << of_relation) - 1)
        made.heads[block] = some >> of_relation
    return made


def _starts(ids: Array, size: int, kind: type[np.signedinteger]) -> Array:
    """Return the first row of each id below a size, in rows sorted by id, and the number of rows: shape (size + 1)."""
    starts = roomy(size + 1, kind)
    starts[:] = 0
    for block in blocks(len(ids)):
        np.add.at(starts[1:], ids[block], kind(1))
    return np.cumsum(starts, dtype=kind, out=starts)


def parts_of(starts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of entities, the end excluded, of about `PART` rows each, or a 32nd of all rows if that is more.

    An entity with more rows may be a range of its own.

    Args:
        starts: The start of the rows of each entity, and the last end.
    """
    rows = int(starts[-1])
    bounds = np.arange(0, max(rows, 1), max(PART, rows // 32)).astype(starts.dtype)
    yield from pairwise(distinct(np.append(starts.searchsorted(bounds), len(starts) - 1)).tolist())


def rows_between(ids: Array, low: int, high: int) -> Array:
    """Return the rows whose ids are in a range, ascending: int64."""
    found = (block.start + np.flatnonzero((ids[block] >= low) & (ids[block] < high)) for block in blocks(len(ids)))
    return np.concatenate([np.empty(0, np.int64), *found])


def rank_triples(columns: list[Array]) -> tuple[TripleColumns, Array]:
    """Sort triples, and drop repeated ones.

    Also return the position of each given triple among them.

    Args:
        columns: As of `sort_triples`.

    Raises:
        InvalidArgumentError: As of `sort_triples`.
    """
    _check_widths(columns)
    widths = _widths(columns)
    is_wide = sum(widths) > _BITS
    # The sort by one number takes little more than a pass if most triples are in order.
    order = _order_of(columns) if is_wide else np.argsort(_packed(columns, widths), kind="stable")
    triples, is_first = _once(columns, order)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_first) - 1
    return triples, ranks


def _order_of(columns: Sequence[Array]) -> Array:
    """Return the order of rows by several columns, the first of which counts most. Equal rows keep their order.

    Each pass sorts by as many columns as fit in one number with the place of the row, from the last column on.
    """
    count = len(columns[0])
    of_place = max(count - 1, 0).bit_length()
    left, order = list(zip(columns, _widths(columns), strict=True)), np.arange(count, dtype=np.int32)
    while left:
        some = [left.pop()]
        while left and sum(width for _, width in (left[-1], *some)) + of_place <= _BITS:
            some.insert(0, left.pop())
        codes = _packed([column[order] for column, _ in some], [width for _, width in some])
        codes <<= of_place
        for block in blocks(count):
            codes[block] |= np.arange(block.start, block.stop)
        codes.sort()
        codes &= (1 << of_place) - 1
        order = order[codes]
    return order


def _once(columns: list[Array], order: Array) -> tuple[TripleColumns, Array]:
    """Return triples in an order, each once, and which of the rows are the first of theirs. The list is emptied."""
    heads, relations, tails = (column[order] for column in columns)
    columns.clear()
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1]) | (tails[1:] != tails[:-1])
    relations = relations.astype(id_type(int(relations.max(initial=0)) + 1), copy=False)
    triples = (heads.astype(np.int32, copy=False), relations, tails.astype(np.int32, copy=False))
    return TripleColumns(*(column[is_first] for column in triples)), is_first


def _check_widths(columns: Sequence[Array]) -> None:
    if len(columns[0]) > MAX_COUNT or any(int(column.max(initial=0)) >= MAX_COUNT for column in columns):
        raise InvalidArgumentError(
            f"KnowledgeGraph: a graph holds at most {MAX_COUNT:,} facts and as many entities, as ids of 32 bits allow.",
            hint_python="Read a part of it, or leave the graph in its database: GraphIndex.connect.",
            hint_shell="Read a part of it, or leave the graph in its database, and give its address.",
        )


def id_type(size: int) -> type[np.signedinteger]:
    """Return the type of ids of relations below a size: int16 or int32.

    It also holds their labels, and one beyond.

    Example:
        >>> id_type(16_383).__name__, id_type(16_384).__name__
        ('int16', 'int32')
    """
    return np.int16 if 2 * size <= np.iinfo(np.int16).max else np.int32


def blocks(count: int) -> Iterator[slice]:
    """Yield slices that divide rows into blocks of at most `BLOCK`."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def _widths(columns: Sequence[Array]) -> list[int]:
    """Return how many bits the ids of each column take."""
    return [int(column.max(initial=0)).bit_length() for column in columns]


def _packed(columns: Sequence[Array], widths: Sequence[int]) -> Array:
    """Return one int64 for each row, which sorts as the row does."""
    codes = columns[0].astype(np.int64)
    for column, width in zip(columns[1:], widths[1:], strict=True):
        codes <<= width
        codes |= column
    return codes


Bools = npt.NDArray[np.bool_]
Label = TypeVar("Label", int, Array)


class Adjacency(NamedTuple):
    """Every triple twice, in the rows of its head and its tail.

    The row of an entity holds first its forward entries, with the entity as head, and then its backward entries, with
    the entity as tail. Each half ascends by label, and by neighbor within a label. A self-loop is in both halves of its
    row. All columns are signed integers of the narrowest type that holds them: widen them before arithmetic that may
    leave it.

    Attributes:
        indptr: int32, or int64 if that is too narrow, shape (entities + 1): row e is `indptr[e]:indptr[e + 1]`.
        first_triples: Of the type of `indptr`, shape (entities + 1): the triples with head e have the ids
            `first_triples[e]:first_triples[e + 1]`.
        neighbors: int32, shape (2 * triples): the entity at the other end.
        labels: int16, or int32 if that is too narrow, shape (2 * triples): `label_of(relation, False)` of a forward
            entry, `label_of(relation, True)` of a backward one.
        backward_triples: int32, shape (triples): the ids of the triples of all backward entries, row after row.
    """

    indptr: Array
    first_triples: Array
    neighbors: Array
    labels: Array
    backward_triples: Array

    @classmethod
    def of_edges(cls, edges: Array, entities: int) -> Adjacency:
        """Sort triples into rows, and drop repeated ones.

        Args:
            edges: int, shape (triples, 3): ids of head, relation and tail.
            entities: The number of entities.
        """
        return cls.of_triples(sort_triples(list(edges.T)), entities)

    @classmethod
    def of_triples(cls, triples: TripleColumns, entities: int) -> Adjacency:
        """Make the rows of sorted triples.

        Args:
            triples: Each triple once, sorted.
            entities: The number of entities.
        """
        heads, relations, tails = triples
        count = len(heads)
        first_triples, first_backward = (_starts(ends, entities, offset_type(2 * count)) for ends in (heads, tails))
        indptr = first_triples + first_backward
        ids, neighbors = roomy(count, np.int32), roomy(2 * count, np.int32)
        labels = roomy(2 * count, id_type(int(relations.max(initial=0)) + 1))
        for low, high in parts_of(indptr):
            forward, backward = (slice(first[low], first[high]) for first in (first_triples, first_backward))
            at = np.arange(forward.start, forward.stop) + first_backward[heads[forward]]
            neighbors[at], labels[at] = tails[forward], label_of(relations[forward], False)
            by_tail = rows_between(tails, low, high)
            by_tail = by_tail[_order_of([tails[by_tail] - low, relations[by_tail]])]
            at = np.arange(backward.start, backward.stop) + first_triples[tails[by_tail] + 1]
            neighbors[at], labels[at] = heads[by_tail], label_of(relations[by_tail], True)
            ids[backward] = by_tail
        return cls(indptr, first_triples, neighbors, labels, ids)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array]) -> Self:
        """Read back what `columns` returned."""
        return cls(*(columns[f"adjacency.{name}"] for name in cls._fields))

    def columns(self) -> dict[str, Array]:
        """Return the arrays by the names of their columns."""
        return {f"adjacency.{name}": column for name, column in self._asdict().items()}

    # --- one entity ---------------------------------------------------------------------------------------------------

    def row(self, entity: int) -> slice:
        """Return the range of the entries of an entity."""
        return slice(int(self.indptr[entity]), int(self.indptr[entity + 1]))

    def half(self, entity: int, backward: bool) -> slice:
        """Return the range of the forward entries of an entity, or of its backward ones."""
        return slice(*map(int, half_of(self, entity, backward)))

    def entries_with(self, entity: int, label: int) -> slice:
        """Return the range of the entries of an entity with a label.

        Cost: O(log(degree)).

        Example:
            >>> from kg_retrievers.graph import KnowledgeGraph
            >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Adams"), ("Her", "starring", "Phoenix")])
            >>> adjacency = graph.adjacency
            >>> adjacency.neighbors[adjacency.entries_with(graph.entities.find("Her"), label_of(0, False))].tolist()
            [1, 2]
        """
        half = self.half(entity, bool(is_backward(label)))
        if not 0 <= label < np.iinfo(self.labels.dtype).max:
            return slice(half.start, half.start)
        first, last = self.labels[half].searchsorted(np.array([label, label + 1], self.labels.dtype)).tolist()
        return slice(half.start + first, half.start + last)

    def has_label(self, entity: int, label: int) -> bool:
        """Return whether an entity has an entry with a label.

        Cost: O(log(degree)).
        """
        entries = self.entries_with(entity, label)
        return bool(entries.start < entries.stop)

    def row_triples(self, entity: int) -> Array:
        """Return the ids of the triples of an entity, int32.

        There is one for each entry of its row, in their order.
        """
        row = self.row(entity)
        return self.triples_of(np.arange(row.start, row.stop), entity)

    # --- many entities ------------------------------------------------------------------------------------------------

    def ranges_with(self, entities: Array, label: int) -> tuple[Array, Array]:
        """Return the ranges of the entries with a label in the rows of entities.

        A range has a first entry and an end.

        Cost: some dozens of array operations: one binary search for all rows at once.
        """
        if len(entities) == 1:  # most walks are from one entity at a time, and are mined by the thousand
            one = self.entries_with(int(entities[0]), label)
            return np.array([one.start]), np.array([one.stop])
        low, high = half_of(self, entities, bool(is_backward(label)))
        firsts = _first_not_below(self.labels, low, high, label)
        return firsts, _first_not_below(self.labels, firsts, high, label + 1)

    def triples_of(self, entries: Array, entities: Array | int) -> Array:
        """Return the ids of the triples of entries: int32.

        Args:
            entries: Positions of entries, integers of shape (n).
            entities: The entity of the row of each, or the one of all.

        Example:
            >>> adjacency = Adjacency.of_edges(np.array([[1, 0, 2], [0, 0, 1], [1, 1, 0]]), 3)
            >>> adjacency.triples_of(np.arange(6), np.array([0, 0, 1, 1, 1, 2])).tolist()
            [0, 2, 1, 2, 0, 1]
        """
        behind = entries - self.first_triples[entities + 1]
        ids = np.asarray(entries - self.indptr[entities] + self.first_triples[entities])
        backward = np.flatnonzero(ids >= self.first_triples[entities + 1])
        ids[backward] = self.backward_triples[behind[backward]]
        return ids.astype(np.int32, copy=False)

    # --- the whole graph ----------------------------------------------------------------------------------------------

    def entries_labelled(self, labels: int | Array) -> tuple[Array, Array]:
        """Return the entries with some labels in all rows, and their entities.

        There is one label or several. The entries ascend.

        Cost: a pass over the labels, 2 bytes an entry, and a binary search for each entry that is found.

        Example:
            >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [2, 0, 1], [2, 1, 0]]), 3)
            >>> entries, entities = adjacency.entries_labelled(label_of(0, False))
            >>> entities.tolist(), adjacency.neighbors[entries].tolist()
            ([0, 2], [1, 1])
        """
        entries = np.flatnonzero(np.isin(self.labels, labels) if np.ndim(labels) else self.labels == labels)
        return entries, self.entities_of(entries)

    def entities_of(self, entries: Array) -> Array:
        """Return the entity of the row of each entry: int64."""
        return self.indptr.searchsorted(entries.astype(self.indptr.dtype), "right") - 1


def _first_not_below(labels: Array, low: Array, high: Array, label: int) -> Array:
    """Return the first position of each range, sorted, whose label is not below one."""
    while (apart := low < high).any():
        middle = low + (high - low) // 2
        below = labels[np.where(apart, middle, 0)] < label
        low, high = np.where(apart & below, middle + 1, low), np.where(apart & ~below, middle, high)
    return low


# --- entries: for compiled code too -----------------------------------------------------------------------------------


def half_of(adjacency: Adjacency, entity: Any, backward: Any) -> tuple[Any, Any]:
    """Return the bounds of an entity's forward or backward entries.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0]]), 2)
        >>> adjacency.half(0, False), adjacency.half(0, True)
        (slice(0, 2, None), slice(2, 3, None))
    """
    begin, end = adjacency.indptr[entity], adjacency.indptr[entity + 1]
    middle = begin + (adjacency.first_triples[entity + 1] - adjacency.first_triples[entity])
    return (middle, end) if backward else (begin, middle)


def triple_of(adjacency: Adjacency, entity: Any, entry: Any) -> Any:
    """Return the id of the triple of an entry in an entity's row.

    Example:
        >>> adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0]]), 2)
        >>> [int(triple_of(adjacency, 0, entry)) for entry in range(3)]
        [0, 1, 2]
    """
    id = entry - adjacency.indptr[entity] + adjacency.first_triples[entity]
    after = adjacency.first_triples[entity + 1]
    return id if id < after else adjacency.backward_triples[entry - after]


# --- labels: for compiled code too ------------------------------------------------------------------------------------


def label_of(relation: Label, backward: Any) -> Label:
    """Return the label of a relation.

    It is crossed from head to tail, or `backward` from tail to head.

    Example:
        >>> label_of(3, False), label_of(3, True), label_of(np.array([0, 3]), True).tolist()
        (6, 7, [1, 7])
    """
    label: Label = 2 * relation + backward
    return label


def relation_of(label: Label) -> Label:
    """Return the relation of a label.

    Example:
        >>> relation_of(7), relation_of(np.array([1, 6])).tolist()
        (3, [0, 3])
    """
    return label >> 1


@overload
def is_backward(label: int) -> bool: ...
@overload
def is_backward(label: Array) -> Bools: ...
def is_backward(label: Any) -> Any:
    """Return whether a label crosses its relation from tail to head.

    Example:
        >>> is_backward(7), is_backward(np.array([1, 6])).tolist()
        (True, [True, False])
    """
    return (label & 1) == 1


def reversed_label(label: Label) -> Label:
    """Return the label of the same relation, crossed the other way.

    Example:
        >>> reversed_label(7), reversed_label(np.array([1, 6])).tolist()
        (6, [0, 7])
    """
    return label ^ 1


def translated_label(label: int, names: StringTable, others: StringTable) -> int:
    """Return the label of the relation of the same name in another graph.

    It is below 0 if that graph lacks the relation.

    Args:
        label: The label in one graph. A label below 0 stays.
        names: The relations of that graph.
        others: The relations of the other graph.
    """
    return label if label < 0 else label_of(others.find(names[relation_of(label)]), is_backward(label))


def label_count(relations: int) -> int:
    """Return how many labels a number of relations has.

    All of them are below it.

    Example:
        >>> label_count(4) > label_of(3, True)
        True
    """
    return 2 * relations


class Edges:
    """The triples by id, sorted by head, relation and tail. Each use reads them again, and nothing is kept.

    Args:
        adjacency: The triples by entity.

    Example:
        >>> edges = Edges(Adjacency.of_edges(np.array([[2, 0, 1], [0, 1, 2]]), 3))
        >>> len(edges), edges[1].tolist(), edges[[1, 0]].tolist(), edges.tails.tolist()
        (2, [2, 0, 1], [[2, 0, 1], [0, 1, 2]], [2, 1])
    """

    def __init__(self, adjacency: Adjacency) -> None:
        """Take the adjacency as it is."""
        self._adjacency = adjacency

    def __len__(self) -> int:
        """The number of triples."""
        return len(self._adjacency.backward_triples)

    def __getitem__(self, ids: SupportsIndex | slice | Array | list[int]) -> Array:
        """Return head, relation and tail of one triple or several.

        One triple is int32, shape (3). Several are int32, shape (n, 3).

        Cost: a binary search for each triple.
        """
        adjacency = self._adjacency
        wanted = np.arange(*ids.indices(len(self))) if isinstance(ids, slice) else np.asarray(ids)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"Edges holds {len(self)} triples, but got {ids}.")
        wanted = wanted.astype(adjacency.first_triples.dtype)
        heads = adjacency.first_triples.searchsorted(wanted, "right") - 1
        entries = wanted - adjacency.first_triples[heads] + adjacency.indptr[heads]
        rows = np.empty((*wanted.shape, 3), np.int32)
        rows[..., 0], rows[..., 1] = heads, relation_of(adjacency.labels[entries])
        rows[..., 2] = adjacency.neighbors[entries]
        return rows

    def triple(self, id: int) -> tuple[int, int, int]:
        """Return head, relation and tail of one triple.

        It takes a quarter of the time of `edges[id]`.
        """
        indptr, first_triples, neighbors, labels, _ = self._adjacency
        if not 0 <= id < len(self):
            raise IndexError(f"Edges holds {len(self)} triples, but got {id}.")
        head = int(first_triples.searchsorted(first_triples.dtype.type(id), "right")) - 1
        entry = id - int(first_triples[head]) + int(indptr[head])
        return head, relation_of(int(labels[entry])), int(neighbors[entry])

    def find(self, head: int | None = None, relation: int | None = None, tail: int | None = None) -> Array:
        """Return the ids of the triples with the given parts, ascending.

        By default, all triples are returned.

        Cost: a binary search at each end that is given, and a pass over the entries of the end that has fewer. If only
        the relation is given, it is a pass over all entries.

        Example:
            >>> edges = Edges(Adjacency.of_edges(np.array([[0, 0, 1], [0, 1, 2], [3, 1, 2]]), 4))
            >>> edges.find(0).tolist(), edges.find(relation=1).tolist(), edges.find(3, None, 2).tolist()
            ([0, 1], [1, 2], [2])
        """
        adjacency = self._adjacency
        ends = [(head, tail, False), (tail, head, True)]
        found = [(end, other, self._entries(end, relation, back)) for end, other, back in ends if end is not None]
        if found:
            end, other, entries = min(found, key=lambda one: len(one[2]))
            at = np.array(entries, np.int64)
            return np.sort(adjacency.triples_of(at if other is None else at[adjacency.neighbors[at] == other], end))
        if relation is None:
            return np.arange(len(self))
        return adjacency.triples_of(*adjacency.entries_labelled(label_of(relation, False)))

    def _entries(self, entity: int, relation: int | None, backward: bool) -> range:
        """Return the entries of an entity in a direction.

        They are entries of one relation or of all.
        """
        adjacency = self._adjacency
        half = adjacency.half(entity, backward)
        found = half if relation is None else adjacency.entries_with(entity, label_of(relation, backward))
        return range(found.start, found.stop)

    @property
    def heads(self) -> Array:
        """The head of each triple: int32, shape (n)."""
        counts = np.diff(self._adjacency.first_triples)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    @property
    def relations(self) -> Array:
        """The relation of each triple: of the type of the labels, shape (n)."""
        labels: Array = self._adjacency.labels[self._is_forward]
        return relation_of(labels)

    @property
    def tails(self) -> Array:
        """The tail of each triple: int32, shape (n)."""
        tails: Array = self._adjacency.neighbors[self._is_forward]
        return tails

    @property
    def _is_forward(self) -> Array:
        """Whether each entry of the adjacency is a forward one."""
        return ~is_backward(self._adjacency.labels)


#: How many facts of each relation are kept.
FACTS = 32

#: How many entities are kept in all, each once for each of its labels.
KEPT = 2_000_000

#: A saved graph keeps its samples if it has at least so many triples. With fewer, they are chosen in less than half a
#: second.
SAVED_FROM = 4_000_000


class RelationSamples(NamedTuple):
    """Some facts of each relation, and some entities at its ends.

    Attributes:
        facts: int64, shape (relations): how many facts each relation has.
        sources: int64, shape (labels): how many entities have an entry with each adjacency label.
        heads: int32: the heads of some facts, by relation and then by head. There are at most `FACTS` of each relation.
        tails: int32: the tails of the same facts.
        kept: int32: some of the entities of sources, by label and ascending.
        kept_indptr: int64, shape (labels + 1): label l has `kept[kept_indptr[l]:kept_indptr[l + 1]]`.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Adams"), ("Her", "starring", "Phoenix")])
        >>> samples = RelationSamples.of_adjacency(graph.adjacency, 1)
        >>> samples.facts.tolist(), samples.sources.tolist(), samples.sources_of(label_of(0, True)).tolist()
        ([2], [1, 2], [1, 2])
    """

    facts: Array
    sources: Array
    heads: Array
    tails: Array
    kept: Array
    kept_indptr: Array

    @classmethod
    def of_adjacency(cls, adjacency: Adjacency, relations: int) -> Self:
        """Count and choose.

        Cost: four passes over the adjacency and two sorts of its labels, a block at a time.

        Args:
            adjacency: The graph.
            relations: The number of its relations.
        """
        size, forward = label_count(relations), label_of(np.arange(relations), False)
        facts, entries, _ = _choose(adjacency, _forward, size, FACTS)
        sources, kept, indptr = _choose(adjacency, _first_of_label, size, None)
        heads, of_kept = (adjacency.entities_of(some).astype(np.int32) for some in (entries, kept))
        return cls(facts[forward], sources, heads, adjacency.neighbors[entries], of_kept, indptr)

    @classmethod
    def take(cls, columns: dict[str, Array]) -> Self | None:
        """Take the result of `columns` out of the columns of a saved graph.

        None if it is not there.

        Raises:
            ValueError: If it does not fit the graph.
        """
        names = [f"{_PREFIX}{name}" for name in cls._fields]
        if any(name not in columns for name in names):
            return None
        samples = cls(*(columns.pop(name) for name in names))
        samples._check(len(columns["entities.hashes"]), len(columns["relations.hashes"]))
        return samples

    def _check(self, entities: int, relations: int) -> None:
        indptr, ids = self.kept_indptr, np.concatenate([self.heads, self.tails, self.kept])
        fits = len(self.facts) == relations and len(self.sources) == label_count(relations) == len(indptr) - 1
        fits = fits and not indptr[0] and indptr[-1] == len(self.kept) and bool((np.diff(indptr) >= 0).all())
        fits = fits and len(self.heads) == len(self.tails) == self.facts_indptr[-1]
        fits = fits and ids.min(initial=0) >= 0 and ids.max(initial=-1) < entities
        if not fits:
            raise ValueError(f"{_PREFIX}* is of another graph")

    def columns(self) -> dict[str, Array]:
        """Return all arrays by names that no other columns of a graph have."""
        return {f"{_PREFIX}{name}": column for name, column in zip(self._fields, self, strict=True)}

    @property
    def facts_indptr(self) -> Array:
        """Return the first position of each relation in `heads` and `tails`.

        The positions are int64, shape (relations + 1).
        """
        return starts_of(np.minimum(self.facts, FACTS))

    def sources_of(self, label: int) -> Array:
        """Return entities that have an entry with a label, ascending.

        See `has_all`.
        """
        some: Array = self.kept[self.kept_indptr[label] : self.kept_indptr[label + 1]]
        return some

    def ends_of(self, label: int) -> Array:
        """Return entities to which a label leads, ascending.

        See `has_all`.
        """
        return self.sources_of(int(reversed_label(label)))

    def all_sources_of(self, label: int, adjacency: Adjacency) -> Array:
        """Return all entities that have an entry with a label, ascending.

        These are the kept ones, or the result of a pass over the labels.

        Args:
            label: The label.
            adjacency: The graph of these samples.
        """
        return self.sources_of(label) if self.has_all(label) else distinct(adjacency.entries_labelled(label)[1])

    @property
    def is_whole(self) -> bool:
        """Whether `sources_of` returns all entities for each label."""
        return len(self.kept) == int(self.sources.sum())

    def has_all(self, label: int) -> bool:
        """Return whether `sources_of` returns all entities, and not only some."""
        return int(self.kept_indptr[label + 1] - self.kept_indptr[label]) == int(self.sources[label])


#: The beginning of the names of the columns.
_PREFIX = "relation_samples."


def _forward(adjacency: Adjacency, block: slice) -> Array:
    """Return which entries of a block lead forward: bool."""
    return ~is_backward(adjacency.labels[block])


def _first_of_label(adjacency: Adjacency, block: slice) -> Array:
    """Return which entries of a block are the first ones with their label in their row: bool."""
    before = max(block.start - 1, 0)
    firsts = are_first(adjacency.labels[before : block.stop])[block.start - before :]
    indptr = adjacency.indptr
    rows = indptr[slice(*indptr.searchsorted(np.array([block.start, block.stop], indptr.dtype)))]
    firsts[rows - block.start] = True
    return firsts


def _choose(
    adjacency: Adjacency, are_candidates: Callable[[Adjacency, slice], Array], size: int, most: int | None
) -> tuple[Array, Array, Array]:
    """Choose entries of each label, evenly spaced among all candidates with it.

    Args:
        adjacency: The entries and their labels.
        are_candidates: Returns which entries of a block may be chosen.
        size: How many labels there are.
        most: How many to choose of each label. None chooses `KEPT` in all.

    Returns:
        How many candidates each label has, the chosen entries by label and ascending, and the position at which the
            entries of each label begin.
    """

    def candidates() -> Iterator[tuple[Array, Array, Array]]:
        """Yield the candidates of each block, their labels, and how many each label has."""
        for block in blocks(len(adjacency.labels)):
            some = np.flatnonzero(are_candidates(adjacency, block))
            labels = adjacency.labels[block][some]
            if size <= 1 << 16:  # which sorts fast
                labels = labels.astype(np.uint16)
            yield some + block.start, labels, np.bincount(labels, minlength=size)

    counts = sum((of_block for *_, of_block in candidates()), np.zeros(size, np.int64))
    sizes = np.minimum(counts, _most(counts, KEPT) if most is None else most)
    indptr, chosen = starts_of(sizes), np.repeat(np.arange(size, dtype=np.int32), sizes)
    steps = np.maximum(counts - 1, 0) / np.maximum(sizes - 1, 1)
    numbers = ((np.arange(len(chosen)) - indptr[chosen]) * steps[chosen]).astype(np.int64)
    np.minimum(numbers, counts[chosen] - 1, out=numbers)
    numbers[indptr[1:][sizes > 1] - 1] = counts[sizes > 1] - 1
    entries, before = np.empty(len(chosen), np.int64), np.zeros(size, np.int64)
    for some, labels, of_block in candidates():
        order = np.argsort(labels, kind="stable")
        within = numbers - before[chosen]
        here = np.flatnonzero((within >= 0) & (within < of_block[chosen]))
        entries[here] = some[order[starts_of(of_block)[chosen[here]] + within[here]]]
        before += of_block
    return counts, entries, indptr


def _most(counts: Array, kept: int) -> int:
    """Return how many of each label may be kept.

    In all there are not more than `kept`, and there is at least one of each.
    """
    low, high = 1, max(int(counts.max(initial=0)), 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() <= kept else (low, middle - 1)
    return low
