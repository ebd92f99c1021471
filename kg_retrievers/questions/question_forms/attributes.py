"""Questions about attributes of facts, as "what role did Ann play in Her?" or "who was its director in 2015?"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from kg_retrievers.graph import FactAttribute, KnowledgeGraph, Known, Pattern, Unknown
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.building import NONE, Pairs
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Condition, Operation, Operator, literal_value
from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.index.names import words_of as words_in
from kg_retrievers.questions.fact_attributes import value_texts
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    Limit,
    Token,
    find_limits,
    tokens_of,
    words_of,
)
from kg_retrievers.questions.question_forms.values import MAY_NAME, SAME_NAME, UnreadError, WalkFinder
from kg_retrievers.questions.self_questions.english import read_relation, singular_of
from kg_retrievers.questions.words import WORDS
from kg_retrievers.questions.zero_shot.direction import stem_of

#: The meaning of an attribute: when its fact begins or ends, when it happened, a number, or something else.
Kind = Literal["begin", "end", "point", "number", "text"]

_WORDS: dict[str, Any] = WORDS["attributes of facts"]

#: Lists of words that need no relation or attribute to account for them.
_ACCOUNTED = ("verbs of beginning", "verbs of ending", "light verbs", "question words")

#: So many of the values of an attribute of time are dates.
MOST = 0.8

#: The least cosine of a word with a relation or an attribute that accounts for it.
MAY_ACCOUNT = 0.1

#: How much nearer to another relation a word is that this one does not account for, of so many relations.
NEARER, MOST_OTHERS = 0.3, 1_000

#: How much less likely than the likeliest walk the one to facts with an attribute may be, as a logarithm.
MUCH_LESS = 1.5

#: The most words of a value.
LONGEST_VALUE = 8

#: The least cosine of a noun with an attribute that has another name, and how much nearer it must be than the next.
SAME_SENSE, SENSE_MARGIN = 0.3, 0.05

#: How likely a reading is right: of facts between two entities, of one relation alone, and of one that words choose.
BETWEEN, ALONE, CHOSEN = 0.93, 0.85, 0.75

_WHEN = re.compile(r"(?:on|in|at|during)? ?(?:(?:what|which) (?:year|date|day|month|time)|when)\b")
_HOW_MANY = re.compile(r"how (?:many|much)\b|what number of\b")
_HOW_MUCH = re.compile(r"how much\b")
_WHO = re.compile(r"(?:(?:to|by|for|from|with|of|in|at|on) )?(?:who|whom|which|what|where)\b")
_BY = re.compile(r"(\w+) (?:what|which|whom|who)\b")
_ALSO = re.compile(r"(?:in|at|on|for|as|since|until|with)? ?(?:what|which|when|why|how (?:many|much))\b")


#: A condition of a time on an attribute: its name, the operator, the value, and whether a fact may lack it.
_Time: TypeAlias = tuple[str, Operator | None, str | tuple[str, ...], bool]


@dataclass
class FactTable:
    """The attributes of a graph's facts.

    Attributes:
        graph: The graph.
        kinds: What each attribute says.
        of_relation: The attributes of the facts of each relation, by its id.
        values: The attributes that have a text as value, by the text in small letters.
    """

    graph: KnowledgeGraph
    kinds: dict[str, Kind] = field(default_factory=dict)
    of_relation: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    values: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        """Read the sets of attributes."""
        graph = self.graph
        found: dict[str, list[str]] = defaultdict(list)
        names = [tuple(graph.attribute_sets.read(id)) for id in range(len(graph.attribute_sets.texts))]
        for name in graph.attribute_names:
            for value in graph.attribute_sets.values(name).values():
                found[name] += value_texts(value)
            self.kinds[name] = _kind_of(name, found[name])
            if self.kinds[name] == "text":
                for text in found[name]:
                    self.values[text.casefold()].add(name)
        pairs = self.pairs
        relations = graph.edges.relations[pairs.owners].astype(np.int64)
        for code in distinct(relations * max(len(names), 1) + pairs.values).tolist():
            self.of_relation[code // len(names)].update(names[code % len(names)])

    @cached_property
    def pairs(self) -> Pairs:
        """The triples with attributes, and their sets."""
        return Pairs.named(self.graph._columns, "triple_attributes")

    def of_kind(self, names: Iterable[str], *kinds: Kind) -> list[str]:
        """Return those attributes that say something of a kind, in sorted order."""
        return sorted(name for name in names if self.kinds[name] in kinds)

    def having(self, name: str, text: str) -> Array:
        """Return the triples that have a value of an attribute, ascending."""
        sets = [
            id
            for id, value in self.graph.attribute_sets.values(name).items()
            if text in map(str.casefold, value_texts(value))
        ]
        return distinct(self.pairs.owners[np.isin(self.pairs.values, sets)])


def _kind_of(name: str, values: Sequence[str]) -> Kind:
    read = [literal_value(value) for value in values[:1000]]
    words = {*_words_of_name(name)}
    if sum(value.first is not None for value in read) >= MOST * len(read):
        for kind in ("begin", "end", "point"):
            if words & {*_WORDS[kind]}:
                return kind
    return "number" if sum(value.number is not None for value in read) >= MOST * len(read) else "text"


@dataclass(frozen=True)
class _Asked:
    """What a question asks for: an end of facts, a truth value, or an attribute.

    Attributes:
        what: Which of these; "time" is an attribute of time.
        kinds: What the attribute may say.
        noun: The words that name it, if there are some.
    """

    what: Literal["end", "exists", "attribute", "time"]
    kinds: tuple[Kind, ...] = ()
    noun: tuple[str, ...] = ()


_A_TIME = r"(?:when|(?:what|which) (?:year|date|day|month|time))\b"

#: The targets of questions that begin so.
_BEGINNINGS: tuple[tuple[str, _Asked], ...] = (
    (r"from when (?:to|until|till) when\b", _Asked("time", ("point", "begin", "end"))),
    (rf"(?:since|from|starting) {_A_TIME}", _Asked("time", ("begin", "point"))),
    (rf"(?:until|till|up to|to) {_A_TIME}", _Asked("time", ("end",))),
    (
        r"as (?:what|who)\b|(?:in|under) (?:what|which) (?:capacity|function|role|position)\b",
        _Asked("attribute", ("text",), ("role",)),
    ),
    (
        r"why\b|for (?:what|which) reasons?\b|what (?:is|are|was|were) .*\bfor$",
        _Asked("attribute", ("text",), ("reason",)),
    ),
)

#: The operations of superlatives, by the part that is still to be found.
_DEGREES: tuple[tuple[str, Operation], ...] = (
    (r"\b(?:first|earliest)\b", Operation("min", by=("time",))),
    (r"\b(?:last|latest|most recent(?:ly)?)\b", Operation("max", by=("time",))),
    (r"\b(?:most|highest|greatest|largest|biggest|longest)\b", Operation("max", by=("number",))),
    (r"\b(?:least|fewest|lowest|smallest|shortest)\b", Operation("min", by=("number",))),
)


@dataclass(frozen=True)
class _Parts:
    """The parts of a question."""

    tokens: list[Token]
    values: dict[str, set[str]]
    limits: list[Limit]

    @property
    def entities(self) -> list[Token]:
        return [token for token in self.tokens if token.keys]

    @property
    def text(self) -> str:
        return words_of(self.tokens)


class AttributeQuestions:
    """Reads questions about attributes of facts. Each is about the facts of one relation.

    Args:
        walks: Finds walks.
        table: The attributes of its graph.
        vectors: Gives the vectors of words.
    """

    def __init__(self, walks: WalkFinder, table: FactTable, vectors: TokenTable) -> None:
        """Keep them."""
        self._walks, self._table, self._vectors, self._graph = walks, table, vectors, walks.graph

    def read(self, question: str, entities: Sequence[QuestionEntity]) -> Pattern | None:
        """Return the pattern of a question, or None if it names no attribute, no value of one, and no time of facts.

        Raises:
            UnreadError: If it names an attribute, but not whose.
        """
        whole = self._parts(question, entities)
        segments = _segments(whole.tokens)
        parts = replace(whole, tokens=segments[0])
        unread = [token for token in whole.tokens if token.word in _WORDS["unread"] or token.word[:1].isdigit()]
        found = [self._asked(replace(whole, tokens=tokens)) for tokens in segments]
        asked = [one for one in found if one is not None]
        if len(found) == len(asked) == 1 and asked[0].what == "attribute":
            asked += self._also_named(parts, asked[0])
        if len(asked) < len(found) or not all(one.what in ("attribute", "time") for one in asked[1:]):
            return None
        is_said = asked[0].what in ("attribute", "time") or parts.values or parts.limits or self._has_ended(parts)
        is_said = is_said or any(token.word in _WORDS["of now"] for token in unread)
        if not is_said and (asked[0].what == "exists" or self._degree(parts) is None):
            return None
        for said in (parts, *self._with_entities_as_values(parts)):
            if labels := self._labels(said, asked):
                label, confidence = self._chosen(said, asked, labels)
                if label is None or self._names_relation(said, label):
                    return None
                unread += self._left(said, asked, label)
                is_open = asked[0].what != "end" or (len(said.entities) < 2 and not _HOW_MUCH.match(parts.text))
                if unread or not is_open or (asked[0].what == "exists" and self._is_undated(said, label)):
                    raise UnreadError(unread)
                return self._pattern(said, asked, label, confidence)
        nouns = {word for one in asked for word in one.noun}
        is_attribute = any({*_words_of_name(name)} & nouns for name in self._table.kinds)
        if len(parts.entities) > 1 and is_attribute and asked[0].what == "attribute":
            raise UnreadError([token for token in parts.tokens if singular_of(token.word) in nouns])
        return None

    def _names_relation(self, parts: _Parts, label: int) -> bool:
        """Whether a value names another relation of an entity, as "apprentice" does "apprenticed under"."""
        if not (parts.values and parts.entities):
            return False
        said = {stem_of(word) for text in parts.values for word in text.split()}
        _, labels = self._facts([self._walks.ids_of(parts.entities[0])])
        others = {*relation_of(distinct(labels)).tolist()} - {int(relation_of(label))}
        names = (_words_of_name(self._graph.relations[other]) for other in others)
        return any(not said.isdisjoint(map(stem_of, words)) for words in names)

    def _also_named(self, parts: _Parts, asked: _Asked) -> list[_Asked]:
        """Return the further attributes that a question joins by "and"."""
        words = [singular_of(token.word) for token in parts.tokens if not token.slot and token.word not in asked.noun]
        names = [_words_of_name(name) for name in sorted(self._table.kinds)] if "and" in words else []
        further = [own for own in names if (*own,) != asked.noun and _place(words, own) is not None]
        return [replace(asked, noun=(*own,)) for own in further if all(Token(word).telling for word in own)]

    def _with_entities_as_values(self, parts: _Parts) -> Iterator[_Parts]:
        """Yield the parts with one of several entities as a value of an attribute."""
        for token in parts.entities if len(parts.entities) > 1 else ():
            text = token.text.casefold()
            if text in self._table.values:
                left = [one for one in parts.tokens if one is not token]
                yield replace(parts, tokens=left, values={**parts.values, text: self._table.values[text]})

    def _is_undated(self, parts: _Parts, label: int) -> bool:
        """Whether a fact between two entities says nothing of the time that a question names."""
        triples, labels = self._facts([self._walks.ids_of(token) for token in parts.entities])
        times = {*self._table.of_kind(self._table.kinds, "begin", "end")}
        if parts.tokens[0].word not in ("is", "are", "was", "were"):  # a point in time says nothing of a state
            times.update(self._table.of_kind(self._table.kinds, "point"))
        sets = [self._graph.attribute_set_ids(triple) or [NONE] for triple in triples[labels == label].tolist()]
        read = [{} if id == NONE else self._graph.attribute_sets.read(id) for some in sets for id in some]
        return bool(parts.limits) and any(times.isdisjoint(one) for one in read)

    def _has_ended(self, parts: _Parts) -> bool:
        return any(token.word in _WORDS["verbs of leaving"] for token in parts.tokens)

    # --- the parts of a question --------------------------------------------------------------------------------------

    def _parts(self, question: str, entities: Sequence[QuestionEntity]) -> _Parts:
        spans = self._value_spans(question, entities)
        kept = [one for one in entities if not any(one.start < end and start < one.end for start, end, _ in spans)]
        values = {text: self._table.values[text] for _, _, text in spans}
        marks = [QuestionEntity(start, end, text, (), 0, True) for start, end, text in spans]
        tokens = [token for token in tokens_of(question, [*kept, *marks]) if token.slot or token.word[0].isalnum()]
        tokens = self._without_named_values(tokens, values)
        limits = [one for one in find_limits([token.word or "_" for token in tokens], ()) if one.kind != "number"]
        dated = [one for one in limits if one.value.first is not None and [*one.values] == sorted(one.values)]
        left = [token for at, token in enumerate(tokens) if not any(one.start <= at < one.end for one in dated)]
        return _Parts(left, values, dated)

    def _value_spans(self, question: str, entities: Sequence[QuestionEntity]) -> list[tuple[int, int, str]]:
        """Return where values of attributes stand in a question, the longest first; none inside the name of a thing."""
        exact = [one for one in entities if one.name.casefold() == question[one.start : one.end].casefold()]
        words = [match.span() for match in re.finditer(r"[\w'’-]+", question)]
        found = list[tuple[int, int, str]]()
        for size in range(min(LONGEST_VALUE, len(words)), 0, -1):
            for first in range(len(words) - size + 1):
                start, end = words[first][0], words[first + size - 1][1]
                inside = [one for one in exact if one.start < end and start < one.end]
                is_taken = any(start < other and one < end for one, other, _ in found)
                is_more = all(
                    start <= one.start and one.end <= end and end - start > one.end - one.start for one in inside
                )
                text = question[start:end].casefold()
                bases = (text, singular_of(text), re.sub(r"(?:ed|d|s|ing)$", "", text))
                value = next((one for one in bases if self._is_value(one)), None)
                if value is not None and is_more and not is_taken:
                    found.append((start, end, value))
        return found

    def _without_named_values(self, tokens: list[Token], values: dict[str, set[str]]) -> list[Token]:
        """Return words without names of attributes beside their values, as "number" of "number 9", and add these."""
        left = [*tokens]
        for name in sorted(self._table.kinds, key=lambda one: (-len(one), one)):
            own = _words_of_name(name)
            for words in (own, own[-1:]):
                at = _place([singular_of(token.word) for token in left], words)
                if at is None or not all(Token(word).telling for word in words):
                    continue
                end = at + len(words)
                after = left[end] if end < len(left) else None
                beside = [one for one in (left[at - 1] if at else None, after) if one and one.slot and not one.keys]
                if any(name in values.get(one.text, ()) for one in beside):
                    del left[at:end]
                elif after and after.word[:1].isdigit() and self._table.kinds[name] in ("number", "point"):
                    values[after.word] = {name}
                    del left[at : end + 1]
        return left

    def _is_value(self, text: str) -> bool:
        return text in self._table.values and text not in self._relation_words and not text.isdigit()

    @cached_property
    def _relation_words(self) -> set[str]:
        return {word for relation in self._graph.relations for word in words_in(relation.replace("_", " "))}

    def _asked(self, parts: _Parts) -> _Asked | None:  # a case for each beginning
        text = parts.text.strip()
        led = [match[1]] if (match := _BY.match(text)) else []
        for word in (*led, *(token.word for token in parts.tokens[-1:])):
            if self._table.kinds.get(word) == "text" and not Token(word).telling:
                return _Asked("attribute", ("text",), (word,))
        if asked := next((asked for form, asked in _BEGINNINGS if re.match(form, text)), None):
            return asked
        if _WHEN.match(text):
            verbs = {singular_of(token.word) for token in parts.tokens}
            if verbs & {*_WORDS["verbs of beginning"]}:
                return _Asked("time", ("begin", "point"))
            ends = bool(verbs & {*_WORDS["verbs of ending"]})
            return _Asked("time", ("end", "point") if ends else ("point", "begin", "end"))
        named = self._named(parts)
        polar = bool(parts.tokens) and parts.tokens[0].word in AUXILIARY
        of_two = len(parts.entities) > 1
        if _HOW_MANY.match(text):
            amount = ("amount",) if "much" in text.split()[:2] else ()
            noun = named or (amount if of_two else ())
            return _Asked("attribute", ("number",), noun) if noun else _Asked("end")
        if named and not polar and self._degree(parts) is None:
            return _Asked("attribute", ("text", "number", "point", "begin", "end"), named)
        if polar:
            return _Asked("exists")
        if _WHO.match(text) or text.startswith(("list ", "show ", "name ", "find ", "give ")):
            telling = tuple(token.word for token in parts.tokens if token.telling)
            noun = telling if text.startswith(("what ", "which ")) and of_two else ()
            return _Asked("attribute", ("text", "number"), noun) if noun else _Asked("end")
        return None

    def _named(self, parts: _Parts) -> tuple[str, ...]:
        """Return the words of an attribute that a question names by its very name."""
        words = [singular_of(token.word) for token in parts.tokens]
        for name in sorted(self._table.kinds, key=lambda one: (-len(one), one)):
            own = _words_of_name(name)
            if all(Token(word).telling for word in own) and _place(words, own) is not None:
                return own
        return ()

    def _degree(self, parts: _Parts) -> Operation | None:
        """Return the operation of a superlative, by what is still to be found."""
        return next((operation for form, operation in _DEGREES if re.search(form, parts.text)), None)

    # --- the relation -------------------------------------------------------------------------------------------------

    def _labels(self, parts: _Parts, asked: Sequence[_Asked]) -> dict[int, set[str]]:
        """Return the relations that may be meant, as labels seen from the first entity, with their attributes."""
        ids = [self._walks.ids_of(token) for token in parts.entities]
        if len(ids) > 2 or not (ids or parts.values or parts.limits):
            return {}
        triples, labels = self._facts(ids)
        fits = np.ones(len(triples), bool)
        for text, names in parts.values.items():
            own = [self._table.having(name, text) for name in sorted(names)]
            fits &= np.isin(triples, np.concatenate(own))
        found = {}
        for label in distinct(labels[fits] if fits.any() else labels).tolist():
            names = self._table.of_relation.get(int(relation_of(label)), set())
            if self._answers(parts, asked, names):
                found[label] = names
        return found

    def _facts(self, ids: Sequence[Array]) -> tuple[Array, Array]:
        """Return the triples around an entity, between two, or all, and their labels as seen from the first."""
        adjacency = self._graph.adjacency
        if not ids:
            triples = distinct(self._table.pairs.owners)
            return triples, label_of(self._graph.edges.relations[triples], False)
        entries = np.concatenate(
            [np.arange(adjacency.indptr[one], adjacency.indptr[one + 1]) for one in ids[0].tolist()]
        )
        rows = np.repeat(ids[0], adjacency.indptr[ids[0] + 1] - adjacency.indptr[ids[0]])
        if len(ids) > 1:
            kept = np.isin(adjacency.neighbors[entries], ids[1])
            entries, rows = entries[kept], rows[kept]
        return adjacency.triples_of(entries, rows), np.asarray(adjacency.labels[entries])

    def _answers(self, parts: _Parts, asked: Sequence[_Asked], names: Collection[str]) -> bool:
        """Whether facts with some attributes may say all that a question asks."""
        if any(not self._value_names(text, parts, names) for text in parts.values):
            return False
        if parts.limits and not self._table.of_kind(names, "begin", "end", "point"):
            return False
        if asked[0].what in ("attribute", "time"):
            return all(self._attributes_asked(one, names) for one in asked)
        is_of_now = any(token.word in _WORDS["of now"] for token in parts.tokens)
        if is_of_now or (self._has_ended(parts) and not parts.limits):
            return bool(self._table.of_kind(names, "end"))
        if (degree := self._degree(parts)) is not None:
            return self._by(parts, degree, names) is not None
        return bool(parts.values or parts.limits)

    def _value_names(self, text: str, parts: _Parts, names: Collection[str]) -> list[str]:
        return sorted(parts.values[text] & {*names})

    def _attributes_asked(self, asked: _Asked, names: Collection[str]) -> list[str]:
        """Return the attributes that a question may ask for: the one of this very name, else the nearest."""
        if asked.what == "time":
            found = [self._table.of_kind(names, kind) for kind in asked.kinds]
            first = next((some[:1] for some in found if some), [])
            ends = found[2][:1] if len(found) > 2 and found[2] and first == found[1][:1] else []
            return first + ends
        exact = [name for name in sorted(names) if _words_of_name(name) == asked.noun]
        if exact:
            return exact[:1]
        near = [(self._nearness(asked.noun, name), name) for name in self._table.of_kind(names, *asked.kinds)]
        near = near if len(near) == 1 and asked.noun == ("amount",) else [one for one in near if one[0] >= SAME_SENSE]
        near.sort(reverse=True)
        if not near or (len(near) > 1 and near[0][0] < near[1][0] + SENSE_MARGIN):
            return []
        return [near[0][1]]

    def _nearness(self, noun: Sequence[str], name: str) -> float:
        """Return the cosine of a noun with the name of an attribute, or of words of the same sense."""
        words = {*_words_of_name(name)}
        if any(words & {*sense} and {*map(singular_of, noun)} & {*sense} for sense in _WORDS["senses"]):
            return 1.0
        own = self._vector(" ".join(sorted(words)))
        return max((float(own @ self._vector(word)) for word in noun), default=0.0)

    def _vector(self, text: str) -> Array:
        vector: Array = self._vectors.rows(self._vectors.token_ids(text)).sum(axis=0)
        return vector / max(float(np.linalg.norm(vector)), 1e-9)

    def _chosen(
        self, parts: _Parts, asked: Sequence[_Asked], labels: Mapping[int, set[str]]
    ) -> tuple[int | None, float]:
        """Return the relation that the words of a question mean among those that may be meant, and how sure that is."""
        named = {word for one in asked for word in one.noun}
        rest = [token for token in parts.tokens if token.keys or not (token.slot or singular_of(token.word) in named)]
        telling = [token.word for token in rest if token.telling]
        words = " ".join([word for word in telling if word not in _WORDS["light verbs"]] or telling * (len(labels) > 1))
        near = {label: self._walks.nearness(words, label) if words else 0.0 for label in labels}
        best = max(labels, key=lambda label: (near[label], -label))
        if not parts.entities and not parts.values:
            others = [
                self._walks.nearness(words, 2 * other) for other in range(min(len(self._graph.relations), MOST_OTHERS))
            ]
            others.remove(near[best])
            is_nearest = near[best] >= SAME_NAME and near[best] > max(others, default=0.0)
            return (best, ALONE) if is_nearest and self._open_ends(parts, best) else (None, 0.0)
        if len(parts.entities) != 1:
            others = [near[label] for label in labels if relation_of(label) != relation_of(best)]
            return (best, BETWEEN) if near[best] > max(others, default=-1.0) else (None, 0.0)
        if len(labels) == 1 and (not words or near[best] >= MAY_NAME or parts.values):
            return best, ALONE
        at = next(at for at, token in enumerate(rest) if token.keys)
        ways = self._walks.from_entity(rest, at, max_steps=2) if words else []
        is_named = parts.values or any(one.noun for one in asked)
        for way in ways:
            if way.labels[0] in labels and len(way.labels) == 1 and (is_named or way.log > ways[0].log - MUCH_LESS):
                return way.labels[0], min(CHOSEN, max(way.confidence, 0.6))
        return None, 0.0

    def _left(self, parts: _Parts, asked: Sequence[_Asked], label: int) -> list[Token]:
        """Return the telling words of a question that nothing of the facts of a relation accounts for."""
        named = {word for one in asked for word in one.noun}
        known = {word for kind in _ACCOUNTED for word in _WORDS[kind]}
        names = self._table.of_relation[int(relation_of(label))]
        left, is_of_another = list[Token](), False
        others = range(min(len(self._graph.relations), MOST_OTHERS))
        for token in parts.tokens:
            if not token.telling or token.word in known or {token.word, singular_of(token.word)} & named:
                continue
            near = max((self._nearness([token.word], name) for name in names), default=0.0)
            is_kind = self._walks.kinds.of_noun([token.word]) is not None
            near = max(near, self._walks.nearness(token.word, label))
            of_others = max((self._walks.nearness(token.word, 2 * other) for other in others), default=0.0)
            if (near < MAY_ACCOUNT and not is_kind) or of_others > max(near + NEARER, SAME_NAME):
                left.append(token)
                is_of_another |= of_others > near + NEARER
        is_sure = len(parts.entities) > 1 and any(one.what == "attribute" and one.noun for one in asked)
        return [] if is_sure and len(left) == 1 and not is_of_another else left  # "what role did A take on in B"

    # --- the pattern --------------------------------------------------------------------------------------------------

    def _pattern(self, parts: _Parts, asked: Sequence[_Asked], label: int, confidence: float) -> Pattern:
        names = self._table.of_relation[int(relation_of(label))]
        nodes: list[Known | Unknown] = [token.node for token in parts.entities]
        unknowns = [Unknown("entity 1")] * (2 - len(nodes)) if nodes else self._open_ends(parts, label)
        ends: list[Known | Unknown] = [*nodes, *unknowns]
        here, there = ends
        relation = Known(self._graph.relations[int(relation_of(label))])
        triple = (there, relation, here) if is_backward(label) else (here, relation, there)
        attributes, conditions = self._said(parts, names)
        operation: Operation | None = None
        target: str | None = "entity 1" if unknowns else None
        if self._has_ended(parts) and not parts.limits and asked[0].what in ("end", "exists"):
            attributes |= {end: FactAttribute(0, end, end) for end in self._table.of_kind(names, "end")[:1]}
        degree = self._degree(parts)
        if asked[0].what in ("attribute", "time"):
            wanted = [*dict.fromkeys(name for one in asked for name in self._attributes_asked(one, names))]
            for name in wanted:
                attributes[name] = FactAttribute(0, name, name)
            target = wanted[0]
            operation = Operation("table", by=tuple(wanted)) if len(wanted) > 1 else None
            if degree is not None and asked[0].what == "time" and degree.by == ("time",):
                operation = replace(degree, by=(target,))
            if _HOW_MANY.match(parts.text) and self._table.kinds[target] == "text":
                operation = Operation("count")
        elif asked[0].what == "exists":
            target, operation = None, Operation("exists")
        elif degree is not None and (by := self._by(parts, degree, names)):
            attributes.setdefault(by, FactAttribute(0, by, by))
            operation = replace(degree, by=(by,))
        if _HOW_MANY.match(parts.text) and asked[0].what == "end":
            operation = Operation("count")
        return Pattern.of(
            triple,
            attributes=attributes.values(),
            conditions=conditions,
            target=target,
            operation=operation,
            directed=True,
            typed=True if any(unknown.type for unknown in unknowns) else None,
            source="question-forms",
            confidence=confidence,
        )

    def _open_ends(self, parts: _Parts, label: int) -> list[Unknown]:
        """Return head and tail of a fact whose ends the question leaves open, "entity 1" for the one it asks for.

        They are none if the fact joins nothing of the kind that the question names.
        """
        ends = [Unknown("entity 1"), Unknown("entity 2")]
        spans = self._walks.kinds.spans([token.word for token in parts.tokens])
        if parts.values:
            return ends
        members = kind_members(self._graph, spans[0][2]) if spans else None
        if members is None:
            is_passive = read_relation(self._graph.relations[int(relation_of(label))]).form == "passive"
            return ends[::-1] if is_passive else ends
        kind, samples = spans[0][2], self._graph.relation_samples
        joined = [samples.ends_of(int(reversed_label(label))), samples.ends_of(label)]
        at = next((at for at, some in enumerate(joined) if np.isin(some, members).any()), -1)
        if at < 0 or len(spans) > 1:
            return []
        is_asked = self._walks.kinds.asked(parts.text) == kind
        ends[at] = Unknown("entity 1" if is_asked else "entity 2", kind)
        ends[1 - at] = Unknown("entity 2" if is_asked else "entity 1")
        return ends

    def _said(self, parts: _Parts, names: Collection[str]) -> tuple[dict[str, FactAttribute], list[Condition]]:
        """Return the attributes of which a question says something, by name, and the conditions on them."""
        attributes: dict[str, FactAttribute] = {}
        conditions = list[Condition]()
        for text in parts.values:
            name = self._value_names(text, parts, names)[0]
            attributes[name] = FactAttribute(0, name, name)
            conditions.append(Condition(name, "=", text))
        for limit in parts.limits:
            for name, operator, value, optional in self._times(limit, parts, names):
                attributes.setdefault(name, FactAttribute(0, name, name, optional))
                if operator is not None:
                    conditions.append(Condition(name, operator, value))
        return attributes, conditions

    def _by(self, parts: _Parts, degree: Operation, names: Collection[str]) -> str | None:
        """Return the attribute by which a superlative compares."""
        if degree.by == ("time",):
            return next(iter(self._table.of_kind(names, "begin") or self._table.of_kind(names, "point")), None)
        words = [token.word for token in parts.tokens if token.telling]
        near = {name: self._nearness(words, name) for name in self._table.of_kind(names, "number")}
        best = max(near, key=lambda name: near[name], default=None)
        return best if best is not None and near[best] >= SAME_NAME else None

    def _times(self, limit: Limit, parts: _Parts, names: Collection[str]) -> list[_Time]:
        """Return the conditions of a time on attributes.

        Each has a name, an operator, if there is one, its value, and whether a fact without the attribute fits, too.
        """
        begin, end, point = (next(iter(self._table.of_kind(names, kind)), "") for kind in ("begin", "end", "point"))
        words = {singular_of(token.word) for token in parts.tokens}
        value = limit.values if limit.operator == "between" else limit.values[0]
        if begin and words & {*_WORDS["verbs of beginning"]}:
            return [(begin, limit.operator, value, False)]
        if end and words & {*_WORDS["verbs of ending"]}:
            return [(end, limit.operator, value, False)]
        if not begin and not end:
            return [(point, limit.operator, value, False)]
        begun: list[_Time] = [(begin, None, "", False)] if begin else []
        match limit.operator:
            case "<" | ">=":
                return [(begin or end, limit.operator, value, False)]
            case "<=" if end:
                return [(end, "=", value, False)]
            case "<=" | ">" if not end:
                return [(begin, limit.operator, value, False)]
            case ">":
                return [*begun, (end, ">", value, bool(begin))]
        begun = [(begin, "<=", limit.values[-1], False)] if begin else []
        return [*begun, (end, ">=", limit.values[0], bool(begin))] if end else begun


def _segments(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts of a question that "and" joins with a further question word."""
    found: list[list[Token]] = [[]]
    for at, token in enumerate(tokens):
        if token.word == "and" and _ALSO.match(words_of(tokens[at + 1 :])):
            found.append([])
        else:
            found[-1].append(token)
    return found


def _place(words: Sequence[str], part: Sequence[str]) -> int | None:
    """Return where a part of some words begins; None if it is none."""
    places = (at for at in range(len(words) - len(part) + 1) if [*words[at : at + len(part)]] == [*part])
    return next(places, None)


def _words_of_name(name: str) -> tuple[str, ...]:
    """Return the words of the name of an attribute, nouns in the singular."""
    words = words_in(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name))
    return tuple(singular_of(word.casefold()) for word in words)
