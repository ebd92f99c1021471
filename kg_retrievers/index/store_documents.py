"""The documents of a LangChain vector store: put with vectors that are made already, got by id, found by vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from kg_retrievers.deadline import call_foreign
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.store_errors import store_errors, tried_again

#: How many documents are sent or asked for at once; fewer where a store takes fewer.
BATCH = 1024

#: How many rows Milvus returns at most (its `quotaAndLimits.limits.topK`).
MILVUS_MOST = 16_384

# Of the many vector stores, these search by vector and return scores; LangChain has no common name for it.
_SEARCHES = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


class StoreDocuments:
    """Reads and writes the documents of a vector store; the one place that knows how stores differ.

    Vectors are handed in where a store takes them: Chroma, Milvus, and what has `add_embeddings(texts, embeddings,
    metadatas=, ids=)`, as PGVectorStore and PGVector. Any other store embeds the texts itself.

    Args:
        store: The store.

    Raises:
        InvalidArgumentError: If the store cannot search by vector with scores.
    """

    def __init__(self, store: VectorStore) -> None:
        """Look for what the store can do."""
        self.store: Any = store
        self.who = type(store).__name__
        by_vector = next((getattr(store, name) for name in _SEARCHES if hasattr(store, name)), None)
        if by_vector is None:
            raise InvalidArgumentError(f"VectorStoreSearch: {self.who} has none of the methods {', '.join(_SEARCHES)}.")
        self._by_vector: Callable[..., list[tuple[Document, float]]] = by_vector
        self._collection: Any = getattr(store, "_collection", None)  # langchain-chroma hands in vectors by it alone
        self._is_chroma = hasattr(self._collection, "upsert")
        self._is_milvus = hasattr(store, "get_pks")
        #: How many documents a search returns at most; None where no limit is known.
        self.most = MILVUS_MOST if self._is_milvus else None
        adding = getattr(store, "add_embeddings", None)
        self._adds_vectors = adding is not None and {"texts", "embeddings"} <= signature(adding).parameters.keys()

    def put(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        vectors: Array,
        batch_size: int = BATCH,
    ) -> None:
        """Put documents into the store, in batches, in place of those with the same ids.

        Args:
            keys: Their ids: UUIDs, the one form that every store takes.
            texts: Their texts.
            metadatas: Their metadata: texts and numbers.
            vectors: float32, shape (texts, d): unit rows.
            batch_size: How many go into one call.

        Raises:
            DatabaseError: If the server of the store cannot be reached, lets nobody in, or has no room.
        """
        if self._is_chroma:
            batch_size = min(batch_size, self._called(self.store._client.get_max_batch_size))
        for start in range(0, len(keys), batch_size):
            batch = slice(start, start + batch_size)
            self._put(list(keys[batch]), list(texts[batch]), list(metadatas[batch]), vectors[batch])

    def _put(self, keys: list[str], texts: list[str], metadatas: list[dict[str, Any]], vectors: Array) -> None:
        if self._is_chroma:
            self._called(self._collection.upsert, keys, embeddings=vectors, metadatas=metadatas, documents=texts)
        elif self._is_milvus:
            if set(keys) & self.get(keys).keys():  # it would keep both
                self._called(self.store.delete, keys)
            self._called(self.store.add_embeddings, texts, vectors.tolist(), metadatas=metadatas, ids=keys)
        elif self._adds_vectors:
            self._called(self.store.add_embeddings, texts, vectors.tolist(), metadatas=metadatas, ids=keys)
        else:
            self._called(self.store.add_texts, texts, metadatas=metadatas, ids=keys)

    def describe(self, keys: Sequence[str], metadatas: Sequence[dict[str, Any]]) -> bool:
        """Give documents other metadata, and keep their vectors; false where a store cannot.

        Raises:
            DatabaseError: As of `put`.
        """
        for start in range(0, len(keys), BATCH):
            batch = slice(start, start + BATCH)
            if self._is_chroma:
                self._called(self._collection.update, list(keys[batch]), metadatas=list(metadatas[batch]))
            elif hasattr(self.store, "update_metadata"):
                self._called(self.store.update_metadata, keys[batch], metadatas[batch])
            else:
                return False
        return True

    def get(self, keys: Sequence[str]) -> dict[str, Document]:
        """Return the documents that there are, by id.

        Raises:
            NotImplementedError: If the store cannot look up by id.
            DatabaseError: As of `put`.
        """
        found: dict[str, Document] = {}
        for start in range(0, len(keys), BATCH):
            for document in self._get(list(keys[start : start + BATCH])):
                if document.id is not None:
                    found[document.id] = document
        return found

    def _get(self, keys: list[str]) -> list[Document]:
        if not self._is_milvus:
            documents: list[Document] = self._called(self.store.get_by_ids, keys)
            return documents
        client, name = self.store.client, self.store.collection_name
        if not self._called(client.has_collection, name):
            return []
        rows = self._called(client.get, name, keys)
        return [self._milvus_document(dict(row)) for row in rows]

    def _milvus_document(self, row: dict[str, Any]) -> Document:
        for field in (self.store._vector_field, "$meta"):
            row.pop(field, None)
        return Document(row.pop(self.store._text_field), id=row.pop(self.store._primary_field), metadata=row)

    def remove(self, keys: Sequence[str]) -> None:
        """Take documents out of the store.

        Raises:
            NotImplementedError: If the store cannot forget.
            DatabaseError: As of `put`.
        """
        self._called(self.store.delete, list(keys))

    def near(self, vector: Array, k: int) -> list[tuple[Document, float]]:
        """Return the nearest documents to a vector with the store's scores, as the store orders them.

        Raises:
            DatabaseError: As of `put`.
        """
        k = k if self.most is None else min(k, self.most)
        hits: list[tuple[Document, float]] = self._called(self._by_vector, vector.tolist(), k=k)
        return hits

    def _called(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the store, at most until the deadline; again where its server was away. Each call may be repeated."""

        def call() -> Any:
            with store_errors(self.who):
                return call_foreign(function, *args, **kwargs)

        return tried_again(call)
