"""A vector for each token of English, and the tokens of a text: read with numpy, shipped with the package."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from unicodedata import category, normalize

import numpy as np
from safetensors import SafetensorError, safe_open

from kg_retrievers.errors import IndexLoadError
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.columns import Array

#: The table of the package: three tensors, `tokens` (UTF-8, one token a line), `rows` (int8) and `scales` (float16).
TABLE = Path(__file__).parent / "data" / "token_table.safetensors"

#: The id of every token that the table lacks; its row is zero.
UNKNOWN = 0

#: A longer word is one unknown token, as for BERT.
LONGEST_WORD = 100

#: How many words are remembered with their tokens.
_REMEMBERED = 1 << 17

# The characters that BERT takes for Chinese ones, each a word of its own.
_IDEOGRAPH = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b920-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class TokenTable(Immutable):
    """A vector for each token, and the tokens of a text as BERT's uncased tokenizer finds them.

    Case and accents go, each punctuation mark is a word, and a word is the longest token that begins it, then the
    longest that goes on, and so on; a word that cannot be spelt so is one unknown token. Threads may share a table.

    Args:
        tokens: The tokens, "##" before those that go on with a word; the first stands for all unknown ones.
        rows: int8, shape (tokens, dimension).
        scales: float16, shape (tokens): what each row is multiplied with.

    Example:
        >>> table = token_table()
        >>> [table.tokens[i] for i in table.token_ids("Amélie's screenwriters")]
        ['amelie', "'", 's', 'screenwriter', '##s']
    """

    def __init__(self, tokens: Sequence[str], rows: Array, scales: Array) -> None:
        """Keep the arrays."""
        self.tokens = tuple(tokens)
        self._rows, self._scales = rows, scales.astype(np.float32)[:, None]
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        #: Returns the ids of the tokens of a word, as the function `words` finds it in a text.
        self.ids_of_word: Callable[[str], tuple[int, ...]] = lru_cache(maxsize=_REMEMBERED)(self._split)

    def __reduce__(self) -> tuple[type[TokenTable], tuple[tuple[str, ...], Array, Array]]:
        """Pickle the arrays; the words that were remembered are left out."""
        return TokenTable, (self.tokens, self._rows, self._scales[:, 0].astype(np.float16))

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self._rows.shape[1])

    def token_ids(self, text: str) -> list[int]:
        """Return the ids of the tokens of a text, in its order."""
        return list(chain.from_iterable(map(self.ids_of_word, words(text))))

    def rows(self, ids: Sequence[int] | Array) -> Array:
        """Return the rows of tokens, float32 of shape (ids, dimension)."""
        chosen = np.asarray(ids, np.int64)
        rows: Array = self._rows[chosen] * self._scales[chosen]
        return rows

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (UNKNOWN,)
        ids: list[int] = []
        start, mark = 0, ""
        while start < len(word):
            ends = range(len(word), start, -1)
            found = next((end for end in ends if mark + word[start:end] in self._ids), None)
            if found is None:
                return (UNKNOWN,)
            ids.append(self._ids[mark + word[start:found]])
            start, mark = found, "##"
        return tuple(ids)


def words(text: str) -> list[str]:
    """Return the words of a text as BERT's uncased tokenizer finds them: no case, no accents, punctuation apart.

    Example:
        >>> words("Who directed Amélie?")
        ['who', 'directed', 'amelie', '?']
    """
    if not text.isascii():
        text = normalize("NFD", text)
    return text.translate(_WRITTEN).split()


class _Written(dict[int, str]):
    """How each character is written before the text is split at blanks."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        written = self[code] = _written(character)
        return written


def _written(character: str) -> str:
    kind = category(character)
    if character in "\t\n\r" or kind[0] == "Z":
        return " "
    if kind[0] == "C" or kind == "Mn" or character == "\ufffd":
        return ""
    if kind[0] == "P" or (character.isascii() and not character.isalnum()) or _IDEOGRAPH.match(character):
        return f" {character} "
    return character.lower()


_WRITTEN = _Written()


@lru_cache(maxsize=1)
def token_table() -> TokenTable:
    """Return the table of the package, read once for each process: 256 numbers for each of 27,000 tokens.

    It is distilled from all-MiniLM-L6-v2 (Apache-2.0) by `benchmarks/distill_token_table.py`.

    Raises:
        IndexLoadError: If the file is missing or damaged.
    """
    try:
        with safe_open(TABLE, framework="numpy") as file:
            tokens, rows, scales = (file.get_tensor(name) for name in ("tokens", "rows", "scales"))
    except (OSError, SafetensorError) as cause:
        raise IndexLoadError(
            f"the token table of the package cannot be read ({cause}). Install it again.", TABLE
        ) from cause
    return TokenTable(tokens.tobytes().decode().split("\n"), rows, scales)
