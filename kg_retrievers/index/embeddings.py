"""Embed texts and cache their vectors on disk.

Embeddings are hashed letters, models on this machine, or the token table.
"""

from __future__ import annotations

import errno
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TypeVar
from unicodedata import category, combining, normalize
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from rich.console import Console
from rich.progress import track
from safetensors import SafetensorError, safe_open

from kg_retrievers.bulk import Workers, check_workers, map_batches
from kg_retrievers.deadline import call_foreign
from kg_retrievers.errors import (
    FileWriteError,
    IndexLoadError,
    InvalidArgumentError,
    MissingExtraError,
    ModelLoadError,
    named_arguments,
)
from kg_retrievers.file_writing import raise_write_errors, write_error
from kg_retrievers.foreign import client_errors
from kg_retrievers.graph.cache import Immutable, LocalLock, Recent
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.paths import checked_path

#: The table of the package: three tensors, `tokens` (UTF-8, one token a line), `rows` (int8) and `scales` (float16).
TABLE = Path(__file__).parent / "data" / "token_table.safetensors"

#: The id of every token that the table lacks. Its row is zero.
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


#: The contents that are read from a file of the package.
_Read = TypeVar("_Read")


class TokenTable(Immutable):
    """A vector for each token, with a tokenizer.

    The tokens of a text are the tokens of BERT's uncased tokenizer.

    Case and accents go, and each punctuation mark is a word. A word is the longest token that begins it, then the
    longest that continues it, and so on. A word that cannot be spelt so is one unknown token. Threads may share a
    table.

    Args:
        tokens: The tokens, with "##" before tokens that continue a word. The first stands for all unknown ones.
        rows: int8, shape (tokens, dimension).
        scales: float16, shape (tokens): the factor of each row.

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
        """Pickle the arrays, without the words that were remembered."""
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
    """Return the words of a text as BERT's uncased tokenizer finds them.

    It drops case and accents, and separates punctuation.

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
    """Return the table of the package, read once per process.

    It holds 256 numbers for each of 27,000 tokens.

    It is distilled from all-MiniLM-L6-v2 (Apache-2.0) by `benchmarks/distill_token_table.py`.

    Raises:
        IndexLoadError: If the file is missing or damaged.
    """
    return read_packaged(TABLE, "token table", _table_of)


def _table_of(tensors: Mapping[str, Array]) -> TokenTable:
    return TokenTable(tensors["tokens"].tobytes().decode().split("\n"), tensors["rows"], tensors["scales"])


#: How many texts are embedded at once.
_TEXTS_AT_ONCE = 1024


def mean_rows(table: TokenTable, texts: Sequence[str]) -> Array:
    """Return the mean row of each text's tokens.

    Each mean is a unit vector, or zero for an empty text.
    """
    ids = [known_ids(table, text) for text in texts]
    means = sums_of_rows(table, ids)
    for mean, of_text in zip(means, ids, strict=True):
        if of_text:
            mean /= np.float32(len(of_text))
            mean /= np.linalg.norm(mean) + 1e-9
    return means


def known_ids(table: TokenTable, text: str) -> list[int]:
    """Return the ids of the tokens of a text that the table has."""
    return [id for id in table.token_ids(text) if id != UNKNOWN]


def sums_of_rows(table: TokenTable, ids: Sequence[Sequence[int]]) -> Array:
    """Return the sum of the rows of the tokens of each text, (texts, e)."""
    sums = np.zeros((len(ids), table.dimension), np.float32)
    lengths = np.array([len(of_text) for of_text in ids], np.int64)
    for first in range(0, len(ids), _TEXTS_AT_ONCE):
        full = first + np.flatnonzero(lengths[first : first + _TEXTS_AT_ONCE])
        starts = np.cumsum(lengths[full]) - lengths[full]
        flat = list(chain.from_iterable(ids[first : first + _TEXTS_AT_ONCE]))
        if flat:
            sums[full] = np.add.reduceat(table.rows(flat), starts, axis=0)
    return sums


def read_packaged(path: Path, what: str, make: Callable[[dict[str, Array]], _Read]) -> _Read:
    """Return an object made of the tensors of a file of the package.

    Args:
        path: The file, in the format of safetensors.
        what: The contents of the file, for the message.
        make: Makes the object of the tensors by name.

    Raises:
        IndexLoadError: If the file is missing or damaged, or lacks a tensor.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            return make({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except (OSError, SafetensorError, KeyError) as cause:
        raise IndexLoadError(f"the {what} of the package cannot be read ({cause}). Install it again.", path) from cause


#: The low byte of SQLite's error codes for a file that cannot be written, each with the system's error if there is one.
_UNWRITABLE: dict[int, int | None] = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: None,
}


class EmbeddingCache:
    """Keep vectors on disk by embedding name and text.

    Threads and processes may share its one SQLite file.

    Args:
        path: The file, which is made if it is missing. None for memory alone.
        in_memory: How many vectors stay in memory as well, the latest ones.

    Raises:
        IndexLoadError: From every method, if the file is damaged, locked for a minute or no SQLite file.
        FileWriteError: From every method, if the disk is full, or this user may not write there.
    """

    def __init__(self, path: str | Path | None, in_memory: int = 0) -> None:
        """Make the file if it is missing."""
        self.path = None if path is None else checked_path(path, FileWriteError)
        self._recent: Recent[Array] = Recent(in_memory)
        if self.path:
            with raise_write_errors(self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
        self._run(
            "CREATE TABLE IF NOT EXISTS vectors (name TEXT, text TEXT, vector BLOB, PRIMARY KEY (name, text))", [()]
        )

    def get(self, name: str, texts: Sequence[str]) -> dict[str, Array]:
        """Return the vectors that are known, float32 of shape (d), by text."""

        def read(missing: list[tuple[str, str]]) -> dict[tuple[str, str], Array]:
            rows = self._run("SELECT text, vector FROM vectors WHERE name = ? AND text = ?", missing)
            return {(name, text): np.frombuffer(vector, np.float32) for text, vector in rows}

        found = self._recent.get_or_make([(name, text) for text in texts], read)
        return {text: vector for (_, text), vector in found.items()}

    def put(self, name: str, vectors: Mapping[str, Array]) -> None:
        """Keep vectors, float32 of shape (d), by text."""
        self._recent.keep({(name, text): vector for text, vector in vectors.items()})
        rows = [(name, text, vector.tobytes()) for text, vector in vectors.items()]
        self._run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def _run(self, statement: str, rows: Sequence[Sequence[str | bytes]]) -> list[tuple[str, bytes]]:
        if self.path is None:
            return []
        try:
            with (
                raise_write_errors(self.path),
                closing(sqlite3.connect(self.path, timeout=60)) as database,
                database,
            ):
                return [found for row in rows for found in database.execute(statement, row)]
        except sqlite3.DatabaseError as cause:
            code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
            if code in _UNWRITABLE:
                raise write_error(self.path, str(cause), _UNWRITABLE[code]) from cause
            remedy = "Name another file." if code == sqlite3.SQLITE_NOTADB else "Delete the file, or name another."
            raise IndexLoadError(f"cannot be used as an embedding cache ({cause}). {remedy}", self.path) from cause


#: Lengths of the character n-grams. Of 1,000 names of MetaQA with two random typos each, 89 % are nearest to the right
#: one of 43,234 names with lengths 2 to 4, and 82 % with 3 to 5.
NGRAM_SIZES = (2, 3, 4)

#: The number of axes. 1024 axes find 90 % of the names instead of 89 %, for twice the memory and time.
HASHED_DIMENSION = 512

_WORD = re.compile(r"[^\W_]+")

# The attributes in which LangChain's embedding classes name their model, and the length of its vectors; none holds a
# key or a token.
_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "model_path", "repo_id", "deployment")
_LENGTH_ATTRIBUTES = ("dimension", "dimensions", "size")


def folded(text: str) -> str:
    """Return the text without case and accents.

    Example:
        >>> folded("Amélie POULAIN")
        'amelie poulain'
    """
    if not text.isascii():
        text = "".join(character for character in normalize("NFKD", text) if not combining(character))
    return text.casefold()


class ArrayEmbeddings(Embeddings, ABC):
    """Embeddings that make one array, which `embed` takes as it is."""

    @abstractmethod
    def embed_array(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text, shape (texts, dimension)."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a unit vector for each text."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return a unit vector, the same as for a document."""
        return self.embed_documents([text])[0]


@named_arguments
class HashedEmbeddings(ArrayEmbeddings):
    """Embed texts as hashed words and character n-grams.

    They need no download and no training, and give the same vectors on every machine.

    Each word and each n-gram of the folded text, with marks at its two ends, adds `±(1 + ln(count))` to one axis. Its
    CRC-32 gives axis and sign. Texts that share letters are near, whatever they mean: good for names, typos and
    repeated wordings, blind to synonyms. A text without letters and digits counts as one word. An empty text is the
    first axis, so that it is as far from all others as unrelated texts are.

    Args:
        dimension: The number of axes.

    Raises:
        InvalidArgumentError: If the dimension is less than 1 or more than a million.

    Example:
        >>> import numpy as np
        >>> a, b, c = np.array(HashedEmbeddings().embed_documents(["Spike Jonze", "spike jonez", "Her"]))
        >>> bool(a @ b > 0.5), bool(abs(a @ c) < 0.2)
        (True, True)
    """

    #: Changes with the algorithm, so that an index built with an earlier one is found stale.
    model = "words and 2-4-grams, 1"

    def __init__(self, dimension: int = HASHED_DIMENSION) -> None:
        """Check the dimension, and load nothing."""
        check_integer(dimension, "HashedEmbeddings: dimension", 1, 1_000_000)
        self.dimension = dimension

    def embed_array(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text, float64 of shape (texts, dimension)."""
        hashes: list[int] = []
        counts: list[int] = []
        sizes: list[int] = []
        for text in texts:
            features = _features(text)
            hashes += map(_hash, features)
            counts += features.values()
            sizes.append(len(features))
        axes = np.array(hashes, np.int64)
        weights = 1 + np.log(np.array(counts, np.float64))
        weights[axes >> 31 == 1] *= -1
        rows = np.repeat(np.arange(len(texts)), sizes)
        positions = rows * self.dimension + axes % self.dimension
        vectors = np.bincount(positions, weights, len(texts) * self.dimension).reshape(-1, self.dimension)
        vectors[~vectors.any(axis=1), 0] = 1
        unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def _features(text: str) -> Counter[str]:
    words = _WORD.findall(folded(text)) or text.split()
    if not words:
        return Counter()
    marked = f"^{' '.join(words)}$"
    features = Counter(marked[i : i + size] for size in NGRAM_SIZES for i in range(len(marked) - size + 1))
    features.update(words)
    return features


@lru_cache(maxsize=1 << 18)
def _hash(feature: str) -> int:
    return crc32(feature.encode(errors="surrogatepass"))


class SentenceTransformerEmbeddings(Immutable, Embeddings):
    """A model of the package sentence-transformers, run on this machine (extra `local`).

    It is pickled by its name, and another process loads the model again.

    Args:
        model: A model's name on Hugging Face, or a folder.
        trust_remote_code: Whether to run the code that the model brings, which can do whatever you can.

    Raises:
        MissingExtraError: If sentence-transformers is not installed.
        InvalidArgumentError: If the model brings code, and `trust_remote_code` is not set.
    """

    def __init__(self, model: str | Path, *, trust_remote_code: bool = False) -> None:
        """Load the model."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as cause:
            raise MissingExtraError("SentenceTransformerEmbeddings", "local") from cause
        self.model, self.trust_remote_code = str(model), trust_remote_code
        if _brings_modules(checked_path(model, ModelLoadError)) and not trust_remote_code:
            raise _untrusted(self.model)
        try:
            self._encoder = SentenceTransformer(self.model, trust_remote_code=trust_remote_code)
        except OSError as cause:  # of transformers, if neither a folder nor the network has it
            raise ModelLoadError(
                f"cannot be loaded: {str(cause).splitlines()[0]:.300}",
                self.model,
                hint_python="Name a folder that holds the model. Without the network, no other name can be loaded.",
            ) from cause
        except ValueError as cause:  # of transformers
            if trust_remote_code or "trust_remote_code" not in str(cause):
                raise
            raise _untrusted(self.model) from cause
        self._lock = LocalLock()  # a tokenizer must not be used by two threads at once

    def __reduce__(self) -> tuple[partial[SentenceTransformerEmbeddings], tuple[str]]:
        """Pickle the name of the model."""
        kind = partial(SentenceTransformerEmbeddings, trust_remote_code=self.trust_remote_code)
        return kind, (self.model,)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, sorted by length inside.

        The sorting is done by sentence-transformers.
        """
        with self._lock:
            vectors: list[list[float]] = self._encoder.encode_document(texts, show_progress_bar=False).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return a vector, with the model's own prompt for questions if it has one."""
        with self._lock:
            vector: list[float] = self._encoder.encode_query(text, show_progress_bar=False).tolist()
        return vector

    def embed_tokens(self, texts: list[str]) -> list[Array]:
        """Return the token states of each text after the last layer.

        They are float32, shape (tokens, d).
        """
        with self._lock:
            states = self._encoder.encode(texts, output_value="token_embeddings", show_progress_bar=False)
        return [of_text.float().cpu().numpy() for of_text in states]


def _brings_modules(folder: Path) -> bool:
    """Whether a folder names modules of its own, which sentence-transformers would import unasked."""
    modules = folder / "modules.json"
    if not modules.is_file():
        return False
    rows = json.loads(modules.read_bytes())
    return any(not str(row.get("type")).startswith("sentence_transformers.") for row in rows)


def _untrusted(model: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"local_embeddings: the model {model} brings code of its own, which is not run unasked.",
        hint_python="If you trust it: local_embeddings(model, trust_remote_code=True).",
        hint_shell="If you trust it, use Python: local_embeddings(model, trust_remote_code=True).",
    )


@named_arguments
def local_embeddings(
    model: str | Path = "sentence-transformers/all-MiniLM-L6-v2", *, trust_remote_code: bool = False
) -> Embeddings:
    """Return sentence embeddings that run on this machine.

    They need the extra `local`. The model is downloaded once.

    Args:
        model: A model's name on Hugging Face, or a folder.
        trust_remote_code: Whether to run the code that the model brings, as "Alibaba-NLP/gte-large-en-v1.5" does. Such
            code can do whatever you can.

    Raises:
        MissingExtraError: If sentence-transformers is not installed.
        InvalidArgumentError: If the model brings code, and `trust_remote_code` is not set.
    """
    return SentenceTransformerEmbeddings(model, trust_remote_code=trust_remote_code)


def embedding_name(embeddings: Embeddings) -> str:
    """Return the class of embeddings and the model, as far as they name it. Holds no secrets.

    Example:
        >>> embedding_name(HashedEmbeddings(256))
        "kg_retrievers.index.embeddings.HashedEmbeddings(model='words and 2-4-grams, 1', dimension=256)"
    """
    embeddings = _unwrapped(embeddings)
    values = {name: getattr(embeddings, name, None) for name in _MODEL_ATTRIBUTES + _LENGTH_ATTRIBUTES}
    known = (f"{name}={value!r}" for name, value in values.items() if isinstance(value, str | int))
    return f"{type(embeddings).__module__}.{type(embeddings).__qualname__}({', '.join(known)})"


def _unwrapped(embeddings: Embeddings) -> Embeddings:
    """Return the embeddings that LangChain's CacheBackedEmbeddings call."""
    wrapped = getattr(embeddings, "underlying_embeddings", None)
    return _unwrapped(wrapped) if isinstance(wrapped, Embeddings) else embeddings


def embed(
    embeddings: Embeddings,
    texts: Sequence[str],
    *,
    batch_size: int = 1024,
    cache: EmbeddingCache | None = None,
    progress: bool = False,
    workers: Workers | None = None,
) -> Array:
    """Embed texts in batches and check the vectors.

    Args:
        embeddings: Any LangChain embeddings. Only `embed_documents` is called, with each distinct text of a batch once.
        texts: The texts.
        batch_size: How many texts go into one call.
        cache: Supplies known vectors and keeps new ones.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that embed batches. By default, this process.

    Returns:
        float32, shape (texts, dimension): unit rows, or shape (0, 0) for no texts.

    Raises:
        ModelCallError: If the client of the embeddings fails with an error of Python's own, as a KeyError. Errors of
            its own classes pass, without secrets.
        InvalidArgumentError: If the batch size is less than 1, or the embeddings return too few or too many vectors,
            vectors of different lengths, not-a-number, infinity, or a vector of zeros.
    """
    batches = embed_batches(embeddings, texts, batch_size=batch_size, cache=cache, progress=progress, workers=workers)
    return np.concatenate([*batches] or [np.empty((0, 0), np.float32)])


def embed_batches(
    embeddings: Embeddings,
    texts: Sequence[str],
    *,
    batch_size: int = 1024,
    cache: EmbeddingCache | None = None,
    progress: bool = False,
    workers: Workers | None = None,
) -> Iterator[Array]:
    """Yield the vectors of each batch of texts.

    See `embed`.

    Args:
        embeddings: As of `embed`.
        texts: The texts. A slice of them is taken for each batch.
        batch_size: As of `embed`.
        cache: As of `embed`.
        progress: As of `embed`.
        workers: As of `embed`.
    """
    check_integer(batch_size, "embed: batch_size")
    check_workers("embed", workers)
    starts, name, width = range(0, len(texts), batch_size), embedding_name(embeddings), 0
    waiting = deque[tuple[Sequence[str], dict[str, Array], list[str]]]()

    def missing() -> Iterator[list[str]]:
        for first in starts:
            some = texts[first : first + batch_size]
            known = cache.get(name, some) if cache else {}
            waiting.append((some, known, [text for text in dict.fromkeys(some) if text not in known]))
            yield waiting[-1][-1]

    made = map_batches(partial(_unit_rows, embeddings), missing(), workers)
    if progress:
        made = iter(track(made, "Embedding", total=len(starts), console=Console(stderr=True)))
    for rows in made:
        some, known, new = waiting.popleft()
        if cache and new:
            cache.put(name, dict(zip(new, rows, strict=True)))
        known |= zip(new, rows, strict=True)
        lengths = sorted({len(row) for row in known.values()} | ({width} if width else set()))
        if len(lengths) > 1:
            raise _bad(embeddings, f"vectors of {lengths[0]} and of {lengths[-1]} numbers")
        width = lengths[0]
        yield rows if len(new) == len(some) else np.array([known[text] for text in some], np.float32)


def _unit_rows(embeddings: Embeddings, texts: list[str]) -> Array:
    """Return a unit vector for each distinct text.

    There is no call for no texts.
    """
    if not texts:
        return np.empty((0, 0), np.float32)
    own = type(embeddings).embed_documents  # of a subclass of somebody else, it must be called
    if isinstance(embeddings, ArrayEmbeddings) and own is ArrayEmbeddings.embed_documents:
        made: Array = embeddings.embed_array(texts).astype(np.float32, copy=False)
        return made
    rows = _rows(embeddings, texts)
    if len(rows) != len(texts):
        raise _bad(embeddings, f"{len(rows)} vectors for {len(texts)} texts")
    if len({len(row) for row in rows}) > 1:
        raise _bad(embeddings, "vectors of different lengths")
    try:
        vectors = np.asarray(rows, np.float64)
    except (TypeError, ValueError, OverflowError) as cause:
        raise _bad(embeddings, "something else than numbers") from cause
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    for text, norm in zip(texts, norms[:, 0], strict=True):
        if not 0 < norm < np.inf:
            raise _bad(embeddings, f"a vector for {text!r} whose length is {norm}")
    unit: Array = (vectors / norms).astype(np.float32)
    return unit


def _rows(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """Call the embeddings, at most until the deadline.

    Errors of their client pass without secrets.
    """
    with client_errors(type(embeddings).__name__):
        rows = call_foreign(embeddings.embed_documents, texts)
    if not isinstance(rows, Sequence | np.ndarray) or not all(isinstance(row, Sequence | np.ndarray) for row in rows):
        raise _bad(embeddings, "no list of vectors")
    return list(rows)


def _bad(embeddings: Embeddings, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{type(embeddings).__name__}.embed_documents returned {what}; wanted one finite vector other than zero "
        "for each text, all of the same length."
    )
