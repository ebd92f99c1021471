"""The classes of entities that the relations of a graph join, and how near a noun is to each."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import entries_between, is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, spread
from kg_retrievers.graph.value_columns import NO_DAY, ValueColumns
from kg_retrievers.index.token_table import TokenTable
from kg_retrievers.questions.question_forms.class_groups import class_groups, leading_labels
from kg_retrievers.questions.question_forms.class_words import NAMES, ClassWords, naming_words, singular
from kg_retrievers.questions.zero_shot.scorer import mean_rows

#: The least cosine of a noun with the word that a relation has for it.
CALLED = 0.8

#: Numbers of four digits are years up to here.
LAST_YEAR = 2100

#: The most members of a class from which walks start, and of which the types are read.
MEMBERS, TYPES_SEEN = 2_000, 200

#: Relations whose tails are the kinds of their heads, whatever these are.
_KIND_OF = re.compile(r"(?:rdf )?type|instance of|is an?|is instance of|a")

#: How much a noun that is nearer to a class counts, beside the logarithm of how likely a walk is.
NOUN_WEIGHT = 8.0


class GraphClasses:
    """Groups of entities: ends of relations that share many entities.

    Args:
        graph: The graph.
        columns: The values of its labels.
        table: Gives the vectors of words.

    Attributes:
        of_label: The class of what each adjacency label leads to; (labels).
        members: The ids of the entities of each class, ascending; of some, where the graph keeps only these.
        kinds: What the members of each class are as values: "date", "number", "truth" or "".
        labels: The adjacency labels that lead to each class.
        counts: How many entities each label leads to.
    """

    def __init__(self, graph: KnowledgeGraph, columns: ValueColumns, table: TokenTable) -> None:
        """Group the ends of the relations."""
        self._graph, self._table, samples = graph, table, graph.relation_samples
        kind_of = kind_relations(graph)
        self._says_kind = [label_of(relation, False) for relation in kind_of]
        told = told_ends(graph)
        kinds = _value_kinds(columns, told)
        ends = [told[label] if kind else samples.ends_of(label) for label, kind in enumerate(kinds)]
        of_kind = np.isin(np.arange(len(ends)) // 2, kind_of)
        self.of_label = class_groups(graph.adjacency, ends, np.array([not kind for kind in kinds], bool) & ~of_kind)
        count = int(self.of_label.max(initial=-1)) + 1
        self.labels = [np.flatnonzero(self.of_label == group).tolist() for group in range(count)]
        self.members = [_union([ends[label] for label in labels]) for labels in self.labels]
        self.kinds = [kinds[labels[0]] for labels in self.labels]
        self.counts = samples.sources[reversed_label(np.arange(len(ends)))].tolist()
        self._single = np.repeat(samples.facts, 2) == samples.sources
        relations = [
            [(graph.relations[relation_of(label)], bool(is_backward(label))) for label in of_one]
            for of_one in self.labels
        ]
        self._words = ClassWords(table, relations, self._names(), self._types())
        self._values = np.array([bool(kind) for kind in self.kinds], bool)
        self._values[self.of_label[of_kind]] = True  # all that has a kind is no class of its own

    def _names(self) -> list[list[str]]:
        """Return the names of some members of each class, spread over all of them; none of values."""
        names, labels = self._graph.names, self._graph.labels
        return [
            [] if kind else [names[label] for label in labels[spread(members, NAMES)].tolist()]
            for members, kind in zip(self.members, self.kinds, strict=True)
        ]

    def _types(self) -> list[list[str]]:
        """Return the types of some members of each class, and what relations say that they are; none of values."""
        seen = [members[: 0 if kind else TYPES_SEEN] for members, kind in zip(self.members, self.kinds, strict=True)]
        types, said = self._graph.types, self._said_kinds(seen)
        found = [self._graph.types_among(some) if len(types) else [] for some in seen]
        return [
            [readable(name) for name in [*(local_name(types[kind]) for kind in of_one), *also]]
            for of_one, also in zip(found, said, strict=True)
        ]

    def _said_kinds(self, groups: Sequence[Array]) -> list[list[str]]:
        """Return the names of what relations say that the entities of each group are."""
        graph = self._graph
        if not self._says_kind:
            return [[] for _ in groups]
        entities = np.concatenate(groups)
        of_entities = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        size, found = len(graph.entities), [np.empty(0, np.int64)]
        for label in self._says_kind:
            entries, of_entries = entries_between(*graph.adjacency.ranges_with(entities, label))
            found.append(of_entities[of_entries] * size + graph.adjacency.neighbors[entries])
        named: list[list[str]] = [[] for _ in groups]
        for code in np.unique(np.concatenate(found)).tolist():
            named[code // size].append(graph.names[int(graph.labels[code % size])])
        return named

    def size_of(self, group: int) -> int:
        """Return how many members a class has; of one of which only some are known, the most to which a label leads."""
        return int(max(len(self.members[group]), *(self.counts[label] for label in self.labels[group])))

    def nearness(self, noun: str) -> Array:
        """Return how likely each class is what a noun means, as logits; those of values come last; (classes)."""
        if not noun:
            return np.zeros(len(self.labels))
        near: Array = np.where(self._values, 0.0, self._words.nearness(noun) / NOUN_WEIGHT)
        return near

    def closeness(self, noun: str) -> float:
        """Return the greatest cosine of a noun with a noun that names a class."""
        return self._words.closeness(mean_rows(self._table, [noun, singular(noun)]))

    def is_called(self, label: int, noun: str) -> bool:
        """Whether a relation calls the things from which a label leads by a noun, or nearly so."""
        named = naming_words(self._graph.relations[relation_of(label)], bool(is_backward(label)))
        if not named or not noun:
            return False
        rows = mean_rows(self._table, [noun, singular(noun)]) @ mean_rows(self._table, named).T
        return bool(rows.max() >= CALLED)

    def containing(self, entities: Sequence[int]) -> list[bool]:
        """Return for each class whether it has one of some entities."""
        found = np.zeros(len(self.labels), bool)
        labels, _ = leading_labels(self._graph.adjacency, np.array([one for one in entities if one >= 0], np.int64))
        found[self.of_label[labels]] = True
        has: list[bool] = found.tolist()
        return has

    def end_of(self, labels: Sequence[int]) -> int:
        """Return the class to which a walk with these adjacency labels leads."""
        return int(self.of_label[labels[-1]])

    def end_kind(self, labels: Sequence[int]) -> str:
        """Return what a walk leads to as values, one of `kinds`."""
        return self.kinds[self.end_of(labels)]

    def is_single(self, label: int) -> bool:
        """Whether a label leads from each entity to one other at most."""
        return bool(self._single[label])

    def defining_label(self, group: int) -> int:
        """Return the label that leads to the most members of a class."""
        return max(self.labels[group], key=lambda label: (self.counts[label], -label))


def value_kind_of(columns: ValueColumns, entities: Array) -> str:
    """Return what most of some entities are as values: "date", "number", "truth" or ""."""
    truths, dates = columns.truths[entities] >= 0, columns.first[entities] != NO_DAY
    numbers = ~np.isnan(columns.numbers[entities])
    if (dates & numbers).any() and (columns.numbers[entities][dates & numbers] > LAST_YEAR).mean() > 0.05:
        dates &= ~numbers  # ratings around 2000, say
    if truths.mean() > 0.8:
        return "truth"
    if dates.mean() > 0.8:
        return "date"
    return "number" if (numbers | dates).mean() > 0.8 else ""


def _union(ends: Sequence[Array]) -> Array:
    return ends[0] if len(ends) == 1 else distinct(np.concatenate(ends))


def _value_kinds(columns: ValueColumns, ends: Sequence[Array]) -> list[str]:
    """Return what most of the entities to which each label leads are as values; see `value_kind_of`."""
    kinds = [""] * len(ends)
    if not ends:
        return kinds
    whole, of_whole = np.concatenate(ends), np.repeat(np.arange(len(ends)), [len(of_label) for of_label in ends])
    values = np.bincount(of_whole[columns.are_values(whole)], minlength=len(ends))
    for label in np.flatnonzero(values).tolist():
        kinds[label] = value_kind_of(columns, ends[label])
    return kinds


def told_ends(graph: KnowledgeGraph) -> list[Array]:
    """Return entities to which each label leads that tell whether all are values, ascending.

    They are all, where the graph keeps all; else the ends of some facts.
    """
    samples = graph.relation_samples
    labels = range(len(samples.sources))
    if samples.is_whole:
        return [samples.ends_of(label) for label in labels]
    indptr = samples.facts_indptr.tolist()
    return [
        distinct(
            (samples.heads if is_backward(label) else samples.tails)[
                indptr[relation_of(label)] : indptr[relation_of(label) + 1]
            ]
        )
        for label in labels
    ]


def told_values(graph: KnowledgeGraph) -> ValueColumns:
    """Return the values of a graph, read for all of `told_ends`; of a graph that keeps all, for all entities."""
    samples = graph.relation_samples
    if samples.is_whole:
        return graph.value_columns
    graph.lazy_values.read(distinct(np.concatenate([samples.heads, samples.tails])))
    return graph.lazy_values


def kind_relations(graph: KnowledgeGraph) -> list[int]:
    """Return the relations whose tails are the kinds of their heads, as "Project" by "instance of"."""
    return [at for at, name in enumerate(graph.relations) if _KIND_OF.fullmatch(readable(name).casefold())]


def is_kind(graph: KnowledgeGraph, relations: Sequence[int], entity: int) -> bool:
    """Return whether an entity is the kind of others by some relations, and in no other fact.

    Args:
        graph: The graph.
        relations: Those of `kind_relations`.
        entity: The id of the entity, or -1.
    """
    if entity < 0:
        return False
    row = graph.adjacency.row(entity)
    entries = (graph.adjacency.entries_with(entity, label_of(relation, True)) for relation in relations)
    kinds = sum(int(some.stop) - int(some.start) for some in entries)
    return kinds > 0 and kinds == int(row.stop) - int(row.start)
