"""QuestionFormGenerator: reads questions that need an operation, without a language model or examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Never

from kg_retrievers.core.stages import MIN_CONFIDENCE
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.graph import Pattern, readable
from kg_retrievers.graph.kinds import is_kind, kind_relations
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.graph.values import known_unit, read_value
from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.pattern_parts import names_nothing
from kg_retrievers.questions.question_forms.attributes import AttributeQuestions, FactTable
from kg_retrievers.questions.question_forms.classes import GraphClasses, told_values
from kg_retrievers.questions.question_forms.forms import MAX_TOKENS, Form, Token, find_limits, question_of, tokens_of
from kg_retrievers.questions.question_forms.grammar import has_quantity, read_form
from kg_retrievers.questions.question_forms.measure_words import SHORT_MEASURES, asks_measure
from kg_retrievers.questions.question_forms.measures import Measures
from kg_retrievers.questions.question_forms.reading import FormReader
from kg_retrievers.questions.question_forms.several import Several
from kg_retrievers.questions.question_forms.units import check_units
from kg_retrievers.questions.question_forms.values import UnreadError, WalkFinder
from kg_retrievers.questions.question_forms.whole_entities import WholeEntities
from kg_retrievers.questions.reading import PERCENT, type_nouns
from kg_retrievers.questions.self_questions.english import singular_of
from kg_retrievers.questions.zero_shot.generator import Understanding, ZeroShotPatternGenerator

#: Returns the request of a question, as the zero-shot generator finds it. It does so once.
Understand = Callable[[], Understanding]

#: Endings by which the people or things of a place are named, and the other possible endings of the place's name.
_DEMONYM = re.compile(r"(?:ese|ian|ean|ish|an|ic|n|i)$")
_PLACE_ENDINGS = ("", "y", "a", "ia", "e", "o", "land")

#: The next step for a question that is not understood.
_REPHRASE = {
    "hint_python": "Rephrase it with a relation of the graph, or give examples= or llm=.",
    "hint_shell": "Rephrase it with a relation of the graph, or give --examples or --llm.",
}

#: A list with one of these words is of other things than those that have something to do with an entity.
_NARROWING = frozenset(["only", "outside", "except", "excluding", "beyond"])

#: The most words beside an entity of a question without a verb.
MOST_BARE = 2


class QuestionFormGenerator:
    """Writes a pattern with conditions, absent triples or an operation if the form of a question asks for one.

    A small grammar knows the forms by function words, comparatives and superlatives. The zero-shot generator finds the
    relations for the words that are left, from the entities of the question or from all members of a class that a noun
    names.

    Args:
        zero_shot: The generator of the graph.
    """

    def __init__(self, zero_shot: ZeroShotPatternGenerator) -> None:
        """Take the generator; the classes of its graph are read when first needed."""
        self.zero_shot, self.index = zero_shot, zero_shot.index

    @property
    def _values(self) -> ValueColumns:
        """The values of the graph, of which those that tell its classes are read."""
        graph = self.index.graph
        return self.index.derived.get("told values", (graph,), lambda: told_values(graph))

    def _reader(self) -> FormReader:
        def make() -> FormReader:
            columns, table = self._values, token_table()
            classes = GraphClasses(self.index.graph, columns, table)
            return FormReader(WalkFinder(self.zero_shot, classes, columns, table))

        return self.index.derived.get("question forms", (self.index.graph,), make)

    def _attributes(self) -> AttributeQuestions:
        graph = self.index.graph
        table = self.index.derived.get("attributes of facts", (graph,), lambda: FactTable(graph))
        return AttributeQuestions(self._reader().walks, table, token_table())

    def read(self, question: str, entities: Sequence[QuestionEntity]) -> Pattern | None:
        """Return the pattern of a question that needs an operation, or None for another question.

        Args:
            question: The question.
            entities: Those that it names, as far as they were found.

        Raises:
            LowConfidenceError: If the operation is not understood.
            SearchBudgetError: If it is about all entities of a type, and the graph stays in its database.
        """
        if len(question.split()) > MAX_TOKENS:
            return None
        pattern = self._read(question, entities)
        return None if pattern is None else replace(pattern, truncated=self.index.truncated)

    def _read(self, question: str, entities: Sequence[QuestionEntity]) -> Pattern | None:
        named = [one for one in entities if not self._is_kind(one.entities[: one.best])]
        if self.index.graph.attribute_names:
            try:
                things = [one for one in named if not _is_time(question, one)]
                if (about := self._attributes().read(question, things)) is not None:
                    return about
            except UnreadError as error:
                self._refuse(question, tokens_of(question, named), error.part)
        nouns = type_nouns(self.index)
        whole = WholeEntities(nouns).read(self._usual(tokens_of(question, named)))
        if whole is not None:
            return whole
        tokens, walks = self._tokens(question, named), self._reader().walks
        try:
            for reader in (Several(walks), Measures(walks, self._read_list)):
                if (pattern := reader.read(tokens)) is not None:
                    return pattern
        except UnreadError as error:
            self._refuse(question, tokens, error.part)
        pattern = self._read_form(question, entities, tokens)
        if pattern is None and asks_measure(tokens, nouns.relation_words):
            self._refuse(question, tokens)
        return pattern

    def _read_form(self, question: str, entities: Sequence[QuestionEntity], tokens: list[Token]) -> Pattern | None:
        """Return the pattern of a question that needs an operation, by its form."""
        units = self._units(question)
        if read_form(tokens, lambda word: 0.0, units) is None:
            return self._bare(tokens) if question.rstrip().endswith("?") else None
        reader = self._reader()
        form = read_form(tokens, reader.walks.classes.closeness, units)
        understand = cache(partial(self.zero_shot.understand, question, entities)) if entities else None
        if form is None or (not form.unread and self._is_said(understand, form, reader)):
            return None
        words = [token.word for token in form.clause]
        if form.kind == "exists" and "or" in words and "true" not in words:
            return None  # alternatives, as in "Is it a town or a village?"
        try:
            if _limits_are_alternatives(tokens, units):
                raise UnreadError
            pattern = FormReader(reader.walks.within(form.noun)).read(form)
        except UnreadError:
            if not form.unread and self._is_number(understand, form, None):
                return None
            self._refuse(question, tokens, nearest=reader.walks.comparable(form))
        return None if self._is_number(understand, form, pattern) else pattern

    def _refuse(
        self, question: str, tokens: Sequence[Token], part: Sequence[Token] = (), nearest: Sequence[str] = ()
    ) -> Never:
        if self.index.is_part and not any(token.slot for token in tokens):
            raise names_nothing(question) from None
        words = [token.text for token in part or tokens if token.telling]
        named = " ".join(token.text for token in part)
        what = (
            f"has a part that was not understood: {named!r:.100}"
            if part
            else "needs an operation that was not understood"
        )
        meant = f" Did you mean: {', '.join(map(readable, nearest))}?" if nearest else ""
        message = f"QuestionFormGenerator: {question!r:.200} {what}.{meant}"
        raise LowConfidenceError(message, 0.0, words, nearest, **_REPHRASE) from None

    def _read_list(self, tokens: Sequence[Token]) -> Pattern:
        """Return the pattern of a question for a list of things, given by its words.

        Raises:
            UnreadError: If it is not understood.
        """
        if any(token.word in _NARROWING for token in tokens):
            raise UnreadError
        text, slots = question_of(tokens)
        found = list[Pattern]()
        with suppress(LowConfidenceError, EntityLinkingError):
            pattern = self._read_form(text, slots, list(tokens))
            if pattern is None and slots:
                pattern = self.zero_shot.read({"question": text, "entities": slots}).pattern
            found += [pattern] if pattern else []
        with suppress(UnreadError):
            found.append(self._reader().list_of(tokens))
        if not found:
            raise UnreadError
        return max(found, key=lambda pattern: pattern.confidence or 0.0)

    def _bare(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question without a verb, as "Station Bridge open?"."""
        words = [token for token in tokens if not token.slot and token.text != "?"]
        named = len(tokens) > 1 and tokens[0].slot and 1 <= len(words) <= MOST_BARE
        if not named or not all(token.telling for token in words):
            return None
        try:
            return self._reader().read(Form("exists", (), tuple(token for token in tokens if token.text != "?")))
        except UnreadError:
            return None

    def _is_number(self, understand: Understand | None, form: Form, pattern: Pattern | None) -> bool:
        """Whether "how many" asks more likely for a number that the graph states than for a count."""
        if form.kind != "count" or understand is None:
            return False
        understood = understand()
        states = self._reader().names_number(understood.arms[0].labels, form)
        sure = (pattern.confidence if pattern else None) or 0.0
        return states and (sure < MIN_CONFIDENCE or understood.confidence > sure)

    def _units(self, question: str) -> Collection[str]:
        """Return the units of the graph's numbers, which are read for a question that holds a number alone."""
        return self._values.unit_symbols if any(map(str.isdigit, question)) else ()

    def _tokens(self, question: str, entities: Sequence[QuestionEntity]) -> list[Token]:
        """Return the words of a question with its entities; a value that limits what is asked for is none of these."""
        entities = [slot for slot in entities if question[slot.start : slot.end] not in SHORT_MEASURES]
        named = [slot for slot in entities if read_value(slot.name) is None]
        tokens = tokens_of(question, named)
        limits = find_limits([token.word or "_" for token in tokens], self._units(question))
        names = {slot.name.casefold() for slot in entities}
        named_values = all(limit.operator == "=" and limit.values[0] in names for limit in limits)
        if named_values and not has_quantity(tokens):
            tokens = tokens_of(question, [slot for slot in entities if slot.name.casefold() not in ("true", "false")])
        return self._without_percent(self._usual(self._with_ellipses([self._named(token) for token in tokens])))

    def check_units(self, question: str, entities: Sequence[QuestionEntity], pattern: Pattern) -> None:
        """Refuse a question that names another unit than the numbers of its pattern have."""
        if any(known_unit(word.strip("?.,!()")) for word in question.split()) or pattern.conditions:
            check_units(question, self._tokens(question, entities), pattern, self._reader().walks)

    def _without_percent(self, tokens: Sequence[Token]) -> list[Token]:
        """Return words without the "percent" of a relation, as of "the fat percent", which asks for no share."""
        names, kept = type_nouns(self.index).percent_words, list[Token]()
        for at, token in enumerate(tokens):
            beside = [one.word for one in (*tokens[max(at - 1, 0) : at], *tokens[at + 1 : at + 2]) if one.telling]
            if token.word not in PERCENT or names.isdisjoint(beside):
                kept.append(token)
            elif [one.word for one in kept[-2:]] in (["how", "many"], ["how", "much"]):
                kept[-2:] = [Token("what")]
        return kept

    def _usual(self, tokens: Sequence[Token]) -> list[Token]:
        """Return words with the usual noun in place of another one for things of a type."""
        nouns = type_nouns(self.index)
        named = {at for start, end, _ in nouns.spans([token.word for token in tokens]) for at in range(start, end)}
        usual = list[Token]()
        for at, token in enumerate(tokens):
            usual += [token] if token.slot or at in named else map(Token, nouns.usual(token.text).split())
        return usual

    def _is_said(self, understand: Understand | None, form: Form, reader: FormReader) -> bool:
        """Whether a question asks for what a relation says itself, as "How many platforms does it have?" may."""
        if form.degree and form.degree.raw in reader.walks.kinds.relation_words:
            return True  # a superlative may be part of the name of a relation, as in "highest point"
        if form.kind != "count" or form.limits or form.negative or form.quantity or understand is None:
            return False
        understood = understand()
        if understood.lacked is not None and understood.confidence < MIN_CONFIDENCE:
            return reader.names_number([understood.lacked], form)
        return reader.is_number(understood.arms[0].labels, form)

    def _with_ellipses(self, tokens: list[Token]) -> list[Token]:
        """Return words with entities of which a later one has the last word, as in "in both low and polar orbit"."""
        for at in range(len(tokens) - 2):
            one, word, other = tokens[at : at + 3]
            if one.slot or not one.telling or word.word not in ("and", "or", "nor") or other.slot is None:
                continue
            named = self._entity(f"{one.text} {other.slot.name.split()[-1]}") if " " in other.slot.name else None
            tokens[at] = named or one
        return tokens

    def _entity(self, name: str) -> Token | None:
        """Return the only entity of a name that is more than a kind of others."""
        keys = self.index.graph.entities_named(name)
        if len(keys) != 1 or self._is_kind(keys):
            return None
        return Token(name, QuestionEntity(0, 1, self.index.graph.label(keys[0]), (keys[0],), 1, False))

    def _is_kind(self, keys: Sequence[str]) -> bool:
        """Whether all of some entities are kinds of others, as "Project" is by "instance of": a noun for these."""
        graph = self.index.graph
        if graph.are_classes(keys):
            return True
        relations = self.index.derived.get("kind relations", (graph,), lambda: kind_relations(graph))
        return bool(relations) and all(is_kind(graph, relations, graph.entities.find(key)) for key in keys)

    def _named(self, token: Token) -> Token:
        """Return a word as the entity that it names as an adjective or in the plural, if there is one."""
        if token.slot or len(token.text) < 4 or not token.text[0].isalpha():
            return token
        text = token.text
        stems = dict.fromkeys([text, text[:-1], singular_of(text)]) if text.endswith("s") else []
        stems = [cased for stem in stems for cased in (stem.capitalize(), stem.casefold())]
        if text[0].isupper() and (found := _DEMONYM.search(text)) and found.start() >= 3:
            stems += [text[:match] + ending for match in {found.start(), len(text) - 1} for ending in _PLACE_ENDINGS]
        for stem in stems:
            if found_one := self._entity(stem):
                return Token(text, found_one.slot)
        return token


def _is_time(question: str, entity: QuestionEntity) -> bool:
    """Whether an entity is a time that limits what is asked for, as "2005" in "who led it in 2005"."""
    words = [token.word for token in tokens_of(question, [])]
    at = len(tokens_of(question[: entity.start], []))
    value = read_value(entity.name)
    is_date = value is not None and value.first is not None
    return is_date and any(limit.start <= at < limit.end for limit in find_limits(words, ()))


def _limits_are_alternatives(tokens: Sequence[Token], units: Collection[str]) -> bool:
    """Whether two values limit what is asked for, one or the other: "before 1900 or after 2000"."""
    words = [token.word or "_" for token in tokens]
    limits = find_limits(words, units)
    return any("or" in words[one.end : other.start] for one, other in pairwise(limits))
