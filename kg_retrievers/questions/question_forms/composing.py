"""Puts what was found for the parts of a form into one pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count, pairwise
from typing import Literal

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.question_forms.forms import Degree, Form, Limit, Token
from kg_retrievers.questions.question_forms.values import (
    CERTAIN,
    CERTAIN_COUNT,
    Arms,
    UnreadError,
    WalkFinder,
    Way,
    keys_of,
    sureness,
)

_Triple = tuple[Term, Term, Term]


class PatternBuilder:
    """Collects what a pattern consists of.

    Args:
        graph: Gives the names of relations.
        type: The type of what is looked for.
        base: A pattern that lists it, to which more is added; then its target has the type, if it has none.
    """

    def __init__(self, graph: KnowledgeGraph, type: str | None = None, base: Pattern | None = None) -> None:
        """Begin with nothing, or with the pattern."""
        self._graph, self._base = graph, base
        self.triples: list[_Triple] = []
        self.absent: list[_Triple] = []
        self.conditions: list[Condition] = []
        self.operation: Operation | None = None
        self.confidence = 1.0
        self._names = set[str]()
        if base is None:
            self.target = self.unknown(type)
        else:
            self._begin_with(base, type)

    def _begin_with(self, base: Pattern, type: str | None) -> None:
        unknown = {node.name: node for node in base.nodes if isinstance(node, Unknown)}
        listed, self._names = unknown[str(base.target)], {*unknown}
        self.target = Unknown(listed.name, listed.type or type)
        for into, triples in ((self.triples, base.triples), (self.absent, base.absent)):
            for triple in triples:
                head, tail = (self.target if end == listed else end for end in triple[::2])
                into.append((head, triple.relation, tail))
        self.conditions = list(base.conditions)

    def unknown(self, type: str | None = None, called: str = "") -> Unknown:
        """Return an unknown that is not used yet, of a type and with a name if these are given."""
        names = chain([called] if called else [], (f"{called or 'entity'} {number}" for number in count(1)))
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return Unknown(name, type)

    def walk(self, start: Term, labels: Sequence[int], end: Term, *, absent: bool = False) -> None:
        """Add a walk from one node to another."""
        nodes = [start, *(self.unknown() for _ in labels[1:]), end]
        into = self.absent if absent else self.triples
        for (here, there), label in zip(pairwise(nodes), labels, strict=True):
            relation = Known(self._graph.relations[relation_of(label)])
            into.append((there, relation, here) if is_backward(label) else (here, relation, there))

    def add(self, other: Pattern) -> None:
        """Add what another pattern says of its target."""
        new = {str(other.target): self.target}

        def term(old: Term) -> Term:
            if not isinstance(old, Unknown):
                return old
            if old.name not in new:
                new[old.name] = self.unknown(old.type)
            return new[old.name]

        for into, triples in ((self.triples, other.triples), (self.absent, other.absent)):
            into += [(term(head), relation, term(tail)) for head, relation, tail in triples]
        self.conditions += [replace(one, unknown=new[one.unknown].name) for one in other.conditions]

    def pattern(self) -> Pattern:
        """Return the pattern."""
        nodes = {node for triple in self.triples for node in triple}
        kept = {} if self._base is None else {"different": self._base.different, "revisits": self._base.revisits}
        return Pattern.of(
            *self.triples,
            **kept,  # type: ignore[arg-type] # of a pattern
            alone=[] if self.triples else [self.target],
            target=self.target.name if self.target in nodes or not self.triples else None,
            directed=True,
            conditions=self.conditions,
            absent=self.absent,
            operation=self.operation,
            typed=True if any(isinstance(node, Unknown) and node.type for node in {*nodes, self.target}) else None,
            source="question-forms",
            confidence=self.confidence,
        )


class Composer:
    """Writes patterns.

    Args:
        walks: Has the graph and its classes.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep them."""
        self._walks, self._classes, self._graph = walks, walks.classes, walks.graph

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
                    if form.standards:
                        self._add_comparison(builder, what, way, by, form.standards[0])
                    else:
                        builder.operation = best_operation(what, by.name, "value")
                case "count":
                    assert counted
                    builder.walk(counted, way.labels, builder.target)
                    builder.operation = self._count_operation(form, counted.name, way)
                case _:
                    self._add_other(builder, role, what, way)
        if not builder.target.type and not any(builder.target in triple for triple in builder.triples):
            builder.walk(builder.unknown(), [self._classes.defining_label(arms.group)], builder.target)
        if not builder.triples and builder.operation is None:
            builder.operation = Operation("list")
        return builder.pattern()

    def _type(self, noun: Sequence[Token], clause: Sequence[Token]) -> str | None:
        """Return the type that a noun of a clause names."""
        words = [token.word for token in noun if token.word]
        after = clause.index(noun[-1]) + 1 if noun and noun[-1] in clause else len(clause)
        return self._walks.kinds.of_noun(words, clause[after].word if after < len(clause) else "")

    def _add_other(self, builder: PatternBuilder, role: str, what: object, way: Way) -> None:
        """Add what is true, absent or only mentioned."""
        match role:
            case "absent entity":
                assert isinstance(what, Token)
                builder.walk(what.node, way.labels, builder.target, absent=True)
            case "truth":
                self._add_truth(builder, way, True)
            case "other entity":
                assert isinstance(what, Token)
                builder.conditions.append(Condition(builder.target.name, "!=", what.text))
            case "lacking":
                self._add_absent(builder, way)
            case _:
                builder.walk(builder.unknown(), way.labels, builder.target)

    def _count_operation(self, form: Form, counted: str, way: Way) -> Operation:
        if form.quantity:
            quantity = form.quantity
            return Operation("list", by=(counted,), of="count", comparison=quantity.comparison, number=quantity.number)
        assert form.degree
        if not form.standards:
            return best_operation(form.degree, counted, "count")
        if form.kind == "count":
            raise UnreadError
        number = len(self._walks.ends(form.standards[0], way.back))
        return Operation("list", by=(counted,), of="count", comparison=form.degree.comparison, number=number)

    def _add_comparison(self, builder: PatternBuilder, degree: Degree, way: Way, by: Unknown, standard: Token) -> None:
        """Add that a value is greater or less than that of an entity, which must have one."""
        values = self._walks.ends(standard, way.labels)
        if len(values) != 1:
            raise UnreadError
        builder.conditions.append(Condition(by.name, degree.comparison, values[0]))
        builder.walk(standard.node, way.labels, builder.unknown())

    def _add_entities(self, builder: PatternBuilder, tokens: Sequence[Token], way: Way, end: Term, both: bool) -> None:
        if len(tokens) == 1 or both:
            for token in tokens:
                builder.walk(token.node, way.labels, end)
            return
        any_of = builder.unknown()
        builder.walk(any_of, way.labels, end)
        builder.conditions.append(Condition(any_of.name, "in", tuple(keys_of(tokens))))

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
    if degree.most > 1 or degree.offset:
        descending = degree.sign > 0
        return Operation("order", by=(by,), of=of, limit=degree.most, descending=descending, offset=degree.offset)
    return Operation("max" if degree.sign > 0 else "min", by=(by,), of=of)
