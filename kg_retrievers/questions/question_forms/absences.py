"""What must not hold of the things that a form asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kg_retrievers.questions.question_forms.arms import Arms
from kg_retrievers.questions.question_forms.asking import Asker, Way, best_by_class, likeliest
from kg_retrievers.questions.question_forms.class_words import PEOPLE
from kg_retrievers.questions.question_forms.forms import Form
from kg_retrievers.questions.question_forms.spans import before_slot, keys_of
from kg_retrievers.questions.question_forms.tokens import Token, telling_words
from kg_retrievers.questions.question_forms.values import NAME_WEIGHT, ValueFinder


class Absences:
    """Finds the walks that must lead nowhere.

    Args:
        asker: Ranks walks.
        values: Finds relations of values.
    """

    def __init__(self, asker: Asker, values: ValueFinder) -> None:
        """Keep both."""
        self._asker, self._values = asker, values
        self._classes, self._graph = asker.classes, asker.graph

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
            ways = best_by_class(self._asker.from_entity(text, place), self._classes)
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
        ways = self._asker.from_class(text, (1, 2), arms.group, max_steps=1)
        named = [replace(way, log=way.log + NAME_WEIGHT * self._values.nearness(words, way)) for way in ways]
        return arms.add("lacking", None, likeliest(named) if named else None)
