"""The classes of entities that the relations of a graph join, and how near a noun is to each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of, reversed_label
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.graph.value_columns import NO_DAY, ValueColumns
from kg_retrievers.index.token_table import TokenTable
from kg_retrievers.patterns.question_forms.class_words import NAMES, ClassWords, naming_words, singular
from kg_retrievers.patterns.zero_shot.scorer import mean_rows

#: The least cosine of a noun with the word that a relation has for it.
CALLED = 0.8

#: Numbers of four digits are years up to here.
LAST_YEAR = 2100

#: Ends of two relations are one class where at least this share of those of one of them are ends of the other, too.
COMMON = 0.5

#: How many ends of a relation are looked at for that, spread over all of them.
ENDS_SEEN = 64

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
        members: The ids of the entities of each class, ascending.
        kinds: What the members of each class are as values: "date", "number", "truth" or "".
        labels: The adjacency labels that lead to each class.
        kind_entities: The entities that are kinds of others and nothing else, as "Project" by "instance of".
    """

    def __init__(self, graph: KnowledgeGraph, columns: ValueColumns, table: TokenTable) -> None:
        """Group the ends of the relations."""
        self._graph, self._table = graph, table
        kind_of = [at for at, name in enumerate(graph.relations) if _KIND_OF.fullmatch(readable(name).casefold())]
        says_kind = np.isin(graph.edges[:, 1], kind_of)
        self._said_kinds, others = graph.edges[says_kind], graph.edges[~says_kind]
        self.kind_entities = frozenset(
            np.setdiff1d(self._said_kinds[:, 2], np.concatenate([graph.edges[:, 0], others[:, 2]])).tolist()
        )
        ends = _ends(graph)
        kinds = [value_kind_of(columns, of_label) for of_label in ends]
        of_kind = np.isin(np.arange(len(ends)) // 2, kind_of)
        self.of_label = _groups(graph, ends, np.array([not kind for kind in kinds]) & ~of_kind)
        count = int(self.of_label.max(initial=-1)) + 1
        self.labels = [np.flatnonzero(self.of_label == group).tolist() for group in range(count)]
        self.members = [np.unique(np.concatenate([ends[label] for label in labels])) for labels in self.labels]
        self.kinds = [kinds[labels[0]] for labels in self.labels]
        self.counts = [len(of_label) for of_label in ends]
        facts = np.bincount(graph.edges[:, 1], minlength=len(graph.relations))
        self._single = np.repeat(facts, 2) == np.array(self.counts, np.int64).reshape(-1, 2)[:, ::-1].ravel()
        self._words = ClassWords(
            table,
            [
                [(graph.relations[relation_of(label)], bool(is_backward(label))) for label in of_one]
                for of_one in self.labels
            ],
            [[] if kind else self._names_of(members) for members, kind in zip(self.members, self.kinds, strict=True)],
            [[] if kind else self._types_of(members) for members, kind in zip(self.members, self.kinds, strict=True)],
        )
        self._values = np.array([bool(kind) for kind in self.kinds], bool)
        self._values[self.of_label[of_kind]] = True  # all that has a kind is no class of its own

    def _names_of(self, members: Array) -> list[str]:
        """Return the names of some members, spread over all of them."""
        return [self._graph.names[label] for label in self._graph.labels[spread(members, NAMES)].tolist()]

    def _types_of(self, members: Array) -> list[str]:
        seen, types = members[:TYPES_SEEN], self._graph.types
        kinds = {kind for entity in seen.tolist() for kind in self._graph.entity_types(entity)} if len(types) else set()
        said = self._said_kinds[np.isin(self._said_kinds[:, 0], seen), 2]
        named = [self._graph.names[label] for label in self._graph.labels[np.unique(said)].tolist()]
        return [readable(name) for name in [*(local_name(types[kind]) for kind in sorted(kinds)), *named]]

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
        return [bool(np.isin(entities, members).any()) for members in self.members]

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


def _ends(graph: KnowledgeGraph) -> list[Array]:
    """Return the entities to which each adjacency label leads, ascending."""
    order = np.argsort(graph.edges[:, 1], kind="stable")
    bounds = np.searchsorted(graph.edges[order, 1], np.arange(len(graph.relations) + 1))
    facts = [graph.edges[order[first:last]] for first, last in pairwise(bounds.tolist())]
    return [np.unique(of_relation[:, column]) for of_relation in facts for column in (2, 0)]


def _groups(graph: KnowledgeGraph, ends: Sequence[Array], entities: Array) -> Array:
    """Return the group of each label: those whose ends share many entities, directly or by way of others."""
    parents = np.arange(len(ends))
    for one in np.flatnonzero(entities).tolist():
        seen = spread(ends[one], ENDS_SEEN)
        leading = [_leading_labels(graph, entity) for entity in seen.tolist()]
        counts = np.bincount(np.concatenate(leading), minlength=len(ends))
        for other in np.flatnonzero((counts >= COMMON * len(seen)) & entities).tolist():
            parents[parents == parents[one]] = parents[other]
    _, groups = np.unique(parents, return_inverse=True)
    return groups


def _leading_labels(graph: KnowledgeGraph, entity: int) -> Array:
    """Return the adjacency labels that lead to an entity, each once."""
    leading: Array = reversed_label(np.unique(graph.adjacency.labels[graph.adjacency.row(entity)]))
    return leading
