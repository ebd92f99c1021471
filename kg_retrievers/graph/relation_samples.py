"""What each relation of a graph joins: how many facts and entities, and some of them, spread over all.

All entities at both ends of relations are kept where they are few in total, as in graphs of a million triples; of more,
so many for each label, evenly spaced, that `KEPT` are kept in all. Nothing here depends on the order of triples.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, is_backward, label_count, label_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct

#: How many facts of each relation are kept.
FACTS = 32

#: How many entities are kept in all, each once for each of its labels.
KEPT = 2_000_000

#: From so many triples on a saved graph keeps its samples; of fewer they are chosen in less than half a second.
SAVED_FROM = 4_000_000


class RelationSamples(NamedTuple):
    """Some facts of each relation, and some of the entities at both of its ends.

    Attributes:
        facts: int64, shape (relations): how many facts each relation has.
        sources: int64, shape (labels): how many entities have an entry with each adjacency label.
        heads: int32: the heads of some facts, by relation and then by head; at most `FACTS` of each relation.
        tails: int32: the tails of the same facts.
        kept: int32: some of these entities, by label and ascending.
        kept_indptr: int64, shape (labels + 1): those of label l are `kept[kept_indptr[l]:kept_indptr[l + 1]]`.

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

        Cost: some passes over the adjacency and two sorts of its labels, with about 40 bytes a triple.

        Args:
            adjacency: The graph.
            relations: The number of its relations.
        """
        labels, size = adjacency.labels, label_count(relations)
        firsts = np.ones(len(labels), np.bool_)
        np.not_equal(labels[1:], labels[:-1], out=firsts[1:])
        firsts[adjacency.indptr[:-1][np.diff(adjacency.indptr) > 0]] = True
        forward = label_of(np.arange(relations), False)
        facts, entries, _ = _choose(labels, np.flatnonzero(~is_backward(labels)), size, FACTS)
        sources, kept, indptr = _choose(labels, np.flatnonzero(firsts), size, None)
        return cls(
            facts[forward],
            sources,
            adjacency.entities_of(entries).astype(np.int32),
            adjacency.neighbors[entries],
            adjacency.entities_of(kept).astype(np.int32),
            indptr,
        )

    @classmethod
    def take(cls, columns: dict[str, Array]) -> Self | None:
        """Take what `columns` returned out of the columns of a saved graph; None where it is not there.

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
        facts, sources, indptr = self.facts, self.sources, self.kept_indptr
        fits = len(facts) == relations and len(sources) == label_count(relations) == len(indptr) - 1
        fits = fits and facts.min(initial=0) >= 0 and not indptr[0] and indptr[-1] == len(self.kept)
        fits = fits and bool((np.diff(indptr) >= 0).all() and (np.diff(indptr) <= sources).all())
        fits = fits and len(self.heads) == len(self.tails) == self.facts_indptr[-1]
        fits = fits and sources.max(initial=0) <= entities
        for ids in (self.heads, self.tails, self.kept):
            fits = fits and ids.min(initial=0) >= 0 and ids.max(initial=-1) < entities
        if not fits:
            raise ValueError(f"{_PREFIX}* is of another graph")

    def columns(self) -> dict[str, Array]:
        """Return all arrays by names that no other columns of a graph have."""
        return {f"{_PREFIX}{name}": column for name, column in zip(self._fields, self, strict=True)}

    @property
    def facts_indptr(self) -> Array:
        """Where the facts of each relation begin in `heads` and `tails`; int64, shape (relations + 1)."""
        return _indptr(np.minimum(self.facts, FACTS))

    def sources_of(self, label: int) -> Array:
        """Return entities that have an entry with a label, ascending; see `has_all`."""
        some: Array = self.kept[self.kept_indptr[label] : self.kept_indptr[label + 1]]
        return some

    def ends_of(self, label: int) -> Array:
        """Return entities to which a label leads, ascending; see `has_all`."""
        return self.sources_of(int(reversed_label(label)))

    def all_sources_of(self, label: int, adjacency: Adjacency) -> Array:
        """Return all entities that have an entry with a label, ascending: those kept, or a pass over the labels.

        Args:
            label: The label.
            adjacency: The graph of which these are the samples.
        """
        return self.sources_of(label) if self.has_all(label) else distinct(adjacency.entries_labelled(label)[1])

    @property
    def is_whole(self) -> bool:
        """Whether `sources_of` returns all entities for each label."""
        return len(self.kept) == int(self.sources.sum())

    def has_all(self, label: int) -> bool:
        """Return whether `sources_of` returns all entities, and not only some."""
        return int(self.kept_indptr[label + 1] - self.kept_indptr[label]) == int(self.sources[label])


#: What the names of the columns begin with.
_PREFIX = "relation_samples."


def _choose(labels: Array, candidates: Array, size: int, most: int | None) -> tuple[Array, Array, Array]:
    """Choose entries of each label, evenly spaced among all candidates with it.

    Args:
        labels: The labels of all entries.
        candidates: The entries to choose from, ascending.
        size: How many labels there are.
        most: How many to choose of each label; None chooses `KEPT` in all.

    Returns:
        How many candidates each label has, the chosen entries by label and ascending, and where those of each begin.
    """
    of_candidates = _narrow(labels[candidates])
    counts = np.bincount(of_candidates, minlength=size)
    sizes = np.minimum(counts, _most(counts, KEPT) if most is None else most)
    indptr, chosen = _indptr(sizes), np.repeat(np.arange(size), sizes)
    places = np.arange(len(chosen)) - indptr[chosen]
    steps = np.maximum(counts - 1, 0) / np.maximum(sizes - 1, 1)
    numbers = np.minimum((places * steps[chosen]).astype(np.int64), counts[chosen] - 1)
    numbers[indptr[1:][sizes > 1] - 1] = counts[sizes > 1] - 1
    order = np.argsort(of_candidates, kind="stable")
    return counts, candidates[order[_indptr(counts)[chosen] + numbers]], indptr


def _indptr(sizes: Array) -> Array:
    return np.append(0, np.cumsum(sizes, dtype=np.int64))


def _most(counts: Array, kept: int) -> int:
    """Return how many of each label may be kept so that there are not more than `kept` in all; at least one."""
    low, high = 1, max(int(counts.max(initial=0)), 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() <= kept else (low, middle - 1)
    return low


def _narrow(labels: Array) -> Array:
    """Return labels in a type that sorts fast, where they fit."""
    return labels.astype(np.uint16) if labels.max(initial=0) < 1 << 16 else labels
