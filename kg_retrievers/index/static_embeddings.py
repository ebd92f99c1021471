"""Provide the default embeddings.

They know meanings and forgive typos, without a download and without a framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, named_arguments
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import NGRAM_SIZES, UNKNOWN, ArrayEmbeddings, sums_of_rows, token_table, words

#: The share of the spelling in texts whose words are all known. Shares of 0 to .4 find .42 to .43 of Wikidata's
#: properties by other names that people gave them. This one finds .83 of names with two typos, 0 finds .64
#: (`benchmarks/static_embeddings.py`).
LETTERS = 0.3

#: The number of axes of the n-grams.
LETTER_AXES = 256

#: How many texts are embedded at once.
BATCH = 1024


@named_arguments
class StaticEmbeddings(ArrayEmbeddings):
    """Embed a text by its tokens and its hashed character n-grams.

    The vector joins the mean of its tokens' vectors with the n-grams. It is read with numpy alone.

    Meaning is the mean of the rows of a text's tokens in `token_table()`, which is distilled from all-MiniLM-L6-v2
    (Apache-2.0). Spelling is its counted n-grams of 2 to 4 characters. Each is made as long as 1, and they are joined
    by shares of the squared length: meaning has `(1 - letters) * known`, spelling the rest. `known` is the share of the
    letters in words that are one token. Of a word in k tokens, 1/k counts. So unknown words, such as a name with a
    typo, count by their letters. Case, accents and punctuation do not count. Words of other scripts than Latin have no
    meaning here, and an empty text is far from all others. Vectors are equal on every machine, up to rounding, and
    threads may share the embeddings.

    Args:
        letters: The share of the spelling in texts whose words are all known, 0 to 1.

    Raises:
        InvalidArgumentError: If `letters` is not from 0 to 1.

    Example:
        >>> spouse, wife, typo, river = StaticEmbeddings().embed_array(["spouse", "wife", "wiffe", "river"])
        >>> bool(spouse @ wife > spouse @ river), bool(typo @ wife > typo @ river)
        (True, True)
    """

    def __init__(self, letters: float = LETTERS) -> None:
        """Check the share. The table is read when it is first needed."""
        if not 0 <= letters <= 1:
            raise InvalidArgumentError(f"StaticEmbeddings: letters must be from 0 to 1, but got {letters}.")
        self.letters = letters
        #: Changes with the algorithm and the table, so that an index built with an earlier one is found stale.
        self.model = f"tokens of all-MiniLM-L6-v2 and 2-4-grams at {letters:g}, 1"

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return token_table().dimension + LETTER_AXES

    def embed_array(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text, float32 of shape (texts, dimension)."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH):
            split = [words(text) for text in texts[start : start + BATCH]]
            meanings, known = _meanings(split)
            share = (1 - self.letters) * known[:, None]
            rows = vectors[start : start + len(split)]
            rows[:, :-LETTER_AXES] = np.sqrt(share) * _unit(meanings)
            rows[:, -LETTER_AXES:] = np.sqrt(1 - share) * _unit(_spellings(split))
            rows[~rows.any(axis=1), -LETTER_AXES] = 1
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return vectors


@named_arguments
def default_embeddings() -> StaticEmbeddings:
    """Return the embeddings that the shell, the README and the docs use: `StaticEmbeddings()`.

    Example:
        >>> default_embeddings().dimension
        512
    """
    return StaticEmbeddings()


def _meanings(split: Sequence[Sequence[str]]) -> tuple[Array, Array]:
    """Return the sum of each text's token rows.

    Also return the share of its letters that the table knows, 0 to 1.
    """
    table = token_table()
    tokens = [[table.ids_of_word(word) for word in of_text] for of_text in split]
    sums = sums_of_rows(table, [list(chain.from_iterable(of_text)) for of_text in tokens])
    owners = np.repeat(np.arange(len(split)), [len(of_text) for of_text in split])
    flat = list(chain.from_iterable(split))
    pairs = zip(flat, chain.from_iterable(tokens), strict=True)
    known = [0 if ids[0] == UNKNOWN else len(word) / len(ids) for word, ids in pairs]
    letters = np.bincount(owners, list(map(len, flat)), len(split))
    return sums, np.bincount(owners, known, len(split)) / np.maximum(letters, 1)


def _spellings(split: Sequence[Sequence[str]]) -> Array:
    """Return the counted n-grams of each text, shape (texts, axes).

    Each adds 1 or -1 to one axis.
    """
    texts = [f"\x02{' '.join([word for word in of_text if word.isalnum()] or of_text)}\x03" for of_text in split]
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    positions, signs = list[Array](), list[Array]()
    for size in NGRAM_SIZES:
        count = max(0, len(codes) - size + 1)
        hashes = np.full(count, size, np.uint32)
        for offset in range(size):
            hashes = (hashes ^ codes[offset : offset + count]) * np.uint32(0x01000193)
        within = owners[:count] == owners[size - 1 :]
        hashes, of_text = _mixed(hashes[within]), owners[:count][within]
        positions.append(of_text * LETTER_AXES + hashes % LETTER_AXES)
        signs.append(1.0 - 2 * (hashes >> 31))
    axes = np.bincount(np.concatenate(positions), np.concatenate(signs), len(texts) * LETTER_AXES)
    spellings: Array = axes.reshape(-1, LETTER_AXES)
    return spellings


def _mixed(hashes: Array) -> Array:
    """Return hashes whose every bit depends on every given bit.

    These are the last steps of MurmurHash3.
    """
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    mixed: Array = hashes ^ (hashes >> np.uint32(16))
    return mixed


def _unit(vectors: Array) -> Array:
    """Return the vectors with length 1. Zero vectors stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Array = vectors / np.where(norms, norms, 1)
    return unit
