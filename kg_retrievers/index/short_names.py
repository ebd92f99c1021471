"""Short forms of names: "Acme" for "Acme Ltd.", a surname, a name without its bracketed part, initials."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.mentions import SHORT_SCORE, LinkedEntity, Match, QuestionText
from kg_retrievers.index.misspelt_names import FUZZY_WORDS, IsGeneric, Window
from kg_retrievers.index.name_table import INITIALS, NameTable, initials_of
from kg_retrievers.index.words import english_share, words_of

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

    A short form is a run of the words of a name, or its initials. It is a mention where it may mean one entity, a few,
    or several whose names differ only in bracketed parts. A capitalised word beside it speaks against it, "Bruce
    Springsteen" is not "Bruce Wayne", unless it is a word of the schema or in capitals throughout: "Acme CEO".

    Args:
        graph: The graph.
        table: Its names.
        is_generic: Whether a word names no entity.
        max_candidates: How many entities a mention may have.
    """

    def __init__(self, graph: KnowledgeGraph, table: NameTable, is_generic: IsGeneric, max_candidates: int) -> None:
        """Keep the arguments."""
        self._graph, self._table, self._is_generic = graph, table, is_generic
        self._max_candidates = max_candidates

    def find(self, text: QuestionText, matches: Sequence[Match]) -> list[Match]:
        """Return the short forms that begin and end with capitals and are outside of other mentions, longest first."""
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
        """Return the short forms in a question that has no capitals, longest first.

        Such a one is a name but for its bracketed part, or begins or ends a name and has half of its words. A word
        where the name would go on speaks against it, and so does one before the end of a name, unless it is generic. A
        frequent word of English is none.
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
        """Yield windows that begin and end at starts, and whose first word is in a name of several words."""
        for first, token in enumerate(text.tokens):
            if not is_start[first] or not self._may_be_name(token.word):
                continue
            for last in range(first, min(first + FUZZY_WORDS, len(text.tokens))):
                if not text.tokens[last].word and text.text(last, last) not in _JOINING:
                    break
                if is_start[last] and not all(map(self._is_no_name, _words(text, first, last))):
                    yield first, last

    def _may_be_name(self, word: str) -> bool:
        return len(self._table.names_with(word)) > 0 or len(word) in INITIALS

    def _is_no_name(self, word: str) -> bool:
        return word.isdecimal() or self._is_generic(word)

    def _is_apart(self, text: QuestionText, covered: Sequence[bool], first: int, last: int) -> bool:
        """Return whether no capitalised word beside a window may belong to the name that it is a part of."""
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
        """Return where names of several words hold a run of words; none where too many names have these words."""
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
        """Return the entities with names that hold a run; none where they are too many."""
        whole = [run for run in runs if run.whole]
        most = self._max_candidates if whole else min(SHORT_ENTITIES, self._max_candidates)
        return self._entities([run.name for run in whole or runs], most)

    def _of_initials(self, initials: str, matches: Sequence[Match]) -> tuple[LinkedEntity, ...]:
        """Return the entities with such initials, in a question where no name is found."""
        if matches or not (initials.isalpha() and initials.isupper() and len(initials) in INITIALS):
            return ()
        folded = initials.casefold()
        names = self._table.names_of_initials(folded)[:SHORT_NAMES].tolist()
        right = [name for name in names if folded in initials_of(words_of(self._table.text(name)))]
        return self._entities(right, min(SHORT_ENTITIES, self._max_candidates))

    def _entities(self, names: Sequence[int], most: int) -> tuple[LinkedEntity, ...]:
        ids = {id for name in names for id in self._graph.name_entities(name)}
        keys = [self._graph.entities[id] for id in sorted(ids)] if len(ids) <= most else []
        return tuple(LinkedEntity(key, self._graph.label(key), SHORT_SCORE, "short") for key in keys)


def _is_among(ids: Array, row: Array) -> Array:
    """Return which of some ids are in a row that is not empty; both ascend.

    Cost: O(ids * log(row)).
    """
    at = np.minimum(np.searchsorted(row, ids), len(row) - 1)
    found: Array = row[at] == ids
    return found


def _words(text: QuestionText, first: int, last: int) -> list[str]:
    return [token.word for token in text.tokens[first : last + 1] if token.word]
