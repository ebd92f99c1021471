"""The order of triples: by head, then relation, then tail. Sorted as one integer a triple where 63 bits hold it.

One integer sorts several times faster than three columns, and in half the memory of an order of positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array

#: How many triples are worked on at once where whole columns of int64 would take much memory.
BLOCK = 1 << 22

_BITS = 63


class TripleColumns(NamedTuple):
    """Triples by column, sorted by head, relation and tail, each once: its position is its id.

    Attributes:
        heads: int32, shape (n).
        relations: int16 where `id_type` says so, else int32, shape (n).
        tails: int32, shape (n).
    """

    heads: Array
    relations: Array
    tails: Array


def sort_triples(columns: list[Array]) -> TripleColumns:
    """Sort triples, and drop repeated ones.

    Args:
        columns: Heads, relations and tails: three columns of ids. The list is emptied, so that its memory is free soon.

    Example:
        >>> sort_triples([np.array([2, 0, 2]), np.array([0, 1, 0]), np.array([1, 1, 1])]).heads.tolist()
        [0, 2]
    """
    widths = _widths(columns)
    if sum(widths) > _BITS:
        return rank_triples(columns)[0]
    codes = _packed(columns, widths)
    columns.clear()
    codes.sort()
    if len(codes) and not (is_first := _are_first(codes)).all():
        codes = codes[is_first]
    _, of_relation, of_tail = widths
    made = TripleColumns(
        np.empty(len(codes), np.int32), np.empty(len(codes), id_type(1 << of_relation)), np.empty(len(codes), np.int32)
    )
    for block in blocks(len(codes)):
        some = codes[block]
        made.tails[block] = some & ((1 << of_tail) - 1)
        some >>= of_tail
        made.relations[block] = some & ((1 << of_relation) - 1)
        made.heads[block] = some >> of_relation
    return made


def rank_triples(columns: list[Array]) -> tuple[TripleColumns, Array]:
    """Sort triples, and drop repeated ones; also return which of them each given triple is.

    Args:
        columns: As of `sort_triples`.
    """
    order = triple_order(*columns)
    heads, relations, tails = (column[order] for column in columns)
    columns.clear()
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1]) | (tails[1:] != tails[:-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_first) - 1
    relations = relations.astype(id_type(int(relations.max(initial=0)) + 1), copy=False)
    triples = (heads.astype(np.int32, copy=False), relations, tails.astype(np.int32, copy=False))
    return TripleColumns(*(column[is_first] for column in triples)), ranks


def triple_order(heads: Array, relations: Array, tails: Array) -> Array:
    """Return the positions of triples in the order of their columns, equal ones as they come.

    Cost: little more than a pass where most triples are in order.
    """
    widths = _widths((heads, relations, tails))
    if sum(widths) > _BITS:
        return np.asarray(np.lexsort((tails, relations, heads)))
    return np.asarray(np.argsort(_packed((heads, relations, tails), widths), kind="stable"))


def order_by_tail(triples: TripleColumns) -> Array:
    """Return the ids of triples by tail, then relation, then head: int32."""
    count = len(triples.heads)
    columns = triples.tails, triples.relations
    widths = [*_widths(columns), max(count - 1, 0).bit_length()]
    if sum(widths) > _BITS:
        return np.lexsort(columns[::-1]).astype(np.int32)
    codes = _packed((*columns, np.arange(count)), widths)
    codes.sort()
    codes &= (1 << widths[2]) - 1
    return codes.astype(np.int32)


def id_type(size: int) -> type[np.signedinteger]:
    """Return the type of ids of relations below a size, whose labels it holds too, and one beyond: int16 or int32.

    Example:
        >>> id_type(16_383).__name__, id_type(16_384).__name__
        ('int16', 'int32')
    """
    return np.int16 if 2 * size <= np.iinfo(np.int16).max else np.int32


def blocks(count: int) -> Iterator[slice]:
    """Yield the slices that divide a number of rows into blocks of at most `BLOCK`."""
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


def _are_first(ascending: Array) -> Array:
    """Return which values differ from the one before."""
    found = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=found[1:])
    return found
