"""How near a noun is to each class of entities, by the names of their relations and their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.index import FUNCTION_WORDS
from kg_retrievers.index.token_table import TokenTable, words
from kg_retrievers.questions.self_questions.relation_grammar import read_relation
from kg_retrievers.questions.zero_shot.scorer import mean_rows

#: The most names of members that are read.
NAMES = 32

#: What counts how much; fitted, as logits, on questions that are not reported (`benchmarks/operation_questions/fit`
#: and the graphs of `benchmarks/own_graphs/dev`). Cosines of a noun: with the nouns that name the class; with those,
#: beyond a half; with other words of relations that lead to it, beyond a half; with the nearest relation of its own;
#: with that, beyond a half; with the nearest three of these, on average; with its members' names together; with the
#: names nearest to it, of half of the members.
NAMED, NAMED_MORE, TO_IT_MORE, ITS, ITS_MORE, ITS_THREE, NAMES_MEAN, NAMES_BEST = (
    1.8,
    3.2,
    2.4,
    2.1,
    -1.9,
    3.2,
    2.3,
    1.7,
)

#: The same of people: how near words of a class are to what is said of people, and the nouns that name it to a person;
#: and of any noun, for the logarithm of how many relations a class has.
OF_PEOPLE, PERSON, RELATIONS = 1.7, 3.7, 0.5

#: Words that ask for people.
PEOPLE = frozenset(
    ["who", "whom", "whose", "people", "person", "persons", "anyone", "someone", "everyone", "anybody", "somebody"]
)

#: Near to these, as vectors, is what is said of people, and what a person is called.
_SAID_OF_PEOPLE, _A_PERSON = ("person", "born", "birth", "married", "people"), ("person", "who")


class ClassWords:
    """The words of classes.

    Args:
        table: Gives the vectors of words.
        relations: For each class the relations that lead to its members, by name, and whether each is crossed from tail
            to head, so that the members are its heads.
        names: For each class the names of some members.
        types: For each class the types of its members.
    """

    def __init__(
        self,
        table: TokenTable,
        relations: Sequence[Sequence[tuple[str, bool]]],
        names: Sequence[Sequence[str]],
        types: Sequence[Sequence[str]],
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
        self._its = _Segments(list(chain.from_iterable(its)), [len(of_one) for of_one in its])
        read = [[self._numbers(words(name)) for name in of_one[:NAMES]] for of_one in names]
        self._names = _Segments(list(chain.from_iterable(read)), [len(of_one) for of_one in read])
        self._vectors = mean_rows(table, list(self._ids))
        means = [self._vectors[_flat(of_one)].mean(axis=0) if of_one else self._vectors[0] for of_one in read]
        self._means = np.array(means, np.float32).reshape(len(means), -1)
        self._means /= np.linalg.norm(self._means, axis=1, keepdims=True) + 1e-9
        self._size = RELATIONS * np.log([max(len(of_one), 1) for of_one in relations])
        near_to, person = mean_rows(table, _SAID_OF_PEOPLE), mean_rows(table, _A_PERSON)
        said_of = np.max(self._vectors @ near_to.T, axis=1)
        said = np.maximum(self._named.best(said_of), self._its.of_classes(self._its.best(said_of), 1))
        self._people = OF_PEOPLE * said + PERSON * self._named.best(np.max(self._vectors @ person.T, axis=1))
        self._near: Callable[[str], Array] = lru_cache(maxsize=1024)(lambda noun: self._nearness(table, noun))

    def nearness(self, noun: str) -> Array:
        """Return how likely each class is what a noun means, as logits; (classes)."""
        near: Array = self._near(noun)
        return near

    def closeness(self, vectors: Array) -> float:
        """Return the greatest cosine of some vectors with a word of a class."""
        return float((self._vectors[self._named.words] @ vectors.T).max(initial=0.0))

    def _numbers(self, of_words: Iterable[str]) -> list[int]:
        return [self._ids.setdefault(word, len(self._ids)) for word in of_words]

    def _nearness(self, table: TokenTable, noun: str) -> Array:
        last = noun.split()[-1]
        if last in PEOPLE:
            people: Array = self._size + self._people
            return people
        vectors = mean_rows(table, [last, singular(last)])
        cosines = np.max(self._vectors @ vectors.T, axis=1)
        named, to_it = self._named.best(cosines), self._to_it.best(cosines)
        of_each = self._its.best(cosines)
        its = self._its.of_classes(of_each, 1)
        near: Array = (
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
        return near


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
        best: Array = np.maximum.reduceat(np.maximum(cosines[self.words], 0.0), self._starts)
        return best

    def of_classes(self, of_lists: Array, most: int) -> Array:
        """Return the sum of the greatest few values of each class."""
        return self._greatest(of_lists, np.full(len(self._counts), most))

    def best_half(self, of_lists: Array) -> Array:
        """Return the mean of the greater half of the values of each class."""
        half = np.maximum(self._counts // 2, 1)
        means: Array = self._greatest(of_lists, half) / half
        return means

    def _greatest(self, of_lists: Array, most: Array) -> Array:
        """Return the sum of the greatest values of each class, of so many as are given for it; (classes)."""
        order = np.lexsort((-of_lists, self._classes))
        rank = np.arange(len(order)) - self._first[self._classes]
        kept = of_lists[order] * (rank < most[self._classes])
        sums: Array = np.bincount(self._classes, kept, minlength=len(self._counts))
        return sums


def singular(word: str) -> str:
    """Return the singular of a regular plural; another word as it is.

    Example:
        >>> singular("valleys"), singular("cities"), singular("glass")
        ('valley', 'city', 'glass')
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


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
