"""Reads whether something holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kg_retrievers.graph import Pattern
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.question_forms.arms import SAME_NAME, UnreadError, sureness
from kg_retrievers.questions.question_forms.asking import Asker, Way, likeliest
from kg_retrievers.questions.question_forms.building import PatternBuilder
from kg_retrievers.questions.question_forms.composing import Composer
from kg_retrievers.questions.question_forms.counting import MOST_COUNTED
from kg_retrievers.questions.question_forms.forms import Form, Quantity
from kg_retrievers.questions.question_forms.literals import Limit
from kg_retrievers.questions.question_forms.spans import node_of
from kg_retrievers.questions.question_forms.tokens import Token, telling_words
from kg_retrievers.questions.question_forms.values import ValueFinder, kinds_of
from kg_retrievers.questions.zero_shot.ranking import softmax


class Whether:
    """Reads yes-no questions.

    Args:
        asker: Ranks walks.
        values: Finds relations of values.
    """

    def __init__(self, asker: Asker, values: ValueFinder) -> None:
        """Keep both."""
        self._asker, self._values = asker, values
        self._classes, self._graph = asker.classes, asker.graph
        self._composer = Composer(asker)

    def read(self, form: Form) -> Pattern:
        """Return the pattern of a form.

        Raises:
            UnreadError: If a part of it is not found.
        """
        slots = [at for at, token in enumerate(form.clause) if token.slot]
        if form.negative or not 1 <= len(slots) <= 2 or len(form.limits) + bool(form.quantity) > 1:
            raise UnreadError
        if form.quantity:
            return self._number(form, form.quantity, slots)
        if len(slots) == 2:
            if form.limits:
                raise UnreadError
            return self._fact(form, *slots)
        builder = PatternBuilder(self._graph)
        slot = form.clause[slots[0]].slot
        assert slot
        builder.operation = Operation("exists")
        way = self._value_of_entity(form, slots[0])
        if way is None:
            raise UnreadError
        builder.confidence = sureness([way])
        if form.limits:
            self._composer.add_limit(builder, form.limits[0], way, node_of(slot))
        else:
            truth = builder.unknown()
            builder.walk(node_of(slot), way.labels, truth)
            builder.conditions.append(Condition(truth.name, "=", True))
        return builder.pattern()

    def _number(self, form: Form, quantity: Quantity, slots: Sequence[int]) -> Pattern:
        """Read whether a number that the graph states is so great."""
        words = telling_words(form.clause)
        limit = Limit(quantity.comparison, (str(quantity.number),), 0, 0, "number")
        form = replace(form, quantity=None, limits=(limit,))
        way = self._value_of_entity(form, slots[0]) if len(slots) == 1 else None
        if way is None or (quantity.number <= MOST_COUNTED and self._values.nearness(words, way) < SAME_NAME):
            raise UnreadError
        return self.read(form)

    def _value_of_entity(self, form: Form, at: int) -> Way | None:
        """Return the walk from the one entity of a question to the value that it asks about."""
        words = telling_words(form.clause)
        limit = form.limits[0].value if form.limits else None
        found = list[Way]()
        for kind in kinds_of(limit, form.limits[0].kind) if limit else ("truth",):
            opening = {"date": ["when"], "number": ["how", "many"]}.get(kind, ["what"])
            text = [*map(Token, opening), *form.clause]
            ways = self._asker.from_entity(text, at + len(opening), max_steps=1)
            unit = limit.unit if limit and kind == "number" else ""
            way = self._values.best(ways, -1, (kind,), words, unit)
            if kind == "truth" and way and self._values.nearness(words, way) < SAME_NAME:
                continue  # "Does it have wifi?" is none of what is said to be true of it
            found += [way] if way else []
        return likeliest(found) if found else None

    def _fact(self, form: Form, one: int, other: int) -> Pattern:
        """Read whether a walk joins two entities."""
        found = list[tuple[Way, int, int]]()
        for here, there in ((one, other), (other, one)):
            slot = form.clause[there].slot
            assert slot
            ids = [self._graph.entities.find(key) for key in slot.entities[: slot.best]]
            fits = self._classes.containing(ids)
            ways = self._asker.from_entity(form.clause, here, max_steps=2)
            found += [(way, here, there) for way in ways if fits[self._classes.end_of(way.labels)]]
        if not found:
            raise UnreadError
        best = likeliest([way for way, _, _ in found])
        shares = softmax(np.array([way.log for way, _, _ in found]))
        same = [_undirected(way) == _undirected(best) for way, _, _ in found]
        best = replace(best, share=float(shares[same].sum()))
        here, there = next((here, there) for way, here, there in found if way.labels == best.labels)
        builder = PatternBuilder(self._graph)
        first, last = form.clause[here].slot, form.clause[there].slot
        assert first
        assert last
        builder.walk(node_of(first), best.labels, node_of(last))
        builder.operation = Operation("exists")
        builder.confidence = sureness([best])
        return builder.pattern()


def _undirected(way: Way) -> tuple[int, ...]:
    """Return the same for a walk and for the way back."""
    return min(way.labels, way.back)
