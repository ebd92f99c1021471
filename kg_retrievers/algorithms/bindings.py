"""What the unknowns of a pattern are together, joined from the facts of each of its edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kg_retrievers.errors import SearchBudgetError

#: The most rows of a join.
MAX_ROWS = 2_000_000


class Edge(NamedTuple):
    """An edge of a pattern with its facts.

    Attributes:
        head: The node at its beginning, any number.
        tail: The node at its end.
        pairs: What both are together.
    """

    head: int
    tail: int
    pairs: Iterable[tuple[int, int]]


def joined_bindings(
    edges: Sequence[Edge], wanted: Sequence[int], different: Sequence[tuple[int, int]] = (), max_rows: int = MAX_ROWS
) -> set[tuple[int, ...]]:
    """Return what some nodes of a pattern are together in at least one match.

    Edges are joined one after the other, each next to what is joined already; a node that nothing further needs is
    dropped at once, so that on a tree there are never more rows than the wanted nodes and one edge allow.

    Args:
        edges: The edges of a connected pattern.
        wanted: The nodes to return, in this order.
        different: Pairs of nodes that must not be the same.
        max_rows: The most rows to hold.

    Raises:
        SearchBudgetError: If there are more.

    Example:
        >>> directed, starring = Edge(0, 1, [(7, 8), (7, 9)]), Edge(1, 2, [(8, 3), (9, 3), (9, 4)])
        >>> sorted(joined_bindings([directed, starring], [0, 2]))
        [(7, 3), (7, 4)]
    """
    left = list(edges)
    nodes: list[int] = []
    rows: set[tuple[int, ...]] = {()}
    while left:
        edge = next((edge for edge in left if edge.head in nodes or edge.tail in nodes), left[0])
        left.remove(edge)
        nodes, rows = _joined(nodes, rows, edge, max_rows)
        rows = {row for row in rows if _differ(nodes, row, different)}
        needed = {*wanted, *(node for later in left for node in (later.head, later.tail))}
        needed |= {node for pair in different for node in pair if not {*pair} <= {*nodes}}
        kept = [position for position, node in enumerate(nodes) if node in needed]
        nodes, rows = [nodes[at] for at in kept], {tuple(row[at] for at in kept) for row in rows}
    order = [nodes.index(node) for node in wanted]
    return {tuple(row[at] for at in order) for row in rows}


def _joined(
    nodes: list[int], rows: set[tuple[int, ...]], edge: Edge, max_rows: int
) -> tuple[list[int], set[tuple[int, ...]]]:
    """Join rows with the pairs of an edge."""
    new = [node for node in dict.fromkeys((edge.head, edge.tail)) if node not in nodes]
    shared = [node for node in dict.fromkeys((edge.head, edge.tail)) if node in nodes]
    options: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for head, tail in edge.pairs:
        if edge.head == edge.tail and head != tail:
            continue
        of_node = {edge.head: head, edge.tail: tail}
        options[tuple(of_node[node] for node in shared)].add(tuple(of_node[node] for node in new))
    at = [nodes.index(node) for node in shared]
    joined: set[tuple[int, ...]] = set()
    for row in rows:
        joined.update(row + more for more in options.get(tuple(row[position] for position in at), ()))
        if len(joined) > max_rows:
            raise SearchBudgetError(f"joined_bindings: more than {max_rows} combinations of the pattern's unknowns.")
    return nodes + new, joined


def _differ(nodes: Sequence[int], row: Sequence[int], different: Sequence[tuple[int, int]]) -> bool:
    of_node = dict(zip(nodes, row, strict=True))
    pairs = ((one, other) for one, other in different if one in of_node and other in of_node)
    return all(of_node[one] != of_node[other] for one, other in pairs)
