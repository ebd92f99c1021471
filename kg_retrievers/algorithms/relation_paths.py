"""Relation paths over a graph: which walks follow one, and which of them join two entities.

Source: L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model
Reasoning. ICLR 2024, arXiv:2310.01061, section 4. A relation path is a sequence of adjacency labels, as in
`graph/adjacency.py`: each crosses a triple of one relation, from head to tail or from tail to head.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import is_backward, reversed_label
from kg_retrievers.graph.columns import Array, distinct, entries_between
from kg_retrievers.graph.pattern import turns


class Walks(NamedTuple):
    """The walks that follow a relation path.

    Attributes:
        triples: int32, shape (n, hops): the ids of the triples that each walk crosses.
        ends: int32, shape (n): the entity at the end of each.
        truncated: Whether `max_walks` left some out.
    """

    triples: Array
    ends: Array
    truncated: bool


def path_turns(path: Sequence[Sequence[int]]) -> bool:
    """Tell whether walks along a relation path have both a forward and a backward step, or may have.

    Args:
        path: For each hop the labels that will do.
    """
    return len(path) > 1 and turns([bool(is_backward(label)) for labels in path for label in labels])


def path_ends(adjacency: Adjacency, start: int, path: Sequence[int], *, may_return: bool) -> Array:
    """Return the ends of walks along a relation path, ascending. Walks may cross a triple twice.

    Args:
        adjacency: The graph, both directions.
        start: The id of the entity at their start.
        path: The label of each hop.
        may_return: Whether walks may come back to `start`.
    """
    here = np.array([start], np.int64)
    for label in path:
        entries, _ = entries_between(*adjacency.ranges_with(here, label))
        here = distinct(adjacency.neighbors[entries])
        if not may_return:
            here = here[here != start]
    return here


def follow_relation_path(
    adjacency: Adjacency,
    seed: int,
    path: Sequence[Sequence[int]],
    *,
    max_walks: int,
    may_return: bool = False,
    may_repeat: bool = False,
) -> Walks:
    """Return the walks from an entity that cross triples of given labels.

    A triple that joins an entity to itself is crossed from head to tail only. Walks come by their first triple: by the
    labels as they are given, and then by neighbor. Then they come by their second one, and so on.

    Cost: O(hops * max_walks * log(largest degree)).

    Args:
        adjacency: The graph, both directions.
        seed: The id of an entity.
        path: For each hop the accepted labels.
        max_walks: The most walks to look at, 1 or more, at every hop. Further ones are left out.
        may_return: Whether walks may come back to `seed`, see `kg_retrievers.graph.pattern`.
        may_repeat: Whether walks may cross a triple twice.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> walks = follow_relation_path(graph.adjacency, graph.entities.find("Her"), [[0], [1]], max_walks=10)
        >>> walks.triples.tolist(), [graph.entities[end] for end in walks.ends]
        ([[0, 1]], ['Jackass'])
    """
    without = -1 if may_return else seed
    triples, ends, truncated = np.empty((1, 0), np.int32), np.array([seed], np.int32), False
    for labels in path:
        ranges = [adjacency.ranges_with(ends, label) for label in labels]
        firsts, lasts = (np.stack(bounds, axis=1).ravel() for bounds in zip(*ranges, strict=True))
        truncated |= bool((lasts - firsts).sum() > max_walks)
        entries, came = entries_between(firsts, lasts, max_walks)
        came //= len(labels)
        crossed, there = adjacency.triples_of(entries, ends[came]), adjacency.neighbors[entries]
        fits = (there != ends[came]) | ~is_backward(adjacency.labels[entries])
        fits &= there != without
        if not may_repeat:
            fits &= (triples[came] != crossed[:, None]).all(axis=1)
        triples, ends = np.concatenate([triples[came[fits]], crossed[fits, None]], axis=1), there[fits]
    return Walks(triples, ends, truncated)


def joining_relation_paths(
    adjacency: Adjacency, seed: int, end: int, *, max_hops: int, max_entries: int
) -> list[tuple[int, ...]]:
    """Return the relation paths by which walks lead from one entity to another, whether or not they turn back.

    Args:
        adjacency: The graph, both directions.
        seed: The id of the entity at their start.
        end: The id of the entity at their end.
        max_hops: The most triples of a walk, 1 or more.
        max_entries: The most adjacency entries to look at for one more hop. Beyond, walks of more hops are left out.

    Returns:
        The labels of each, one per hop. Shorter ones come first, then by label.
    """
    indptr, size = adjacency.indptr, len(adjacency.indptr) - 1
    kinds = int(np.iinfo(adjacency.labels.dtype).max) + 1  # more than any label, without a look at all
    row = slice(indptr[end], indptr[end + 1])
    order = np.argsort(adjacency.neighbors[row], kind="stable")
    before, last = adjacency.neighbors[row][order], reversed_label(adjacency.labels[row][order])
    # The walks so far: the position of the relation path of each in `paths`, and where it is.
    paths: list[tuple[int, ...]] = [()]
    path_of, here = np.zeros(1, np.int64), np.array([seed], np.int64)
    found: list[tuple[int, ...]] = []
    for hop in range(1, max_hops + 1):
        entries, came = entries_between(np.searchsorted(before, here), np.searchsorted(before, here, "right"))
        joined = distinct(path_of[came] * kinds + last[entries])
        found += [(*paths[key // kinds], key % kinds) for key in joined.tolist()]
        firsts, lasts = indptr[here], indptr[here + 1]
        if hop == max_hops or (lasts - firsts).sum() > max_entries:
            break
        entries, came = entries_between(firsts, lasts)
        keys, further = np.unique(path_of[came] * kinds + adjacency.labels[entries], return_inverse=True)
        paths = [(*paths[key // kinds], key % kinds) for key in keys.tolist()]
        path_of, here = np.divmod(distinct(further * size + adjacency.neighbors[entries]), size)
    return found


def relation_path_ends(
    adjacency: Adjacency, starts: Array, *, max_hops: int, max_entries: int | None = None, without: int = -1
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield the relation paths that walks from some entities follow, each with their ends.

    Shorter ones come first, then by label. Walks may turn back and cross a triple twice. They lead through all entities
    except `without`. If this is the only start, the ends are the matches of a pattern whose other nodes are not its
    known one.

    Cost: O(n log n) per relation path, for n adjacency entries of the entities that it leads to.

    Args:
        adjacency: The graph, both directions.
        starts: int, shape (n): the entities at the start of walks.
        max_hops: The most triples of a walk, 1 or more.
        max_entries: Ends with more adjacency entries than this in all are not gone on from. None for no limit.
        without: The id of an entity that no walk comes to.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> ends = relation_path_ends(graph.adjacency, np.array([0]), max_hops=2, without=0)
        >>> [(path, [graph.entities[end] for end in there]) for path, there in ends]
        [((0,), ['Jonze']), ((0, 1), ['Jackass'])]
    """
    indptr, size = adjacency.indptr, len(adjacency.indptr) - 1
    waiting: deque[tuple[tuple[int, ...], Array]] = deque([((), starts)])
    while waiting:
        path, here = waiting.popleft()
        firsts, lasts = indptr[here], indptr[here + 1]
        if max_entries is not None and (lasts - firsts).sum() > max_entries:
            continue
        entries, _ = entries_between(firsts, lasts)
        keys = distinct(adjacency.labels[entries].astype(np.int64) * size + adjacency.neighbors[entries])
        labels, ends = np.divmod(keys[keys % size != without], size)
        first_of_label = np.flatnonzero(np.diff(labels, prepend=-1))
        for label, there in zip(labels[first_of_label].tolist(), np.split(ends, first_of_label[1:]), strict=False):
            yield (*path, label), there
            if len(path) + 1 < max_hops:
                waiting.append(((*path, label), there))


def spread(ends: Array, most: int) -> Array:
    """Return the positions of at most `most` walks, ascending: the first to each end, then the second, and so on.

    Args:
        ends: The entity at the end of each walk.
        most: How many to keep, 0 or more.

    Example:
        >>> spread(np.array([7, 7, 7, 5, 5]), 3).tolist()
        [0, 1, 3]
    """
    order = np.argsort(ends, kind="stable")
    before = np.searchsorted(ends[order], ends[order])  # how many walks lead to lower ends
    turn = np.empty(len(ends), np.int64)
    turn[order] = np.arange(len(ends)) - before
    return np.sort(np.argsort(turn, kind="stable")[:most])
