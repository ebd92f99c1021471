"""What is counted for each thing of a class, and what must not hold of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kg_retrievers.graph.adjacency import reversed_label
from kg_retrievers.questions.question_forms.classes import NOUN_WEIGHT, PEOPLE
from kg_retrievers.questions.question_forms.forms import (
    Degree,
    Form,
    Limit,
    Quantity,
    Token,
    telling_words,
    words_of,
)
from kg_retrievers.questions.question_forms.values import (
    MAY_NAME,
    MOST_CLASSES,
    NAME_WEIGHT,
    SAME_NAME,
    SAME_WORD,
    Arms,
    WalkFinder,
    Way,
    before_slot,
    best_by_class,
    keys_of,
    likeliest,
    likeliest_classes,
    span_of,
)
from kg_retrievers.questions.self_questions.english import is_plural

#: So many things are not counted by a walk of several steps, which may pass by few.
MANY = 5

#: A greater number of things is rather a number that the graph states.
MOST_COUNTED = 12


#: How much likelier it makes a class that its things have a number that is called by the very word for it.
CALLED_NUMBER = 8.0

#: How much likelier it makes a walk that its relation calls the counted things by their noun.
CALLED_WEIGHT = 4.0


class Counting:
    """Finds the walks from things of a class to counted or compared things, and walks that must lead nowhere.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep it."""
        self._walks, self._classes, self._graph = walks, walks.classes, walks.graph

    def add_degree(self, form: Form, arms: Arms, degree: Degree) -> bool:
        """Add the walk by which the things of a class are compared; False where there is none."""
        if degree.often:
            return self._add_often(form, arms, degree)
        if not degree.noun:
            way = self._walks.degree_way(form, degree, arms.group)
            is_named = len(degree.words) > 1 and not degree.time
            if way and is_named and self._walks.nearness(words_of(degree.words), way.labels[-1]) < MAY_NAME:
                return False  # "the highest score", which nothing has
            words = f"{words_of(degree.words)} {telling_words(form.clause, form.noun)}"
            if way and form.standards and not degree.time and self._walks.nearness(words, way.labels[-1]) < SAME_NAME:
                return False  # "better than it", by any number
            return arms.add("value", degree, way)
        if way := self._walks.number_way((*degree.noun, *degree.words), arms.group, _rest(form, degree.noun)):
            is_called = self._walks.nearness(words_of(degree.noun[-1:]), way.labels[-1]) >= SAME_WORD
            arms.log += CALLED_NUMBER * is_called  # rather a number of pages than pages to count
            return arms.add("value", degree, way)
        if len(degree.noun) == 1 and not is_plural(degree.noun[0].word):  # "more staff": a number rather than things
            way = self._walks.number_way(degree.noun, arms.group, least=MAY_NAME)
            if way:
                return arms.add("value", degree, way)
        return self.add_counted(form, arms, degree.noun, None)

    def _add_often(self, form: Form, arms: Arms, degree: Degree) -> bool:
        """Add what happens most often: another noun of the clause is counted, or a number says how often."""
        rest = _rest(form, ())
        if way := self._walks.number_way(rest, arms.group):
            return arms.add("value", degree, way)
        nouns = [token for token in rest if is_plural(token.word)]
        return bool(nouns) and self.add_counted(form, arms, nouns[:1], None)

    def add_quantity(self, form: Form, arms: Arms, quantity: Quantity) -> bool:
        """Add how many of something the things of a class must have, or how great a number of theirs must be."""
        limit = Limit(quantity.comparison, (str(quantity.number),), 0, 0, "number")
        if quantity.number > MOST_COUNTED and arms.add("limit", limit, self._walks.limit_way(form, limit, arms.group)):
            return True
        if way := self._walks.number_way(quantity.noun, arms.group, _rest(form, quantity.noun)):
            return arms.add("limit", limit, way)
        return self.add_counted(form, arms, quantity.noun, quantity)

    def add_counted(self, form: Form, arms: Arms, noun: Sequence[Token], quantity: Quantity | None) -> bool:
        """Add the walk from what is counted to what it is counted for."""
        least = quantity.number + (quantity.comparison == ">") if quantity else 2
        needed = least if quantity is None or quantity.comparison in (">", ">=", "=") else max(least // 2, 1)
        way = self.counted_way(form.clause, noun, arms.group, needed)
        if way is None or not arms.add("count", quantity, way):
            return False
        return self._move_entities(arms, noun, form, way.start)

    def counted_way(self, clause: Sequence[Token], noun: Sequence[Token], group: int, needed: int) -> Way | None:
        """Return the likeliest walk from things that a noun means to a class, and how likely it is with the noun."""
        plain = [token for token in noun if not token.slot]
        near = self._walks.noun_nearness(plain)
        tokens = list(clause)
        span = span_of(tokens, plain)
        if span[0] == span[1]:
            tokens, span = [*tokens, *plain], (len(tokens), len(tokens) + len(plain))
        found = list[Way]()
        words = telling_words(clause, plain)
        walks = self._walks.within(plain)
        for counted in likeliest_classes(near, MOST_CLASSES, 1.0):
            noun_log = NOUN_WEIGHT * float(near[counted])
            for way in walks.from_class(tokens, span, counted):
                fits = self._classes.end_of(way.labels) == group and self._walks.meets(walks, way)
                if fits and self._many(way, needed):
                    named = NAME_WEIGHT * min(self._walks.nearness(words, label) for label in way.labels)
                    named += CALLED_WEIGHT * self._classes.is_called(way.labels[0], words_of(plain[-1:]))
                    found.append(replace(way, log=way.log + noun_log + named))
        return likeliest(found) if found else None

    def _many(self, way: Way, needed: int) -> bool:
        """Whether something has so many of where a walk starts, as far as a walk of one step tells."""
        if needed < 2:
            return True
        if len(way.labels) > 1:
            return needed < MANY
        label = reversed_label(way.labels[0])
        adjacency = self._graph.adjacency
        members = self._classes.members[self._classes.end_of(way.labels)]
        firsts, lasts = adjacency.ranges_with(members, label)
        return bool((lasts - firsts).max(initial=0) >= needed)

    def _move_entities(self, arms: Arms, noun: Sequence[Token], form: Form, counted: int) -> bool:
        """Let entities inside the noun of what is counted speak of that."""
        for number, (role, what, way) in enumerate(list(arms.ways)):
            if role != "entity" or not isinstance(what, tuple):
                continue
            if not all(form.clause[at] in noun for at in what):
                continue
            plain = [token for token in noun if not token.slot]
            text = [Token("which"), *plain, Token("of"), form.clause[what[0]]]
            moved = best_by_class(self._walks.from_entity(text, len(text) - 1), self._classes).get(counted)
            if moved is None:
                return False
            arms.ways[number] = ("counted entity", what, moved)
            arms.log += moved.log - way.log
        return True

    def add_negative(self, form: Form, arms: Arms) -> bool:
        """Add what must not hold; False where it is not found."""
        negative = list(form.negative)
        slots = [at for at, token in enumerate(negative) if token.slot]
        if not slots:
            return self._add_lacking(form, arms)
        if not any(token.telling for token in negative):
            if self._is_one(negative, arms.group) and not self._is_one(form.clause, arms.group):
                certain = Way((), 0.0, 1.0)  # it is one of what is looked for, as in "who designed it but not Ann?"
                return all(arms.add("other entity", negative[at], certain) for at in slots)
            negative = [*before_slot(form.clause), *negative]
        else:
            asking = [] if form.noun and form.noun[0].word in PEOPLE else [Token("which")]
            negative = [*asking, *form.noun, *negative]
        for at in (at for at, token in enumerate(negative) if token.slot):
            others = [i for i, token in enumerate(negative) if i != at and token.slot]
            text = [token for i, token in enumerate(negative) if i not in others]
            place = at - sum(i < at for i in others)
            ways = best_by_class(self._walks.from_entity(text, place), self._classes)
            if not arms.add("absent entity", negative[at], ways.get(arms.group)):
                return False
        return True

    def _is_one(self, tokens: Sequence[Token], group: int) -> bool:
        """Whether an entity among some words is of a class."""
        keys = keys_of([token.slot for token in tokens if token.slot])
        return self._classes.containing([self._graph.entities.find(key) for key in keys])[group]

    def _add_lacking(self, form: Form, arms: Arms) -> bool:
        """Add what members of the class do not have at all."""
        words = telling_words(form.negative)
        if not words:
            return False
        text = [Token("what"), Token("it"), *form.negative]
        ways = self._walks.from_class(text, (1, 2), arms.group, max_steps=1)
        named = [replace(way, log=way.log + NAME_WEIGHT * self._walks.nearness(words, way.labels[-1])) for way in ways]
        return arms.add("lacking", None, likeliest(named) if named else None)


def _rest(form: Form, noun: Sequence[Token]) -> list[Token]:
    """Return the telling words of a clause that are in neither of its nouns."""
    return [token for token in form.clause if token.telling and token not in form.noun and token not in noun]
