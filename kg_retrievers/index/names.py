"""Look up names of a graph in texts.

The module holds the words of names, a table of names, and mentions in a text.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import chain, compress, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from kg_retrievers.errors import DamagedDataError
from kg_retrievers.graph.changes.changing import GraphChange
from kg_retrievers.graph.columns import DAMAGED, Array, are_first, distinct, entries_between, offset_type, starts_of
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.embeddings import folded, token_table

_WORD = re.compile(r"[^\W_]+")

#: How many letters of two texts are compared: nobody misspells a longer name.
MOST_LETTERS = 400


def function_words(kind: str) -> list[str]:
    """Return a list of words of the package.

    It is "english", "foreign", or English words that are words "elsewhere".
    """
    path = Path(__file__).parent / "data" / "function_words.toml"
    words: str = tomllib.loads(path.read_text(encoding="utf-8"))[kind]
    return words.split()


#: No mentions by themselves in lower case: an entity may be called "Her", "It" or "Up".
FUNCTION_WORDS = frozenset(function_words("english"))


def words_of(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, folded.

    Example:
        >>> words_of("Amélie's garden_gnome")
        ['amelie', 's', 'garden', 'gnome']
    """
    return _WORD.findall(folded(text))


def likeness(a: str, b: str, least: float = 0.0) -> float:
    """Return the share of letters that two texts have in order.

    It is a share of the longer text, in [0, 1].

    Of longer texts than `MOST_LETTERS` only the beginnings are compared, since the time grows with both lengths.

    Args:
        a: A text.
        b: Another.
        least: A smaller share counts as 0, which is found sooner.

    Example:
        >>> likeness("Spike Jonze", "spike jonez")
        0.9090909090909091
    """
    a, b = (" ".join(words_of(text[:MOST_LETTERS])) for text in (a, b))
    longer = max(len(a), len(b), 1)
    if (Counter(a) & Counter(b)).total() < least * longer:
        return 0.0
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    share = sum(block.size for block in blocks) / longer
    return share if share >= least else 0.0


def telling_words(text: str) -> set[str]:
    """Return the distinctive words of a text.

    They have three letters or more, and are no function words.

    Example:
        >>> sorted(telling_words("The Girl in the Park"))
        ['girl', 'park']
    """
    return {word for word in words_of(text) if len(word) > 2} - FUNCTION_WORDS


def english_share(word: str) -> float:
    """Return the approximate share of a word in English text.

    It is 0.1 / rank, by Zipf's law, or 0 if the word is rare.

    The rank comes from the token table, whose tokens are in the order of their frequency from "the" on.

    Example:
        >>> english_share("the"), english_share("with") > english_share("screenplay") > english_share("xyzzy")
        (0.1, True)
    """
    rank = _ranks().get(word, 0)
    return 0.1 / rank if rank > 0 else 0.0


@cache
def _ranks() -> dict[str, int]:
    tokens = token_table().tokens
    most_frequent = tokens.index("the")
    return {token: rank for rank, token in enumerate(tokens[most_frequent:], 1)}


def has_capitals(text: str) -> bool:
    """Return whether any letter of a text is a capital."""
    return any(map(str.isupper, text))


# The hash of code points c[0], c[1], ... is the sum of (c[i] + 1) * BASE ** i modulo 2 ** 64, so that the hashes of all
# parts of a text come from one running sum. Equal hashes prove nothing: whoever looks one up compares the texts.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)

_MIX = np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)

#: How many words a name has that is called by its initials.
INITIALS = range(3, 9)

#: Separates the hashes of initials from the hashes of words.
OF_INITIALS = np.uint64(0xD1B54A32D192ED03)


class NameTable:
    """Finds names by their letters and digits, by their words and by their initials.

    The columns are sorted by hash and searched by halving, so that they stay on disk: a look-up reads a few pages.

    Args:
        graph: The graph.
        columns: What `name_columns` made of it.
    """

    def __init__(self, graph: KnowledgeGraph, columns: Mapping[str, Array]) -> None:
        """Take the columns as they are."""
        self._graph = graph
        self._hashes, self._ids = columns["hashes"], columns["ids"]
        self._words, self._starts, self._names = columns["words"], columns["word_starts"], columns["word_names"]
        #: How many letters and digits the longest name has.
        self.longest = int(columns["longest"][0])

    def has(self, hashes: Array) -> Array:
        """Return which of some hashes belong to a name, or seem to.

        The result is bool, of the same shape.
        """
        if not len(self._hashes):
            return np.zeros(hashes.shape, np.bool_)
        wanted = halved(hashes)
        at = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        found: Array = self._hashes[at] == wanted
        return found

    def names(self, key: str, digest: np.uint64 | None = None) -> list[str]:
        """Return the names and entity keys whose letters and digits are a text.

        If they have none, their signs count.

        Args:
            key: The text.
            digest: Its hash, if it is known.
        """
        half = halved(hashes_of([key]) if digest is None else np.array([digest]))[0]
        first = int(np.searchsorted(self._hashes, half))
        last = int(np.searchsorted(self._hashes, half, "right"))
        texts = map(self.text, self._ids[first:last].tolist())
        return [text for text in texts if "".join(parts_of(text)) == key]

    def text(self, id: int) -> str:
        """Return the name of an id.

        An id above the ids of names stands for an entity key.

        Raises:
            DamagedDataError: If the id belongs to nothing.
        """
        names, entities = self._graph.names, self._graph.entities
        if not 0 <= id < len(names) + len(entities):
            raise DamagedDataError("GraphIndex: the table of names is damaged.", hint_python=DAMAGED)
        return names[id] if id < len(names) else entities[id - len(names)]

    def names_with(self, word: str) -> Array:
        """Return the ids of the names of several words that hold a word.

        They ascend, and others may be among them.
        """
        return self._row(hashes_of([word]))

    def names_of_initials(self, initials: str) -> Array:
        """Return the ids of the names that have such initials.

        They ascend, and others may be among them.
        """
        return self._row(hashes_of([initials]) ^ OF_INITIALS)

    def _row(self, digest: Array) -> Array:
        half = halved(digest)[0]
        at = int(np.searchsorted(self._words, half))
        if at == len(self._words) or self._words[at] != half:
            return self._names[:0]
        row: Array = self._names[self._starts[at] : self._starts[at + 1]]
        return row


def parts_of(text: str) -> list[str]:
    """Return the words of a name, or its signs if it has none."""
    return words_of(text) or [text.strip()]


def initials_of(words: Sequence[str]) -> set[str]:
    """Return the initials of a name of several words, with and without function words."""
    telling = [word for word in words if word not in FUNCTION_WORDS]
    return {"".join(word[0] for word in of_some) for of_some in (words, telling) if len(of_some) in INITIALS}


class RunningHash:
    """The hashes of all parts of one text, each in constant time.

    Args:
        codes: The code points of the text, integers.
    """

    def __init__(self, codes: Array) -> None:
        """Sum up the text."""
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        terms = codes.astype(np.uint64)
        terms += np.uint64(1)
        terms *= _powers(_BASE, len(codes))
        np.cumsum(terms, out=self._sums[1:])
        self._inverses = _powers(_INVERSE, len(codes) + 1)

    def between(self, starts: Array, ends: Array) -> Array:
        """Return the hashes of the parts between positions: uint64."""
        found: Array = (self._sums[ends] - self._sums[starts]) * self._inverses[starts]
        return found


def codes_of(pieces: Iterable[str]) -> Array:
    """Return the code points of texts, one after the other: uint32.

    Example:
        >>> codes_of(["a", "bc"]).tolist()
        [97, 98, 99]
    """
    return np.frombuffer("".join(pieces).encode("utf-32-le", "surrogatepass"), np.uint32)


def hashes_of(texts: Sequence[str]) -> Array:
    """Return the hash of each text: uint64."""
    ends = starts_of(np.fromiter(map(len, texts), np.int64, len(texts)))
    return RunningHash(codes_of(texts)).between(ends[:-1], ends[1:])


def halved(hashes: Array) -> Array:
    """Return hashes of 32 bits for hashes of 64 bits.

    Each depends on all 64. They are uint32.

    Example:
        >>> len(set(halved(hashes_of(["a", "b", "ab", "ba"])).tolist()))
        4
    """
    mixed = (hashes ^ (hashes >> _HALF)) * _MIX
    half: Array = (mixed >> _HALF).astype(np.uint32)
    return half


def _powers(base: int, count: int) -> Array:
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers, out=powers)


# --- making the columns ---------------------------------------------------------------------------------------------

#: What `name_columns` returns.
NAME_COLUMNS = ("hashes", "ids", "words", "word_starts", "word_names", "longest")

#: How many names are read at once while the columns are made.
BATCH = 1 << 16

# A hash and an id are sorted as one number: the hash above, the id below.
_ABOVE = np.uint64(32)
_NOTHING = np.empty(0, np.uint64)
_FUNCTION_WORDS = hashes_of(sorted(FUNCTION_WORDS))


class EarlierNames(NamedTuple):
    """The table of a graph before a change, and the change.

    Attributes:
        columns: The `name_columns` of the graph.
        graph: The graph.
        change: The earlier state of each part of the changed graph.
    """

    columns: Mapping[str, Array]
    graph: KnowledgeGraph
    change: GraphChange

    def new_ids(self) -> Array:
        """Return the new id of each id of the table: int32, -1 if it is gone."""
        names, new = len(self.graph.names), len(self.change.graph.names)
        found = np.full(names + len(self.graph.entities), -1, np.int32)
        for origins, before, after in ((self.change.names, 0, 0), (self.change.entities, names, new)):
            kept = np.flatnonzero(origins >= 0)
            found[before + origins[kept]] = after + kept
        return found

    def pairs(self, ids: str, hashes: Array) -> Array:
        """Return the hashes of a column of ids with the new ids, without those of names that are gone: uint64."""
        new = self.new_ids()[self.columns[ids]]
        return _joined(hashes[new >= 0], new[new >= 0])

    def word_hashes(self) -> Array:
        """Return the hash of the word of each of `word_names`: uint32."""
        return np.repeat(self.columns["words"], np.diff(self.columns["word_starts"]))


def name_columns(graph: KnowledgeGraph, earlier: EarlierNames | None = None) -> dict[str, Array]:
    """Return the columns of the table of a graph.

    Cost: some 10 microseconds for each new name, and about 24 bytes on disk for each name.

    Args:
        graph: The graph.
        earlier: The table before a change that led to this graph. No letter is read again of names that stay, and
            `longest` is not less than before.

    Returns:
        hashes: uint32, ascending: of each name, and of each entity key that is no name.
        ids: int32: the name of each, or the number of names plus the entity.
        words: uint32, ascending: of each word, and of the initials, of names of several words.
        word_starts: int32, or int64 if they are many: the positions in `word_names` at which the names with each word
            begin, and the end of the last.
        word_names: int32: ids of names, ascending for each word.
        longest: int64, shape (1): how many letters and digits the longest name has.
    """
    size, longest = len(graph.names), 0
    is_new = np.append(np.ones(size, np.bool_), graph.names.ids_of(graph.entities) < 0)
    of_names, of_words = [_NOTHING], [_NOTHING]
    if earlier:
        longest = int(earlier.columns["longest"][0])
        names = earlier.pairs("ids", earlier.columns["hashes"])
        names = names[is_new[names.astype(np.uint32)]]
        is_new[names.astype(np.uint32)] = False
        of_names.append(names)
        of_words.append(earlier.pairs("word_names", earlier.word_hashes()))
    everything = np.flatnonzero(is_new)
    for start in range(0, len(everything), BATCH):
        ids = everything[start : start + BATCH]
        texts = (graph.names[id] if id < size else graph.entities[id - size] for id in ids.tolist())
        parts = list(map(parts_of, texts))
        letters = list(map("".join, parts))
        longest = max(longest, *map(len, letters))
        of_names.append(_paired(hashes_of(letters), ids))
        several = np.array([len(of_name) > 1 for of_name in parts]) & (ids < size)
        of_words.append(_words_and_initials(list(compress(parts, several)), ids[several]))
    names, words = np.sort(np.concatenate(of_names)), distinct(np.concatenate(of_words))
    hashes = (words >> _ABOVE).astype(np.uint32)
    starts = np.flatnonzero(are_first(hashes))
    return {
        "hashes": (names >> _ABOVE).astype(np.uint32),
        "ids": names.astype(np.uint32).view(np.int32),
        "words": hashes[starts],
        "word_starts": np.append(starts, len(words)).astype(offset_type(len(words))),
        "word_names": words.astype(np.uint32).view(np.int32),
        "longest": np.array([longest], np.int64),
    }


def _words_and_initials(parts: Sequence[Sequence[str]], ids: Array) -> Array:
    """Return the hashes of the words and the initials of names.

    Each comes with its id.
    """
    words = list(chain.from_iterable(parts))
    bounds = starts_of(np.fromiter(map(len, parts), np.int64, len(parts)))
    hashes, firsts = hashes_of(words), codes_of(word[0] for word in words)
    telling = ~np.isin(hashes, _FUNCTION_WORDS)
    found = [
        _paired(hashes, np.repeat(ids, np.diff(bounds))),
        _initials(firsts, bounds, ids),
        _initials(firsts[telling], starts_of(telling)[bounds], ids),
    ]
    return np.concatenate(found)


def _initials(firsts: Array, bounds: Array, ids: Array) -> Array:
    """Return the hashes of initials with the ids of their names.

    A name needs as many words as that takes.
    """
    has = np.isin(np.diff(bounds), INITIALS)
    return _paired(RunningHash(firsts).between(bounds[:-1][has], bounds[1:][has]) ^ OF_INITIALS, ids[has])


def _paired(hashes: Array, ids: Array) -> Array:
    return _joined(halved(hashes), ids)


def _joined(halves: Array, ids: Array) -> Array:
    """Return hashes of 32 bits with their ids as numbers to sort: uint64."""
    pairs: Array = halves.astype(np.uint64)
    pairs <<= _ABOVE
    pairs |= ids.astype(np.uint32)
    return pairs


How = Literal["exact", "case", "fuzzy", "short"]

#: Scores by the form of the name: written exactly, exact except for case, accents or punctuation, exact except for
#: these and blanks, shortened, and the most that a fuzzy mention gets.
EXACT_SCORE, CASE_SCORE, BLANKS_SCORE, SHORT_SCORE, FUZZY_SCORE = 1.0, 0.9, 0.8, 0.75, 0.8

#: How many entities a mention may have.
MAX_CANDIDATES = 16

#: How many windows of a question are looked up at once.
WINDOW_BLOCK = 1 << 16

_TOKEN = re.compile(r"\w+|[^\w\s]")

# How likely the topic is named so, other things being equal.
_SURENESS = {"exact": 2, "case": 2, "short": 1, "fuzzy": 0}


@dataclass(frozen=True)
class LinkedEntity:
    """An entity that a mention may mean.

    Attributes:
        entity: Its key.
        label: Its label.
        score: In (0, 1]. 1 if a name is written exactly, 0.9 if case, accents or punctuation differ, 0.8 if blanks
            differ as well, 0.75 if it is shortened, and 0.8 times the share of equal letters for a fuzzy mention.
        how: "exact", "case", "short" or "fuzzy".
    """

    entity: str
    label: str
    score: float
    how: How


@dataclass(frozen=True)
class Mention:
    """A part of a question that names an entity.

    Attributes:
        text: The part, `question[start:end]`.
        start: The position of its first character.
        end: The position after its last character.
        candidates: The entities it may mean, best first. All entities of an ambiguous label have equal scores.
        rank: 1 for the mention that is most likely the question entity, then 2, 3 ...
    """

    text: str
    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    rank: int


class Match(NamedTuple):
    """A mention before it has a rank."""

    start: int
    end: int
    candidates: tuple[LinkedEntity, ...]
    marked: bool  # has capitals, digits or signs, other than at the very beginning of the question


class Token(NamedTuple):
    """A word or a sign of a question."""

    start: int
    end: int
    word: str  # its letters and digits, folded; empty for a sign
    capital: bool  # begins with a capital or a digit


class QuestionText:
    """A question in tokens.

    Args:
        question: The question.
    """

    def __init__(self, question: str) -> None:
        """Read the tokens."""
        self.question = question
        self.tokens = [
            Token(*found.span(), "".join(words_of(found[0])), found[0][0].isupper() or found[0][0].isdigit())
            for found in _TOKEN.finditer(question)
        ]
        self._start, self._end = self.tokens[0].start, self.tokens[-1].end

    @property
    def has_capital(self) -> bool:
        """Whether any letter but the first of the question is a capital."""
        return has_capitals(self._inside(self._start, self._end))

    def text(self, first: int, last: int) -> str:
        """Return the text from one token to another."""
        return self.question[self.tokens[first].start : self.tokens[last].end]

    def match(self, first: int, last: int, candidates: tuple[LinkedEntity, ...]) -> Match:
        """Return a mention from one token to another."""
        start, end = self.tokens[first].start, self.tokens[last].end
        return Match(start, end, candidates, self.is_marked(start, end))

    def is_whole(self, start: int, end: int) -> bool:
        """Tell whether a part is the question, except for blanks."""
        return start == self._start and end == self._end

    def is_marked(self, start: int, end: int) -> bool:
        """Tell whether a part has capitals, digits or signs.

        The first letter of the question does not count.
        """
        text = self._inside(start, end)
        return has_capitals(text) or not all(character.isalpha() or character.isspace() for character in text)

    def has_capitals(self, match: Match) -> bool:
        """Tell whether a mention has a capital.

        The first letter of the question does not count.
        """
        return has_capitals(self._inside(match.start, match.end))

    def stands_alone(self, start: int, end: int) -> bool:
        """Tell whether a mention of signs has blanks around it.

        The full stop and the question mark do not count.
        """
        closing = self.question[start:end] in (".", "?", "!") and end == self._end
        before, after = self.question[max(start - 1, 0) : start], self.question[end : end + 1]
        return not closing and not before.strip() and not after.strip()

    def opens(self, token: int) -> bool:
        """Tell whether a token is the first one and a function word.

        The capital of such a word says nothing.
        """
        return token == 0 and self.tokens[0].word in FUNCTION_WORDS

    def covered(self, matches: Iterable[Match]) -> list[bool]:
        """Return for each token whether it is inside one of some mentions."""
        inside = bytearray(len(self.question))
        for match in matches:
            inside[match.start : match.end] = b"\1" * (match.end - match.start)
        return [bool(inside[token.start]) for token in self.tokens]

    def named_windows(self, table: NameTable) -> Iterator[tuple[int, int, np.uint64]]:
        """Yield the windows that seem to be names.

        Each comes with its first and last token, and its hash.

        Cost: O(tokens * windows that begin at one token and are not longer than the longest name).
        """
        words = RunningHash(codes_of(token.word for token in self.tokens))
        starts, ends = np.array([token[:2] for token in self.tokens], np.int64).T
        letters = starts_of(np.array([len(token.word) for token in self.tokens]))
        by_letters = np.searchsorted(letters, letters[:-1] + table.longest, "right") - 1
        stops = np.minimum(by_letters, np.searchsorted(ends, starts + 2 * table.longest, "right"))
        counts = np.maximum(stops - np.arange(len(starts)), 0)
        signs: RunningHash | None = None
        for begin, end in _blocks(counts):
            firsts = np.arange(begin, end)
            last, at = entries_between(firsts, firsts + counts[begin:end])
            first = firsts[at]
            is_sign = letters[first] == letters[last + 1]
            hashes = words.between(letters[first], letters[last + 1])
            if is_sign.any():
                signs = signs or RunningHash(codes_of([self.question]))
                hashes[is_sign] = signs.between(starts[first[is_sign]], ends[last[is_sign]])
            for hit in np.flatnonzero(table.has(hashes)).tolist():
                yield int(first[hit]), int(last[hit]), hashes[hit]

    def _inside(self, start: int, end: int) -> str:
        return self.question[max(start, self._start + 1) : end]


def _blocks(counts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of starts which have about `WINDOW_BLOCK` windows together."""
    block = np.cumsum(counts) // WINDOW_BLOCK
    cuts = np.flatnonzero(np.diff(block)) + 1
    bounds = [0, *cuts.tolist(), len(counts)]
    yield from pairwise(bounds)


def longest(matches: Sequence[Match]) -> list[Match]:
    """Keep the longest of overlapping matches.

    A match that differs in blanks is dropped if there is another.
    """
    return apart(sorted(matches, key=lambda m: (m.candidates[0].score <= BLANKS_SCORE, m.start - m.end, m.start)))


def apart(matches: Sequence[Match]) -> list[Match]:
    """Keep each match that does not overlap an earlier one."""
    taken = bytearray(max((match.end for match in matches), default=0))
    kept: list[Match] = []
    for match in matches:
        if not any(taken[match.start : match.end]):
            taken[match.start : match.end] = b"\1" * (match.end - match.start)
            kept.append(match)
    return kept


def with_ranks(question: str, matches: Sequence[Match]) -> list[Mention]:
    """Return the mentions by position, each with its rank."""
    ranks = {match: rank for rank, match in enumerate(sorted(matches, key=_likelihood, reverse=True), 1)}
    return [Mention(question[m.start : m.end], m.start, m.end, m.candidates, ranks[m]) for m in sorted(matches)]


def _likelihood(match: Match) -> tuple[bool, int, int, float]:
    """Return a sort key, greater for a likelier topic."""
    best = match.candidates[0]
    return match.marked, _SURENESS[best.how], match.end - match.start, best.score
