"""Reads a form as a pattern: which relations its words ask for, and which class it is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from kg_retrievers.errors import PatternError
from kg_retrievers.graph import Pattern, local_name, readable
from kg_retrievers.graph.adjacency import reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.kinds import kind_names
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.question_forms.classes import NOUN_WEIGHT, PEOPLE
from kg_retrievers.questions.question_forms.composing import Composer, PatternBuilder
from kg_retrievers.questions.question_forms.counting import MOST_COUNTED, Counting
from kg_retrievers.questions.question_forms.forms import (
    Degree,
    Form,
    Limit,
    Quantity,
    Token,
    is_verb,
    telling_words,
    words_of,
)
from kg_retrievers.questions.question_forms.grammar import NAMES_CLASS, NEGATIVE
from kg_retrievers.questions.question_forms.values import (
    MAY_NAME,
    MOST_CLASSES,
    NEAR,
    SAME_NAME,
    Arms,
    UnreadError,
    WalkFinder,
    Way,
    best_by_class,
    entity_groups,
    keys_of,
    kinds_of,
    likeliest,
    span_of,
    sureness,
)
from kg_retrievers.questions.reading import node_of
from kg_retrievers.questions.self_questions.english import verb_of
from kg_retrievers.questions.zero_shot.scorer import softmax


class Comparing:
    """Reads comparisons of two.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep the classes, and what finds by what they are compared."""
        self._classes, self._graph, self._counting = walks.classes, walks.graph, Counting(walks)

    def read(self, form: Form) -> Pattern:
        """Return the pattern of a form.

        Raises:
            UnreadError: If a part of it is not found.
        """
        at = [at for at, token in enumerate(form.clause) if token.slot]
        slots = [form.clause[i].slot for i in at]
        degree = form.degree
        if len(slots) != 2 or degree is None or form.limits or form.quantity or form.negative:
            raise UnreadError
        keys = keys_of([slot for slot in slots if slot])
        fits = [self._classes.containing([self._graph.entities.find(key)]) for key in keys]
        clause = [token for token in form.clause if not token.slot and token.word not in ("and", "or", ",", ":")]
        best: Arms | None = None
        for group in range(len(self._classes.labels)):
            if not all(of_one[group] for of_one in fits):
                continue
            arms = Arms(group, 0.0, NEAR)
            compared = tuple(form.clause[i] for i in at)
            plain = Form(form.kind, form.noun, tuple(clause), degree=degree, standards=compared)
            if self._counting.add_degree(plain, arms, degree) and (best is None or arms.log > best.log):
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
        labels = way.labels if role == "value" else way.back
        counts = "value" if role == "value" else "count"
        if form.kind == "compare":
            sides = [builder.unknown(), builder.unknown()]
            for slot, side in zip(slots, sides, strict=True):
                assert slot
                builder.walk(node_of(slot), labels, side)
            by = tuple(side.name for side in sides)
            builder.operation = Operation("compare", by=by, of=counts, comparison=degree.comparison)  # type: ignore[arg-type]
            return builder.pattern()
        by_unknown = builder.unknown()
        builder.walk(builder.target, labels, by_unknown)
        builder.conditions.append(Condition(builder.target.name, "in", tuple(keys)))
        kind = "max" if degree.sign > 0 else "min"
        builder.operation = Operation(kind, by=(by_unknown.name,), of=counts)  # type: ignore[arg-type]
        return builder.pattern()


#: A question whether an entity has something: "does it have a tower", but not "is it a tower".
_HAS = re.compile(r"_ (?:(?:have|got|had) (?:any|an?|some)|any) ([a-z]+)(?: (?:on|in|at|of|to|for|with|from) it)?$")


#: How sure it is that somebody asks for the one relation that has the name of a noun.
OWNED = 0.9


class Whether:
    """Reads yes-no questions.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep it."""
        self._walks, self._classes, self._graph = walks, walks.classes, walks.graph
        self._composer = Composer(walks)

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
        if (owned := _HAS.match(words_of(form.clause))) and (label := self._owned(slot, owned[1])) is not None:
            builder.walk(node_of(slot), (label,), builder.unknown())
            builder.confidence = OWNED
            return builder.pattern()
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

    def _owned(self, slot: QuestionEntity, noun: str) -> int | None:
        """Return the adjacency label to what a noun names, if one alone has the name and things like an entity have it.

        Only the names of relations count: others may be had in many ways.
        """
        alike = self._classes.containing([self._graph.entities.find(key) for key in slot.entities[: slot.best]])
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
        if way is None or (quantity.number <= MOST_COUNTED and self._walks.nearness(words, way.labels[-1]) < SAME_NAME):
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
            ways = self._walks.from_entity(text, at + len(opening), max_steps=1)
            unit = limit.unit if limit and kind == "number" else ""
            way = self._walks.best(ways, -1, (kind,), words, unit)
            if kind == "truth" and way and self._walks.nearness(words, way.labels[-1]) < SAME_NAME:
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
            ways = self._walks.from_entity(form.clause, here, max_steps=2)
            found += [(way, here, there) for way in ways if fits[self._classes.end_of(way.labels)]]
        if not found:
            raise UnreadError
        best = likeliest([way for way, _, _ in found])
        shares = softmax(np.array([way.log for way, _, _ in found]))
        same = [_undirected(way) == _undirected(best) for way, _, _ in found]
        best = replace(best, share=float(shares[same].sum()))
        here, there = next((here, there) for way, here, there in found if way.labels == best.labels)
        sure = sureness([best])
        if len(best.labels) == 1 and self._walks.joins_alike(best.labels[0]):
            logit = self._walks.direction(form.clause, here, best.labels[0])
            here, there = (here, there) if logit >= 0 else (there, here)
            sure *= 1 / (1 + float(np.exp(-abs(logit) / DIRECTION_SCALE)))
        builder = PatternBuilder(self._graph)
        first, last = form.clause[here].slot, form.clause[there].slot
        assert first
        assert last
        builder.walk(node_of(first), best.labels, node_of(last))
        builder.operation = Operation("exists")
        builder.confidence = sure
        return builder.pattern()


#: How great a logit of the direction of a claim must be to be sure of it.
DIRECTION_SCALE = 2.0


def _undirected(way: Way) -> tuple[int, ...]:
    """Return the same for a walk and for the way back."""
    return min(way.labels, way.back)


#: How much less likely it makes a walk to pass by things that the noun fits better than those where it ends.
PASSING_COST = 2.0

#: Of how many classes of an entity, the largest first, other members are asked for what it lacks.
MOST_ALIKE = 8

#: How much less likely it makes a walk that the entity from which it should start has no such fact.
LACKING_COST = 2.0


class FormReader:
    """Reads forms.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep it."""
        self.walks = walks
        self._walks, self._classes, self._graph = walks, walks.classes, walks.graph
        self._counting, self._composer = Counting(walks), Composer(walks)
        self._whether, self._comparing = Whether(walks), Comparing(walks)

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
                    return self._comparing.read(form)
                case _:
                    return self._things(form)
        except PatternError as error:
            raise UnreadError from error

    def list_of(self, tokens: Sequence[Token]) -> Pattern:
        """Return the pattern of a question for things of a kind, as "which ports in Norway".

        Raises:
            UnreadError: If it has no entity, or no walk from it leads to such things.
        """
        noun = next((tokens[1:size] for size in (4, 3, 2) if self._walks.names_kind(tokens[1:size])), ())
        said = {token.word for token in tokens}
        if not noun or not any(token.slot for token in tokens) or not said.isdisjoint(NEGATIVE):
            raise UnreadError
        form = Form("list", tuple(noun), tuple(tokens))
        return FormReader(self._walks.within(noun))._things(form)

    def _exists(self, form: Form) -> Pattern:
        """Read whether something holds, or whether there is a thing of a class."""
        try:
            return self._whether.read(form)
        except UnreadError:
            words = " ".join(token.word for token in form.noun)
            if not words or self._classes.closeness(words) < SAME_NAME:
                raise
            return self._things(form)

    def noun_score(self, word: str) -> float:
        """Return the greatest cosine of a word with a noun that names a class."""
        return self._classes.closeness(word)

    def is_named(self, form: Form) -> bool:
        """Whether what looks like a superlative is part of the name of a relation, as in "highest point"."""
        if form.degree is None or not form.degree.raw:
            return False
        return form.degree.raw in self.words_of_relations

    @cached_property
    def words_of_relations(self) -> frozenset[str]:
        """The words of the names of all relations."""
        names = (readable(local_name(name)).casefold() for name in self._graph.relations)
        return frozenset(word for name in names for word in name.split())

    def is_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to a number that the noun of a form names, rather than to things to count."""
        if not self._ends_in_number(labels):
            return False
        words = " ".join(token.word for token in form.noun if token.word)
        if self._walks.has_unit(labels[-1]):
            return False
        named = self._walks.nearness(words, labels[-1])
        return (named >= SAME_NAME or len(labels) == 1) and named > self.noun_score(words)

    def names_number(self, labels: Sequence[int], form: Form) -> bool:
        """Whether a walk leads to a number that a form may name."""
        if not self._ends_in_number(labels) or self._walks.has_unit(labels[-1]):
            return False
        unknown = self.noun_score(" ".join(token.word for token in form.noun if token.word)) < SAME_NAME
        return (len(labels) == 1 and unknown) or self._walks.nearness(
            telling_words(form.clause), labels[-1]
        ) >= MAY_NAME

    def _ends_in_number(self, labels: Sequence[int]) -> bool:
        return self._classes.end_kind(labels) in ("number", "date")

    def _things(self, form: Form) -> Pattern:
        """Read what asks for things of one class."""
        if any("-" in token.word and self._classes.closeness(token.word) < SAME_NAME for token in form.noun[:-1]):
            raise UnreadError  # "low-altitude huts": a part that would be left out
        near = self._walks.noun_nearness(form.noun)
        groups = entity_groups(form.clause, form.both)
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
        if form.kind == "count" and not self._is_about(form, read[best]):
            raise UnreadError  # "how many lines of code", of which the graph says nothing
        if form.kind == "best" and self._names_other(form, read[best]):
            raise UnreadError  # "the revenue of the deepest port"
        return self._composer.pattern(form, read[best], float(shares[best]))

    def _names_other(self, form: Form, arms: Arms) -> bool:
        """Whether a word of a question for the best of some things is the name of a relation that is not read."""
        degree, noun = form.degree, " ".join(token.word for token in form.noun)
        read = (*(degree.noun if degree else ()), *(degree.words if degree else ()))
        read += form.noun if self.noun_score(noun) >= NAMES_CLASS else ()
        labels = [label for _, _, way in arms.ways for label in way.labels]
        rest = {token.word for token in form.clause if token.telling and token not in read and not verb_of(token.word)}
        named = rest & self.words_of_relations
        return any(all(self._walks.nearness(word, label) < MAY_NAME for label in labels) for word in named)

    def _is_about(self, form: Form, arms: Arms) -> bool:
        """Whether the noun of a count means something of the graph, as far as its kinds tell."""
        words = " ".join(token.word for token in form.noun if token.word)
        if not kind_names(self._graph) or words in PEOPLE:
            return True
        labels = [label for _, _, way in arms.ways for label in way.labels]
        near = max((self._walks.nearness(words, label) for label in labels), default=1.0) if words else 1.0
        return max(near, self.noun_score(words)) >= MAY_NAME

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
            found.append({way.labels: way for way in self._walks.from_entity(text, place)})
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
            ways += self._lacking_ways(tokens, group, {way.labels for way in ways})
        ways = [way for way in ways if self._walks.leads_to_kind(tokens[group[0]], way.labels)] or ways
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
        slot = tokens[group[0]].slot
        assert slot
        alike = self._classes.containing([self._graph.entities.find(key) for key in slot.entities[: slot.best]])
        found = list[Way]()
        largest = sorted(np.flatnonzero(alike).tolist(), key=lambda group: (-self._classes.size_of(group), group))
        for one in sorted(largest[:MOST_ALIKE]):
            ways = self._walks.from_class(tokens, (group[0], group[0] + 1), one, max_steps=1)
            found += [
                replace(way, log=way.log - LACKING_COST)
                for way in ways
                if way.labels not in own and not self._classes.is_single(way.labels[0])
            ]
        return found

    def _complete(self, form: Form, arms: Arms) -> bool:
        """Add all that needs the class; False where something is not found."""
        if any(not arms.add("limit", limit, self._walks.limit_way(form, limit, arms.group)) for limit in form.limits):
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
        ids = [self._graph.entities.find(key) for token in form.standards for key in _keys(token)]
        read = (*form.noun, *degree.noun, *degree.words)
        rest = [token.word for token in form.clause if token.telling and token not in read]
        return self._classes.containing(ids)[group] and (not rest or (len(rest) == 1 and verb_of(rest[0]) is not None))

    def _undo_contradictions(self, form: Form, arms: Arms) -> bool:
        """Read otherwise what would be both there and absent, as "cities in it that are not its capital"; else False.

        What must not hold tells more of its relation than what holds, such as "in".
        """
        absent = {(_keys(what), way.labels) for _, what, way in arms.ways if isinstance(what, Token)}
        for number, (role, what, way) in enumerate(list(arms.ways)):
            if role != "entity" or not isinstance(what, Sequence):
                continue
            if not any((_keys(form.clause[at]), way.labels) in absent for at in what):
                continue
            if not any(token.telling for token in form.negative):
                return False  # "those in it that are not in it"
            near = self._walks.noun_nearness(form.noun)
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
        if way := self._walks.truth_way(form, arms.group):
            return arms.add("truth", None, way)
        noun = max(rest, key=lambda token: float(self._walks.noun_nearness([token]).max()))
        return arms.add("mentioned", None, self._counting.counted_way(form.clause, [noun], arms.group, 1))


def _keys(token: Token) -> tuple[str, ...]:
    return token.slot.entities if token.slot else ()


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
