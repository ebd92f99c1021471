"""Find names that a question misspells or shortens.

Misspelt names are compared letter by letter. Short forms are such as "Acme" for "Acme Ltd.", a surname, or initials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.names import (
    FUNCTION_WORDS,
    FUZZY_SCORE,
    INITIALS,
    MAX_CANDIDATES,
    MOST_LETTERS,
    SHORT_SCORE,
    LinkedEntity,
    Match,
    NameTable,
    QuestionText,
    english_share,
    initials_of,
    likeness,
    telling_words,
    words_of,
)

#: The most entities that a short form may mean, unless only the bracketed parts of their names differ.
SHORT_ENTITIES = 4

#: How many windows of a question are tried, and how many names with the same words are read.
SHORT_WINDOWS, SHORT_NAMES = 256, 256

#: Words that are all in more names than that are taken to be in too many of them together.
SHORT_ROWS = 1 << 16

#: One of the so many most frequent words of English is no short form by itself in lower case.
FREQUENT_WORDS = 2000

_BRACKETS = re.compile(r"\([^()]*\)|\[[^][]*\]")

# What may stand between the words of a name that is one window.
_JOINING = frozenset("-.'’&")


class _Run(NamedTuple):
    """A run of words in a name of several words."""

    name: int
    begins: bool
    ends: bool
    half: bool  # of the words of the name, or more
    whole: bool  # all but the bracketed part


class ShortNames:
    """Finds the short forms of names in a question.

    A short form is a run of the words of a name, or its initials. It is a mention if it may mean one entity, a few, or
    several whose names differ only in bracketed parts. A capitalised word next to it speaks against it, since "Bruce
    Springsteen" is not "Bruce Wayne", unless it is a word of the schema or in capitals throughout: "Acme CEO".

    Args:
        graph: The graph.
        table: Its names.
        is_generic: Whether a word names no entity.
    """

    def __init__(self, graph: KnowledgeGraph, table: NameTable, is_generic: IsGeneric) -> None:
        """Keep the arguments."""
        self._graph, self._table, self._is_generic = graph, table, is_generic

    def find(self, text: QuestionText, matches: Sequence[Match]) -> list[Match]:
        """Return the short forms with capitals at both ends, longest first.

        They lie outside of other mentions.
        """
        covered = text.covered(matches)
        is_start = [token.capital and not covered[at] and not text.opens(at) for at, token in enumerate(text.tokens)]
        found = []
        for first, last in islice(self._windows(text, is_start), SHORT_WINDOWS):
            if any(covered[first : last + 1]) or not self._is_apart(text, covered, first, last):
                continue
            words = _words(text, first, last)
            entities = self._meant(self._runs(words)) or self._of_initials(text.text(first, last), matches)
            match = text.match(first, last, entities)
            if entities and (match.marked or not matches):
                found.append(match)
        return sorted(found, key=lambda match: match.start - match.end)

    def find_in_lower_case(self, text: QuestionText) -> list[Match]:
        """Return the short forms in a question without capitals, longest first.

        Such a form is a name without its bracketed part, or begins or ends a name and has half of its words. A word in
        the place of the rest of the name speaks against it, and so does one before the end of a name, unless it is
        generic. A frequent word of English is none.
        """
        found = []
        is_start = [bool(token.word) for token in text.tokens]
        for first, last in islice(self._windows(text, is_start), SHORT_WINDOWS):
            words = _words(text, first, last)
            if len(words) == 1 and english_share(words[0]) > 0.1 / FREQUENT_WORDS:
                continue
            before = self._may_border(text, first - 1)
            after = self._may_border(text, last + 1)
            runs = [
                run
                for run in self._runs(words)
                if run.whole or (run.half and after and (run.begins or (run.ends and before)))
            ]
            if entities := self._meant(runs):
                found.append(text.match(first, last, entities))
        return sorted(found, key=lambda match: match.start - match.end)

    def _windows(self, text: QuestionText, is_start: Sequence[bool]) -> Iterator[Window]:
        """Yield windows that may be short forms.

        They begin and end at starts, and their first word is in a name of several words.
        """
        for first, token in enumerate(text.tokens):
            if not is_start[first] or not (len(self._table.names_with(token.word)) or len(token.word) in INITIALS):
                continue
            for last in range(first, min(first + FUZZY_WORDS, len(text.tokens))):
                if not text.tokens[last].word and text.text(last, last) not in _JOINING:
                    break
                words = _words(text, first, last)
                if is_start[last] and not all(word.isdecimal() or self._is_generic(word) for word in words):
                    yield first, last

    def _is_apart(self, text: QuestionText, covered: Sequence[bool], first: int, last: int) -> bool:
        """Tell whether no capitalised word next to a window may belong to its name."""
        within = text.text(first, last)
        for at in (first - 1, last + 1):
            inside = 0 <= at < len(text.tokens) and text.tokens[at].capital and not covered[at]
            if not inside or self._is_generic(text.tokens[at].word):
                continue
            beside = text.text(at, at)
            if not (beside.isupper() and len(beside) > 1 and not within.isupper()):
                return False
        return True

    def _may_border(self, text: QuestionText, at: int) -> bool:
        return not 0 <= at < len(text.tokens) or not text.tokens[at].word or self._is_generic(text.tokens[at].word)

    def _runs(self, words: Sequence[str]) -> list[_Run]:
        """Return the positions of a run of words in names of several words.

        There are none if too many names have these words.
        """
        rows = sorted((self._table.names_with(word) for word in words), key=len)
        names = rows[0]
        if len(names) > (SHORT_NAMES if len(rows) == 1 else SHORT_ROWS):
            return []
        for row in rows[1:]:
            names = names[_is_among(names, row)]
        if len(names) > SHORT_NAMES:
            return []
        return [run for name in names.tolist() if (run := self._run(words, name))]

    def _run(self, words: Sequence[str], name: int) -> _Run | None:
        of_name = words_of(self._table.text(name))
        width, last = len(words), len(of_name) - len(words)
        places = [at for at in range(last + 1) if of_name[at : at + width] == words]
        if not places or last == 0:
            return None
        whole = words_of(_BRACKETS.sub(" ", self._table.text(name))) == words
        return _Run(name, places[0] == 0, places[-1] == last, 2 * width >= len(of_name), whole)

    def _meant(self, runs: Sequence[_Run]) -> tuple[LinkedEntity, ...]:
        """Return the entities with names that hold a run.

        There are none if they are too many.
        """
        whole = [run for run in runs if run.whole]
        return self._entities([run.name for run in whole or runs], MAX_CANDIDATES if whole else SHORT_ENTITIES)

    def _of_initials(self, initials: str, matches: Sequence[Match]) -> tuple[LinkedEntity, ...]:
        """Return the entities with such initials if no name is found in the question."""
        if matches or not (initials.isalpha() and initials.isupper() and len(initials) in INITIALS):
            return ()
        folded = initials.casefold()
        names = self._table.names_of_initials(folded)[:SHORT_NAMES].tolist()
        right = [name for name in names if folded in initials_of(words_of(self._table.text(name)))]
        return self._entities(right, SHORT_ENTITIES)

    def _entities(self, names: Sequence[int], most: int) -> tuple[LinkedEntity, ...]:
        ids = {id for name in names for id in self._graph.name_entities(name)}
        keys = [self._graph.entities[id] for id in sorted(ids)] if len(ids) <= most else []
        return tuple(LinkedEntity(key, self._graph.label(key), SHORT_SCORE, "short") for key in keys)


def _is_among(ids: Array, row: Array) -> Array:
    """Return which of some ids are in a row that is not empty.

    Both ascend.

    Cost: O(ids * log(row)).
    """
    at = np.minimum(np.searchsorted(row, ids), len(row) - 1)
    found: Array = row[at] == ids
    return found


def _words(text: QuestionText, first: int, last: int) -> list[str]:
    return [token.word for token in text.tokens[first : last + 1] if token.word]


#: The least share of equal letters between a fuzzy mention and a name: one wrong letter in six passes. On MetaQA dev
#: with a random typo in each question entity, 81 % are linked right by it and 1 % wrong, and 1 % of names that are not
#: in the graph are linked.
FUZZY_SHARE = 0.83

_DIGITS = re.compile(r"\d+")

#: The least share of equal letters of a name that is suggested without a word of the question, and the least share
#: between a word of the name and one of the question otherwise.
SUGGESTED_SHARE, SUGGESTED_WORD_SHARE = 0.6, 0.8

#: A fuzzy mention that holds a name gives way to it where its first or last word has a lesser share of equal letters
#: with each word of the misspelt name: "Acme CEO" is not "Acme Co".
WORD_SHARE = 0.7

#: How many near names a fuzzy mention is compared with, how many words it has at most, and how many mentions are tried.
FUZZY_NAMES, FUZZY_WORDS, FUZZY_WINDOWS = 8, 10, 256

Window = tuple[int, int]
IsGeneric = Callable[[str], bool]


def misspelt_windows(text: QuestionText, matches: Sequence[Match], is_generic: IsGeneric) -> list[Window]:
    """Return the positions of possible misspelt names.

    They are runs of capitalised words that are not all matched, else anywhere.

    Args:
        text: The question.
        matches: The mentions found in it.
        is_generic: Whether a word names no entity.

    Returns:
        The first and last token of each.
    """
    covered = text.covered(matches)
    may_be = [not covered[at] and not is_generic(token.word) for at, token in enumerate(text.tokens)]
    windows = list(islice(_capital_windows(text, may_be), FUZZY_WINDOWS))
    if windows or matches:
        return windows
    return list(islice(_all_windows(text, is_generic), FUZZY_WINDOWS))


def _capital_windows(text: QuestionText, may_be: Sequence[bool]) -> Iterator[Window]:
    """Yield windows of capitalised words of which one may be misspelt."""
    runs = capital_runs(text)
    for at, (first, _) in enumerate(runs):
        capitals: list[int] = []
        for begin, last in islice(runs, at, at + FUZZY_WORDS):
            capitals += range(begin, last + 1)
            if len(capitals) > FUZZY_WORDS or last - first > 2 * FUZZY_WORDS:
                break
            if any(may_be[token] for token in capitals):
                yield first, last


def _all_windows(text: QuestionText, is_generic: IsGeneric) -> Iterator[Window]:
    for first in range(len(text.tokens)):
        for last in range(first, min(first + FUZZY_WORDS, len(text.tokens))):
            words = [token.word for token in text.tokens[first : last + 1]]
            ends_in_name = words[0] and words[-1] and words[-1] not in FUNCTION_WORDS
            is_spelt_right = first == last and english_share(words[0]) > 0
            if ends_in_name and not is_spelt_right and not all(map(is_generic, words)):
                yield first, last


def capital_runs(text: QuestionText) -> list[Window]:
    """Return the first and last token of each run of capitalised words."""
    runs: list[Window] = []
    for at, token in enumerate(text.tokens):
        if token.capital and not text.opens(at):
            goes_on = runs and runs[-1][1] == at - 1
            runs.append((runs.pop()[0] if goes_on else at, at))
    return runs


def near_entities(index: GraphIndex, texts: Sequence[str]) -> list[list[LinkedEntity]]:
    """Return the entities whose names are near to each text in their letters.

    They come by falling share of equal letters.

    A name is near that has `SUGGESTED_SHARE` of the letters, or a telling word of the text, if perhaps misspelt.
    """
    graph, found = index.graph, dict[str, list[LinkedEntity]]()
    distinct = list(dict.fromkeys(texts))
    for text, candidates in zip(distinct, index.nearest_entities(distinct, FUZZY_NAMES), strict=True):
        near, telling = [], telling_words(text)
        for key in (graph.entities[id] for id in candidates.ids.tolist()):
            names = (graph.label(key), *graph.aliases(key))
            share = max(_share(text, name, telling) for name in names)
            if all(_DIGITS.findall(name) != _DIGITS.findall(text) for name in names):
                share = min(share, FUZZY_SHARE - 0.01)  # another number is no typing error
            if share > 0:
                near.append(LinkedEntity(key, names[0], FUZZY_SCORE * share, "fuzzy"))
        found[text] = sorted(near, key=lambda entity: -entity.score)
    return [found[text] for text in texts]


def _share(text: str, name: str, telling: set[str]) -> float:
    of_name = telling_words(name[:MOST_LETTERS])
    pairs = ((word, other) for word in telling for other in of_name if len(telling) <= 2)  # of a long text, too many
    is_near = telling & of_name or any(likeness(*pair, SUGGESTED_WORD_SHARE) for pair in pairs)
    return likeness(text, name, 0.0 if is_near else SUGGESTED_SHARE)


def misspelt(
    text: QuestionText, windows: Sequence[Window], near: Sequence[Sequence[LinkedEntity]], matches: Sequence[Match]
) -> list[Match]:
    """Return the windows that are near enough to a name, the nearest first.

    Args:
        text: The question.
        windows: The windows.
        near: What `near_entities` found for each.
        matches: The mentions found by name, full or short.
    """
    covered, spans = text.covered(matches), {match[:2] for match in matches}
    found = []
    for (first, last), entities in zip(windows, near, strict=True):
        close = tuple(entity for entity in entities if entity.score >= FUZZY_SCORE * FUZZY_SHARE)
        swallows = any(covered[first : last + 1]) and close and _has_other_word(text, first, last, close[0].label)
        match = text.match(first, last, close[:MAX_CANDIDATES])
        if close and not swallows and match[:2] not in spans:
            found.append(match)
    return sorted(found, key=lambda match: -match.candidates[0].score)


def _has_other_word(text: QuestionText, first: int, last: int, name: str) -> bool:
    """Tell whether the first or last word of a window is like no name's word."""
    of_name = words_of(name)
    words = (text.tokens[first].word, text.tokens[last].word)
    return any(max((likeness(word, one) for one in of_name), default=0.0) < WORD_SHARE for word in words if word)


def nearest_labels(entities: Iterable[LinkedEntity]) -> list[str]:
    """Return the labels of the three entities with the highest scores."""
    best = sorted(entities, key=lambda entity: -entity.score)
    return list(dict.fromkeys(entity.label for entity in best))[:3]
