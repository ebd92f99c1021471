"""Reads a form as a pattern: which relations its words ask for, and which class it is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain, count, pairwise
from typing import Literal

import numpy as np

from kg_retrievers.errors import PatternError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, spread
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.graph.values import known_unit
from kg_retrievers.questions.operations import operation_result
from kg_retrievers.questions.possible_entities import PatternJoin
from kg_retrievers.questions.question_forms.classes import MEMBERS, NOUN_WEIGHT, PEOPLE
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    Degree,
    Form,
    Limit,
    Quantity,
    Token,
    is_verb,
    joined,
    telling_words,
    words_of,
)
from kg_retrievers.questions.question_forms.grammar import NEGATIVE
from kg_retrievers.questions.question_forms.values import (
    CERTAIN,
    CERTAIN_COUNT,
    MAX_STEPS,
    MAY_NAME,
    NAME_WEIGHT,
    NEAR,
    SAME_NAME,
    SAME_WORD,
    Arms,
    UnreadError,
    WalkFinder,
    Way,
    best_by_class,
    keys_of,
    kinds_of,
    likeliest,
    span_of,
    stand_in,
    standing,
    sureness,
)
from kg_retrievers.questions.self_questions.english import PREPOSITIONS, is_plural, singular_of, verb_of
from kg_retrievers.questions.zero_shot.scorer import softmax
from kg_retrievers.questions.zero_shot.steps import measured_by

_Triple = tuple[Term, Term, Term]


class PatternBuilder:
    """Collects the parts of a pattern.

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
        """Add another pattern's statements about its target."""
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
        """Return the pattern of the parts found, in a class with this share."""
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


#: How many classes a noun may mean, of those nearest to it.
MOST_CLASSES = 5

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
        """Add the walk by which the things of a class are compared, and return False if there is none."""
        if degree.often:
            return self._add_often(form, arms, degree)
        if not degree.noun:
            way = self._walks.degree_way(form, degree, arms.group)
            beside = degree.words[1:]
            named = beside if degree.time and form.kind == "best" else degree.words
            if way and beside and self._walks.nearness(words_of(named), way.labels[-1]) < MAY_NAME:
                return False  # "the highest score", which nothing has
            words = f"{words_of(degree.words)} {telling_words(form.clause, form.noun)}"
            if way and form.standards and not degree.time and self._walks.nearness(words, way.labels[-1]) < SAME_NAME:
                return False  # "better than it", by any number
            return arms.add("value", degree, way)
        if way := self._walks.number_way((*degree.noun, *degree.words), arms.group, _rest(form, degree.noun)):
            is_called = self._walks.nearness(words_of(degree.noun[-1:]), way.labels[-1]) >= SAME_WORD
            arms.log += CALLED_NUMBER * is_called  # rather a number of pages than pages to count
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
        """Add the walk from the things counted to the thing they are counted for."""
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
        tokens, at = standing(clause, plain)
        found = list[Way]()
        words = telling_words(clause, plain)
        walks = self._walks.within(plain)
        for counted in likeliest_classes(near, MOST_CLASSES, 1.0):
            noun_log = NOUN_WEIGHT * float(near[counted])
            for way in walks.from_class(tokens, at, counted):
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
        firsts, lasts = self._graph.adjacency.ranges_with(self._graph.relation_samples.sources_of(label), label)
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
        """Add the facts that must not hold, and return False if they are not found."""
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
            found = [way for way in self._walks.from_entity(text, place) if self._passes_named(form, negative[at], way)]
            if not arms.add("absent entity", negative[at], best_by_class(found, self._classes).get(arms.group)):
                return False
        return True

    def _passes_named(self, form: Form, entity: Token, way: Way) -> bool:
        """Whether a walk passes things of each kind that a negation names, as bells in "towers with no bell by Ann"."""
        words = [token.word for token in form.negative if token not in form.noun]
        named = [kind_members(self._graph, kind) for *_, kind in self._walks.kinds.spans(words)]
        ids = self._walks.ids_of(entity)
        passed = [ids, *(self._walks.reached(ids, way.labels[:steps]) for steps in range(1, len(way.labels)))]
        return all(members is None or any(np.isin(ends, members).any() for ends in passed) for members in named)

    def _is_one(self, tokens: Sequence[Token], group: int) -> bool:
        """Whether an entity among some words is of a class."""
        return self._classes.containing(self._walks.ids_of(*tokens))[group]

    def _add_lacking(self, form: Form, arms: Arms) -> bool:
        """Add what members of the class do not have at all."""
        words = telling_words(form.negative)
        if not words:
            return False
        text = [Token("what"), stand_in("it"), *form.negative]
        ways = self._walks.from_class(text, 1, arms.group, max_steps=1)
        named = [replace(way, log=way.log + NAME_WEIGHT * self._walks.nearness(words, way.labels[-1])) for way in ways]
        return arms.add("lacking", None, likeliest(named) if named else None)


#: A question whether an entity has something: "does it have a tower", but not "is it a tower".
_HAS = re.compile(r"_ (?:(?:have|got|had) (?:any|an?|some)|any) ([a-z]+)(?: (?:on|in|at|of|to|for|with|from) it)?$")


#: How sure it is that somebody asks for the one relation that has the name of a noun.
OWNED = 0.9

#: How great a logit of the direction of a claim must be to be sure of it.
DIRECTION_SCALE = 2.0


def _undirected(way: Way) -> tuple[int, ...]:
    """Return the same for a walk and for the way back."""
    return min(way.labels, way.back)


#: How much less likely it makes a walk to pass by things that the noun fits better than the things at its end.
PASSING_COST = 2.0

#: Of how many classes of an entity, the largest first, other members are asked for the facts that it lacks.
MOST_ALIKE = 3

#: How much less likely it makes a walk that the entity from which it should start has no such fact.
LACKING_COST = 2.0


class FormReader:
    """Reads forms.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep it."""
        self.walks, self._classes, self._graph = walks, walks.classes, walks.graph
        self._counting, self._composer = Counting(walks), Composer(walks)

    def read(self, form: Form) -> Pattern:
        """Return the pattern of a form.

        Raises:
            UnreadError: If a part of it is not found in the graph, asks for what no form says, or contradicts another.
        """
        if form.unread:
            raise UnreadError
        try:
            match form.kind:
                case "exists":
                    return self._exists(form)
                case "compare" | "choice":
                    return self._compared(form)
                case _:
                    return self._things(form)
        except PatternError as error:
            raise UnreadError from error

    def list_of(self, tokens: Sequence[Token]) -> Pattern:
        """Return the pattern of a question for things of a kind, as "which ports in Norway".

        Raises:
            UnreadError: If it has no entity, or no walk from it leads to such things.
        """
        kinds = self.walks.kinds
        noun = next((tokens[1:end] for end in (4, 3, 2) if kinds.named([token.word for token in tokens[1:end]])), ())
        said = {token.word for token in tokens}
        if not noun or not any(token.slot for token in tokens) or not said.isdisjoint(NEGATIVE):
            raise UnreadError
        form = Form("list", tuple(noun), tuple(tokens))
        return FormReader(self.walks.within(noun))._things(form)

    def _exists(self, form: Form) -> Pattern:
        """Read whether something holds, or whether there is a thing of a class."""
        if form.limits and (noun := self._other_things(form)):
            pattern = FormReader(self.walks.within(noun))._things(replace(form, noun=noun))
            if self._says_other(form, noun, pattern):
                raise UnreadError
            return pattern
        try:
            return self._holds(form)
        except UnreadError:
            words = " ".join(token.word for token in form.noun)
            if not words or self._classes.closeness(words) < SAME_NAME:
                raise
            return self._things(form)

    def _other_things(self, form: Form) -> tuple[Token, ...]:
        """Return the noun for things whose values are limited, rather than those of the one entity that is named.

        "Did Ann cast a bell after 1900?" asks for the date of a bell.
        """
        named = [token for token in form.clause if token.slot]
        if len(named) != 1:
            return ()
        ids = self.walks.ids_of(*named)
        for start, end, kind in self.walks.kinds.spans([token.word for token in form.clause]):
            members = kind_members(self._graph, kind)
            if members is not None and not np.isin(ids, members).any():
                return form.clause[start:end]
        return ()

    def _says_other(self, form: Form, noun: Sequence[Token], pattern: Pattern) -> bool:
        """Whether no word beside a noun is near a relation of a pattern, as "buy" for a bell that Ann cast."""
        words = [token.word for token in form.clause if token.telling and token not in noun and not token.slot]
        relations = [relation.text for _, relation, _ in pattern.triples if isinstance(relation, Known)]
        labels = [label_of(self._graph.relations.find(one), False) for one in relations]
        return bool(words) and all(self.walks.nearness(word, label) < MAY_NAME for word in words for label in labels)

    def _compared(self, form: Form) -> Pattern:
        """Read a comparison of two.

        Raises:
            UnreadError: If a part of it is not found.
        """
        compared = tuple(token for token in form.clause if token.slot)
        degree = form.degree
        if len(compared) != 2 or degree is None or form.limits or form.quantity or form.negative:
            raise UnreadError
        fits = [self._classes.containing(np.array([self._graph.entities.find(key)])) for key in keys_of(compared)]
        clause = [token for token in form.clause if not token.slot and token.word not in ("and", "or", ",", ":")]
        best: Arms | None = None
        for group in range(len(self._classes.labels)):
            if not all(of_one[group] for of_one in fits):
                continue
            arms = Arms(group, 0.0, NEAR)
            plain = Form(form.kind, form.noun, tuple(clause), degree=degree, standards=compared)
            if self._counting.add_degree(plain, arms, degree) and (best is None or arms.log > best.log):
                best = arms
        if best is None:
            raise UnreadError
        role, _, way = best.ways[0]
        return self._comparison(form, degree, compared, role, way)

    def _comparison(self, form: Form, degree: Degree, compared: Sequence[Token], role: str, way: Way) -> Pattern:
        builder = PatternBuilder(self._graph)
        builder.confidence = sureness([way])
        labels = way.labels if role == "value" else way.back
        counts = "value" if role == "value" else "count"
        if form.kind == "compare":
            sides = [builder.unknown(), builder.unknown()]
            for token, side in zip(compared, sides, strict=True):
                builder.walk(token.node, labels, side)
            by = tuple(side.name for side in sides)
            builder.operation = Operation("compare", by=by, of=counts, comparison=degree.comparison)  # type: ignore[arg-type]
            return builder.pattern()
        by_unknown = builder.unknown()
        builder.walk(builder.target, labels, by_unknown)
        builder.conditions.append(Condition(builder.target.name, "in", tuple(keys_of(compared))))
        kind = "max" if degree.sign > 0 else "min"
        builder.operation = Operation(kind, by=(by_unknown.name,), of=counts)  # type: ignore[arg-type]
        return builder.pattern()

    def _holds(self, form: Form) -> Pattern:
        """Read a yes-no question about one or two entities.

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
        entity = form.clause[slots[0]]
        builder.operation = Operation("exists")
        if (owned := _HAS.match(words_of(form.clause))) and (label := self._owned(entity, owned[1])) is not None:
            builder.walk(entity.node, (label,), builder.unknown())
            builder.confidence = OWNED
            return builder.pattern()
        way = self._value_of_entity(form, slots[0])
        if way is None or (form.limits and self._names_else(form, way)):
            raise UnreadError
        builder.confidence = sureness([way])
        if form.limits:
            self._composer.add_limit(builder, form.limits[0], way, entity.node)
        else:
            truth = builder.unknown()
            builder.walk(entity.node, way.labels, truth)
            builder.conditions.append(Condition(truth.name, "=", True))
        return builder.pattern()

    def _names_else(self, form: Form, way: Way) -> bool:
        """Whether a clause has a noun that the value of its entity leaves out, as "Did Ann win a medal after 1990?"."""
        words = [token.word for token in form.clause]
        of_kinds = {at for start, end, _ in self.walks.kinds.spans(words) for at in range(start, end)}
        first = next((at for at, word in enumerate(words) if word in ("a", "an", "any", "some")), len(words))
        nouns = [at for at in range(first, len(words)) if form.clause[at].telling and at not in of_kinds]
        said = " ".join(words[at] for at in nouns)
        return bool(said) and self.walks.nearness(said, way.labels[-1]) < MAY_NAME

    def _owned(self, entity: Token, noun: str) -> int | None:
        """Return the adjacency label to what a noun names, if one alone has the name and things like an entity have it.

        Only the names of relations count: others may be had in many ways.
        """
        alike = self._classes.containing(self.walks.ids_of(entity))
        backs = [
            label
            for label in range(len(self._classes.of_label))
            if alike[self._classes.end_of((label,))] and self._classes.is_called(label, noun)
        ]
        return int(reversed_label(backs[0])) if len(backs) == 1 else None

    def _number(self, form: Form, quantity: Quantity, slots: Sequence[int]) -> Pattern:
        """Read whether a number that the graph states is so great."""
        words = telling_words(form.clause)
        limit = Limit(quantity.comparison, (str(quantity.number),), 0, 0, "number")
        form = replace(form, quantity=None, limits=(limit,))
        way = self._value_of_entity(form, slots[0]) if len(slots) == 1 else None
        if way is None or (quantity.number <= MOST_COUNTED and self.walks.nearness(words, way.labels[-1]) < SAME_NAME):
            raise UnreadError
        return self._holds(form)

    def _value_of_entity(self, form: Form, at: int) -> Way | None:
        """Return the walk from the one entity of a question to the value that it asks about."""
        words = telling_words(form.clause)
        limit = form.limits[0].value if form.limits else None
        found = list[Way]()
        for kind in kinds_of(limit, form.limits[0].kind) if limit else ("truth",):
            opening = {"date": ["when"], "number": ["how", "many"]}.get(kind, ["what"])
            text = [*map(Token, opening), *form.clause]
            ways = self.walks.from_entity(text, at + len(opening), max_steps=1)
            unit = limit.unit if limit and kind == "number" else ""
            way = self.walks.best(ways, -1, (kind,), words, unit)
            if kind == "truth" and way and self.walks.nearness(words, way.labels[-1]) < SAME_NAME:
                continue  # "Does it have wifi?" is none of what is said to be true of it
            found += [way] if way else []
        return likeliest(found) if found else None

    def _fact(self, form: Form, one: int, other: int) -> Pattern:
        """Read whether a walk joins two entities."""
        found = list[tuple[Way, int, int]]()
        for here, there in ((one, other), (other, one)):
            fits = self._classes.containing(self.walks.ids_of(form.clause[there]))
            ways = self.walks.from_entity(form.clause, here, max_steps=2)
            found += [(way, here, there) for way in ways if fits[self._classes.end_of(way.labels)]]
        if not found:
            raise UnreadError
        best = likeliest([way for way, _, _ in found])
        shares = softmax(np.array([way.log for way, _, _ in found]))
        same = [_undirected(way) == _undirected(best) for way, _, _ in found]
        best = replace(best, share=float(shares[same].sum()))
        here, there = next((here, there) for way, here, there in found if way.labels == best.labels)
        sure = sureness([best])
        if len(best.labels) == 1 and self.walks.joins_alike(best.labels[0]):
            logit = self.walks.direction(form.clause, here, best.labels[0])
            here, there = (here, there) if logit >= 0 else (there, here)
            sure *= 1 / (1 + float(np.exp(-abs(logit) / DIRECTION_SCALE)))
            if self.walks.is_mutual(best.labels[0]) and not self.walks.joins(
                form.clause[here], best.labels[0], form.clause[there]
            ):
                here, there = there, here
        builder = PatternBuilder(self._graph)
        builder.walk(form.clause[here].node, best.labels, form.clause[there].node)
        builder.operation = Operation("exists")
        builder.confidence = sure
        return builder.pattern()

    def is_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to a number that the noun of a form names, rather than to things to count."""
        words = " ".join(token.word for token in form.noun if token.word)
        if not self._ends_in_number(labels, form):
            return False
        named = self.walks.nearness(words, labels[-1])
        return (named >= SAME_NAME or len(labels) == 1) and named > self._classes.closeness(words)

    def names_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to a number that a form may name."""
        words = " ".join(token.word for token in form.noun if token.word)
        if not self._ends_in_number(labels, form):
            return False
        unknown = len(labels) == 1 and self._classes.closeness(words) < SAME_NAME
        return unknown or self.walks.nearness(telling_words(form.clause), labels[-1]) >= MAY_NAME

    def _ends_in_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to dates or to numbers without a unit, or in the unit that a form names."""
        unit = self.walks.unit_of(labels[-1])
        is_named = not unit or known_unit(unit) in {known_unit(token.word) for token in form.noun} - {""}
        return is_named and self._classes.end_kind(labels) in ("number", "date")

    def _things(self, form: Form) -> Pattern:
        """Read what asks for things of one class."""
        if any("-" in token.word and self._classes.closeness(token.word) < SAME_NAME for token in form.noun[:-1]):
            raise UnreadError  # "low-altitude huts": a part that would be left out
        if form.kind == "best" and form.compared and (pattern := self._of_best(form)):
            return pattern
        near = self.walks.noun_nearness(form.noun)
        groups = entity_groups(form.clause, form.both)
        by_class = [self._entity_ways(form, form.clause, group, near) for group in groups]
        partial = np.array([NOUN_WEIGHT * value for value in near])
        for ways in by_class:
            partial += [ways[group].log if group in ways else -np.inf for group in range(len(near))]
        partial[[bool(kind) for kind in self._classes.kinds]] = -np.inf
        read = list[Arms]()
        for group in np.argsort(-partial, kind="stable")[: None if form.leaves_open else MOST_CLASSES].tolist():
            if not np.isfinite(partial[group]):
                continue
            arms = Arms(group, float(partial[group]), float(near[group]) if near.any() else NEAR)
            arms.ways = [("entity", one, ways[group]) for one, ways in zip(groups, by_class, strict=True)]
            read += [arms] if self._complete(form, arms) else []
        if not read:
            raise UnreadError
        shares = softmax(np.array([arms.log for arms in read]))
        best = int(np.argmax(shares))
        if form.kind == "count" and not self._is_about(form, read[best]):
            raise UnreadError  # "how many lines of code", of which the graph says nothing
        return self._composer.pattern(form, read[best], float(shares[best]))

    def _of_best(self, form: Form) -> Pattern | None:
        """Read a question about the best of some things, as "who built the oldest bridge", by a walk from these.

        Returns:
            The pattern, or None if the question asks for the best things themselves.

        Raises:
            UnreadError: If a part is not understood, or the walk does not lead from each of them to an answer.
        """
        before, noun, rest, tail = self._parts_of_best(form)
        words, kinds = [token.word for token in noun], self.walks.kinds
        asked = form.noun if singular_of(words_of(form.noun[-1:])) != singular_of(words[-1]) else ()
        is_number = asked and kinds.of_noun(words) is None and not kinds.relation_words.isdisjoint(words)
        if is_number or not _asks_of_best(before, tail, form.degree, other=bool(asked)):
            return None
        if any(token.slot for token in before) or (asked and (form.limits or form.quantity or form.negative)):
            raise UnreadError
        things = replace(form, noun=noun, compared=(), clause=(Token("which"), *noun, *rest))
        best = FormReader(self.walks.within(noun))._things(things)
        if best.operation is None or best.operation.kind not in ("max", "min"):
            raise UnreadError  # "who cast the three oldest bells"
        join = PatternJoin(self.walks.zero_shot.index, best, directed=True)
        rows = join.bindings([str(best.target), *best.operation.by], "none")
        text, starts = [*before, stand_in(words_of(noun)), *tail], spread(distinct(rows[:, 0]), MEMBERS)
        steps = 1 if before[0].word == "what" and before[-1].word == "of" else MAX_STEPS  # of nothing beyond the things
        ways = self.walks.from_entity(text, len(before), max_steps=steps, starts=starts)
        result = operation_result(best, rows, self._graph)
        if not ways or not self._leads_to(form, before, asked, ways[0], result.answers):
            raise UnreadError
        builder = PatternBuilder(self._graph, base=best)
        builder.operation, builder.confidence = best.operation, min(best.confidence or 0.0, ways[0].confidence)
        of_best = builder.unknown()
        builder.walk(builder.target, ways[0].labels, of_best)
        builder.target = of_best
        return builder.pattern()

    def _leads_to(self, form: Form, before: Sequence[Token], noun: Sequence[Token], way: Way, best: list[int]) -> bool:
        """Whether a walk leads from each of the best things to things or values that a question asks for."""
        words, end, kinds = [token.word for token in before], self._classes.end_kind(way.labels), self.walks.kinds
        values = ("date",) if words[0] == "when" else ("number",) if form.counted else ("number", "date")
        if (words[0] == "when" or "how" in words or form.counted) and end not in values:
            return False
        kind = kinds.of_noun([token.word for token in noun])
        members = None if kind is None else kind_members(self._graph, kind)
        unnamed = noun and kinds.has_types and members is None and not end
        if unnamed and all(self.walks.nearness(words_of(noun), label) < SAME_NAME for label in way.labels):
            return False  # "which medal did it win", of which only the facts tell
        ends = [self.walks.reached(np.array([one]), way.labels) for one in best]
        return all(len(of_one) and (members is None or np.isin(of_one, members).any()) for of_one in ends)

    def _parts_of_best(self, form: Form) -> tuple[tuple[Token, ...], ...]:
        """Return the words before the noun of a superlative, the noun, the words that limit it, and the other words."""
        noun, clause, named = form.compared, form.clause, self.walks.kinds.named
        end = len(clause) - span_of(clause[::-1], noun[::-1])[0]
        before, rest = clause[: end - len(noun)], clause[end:]
        before = before[:-1] if words_of(before[-1:]) == "the" else before
        opening = words_of(before[-1:])
        no_verb = opening in ("do", "does", "did") and not any(token.telling for token in rest)
        if len(noun) > 1 and opening in AUXILIARY and not named([noun[-1].word]) and (no_verb or named([noun[0].word])):
            noun, rest = noun[:-1], (noun[-1], *rest)  # "where does the oldest bell hang"
        first = max((at + 1 for at, token in enumerate(rest) if token.slot), default=0)
        by = form.degree.noun if form.degree else ()
        said = [at for at, token in enumerate(rest) if at >= first and token.telling and token not in by]
        verbs = [at for at in said if verb_of(rest[at].word) and rest[at - 1].word not in ("that", "which", "who")]
        asking = [at for at in said if at == first or at in verbs] if opening in AUXILIARY else []
        at = min(asking, default=len(rest) - (words_of(rest[-1:]) in PREPOSITIONS))
        return before, noun, rest[:at], rest[at:]

    def _is_about(self, form: Form, arms: Arms) -> bool:
        """Whether the noun of a count means something of the graph, as far as its kinds tell."""
        words = " ".join(token.word for token in form.noun if token.word)
        if not self.walks.kinds.has_types or words in PEOPLE:
            return True
        labels = [label for _, _, way in arms.ways for label in way.labels]
        near = max((self.walks.nearness(words, label) for label in labels), default=1.0) if words else 1.0
        return max(near, self._classes.closeness(words)) >= MAY_NAME

    def _entity_ways(
        self, form: Form, tokens: Sequence[Token], group: Sequence[int], near: Array, *, without: Sequence[int] = ()
    ) -> dict[int, Way]:
        """Return the likeliest walk to each class from entities that are joined by "or": the same from each."""
        tokens, group = _without_counted(form, tokens, group)
        found: list[dict[tuple[int, ...], Way]] = []
        for at in group:
            dropped = {other for other in group if other != at}
            dropped |= {i for i in range(min(group), max(group)) if i not in group} if len(group) > 1 else set()
            text = [token for i, token in enumerate(tokens) if i not in dropped]
            place = at - sum(other < at for other in dropped)
            found.append({way.labels: way for way in self.walks.from_entity(text, place)})
        common = [labels for labels in found[0] if all(labels in of_one for of_one in found)]
        ways = [
            Way(
                labels,
                float(np.mean([of_one[labels].log for of_one in found])),
                min(of_one[labels].confidence for of_one in found),
            )
            for labels in common
            if labels != without
        ]
        if form.kind == "count":  # of what there is one at most, nobody asks how many
            ways = [way for way in ways if not all(map(self._classes.is_single, way.labels))]
            logs = [NOUN_WEIGHT * near[to] + way.log for to, way in best_by_class(ways, self._classes).items()]
            if max(logs, default=-np.inf) < NOUN_WEIGHT * near.max() - LACKING_COST:  # else it has what is counted
                ways += self._lacking_ways(tokens, group, {way.labels for way in ways})
        of_kind = [way for way in ways if self.walks.leads_to_kind(tokens[group[0]], way.labels)]
        ways = of_kind or ([] if form.kind == "exists" and form.limits else ways)
        ends = [self._classes.of_label[list(way.labels)].tolist() for way in ways]
        ways = [
            replace(way, log=way.log - PASSING_COST * any(near[passed] > near[last] for passed in through))
            for way, (*through, last) in zip(ways, ends, strict=True)
        ]
        return best_by_class(ways, self._classes)

    def _lacking_ways(
        self, tokens: Sequence[Token], group: Sequence[int], own: Collection[tuple[int, ...]]
    ) -> list[Way]:
        """Return walks that start from things like an entity, but not from itself: it has none of what is counted."""
        if len(group) > 1 or len(entity_groups(tokens)) > 1:
            return []
        alike = self._classes.containing(self.walks.ids_of(tokens[group[0]]))
        found = list[Way]()
        largest = sorted(np.flatnonzero(alike).tolist(), key=lambda group: (-self._classes.size_of(group), group))
        for one in sorted(largest[:MOST_ALIKE]):
            ways = self.walks.from_class(tokens, group[0], one, max_steps=1)
            found += [
                replace(way, log=way.log - LACKING_COST)
                for way in ways
                if way.labels not in own and not self._classes.is_single(way.labels[0])
            ]
        return found

    def _complete(self, form: Form, arms: Arms) -> bool:
        """Add all that needs the class; False where something is not found."""
        if any(not arms.add("limit", limit, self.walks.limit_way(form, limit, arms.group)) for limit in form.limits):
            return False
        if form.quantity and not self._counting.add_quantity(form, arms, form.quantity):
            return False
        if form.degree and not self._is_comparable(form, form.degree, arms.group):
            return False
        if form.degree and not self._counting.add_degree(form, arms, form.degree):
            return False
        if not arms.ways and not self._add_mentioned(form, arms) and not form.negative:
            return False
        return not form.negative or (self._counting.add_negative(form, arms) and self._undo_contradictions(form, arms))

    def _is_comparable(self, form: Form, degree: Degree, group: int) -> bool:
        """Whether the things of a class can be compared with the entity of a form, if it has one, and all is read."""
        if not form.standards:
            return True
        ids = self.walks.ids_of(*form.standards)
        read = (*form.noun, *degree.noun, *degree.words)
        rest = [token.word for token in form.clause if token.telling and token not in read]
        return self._classes.containing(ids)[group] and (not rest or (len(rest) == 1 and verb_of(rest[0]) is not None))

    def _undo_contradictions(self, form: Form, arms: Arms) -> bool:
        """Read otherwise what would be both there and absent, as "cities in it that are not its capital"; else False.

        What must not hold tells more of its relation than what holds, such as "in".
        """
        absent = {(what.keys, way.labels) for _, what, way in arms.ways if isinstance(what, Token)}
        for number, (role, what, way) in enumerate(list(arms.ways)):
            if role != "entity" or not isinstance(what, Sequence):
                continue
            if not any((form.clause[at].keys, way.labels) in absent for at in what):
                continue
            if not any(token.telling for token in form.negative):
                return False  # "those in it that are not in it"
            near = self.walks.noun_nearness(form.noun)
            other = self._entity_ways(form, form.clause, what, near, without=way.labels).get(arms.group)
            if other is None:
                return False
            arms.ways[number] = (role, what, other)
            arms.log += other.log - way.log
        return True

    def _add_mentioned(self, form: Form, arms: Arms) -> bool:
        """Add the walk to the things of another class that the clause mentions, as in "who runs a hut"."""
        rest = [token for token in form.clause if token.telling and token not in form.noun and not is_verb(token.word)]
        if not rest:
            return False
        noun = max(rest, key=lambda token: float(self.walks.noun_nearness([token]).max()))
        return arms.add("mentioned", None, self._counting.counted_way(form.clause, [noun], arms.group, 1))


#: The measures of size that "large" and "small" may mean.
_SIZES = frozenset(["height", "length", "width", "depth"])


def _asks_of_best(before: Sequence[Token], tail: Sequence[Token], degree: Degree | None, *, other: bool) -> bool:
    """Return whether words ask for something of the best things, rather than for these or the measure.

    Args:
        before: The words before the things.
        tail: The words behind them that do not limit them.
        degree: By what the things are compared.
        other: Whether a noun names other things.
    """
    words = [token.word for token in before]
    if "how" in words:
        by = [token.word for token in degree.words[:1]] if degree else []
        is_size = "extent" in measured_by(by) and not measured_by(words).isdisjoint(_SIZES)
        return not is_size and {*by}.isdisjoint(words)
    if words[-2:] == ["name", "of"] or {"which", "what", "who", "whom", "whose", "when", "where"}.isdisjoint(words):
        return False
    is_same = words[-1] in ("is", "are", "was", "were", "which", "what", "who")
    is_same &= words[0] not in ("when", "where", *PREPOSITIONS)
    return not is_same or (other and bool(tail)) or words_of(tail[-1:]) in PREPOSITIONS


def _without_counted(
    form: Form, tokens: Sequence[Token], group: Sequence[int]
) -> tuple[Sequence[Token], Sequence[int]]:
    """Return the words without the noun of what is counted, and where some of the others stand then."""
    part = form.quantity or form.degree
    noun = part.noun if part else ()
    if not noun or any(token.slot for token in noun):
        return tokens, group
    first, last = span_of(tokens, noun)
    left = [*tokens[:first], *tokens[last:]]
    return left, [at - (last - first) * (at >= last) for at in group]


def _rest(form: Form, noun: Sequence[Token]) -> list[Token]:
    """Return the telling words of a clause that are in neither of its nouns."""
    return [token for token in form.clause if token.telling and token not in form.noun and token not in noun]


def likeliest_classes(near: Array, most: int, margin: float = 0.5) -> list[int]:
    """Return the classes nearest to a noun, the nearest first."""
    order = np.argsort(-near, kind="stable")[:most].tolist()
    return [group for group in order if near[group] >= near[order[0]] - margin and near[group] > 0]


def entity_groups(tokens: Sequence[Token], both: bool = False) -> list[tuple[int, ...]]:
    """Return groups of positions of entities, joined by "or", or by "and" if both are meant alike."""
    groups = list[tuple[int, ...]]()
    for at, token in enumerate(tokens):
        if not token.slot:
            continue
        if groups and joined(tokens, groups[-1][-1] + 1, ("and",) if both else ("or",)) == at:
            groups[-1] = (*groups[-1], at)
        else:
            groups.append((at,))
    return groups


def before_slot(tokens: Sequence[Token]) -> list[Token]:
    """Return the words before the last entity, except the words of function right before it."""
    last = max((at for at, token in enumerate(tokens) if token.slot), default=len(tokens))
    kept = list(tokens[:last])
    while kept and not kept[-1].telling and len(kept) > 1:
        kept.pop()
    return kept
