"""Questions for a mean, a sum, a range, a share or a table by groups, and for all things of a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from kg_retrievers.graph import Pattern
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Operation, Period
from kg_retrievers.graph.values import known_unit
from kg_retrievers.questions.question_forms.classes import CALLED, MEMBERS
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    PRONOUNS,
    WH,
    Token,
    base_of,
    joined,
    words_of,
)
from kg_retrievers.questions.question_forms.grammar import has_quantity
from kg_retrievers.questions.question_forms.measure_words import (
    COUNTS,
    EXTREMES,
    PLAIN,
    UNREAD,
    Asked,
    remove,
    take_measure,
)
from kg_retrievers.questions.question_forms.reading import PatternBuilder
from kg_retrievers.questions.question_forms.values import (
    MAY_NAME,
    NAME_WEIGHT,
    SAME_NAME,
    UnreadError,
    WalkFinder,
    Way,
    likeliest,
    stand_in,
    sureness,
)
from kg_retrievers.questions.self_questions.english import singular_of, verb_of
from kg_retrievers.questions.zero_shot.steps import measured_by

#: No pattern says these: "deeper than average", "in the same decade as".
UNSAID = re.compile(r"\bthan (?:the |an? |on )?(?:average|mean)\b|\bsame (?:month|decade|century)\b")

#: Asks for a number in a unit.
ASKS_UNIT = re.compile(
    r"\bhow (?:many|much) (?:of )?(?P<unit>[a-z]+)\b|\bin (?P<other>[a-z]+)(?= ,|$| (?:is|are|does|do|has)\b)"
)

#: Asks for things rather than for a number.
ASKS_WHICH = re.compile(r"\b(?:which|who|whom|whose|where)\b|\bwhat (?!is|are|was|were|s)")

#: Before the noun for all of which something is a share.
ALL_OF_THEM = re.compile(r"\b(?:all|every|each|total|whole)(?: of)?(?: the)?$")

#: The measures that may be computed from how many of something each thing has.
COUNTED = frozenset(["mean", "sum", "max", "min", "range"])

#: Signs that stand for a comma.
PAUSES = frozenset([":", ";", "-", "–", "—", "."])

#: Reads a question for a list, given by its words. The pattern has a target.
ReadList = Callable[[Sequence[Token]], Pattern]

#: From which confidence a walk is meant whose relation has none of the words.
LIKELY = 0.5

#: Nouns for the spans of time by which dates are put together.
_PERIODS: dict[str, Period] = {"day": "day", "month": "month", "year": "year", "decade": "decade", "century": "century"}

#: With these a question is about one thing that was named before.
_OF_ONE = PRONOUNS - {"they", "them"}

#: How sure a list or a count of all things of a kind is.
ALL_OF_KIND = 0.95


@dataclass(frozen=True)
class Things:
    """The things that a question is about.

    Attributes:
        noun: The words for them.
        kind: Their kind; None if it is unknown.
        members: The ids of those of this kind, or else of all that are listed.
        pattern: The pattern that lists them; None for all of their kind.
    """

    noun: tuple[Token, ...]
    kind: str | None
    members: Array
    pattern: Pattern | None

    @property
    def confidence(self) -> float:
        """How likely the things are the ones meant."""
        return 1.0 if self.pattern is None else self.pattern.confidence or 0.0


class Measures:
    """Reads such questions: the words of the measure are taken away, and the rest asks for a list of things.

    Args:
        walks: Finds walks to values and groups.
        read_list: Reads the question for the things.
    """

    def __init__(self, walks: WalkFinder, read_list: ReadList) -> None:
        """Keep them."""
        self._walks, self._kinds, self._read_list, self._graph = walks, walks.kinds, read_list, walks.graph

    def read(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question, or None if it asks for nothing of this.

        Raises:
            UnreadError: If a part of it is not found.
        """
        words = [Token(",") if token.text in PAUSES else token for token in tokens]
        words = [token for token in words if token.slot or re.match(r"[\w,%]", token.text)]
        if UNSAID.search(words_of(words)):
            raise UnreadError
        return self._in_unit(words) or self._read(words)

    def _read(self, words: list[Token]) -> Pattern | None:
        """Return the pattern of a question for a measure, or for all things of a kind."""
        asked = take_measure(words)
        if asked is None:
            return self._all_of_kind(words) or self._extreme(words) or self._fragment(words)
        if asked.kind == "share":
            return self._share(asked) if asked.is_strict or self._kind_spans(words) else None
        counted = COUNTS.search(words_of(words)) is not None
        if asked.kind == "sum" and counted and (all_of_kind := self._all_of_kind(words)):
            return all_of_kind
        try:
            return self._measured(asked)
        except UnreadError:
            if asked.kind == "sum" and (counted or not asked.is_strict):
                return None  # "the total number of films made by her", "which they run together"
            raise

    def _in_unit(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "how many minutes does it take": the number of an entity that has this unit."""
        words = [found["unit"] or found["other"] for found in ASKS_UNIT.finditer(words_of(tokens))]
        unit = next((word for word in words if known_unit(word) or self._walks.is_unit(word)), None)
        at = [at for at, token in enumerate(tokens) if token.slot]
        if unit in (None, "percent") or len(at) != 1 or self._compares(tokens):
            return None
        assert unit
        said = " ".join(token.word for token in tokens if token.telling and token.word != unit)
        ways = self._walks.from_entity(tokens, at[0], max_steps=1)
        named, way = (self._walks.best(ways, -1, ("number",), said, one) for one in ("", unit))
        other = named and self._walks.unit_of(named.labels[-1]) and named
        if other and (way is None or self._walks.is_nearer(said, other, way)):
            if not known_unit(unit):
                raise UnreadError
            way = other  # in weeks, where days are known: its unit is checked later
        if way is None:
            return None
        builder = PatternBuilder(self._graph)
        builder.walk(tokens[at[0]].node, way.labels, builder.target)
        builder.confidence = sureness([way])
        return builder.pattern()

    def _compares(self, tokens: Sequence[Token]) -> bool:
        """Whether words compare, or name other things than an entity."""
        words = [token.word for token in tokens]
        compare = any(word in UNREAD or base_of(word, "er") or base_of(word, "est") for word in words)
        return compare or not {"than", "average"}.isdisjoint(words) or bool(self._kind_spans(tokens))

    def _extreme(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "the highest price of all tickets", where a relation is called "price"."""
        for kind, form in EXTREMES:
            text = words_of(tokens)
            found = form.search(text)
            if found is None or ASKS_WHICH.search(text):
                continue
            rest = list(tokens)
            at = remove(rest, found)
            if any(span[0] <= at < span[1] for span in self._kind_spans(rest)) or COUNTS.search(text):
                return None
            if not re.match(r"(?:[a-z]+ ){1,3}(?:of|among|in|for|that|is)\b|(?:[a-z]+ ?){1,3}$", words_of(rest[at:])):
                return None
            try:
                return self._measured(Asked(kind, rest))
            except UnreadError:
                return None
        return None

    def _fragment(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "ports in Norway": things of a kind with a clause, and no word that asks."""
        spans = self._kind_spans(tokens)
        asks = COUNTS.search(words_of(tokens)) or re.search(rf"\b(?:{WH})\b", words_of(tokens))
        if not spans or spans[0][0] or asks or not any(token.slot or token.word[:1].isdigit() for token in tokens):
            return None
        try:
            return self._read_list([Token("which"), *tokens])
        except UnreadError:
            return None

    # --- all of a kind ---

    def _all_of_kind(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "list all ports" or "how many ports are there"."""
        spans, text = self._kind_spans(tokens), words_of(tokens)
        if len(spans) == 2 and COUNTS.search(text) and words_of(tokens[spans[0][1] : spans[1][0]]) in ("and", "or"):
            raise UnreadError  # "how many ports and ships"
        if len(spans) != 1 or any(token.slot for token in tokens):
            return None
        start, end, kind = spans[0]
        rest = [token.word for at, token in enumerate(tokens) if not start <= at < end and token.word != ","]
        if any(word not in PLAIN or word in _OF_ONE for word in rest):
            return None
        counts = COUNTS.search(text) is not None
        if not counts and not rest:
            return None
        return self._of_kind(kind, Operation("count" if counts else "list"))

    def _of_kind(self, kind: str, operation: Operation) -> Pattern:
        """Return the pattern of an operation over all things of a kind."""
        builder = PatternBuilder(self._graph, kind)
        builder.operation, builder.confidence = operation, ALL_OF_KIND
        return builder.pattern()

    def _kind_spans(self, tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
        """Return where kinds are named; see `TypeNouns.spans`."""
        return self._kinds.spans([token.word for token in tokens])

    # --- the things ---

    def _candidates(self, tokens: Sequence[Token], counted_at: int = -1) -> Iterator[tuple[Things, list[Token]]]:
        """Yield the things that a question may be about, each with the other words of the question.

        What stands right behind "how many" is counted for other things, if there are any.
        """
        clause_at = next((at for at, token in enumerate(tokens) if token.slot), len(tokens))
        spans = self._kind_spans(tokens)
        spans = [span for span in spans if span[0] != counted_at] or spans
        for start, end, kind in spans:
            first = start - (start > 0 and tokens[start - 1].slot is not None)  # "red wines", where "red" is an entity
            if first > clause_at:
                continue
            noun, before = tuple(tokens[start:end]), list(tokens[:first])
            after = [*tokens[end:], *tokens[first:start]]
            limited = any(token.slot or token.word[:1].isdigit() for token in after)
            things = self._listed(noun, kind, after) if limited else self._all(noun, kind)
            if things is not None:
                last = max((at for at, token in enumerate(after) if token.slot), default=len(after))
                yield things, [*before, *after[last + 1 :]] if limited else [*before, *after]
        if clause_at < len(tokens) and not self._kind_spans(tokens[:clause_at]):
            things = self._listed((Token("things"),), None, tokens[clause_at:])
            if things is not None:
                yield things, list(tokens[:clause_at])
        said = [token.word for token in tokens if token.word not in PLAIN]
        if (
            clause_at == len(tokens)
            and said
            and not self._kind_spans(tokens)
            and (measured := self._walks.measuring(" ".join(said)))
        ):
            yield Things((Token("it"),), None, measured[1], None), list(tokens)

    def _all(self, noun: tuple[Token, ...], kind: str) -> Things | None:
        members = kind_members(self._graph, kind)
        return None if members is None else Things(noun, kind, members, None)

    def _listed(self, noun: tuple[Token, ...], kind: str | None, clause: Sequence[Token]) -> Things | None:
        """Return the things that a clause limits, as "ports in Norway"."""
        pattern = self._read_list([Token("which"), *noun, *clause])
        operation = pattern.operation
        if operation is not None and (operation.kind != "list" or operation.by):
            return None
        members = None if kind is None else kind_members(self._graph, kind)
        return Things(noun, kind, self._walks.targets_of(pattern) if members is None else members, pattern)

    def _having(self, noun: tuple[Token, ...], kind: str, clause: Sequence[Token]) -> Things | None:
        """Return the things that have something, as "ports that have a pilot"."""
        all_of_them = self._all(noun, kind)
        telling = [token for token in clause if token.word and token.word not in PLAIN]
        limited = has_quantity(clause) or any(token.slot or token.word[:1].isdigit() for token in clause)
        if all_of_them is None or not telling or limited:
            raise UnreadError
        way, _ = self._group_way(telling, all_of_them, ())
        near = [self._walks.nearness(token.word, way.labels[-1]) for token in telling]
        if max(near) < SAME_NAME or min(near) < MAY_NAME:
            raise UnreadError
        builder = PatternBuilder(self._graph, kind)
        builder.walk(builder.target, way.labels, builder.unknown())
        builder.confidence = sureness([way])
        return replace(all_of_them, pattern=builder.pattern())

    # --- measures ---

    def _measured(self, asked: Asked) -> Pattern:
        """Return the likeliest reading of a mean, a sum and so on, or of a count by groups."""
        found = list[tuple[float, Pattern]]()
        for things, rest in self._candidates(asked.tokens, asked.at if asked.kind in COUNTED else -1):
            try:
                found.append(self._measure_of(asked, things, rest))
            except UnreadError:
                continue
        if not found:
            raise UnreadError
        return max(found, key=lambda item: item[0])[1]

    def _measure_of(self, asked: Asked, things: Things, rest: Sequence[Token]) -> tuple[float, Pattern]:
        builder = PatternBuilder(self._graph, things.kind, things.pattern)
        telling = [token for token in rest if token.word and token.word not in PLAIN and token.word != ","]
        if any(token.word in UNREAD or token.word[:1].isdigit() for token in (*rest, *asked.hints)):
            raise UnreadError
        if has_quantity(asked.hints):
            raise UnreadError  # "for each country with more than one port"
        if len(telling) > 1 and any(token.word in ("and", "or") for token in rest):
            raise UnreadError  # "the depth and the length of ports"
        ways, names = list[Way](), list[str]()
        of: Literal["value", "count"] = "value"
        if asked.kind != "count":
            way, of = self._value_way(asked, things, telling, rest)
            names.append(self._walk_on(builder, way, " ".join(token.word for token in telling)))
            ways.append(way)
        elif telling and not asked.group:
            raise UnreadError
        group, period = None, None
        if asked.group:
            hints = [*asked.hints, *(telling if asked.kind == "count" else ())]
            way, kind = self._group_way(asked.group, things, hints)
            group = self._walk_on(builder, way, words_of(asked.group), kind)
            if self._walks.classes.end_kind(way.labels) == "date":
                period = _PERIODS.get(singular_of(asked.group[-1].word))
            ways.append(way)
        builder.operation = Operation(asked.kind, by=tuple(names), of=of, group=group, period=period)
        builder.confidence = sureness(ways) * things.confidence
        return sum(way.log for way in ways) + float(np.log(max(things.confidence, 1e-6))), builder.pattern()

    def _walk_on(self, builder: PatternBuilder, way: Way, name: str, kind: str | None = None) -> str:
        """Add a walk from the target to an unknown of a name; return its name, or another one that is free."""
        end = builder.unknown(kind, name)
        builder.walk(builder.target, way.labels, end)
        return end.name

    def _value_way(
        self, asked: Asked, things: Things, words: Sequence[Token], rest: Sequence[Token]
    ) -> tuple[Way, Literal["value", "count"]]:
        """Return the walk from things to the values that telling words measure, or to the things that they count."""
        said = " ".join(token.word for token in words)
        if not said:  # "how much money do they have"
            said = " ".join(token.word for token in rest if measured_by([token.word]))
        if not said:
            raise UnreadError
        kinds = ("number", "date") if asked.kind in ("range", "min", "max") else ("number",)
        ways = self._from(things, ["what", "is", "the", *said.split(), "of"])
        way = self._walks.best([one for one in ways if len(one.labels) == 1], -1, kinds, said)
        near = 0.0 if way is None else self._walks.nearness(said, way.labels[-1], telling=True)
        counts = self._kind_spans(words) if asked.at >= 0 or asked.kind in ("mean", "sum") else []
        is_meant = way and (near >= SAME_NAME or (near >= MAY_NAME and way.confidence * way.share >= LIKELY))
        if way and is_meant and not (counts and asked.at >= 0 and near < CALLED):
            return way, "value"
        for start, end, _ in counts:
            return self._group_way(words[start:end], things, [*words[:start], *words[end:]])[0], "count"
        raise UnreadError

    def _group_way(self, noun: Sequence[Token], things: Things, hints: Sequence[Token]) -> tuple[Way, str | None]:
        """Return the walk from things to what a noun names, and its kind."""
        words = [token.word for token in noun if token.word]
        kind = self._kinds.of_noun(words)
        members = None if kind is None else kind_members(self._graph, kind)
        said = " ".join([*words, *(token.word for token in hints if token.word)])
        ways = self._from(things, ["what", "is", "the", *words, "of"], [token.word for token in hints if token.word])
        found = list[Way]()
        for way in ways:
            if not self._may_group(things, words, members, way.labels):
                continue
            near = max(self._walks.nearness(said, label) for label in way.labels)
            found.append(replace(way, log=way.log + NAME_WEIGHT * near))
        steps = [way for way in found if len(way.labels) == 1]
        if members is None and any(self._walks.nearness(said, way.labels[0]) >= SAME_NAME for way in steps):
            found = steps
        if not found:
            raise UnreadError
        best = likeliest(found)
        is_said = self._walks.nearness(said, best.labels[-1]) >= SAME_NAME
        if members is None and not is_said and best.confidence * best.share < LIKELY:
            raise UnreadError
        return best, kind

    def _may_group(self, things: Things, words: Sequence[str], members: Array | None, labels: Sequence[int]) -> bool:
        """Whether a walk leads to things of a kind, or to what words may name: by several steps only if called so."""
        if members is not None:
            return bool(np.isin(self._walks.reached(things.members, labels), members).mean() >= 0.5)
        is_called = self._walks.nearness(" ".join(words), labels[-1]) >= CALLED
        return (len(labels) == 1 or is_called) and not self._is_other_value(words, labels)

    def _is_other_value(self, words: Sequence[str], labels: Sequence[int]) -> bool:
        """Whether a walk leads to numbers or dates, and words name something else, as "each journal" does."""
        kind = self._walks.classes.end_kind(labels)
        if self._walks.nearness(" ".join(words), labels[-1]) >= SAME_NAME:
            return False
        is_time = singular_of(words[-1]) in {*_PERIODS, "date"}
        return is_time != (kind == "date") if is_time or kind else False

    def _from(self, things: Things, opening: Sequence[str], closing: Sequence[str] = ()) -> list[Way]:
        """Return the walks from things that words before and after their noun ask for."""
        text = [*map(Token, opening), stand_in(words_of(things.noun)), *map(Token, closing)]
        if not len(things.members):
            return []
        return self._walks.from_entity(text, len(opening), max_steps=2, starts=spread(things.members, MEMBERS))

    # --- shares ---

    def _parts_of_share(self, asked: Asked) -> tuple[tuple[int, int, str], list[Token], list[Token]]:
        """Return the noun of the things of a share, and the clauses of all of them and of the part of them."""
        tokens = [*asked.tokens]
        spans = self._kind_spans(tokens)
        if not spans:
            raise UnreadError
        alls = [span for span in spans if ALL_OF_THEM.search(words_of(tokens[: span[0]]))]
        span = alls[0] if alls else spans[0]
        if any(one[2] == span[2] for one in spans if alls and one is not span):
            raise UnreadError  # "the ratio of ports that lie in it to all ports"
        before, after = tokens[: span[0]], tokens[span[1] :]
        at = asked.at - span[1]
        if at > 0:
            return span, trimmed([*before, *after[:at]]), trimmed(after[at:])
        if before and before[-1].slot and any(token.slot or token.telling for token in after):
            return span, before[-1:], trimmed([*before[:-1], *after])  # "red wines that won a prize"
        return (span, *split_clause(trimmed([*before, *after])))

    def _share(self, asked: Asked) -> Pattern:
        """Return the pattern of a share: a list of things, as a part of all of their kind, or of some of them."""
        (start, end, kind), of_all, of_part = self._parts_of_share(asked)
        noun, clause = tuple(asked.tokens[start:end]), of_part or of_all
        first = clause[0].word if clause else ""
        if first in ("each", "every", "by", "to") or any(token.word in ("per", "total") for token in asked.tokens):
            raise UnreadError  # of a sum, for each of several groups, or of one kind to another
        others = [span for span in self._kind_spans(asked.tokens) if span[2] != kind]
        said = [token for token in (*of_all, *of_part) if token.slot or token.word not in {*PLAIN, ","}]
        if len(others) == 1 and len(said) == others[0][1] - others[0][0] and self._overlap(kind, others[0][2]):
            return self._of_kind(others[0][2], Operation("share", whole=kind))
        part = self._limited(noun, kind, clause)
        builder, operation = PatternBuilder(self._graph, kind, part.pattern), Operation("share", whole=kind)
        builder.confidence = part.confidence
        if of_part and any(token.slot or token.word not in {*PLAIN, ","} for token in of_all):
            whole = self._limited(noun, kind, of_all)
            builder = PatternBuilder(self._graph, kind, whole.pattern)
            operation = Operation("share", whole=len(builder.triples))
            if builder.absent or not part.pattern or not builder.triples:
                raise UnreadError
            builder.add(part.pattern)
            builder.confidence = min(whole.confidence, part.confidence)
        if asked.is_known:
            conditions = {condition.unknown for condition in builder.conditions}
            if len(conditions) != 1:
                raise UnreadError
            operation = Operation("share", by=(*conditions,))
        builder.operation = operation
        return builder.pattern()

    def _overlap(self, *kinds: str) -> bool:
        """Whether some things are of both kinds."""
        one, other = (kind_members(self._graph, kind) for kind in kinds)
        return one is not None and other is not None and bool(np.isin(one, other).any())

    def _limited(self, noun: tuple[Token, ...], kind: str, clause: Sequence[Token]) -> Things:
        """Return the things that a clause limits, or that have what it names."""
        try:
            things = self._listed(noun, kind, clause)
        except UnreadError:
            things = self._having(noun, kind, clause)
        if things is None or things.pattern is None or not len(self._walks.targets_of(things.pattern)):
            raise UnreadError  # of nothing, there is rather another relation that is meant
        return things


def trimmed(tokens: Sequence[Token]) -> list[Token]:
    """Return a clause without the words that join it to the rest of a question."""
    kept = list(tokens)
    while kept and kept[0].word in (",", "of", "the", "all", "that", "out", "every", "each"):
        kept.pop(0)
    while kept and kept[-1].word in (",", "of", "the", "all"):
        kept.pop()
    return kept


def split_clause(clause: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the clause of all things and the clause of a part of them, as of "in Norway that are older than 10 years".

    Raises:
        UnreadError: If the clause limits the things twice and does not say which of both is for all of them.
    """
    limits = [at for at, token in enumerate(clause) if token.slot or token.word[:1].isdigit()]
    limits = [at for at in limits if not (at and joined(clause, at - 1, ("and", "or")))]
    if len(limits) < 2 or any(token.word == "between" for token in clause):
        return [], clause
    at = next((at for at in range(limits[0] + 1, limits[-1]) if _begins_clause(clause, at)), 0)
    if not at:
        raise UnreadError
    return clause[:at], clause[at:]


def _begins_clause(clause: Sequence[Token], at: int) -> bool:
    word, before = clause[at].word, clause[at - 1]
    return word in ("that", "which", "who", *AUXILIARY) or bool(before.slot and verb_of(word))
