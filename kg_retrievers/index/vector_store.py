"""Documents by id and nearest documents, in any LangChain vector store."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from kg_retrievers import errors
from kg_retrievers.deadline import call_foreign, seconds_left
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.foreign import client_errors
from kg_retrievers.graph.cache import Immutable, check_picklable
from kg_retrievers.graph.columns import Array
from kg_retrievers.redaction import causes_of, hide_secrets

Result = TypeVar("Result")

#: After how many seconds a call is tried again, if the server could not be reached.
PAUSES = (0.1, 0.4)

#: The clients whose errors are read. Errors of other packages pass as they are.
_CLIENTS = ("asyncpg", "chromadb", "grpc", "httpcore", "httpx", "psycopg", "pymilvus", "sqlalchemy")


class _Failure(NamedTuple):
    """A kind of failure, with its code or message and our words for it."""

    signs: str
    kind: type[errors.DatabaseError]
    happened: str
    advice: str


#: The first that fits counts: by PostgreSQL's codes (its manual, appendix A), or by messages of clients without codes.
_FAILURES = (
    _Failure(
        r"^SQLSTATE (28|42501)|authentication failed|no password supplied|pg_hba\.conf|role \".*\" does not exist"
        r"|permission denied|unauthori[sz]ed|forbidden|auth check failure|\b40[13]\b",
        errors.DatabaseLoginError,
        "the server does not let this user in, or do this",
        "Give name and password of a user who may do this, by the environment: PGPASSWORD or ~/.pgpass of PostgreSQL, "
        "CHROMA_TOKEN, MILVUS_TOKEN.",
    ),
    _Failure(
        r"^SQLSTATE 53100|no space left|disk full|database or disk is full|could not extend file",
        errors.DatabaseFullError,
        "the server has no room",
        "Make room, and do it again: what was written stays.",
    ),
    _Failure(
        "^SQLSTATE 57014",
        errors.DatabaseTimeoutError,
        "the server stopped a statement that took too long",
        "Try again, or let this user's statements take longer (statement_timeout of PostgreSQL).",
    ),
    _Failure(
        r"^SQLSTATE (08|3D000|53|57P)|connect|terminat|shutting down|starting up|server closed|unreachable"
        r"|unavailable|refused|reset by peer|timed? ?out|does not exist on the server|\b50[234]\b"
        r"|resol(?:ve|ution)|name or service not known|getaddrinfo|nodename",
        errors.DatabaseUnavailableError,
        "cannot connect to the server",
        "Is it running, and is this its address?",
    ),
)


@contextmanager
def store_errors(who: str) -> Iterator[None]:
    """Raise a typed error if the server of a vector store fails.

    It may be away, let nobody in, or have no room.

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
        except errors.KGRetrieversError:
            raise
        except Exception as cause:
            if (failure := _failure(cause)) is None:
                raise
            hide_secrets(cause)
            reason = " ".join(str(cause).split()).partition(" (Background on this error")[0].partition(" [SQL: ")[0]
            message = f"{who}: {failure.happened} ({reason:.300})."
            raise failure.kind(message, hint_python=failure.advice) from cause


def _failure(error: BaseException) -> _Failure | None:
    """Return the kind of an error, or None for any other error.

    The kind follows from the error and the errors that led to it.
    """
    chain = causes_of(error)
    states = [state for one in chain if isinstance(state := getattr(one, "sqlstate", None), str)]
    clients = {type(one).__module__.partition(".")[0] for one in chain}.intersection(_CLIENTS)
    if not (states or clients or any(isinstance(one, OSError) for one in chain)):
        return None
    said = f"SQLSTATE {states[0]}" if states else " ".join(map(str, chain))
    return next((failure for failure in _FAILURES if re.search(failure.signs, said, re.IGNORECASE)), None)


def tried_again(call: Callable[[], Result]) -> Result:
    """Return the result of a call.

    It is repeated after `PAUSES` if its server could not be reached.

    Raises:
        DatabaseUnavailableError: If the server could not be reached the last time either.
    """
    for pause in PAUSES:
        try:
            return call()
        except errors.DatabaseUnavailableError:
            if seconds_left() <= pause:
                raise
            time.sleep(pause)
    return call()


Score = Literal["squared_l2", "l2", "cosine_distance", "cosine_similarity"]

#: How many documents of a store are sent or asked for at once.
BATCH = 1024

#: How many documents one search in a store returns at most: Milvus returns no more.
MOST = 16_384

# Of the many vector stores, these search by vector and return scores; LangChain has no common name for it.
_SEARCHES = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


class VectorStoreSearch(Immutable):
    """Searches in a LangChain vector store, for more names than one machine's memory holds.

    The results are as exact as the store is. The store must embed texts with the embeddings of the index, and hold the
    names of one graph and nothing else.

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
        self._by_vector: Callable[..., list[tuple[Document, float]]] = by_vector
        #: The function that opens the store again in another process, and its arguments. None if it is not known.
        self.opened_by: tuple[Callable[..., VectorStoreSearch], tuple[Any, ...]] | None = None
        self._is_milvus = hasattr(store, "get_pks")  # it has no `get_by_ids`
        self._upsert: Any = getattr(getattr(store, "_collection", None), "upsert", None)  # of Chroma
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address, or else the store.

        A store that holds a connection raises an error.
        """
        if self.opened_by is not None:
            return self.opened_by
        hint = "Open the store in the other process and hand it in: GraphIndex.connect(executor, embeddings, store)."
        check_picklable(self.store, "VectorStoreSearch", hint)
        return VectorStoreSearch, (self.store, self.score)

    def put(self, documents: Sequence[Document], vectors: Array) -> None:
        """Put documents into the store, in batches.

        They replace documents with the same ids.

        Chroma and a store with `add_embeddings`, such as PGVectorStore and Milvus, take the vectors. Any other store
        embeds the texts again.

        Args:
            documents: The documents. Their ids are UUIDs, the one form that every store takes, and their metadata are
                texts and numbers.
            vectors: float32, shape (documents, d): unit rows.

        Raises:
            DatabaseError: If the server of the store cannot be reached, lets nobody in, or has no room.
        """
        add: Any = getattr(self.store, "add_embeddings", None)
        takes_vectors = add is not None and {"texts", "embeddings"} <= signature(add).parameters.keys()
        for start in range(0, len(documents), BATCH):
            some, rows = documents[start : start + BATCH], vectors[start : start + BATCH]
            texts, ids = [one.page_content for one in some], [str(one.id) for one in some]
            given = {"metadatas": [one.metadata for one in some], "ids": ids}
            if self._is_milvus and self.get(ids):  # it would keep both
                self._called(self.store.delete, ids)
            if takes_vectors:
                self._called(add, texts, rows.tolist(), **given)
            elif self._upsert is not None:
                self._called(self._upsert, embeddings=rows, documents=texts, **given)
            else:
                self._called(self.store.add_texts, texts, **given)

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
        """Return the nearest documents to a vector with their L2 distances.

        The distances are float32, and the order is the store's.

        Args:
            vector: float32, shape (d): a unit vector.
            k: How many to find, `MOST` at most. An approximate index may find fewer.

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
            message = f"VectorStoreSearch: wanted Documents with scores from {self.who}, but {cause}."
            raise InvalidArgumentError(message) from cause
        squares = {
            "l2": scores**2,
            "squared_l2": scores,
            "cosine_distance": 2 * scores,
            "cosine_similarity": 2 - 2 * scores,
        }
        return documents, np.sqrt(np.maximum(squares[self.score], 0)).astype(np.float32)

    def _called(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the store, until the deadline at most.

        It is called again if its server was away.
        """
        if self.opened_by is not None and self._process != os.getpid():
            raise errors.DatabaseUnavailableError(
                f"{self.who}: its connections are those of the process that forked this one.",
                hint_python="Open the store in this process, by open_store.",
            )

        def call() -> Any:
            with store_errors(self.who):
                return call_foreign(function, *args, **kwargs)

        return tried_again(call)
