"""Vectors in a Chroma server. Extra: `chroma`."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.index.store_errors import not_there
from kg_retrievers.index.vector_store import Score

try:
    import chromadb
    from chromadb.config import Settings
    from chromadb.errors import NotFoundError
    from langchain_chroma import Chroma
except ImportError as cause:
    raise MissingExtraError("A vector store in Chroma", "chroma") from cause

#: How a collection is made. By default Chroma looks at 100 candidates, and links each name to 16 others.
HNSW = {"space": "l2", "ef_search": 400, "ef_construction": 200, "max_neighbors": 32}

_SCORES: dict[str, Score] = {"l2": "squared_l2", "cosine": "cosine_distance"}


def open_chroma(url: str, collection: str, embeddings: Embeddings, create: bool) -> tuple[VectorStore, Score]:
    """Open a collection on a server; where there is none, make it or refuse.

    Args:
        url: The address of the server.
        collection: The collection.
        embeddings: The model; the store keeps it, and embeds nothing.
        create: Whether the collection is made where there is none.

    Returns:
        The store, and what its scores are.

    Raises:
        InvalidArgumentError: If the collection compares by inner products.
        StaleIndexError: If there is no such collection, and `create` is false.
    """
    address = urlsplit(url)
    token = os.environ.get("CHROMA_TOKEN")
    client = chromadb.HttpClient(
        host=address.hostname or "",
        port=address.port or (443 if address.scheme == "https" else 8000),
        ssl=address.scheme == "https",
        headers={"Authorization": f"Bearer {token}"} if token else None,
        settings=Settings(anonymized_telemetry=False),
    )
    made: Any = {"hnsw": HNSW}
    try:
        store = Chroma(
            collection,
            client=client,
            embedding_function=embeddings,
            collection_configuration=made,
            create_collection_if_not_exists=create,
        )
    except NotFoundError as cause:
        raise not_there(f"collection {collection!r}") from cause
    space = (store._collection.configuration.get("hnsw") or {}).get("space", "l2")
    if space not in _SCORES:
        raise InvalidArgumentError(
            f"open_store: the collection {collection!r} compares by {space!r}; wanted one of {', '.join(_SCORES)}."
        )
    return store, _SCORES[space]
