"""Nearest vectors: exactly, by a matrix product, or in any LangChain vector store."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from inspect import signature
from typing import Any, Literal, Protocol, TypeVar, get_args
from uuid import UUID

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from kg_retrievers.deadline import call_foreign, seconds_left
from kg_retrievers.errors import (
    DamagedDataError,
    DatabaseError,
    DatabaseFullError,
    DatabaseLoginError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    KGRetrieversError,
    StaleIndexError,
)
from kg_retrievers.foreign import client_errors
from kg_retrievers.graph.cache import Immutable, LocalLock, check_picklable
from kg_retrievers.graph.columns import DAMAGED, Array
from kg_retrievers.redaction import hide_secrets

Result = TypeVar("Result")

#: After how many seconds a call is tried again, if the server could not be reached.
PAUSES = (0.1, 0.4)

#: The clients whose errors are read; those of other packages pass as they are.
_CLIENTS = ("asyncpg", "chromadb", "grpc", "httpcore", "httpx", "psycopg", "pymilvus", "sqlalchemy")

#: PostgreSQL's codes (its manual, appendix A), by their beginnings.
_STATES: dict[str, type[DatabaseError]] = {
    "08": DatabaseUnavailableError,
    "28": DatabaseLoginError,
    "3D000": DatabaseUnavailableError,
    "42501": DatabaseLoginError,
    "53100": DatabaseFullError,
    "53": DatabaseUnavailableError,
    "57014": DatabaseTimeoutError,
    "57P": DatabaseUnavailableError,
}

#: The messages of clients without codes; the first that fits counts.
_MESSAGES: tuple[tuple[str, type[DatabaseError]], ...] = (
    (
        r"authentication failed|no password supplied|pg_hba\.conf|role \".*\" does not exist|permission denied"
        r"|unauthori[sz]ed|forbidden|auth check failure|\b40[13]\b",
        DatabaseLoginError,
    ),
    (r"no space left|disk full|database or disk is full|could not extend file", DatabaseFullError),
    (
        r"connect|terminat|shutting down|starting up|server closed|unreachable|unavailable|disconnected"
        r"|refused|reset by peer|timed? ?out|does not exist on the server|\b50[234]\b"
        r"|resol(?:ve|ution)|name or service not known|getaddrinfo|nodename",
        DatabaseUnavailableError,
    ),
)

#: What happened, and what to do next.
_ADVICE: dict[type[DatabaseError], tuple[str, str]] = {
    DatabaseUnavailableError: ("cannot connect to the server", "Is it running, and is this its address?"),
    DatabaseLoginError: (
        "the server does not let this user in, or do this",
        "Give name and password of a user who may do this, by the environment: PGPASSWORD or ~/.pgpass of PostgreSQL, "
        "CHROMA_TOKEN, MILVUS_TOKEN.",
    ),
    DatabaseFullError: ("the server has no room", "Make room, and do it again: what was written stays."),
    DatabaseTimeoutError: (
        "the server stopped a statement that took too long",
        "Try again, or let this user's statements take longer (statement_timeout of PostgreSQL).",
    ),
}


@contextmanager
def store_errors(who: str) -> Iterator[None]:
    """Raise a typed error if the server of a vector store is away, lets nobody in, or has no room.

    Args:
        who: The name of the store, for the messages.

    Raises:
        DatabaseUnavailableError: If the server cannot be reached, or stopped meanwhile.
        DatabaseLoginError: If it wants another name or password, or the user may not do this.
        DatabaseFullError: If its disk is full.
        DatabaseTimeoutError: If it stopped a statement that took longer than it allows.
        ModelCallError: If the client failed with an error of Python's own. Other errors pass, without secrets.
    """
    with client_errors(who):
        try:
            yield
        except KGRetrieversError:
            raise
        except Exception as cause:
            if (kind := _kind_of(cause)) is None:
                raise
            hide_secrets(cause)
            reason = " ".join(str(cause).split()).partition(" (Background on this error")[0].partition(" [SQL: ")[0]
            happened, advice = _ADVICE[kind]
            raise kind(f"{who}: {happened} ({reason:.300}).", hint_python=advice) from cause


def _kind_of(error: BaseException) -> type[DatabaseError] | None:
    """Return the kind of an error, by the error and those that led to it; None for any other error."""
    chain = _chain(error)
    for one in chain:
        state = getattr(one, "sqlstate", None)
        if isinstance(state, str):
            return next((kind for start, kind in _STATES.items() if state.startswith(start)), None)
    if not any(isinstance(one, OSError) or type(one).__module__.partition(".")[0] in _CLIENTS for one in chain):
        return None
    said = " ".join(str(one) for one in chain)
    return next((kind for pattern, kind in _MESSAGES if re.search(pattern, said, re.IGNORECASE)), None)


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and all(one is not seen for seen in chain):
            chain.append(one)
            waiting += [getattr(one, "orig", None), one.__cause__, one.__context__]
    return chain


def tried_again(call: Callable[[], Result]) -> Result:
    """Return the result of a call; it is repeated after `PAUSES` if its server could not be reached.

    Raises:
        DatabaseUnavailableError: If the server could not be reached the last time either.
    """
    for pause in PAUSES:
        try:
            return call()
        except DatabaseUnavailableError:
            if seconds_left() <= pause:
                raise
            time.sleep(pause)
    return call()


Score = Literal["squared_l2", "l2", "cosine_distance", "cosine_similarity"]

#: More than the rounding error of a float32 product of unit vectors, which picks the rows to compute exactly.
SLACK = 1e-5

#: How many products are held at once, 256 MiB of them, unless one question alone needs more.
BLOCK = 1 << 26

#: How many rows are multiplied with several vectors at once: of 43,000 rows, 8 vectors take 14 ms instead of 24.
PRODUCT_ROWS = 1024

#: How many documents of a store are sent or asked for at once.
BATCH = 1024

#: How many documents one search in a store returns at most: Milvus returns no more.
MOST = 16_384

# Of the many vector stores, these search by vector and return scores; LangChain has no common name for it.
_SEARCHES = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")

# How many distances are computed at once, in the cache.
_DISTANCES = 128


def stale_store() -> StaleIndexError:
    """Return the error of a store that holds other names than those of the graph."""
    return StaleIndexError(
        "GraphIndex: the vector store does not hold the names of this graph. Empty it and build the index again."
    )


class NameSearch(Protocol):
    """Holds vectors with ids from 0 and finds the nearest ones.

    Attributes:
        rows: The number under which each id is held: integers of shape (n); None where the number is the id.
    """

    rows: Array | None

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest vectors to each of several.

        Args:
            vectors: float32, shape (q, d): unit rows.
            k: How many to find for each.

        Returns:
            Ids, int64, and L2 distances, float32 in [0, 2], both of shape (q, k') with k' <= k, ascending by
            distance, then id.
        """


class ExactSearch:
    """Compares with every vector. Equal vectors have a distance of exactly 0; ties go to the smallest ids.

    One pass of `n * d` multiplications per query vector: 43,000 names in 512 dimensions take about 5 ms.

    Args:
        vectors: float32, shape (m, d): unit rows; may be mapped from disk, and is never copied.
        rows: The row of each id: integers of shape (n), where some rows are those of nothing; by default row i is that
            of id i.
    """

    def __init__(self, vectors: Array, rows: Array | None = None) -> None:
        """Keep the vectors as they are."""
        self.vectors = np.asarray(vectors)  # indexing a numpy.memmap is several times slower
        self.rows = rows

    def __len__(self) -> int:
        """The number of ids."""
        return len(self.vectors if self.rows is None else self.rows)

    @property
    def columns(self) -> dict[str, Array]:
        """What is saved, by the end of its name."""
        return {"": self.vectors}

    @staticmethod
    def encoded(vectors: Array) -> dict[str, Array]:
        """Return the columns of vectors, by the ends of their names."""
        return {"": vectors}

    def vectors_of(self, ids: Array) -> Array:
        """Return the vectors of some ids."""
        found: Array = self.vectors[ids if self.rows is None else self.rows[ids]]
        return found

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest vectors; see `NameSearch.search`."""
        count = len(self)
        k = min(k, count)
        ids = np.empty((len(vectors), k), np.int64)
        distances = np.empty((len(vectors), k), np.float32)
        if not k:
            return ids, distances
        step = max(1, BLOCK // count)
        for start in range(0, len(vectors), step):
            block = self._products(vectors[start : start + step])
            if self.rows is not None:
                block = block[:, self.rows]
            for row, similarities in enumerate(block, start):
                least = np.partition(similarities, count - k)[count - k]
                near = np.flatnonzero(similarities >= least - SLACK)
                exact = self._distances(near, vectors[row])
                order = np.argsort(exact, kind="stable")[:k]
                if len(order) < k:  # a vector holds what is no number
                    raise DamagedDataError("GraphIndex: a vector is damaged.", hint_python=DAMAGED)
                ids[row], distances[row] = near[order], exact[order]
        return ids, distances

    def _products(self, asked: Array) -> Array:
        """Return the product of each of some vectors and each row; of several, in blocks, in half the time."""
        if len(asked) == 1:
            single: Array = asked @ self.vectors.T
            return single
        products = np.empty((len(self.vectors), len(asked)), np.float32)
        for start in range(0, len(products), PRODUCT_ROWS):
            rows = slice(start, start + PRODUCT_ROWS)
            np.matmul(self.vectors[rows], asked.T, out=products[rows])
        return np.ascontiguousarray(products.T)

    def _distances(self, ids: Array, vector: Array) -> Array:
        distances = np.empty(len(ids), np.float32)
        vector = vector.astype(np.float64)
        for start in range(0, len(ids), _DISTANCES):
            difference = self.vectors_of(ids[start : start + _DISTANCES]) - vector
            distances[start : start + _DISTANCES] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
        return distances


class KnownVectors(Embeddings):
    """Embeddings for a store whose texts are embedded already: they return the vectors that `put` hands them.

    Args:
        embeddings: Embeds all other texts.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        """Begin without vectors."""
        self._embeddings, self._lock = embeddings, LocalLock()
        self._known: dict[str, list[float]] = {}

    @contextmanager
    def knowing(self, texts: Sequence[str], vectors: Array) -> Iterator[None]:
        """Return these vectors for some texts in this block, for one thread at a time."""
        with self._lock:
            self._known = dict(zip(texts, vectors.tolist(), strict=True))
            try:
                yield
            finally:
                self._known = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        known = self._known
        if all(text in known for text in texts):
            return [known[text] for text in texts]
        return self._embeddings.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self._embeddings.embed_query(text)


class VectorStoreSearch(Immutable):
    """Searches in a LangChain vector store, for more names than one machine's memory holds.

    The results are as exact as the store is. The store must hold the names of one graph and nothing else, and embed
    texts with the embeddings of the index.

    Args:
        store: A store that searches by vector and returns scores, such as Chroma, FAISS, PGVectorStore, Milvus or
            InMemoryVectorStore.
        score: The kind of the store's scores: "squared_l2" (the default of Chroma and FAISS), "l2", "cosine_distance"
            (1 - cosine) or "cosine_similarity" (InMemoryVectorStore).

    Raises:
        InvalidArgumentError: If the store cannot search by vector with scores, or `score` is none of the four.
    """

    def __init__(self, store: VectorStore, score: Score) -> None:
        """Look for the store's method of searching."""
        if score not in get_args(Score):
            raise InvalidArgumentError(f"VectorStoreSearch: score must be one of {get_args(Score)}, but got {score!r}.")
        self.who = type(store).__name__
        by_vector = next((getattr(store, name) for name in _SEARCHES if hasattr(store, name)), None)
        if by_vector is None:
            raise InvalidArgumentError(f"VectorStoreSearch: {self.who} has none of the methods {', '.join(_SEARCHES)}.")
        self.store = store
        self.score = score
        self.rows: Array | None = None
        self._by_vector: Callable[..., list[tuple[Document, float]]] = by_vector
        #: The function that opens the store again in another process, and its arguments; None if it is not known.
        self.opened_by: tuple[Callable[..., VectorStoreSearch], tuple[Any, ...]] | None = None
        self._is_milvus = hasattr(store, "get_pks")  # it has no `get_by_ids`
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address, or else the store; a store that holds a connection raises an error."""
        if self.opened_by is not None:
            return *self.opened_by, {"rows": self.rows}
        hint = "Open the store in the other process and hand it in: GraphIndex.open(path, embeddings, store=...)."
        check_picklable(self.store, "VectorStoreSearch", hint)
        return VectorStoreSearch, (self.store, self.score), {"rows": self.rows}

    # --- documents ----------------------------------------------------------------------------------------------------

    def put(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        vectors: Array,
        batch_size: int = BATCH,
    ) -> None:
        """Put documents into the store, in batches, in place of those with the same ids.

        A store with `add_embeddings`, such as PGVectorStore and Milvus, and a store of `open_store` take the vectors.
        Any other store embeds the texts again.

        Args:
            keys: Their ids: UUIDs, the one form that every store takes.
            texts: Their texts.
            metadatas: Their metadata: texts and numbers.
            vectors: float32, shape (texts, d): unit rows.
            batch_size: How many documents one call puts.

        Raises:
            DatabaseError: If the server of the store cannot be reached, lets nobody in, or has no room.
        """
        add: Any = getattr(self.store, "add_embeddings", None)
        takes_vectors = add is not None and {"texts", "embeddings"} <= signature(add).parameters.keys()
        for start in range(0, len(keys), batch_size):
            batch = slice(start, start + batch_size)
            ids, some, about = list(keys[batch]), list(texts[batch]), list(metadatas[batch])
            if self._is_milvus and self.get(ids):  # it would keep both
                self._called(self.store.delete, ids)
            if takes_vectors:
                self._called(add, some, vectors[batch].tolist(), metadatas=about, ids=ids)
            elif isinstance(self.store.embeddings, KnownVectors):
                with self.store.embeddings.knowing(some, vectors[batch]):
                    self._called(self.store.add_texts, some, metadatas=about, ids=ids)
            else:
                self._called(self.store.add_texts, some, metadatas=about, ids=ids)

    def get(self, keys: Sequence[str]) -> dict[str, Document]:
        """Return the documents with some ids, by id.

        Raises:
            NotImplementedError: If the store cannot look up by id.
            DatabaseError: As of `put`.
        """
        found: dict[str, Document] = {}
        for start in range(0, len(keys), BATCH):
            documents = self._get(list(keys[start : start + BATCH]))
            found |= {document.id: document for document in documents if document.id is not None}
        return found

    def _get(self, keys: list[str]) -> list[Document]:
        store: Any = self.store
        if not self._is_milvus:
            documents: list[Document] = self._called(store.get_by_ids, keys)
            return documents
        if not self._called(store.client.has_collection, store.collection_name):
            return []
        rows = [dict(row) for row in self._called(store.client.get, store.collection_name, keys)]
        for row in rows:
            row.pop(store._vector_field, None)
            row.pop("$meta", None)
        return [Document(row.pop(store._text_field), id=row.pop(store._primary_field), metadata=row) for row in rows]

    def near(self, vector: Array, k: int) -> tuple[list[Document], Array]:
        """Return the nearest documents to a vector with their L2 distances, float32, in the order of the store.

        Args:
            vector: float32, shape (d): a unit vector.
            k: How many to find, `MOST` at most; an approximate index may find fewer.

        Raises:
            DatabaseError: As of `put`.
            InvalidArgumentError: If the store returns something else than documents with scores.
        """
        hits = self._called(self._by_vector, vector.tolist(), k=min(k, MOST))
        try:
            documents = [document for document, _ in hits]
            scores = np.array([score for _, score in hits], np.float64)
            if not np.isfinite(scores).all():
                raise ValueError("a score is no finite number")
        except (TypeError, ValueError) as cause:
            raise self._unreadable(cause) from cause
        return documents, self._distances(scores).astype(np.float32)

    def _called(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the store, until the deadline at most; call it again if its server was away."""
        if self.opened_by is not None and self._process != os.getpid():
            raise DatabaseUnavailableError(
                f"{self.who}: its connections are those of the process that forked this one.",
                hint_python="Open the store in this process, by open_store.",
            )

        def call() -> Any:
            with store_errors(self.who):
                return call_foreign(function, *args, **kwargs)

        return tried_again(call)

    # --- names by number ----------------------------------------------------------------------------------------------

    def with_rows(self, rows: Array | None) -> VectorStoreSearch:
        """Return a search in the same store, which holds each id under another number.

        Args:
            rows: The number of each id: integers of shape (n); numbers of the store that are none of these are not
                found. By default the number is the id.
        """
        search = VectorStoreSearch(self.store, self.score)
        search.rows, search.opened_by = rows, self.opened_by
        return search

    def add(self, ids: Sequence[int], texts: Sequence[str], vectors: Array, batch_size: int = BATCH) -> None:
        """Put texts with their ids into the store; see `put`."""
        metadatas = [{"number": int(id)} for id in ids]
        self.put([_key(id) for id in ids], texts, metadatas, vectors, batch_size)

    def remove(self, ids: Sequence[int]) -> None:
        """Take texts out of the store; a store that cannot forget keeps them, and they are not found."""
        with suppress(NotImplementedError):
            self._called(self.store.delete, [_key(id) for id in ids])

    def holds(self, ids: Sequence[int], texts: Sequence[str]) -> bool:
        """Return whether the store has these texts under these ids; true if it cannot look up by id."""
        keys = [_key(id) for id in ids]
        try:
            documents = self.get(keys)
        except NotImplementedError:
            return True
        found = {key: document.page_content for key, document in documents.items()}
        return found == dict(zip(keys, texts, strict=True))

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest vectors; see `NameSearch.search`. Cut to the least number found for any."""
        rows = [self._search(vector, k) for vector in vectors]
        k = min((len(ids) for ids, _ in rows), default=0)
        return (
            np.array([ids[:k] for ids, _ in rows], np.int64).reshape(len(rows), k),
            np.array([distances[:k] for _, distances in rows], np.float32).reshape(len(rows), k),
        )

    def _search(self, vector: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest names of the index; look further where the store still holds names that are gone."""
        count = k
        numbers, distances = self._found(vector, count)
        if self.rows is None or (numbers < 0).any():  # what has no number is not of an index
            return numbers, distances
        while (is_known := self._ids_of(numbers) >= 0).sum() < min(k, len(self.rows)) and len(numbers) == count:
            count *= 2
            numbers, distances = self._found(vector, count)
        ids, distances = self._ids_of(numbers)[is_known], distances[is_known]
        order = np.lexsort((ids, distances))[:k]
        return ids[order], distances[order]

    def _found(self, vector: Array, k: int) -> tuple[Array, Array]:
        """Return the nearest numbers and their distances, ascending."""
        documents, distances = self.near(vector, k)
        try:
            ids = np.array([document.metadata.get("number", -1) for document in documents], np.int64)
        except (AttributeError, OverflowError, TypeError, ValueError) as cause:
            raise self._unreadable(cause) from cause
        order = np.lexsort((ids, distances))
        return ids[order], distances[order]

    def _unreadable(self, cause: Exception) -> InvalidArgumentError:
        wanted = "Documents with scores, each with the integer of `metadata['number']`"
        return InvalidArgumentError(f"VectorStoreSearch: wanted {wanted} from {self.who}, but {cause}.")

    def _ids_of(self, numbers: Array) -> Array:
        """Return the ids that have some numbers, -1 for that of nothing."""
        ids: Array = self._ids[np.clip(numbers, -1, len(self._ids) - 1)]
        return ids

    @cached_property
    def _ids(self) -> Array:
        """The id of each number, -1 for that of nothing; the last one is that of all further numbers."""
        assert self.rows is not None
        ids = np.full(int(self.rows.max(initial=-1)) + 2, -1, np.int64)
        ids[self.rows] = np.arange(len(self.rows))
        return ids

    def _distances(self, scores: Array) -> Array:
        if self.score == "l2":
            return scores
        if self.score == "cosine_distance":
            scores = 2 * scores
        elif self.score == "cosine_similarity":
            scores = 2 - 2 * scores
        distances: Array = np.sqrt(np.maximum(scores, 0))
        return distances


def _key(id: int) -> str:
    """Write an id as a UUID, the one form that every store takes."""
    return str(UUID(int=int(id)))
