"""NameTable: the names of a graph by what a question may call them, in columns that an index saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kg_retrievers.errors import DamagedDataError
from kg_retrievers.graph.columns import DAMAGED, Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.words import FUNCTION_WORDS, words_of

# The hash of code points c[0], c[1], ... is the sum of (c[i] + 1) * BASE ** i modulo 2 ** 64, so that the hashes of all
# parts of a text come from one running sum. Equal hashes prove nothing: whoever looks one up compares the texts.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)

_MIX = np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)

#: How many words a name has that is called by its initials.
INITIALS = range(3, 9)

#: Keeps the hashes of initials apart from those of words.
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
        """Return which of some hashes are that of a name, or seem to be: bool, of the same shape."""
        if not len(self._hashes):
            return np.zeros(hashes.shape, np.bool_)
        wanted = halved(hashes)
        at = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        found: Array = self._hashes[at] == wanted
        return found

    def names(self, key: str, digest: np.uint64 | None = None) -> list[str]:
        """Return the names and entity keys whose letters and digits are a text; or their signs, where they have none.

        Args:
            key: The text.
            digest: Its hash, where it is known.
        """
        half = halved(hashes_of([key]) if digest is None else np.array([digest]))[0]
        first = int(np.searchsorted(self._hashes, half))
        last = int(np.searchsorted(self._hashes, half, "right"))
        texts = map(self.text, self._ids[first:last].tolist())
        return [text for text in texts if "".join(parts_of(text)) == key]

    def text(self, id: int) -> str:
        """Return the name of an id, or the entity key of one above those of names.

        Raises:
            DamagedDataError: If it is the id of nothing.
        """
        names, entities = self._graph.names, self._graph.entities
        if not 0 <= id < len(names) + len(entities):
            raise DamagedDataError("GraphIndex: the table of names is damaged.", hint_python=DAMAGED)
        return names[id] if id < len(names) else entities[id - len(names)]

    def names_with(self, word: str) -> Array:
        """Return the ids of the names of several words that hold a word, and perhaps of others; ascending."""
        return self._row(hashes_of([word]))

    def names_of_initials(self, initials: str) -> Array:
        """Return the ids of the names that have such initials, and perhaps of others; ascending."""
        return self._row(hashes_of([initials]) ^ OF_INITIALS)

    def _row(self, digest: Array) -> Array:
        half = halved(digest)[0]
        at = int(np.searchsorted(self._words, half))
        if at == len(self._words) or self._words[at] != half:
            return self._names[:0]
        row: Array = self._names[self._starts[at] : self._starts[at + 1]]
        return row


def parts_of(text: str) -> list[str]:
    """Return the words of a name; its signs where it has none."""
    return words_of(text) or [text.strip()]


def initials_of(words: Sequence[str]) -> set[str]:
    """Return the initials of a name of several words, and those without function words."""
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
    ends = np.append(0, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))))
    return RunningHash(codes_of(texts)).between(ends[:-1], ends[1:])


def halved(hashes: Array) -> Array:
    """Return hashes of 32 bits for hashes of 64 bits, each of which depends on all 64: uint32.

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
