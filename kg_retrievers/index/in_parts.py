"""Work on many things over a connected graph, as many at once as fit into a part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.reach import Reach

Item = TypeVar("Item")
Result = TypeVar("Result")

#: How many things are worked on at once.
AT_ONCE = 1_000

#: The most facts of a connected graph from which the pattern of some examples is learned.
LEARNED_FACTS = 200_000


def in_parts(
    index: GraphIndex,
    items: Sequence[Item],
    reach: Callable[[Sequence[Item]], Reach],
    work: Callable[[Sequence[Item]], list[Result]],
) -> list[Result]:
    """Return what some work gives for each of many things, on parts of the graph that hold what it looks at.

    Where the part for several things would be too large, they are halved; that for one thing may be cut
    (`GraphIndex.is_cut`). A graph that is not connected is at hand as a whole, for all things together.

    Args:
        index: The indexed graph.
        items: The things.
        reach: Returns what the work on some of them looks at.
        work: Returns a result for each of some things.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> index = GraphIndex.build(graph, HashedEmbeddings())
        >>> around = lambda keys: Reach(tuple(keys), 1)
        >>> in_parts(index, ["Her"], around, lambda keys: [len(list(index.graph.triples(key))) for key in keys])
        [1]
    """
    if not index.is_connected:
        return work(items)
    return list(chain.from_iterable(_halved(index, some, reach, work) for some in _batches(items)))


def _batches(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE)]


def _halved(
    index: GraphIndex,
    items: Sequence[Item],
    reach: Callable[[Sequence[Item]], Reach],
    work: Callable[[Sequence[Item]], list[Result]],
) -> list[Result]:
    done = index.within(reach(items), partial(_unless_cut, index, items, work))
    if done is not None:
        return done
    half = len(items) // 2
    return [*_halved(index, items[:half], reach, work), *_halved(index, items[half:], reach, work)]


def _unless_cut(
    index: GraphIndex, items: Sequence[Item], work: Callable[[Sequence[Item]], list[Result]]
) -> list[Result] | None:
    return None if index.is_cut and len(items) > 1 else work(items)
