"""Questions for a mean, a sum, a range, a share or a table by groups, and for all things of a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

import numpy as np

from kg_retrievers.graph import Pattern
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Operation, OperationKind, Period
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.question_forms.classes import CALLED, MEMBERS, singular
from kg_retrievers.questions.question_forms.composing import PatternBuilder
from kg_retrievers.questions.question_forms.forms import (
    AUXILIARY,
    NUMBERS,
    ORDINAL,
    ORDINALS,
    WH,
    Token,
    is_verb,
    joined,
    words_of,
)
from kg_retrievers.questions.question_forms.grammar import has_quantity
from kg_retrievers.questions.question_forms.values import (
    MAY_NAME,
    NAME_WEIGHT,
    SAME_NAME,
    UnreadError,
    WalkFinder,
    Way,
    likeliest,
    sureness,
)
from kg_retrievers.questions.reading import TypeNouns
from kg_retrievers.questions.self_questions.english import verb_of
from kg_retrievers.questions.zero_shot.steps import measured_by

#: Reads a question for a list, given by its words; the pattern has a target.
ReadList = Callable[[Sequence[Token]], Pattern]

_MEANS = re.compile(
    r"\b(?:(?:on|in|as) (?:the |an? )?average|in the mean|typically|(?:the |an? )?(?:average|(?<!i )mean|avg|typical)\b(?: of)?)"
)
_SUMS = re.compile(
    r"\b(?:in total|in sum|all together|add(?:s|ed|ing)? (?:it |them )?(?:all )?up|sum(?:s|med)? (?:it |them )?(?:all )?up"
    r"|the sum of|sum of|(?:the )?grand total"
    r"|(?:the )?(?:total|summed|cumulative|combined|aggregate)(?: (?:amount|sum|value))?(?: of)?)\b"
)
_MAYBE_SUMS = re.compile(r"\b(?:together|altogether|overall|in all)\b")
_MUCH = r"(?:what|which|how (?:many|much|few|little|long|large|big|high|old|far|wide)|when)"
_LEAST_WORDS = r"(?:lowest|smallest|minimum|minimal|min|shortest|least|fewest|earliest|cheapest|oldest|lightest|first)"
_MOST_WORDS = r"(?:highest|greatest|largest|biggest|maximum|maximal|max|longest|most|latest|dearest|newest|heaviest|last)"
_RANGES = re.compile(
    rf"\b(?:in (?:which|what) range|from {_MUCH}\b(?: [a-z]+)?? (?:up )?(?:to|until|till) {_MUCH}\b"
    rf"|between (?:which|what)(?: two)?(?: values)?|(?:the )?(?:range|spread|span) of|ranges? (?:from|between)"
    rf"|(?:from )?(?:the )?(?:{_LEAST_WORDS}(?: and| to|,)(?: the)? {_MOST_WORDS}"
    rf"|{_MOST_WORDS}(?: and| to|,)(?: the)? {_LEAST_WORDS})(?: (?:ones?|values?))?)(?= |$)"
)
_GREATEST = re.compile(
    r"\b(?:at most|up to|as many as)(?= (?:how|$))|\bat most$"
    r"|(?<!at )\b(?:the )?(?:highest|greatest|largest|biggest|maximum|maximal|max|longest|top|most)\b"
)
_LEAST = re.compile(
    r"\bat least(?= (?:how|$))|\bat least$"
    r"|(?<!at )\b(?:the )?(?:lowest|smallest|minimum|minimal|min|shortest|least|fewest)\b"
)
_SHARES = re.compile(
    r"\b(?:(?:what|which|how (?:large|big|high|great|much|many)|give me|an?|the|is|are|as|in|expressed|calculate) )*"
    r"(?:(?:(?<!average )(?<!mean )percentage(?: wise)?|percent|proportion|fraction|ratio|portion)\b"
    r"|(?:share|part)(?= (?:of|is|are|do|does|did|has|have)\b|$| ,))(?: of)?|(?<!\d )%(?: of)?(?= |$)"
)
_COUNTS = re.compile(
    r"\bhow (?:many|often)\b|\b(?:the |what )?(?:total |overall )?(?:number|count|tally)s?(?: of\b|$)"
    r"|\bcount(?:ed)?(?: up| them)?\b|\bbreak(?:down| down)\b"
)
_GROUPS = re.compile(
    r"(?:, )?\b(?:per|down by|(?:for|in|of|by|from|to|at|on|with|across|within|among) (?:each|every)(?: single| one)?"
    r"|(?:broken down|grouped|split|divided|separated|sorted|listed|ordered) (?:up )?by|according to)"
    r"(?: of the)? (?=[a-z])|\b(?:each|every)(?: single| of the| one of the)? (?=[a-z])"
)
_BY = re.compile(r"\bby (?:the |their |its |each )?(?=[a-z])")

#: "port by port", "port wise".
_TWICE = re.compile(r"(?:, )?\b([a-z]+) (?:by|for|after) \1\b")
_WISE = re.compile(r"\b([a-z]+)(?:-| )wise\b")
_IN_WHICH = re.compile(r"(?<=[a-z]) (?:in|of|at|for|by|from) (?:which|what) (?=[a-z])")
_SPLIT = re.compile(r"\b(?:break|broken|split|divided?|grouped?|separated?)\b")
_WHICH_HOW_MANY = re.compile(r"(?:which|what) (?!is|are|was|were).*\bhow many\b")
_KNOWN_VALUE = re.compile(
    r"\b(?:whose (?P<a>(?:[a-z]+ ){1,3})(?:is|are) known|with an? (?P<b>(?:[a-z]+ ){1,2})figure"
    r"|with an? known (?P<c>[a-z]+)(?= |$))"
)

#: Asks for things rather than for a number.
_ASKS_WHICH = re.compile(r"\b(?:which|who|whom|whose|where)\b|\bwhat (?!is|are|was|were|s)")
_ASKS_THINGS = re.compile(
    r"\b(?:which|who|whom|whose|where|list|name|show|give|top|rank|ranking|order|sort)\b|\bwhat (?!is|are|was|were|s)"
)

#: Left of a question, these ask for something that a measure does not give.
_UNREAD = frozenset([*ORDINALS, *NUMBERS[2:], "often", "only", "least", "most", "same", "where", "when", "why"])

#: Before the noun for all of which something is a share.
_ALL = re.compile(r"\b(?:all|every|each|total|whole)(?: of)?(?: the)?$")
_HOW_MANY = re.compile(r"\bhow (?:many|much)(?: of)?\b")

#: What may be computed from how many of something each thing has.
COUNTED = frozenset(["mean", "sum", "max", "min", "range"])

#: Signs that stand for a comma.
_PAUSES = frozenset([":", ";", "-", "–", "—", "."])

_Words = tuple[OperationKind, re.Pattern[str]]
_AGGREGATES: tuple[_Words, ...] = (("mean", _MEANS), ("range", _RANGES), ("sum", _SUMS), ("sum", _MAYBE_SUMS))
_EXTREMES: tuple[_Words, ...] = (("max", _GREATEST), ("min", _LEAST))

#: Words around these that say nothing.
_PLAIN_WORDS = """
a an the this that these those out it its they them their there here of on in to for with by and as at i i'm i'd me
my we us you your all any each every some what which who how many much is are was were be do does did has have had
can could will would please just kindly so give show tell list name names find need want like know get see looking
calculate compute work up add together altogether total make made split all over got break down exist exists existing graph data database dataset knowledge
base contain contains knows hold holds different distinct one ones return enumerate collection facts facts' whole
entire number count complete overall lie lies figure figures value values from range ranges spent money what's
amount called known
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())

#: From which confidence a walk is meant whose relation has none of the words.
LIKELY = 0.5

#: Nouns for the spans of time by which dates are put together.
_PERIODS: dict[str, Period] = {"day": "day", "month": "month", "year": "year", "decade": "decade", "century": "century"}

#: The most words of the noun of a group.
MOST_WORDS = 3

#: How sure a list or a count of all things of a kind is.
ALL_OF_KIND = 0.95


@dataclass
class Asked:
    """What a question asks of things.

    Attributes:
        kind: The operation.
        tokens: The words that are left.
        group: The noun by which there is a result for each, and the words around it.
        hints: What is said of the group, such as "that operates them".
        is_known: What of the things must be known, as in "whose height is known".
        is_strict: Whether the words for the operation mean nothing else.
        at: Where among the tokens the words for the share, or "how many", stood; -1 for nowhere.
        is_split: Whether words such as "split by" ask for a number for each group.
    """

    kind: OperationKind
    tokens: list[Token]
    group: tuple[Token, ...] = ()
    hints: tuple[Token, ...] = ()
    is_known: tuple[str, ...] = ()
    is_strict: bool = True
    at: int = -1
    is_split: bool = False


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
        """How likely the things are those that are meant."""
        return 1.0 if self.pattern is None else self.pattern.confidence or 0.0


class Measures:
    """Reads such questions: the words of the measure are taken away, and the rest asks for a list of things.

    Args:
        walks: Finds walks to values and groups.
        kinds: The nouns for kinds.
        read_list: Reads the question for the things.
    """

    def __init__(self, walks: WalkFinder, kinds: TypeNouns, read_list: ReadList) -> None:
        """Keep them."""
        self._walks, self._kinds, self._read_list, self._graph = walks, kinds, read_list, walks.graph

    def read(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question; None if it asks for nothing of this.

        Raises:
            UnreadError: If a part of it is not found.
        """
        words = [Token(",") if token.text in _PAUSES else token for token in tokens]
        words = [token for token in words if token.slot or re.match(r"[\w,%]", token.text)]
        asked = take_measure(words)
        if asked is None:
            return self._all_of_kind(words) or self._extreme(words) or self._fragment(words)
        if asked.kind == "share":
            return self._share(asked)
        if asked.kind == "count" and not asked.is_strict:
            return self._fragment_by_groups(asked)
        if asked.kind in COUNTED and asked.group and asked.at >= 0:
            with suppress(UnreadError):  # "how many seats per hall in total": if "seats" is a number
                return self._measured(asked)
            if self._kinds.named([token.word for token in asked.group]) is None:
                raise UnreadError
            return self._measured(replace(asked, tokens=[*asked.tokens, *asked.group, *asked.hints], group=(), hints=()))
        counted = _COUNTS.search(words_of(words)) is not None
        if asked.kind == "sum" and counted and (all_of_kind := self._all_of_kind(words)):
            return all_of_kind
        try:
            return self._measured(asked)
        except UnreadError:
            if asked.kind == "sum" and (counted or not asked.is_strict):
                return None  # "the total number of films made by her", "which they run together"
            raise

    def _extreme(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "the highest price of all tickets", where a relation is called "price"."""
        for kind, form in _EXTREMES:
            text = words_of(tokens)
            found = form.search(text)
            if found is None or _ASKS_WHICH.search(text):
                continue
            rest = list(tokens)
            at = _remove(rest, found)
            if at and re.fullmatch(ORDINAL, rest[at - 1].word):
                return None
            if any(span[0] <= at < span[1] for span in self._kind_spans(rest)) or _COUNTS.search(text):
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
        asks = _COUNTS.search(words_of(tokens)) or re.search(rf"\b(?:{WH})\b", words_of(tokens))
        if not spans or spans[0][0] or asks or not any(token.slot or token.word[:1].isdigit() for token in tokens):
            return None
        try:
            return self._read_list([Token("which"), *tokens])
        except UnreadError:
            return None

    def _fragment_by_groups(self, asked: Asked) -> Pattern:
        """Return the pattern of "revenue by city", a sum, or "ports by city", a count."""
        spans = self._kind_spans(asked.tokens)
        in_nouns = {at for start, end, _ in spans for at in range(start, end)}
        said = [token for at, token in enumerate(asked.tokens) if at not in in_nouns and token.word not in _PLAIN]
        return self._measured(replace(asked, kind="sum") if any(token.telling for token in said) else asked)

    # --- all of a kind ---

    def _all_of_kind(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of "list all ports" or "how many ports are there"."""
        spans = self._kind_spans(tokens)
        if len(spans) != 1 or any(token.slot for token in tokens):
            return None
        (start, end, kind), text = spans[0], words_of(tokens)
        rest = [token.word for at, token in enumerate(tokens) if not start <= at < end and token.word != ","]
        if any(word not in _PLAIN for word in rest):
            return None
        counts = _COUNTS.search(text) is not None
        if not counts and not rest:
            return None
        return self._of_kind(kind, Operation("count" if counts else "list"))

    def _of_kind(self, kind: str, operation: Operation) -> Pattern:
        """Return the pattern of an operation over all things of a kind."""
        builder = PatternBuilder(self._graph, kind)
        builder.operation, builder.confidence = operation, ALL_OF_KIND
        return builder.pattern()

    def _kind_spans(self, tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
        """Return where kinds are named, the longest first of those that overlap, in order."""
        found, at = list[tuple[int, int, str]](), 0
        while at < len(tokens):
            for size in (3, 2, 1):
                span = tokens[at : at + size]
                words = [token.word for token in span]
                if len(span) == size and all(words) and (kind := self._kinds.named(words)):
                    found.append((at, at + size, kind))
                    at += size - 1
                    break
            at += 1
        return found

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
        said = [token.word for token in tokens if token.word not in _PLAIN]
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
        telling = [token for token in clause if token.word and token.word not in _PLAIN]
        limited = has_quantity(clause) or any(token.slot or token.word[:1].isdigit() for token in clause)
        if all_of_them is None or not telling or limited:
            raise UnreadError
        way, _ = self._group_way(telling, all_of_them, ())
        if self._walks.nearness(" ".join(token.word for token in telling), way.labels[-1]) < SAME_NAME:
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
        telling = [token for token in rest if token.word and token.word not in _PLAIN and token.word != ","]
        if any(token.word in _UNREAD for token in telling):
            raise UnreadError
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
                period = _PERIODS.get(singular(asked.group[-1].word))
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
        if way and not (counts and asked.at >= 0 and near < CALLED):
            if near >= SAME_NAME or (near >= MAY_NAME and way.confidence * way.share >= LIKELY):
                return way, "value"
        for start, end, _ in counts:
            return self._group_way(words[start:end], things, [*words[:start], *words[end:]])[0], "count"
        if way and near >= SAME_NAME:
            return way, "value"
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
            if members is not None:
                ends = self._walks.reached(things.members, way.labels)
                if np.isin(ends, members).mean() < 0.5:
                    continue
            elif len(way.labels) > 1 and self._walks.nearness(" ".join(words), way.labels[-1]) < CALLED:
                continue
            elif self._is_other_value(words, way.labels):
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

    def _is_other_value(self, words: Sequence[str], labels: Sequence[int]) -> bool:
        """Whether a walk leads to numbers or dates, and words name something else, as "each journal" does."""
        kind = self._walks.classes.end_kind(labels)
        if self._walks.nearness(" ".join(words), labels[-1]) >= SAME_NAME:
            return False
        is_time = singular(words[-1]) in {*_PERIODS, "date"}
        return is_time != (kind == "date") if is_time or kind else False

    def _from(self, things: Things, opening: Sequence[str], closing: Sequence[str] = ()) -> list[Way]:
        """Return the walks from things that words before and after their noun ask for."""
        name = words_of(things.noun)
        slot = Token(name, QuestionEntity(0, 1, name, (), 0, True))
        text = [*map(Token, opening), slot, *map(Token, closing)]
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
        alls = [span for span in spans if _ALL.search(words_of(tokens[: span[0]]))]
        again = next((one for one in spans if alls and one[2] == alls[-1][2] and one is not alls[-1]), None)
        if again:  # "the ratio of ports that lie in it to all ports"
            start, end, _ = alls[-1]
            while start and tokens[start - 1].word in _PLAIN | {",", "against", "compared", "relative", "versus"}:
                start -= 1
            if start < again[1]:
                raise UnreadError
            return again, [], [*tokens[: again[0]], *tokens[again[1] : start], *tokens[end:]]
        span = alls[0] if alls else spans[0]
        before, after = tokens[: span[0]], tokens[span[1] :]
        at = asked.at - span[1]
        if at > 0:
            return span, _trimmed([*before, *after[:at]]), _trimmed(after[at:])
        if before and before[-1].slot and any(token.slot or token.telling for token in after):
            return span, before[-1:], _trimmed([*before[:-1], *after])  # "red wines that won a prize"
        return (span, *_split(_trimmed([*before, *after])))

    def _share(self, asked: Asked) -> Pattern:
        """Return the pattern of a share: a list of things, as a part of all of their kind, or of some of them."""
        (start, end, kind), of_all, of_part = self._parts_of_share(asked)
        noun, clause = tuple(asked.tokens[start:end]), of_part or of_all
        others = [span for span in self._kind_spans(asked.tokens) if span[2] != kind]
        said = [token for token in (*of_all, *of_part) if token.slot or token.word not in {*_PLAIN, ","}]
        if len(others) == 1 and len(said) == others[0][1] - others[0][0] and self._overlap(kind, others[0][2]):
            return self._of_kind(others[0][2], Operation("share", whole=kind))
        part = self._limited(noun, kind, clause)
        builder, operation = PatternBuilder(self._graph, kind, part.pattern), Operation("share", whole=kind)
        builder.confidence = part.confidence
        if of_part and any(token.slot or token.word not in {*_PLAIN, ","} for token in of_all):
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


def take_measure(tokens: Sequence[Token]) -> Asked | None:
    """Take the words for a mean, sum, range, share or group from a question; None if it has none of these.

    Example:
        >>> asked = take_measure([Token(word) for word in "the average height of towers per city".split()])
        >>> asked.kind, words_of(asked.tokens), words_of(asked.group)
        ('mean', 'height of towers', 'city')
    """
    asked = Asked("list", list(tokens))
    if found := _KNOWN_VALUE.search(words_of(asked.tokens)):
        asked.is_known = tuple((found["a"] or found["b"] or found["c"]).split())
        _remove(asked.tokens, found)
    while found := _SHARES.search(words_of(asked.tokens)):
        asked.at = _remove(asked.tokens, found)
        asked.kind = "share"
    if asked.kind == "share":
        if found := _HOW_MANY.search(words_of(asked.tokens)):
            before = _remove(asked.tokens, found) <= asked.at
            asked.at -= before * len(found[0].split())
        return asked
    counted = _COUNTS.search(words_of(asked.tokens)) is not None
    _take_group(asked, counted)
    for kind, form in _AGGREGATES:
        if _taken(asked, form) is not None:
            while form is _RANGES and _taken(asked, form) is not None:
                pass  # "the range, from the smallest to the largest"
            asked.is_strict = form is not _MAYBE_SUMS
            at = _taken(asked, _COUNTS)
            return replace(asked, kind=kind, at=-1 if at is None else at)
    is_number = counted and _asks_number(words_of(tokens))
    for kind, form in _EXTREMES if asked.group or is_number else ():
        if _taken(asked, form) is not None:
            at = _taken(asked, _COUNTS)
            return replace(asked, kind=kind, at=-1 if at is None else at)
    if asked.group and _taken(asked, _COUNTS) is not None:
        return replace(asked, kind="count")
    if asked.group and (asked.is_split or not re.search(rf"\b(?:{WH}|list|show|give|name)\b", words_of(tokens))):
        return replace(asked, kind="count", is_strict=False)  # "ports per country"
    return None


#: Words of a measure that no plain question has.
_MEASURING = re.compile(
    r"\b(?:percent(?:age)?|proportion|on average|average|in total|altogether|how often|at (?:most|least)$)|%"
)
_SHORT_MEASURES = frozenset(["max", "min", "mean", "avg", "sum", "total"])


def is_measure(text: str) -> bool:
    """Tell whether the text for an entity is rather the word for a measure, such as "max"."""
    return text in _SHORT_MEASURES


def asks_measure(tokens: Sequence[Token], words_of_relations: Collection[str]) -> bool:
    """Tell whether a question asks for a measure, by words that name no relation."""
    found = _MEASURING.finditer(words_of(tokens).rstrip(" ?.!"))
    return any(set(one[0].split()).isdisjoint(words_of_relations) for one in found)


def _taken(asked: Asked, form: re.Pattern[str]) -> int | None:
    """Take words from a question, or from what is said of its group; return where they stood, or None."""
    if found := form.search(words_of(asked.tokens)):
        return _remove(asked.tokens, found)
    hints = list(asked.hints)
    if found := form.search(words_of(hints)):
        _remove(hints, found)
        asked.hints = tuple(hints)
        return -1
    return None


def _asks_number(text: str) -> bool:
    """Whether the first that a question asks for is the greatest or least number of something, rather than a thing."""
    found = [one.start() for form in (_GREATEST, _LEAST, _COUNTS) for one in form.finditer(text)]
    before = text[: min(found, default=0)].split()
    return not _ASKS_THINGS.search(text) and all(word in _PLAIN or word == "," for word in before)


def _trimmed(tokens: Sequence[Token]) -> list[Token]:
    """Return a clause without what joins it to the rest of a question."""
    kept = list(tokens)
    while kept and kept[0].word in (",", "of", "the", "all", "that", "out", "every", "each"):
        kept.pop(0)
    while kept and kept[-1].word in (",", "of", "the", "all"):
        kept.pop()
    return kept


def _split(clause: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the clause of all things and that of a part of them, as of "in Norway that are older than 10 years".

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


def _noun(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the noun with which some words begin."""
    return tuple(takewhile(lambda token: token.telling and not is_verb(token.word), tokens[:MOST_WORDS]))


def _groups(text: str, found: re.Match[str]) -> bool:
    """Whether "by" stands before what things are grouped by, rather than before who did something."""
    if re.search(r"\b(?:top|most|least|fewest|first|last|[a-z]{3,}est)\b", text) or re.match(
        r"(?:number|count|total|amount|how)\b", text[found.end() :]
    ):
        return False  # "top 3 by height", "by number of members"
    before = text[: found.start()].split()
    verb = verb_of(before[-1]) if before else None
    return verb is None or before[-1] not in (verb.past, verb.participle)


def _remove(tokens: list[Token], found: re.Match[str]) -> int:
    """Remove the words that were found in the text of some tokens; return where they stood."""
    text = found.string
    first = text[: found.end() - len(found[0].lstrip())].count(" ")
    del tokens[first : first + len(found[0].split())]
    return first


def _take_group(asked: Asked, counted: bool) -> None:
    """Take the noun after "per", "for each" or "by"."""
    text = words_of(asked.tokens)
    measured = counted or _MEANS.search(text) or _SUMS.search(text)
    if (found := _WHICH_HOW_MANY.match(text)) and (noun := _noun(asked.tokens[1:])):  # "which ship has how many masts"
        asked.group, asked.tokens = noun, asked.tokens[1 + len(noun) :]
        return
    for form in (_TWICE, _WISE) if measured else ():
        if found := form.search(text):  # "port by port", "port wise"
            first = text[: found.start(1)].count(" ")
            asked.group = (Token(found[1]),)
            del asked.tokens[first : first + len(found[0].removeprefix(", ").split())]
            return
    found = _GROUPS.search(text) or (_IN_WHICH.search(text) if counted else None)
    asked.is_split = found is not None and _SPLIT.search(text) is not None
    if found is None and (measured or not re.search(rf"\b(?:{WH}|list|show|give)\b", text)):
        found = next((one for one in _BY.finditer(text) if _groups(text, one)), None)
    if found is None and (found := re.match(r"by (?=[a-z])", text)) is None:
        return
    at = _remove(asked.tokens, found)
    noun = _noun(asked.tokens[at:])
    if not noun:
        return
    asked.group = noun
    rest = asked.tokens[at + len(noun) :]
    is_first = all(token.word in _PLAIN for token in asked.tokens[:at])
    is_front = is_first or found[0].lstrip(", ").startswith("for")
    if is_front and "," in (words := [token.word for token in rest]):  # "for each city, how many ports"
        end = words.index(",")
        asked.hints, asked.tokens = tuple(rest[:end]), [*asked.tokens[:at], *rest[end + 1 :]]
    elif is_first:
        asked.tokens = [*asked.tokens[:at], *rest]
    else:
        asked.hints, asked.tokens = tuple(rest), asked.tokens[:at]
