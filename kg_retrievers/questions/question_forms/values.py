"""Walks from entities and classes, and the relations whose values a question compares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from kg_retrievers.graph import Pattern
from kg_retrievers.graph.adjacency import relation_of, reversed_label
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.graph.values import Value, known_unit, named_unit, unit_symbol
from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.questions.possible_entities import PatternJoin
from kg_retrievers.questions.question_forms.classes import MEMBERS, GraphClasses
from kg_retrievers.questions.question_forms.forms import (
    Degree,
    Form,
    Limit,
    Token,
    is_unit,
    question_of,
    telling_words,
    words_of,
)
from kg_retrievers.questions.reading import type_nouns
from kg_retrievers.questions.self_questions.english import is_plural
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.ranking import Surroundings
from kg_retrievers.questions.zero_shot.scorer import softmax
from kg_retrievers.questions.zero_shot.steps import measured_by, question_words

#: The most steps of a walk between two things that a form joins.
MAX_STEPS = 2

#: How much less likely it makes a walk to come to a class again.
DETOUR_COST = 2.0


@dataclass(frozen=True)
class Way:
    """A walk that a part of a question may ask for.

    Attributes:
        labels: The adjacency labels of its steps.
        log: The logarithm of how likely it is.
        confidence: How likely the first walk of all is right, by the zero-shot generator; in [0, 1].
        share: How likely it is among the walks that lead where it must, in [0, 1].
        start: The class where it starts; -1 for an entity.
    """

    labels: tuple[int, ...]
    log: float
    confidence: float
    share: float = 1.0
    start: int = -1

    @property
    def back(self) -> tuple[int, ...]:
        """The adjacency labels of the way back."""
        return tuple(reversed_label(label) for label in reversed(self.labels))


#: Words of a relation that holds both ways.
MUTUAL = re.compile(
    r"\b(married|spouses?|siblings?|twins?|cousins?|friends?|partners?|neighbou?rs?|colleagues?|adjacent|borders?"
    r"|related|connected)\b",
    re.IGNORECASE,
)

#: The least nearness of a noun to the relation of a number for the number to be meant rather than a count.
SAME_NAME = 0.45

#: How much nearer another relation must be to be meant.
A_LITTLE = 0.1

#: The least of the same word.
SAME_WORD = 0.99

#: The least for it to be meant at all.
MAY_NAME = 0.25

#: How sure a reading is, as a logit, beside the shares of its walks and its class: the logit of the zero-shot
#: generator's confidence, and how near the noun is to the class beyond `NEAR`.
RATED_WEIGHT, NEAR_WEIGHT, NEAR, CERTAIN = 0.4, 6.0, 0.35, 3.0

#: How much the likelihood of a walk to values says of the class: it rather says which value of this class is meant.
VALUE_WEIGHT = 0.5

#: In place of `CERTAIN` for counts: "how many" often asks for a number that the graph lacks.
CERTAIN_COUNT = 0.8


class UnreadError(Exception):
    """A form whose relations are not found.

    Args:
        part: The words of the part that is not understood; none for all.
    """

    def __init__(self, part: Sequence[Token] = ()) -> None:
        """Keep the words."""
        super().__init__(" ".join(token.text for token in part))
        self.part = tuple(part)


@dataclass
class Arms:
    """The statements about the things of one class, with how likely all of them are."""

    group: int
    log: float
    near: float
    ways: list[tuple[str, object, Way]] = field(default_factory=list)

    def add(self, role: str, what: object, way: Way | None) -> bool:
        """Add a walk, and return False if there is none."""
        if way is None:
            return False
        self.ways.append((role, what, way))
        self.log += way.log * (VALUE_WEIGHT if role in ("value", "limit") else 1.0)
        return True


def sureness(ways: Sequence[Way], share: float = 1.0, near: float = NEAR, certain: float = CERTAIN) -> float:
    """Return how likely a reading is right, in [0, 1].

    Args:
        ways: Its walks.
        share: How likely its class is among all that were compared.
        near: How near the noun is to the class.
        certain: The logit of what is sure where nothing speaks for it or against it.
    """
    least = min((way.share for way in ways), default=1.0)
    rated = max(min((way.confidence for way in ways), default=0.0), 1e-3)
    logit = RATED_WEIGHT * float(np.log(rated / (1.001 - rated))) + NEAR_WEIGHT * (near - NEAR)
    return float(share * least / (1 + np.exp(-logit - certain)))


def best_by_class(ways: Sequence[Way], classes: GraphClasses) -> dict[int, Way]:
    """Return the likeliest walk to each class."""
    by_class: dict[int, list[Way]] = defaultdict(list)
    for way in ways:
        ends = classes.of_label[list(way.labels)].tolist()
        again = len(ends) - len({*ends})
        by_class[ends[-1]].append(replace(way, log=way.log - DETOUR_COST * again))
    return {group: likeliest(of_one) for group, of_one in by_class.items()}


def likeliest(ways: Sequence[Way]) -> Way:
    """Return the likeliest of some walks, with its share among them."""
    shares = softmax(np.array([way.log for way in ways]))
    best = int(np.argmax(shares))
    return replace(ways[best], share=float(shares[best]))


def keys_of(tokens: Iterable[Token]) -> list[str]:
    """Return the keys of all that the entities of some words may be."""
    return [key for token in tokens for key in token.keys]


def span_of(tokens: Sequence[Token], part: Sequence[Token]) -> tuple[int, int]:
    """Return the place of a part in tokens, or an empty span at their end if it is not there."""
    size = len(part)
    for at in range(len(tokens) - size + 1 if size else 0):
        if list(tokens[at : at + size]) == list(part):
            return at, at + size
    return len(tokens), len(tokens)


def standing(tokens: Sequence[Token], part: Sequence[Token], opening: str = "") -> tuple[list[Token], int]:
    """Return a text in which a part stands for things of a class, at its end if it has none, and that position.

    Args:
        tokens: The text.
        part: The words of it that stand for the things.
        opening: The words with which the text asks for a value of them; then they are not asked for themselves.
    """
    first, last = span_of(tokens, part)
    start = first
    while opening and start and tokens[start - 1].word in ("which", "what", "the", "of"):
        start -= 1
    before = [*map(Token, opening.split()), *tokens[:start]]
    return [*before, stand_in(" ".join(token.text for token in part) or "it"), *tokens[last:]], len(before)


#: How much the nearest word of a relation counts, as a cosine, and the share of a class that has a value of it.
NAME_WEIGHT, SHARE_WEIGHT = 3.0, 1.0

#: The same of an adjective, which says little else: "the heaviest".
ADJECTIVE_WEIGHT = 8.0

#: The cosine of words with a relation that measures the thing they ask for.
A_MEASURE = 0.8

#: How much less likely a second step makes a value.
STEP_COST = 2.5

#: The name of a date of something if an adjective alone asks for its age.
_BEGINNINGS = "born birth founded opened released built started"


def kinds_of(value: Value, said: str = "") -> tuple[str, ...]:
    """Return the kinds of values that a value may be compared with, if its words leave this open."""
    if said and value.first and value.number is not None:
        return (said,)
    dates = ("date",) if value.first else ()
    return (*dates, "number") if value.number is not None else dates


def stand_in(name: str) -> Token:
    """Return a name as an entity that stands for others, from which walks start in its place."""
    return Token(name, QuestionEntity(0, len(name), name, (), 0, True))


class WalkFinder:
    """Finds walks from entities and from all members of a class, and those to dates, numbers or truth values.

    Args:
        zero_shot: Ranks the walks.
        classes: The classes of its graph.
        columns: The values of the graph.
        table: Gives the vectors of words.
    """

    def __init__(
        self, zero_shot: ZeroShotPatternGenerator, classes: GraphClasses, columns: ValueColumns, table: TokenTable
    ) -> None:
        """Keep them."""
        self.zero_shot, self.classes, self._columns, self._table = zero_shot, classes, columns, table
        self.graph, self._steps, self.kinds = zero_shot.index.graph, zero_shot.steps, type_nouns(zero_shot.index)
        self._units: dict[int, str] = {}
        self._kind: Array | None = None

    def within(self, noun: Sequence[Token]) -> WalkFinder:
        """Return the finder of walks from and to things of the kind that a noun names, or of all things."""
        kind = self.kinds.of_noun([token.word for token in noun if token.word])
        narrowed = copy(self)
        narrowed._kind = None if kind is None else kind_members(self.graph, kind)
        return narrowed

    def leads_to_kind(self, token: Token, labels: Sequence[int]) -> bool:
        """Whether a walk from an entity leads to a thing of the kind, if one is asked for."""
        if self._kind is None or token.slot is None:
            return True
        return bool(np.isin(self.reached(self.ids_of(token), labels), self._kind).any())

    def ids_of(self, *tokens: Token) -> Array:
        """Return the ids of the entities that some tokens may be, int64."""
        ids = [self.graph.entities.find(key) for key in keys_of(tokens)]
        return np.array([one for one in ids if one >= 0], np.int64)

    def from_entity(
        self, tokens: Sequence[Token], at: int, *, max_steps: int = 3, starts: Array | None = None
    ) -> list[Way]:
        """Return the walks from the entity at a position of a text, the likeliest first.

        Args:
            tokens: The text.
            at: The position.
            max_steps: The most steps of a walk.
            starts: The ids of entities that the entity stands for.
        """
        text, slots = question_of(tokens)
        topic = slots[sum(bool(token.slot) for token in tokens[:at])]
        understood = self.zero_shot.understand_from(text, slots, topic, max_hops=max_steps, starts=starts)
        if understood is None:
            return []
        return [
            Way(walk.labels, float(np.log(max(walk.probability, 1e-9))), understood.confidence)
            for walk in understood.walks
        ]

    def joins_alike(self, label: int) -> bool:
        """Return whether a step joins things of one kind, so that only words tell its direction."""
        back = int(reversed_label(label))
        return bool(self._steps.alike[relation_of(label)]) or self.classes.end_of((label,)) == self.classes.end_of(
            (back,)
        )

    def is_mutual(self, label: int) -> bool:
        """Return whether the name of a relation says that it holds both ways, as "married to" does."""
        return bool(MUTUAL.search(self._steps.names[relation_of(label)]))

    def joins(self, one: Token, label: int, other: Token) -> bool:
        """Return whether a step leads from one entity to another."""
        return bool(np.isin(self.reached(self.ids_of(one), (label,)), self.ids_of(other)).any())

    def direction(self, tokens: Sequence[Token], at: int, label: int) -> float:
        """Return how much more a claim says a step from the entity at a position than the opposite one, as a logit."""
        text, slots = question_of(tokens)
        return self.zero_shot.direction(text, slots, slots[sum(bool(token.slot) for token in tokens[:at])], label)

    def from_class(self, tokens: Sequence[Token], at: int, group: int, *, max_steps: int = MAX_STEPS) -> list[Way]:
        """Return the walks from the members of a class for which the entity at a position of a text stands."""
        members = self.classes.members[group]
        own = members if self._kind is None else members[np.isin(members, self._kind)]
        if not len(own):
            return []
        ways = self.from_entity(tokens, at, max_steps=max_steps, starts=spread(own, MEMBERS))
        return [replace(way, start=group) for way in ways]

    def ends(self, token: Token, labels: Sequence[int]) -> list[str]:
        """Return the names of the ends of a walk from the entity of a token."""
        found = self.reached(self.ids_of(token), labels)
        return [self.graph.names[int(self.graph.labels[end])] for end in found.tolist()]

    def meets(self, others: WalkFinder, way: Way) -> bool:
        """Whether a walk from things of another kind leads to things of this kind, as far as kinds are known."""
        if self._kind is None or others._kind is None:
            return True
        return bool(np.isin(self.reached(spread(others._kind, MEMBERS), way.labels), self._kind).any())

    def reached(self, starts: Array, labels: Sequence[int]) -> Array:
        """Return the ids of the ends of a walk from some entities, ascending."""
        return Surroundings(self.graph.adjacency, starts, self._steps).ends(tuple(labels), revisits=True)

    def measuring(self, words: str) -> tuple[int, Array] | None:
        """Return the label of numbers whose relation is called by some words, and the ids of things that have them."""
        labels = [
            label for label in range(0, len(self.classes.of_label), 2) if self.classes.end_kind([label]) == "number"
        ]
        plural = [word for word in words.split() if is_plural(word)]  # "flight attendants" are no flights
        near = [
            (self.nearness(words, label, telling=True), -label)
            for label in labels
            if not plural or any(self.nearness(word, label) >= SAME_NAME for word in plural)
        ]
        if not near or max(near)[0] < A_MEASURE:
            return None
        label = -max(near)[1]
        return label, self.graph.relation_samples.all_sources_of(label, self.graph.adjacency)

    def targets_of(self, pattern: Pattern) -> Array:
        """Return the ids of the targets of a pattern that lists things."""
        join = PatternJoin(self.zero_shot.index, pattern, directed=pattern.directed is not False)
        return join.bindings([str(pattern.target)], "none")[:, 0]

    def noun_nearness(self, noun: Sequence[Token]) -> Array:
        """Return how near a noun is to each class, or zeros for no noun."""
        words = " ".join(token.word for token in noun if token.word)
        return self.classes.nearness(words) if words else np.zeros(len(self.classes.labels))

    def find(
        self,
        tokens: Sequence[Token],
        at: int,
        group: int,
        kinds: Collection[str],
        *,
        words: str = "",
        unit: str = "",
        max_steps: int = 1,
        weight: float | None = None,
    ) -> Way | None:
        """Return the likeliest walk from a class to values.

        Args:
            tokens: A text that asks for the value.
            at: Where something stands for the class.
            group: The class.
            kinds: What the values may be.
            words: Words that may name the relation; those of the text where it is empty.
            unit: The unit that the numbers must have, where some of the graph have it.
            max_steps: The most steps.
            weight: How much the words count; None for `NAME_WEIGHT`.
        """
        words = words or telling_words(tokens)
        ways = self.from_class(tokens, at, group, max_steps=max_steps)
        return self.best(ways, group, kinds, words, unit, weight)

    def best(
        self,
        ways: Sequence[Way],
        group: int,
        kinds: Collection[str],
        words: str,
        unit: str = "",
        weight: float | None = None,
    ) -> Way | None:
        """Return the likeliest of some walks that leads to values. Its logarithm includes the evidence of its name."""
        found = [
            replace(way, log=way.log + self._named(way, words, weight or NAME_WEIGHT) + self._shared(way, group))
            for way in ways
            if self._fits(way, kinds, unit) and not self._is_other_measure(words, way.labels[-1])
        ]
        return likeliest(found) if found else None

    def _fits(self, way: Way, kinds: Collection[str], unit: str) -> bool:
        if self.classes.end_kind(way.labels) not in kinds:
            return False
        if not unit:
            return True
        own = self.unit_of(way.labels[-1])
        return known_unit(own) == known_unit(unit) if known_unit(own) else is_unit(unit_symbol(unit), [own])

    def _named(self, way: Way, words: str, weight: float) -> float:
        return weight * self.nearness(words, way.labels[-1], telling=True) - STEP_COST * (len(way.labels) - 1)

    def _measures(self, label: int) -> frozenset[str]:
        """Return what the name of a relation measures, or else its unit."""
        return self._steps.measures[relation_of(label)] or measured_by([self.unit_of(label).casefold()])

    def unit_of(self, label: int) -> str:
        """Return the unit of the numbers to which a label leads: as the relation's name says it, or as most have it."""
        if label not in self._units:
            units = self._columns.units[self.classes.members[self.classes.end_of([label])]]
            counts = np.bincount(units)[1:]
            most = int(counts.argmax()) + 1 if (counts > len(units) / 2).any() else 0
            symbol = next(name for name, number in self._columns.unit_symbols.items() if number == most)
            is_number = self.classes.end_kind([label]) == "number"
            self._units[label] = (named_unit(self._steps.names[relation_of(label)]) if is_number else "") or symbol
        return self._units[label]

    def _named_measures(self, label: int) -> frozenset[str]:
        """Return what the first telling word of a relation measures: of "height in m", not the metres."""
        measures = (measured_by([word]) for word in self._steps.names[relation_of(label)].casefold().split())
        return next(filter(None, measures), self._measures(label))

    def _is_other_measure(self, words: str, label: int) -> bool:
        """Whether words ask for another measure than a relation that none of them names: no price is in kilograms."""
        asked, own = measured_by(words.split()), self._measures(label)
        return bool(asked and own) and asked.isdisjoint(own) and self.nearness(words, label) < SAME_WORD

    def _shared(self, way: Way, group: int) -> float:
        """Return the logarithm of the share of a class that has the first relation of a walk."""
        if group < 0:
            return 0.0
        heads = self.classes.counts[reversed_label(way.labels[0])]
        return SHARE_WEIGHT * float(np.log(min(heads / max(self.classes.size_of(group), 1), 1.0)))

    def is_unit(self, word: str) -> bool:
        """Whether numbers of the graph have a unit of a name, as "kilometres"."""
        return is_unit(unit_symbol(word), self._columns.unit_symbols)

    def nearness(self, words: str, label: int, *, telling: bool = False) -> float:
        """Return the cosine of the nearest word of a label's relation with some words, or with the telling ones."""
        rows = [word.vector for word in question_words(self._table, words) if word.telling or not telling]
        own = self._steps.words[relation_of(label)]
        best = max((float((own @ row).max()) for row in rows), default=0.0)
        same = not measured_by(words.split()).isdisjoint(self._measures(label))
        return max(best, A_MEASURE) if same else best

    def limit_way(self, form: Form, limit: Limit, group: int) -> Way | None:
        """Return the likeliest walk from a class to the values that a limit is about."""
        kinds, ways = kinds_of(limit.value, limit.kind), list[Way]()
        words = telling_words(form.clause, form.noun)
        for kind in kinds:
            text, at = standing(form.clause, form.noun, "when" if kind == "date" else "how many")
            unit = limit.value.unit if kind == "number" else ""
            said = f"{words} {limit.word}".strip() if kind == "number" else words
            found = self.from_class(text, at, group)
            if form.leaves_open:
                found = [
                    one for one in found if len(one.labels) > 1 and self.nearness(words, one.labels[0]) >= SAME_NAME
                ]
            weight = ADJECTIVE_WEIGHT if limit.word and not words else None
            way = self.best(found, group, (kind,), said, unit, weight)
            if way and unit and limit.word and self._names_other_unit(text, at, group, limit.word, way):
                return None  # "deeper than 0.5 km", where depths are in metres
            ways += [way] if way else []
        return likeliest(ways) if ways else None

    def _names_other_unit(self, text: Sequence[Token], at: int, group: int, adjective: str, way: Way) -> bool:
        """Whether an adjective rather names a number in another unit."""
        other = self.find(text, at, group, ("number",), words=adjective, max_steps=1, weight=ADJECTIVE_WEIGHT)
        return other is not None and self.is_nearer(adjective, other, way)

    def is_nearer(self, words: str, one: Way, other: Way) -> bool:
        """Whether words rather name the relation to which one of two walks leads."""
        return self.nearness(words, one.labels[-1]) > self.nearness(words, other.labels[-1]) + A_LITTLE

    def degree_way(self, form: Form, degree: Degree, group: int) -> Way | None:
        """Return the walk to the values by which an adjective compares; None if several numbers fit it alone."""
        kinds = ("date",) if degree.time else ("number",)
        adjective = words_of(degree.words[:1])
        more = " ".join(token.word for token in degree.words[1:])
        telling = telling_words(form.clause, form.noun)
        words = f"{adjective} {more or telling or (_BEGINNINGS if degree.time else '')}".strip()
        opening = "when was" if degree.time else f"how {adjective} is"
        text = [*map(Token, opening.split()), stand_in("it"), *map(Token, (more or telling).split())]
        ways = self.from_class(text, len(opening.split()), group, max_steps=1)
        ways = [way for way in ways if all(self.ends(token, way.labels) for token in form.standards)]
        if degree.time or more or telling:
            return self.best(ways, group, kinds, words)
        asked = measured_by([adjective])
        fits = [way for way in ways if self._fits(way, kinds, "") and asked & self._named_measures(way.labels[0])]
        return None if len(fits) > 1 else self.best(fits or ways, group, kinds, words, weight=ADJECTIVE_WEIGHT)

    def comparable(self, form: Form) -> list[str]:
        """Return the relations of numbers and dates that things of the kind have which an adjective compares."""
        kind = self.within(form.noun)._kind
        if kind is None or form.degree is None or not form.degree.raw:
            return []
        found = list[str]()
        for label in range(0, len(self.classes.of_label), 2):
            firsts, lasts = self.graph.adjacency.ranges_with(kind, label)
            if self.classes.end_kind([label]) in ("number", "date") and (firsts < lasts).any():
                found.append(self.graph.relations[relation_of(label)])
        return found

    def number_way(
        self, noun: Sequence[Token], group: int, rest: Sequence[Token] = (), least: float = SAME_NAME
    ) -> Way | None:
        """Return the walk to the number of something, if a relation is called so.

        Args:
            noun: What there is a number of.
            group: The class that has the number.
            rest: More words of the question, as in "sleep more people".
            least: How near the relation must be to one of all these words.
        """
        own = [token.word for token in noun if token.word]
        text = [Token("how"), Token("many"), *noun, *rest, Token("has"), stand_in("it")]
        ways = (
            self.find(text, len(text) - 1, group, ("number",), words=words)
            for words in (" ".join(own), " ".join(token.word for token in rest))
            if words
        )
        return next(
            (way for way in ways if way and self._is_called(way, [*own, *(token.word for token in rest)], least)), None
        )

    def _is_called(self, way: Way, words: Sequence[str], least: float) -> bool:
        """Whether the relation of a number is nearer to a word than all that can be counted."""
        named = max((self.nearness(word, way.labels[-1]), word) for word in words)
        return named[0] >= least and (named[0] > self.classes.closeness(named[1]) or named[0] >= SAME_WORD)
