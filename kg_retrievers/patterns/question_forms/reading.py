"""Reads a form as a pattern: which relations its words ask for, and which class it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from kg_retrievers.graph import Known, Pattern, Term, local_name, readable
from kg_retrievers.graph.adjacency import reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.index import QuestionEntity
from kg_retrievers.patterns.question_forms.asking import (
    NOUN_WEIGHT,
    Asker,
    Way,
    best_by_class,
    likeliest,
    likeliest_classes,
)
from kg_retrievers.patterns.question_forms.building import PatternBuilder
from kg_retrievers.patterns.question_forms.grammar import Degree, Form, Quantity
from kg_retrievers.patterns.question_forms.literals import Limit
from kg_retrievers.patterns.question_forms.tokens import Token, words_of
from kg_retrievers.patterns.question_forms.values import NAME_WEIGHT, ValueFinder, dimension_words, kinds_of
from kg_retrievers.patterns.zero_shot.ranking import softmax

#: How many classes a noun may mean, of those nearest to it.
MOST_CLASSES = 5

#: The least nearness of a noun to the relation of a number for the number to be meant rather than a count.
SAME_NAME = 0.45

#: How sure a reading is, as a logit, beside the shares of its walks and its class: the logit of the zero-shot
#: generator's confidence, and how near the noun is to the class beyond `NEAR`.
RATED_WEIGHT, NEAR_WEIGHT, NEAR, CERTAIN = 0.4, 6.0, 0.35, 2.5

#: In place of `CERTAIN` for counts: "how many" often asks for a number that the graph lacks.
CERTAIN_COUNT = 1.0


class UnreadError(Exception):
    """A form whose relations are not found."""


@dataclass
class Arms:
    """What is said of the things of one class, with how likely all of it is."""

    group: int
    log: float
    near: float
    ways: list[tuple[str, object, Way]] = field(default_factory=list)

    def add(self, role: str, what: object, way: Way | None) -> bool:
        """Add a walk; False where there is none."""
        if way is None:
            return False
        self.ways.append((role, what, way))
        self.log += way.log
        return True


class FormReader:
    """Reads forms.

    Args:
        asker: Ranks walks.
        values: Finds relations of values.
    """

    def __init__(self, asker: Asker, values: ValueFinder) -> None:
        """Keep both."""
        self._asker, self._values = asker, values
        self._classes, self._graph = asker.classes, asker.graph

    def read(self, form: Form) -> Pattern:
        """Return the pattern of a form.

        Raises:
            UnreadError: If a part of it is not found in the graph, or asks for what no form says.
        """
        if form.unread:
            raise UnreadError
        match form.kind:
            case "exists":
                return self._exists(form)
            case "compare" | "choice":
                return self._compared(form)
            case _:
                return self._things(form)

    def noun_score(self, word: str) -> float:
        """Return how near a word is to the class that is nearest to it."""
        return float(self._classes.nearness(word).max(initial=0.0))

    def is_named(self, form: Form) -> bool:
        """Whether what looks like a superlative is part of the name of a relation, as in "highest point"."""
        if form.degree is None or not form.degree.raw:
            return False
        return any(form.degree.raw in readable(local_name(name)).casefold().split() for name in self._graph.relations)

    def leads_to_number(self, labels: Sequence[int]) -> bool:
        """Whether a walk leads to numbers without a unit."""
        kind = self._classes.kinds[int(self._classes.of_label[labels[-1]])]
        return kind in ("number", "date") and not self._values.has_unit(Way(tuple(labels), 0.0, 0.0))

    def is_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to a number that the noun of a form names, rather than to things to count."""
        if self._classes.kinds[int(self._classes.of_label[labels[-1]])] not in ("number", "date"):
            return False
        words, way = " ".join(token.word for token in form.noun if token.word), Way(tuple(labels), 0.0, 0.0)
        if self._values.has_unit(way):
            return False
        named = self._values.nearness(words, way)
        return named >= SAME_NAME or (len(labels) == 1 and named > self.noun_score(words))

    def _things(self, form: Form) -> Pattern:
        """Read what asks for things of one class."""
        near = self._nearness(form.noun)
        groups = entity_groups(form.clause)
        by_class = [self._entity_ways(form, form.clause, group, near) for group in groups]
        partial = np.array([NOUN_WEIGHT * value for value in near])
        for ways in by_class:
            partial += [ways[group].log if group in ways else -np.inf for group in range(len(near))]
        partial[[bool(kind) for kind in self._classes.kinds]] = -np.inf
        read = list[Arms]()
        for group in np.argsort(-partial, kind="stable")[:MOST_CLASSES].tolist():
            if not np.isfinite(partial[group]):
                continue
            arms = Arms(group, float(partial[group]), float(near[group]) if near.any() else NEAR)
            arms.ways = [("entity", one, ways[group]) for one, ways in zip(groups, by_class, strict=True)]
            read += [arms] if self._complete(form, arms) else []
        if not read:
            raise UnreadError
        shares = softmax(np.array([arms.log for arms in read]))
        best = int(np.argmax(shares))
        return self._pattern(form, read[best], float(shares[best]))

    def _nearness(self, noun: Sequence[Token]) -> Array:
        words = " ".join(token.word for token in noun if token.word)
        return self._classes.nearness(words) if words else np.zeros(len(self._classes.labels))

    def _entity_ways(self, form: Form, tokens: Sequence[Token], group: Sequence[int], near: Array) -> dict[int, Way]:
        """Return the likeliest walk to each class from entities that are joined by "or": the same from each."""
        found: list[dict[tuple[int, ...], Way]] = []
        for at in group:
            dropped = {other for other in group if other != at}
            dropped |= {i for i in range(min(group), max(group)) if i not in group} if len(group) > 1 else set()
            text = [token for i, token in enumerate(tokens) if i not in dropped]
            place = at - sum(other < at for other in dropped)
            found.append({way.labels: way for way in self._asker.from_entity(text, place)})
        common = [labels for labels in found[0] if all(labels in of_one for of_one in found)]
        ways = [
            Way(
                labels,
                float(np.mean([of_one[labels].log for of_one in found])),
                min(of_one[labels].confidence for of_one in found),
            )
            for labels in common
        ]
        if form.kind == "count":  # of what there is one at most, nobody asks how many
            ways = [way for way in ways if not all(map(self._classes.is_single, way.labels))]
        return best_by_class(ways, self._classes)

    def _complete(self, form: Form, arms: Arms) -> bool:
        """Add all that needs the class; False where something is not found."""
        if any(not arms.add("limit", limit, self._limit_way(form, limit, arms.group)) for limit in form.limits):
            return False
        if form.quantity and not self._add_counted(form, arms, form.quantity.noun, form.quantity):
            return False
        if form.degree and not self._add_degree(form, arms, form.degree):
            return False
        if not arms.ways and not self._add_mentioned(form, arms) and not form.negative:
            return False
        return not form.negative or self._add_negative(form, arms)

    # -- values ---------------------------------------------------------------------------------------------------

    def _limit_way(self, form: Form, limit: Limit, group: int) -> Way | None:
        kinds, ways = kinds_of(limit.value), list[Way]()
        span = _span(form.clause, form.noun)
        for kind in kinds:
            text, at = _asking(form.clause, span, "when" if kind == "date" else "how many")
            unit = limit.value.unit if kind == "number" else ""
            words = " ".join(token.word for token in form.clause if token.telling and token not in form.noun)
            way = self._values.find(text, at, group, (kind,), words=words, unit=unit, max_steps=2)
            ways += [way] if way else []
        return likeliest(ways) if ways else None

    def _degree_way(self, form: Form, degree: Degree, group: int) -> Way | None:
        """Return the walk to the values by which an adjective compares."""
        kinds = ("date",) if degree.time else ("number",)
        adjective = words_of(degree.words[:1])
        more = " ".join(token.word for token in degree.words[1:])
        telling = " ".join(token.word for token in form.clause if token.telling and token not in form.noun)
        words = dimension_words(adjective, degree.time and not telling, more or telling)
        opening = "when was" if degree.time else f"how {adjective} is"
        text = [*map(Token, opening.split()), Token("it"), *map(Token, (more or telling).split())]
        at = len(opening.split())
        return self._values.find(text, (at, at + 1), group, kinds, words=words)

    def _number_way(self, noun: Sequence[Token], group: int) -> Way | None:
        """Return the walk to the number of something, where a relation is called so."""
        words = " ".join(token.word for token in noun if token.word)
        text = [Token("how"), Token("many"), *noun, Token("has"), Token("it")]
        way = self._values.find(text, (len(text) - 1, len(text)), group, ("number",), words=words)
        return way if way and self._values.nearness(words, way) >= SAME_NAME else None

    # -- counts ---------------------------------------------------------------------------------------------------

    def _add_degree(self, form: Form, arms: Arms, degree: Degree) -> bool:
        if not degree.noun:
            return arms.add("value", degree, self._degree_way(form, degree, arms.group))
        if way := self._number_way((*degree.noun, *degree.words), arms.group):
            return arms.add("value", degree, way)
        return self._add_counted(form, arms, degree.noun, None)

    def _add_counted(self, form: Form, arms: Arms, noun: Sequence[Token], quantity: Quantity | None) -> bool:
        """Add the walk from what is counted to what it is counted for."""
        least = quantity.number + (quantity.comparison == ">") if quantity else 2
        needed = least if quantity is None or quantity.comparison in (">", ">=", "=") else 1
        way = self._counted_way(form.clause, noun, arms.group, needed)
        if way is None or not arms.add("count", quantity, way):
            return False
        return self._move_entities(arms, noun, form, way.start)

    def _counted_way(self, clause: Sequence[Token], noun: Sequence[Token], group: int, needed: int) -> Way | None:
        """Return the likeliest walk from things that a noun means to a class, and how likely it is with the noun."""
        plain = [token for token in noun if not token.slot]
        near = self._nearness(plain)
        tokens = list(clause)
        span = _span(tokens, plain)
        if span[0] == span[1]:
            tokens, span = [*tokens, *plain], (len(tokens), len(tokens) + len(plain))
        found = list[Way]()
        words = " ".join(token.word for token in [*plain, *clause] if token.telling)
        for counted in likeliest_classes(near, MOST_CLASSES, 1.0):
            noun_log = NOUN_WEIGHT * float(near[counted])
            for way in self._asker.from_class(tokens, span, counted):
                if int(self._classes.of_label[way.labels[-1]]) == group and self._many(way, needed):
                    named = NAME_WEIGHT * self._values.nearness_of_steps(words, way)
                    found.append(replace(way, log=way.log + noun_log + named))
        return likeliest(found) if found else None

    def _many(self, way: Way, needed: int) -> bool:
        """Whether something has so many of where a walk starts, as far as a walk of one step tells."""
        if len(way.labels) > 1 or needed < 2:
            return True
        label = reversed_label(way.labels[0])
        adjacency = self._graph.adjacency
        members = self._classes.members[int(self._classes.of_label[way.labels[0]])]
        counts = (adjacency.entries_with(entity, label) for entity in members.tolist())
        return any(entries.stop - entries.start >= needed for entries in counts)

    def _move_entities(self, arms: Arms, noun: Sequence[Token], form: Form, counted: int) -> bool:
        """Let entities inside the noun of what is counted speak of that."""
        for number, (role, what, way) in enumerate(list(arms.ways)):
            if role != "entity" or not isinstance(what, tuple):
                continue
            if not all(form.clause[at] in noun for at in what):
                continue
            plain = [token for token in noun if not token.slot]
            text = [Token("which"), *plain, Token("of"), form.clause[what[0]]]
            moved = best_by_class(self._asker.from_entity(text, len(text) - 1), self._classes).get(counted)
            if moved is None:
                return False
            arms.ways[number] = ("counted entity", what, moved)
            arms.log += moved.log - way.log
        return True

    # -- what is not, and what is only mentioned --------------------------------------------------------------------

    def _add_negative(self, form: Form, arms: Arms) -> bool:
        negative = list(form.negative)
        slots = [at for at, token in enumerate(negative) if token.slot]
        if not slots:
            return self._add_lacking(form, arms)
        if not any(token.telling for token in negative):
            if self._is_one(negative, arms.group) and not self._is_one(form.clause, arms.group):
                raise UnreadError  # it is one of what is looked for, as in "who designed it but not Ann?"
            negative = [*_before_slot(form.clause), *negative]
        else:
            negative = [Token("which"), *form.noun, *negative]
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
        keys = _keys([token.slot for token in tokens if token.slot])
        return any(self._classes.containing([self._graph.entities.find(key)])[group] for key in keys)

    def _add_lacking(self, form: Form, arms: Arms) -> bool:
        """Add what members of the class do not have at all."""
        telling = [token for token in form.negative if token.telling]
        if not telling:
            return False
        text = [Token("what"), Token("it"), *form.negative]
        ways = self._asker.from_class(text, (1, 2), arms.group, max_steps=1)
        words = " ".join(token.word for token in telling)
        named = [replace(way, log=way.log + NAME_WEIGHT * self._values.nearness(words, way)) for way in ways]
        return arms.add("lacking", None, likeliest(named) if named else None)

    def _add_mentioned(self, form: Form, arms: Arms) -> bool:
        """Add the walk to the things of another class that the clause mentions, as in "who runs a hut"."""
        rest = [token for token in form.clause if token.telling and token not in form.noun]
        if not rest:
            return False
        noun = max(rest, key=lambda token: float(self._nearness([token]).max()))
        return arms.add("mentioned", None, self._counted_way(form.clause, [noun], arms.group, 1))

    # -- patterns ---------------------------------------------------------------------------------------------------

    def _pattern(self, form: Form, arms: Arms, share: float) -> Pattern:
        builder = PatternBuilder(self._graph)
        certain = CERTAIN_COUNT if form.kind == "count" else CERTAIN
        builder.confidence = sureness([way for _, _, way in arms.ways], share, arms.near, certain)
        if form.kind == "count":
            builder.operation = Operation("count")
        counted = builder.unknown() if any(role == "count" for role, _, _ in arms.ways) else None
        for role, what, way in arms.ways:
            match role:
                case "entity" | "counted entity":
                    assert isinstance(what, tuple)
                    end = builder.target if role == "entity" or counted is None else counted
                    self._add_entities(builder, [form.clause[at] for at in what], way, end)
                case "limit":
                    assert isinstance(what, Limit)
                    self._add_limit(builder, what, way, builder.target)
                case "value":
                    assert isinstance(what, Degree)
                    by = builder.unknown()
                    builder.walk(builder.target, way.labels, by)
                    builder.operation = _best(what, by.name, "value")
                case "count":
                    assert counted
                    builder.walk(counted, way.labels, builder.target)
                    builder.operation = self._count_operation(form, counted.name)
                case "absent entity":
                    assert isinstance(what, Token)
                    assert what.slot
                    builder.walk(node_of(what.slot), way.labels, builder.target, absent=True)
                case "lacking":
                    self._add_absent(builder, way)
                case _:
                    builder.walk(builder.unknown(), way.labels, builder.target)
        if not any(builder.target in triple for triple in builder.triples):
            builder.walk(builder.unknown(), [self._classes.defining_label(arms.group)], builder.target)
        return builder.pattern()

    def _count_operation(self, form: Form, counted: str) -> Operation:
        if form.quantity:
            quantity = form.quantity
            return Operation("list", by=(counted,), of="count", comparison=quantity.comparison, number=quantity.number)
        assert form.degree
        return _best(form.degree, counted, "count")

    def _add_entities(self, builder: PatternBuilder, tokens: Sequence[Token], way: Way, end: Term) -> None:
        slots = [token.slot for token in tokens if token.slot]
        if len(slots) == 1:
            builder.walk(node_of(slots[0]), way.labels, end)
            return
        any_of = builder.unknown()
        builder.walk(any_of, way.labels, end)
        builder.conditions.append(Condition(any_of.name, "in", tuple(_keys(slots))))

    def _add_limit(self, builder: PatternBuilder, limit: Limit, way: Way, start: Term) -> None:
        value = builder.unknown()
        builder.walk(start, way.labels, value)
        literal = limit.values if limit.operator == "between" else limit.values[0]
        builder.conditions.append(Condition(value.name, limit.operator, literal))

    def _add_absent(self, builder: PatternBuilder, way: Way) -> None:
        lacking = builder.unknown()
        builder.walk(builder.target, way.labels, lacking, absent=True)
        if self._classes.kinds[int(self._classes.of_label[way.labels[-1]])] == "truth":
            builder.conditions.append(Condition(lacking.name, "=", True))

    # -- whether --------------------------------------------------------------------------------------------------

    def _exists(self, form: Form) -> Pattern:
        slots = [at for at, token in enumerate(form.clause) if token.slot]
        if form.quantity or form.negative or not 1 <= len(slots) <= 2 or len(form.limits) > 1:
            raise UnreadError
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
            self._add_limit(builder, form.limits[0], way, node_of(slot))
        else:
            truth = builder.unknown()
            builder.walk(node_of(slot), way.labels, truth)
            builder.conditions.append(Condition(truth.name, "=", True))
        return builder.pattern()

    def _value_of_entity(self, form: Form, at: int) -> Way | None:
        """Return the walk from the one entity of a question to the value that it asks about."""
        words = " ".join(token.word for token in form.clause if token.telling)
        limit = form.limits[0].value if form.limits else None
        found = list[Way]()
        for kind in kinds_of(limit) if limit else ("truth",):
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
            text = [*form.clause]
            ways = self._asker.from_entity(text, here, max_steps=2)
            found += [(way, here, there) for way in ways if fits[int(self._classes.of_label[way.labels[-1]])]]
        if not found:
            raise UnreadError
        best = likeliest([way for way, _, _ in found])
        shares = softmax(np.array([way.log for way, _, _ in found]))
        same = [_undirected(way.labels) == _undirected(best.labels) for way, _, _ in found]
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

    # -- which of two -----------------------------------------------------------------------------------------------

    def _compared(self, form: Form) -> Pattern:
        at = [at for at, token in enumerate(form.clause) if token.slot]
        slots = [form.clause[i].slot for i in at]
        degree = form.degree
        if len(slots) != 2 or degree is None or form.limits or form.quantity or form.negative:
            raise UnreadError
        keys = _keys([slot for slot in slots if slot])
        fits = [self._classes.containing([self._graph.entities.find(key)]) for key in keys]
        clause = [token for token in form.clause if not token.slot and token.word not in ("and", "or", ",", ":")]
        best: Arms | None = None
        for group in range(len(self._classes.labels)):
            if not all(of_one[group] for of_one in fits):
                continue
            arms = Arms(group, 0.0, NEAR)
            plain = Form(form.kind, form.noun, tuple(clause), degree=degree)
            if self._add_degree(plain, arms, degree) and (best is None or arms.log > best.log):
                best = arms
        if best is None:
            raise UnreadError
        role, _, way = best.ways[0]
        return self._comparison(form, degree, slots, keys, role, way)

    def _comparison(
        self,
        form: Form,
        degree: Degree,
        slots: Sequence[QuestionEntity | None],
        keys: Sequence[str],
        role: str,
        way: Way,
    ) -> Pattern:
        builder = PatternBuilder(self._graph)
        builder.confidence = sureness([way])
        labels = way.labels if role == "value" else tuple(reversed_label(label) for label in reversed(way.labels))
        counts = "value" if role == "value" else "count"
        if form.kind == "compare":
            sides = [builder.unknown(), builder.unknown()]
            for slot, side in zip(slots, sides, strict=True):
                assert slot
                builder.walk(node_of(slot), labels, side)
            by = tuple(side.name for side in sides)
            comparison = ">" if degree.sign > 0 else "<"
            builder.operation = Operation("compare", by=by, of=counts, comparison=comparison)  # type: ignore[arg-type]
            return builder.pattern()
        by_unknown = builder.unknown()
        builder.walk(builder.target, labels, by_unknown)
        builder.conditions.append(Condition(builder.target.name, "in", tuple(keys)))
        kind = "max" if degree.sign > 0 else "min"
        builder.operation = Operation(kind, by=(by_unknown.name,), of=counts)  # type: ignore[arg-type]
        return builder.pattern()


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


def _best(degree: Degree, by: str, of: Literal["value", "count"]) -> Operation:
    """Return the operation that finds the first by a degree, or so many of them."""
    if degree.most > 1:
        return Operation("order", by=(by,), of=of, limit=degree.most, descending=degree.sign > 0)
    return Operation("max" if degree.sign > 0 else "min", by=(by,), of=of)


def _undirected(labels: Sequence[int]) -> tuple[int, ...]:
    """Return the same for a walk and for the way back."""
    return min(tuple(labels), tuple(reversed_label(label) for label in reversed(labels)))


def node_of(slot: QuestionEntity) -> Known:
    """Return the node of an entity, pinned where only one is meant."""
    return Known(slot.name, entity=slot.entities[0]) if slot.best == 1 else slot.term


def entity_groups(tokens: Sequence[Token]) -> list[tuple[int, ...]]:
    """Return the positions of entities; those that "or" joins are together."""
    groups = list[tuple[int, ...]]()
    for at, token in enumerate(tokens):
        if not token.slot:
            continue
        if groups and at >= 2 and tokens[at - 1].word == "or" and groups[-1][-1] == at - 2:
            groups[-1] = (*groups[-1], at)
        else:
            groups.append((at,))
    return groups


def _keys(slots: Iterable[QuestionEntity]) -> list[str]:
    return [key for slot in slots for key in slot.entities[: slot.best]]


def _span(tokens: Sequence[Token], part: Sequence[Token]) -> tuple[int, int]:
    """Return where a part stands in tokens; an empty span at their end where it does not."""
    size = len(part)
    for at in range(len(tokens) - size + 1 if size else 0):
        if list(tokens[at : at + size]) == list(part):
            return at, at + size
    return len(tokens), len(tokens)


def _asking(tokens: Sequence[Token], span: tuple[int, int], opening: str) -> tuple[list[Token], tuple[int, int]]:
    """Return a text that asks for a value of what a span stands for, and where the span is in it."""
    words = [Token(word) for word in opening.split()]
    start = span[0]
    while start and tokens[start - 1].word in ("which", "what", "the", "of"):
        start -= 1
    kept, rest = list(tokens[:start]), list(tokens[span[1] :])
    middle = list(tokens[span[0] : span[1]]) or [Token("it")]
    return [*words, *kept, *middle, *rest], (len(words) + len(kept), len(words) + len(kept) + len(middle))


def _before_slot(tokens: Sequence[Token]) -> list[Token]:
    """Return the words before the last entity, but those of function right before it."""
    last = max((at for at, token in enumerate(tokens) if token.slot), default=len(tokens))
    kept = list(tokens[:last])
    while kept and not kept[-1].telling and len(kept) > 1:
        kept.pop()
    return kept
