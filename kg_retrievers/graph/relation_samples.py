"""What each relation of a graph joins: how many facts and entities, and some of them, spread over all.

All entities at both ends of relations are kept where they are few in total, as in graphs of a million triples; of more,
so many for each label, evenly spaced, that `KEPT` are kept in all. Nothing here depends on the order of triples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, entries_between, label_count, label_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct

#: How many facts of each relation are kept.
FACTS = 32

#: How many entities are kept in all, each once for each of its labels.
KEPT = 2_000_000

#: From so many triples on a saved graph keeps its samples; of fewer they are chosen in less than half a second.
SAVED_FROM = 4_000_000

#: How many adjacency entries are looked at at once.
BLOCK = 2_000_000


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

        Cost: two passes over the adjacency in blocks; about 50 ns a triple.

        Args:
            adjacency: The graph.
            relations: The number of its relations.
        """
        entries, sources = (np.zeros(label_count(relations), np.int64) for _ in range(2))
        for block in _blocks(adjacency):
            entries += np.bincount(block.labels, minlength=len(entries))
            sources += np.bincount(block.labels[block.firsts], minlength=len(sources))
        forward = label_of(np.arange(relations), False)
        is_forward = np.zeros(len(entries), bool)
        is_forward[forward] = True
        facts = _Chooser(np.where(is_forward, entries, 0), FACTS)
        kept = _Chooser(sources, _most(sources, KEPT))
        for block in _blocks(adjacency):
            facts.choose(block.first, np.flatnonzero(is_forward[block.labels]), block.labels)
            kept.choose(block.first, np.flatnonzero(block.firsts), block.labels)
        return cls(
            entries[forward],
            sources,
            adjacency.entities_of(facts.entries).astype(np.int32),
            adjacency.neighbors[facts.entries],
            adjacency.entities_of(kept.entries).astype(np.int32),
            kept.indptr,
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


class _Block(NamedTuple):
    """Entries of some rows: the position of the first, the labels, and whether each is the first of its row so."""

    first: int
    labels: Array
    firsts: Array


class _Chooser:
    """Chooses entries of each label, evenly spaced among all with it.

    Args:
        counts: How many entries of each label there are to choose from.
        most: How many to choose at most.

    Attributes:
        entries: The positions of the chosen entries, by label and ascending.
        indptr: Where those of each label begin.
    """

    def __init__(self, counts: Array, most: int) -> None:
        """Say which entries of each label are wanted, by their number among those with it."""
        sizes = np.minimum(counts, most)
        self.indptr = _indptr(sizes)
        self._size = int(counts.max(initial=0)) + 1
        labels = np.repeat(np.arange(len(counts)), sizes)
        places = np.arange(len(labels)) - self.indptr[labels]
        steps = np.maximum(counts - 1, 0) / np.maximum(sizes - 1, 1)
        numbers = np.minimum((places * steps[labels]).astype(np.int64), counts[labels] - 1)
        lasts = self.indptr[1:][sizes > 1] - 1
        numbers[lasts] = counts[sizes > 1] - 1
        self._wanted = labels * self._size + numbers
        self._seen = np.zeros(len(counts), np.int64)
        self.entries = np.zeros(len(labels), np.int64)

    def choose(self, first: int, candidates: Array, labels: Array) -> None:
        """Take those of some entries that are wanted, given by their positions in a block."""
        if not len(candidates):
            return
        of_candidates = labels[candidates]
        counts = np.bincount(of_candidates, minlength=len(self._seen))
        begin = np.arange(len(counts)) * self._size + self._seen
        chosen, of_chosen = entries_between(*np.searchsorted(self._wanted, [begin, begin + counts]))
        if len(chosen):
            order = np.argsort(_narrow(of_candidates), kind="stable")
            starts = np.cumsum(counts) - counts
            places = starts[of_chosen] + self._wanted[chosen] - begin[of_chosen]
            self.entries[chosen] = first + candidates[order[places]]
        self._seen += counts


def _blocks(adjacency: Adjacency) -> Iterator[_Block]:
    """Yield the entries of all rows, a few rows at a time."""
    indptr, row, rows = adjacency.indptr, 0, len(adjacency.indptr) - 1
    while row < rows:
        begin = int(indptr[row])
        last = indptr.dtype.type(min(begin + BLOCK, int(indptr[-1])))  # of another type it would have all of it copied
        after = min(max(int(indptr.searchsorted(last, "right")) - 1, row + 1), rows)
        end = int(indptr[after])
        labels = adjacency.labels[begin:end]
        if len(labels):
            firsts = np.empty(end - begin, bool)
            np.not_equal(labels[1:], labels[:-1], out=firsts[1:])
            starts = indptr[row:after].astype(np.int64) - begin
            firsts[starts[starts < len(firsts)]] = True
            yield _Block(begin, labels, firsts)
        row = after


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
