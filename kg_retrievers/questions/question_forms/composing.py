"""Puts what was found for the parts of a form into one pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kg_retrievers.graph import Pattern, Term
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.asked_types import type_nouns
from kg_retrievers.questions.question_forms.arms import CERTAIN, CERTAIN_COUNT, Arms, sureness
from kg_retrievers.questions.question_forms.asking import Asker, Way
from kg_retrievers.questions.question_forms.building import PatternBuilder
from kg_retrievers.questions.question_forms.forms import Degree, Form
from kg_retrievers.questions.question_forms.literals import Limit
from kg_retrievers.questions.question_forms.spans import keys_of, node_of
from kg_retrievers.questions.question_forms.tokens import Token


class Composer:
    """Writes patterns.

    Args:
        asker: Has the graph and its classes.
    """

    def __init__(self, asker: Asker) -> None:
        """Keep them."""
        self._classes, self._graph = asker.classes, asker.graph
        self._types = type_nouns(asker.zero_shot.index)

    def pattern(self, form: Form, arms: Arms, share: float) -> Pattern:
        """Return the pattern of what was found, in a class with this share."""
        builder = PatternBuilder(self._graph, self._type(form.noun, form.clause))
        certain = CERTAIN_COUNT if form.kind == "count" else CERTAIN
        builder.confidence = sureness([way for _, _, way in arms.ways], share, arms.near, certain)
        if form.kind in ("count", "exists"):
            builder.operation = Operation("count" if form.kind == "count" else "exists")
        part = form.quantity or form.degree
        counts = any(role == "count" for role, _, _ in arms.ways)
        counted = builder.unknown(self._type(part.noun if part else (), form.clause)) if counts else None
        for role, what, way in arms.ways:
            match role:
                case "entity" | "counted entity":
                    assert isinstance(what, tuple)
                    end = builder.target if role == "entity" or counted is None else counted
                    self._add_entities(builder, [form.clause[at] for at in what], way, end, form.both)
                case "limit":
                    assert isinstance(what, Limit)
                    self.add_limit(builder, what, way, builder.target)
                case "value":
                    assert isinstance(what, Degree)
                    by = builder.unknown()
                    builder.walk(builder.target, way.labels, by)
                    builder.operation = best_operation(what, by.name, "value")
                case "count":
                    assert counted
                    builder.walk(counted, way.labels, builder.target)
                    builder.operation = self._count_operation(form, counted.name)
                case _:
                    self._add_other(builder, role, what, way)
        if not any(builder.target in triple for triple in builder.triples):
            builder.walk(builder.unknown(), [self._classes.defining_label(arms.group)], builder.target)
        return builder.pattern()

    def _type(self, noun: Sequence[Token], clause: Sequence[Token]) -> str | None:
        """Return the type that a noun of a clause names."""
        words = [token.word for token in noun if token.word]
        after = clause.index(noun[-1]) + 1 if noun and noun[-1] in clause else len(clause)
        return self._types.of_noun(words, clause[after].word if after < len(clause) else "")

    def _add_other(self, builder: PatternBuilder, role: str, what: object, way: Way) -> None:
        """Add what is true, absent or only mentioned."""
        match role:
            case "absent entity":
                assert isinstance(what, Token)
                assert what.slot
                builder.walk(node_of(what.slot), way.labels, builder.target, absent=True)
            case "truth":
                self._add_truth(builder, way, True)
            case "other entity":
                assert isinstance(what, Token)
                builder.conditions.append(Condition(builder.target.name, "!=", what.text))
            case "lacking":
                self._add_absent(builder, way)
            case _:
                builder.walk(builder.unknown(), way.labels, builder.target)

    def _count_operation(self, form: Form, counted: str) -> Operation:
        if form.quantity:
            quantity = form.quantity
            return Operation("list", by=(counted,), of="count", comparison=quantity.comparison, number=quantity.number)
        assert form.degree
        return best_operation(form.degree, counted, "count")

    def _add_entities(self, builder: PatternBuilder, tokens: Sequence[Token], way: Way, end: Term, both: bool) -> None:
        slots = [token.slot for token in tokens if token.slot]
        if len(slots) == 1 or both:
            for slot in slots:
                builder.walk(node_of(slot), way.labels, end)
            return
        any_of = builder.unknown()
        builder.walk(any_of, way.labels, end)
        builder.conditions.append(Condition(any_of.name, "in", tuple(keys_of(slots))))

    def add_limit(self, builder: PatternBuilder, limit: Limit, way: Way, start: Term) -> None:
        """Add a walk to a value with its condition."""
        value = builder.unknown()
        builder.walk(start, way.labels, value)
        literal = limit.values if limit.operator == "between" else limit.values[0]
        builder.conditions.append(Condition(value.name, limit.operator, literal))

    def _add_absent(self, builder: PatternBuilder, way: Way) -> None:
        group = self._classes.end_of(way.labels)
        if self._classes.kinds[group] == "truth" and len(self._classes.members[group]) > 1:
            self._add_truth(builder, way, False)  # the graph says of some that it does not hold
            return
        builder.walk(builder.target, way.labels, builder.unknown(), absent=True)

    def _add_truth(self, builder: PatternBuilder, way: Way, truth: bool) -> None:
        value = builder.unknown()
        builder.walk(builder.target, way.labels, value)
        builder.conditions.append(Condition(value.name, "=", truth))


def best_operation(degree: Degree, by: str, of: Literal["value", "count"]) -> Operation:
    """Return the operation that finds the first by a degree, or so many of them."""
    if degree.most > 1:
        return Operation("order", by=(by,), of=of, limit=degree.most, descending=degree.sign > 0)
    return Operation("max" if degree.sign > 0 else "min", by=(by,), of=of)
