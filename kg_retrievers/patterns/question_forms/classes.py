"""The classes of entities that the relations of a graph join, and how near a noun is to each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.value_columns import NO_DAY, ValueColumns
from kg_retrievers.index.token_table import UNKNOWN, TokenTable, words
from kg_retrievers.patterns.zero_shot.graph_steps import GraphSteps
from kg_retrievers.patterns.zero_shot.reading import question_words
from kg_retrievers.patterns.zero_shot.scorer import mean_rows

#: Ends of two relations are one class where at least this share of those of one of them are ends of the other, too.
COMMON = 0.5

#: How many ends of a relation are looked at for that, spread over all of them.
ENDS_SEEN = 64

#: The most members of a class from which walks start, and of which the names are read.
MEMBERS = 2_000
NAMES = 200

#: How much the names of members count beside those of relations; how much a relation counts that leads away.
NAMES_COUNT, AWAY_COUNT = 0.6, 0.95

#: What is said of people in any graph.
_PERSON = ("person", "born", "birth", "married", "people")


class GraphClasses:
    """Groups of entities: ends of relations that share many entities.

    Args:
        graph: The graph.
        steps: Its relations in words.
        columns: The values of its labels.
        table: Gives the vectors of words.

    Attributes:
        of_label: The class of what each adjacency label leads to; (labels).
        members: The ids of the entities of each class, ascending.
        kinds: What the members of each class are as values: "date", "number", "truth" or "".
        labels: The adjacency labels that lead to each class.
    """

    def __init__(self, graph: KnowledgeGraph, steps: GraphSteps, columns: ValueColumns, table: TokenTable) -> None:
        """Group the ends of the relations."""
        self._graph, self._table = graph, table
        ends = _ends(graph)
        kinds = [value_kind_of(columns, of_label) for of_label in ends]
        self.of_label = _groups(graph, ends, kinds)
        count = int(self.of_label.max(initial=-1)) + 1
        self.labels = [np.flatnonzero(self.of_label == group).tolist() for group in range(count)]
        self.members = [np.unique(np.concatenate([ends[label] for label in labels])) for labels in self.labels]
        self.kinds = [kinds[labels[0]] for labels in self.labels]
        self.counts = [len(of_label) for of_label in ends]
        facts = np.bincount(graph.edges[:, 1], minlength=len(graph.relations))
        self._single = np.repeat(facts, 2) == np.array(self.counts, np.int64).reshape(-1, 2)[:, ::-1].ravel()
        self._rows = [self._described(labels, steps, ends) for labels in self.labels]
        self._names = self._mean_names()

    def _described(self, labels: Sequence[int], steps: GraphSteps, ends: Sequence[Array]) -> tuple[Array, Array]:
        """Return the vectors of words that name a class, and how much each counts."""
        rows, counts = list[Array](), list[float]()
        for label in labels:
            of_one = steps.words[relation_of(label)]
            rows.append(of_one)
            counts += [AWAY_COUNT if is_backward(label) else 1.0] * len(of_one)
        members = np.unique(np.concatenate([ends[label][:NAMES] for label in labels]))[:NAMES]
        kinds = {kind for entity in members.tolist() for kind in self._graph.entity_types(entity)}
        for kind in sorted(kinds):
            rows.append(self._vector(readable(local_name(self._graph.types[kind])))[None])
            counts.append(1.1)
        return np.concatenate(rows), np.array(counts)

    def _mean_names(self) -> list[Array]:
        """Return the mean vector of names of the members of each class, spread over all of them; unit vectors."""
        some = [
            members[np.unique(np.linspace(0, len(members) - 1, min(NAMES, len(members))).astype(np.int64))]
            for members in self.members
        ]
        ids, position = np.unique(np.concatenate([np.zeros(0, np.int64), *some]), return_inverse=True)
        rows = mean_rows(self._table, [self._graph.names[label] for label in self._graph.labels[ids].tolist()])
        parts = np.split(position, np.cumsum([len(members) for members in some])[:-1])
        means = [rows[part].mean(axis=0) for part in parts[: len(some)]]
        return [mean / (np.linalg.norm(mean) + 1e-9) for mean in means]

    def _vector(self, text: str) -> Array:
        ids = [id for id in self._table.token_ids(text) if id != UNKNOWN]
        if not ids or not words(text):
            return np.zeros(self._table.dimension, np.float32)
        mean = self._table.rows(ids).mean(axis=0)
        unit: Array = mean / (np.linalg.norm(mean) + 1e-9)
        return unit

    def nearness(self, noun: str) -> Array:
        """Return how near a noun is to each class, about 0 ... 1.6; (classes).

        For "who" and "people", how much is said of the members as of people.
        """
        person = noun in ("who", "whom", "whose", "people", "person", "persons", "anyone", "someone", "everyone")
        vectors = [word.vector for word in question_words(self._table, " ".join(_PERSON) if person else noun)]
        near = np.zeros(len(self.labels))
        for group, ((rows, counts), name) in enumerate(zip(self._rows, self._names, strict=True)):
            if self.kinds[group] or not vectors:
                continue
            cosines = [float(((rows @ vector) * counts).max()) for vector in vectors]
            whole = max(cosines) if person else cosines[-1] * 0.7 + 0.3 * float(np.mean(cosines))
            near[group] = max(whole, 0.0) + NAMES_COUNT * max(float(name @ self._vector(noun)), 0.0)
        return near

    def containing(self, entities: Sequence[int]) -> list[bool]:
        """Return for each class whether it has one of some entities."""
        return [bool(np.isin(entities, members).any()) for members in self.members]

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


def _groups(graph: KnowledgeGraph, ends: Sequence[Array], kinds: Sequence[str]) -> Array:
    """Return the group of each label: those whose ends share many entities, directly or by way of others."""
    parents = np.arange(len(ends))
    entities = np.array([not kind for kind in kinds])
    for one in np.flatnonzero(entities).tolist():
        seen = np.unique(np.linspace(0, len(ends[one]) - 1, min(ENDS_SEEN, len(ends[one]))).astype(np.int64))
        leading = [_leading_labels(graph, entity) for entity in ends[one][seen].tolist()]
        counts = np.bincount(np.concatenate(leading), minlength=len(ends))
        for other in np.flatnonzero((counts >= COMMON * len(seen)) & entities).tolist():
            parents[parents == parents[one]] = parents[other]
    _, groups = np.unique(parents, return_inverse=True)
    return groups


def _leading_labels(graph: KnowledgeGraph, entity: int) -> Array:
    """Return the adjacency labels that lead to an entity, each once."""
    leading: Array = reversed_label(np.unique(graph.adjacency.labels[graph.adjacency.row(entity)]))
    return leading
