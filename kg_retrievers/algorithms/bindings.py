"""What the unknowns of a pattern are together, joined from the facts of each of its edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kg_retrievers.errors import SearchBudgetError

#: The most rows of a join.
MAX_ROWS = 2_000_000

#: What some unknowns are together.
Row = tuple[int, ...]


class Edge(NamedTuple):
    """An edge of a pattern with its facts.

    Attributes:
        unknowns: What it joins, any numbers: its head, its tail, and its relation where that is unknown.
        rows: What they are together.
    """

    unknowns: tuple[int, ...]
    rows: Iterable[Row]


def joined_bindings(
    edges: Sequence[Edge], wanted: Sequence[int], different: Sequence[tuple[int, int]] = ()
) -> set[Row]:
    """Return what some unknowns of a pattern are together in at least one match.

    Edges are joined one after the other, each next to what is joined already; an unknown that nothing further needs is
    dropped at once, so that on a tree there are never more rows than the wanted unknowns and one edge allow.

    Args:
        edges: The edges of a pattern.
        wanted: The unknowns to return, in this order.
        different: Pairs that must not be the same.

    Raises:
        SearchBudgetError: If there are more than `MAX_ROWS` rows at a time.

    Example:
        >>> directed, starring = Edge((0, 1), [(7, 8), (7, 9)]), Edge((1, 2), [(8, 3), (9, 3), (9, 4)])
        >>> sorted(joined_bindings([directed, starring], [0, 2]))
        [(7, 3), (7, 4)]
    """
    left = list(edges)
    unknowns: list[int] = []
    rows: set[Row] = {()}
    while left:
        edge = next((edge for edge in left if {*edge.unknowns} & {*unknowns}), left[0])
        left.remove(edge)
        unknowns, rows = _joined(unknowns, rows, edge)
        rows = {row for row in rows if _differ(unknowns, row, different)}
        needed = {*wanted, *(unknown for later in left for unknown in later.unknowns)}
        needed |= {unknown for pair in different for unknown in pair if not {*pair} <= {*unknowns}}
        kept = [position for position, unknown in enumerate(unknowns) if unknown in needed]
        unknowns, rows = [unknowns[at] for at in kept], {tuple(row[at] for at in kept) for row in rows}
    order = [unknowns.index(unknown) for unknown in wanted]
    return {tuple(row[at] for at in order) for row in rows}


def _joined(unknowns: list[int], rows: set[Row], edge: Edge) -> tuple[list[int], set[Row]]:
    """Join rows with those of an edge."""
    new = [unknown for unknown in dict.fromkeys(edge.unknowns) if unknown not in unknowns]
    shared = [unknown for unknown in dict.fromkeys(edge.unknowns) if unknown in unknowns]
    options: dict[Row, set[Row]] = defaultdict(set)
    for row in edge.rows:
        value = dict(zip(edge.unknowns, row, strict=True))
        if all(value[unknown] == one for unknown, one in zip(edge.unknowns, row, strict=True)):  # a loop ends in itself
            options[tuple(value[one] for one in shared)].add(tuple(value[one] for one in new))
    at = [unknowns.index(unknown) for unknown in shared]
    joined: set[Row] = set()
    for row in rows:
        joined.update(row + more for more in options.get(tuple(row[position] for position in at), ()))
        if len(joined) > MAX_ROWS:
            raise SearchBudgetError(f"joined_bindings: more than {MAX_ROWS} combinations of the pattern's unknowns.")
    return unknowns + new, joined


def _differ(unknowns: Sequence[int], row: Row, different: Sequence[tuple[int, int]]) -> bool:
    value = dict(zip(unknowns, row, strict=True))
    pairs = ((one, other) for one, other in different if one in value and other in value)
    return all(value[one] != value[other] for one, other in pairs)
