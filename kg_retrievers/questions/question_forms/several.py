"""Questions of several parts, as "who founded it, and when?", and whether two things have the same of something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kg_retrievers.graph import Pattern, local_name, readable
from kg_retrievers.graph.adjacency import relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Operation
from kg_retrievers.questions.question_forms.forms import AUXILIARY, PRONOUNS, Token, joined, words_of
from kg_retrievers.questions.question_forms.reading import PatternBuilder
from kg_retrievers.questions.question_forms.values import (
    NAME_WEIGHT,
    SAME_NAME,
    UnreadError,
    WalkFinder,
    Way,
    likeliest,
    stand_in,
    sureness,
)

_WH = r"(?:who|whom|whose|what|which|when|where|how)"
_PREPOSITION = r"(?:(?:in|on|at|for|from|to|by|with|of|under|into|since) )?"

#: The beginning of a further question.
_FURTHER = re.compile(
    rf"(?:[,;?] )?(?:and|also|plus) (?:also )?(?={_PREPOSITION}{_WH}\b)|[,;?] (?={_PREPOSITION}{_WH}\b)"
)

#: Several things that are asked of one entity.
_NOUNS = r"(?:the |its |a )?((?:[a-z][\w'-]* ){1,4}?)"
_OF_ONE = re.compile(
    rf"(?:(?:give|tell|show) me |what (?:is|are|was|were) |list |name )?{_NOUNS}"
    rf"(?:, {_NOUNS})?(?:, )?and {_NOUNS}(?:of|for) _"
)
_ITS = re.compile(
    rf"(?:(?:give|tell|show) me |what (?:is|are|was|were) |list |name )?{_NOUNS}"
    rf"(?:of|for) _ and (?:its|his|her|their) (.+)"
)

#: Asks how many of the things named before there are.
_COUNTS_ALL = re.compile(r"(?:how many|what number)(?: of (?:each|them|these|those))?(?: (?:are|is|were) .*)?")
_LISTED = re.compile(r"_ , ((?:(?:the |its )?[a-z][\w'-]*(?: [a-z][\w'-]*){0,2}(?: , and | , | and |$)){2,})")
_ASKS_PERSON = re.compile(r"\b(?:who|whom)\b")
_ASKS_THING = re.compile(rf"\b(?:which|what) (?!{'|'.join(sorted(AUXILIARY))}\b)[a-z]")
_PERSONAL = frozenset(["he", "him", "his", "she", "her"])
_PLURAL = frozenset(["they", "them", "their"])

#: Words beside a question word that ask for what the part before asks for, as in "and in what year?".
_BARE = frozenset(["year", "date", "day", "month", "century", "place", "time"])

#: Stands for the answers to the first part.
_ANSWER = stand_in("it")

#: The most parts of a question.
MOST_PARTS = 4


@dataclass(frozen=True)
class Part:
    """A part of a question.

    Attributes:
        tokens: Its words, with an entity or with `at`, where what it is about stands.
        at: The position of what it is about.
        of_answer: Whether it is about the answers to the first part.
    """

    tokens: tuple[Token, ...]
    at: int
    of_answer: bool = False


class Several:
    """Reads such questions: all parts, or none.

    Args:
        walks: Finds walks.
    """

    def __init__(self, walks: WalkFinder) -> None:
        """Keep it."""
        self._walks, self._kinds, self._graph = walks, walks.kinds, walks.graph

    def read(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of a question, or None if it has one part only.

        Raises:
            UnreadError: If a part is not understood; it holds the words of the part.
        """
        if any(token.text == "%" or token.word.startswith("percent") for token in tokens):
            return None
        words = [Token(",") if token.text == ":" else token for token in tokens]
        words = [token for token in words if token.slot or re.match(r"[\w,;?]", token.text)]
        while words and words[-1].text in ("?", ",", ";"):
            words.pop()
        if (same := self._same(words)) is not None:
            return same
        if not any(token.slot for token in words) and (more := _more_of_answer(words)):
            raise UnreadError(more)
        parts = parts_of(words)
        return None if len(parts) < 2 else self._table(parts)

    def _table(self, parts: Sequence[Part]) -> Pattern:
        """Return what all parts ask for together."""
        first = parts[0]
        builder, names = PatternBuilder(self._graph), list[str]()
        answers, answer = np.empty(0, np.int64), builder.target
        if len(parts) > MOST_PARTS:
            raise UnreadError(parts[MOST_PARTS].tokens)
        for part in parts:
            named = part.tokens[part.at]
            starts = answers if part.of_answer else self._walks.ids_of(named)
            way = self._way(part, starts)
            builder.confidence *= way.confidence
            end = builder.unknown(None, readable(local_name(self._graph.relations[relation_of(way.labels[-1])])))
            names.append(end.name)
            builder.walk(answer if part.of_answer else named.node, way.labels, end)
            if part is first:
                answers, answer = self._walks.reached(starts, way.labels), end
        builder.target, builder.operation = answer, Operation("table", by=tuple(names))
        return builder.pattern()

    def _way(self, part: Part, starts: Array) -> Way:
        """Return the walk that a part asks for."""
        ways = self._walks.from_entity(part.tokens, part.at, starts=starts) if len(starts) else []
        if not ways:
            raise UnreadError(part.tokens)
        best, text = ways[0], words_of(part.tokens)
        if best.confidence < SURE or (" how many " in f" {text} " and not self._walks.classes.end_kind(best.labels)):
            raise UnreadError(part.tokens)
        return best

    def _same(self, tokens: Sequence[Token]) -> Pattern | None:
        """Return the pattern of whether two entities have the same of something."""
        words = [token.word for token in tokens]
        at = next((at for at, token in enumerate(tokens) if token.slot), -1)
        other = joined(tokens, at + 1, ("and",)) if at >= 0 else 0
        if "same" in words and words[-2:] == ["as", ""]:  # "is it of the same kind as the other?"
            other = len(tokens) - 1
        if not other or "same" not in words or words[0] not in AUXILIARY or sum(bool(t.slot) for t in tokens) != 2:
            return None
        same = words.index("same")
        noun = [token for token in tokens[same + 1 : same + 4] if token.telling]
        beside = [*tokens[at + 1 : other], *tokens[other + 1 :]]
        rest = [token for token in beside if token not in noun and token.word not in ("the", "same", "and", "as")]
        found = list[dict[tuple[int, ...], Way]]()
        for slot in (tokens[at], tokens[other]):
            asked = [Token("what"), *noun, tokens[0], slot, *rest]
            ways = self._walks.from_entity(asked, 2 + len(noun), max_steps=2)
            found.append({way.labels: way for way in ways})
        common = [
            replace(found[0][labels], log=self._both(found, labels, noun)) for labels in found[0].keys() & {*found[1]}
        ]
        common = [way for way in common if np.isfinite(way.log)]
        if not common:
            raise UnreadError
        best = likeliest(sorted(common, key=lambda way: way.labels))
        builder, ends = PatternBuilder(self._graph), list[str]()
        for token in (tokens[at], tokens[other]):
            end = builder.unknown()
            builder.walk(token.node, best.labels, end)
            ends.append(end.name)
        builder.operation = Operation("compare", by=tuple(ends), comparison="=")
        builder.confidence = sureness([best])
        return builder.pattern()

    def _both(
        self, found: Sequence[dict[tuple[int, ...], Way]], labels: tuple[int, ...], noun: Sequence[Token]
    ) -> float:
        """Return how likely a walk is from both of two entities, and with the noun for what is the same."""
        log = found[0][labels].log + found[1][labels].log
        words = [token.word for token in noun]
        near = max(self._walks.nearness(" ".join(words), label) for label in labels) if words else 0.0
        kind = self._kinds.named(words)
        members = None if kind is None else kind_members(self._graph, kind)
        if members is not None:
            ends = self._graph.relation_samples.ends_of(labels[-1])
            return log + NAME_WEIGHT * near if np.isin(ends, members).any() else -np.inf
        return log + NAME_WEIGHT * near if near >= SAME_NAME or len(labels) == 1 else -np.inf


#: The least confidence of the walk of a part.
SURE = 0.5


def parts_of(tokens: Sequence[Token]) -> list[Part]:
    """Return the parts of a question, each with its subject, or fewer than two for a question of one part.

    Example:
        >>> from kg_retrievers.index import QuestionEntity
        >>> acme = Token("Acme", QuestionEntity(0, 4, "Acme", ("a",), 1, False))
        >>> parts = parts_of([*map(Token, ["who", "founded"]), acme, *map(Token, ["and", "when"])])
        >>> [" ".join(token.text for token in part.tokens) for part in parts]
        ['who founded Acme', 'when founded Acme']
    """
    text = " ".join(token.word or "_" for token in tokens)
    if not tokens or tokens[0].word in AUXILIARY:
        return []
    slots = [token for token in tokens if token.slot]
    if len(slots) == 1 and (nouns := _nouns_of_one(text)):
        made = [[Token("what"), Token("is"), Token("the"), *map(Token, noun), Token("of"), slots[0]] for noun in nouns]
        return [Part(tuple(part), len(part) - 1) for part in made]
    pieces = list(_pieces(tokens, text))
    first = pieces[0]
    at = next((at for at, token in enumerate(first) if token.slot), -1)
    asks = re.search(rf"\b{_WH}\b", words_of(first)) or first[0].word in ("the", "give", "tell", "show", "list", "name")
    if any(_COUNTS_ALL.fullmatch(words_of(piece)) for piece in pieces[1:]):
        return []
    if len(pieces) < 2 or at < 0 or not asks or any(_is_relative(piece, first) for piece in pieces[1:]):
        return []
    parts = [Part(tuple(first), at)]
    return [*parts, *(_further(piece, parts[0]) for piece in pieces[1:])]


def _nouns_of_one(text: str) -> list[list[str]]:
    """Return the words of each noun that is asked of one entity; none if the text has another form."""
    if found := _LISTED.fullmatch(text):
        return [noun.removeprefix("the ").split() for noun in re.split(r" ?, (?:and )?| and ", found[1])]
    found = _OF_ONE.fullmatch(text) or _ITS.fullmatch(text)
    return [noun.split() for noun in found.groups() if noun] if found else []


def _more_of_answer(tokens: Sequence[Token]) -> list[Token]:
    """Return a further question about what the first one asks for, as in "which is the largest, and who owns it"."""
    text = words_of(tokens)
    first, *others = _pieces(tokens, text)
    asks = re.search(rf"\b{_WH}\b", words_of(first)) and re.search(rf"\band {_PREPOSITION}{_WH}\b", text)
    is_more = others and asks and not _COUNTS_ALL.fullmatch(words_of(others[-1]))
    return others[-1] if is_more and any(token.word in {*PRONOUNS, "there"} for token in others[-1]) else []


def _pieces(tokens: Sequence[Token], text: str) -> Iterator[list[Token]]:
    """Yield the words of each question of several."""
    start = 0
    for found in _FURTHER.finditer(text):
        end = text[: found.start()].count(" ")
        if end > start:
            yield list(tokens[start:end])
            start = text[: found.end()].count(" ")
    yield list(tokens[start:])


def _is_relative(piece: Sequence[Token], first: Sequence[Token]) -> bool:
    """Whether what seems to be a further question limits the first one, as "which huts are open and which he owns"."""
    return piece[0].word in ("who", "which") and any(token.slot for token in piece) and first[0].word != piece[0].word


def _further(piece: Sequence[Token], first: Part) -> Part:
    """Return a further part, with what it is about in place of the word for it."""
    entity = first.tokens[first.at]
    tokens = list(piece)
    at = next((at for at, token in enumerate(tokens) if token.slot), -1)
    if at >= 0:
        return Part(tuple(tokens), at)
    asked = words_of(first.tokens)
    for at, token in enumerate(tokens):
        if token.word in ("that", "this") and at and not (at + 1 < len(tokens) and tokens[at + 1].word in AUXILIARY):
            named = at + 1 < len(tokens) and tokens[at + 1].telling
            return Part((*tokens[:at], _ANSWER, *tokens[at + 1 + named :]), at, of_answer=True)
        if token.word == "there" or token.word in PRONOUNS:
            of_answer = token.word == "there" or _is_answer(token.word, asked)
            put = _ANSWER if of_answer else entity
            return Part((*tokens[:at], put, *tokens[at + 1 :]), at, of_answer)
    telling = [token for token in tokens if token.telling and token.word not in _BARE]
    if telling:
        return Part((*tokens, Token("of"), entity), len(tokens) + 1)
    rest = [token for token in first.tokens if token is entity or token.telling]
    whole = (*tokens, *rest)
    return Part(whole, next(at for at, token in enumerate(whole) if token is entity))


def _is_answer(pronoun: str, asked: str) -> bool:
    """Whether a pronoun stands for the answer to the first part, by what this asks for."""
    if pronoun in _PERSONAL or pronoun in _PLURAL:
        return bool(_ASKS_PERSON.search(asked)) or (pronoun in _PLURAL and bool(_ASKS_THING.search(asked)))
    return bool(_ASKS_THING.search(asked)) and not _ASKS_PERSON.search(asked)
