"""Which ends of relations are one class of entities: those that share many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, entries_between, reversed_label
from kg_retrievers.graph.columns import Array, distinct, spread

#: Ends of two relations are one class where at least this share of those of one of them are ends of the other, too.
COMMON = 0.5

#: How many ends of a relation are looked at for that, spread over all of them.
ENDS_SEEN = 64

#: How many labels, and how many adjacency entries of entities, are looked at at once.
_LABELS, _ENTRIES = 64, 1 << 21


def class_groups(adjacency: Adjacency, ends: Sequence[Array], entities: Array) -> Array:
    """Return the group of each label: those whose ends share many entities, directly or by way of others.

    Args:
        adjacency: The graph.
        ends: Entities to which each label leads.
        entities: Which labels lead to entities rather than values; others are groups of their own.
    """
    parents = np.arange(len(ends))
    for one, other in _alike(adjacency, ends, entities):
        if parents[one] != parents[other]:
            parents[parents == parents[one]] = parents[other]
    _, groups = np.unique(parents, return_inverse=True)
    return groups


def _alike(adjacency: Adjacency, ends: Sequence[Array], entities: Array) -> Iterator[tuple[int, int]]:
    """Yield the pairs of labels of which many ends of the first are ends of the second, ascending."""
    ones = np.flatnonzero(entities)
    seen = [spread(ends[one], ENDS_SEEN) for one in ones.tolist()]
    if not seen:
        return
    different = distinct(np.concatenate(seen))
    labels, indptr = leading_labels(adjacency, different)
    for first in range(0, len(ones), _LABELS):
        some = seen[first : first + _LABELS]
        sizes = np.array([len(of_one) for of_one in some])
        at = np.searchsorted(different, np.concatenate(some))
        entries, of_entries = entries_between(indptr[at], indptr[at + 1])
        of_ends = np.repeat(np.arange(len(some)), sizes)
        codes = of_ends[of_entries] * len(ends) + labels[entries]
        counts = np.bincount(codes, minlength=len(some) * len(ends)).reshape(len(some), len(ends))
        least = np.maximum(COMMON * sizes[:, None], 1)  # a relation without facts is like no other
        of_some, others = np.nonzero((counts >= least) & entities)
        yield from zip(ones[first + of_some].tolist(), others.tolist(), strict=True)


def leading_labels(adjacency: Adjacency, entities: Array) -> tuple[Array, Array]:
    """Return the labels that lead to each of some entities, each once, and where those of each entity begin.

    Args:
        adjacency: The graph.
        entities: Ids of entities, (n).
    """
    degrees = adjacency.indptr[entities + 1] - adjacency.indptr[entities]
    parts = np.cumsum(degrees, dtype=np.int64) // _ENTRIES
    found, counts = [adjacency.labels[:0]], [np.zeros(1, np.int64)]
    for some in np.split(entities, np.flatnonzero(np.diff(parts)) + 1):
        entries, of_entries = entries_between(adjacency.indptr[some], adjacency.indptr[some + 1])
        labels = adjacency.labels[entries]
        firsts = np.ones(len(entries), bool)
        firsts[1:] = (labels[1:] != labels[:-1]) | (of_entries[1:] != of_entries[:-1])
        found.append(reversed_label(labels[firsts]))
        counts.append(np.bincount(of_entries[firsts], minlength=len(some)))
    return np.concatenate(found), np.cumsum(np.concatenate(counts))
