"""NameTable: the names of a graph by what a question may call them, as columns that an index saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.changes.changing import GraphChange
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.index.words import FUNCTION_WORDS, words_of

#: Raised by one with every change of what the columns hold; columns of another version are made anew.
VERSION = 2

#: What `name_columns` returns.
NAME_COLUMNS = ("hashes", "ids", "words", "word_starts", "word_names", "longest")

#: How many names are read at once while the columns are made.
BATCH = 1 << 16

#: How many words a name has that is called by its initials.
INITIALS = range(3, 9)

# The hash of code points c[0], c[1], ... is the sum of (c[i] + 1) * BASE ** i modulo 2 ** 64, so that the hashes of all
# parts of a question come from one running sum. Equal hashes prove nothing: the names are compared.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)

# Keeps the hashes of initials apart from those of words.
_OF_INITIALS = np.uint64(0xD1B54A32D192ED03)


class NameTable:
    """Finds names by their letters and digits, by their words and by their initials.

    The columns are sorted by hash and searched by halving, so that they can stay on disk.

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
        """Return which of some hashes are that of a name: bool, of the same shape."""
        if not len(self._hashes):
            return np.zeros(hashes.shape, np.bool_)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        found: Array = self._hashes[at] == hashes
        return found

    def names(self, key: str, digest: np.uint64 | None = None) -> list[str]:
        """Return the names and entity keys whose letters and digits are a text; or their signs, where they have none.

        Args:
            key: The text.
            digest: Its hash, where it is known.
        """
        digest = hashes_of([key])[0] if digest is None else digest
        first = int(np.searchsorted(self._hashes, digest))
        last = int(np.searchsorted(self._hashes, digest, "right"))
        texts = map(self._text, self._ids[first:last].tolist())
        return [text for text in texts if "".join(_parts(text)) == key]

    def names_with(self, word: str) -> Array:
        """Return the ids of the names of several words that hold a word, and perhaps of others; ascending."""
        return self._row(hashes_of([word])[0])

    def names_of_initials(self, initials: str) -> Array:
        """Return the ids of the names that have such initials, and perhaps of others; ascending."""
        return self._row(hashes_of([initials])[0] ^ _OF_INITIALS)

    def _row(self, digest: np.uint64) -> Array:
        at = int(np.searchsorted(self._words, digest))
        if at == len(self._words) or self._words[at] != digest:
            return self._names[:0]
        row: Array = self._names[self._starts[at] : self._starts[at + 1]]
        return row

    def _text(self, id: int) -> str:
        names = self._graph.names
        return names[id] if id < len(names) else self._graph.entities[id - len(names)]


class _Hashed(NamedTuple):
    """Some names: the hash of each, and the hash and the name of each of their words and initials."""

    hashes: Array
    ids: Array
    words: Array
    names: Array
    longest: int


def name_columns(graph: KnowledgeGraph) -> dict[str, Array]:
    """Return the columns of the table of a graph.

    Returns:
        hashes: uint64, ascending: of each name, and of each entity key that is no name.
        ids: int32: the name of each, or the number of names plus the entity.
        words: uint64, ascending: of each word, and of the initials, of names of several words.
        word_starts: int64: where the names with each word begin in `word_names`, and where the last ends.
        word_names: int32: ids of names, ascending for each word.
        longest: int64, shape (1): how many letters and digits the longest name has.
    """
    labels = frozenset(graph.names)
    keys = ((len(labels) + id, key) for id, key in enumerate(graph.entities) if key not in labels)
    rows = chain(enumerate(graph.names), keys)
    parts = [_hashed([], 0)]
    while batch := list(islice(rows, BATCH)):
        parts.append(_hashed(batch, len(graph.names)))
    hashes, ids, words, names = (np.concatenate([part[column] for part in parts]) for column in range(4))
    order = np.argsort(hashes, kind="stable")
    words, names = _sorted_pairs(words, names)
    return {
        "hashes": hashes[order],
        "ids": ids[order],
        **_word_columns(words, names),
        "longest": np.array([max(part.longest for part in parts)], np.int64),
    }


def changed_name_columns(
    columns: Mapping[str, Array], before: KnowledgeGraph, change: GraphChange[KnowledgeGraph]
) -> dict[str, Array]:
    """Return the columns of the table of a changed graph; only names and keys that are new are read.

    They are what `name_columns` returns; but `longest` counts names that are gone, too.

    Args:
        columns: Those of the graph before.
        before: The graph before.
        change: The changed graph.
    """
    size = len(change.graph.names)
    new_ids, new_rows = _renumbered(before, change)
    ids = new_ids[columns["ids"]]
    kept = ids >= 0
    new = _hashed(new_rows, size)
    order = np.lexsort((new.ids, new.hashes))
    at = np.searchsorted(hashes := columns["hashes"][kept], new.hashes[order], "right")
    hashes, ids = np.insert(hashes, at, new.hashes[order]), np.insert(ids[kept], at, new.ids[order])
    if ((hashes[1:] == hashes[:-1]) & (ids[1:] < ids[:-1])).any():
        by_id = np.lexsort((ids, hashes))
        hashes, ids = hashes[by_id], ids[by_id]
    words = np.repeat(columns["words"], np.diff(columns["word_starts"]))
    names = new_ids[columns["word_names"]]
    words, names = words[names >= 0], names[names >= 0]
    new_words, new_names = _sorted_pairs(new.words, new.names)
    at = np.searchsorted(words, new_words, "right")  # new ids are greater than others
    longest = max(int(columns["longest"][0]), new.longest)
    return {
        "hashes": hashes,
        "ids": ids.astype(np.int32, copy=False),
        **_word_columns(np.insert(words, at, new_words), np.insert(names, at, new_names).astype(np.int32, copy=False)),
        "longest": np.array([longest], np.int64),
    }


def _renumbered(before: KnowledgeGraph, change: GraphChange[KnowledgeGraph]) -> tuple[Array, list[tuple[int, str]]]:
    """Return the new id of each id of a table, -1 where it is gone, and ids with texts that are new."""
    graph, size = change.graph, len(change.graph.names)
    name_ids = _successors(change.names, len(before.names))
    key_ids = _successors(change.entities, len(before.entities))
    names = {int(id): graph.names[id] for id in np.flatnonzero(change.names < 0).tolist()}
    is_key = graph.entities.ids_of(StringTable.from_strings(names.values()))
    of_before = change.entities[is_key[is_key >= 0]]
    key_ids[of_before[of_before >= 0]] = -1  # a key that is a name now has no row of its own
    gone = StringTable.from_strings([before.names[id] for id in np.flatnonzero(name_ids < 0).tolist()])
    freed = graph.entities.ids_of(gone)
    new_keys = np.union1d(freed[freed >= 0], np.flatnonzero(change.entities < 0)).tolist()
    keys = StringTable.from_strings([graph.entities[id] for id in new_keys])
    is_name = graph.names.ids_of(keys) >= 0
    of_keys = [(size + id, key) for id, key, named in zip(new_keys, keys, is_name.tolist(), strict=True) if not named]
    key_ids[key_ids >= 0] += size
    return np.append(name_ids, key_ids), [*names.items(), *of_keys]


def _successors(origins: Array, size: int) -> Array:
    """Return the new id of each earlier one, -1 where it is gone."""
    ids = np.full(size, -1, np.int32)
    stays = np.flatnonzero(origins >= 0)
    ids[origins[stays]] = stays
    return ids


def _sorted_pairs(words: Array, names: Array) -> tuple[Array, Array]:
    """Sort words with their names, and leave out what is repeated."""
    order = np.lexsort((names, words))
    words, names = words[order], names[order]
    repeated = (words[1:] == words[:-1]) & (names[1:] == names[:-1])
    kept = np.append(True, ~repeated)[: len(words)]
    return words[kept], names[kept]


def _word_columns(words: Array, names: Array) -> dict[str, Array]:
    """Return the columns of sorted words with their names."""
    starts = np.flatnonzero(np.append(True, words[1:] != words[:-1])[: len(words)])
    return {
        "words": words[starts],
        "word_starts": np.append(starts, len(words)).astype(np.int64),
        "word_names": names,
    }


def _hashed(rows: Sequence[tuple[int, str]], names: int) -> _Hashed:
    """Hash texts, each with its id; of the first `names` ids the words as well."""
    parts = [_parts(text) for _, text in rows]
    ids = np.fromiter((id for id, _ in rows), np.int32, len(rows))
    sums = RunningHash(chain.from_iterable(parts))
    lengths = np.fromiter(map(len, chain.from_iterable(parts)), np.int64)
    ends = np.append(0, np.cumsum(lengths))
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    firsts = np.append(0, np.cumsum(sizes))
    several = np.repeat((sizes > 1) & (ids < names), sizes)
    named = [(id, of_one) for (id, _), of_one in zip(rows, parts, strict=True) if id < names]
    initials = [(id, text) for id, of_one in named for text in initials_of(of_one)]
    starts, stops = ends[firsts[:-1]], ends[firsts[1:]]
    return _Hashed(
        sums.between(starts, stops),
        ids,
        np.append(sums.between(ends[:-1], ends[1:])[several], hashes_of([text for _, text in initials]) ^ _OF_INITIALS),
        np.append(np.repeat(ids, sizes)[several], np.array([id for id, _ in initials], np.int32)),
        int((stops - starts).max(initial=0)),
    )


class RunningHash:
    """The hashes of all parts of one text, each in constant time.

    Args:
        pieces: The text in pieces.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        """Sum up the text."""
        codes = np.frombuffer("".join(pieces).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        np.cumsum((codes + np.uint64(1)) * _powers(_BASE, len(codes)), out=self._sums[1:])
        self._inverses = _powers(_INVERSE, len(codes) + 1)

    def between(self, starts: Array, ends: Array) -> Array:
        """Return the hashes of the parts between positions: uint64."""
        found: Array = (self._sums[ends] - self._sums[starts]) * self._inverses[starts]
        return found


def hashes_of(texts: Sequence[str]) -> Array:
    """Return the hash of each text: uint64."""
    ends = np.append(0, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))))
    return RunningHash(texts).between(ends[:-1], ends[1:])


def _powers(base: int, count: int) -> Array:
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


def _parts(text: str) -> list[str]:
    """Return the words of a name; its signs where it has none."""
    return words_of(text) or [text.strip()]


def initials_of(words: Sequence[str]) -> set[str]:
    """Return the initials of a name of several words, and those without function words."""
    telling = [word for word in words if word not in FUNCTION_WORDS]
    return {"".join(word[0] for word in of_some) for of_some in (words, telling) if len(of_some) in INITIALS}
