"""The classes of entities that the relations of a graph join, and how near a noun is to each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import Adjacency, is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, entries_between, spread
from kg_retrievers.graph.kinds import kind_relations
from kg_retrievers.graph.value_columns import NO_DAY, ValueColumns
from kg_retrievers.index import FUNCTION_WORDS
from kg_retrievers.index.embeddings import TokenTable, mean_rows, words
from kg_retrievers.questions.self_questions.english import read_relation, singular_of
from kg_retrievers.questions.words import WORDS

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


#: The most names of members that are read.
NAMES = 32

#: How much each part counts, fitted as logits on questions that are not reported (`benchmarks/operation_questions/fit`
#: and the graphs of `benchmarks/own_graphs/dev`). Cosines of a noun: with the nouns that name the class; with those,
#: beyond a half; with other words of relations that lead to it, beyond a half; with the nearest relation of its own;
#: with that, beyond a half; with the nearest three of these, on average; with its members' names together; with the
#: names nearest to it, of half of the members.
NAMED, NAMED_MORE, TO_IT_MORE, ITS = 1.8, 3.2, 2.4, 2.1
ITS_MORE, ITS_THREE, NAMES_MEAN, NAMES_BEST = -1.9, 3.2, 2.3, 1.7

#: The same of people: how near words of a class are to what is said of people, and the nouns that name it to a person;
#: and of any noun, for the logarithm of how many relations a class has.
OF_PEOPLE, PERSON, RELATIONS = 1.7, 3.7, 0.5

#: Words that ask for people.
PEOPLE = frozenset(WORDS["people"])

#: Near to these, as vectors, are the words said of people, and the words that call something a person.
_SAID_OF_PEOPLE, _A_PERSON = ("person", "born", "birth", "married", "people"), ("person", "who")


class ClassWords:
    """The words of classes.

    Args:
        table: Gives the vectors of words.
        relations: For each class the relations that lead to its members, by name, and whether each is crossed from tail
            to head, so that the members are its heads.
        names: For each class the names of some members.
        types: For each class the types of its members.
        values: For each class whether its members are values.
    """

    def __init__(
        self,
        table: TokenTable,
        relations: Sequence[Sequence[tuple[str, bool]]],
        names: Sequence[Sequence[str]],
        types: Sequence[Sequence[str]],
        values: Sequence[bool],
    ) -> None:
        """Read the names of the relations."""
        self._ids: dict[str, int] = {"": 0}
        different = dict.fromkeys(name for of_one in relations for name, _ in of_one)
        ends = {name: tuple(map(self._numbers, _ends(name))) for name in different}
        named, to_it, its = list[list[int]](), list[list[int]](), list[list[list[int]]]()
        for of_one, of_types in zip(relations, types, strict=True):
            forward = [ends[name] for name, backward in of_one if not backward]
            backward_ends = [ends[name] for name, backward in of_one if backward]
            nouns = [end[0] for end in forward] + [end[1] for end in backward_ends]
            named.append([*_flat(nouns), *self._numbers(word for text in of_types for word in text.split())])
            to_it.append(_flat(end[2] for end in forward))
            its.append([end[3] for end in backward_ends])
        self._named, self._to_it = _Segments(named), _Segments(to_it)
        self._nouns = _flat(of_one for of_one, is_value in zip(named, values, strict=True) if not is_value)
        self._its = _Segments(list(chain.from_iterable(its)), [len(of_one) for of_one in its])
        read = [[self._numbers(words(name)) for name in of_one[:NAMES]] for of_one in names]
        self._names = _Segments(list(chain.from_iterable(read)), [len(of_one) for of_one in read])
        self._vectors = mean_rows(table, list(self._ids))
        means = [self._vectors[_flat(of_one)].mean(axis=0) if of_one else self._vectors[0] for of_one in read]
        self._means = np.array(means, np.float32).reshape(len(means), self._vectors.shape[1])
        self._means /= np.linalg.norm(self._means, axis=1, keepdims=True) + 1e-9
        self._size = RELATIONS * np.log([max(len(of_one), 1) for of_one in relations])
        near_to, person = mean_rows(table, _SAID_OF_PEOPLE), mean_rows(table, _A_PERSON)
        said_of = np.max(self._vectors @ near_to.T, axis=1)
        said = np.maximum(self._named.best(said_of), self._its.of_classes(self._its.best(said_of), 1))
        self._people = OF_PEOPLE * said + PERSON * self._named.best(np.max(self._vectors @ person.T, axis=1))
        #: Returns how likely each class is the meaning of a noun, as logits (classes).
        self.nearness: Callable[[str], Array] = lru_cache(maxsize=1024)(partial(self._nearness, table))

    def closeness(self, vectors: Array) -> float:
        """Return the greatest cosine of some vectors with a word for things of a class, rather than for values."""
        return float((self._vectors[self._nouns] @ vectors.T).max(initial=0.0))

    def _numbers(self, of_words: Iterable[str]) -> list[int]:
        return [self._ids.setdefault(word, len(self._ids)) for word in of_words]

    def _nearness(self, table: TokenTable, noun: str) -> Array:
        last = noun.split()[-1]
        if last in PEOPLE:
            return np.asarray(self._size + self._people)
        vectors = mean_rows(table, [last, singular_of(last)])
        cosines = np.max(self._vectors @ vectors.T, axis=1)
        named, to_it = self._named.best(cosines), self._to_it.best(cosines)
        of_each = self._its.best(cosines)
        its = self._its.of_classes(of_each, 1)
        return np.asarray(
            self._size
            + NAMED * named
            + NAMED_MORE * np.maximum(named - 0.5, 0)
            + TO_IT_MORE * np.maximum(to_it - 0.5, 0)
            + ITS * its
            + ITS_MORE * np.maximum(its - 0.5, 0)
            + ITS_THREE * self._its.of_classes(of_each, 3) / 3
            + NAMES_MEAN * np.max(self._means @ vectors.T, axis=1)
            + NAMES_BEST * self._names.best_half(self._names.best(cosines))
        )


class _Segments:
    """Lists of words, and which class each list belongs to.

    Args:
        lists: The numbers of the words of each list.
        counts: How many lists each class has, in their order; None for one each.
    """

    def __init__(self, lists: Sequence[Sequence[int]], counts: Sequence[int] | None = None) -> None:
        """Write them one behind the other, word 0 first, which is near to nothing."""
        sizes = np.array([len(of_one) + 1 for of_one in lists], np.int64)
        self.words = np.array(_flat([0, *of_one] for of_one in lists), np.int64)
        self._starts = np.cumsum(sizes) - sizes
        self._counts = np.array(counts if counts is not None else np.ones(len(lists)), np.int64)
        self._classes = np.repeat(np.arange(len(self._counts)), self._counts)
        self._first = np.cumsum(self._counts) - self._counts

    def best(self, cosines: Array) -> Array:
        """Return the greatest cosine of each list, at least 0."""
        if not len(self._starts):
            return np.zeros(0)
        return np.asarray(np.maximum.reduceat(np.maximum(cosines[self.words], 0.0), self._starts))

    def of_classes(self, of_lists: Array, most: int) -> Array:
        """Return the sum of the greatest few values of each class."""
        return self._greatest(of_lists, np.full(len(self._counts), most))

    def best_half(self, of_lists: Array) -> Array:
        """Return the mean of the greater half of the values of each class."""
        half = np.maximum(self._counts // 2, 1)
        return np.asarray(self._greatest(of_lists, half) / half)

    def _greatest(self, of_lists: Array, most: Array) -> Array:
        """Return the sum of the greatest values of each class, of so many as are given for it; (classes)."""
        order = np.lexsort((-of_lists, self._classes))
        rank = np.arange(len(order)) - self._first[self._classes]
        kept = of_lists[order] * (rank < most[self._classes])
        return np.asarray(np.bincount(self._classes, kept, minlength=len(self._counts)))


def naming_words(relation: str, tails: bool) -> list[str]:
    """Return the nouns that a relation has for its tails or its heads.

    Example:
        >>> naming_words("written_by", True), naming_words("written_by", False), naming_words("home venue", True)
        (['writer', 'write'], [], ['venue'])
    """
    return _ends(relation)[0 if tails else 1]


def _ends(relation: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the words that a relation has for its ends.

    They are the nouns that name its tails and its heads, and the other words that are said of tails and of heads.
    """
    read = read_relation(relation)
    noun, all_words = _telling(read.words), _telling(f"{read.words} {read.verb.base if read.verb else ''}")
    match read.form:
        case "noun":
            return noun[-1:], [], noun[:-1], noun
        case "noun of":
            return [], noun[-1:], noun, noun
        case "passive":
            assert read.verb
            return [read.verb.agent, read.verb.base], [], all_words, all_words
        case "verb" if read.verb and not read.is_past:
            return [], [read.verb.agent, read.verb.base], all_words, all_words
        case _:
            return [], [], all_words, all_words


def _telling(text: str) -> list[str]:
    found = words(text)
    return [word for word in found if word not in FUNCTION_WORDS and word[0].isalpha()] or found


def _flat(lists: Iterable[Iterable[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


#: The least cosine of a noun with the word that a relation has for it.
CALLED = 0.8

#: Numbers of four digits are years up to here.
LAST_YEAR = 2100

#: The most members of a class from which walks start, and of which the types are read.
MEMBERS, TYPES_SEEN = 2_000, 200

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
        self._words = ClassWords(table, relations, self._names(), self._types(), [*map(bool, self.kinds)])
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
        said, below = self._said_kinds(seen), self._graph.types_below
        found = [self._graph.types_among(some) if below else [] for some in seen]
        named = [[local_name(name) for name, ids in below.items() if not ids.isdisjoint(of_one)] for of_one in found]
        return [[readable(name) for name in chain(*names)] for names in zip(named, said, strict=True)]

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
        """Return the number of members of a class, or if only some are known, the most to which a label leads."""
        return int(max(len(self.members[group]), *(self.counts[label] for label in self.labels[group])))

    def nearness(self, noun: str) -> Array:
        """Return how likely each class is the meaning of a noun, as logits (classes). Those of values come last."""
        if not noun:
            return np.zeros(len(self.labels))
        return np.where(self._values, 0.0, self._words.nearness(noun) / NOUN_WEIGHT)

    def closeness(self, noun: str) -> float:
        """Return the greatest cosine of a noun with a noun that names a class of things."""
        return self._words.closeness(mean_rows(self._table, [noun, noun if noun in PEOPLE else singular_of(noun)]))

    def is_called(self, label: int, noun: str) -> bool:
        """Whether a relation calls the things from which a label leads by a noun, or nearly so."""
        named = naming_words(self._graph.relations[relation_of(label)], bool(is_backward(label)))
        if not named or not noun:
            return False
        rows = mean_rows(self._table, [noun, singular_of(noun)]) @ mean_rows(self._table, named).T
        return bool(rows.max() >= CALLED)

    def containing(self, entities: Array) -> list[bool]:
        """Return for each class whether it has one of some entities."""
        found = np.zeros(len(self.labels), bool)
        labels, _ = leading_labels(self._graph.adjacency, entities[entities >= 0])
        found[self.of_label[labels]] = True
        has: list[bool] = found.tolist()
        return has

    def end_of(self, labels: Sequence[int]) -> int:
        """Return the class to which a walk with these adjacency labels leads."""
        return int(self.of_label[labels[-1]])

    def end_kind(self, labels: Sequence[int]) -> str:
        """Return the kind of values to which a walk leads, one of `kinds`."""
        return self.kinds[self.end_of(labels)]

    def is_single(self, label: int) -> bool:
        """Whether a label leads from each entity to one other at most."""
        return bool(self._single[label])

    def defining_label(self, group: int) -> int:
        """Return the label that leads to the most members of a class."""
        return max(self.labels[group], key=lambda label: (self.counts[label], -label))


def value_kind_of(columns: ValueColumns, entities: Array) -> str:
    """Return the kind of value that most of some entities are: "date", "number", "truth" or ""."""
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

    They are all ends if the graph keeps all, otherwise the ends of some facts.
    """
    samples = graph.relation_samples
    if samples.is_whole:
        return [samples.ends_of(label) for label in range(len(samples.sources))]
    bounds = pairwise(samples.facts_indptr.tolist())
    return [distinct(ends[low:high]) for low, high in bounds for ends in (samples.tails, samples.heads)]


def told_values(graph: KnowledgeGraph) -> ValueColumns:
    """Return the values of a graph, read for all of `told_ends`, or for all entities if the graph keeps all."""
    samples = graph.relation_samples
    if samples.is_whole:
        return graph.value_columns
    graph.lazy_values.read(distinct(np.concatenate([samples.heads, samples.tails])))
    return graph.lazy_values
