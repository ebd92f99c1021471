"""What the relations of a graph join: types, values, and the relations around; of all relations at once.

It is told by `FACTS` facts of each relation, so that the cost depends on the number of relations alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import Adjacency, entries_between, is_backward, label_count, label_of
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.relation_samples import FACTS
from kg_retrievers.questions.zero_shot.scorer import KINDS

#: How many adjacency entries of an end are looked at, and how many of the relations found tell what the ends are.
ENTRIES_SEEN, RELATIONS_SEEN = 64, 5

#: The share of the ends of a relation that must be of a kind, or of a type, for the relation to have it.
SHARE = 0.6

#: Heads and tails of a relation are of one kind where at least this share of the fewer of them are both.
COMMON_ENTITIES = 0.1

#: Of so many of the fewer ones, where there are more than are kept of a label.
COMMON_SEEN = 64

#: Heads and tails of a relation are of one kind where the relations around both have at least this Jaccard index.
COMMON_RELATIONS = 1 / 3

#: How many entities are looked at at once: their labels fit into a cache.
_AT_ONCE = 1 << 12

_DATE = re.compile(r"[12]\d{3}|[12]\d{3}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.][12]\d{3}")
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*([eE][-+]?\d+)?(\s?[%\w°/]{1,4})?")

#: Whether a text that begins with a byte may be a value: a digit of any script, a sign, or the sign of a currency.
_MAY_BEGIN_VALUES = np.array([chr(byte) in "0123456789+-$" or byte >= 0x80 for byte in range(256)])


def value_kind(text: str) -> str:
    """Return what a text is as a value, one of `KINDS`.

    Example:
        >>> value_kind("1987-03-02"), value_kind("1,200 km"), value_kind("Apollo 13")
        ('date', 'number', '')
    """
    if _DATE.fullmatch(text):
        return "date"
    return "number" if _NUMBER.fullmatch(text) else ""


class RelationEnds(NamedTuple):
    """What each relation joins.

    Attributes:
        head_types: The type of most heads of each relation, or "".
        tail_types: The type of most tails of each relation, or "".
        around_heads: The labels that most heads of each relation have beside the relation's own.
        around_tails: The same of its tails.
        kinds: What the tails of each relation are as values, positions in `KINDS`; (relations).
        alike: Whether heads and tails of each relation are entities of one kind; (relations).
    """

    head_types: list[str]
    tail_types: list[str]
    around_heads: list[list[int]]
    around_tails: list[list[int]]
    kinds: Array
    alike: Array

    @classmethod
    def of_graph(cls, graph: KnowledgeGraph) -> RelationEnds:
        """Look at some facts of each relation, spread over all of them."""
        samples, relations = graph.relation_samples, np.arange(len(graph.relations))
        of_facts = np.repeat(relations, np.minimum(samples.facts, FACTS))
        around_heads = _around(graph.adjacency, samples.heads, of_facts, label_of(relations, False))
        around_tails = _around(graph.adjacency, samples.tails, of_facts, label_of(relations, True))
        alike = [_have_common_relations(*two) for two in zip(around_heads, around_tails, strict=True)]
        return cls(
            _types(graph, samples.heads, samples.facts_indptr),
            _types(graph, samples.tails, samples.facts_indptr),
            around_heads,
            around_tails,
            _kinds(graph, samples.tails, of_facts, samples.facts_indptr),
            _have_common_entities(graph) | np.array(alike, bool),
        )


def _around(adjacency: Adjacency, entities: Array, relations: Array, own: Array) -> list[list[int]]:
    """Return the labels that most of the entities of each relation have, the most frequent first.

    Args:
        adjacency: The graph.
        entities: Entities, by relation.
        relations: The relation of each.
        own: The label of each relation that does not count.
    """
    size, seen = label_count(len(own)), distinct(entities)
    labels, indptr = _labels_of(adjacency, seen, size)
    at = np.searchsorted(seen, entities)
    found = [np.empty((2, 0), np.int64)]
    for first, last in _parts(relations, _AT_ONCE):
        some = at[first:last]
        entries, of_entries = entries_between(indptr[some], indptr[some + 1])
        here = relations[first:last] - relations[first]
        codes, counts = np.unique(_pairs(here[of_entries], labels[entries], size), return_counts=True)
        found.append(np.stack([codes + relations[first] * size, counts]))
    codes, counts = np.concatenate(found, axis=1)
    of_codes, labels = np.divmod(codes, size)
    frequent = counts >= _least_counts(of_codes, counts, len(own))[of_codes]
    frequent &= labels != own[of_codes]
    ranked = np.sort(((of_codes * (FACTS + 1) + FACTS - counts) * size + labels)[frequent])
    bounds = np.searchsorted(ranked, np.arange(len(own) + 1) * (FACTS + 1) * size)
    return [
        (ranked[first : min(first + RELATIONS_SEEN, last)] % size).tolist() for first, last in pairwise(bounds.tolist())
    ]


def _least_counts(relations: Array, counts: Array, size: int) -> Array:
    """Return the count that the labels which are taken of each relation have at least; one more is that of its own."""
    numbers = np.bincount(relations * (FACTS + 1) + counts, minlength=size * (FACTS + 1)).reshape(size, FACTS + 1)
    enough = np.cumsum(numbers[:, ::-1], axis=1)[:, ::-1] > RELATIONS_SEEN
    least: Array = FACTS - np.argmax(enough[:, ::-1], axis=1)
    return np.where(enough.any(axis=1), least, 0)


def _parts(ascending: Array, most: int) -> list[tuple[int, int]]:
    """Return the bounds of parts of ascending values of about so many each; equal values are in one part."""
    cuts = np.unique(np.searchsorted(ascending, ascending[::most]))
    bounds = [*cuts.tolist(), len(ascending)]
    return list(pairwise(bounds))


def _pairs(firsts: Array, labels: Array, size: int) -> Array:
    """Return pairs as numbers, in the smallest type that holds them: half as long ones are sorted twice as fast."""
    kind = np.dtype(np.int32 if (int(firsts.max(initial=0)) + 1) * size < 1 << 31 else np.int64)
    pairs: Array = firsts.astype(kind)
    pairs *= size
    pairs += labels
    return pairs


def _labels_of(adjacency: Adjacency, entities: Array, size: int) -> tuple[Array, Array]:
    """Return the labels in the first `ENTRIES_SEEN` entries of entities, by label, each once; and where each begins."""
    found, counts = [np.empty(0, np.int64)], [np.zeros(1, np.int64)]
    for first in range(0, len(entities), _AT_ONCE):
        some = entities[first : first + _AT_ONCE]
        begin, middle, end = _rows(adjacency, some)
        halves = (begin, np.minimum(middle, begin + ENTRIES_SEEN)), (middle, np.minimum(end, middle + ENTRIES_SEEN))
        seen = [entries_between(*half) for half in halves]
        codes = np.sort(np.concatenate([_pairs(of, adjacency.labels[entries], size) for entries, of in seen]))
        of_codes = codes // size
        firsts = np.searchsorted(codes, np.arange(len(some)) * size)
        is_seen = np.arange(len(codes)) - firsts[of_codes] < ENTRIES_SEEN
        is_seen[1:] &= codes[1:] != codes[:-1]
        found.append(codes[is_seen] % size)
        counts.append(np.bincount(of_codes[is_seen], minlength=len(some)))
    return np.concatenate(found), np.cumsum(np.concatenate(counts))


def _rows(adjacency: Adjacency, entities: Array) -> tuple[Array, Array, Array]:
    """Return where the rows of entities begin, where their backward entries do, and where the rows end."""
    begin, end = adjacency.indptr[entities].astype(np.int64), adjacency.indptr[entities + 1].astype(np.int64)
    forward = adjacency.first_triples[entities + 1] - adjacency.first_triples[entities]
    return begin, begin + forward, end


def have_labels(adjacency: Adjacency, entities: Array, labels: Array) -> Array:
    """Return whether entities have an entry with a label each; bool, (n).

    Cost: some dozens of array operations, all rows halved at once.

    Args:
        adjacency: The graph.
        entities: Ids of entities, (n).
        labels: A label for each, (n).
    """
    begin, middle, end = _rows(adjacency, entities)
    backward = is_backward(labels)
    low, high = np.where(backward, middle, begin), np.where(backward, end, middle)
    after = high.copy()
    while (apart := low < high).any():
        between = (low + high) // 2
        below = adjacency.labels[np.where(apart, between, 0)] < labels
        low, high = np.where(apart & below, between + 1, low), np.where(apart & ~below, between, high)
    is_inside = low < after
    found: Array = is_inside & (adjacency.labels[np.where(is_inside, low, 0)] == labels)
    return found


def _have_common_entities(graph: KnowledgeGraph) -> Array:
    """Return for each relation whether many of its heads are tails of it, or many of its tails are heads."""
    samples, relations = graph.relation_samples, np.arange(len(graph.relations))
    heads, tails = (samples.sources[label_of(relations, backward)] for backward in (False, True))
    fewer = label_of(relations, tails < heads)
    entities, of_entities = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for relation, label in enumerate(fewer.tolist()):
        some = samples.sources_of(label)
        if not samples.has_all(label):
            some = some[np.linspace(0, len(some) - 1, min(COMMON_SEEN, len(some))).astype(np.int64)]
        entities.append(some)
        of_entities.append(np.full(len(some), relation))
    ends, of_ends = np.concatenate(entities), np.concatenate(of_entities)
    if not len(ends):
        return np.zeros(len(relations), bool)
    both = have_labels(graph.adjacency, ends, label_of(of_ends, ~is_backward(fewer[of_ends])))
    counts = (np.bincount(of_ends[which], minlength=len(relations)) for which in (both, slice(None)))
    common, seen = counts
    result: Array = common >= COMMON_ENTITIES * seen
    return result


def _have_common_relations(heads: Sequence[int], tails: Sequence[int]) -> bool:
    return len({*heads} & {*tails}) >= COMMON_RELATIONS * len({*heads, *tails}) > 0


def _kinds(graph: KnowledgeGraph, tails: Array, relations: Array, indptr: Array) -> Array:
    """Return what most of the tails of each relation are as values, positions in `KINDS`."""
    names, of_tails = np.unique(graph.labels[tails], return_inverse=True)
    kinds_of_names = np.zeros(len(names), np.int64)
    for at in np.flatnonzero(_MAY_BEGIN_VALUES[graph.names.first_bytes(names)]).tolist():
        kinds_of_names[at] = KINDS.index(value_kind(graph.names[int(names[at])]))
    kinds, least = np.zeros(len(indptr) - 1, np.int64), SHARE * np.diff(indptr)
    for kind in range(1, len(KINDS)):
        counts = np.bincount(relations[kinds_of_names[of_tails] == kind], minlength=len(kinds))
        kinds[(counts >= least) & (counts > 0)] = kind
    return kinds


def _types(graph: KnowledgeGraph, entities: Array, indptr: Array) -> list[str]:
    """Return the type that most of the entities of each relation have, the rarest of equally frequent ones, or ""."""
    bounds = indptr.tolist()
    if not len(graph.types):
        return [""] * (len(bounds) - 1)
    types_of = {entity: graph.entity_types(entity) for entity in np.unique(entities).tolist()}
    return [
        _type(graph, [types_of[entity] for entity in entities[first:last].tolist()]) for first, last in pairwise(bounds)
    ]


def _type(graph: KnowledgeGraph, types: Sequence[Sequence[int]]) -> str:
    counts = Counter(kind for of_one in types for kind in of_one)
    if not counts:
        return ""
    most = max(counts.values())
    if most < SHARE * len(types):
        return ""
    frequent = (kind for kind, count in counts.items() if count == most)
    kind = min(frequent, key=lambda kind: (len(graph.type_entities(kind)), kind))
    return readable(local_name(graph.types[kind]))
