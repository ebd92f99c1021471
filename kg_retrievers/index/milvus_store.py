"""Vectors in Milvus, or in a folder of Milvus Lite. Extra: `milvus`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.index.store_errors import not_there
from kg_retrievers.index.vector_store import Score

try:
    from langchain_milvus import Milvus
except ImportError as cause:
    raise MissingExtraError("A vector store in Milvus", "milvus") from cause

#: How a collection is made: it compares with every vector.
INDEX: dict[str, Any] = {"index_type": "FLAT", "metric_type": "L2", "params": {}}

_SCORES: dict[str, Score] = {"L2": "squared_l2", "COSINE": "cosine_similarity"}


def open_milvus(uri: str, collection: str, embeddings: Embeddings, create: bool) -> tuple[VectorStore, Score]:
    """Open a collection, which is made when the first names are added.

    Args:
        uri: The address of a server, or a folder.
        collection: The collection.
        embeddings: The model; the store keeps it, and embeds nothing.
        create: Whether the collection, and the folder, are made where there is none.

    Returns:
        The store, and what its scores are.

    Raises:
        InvalidArgumentError: If the collection compares by inner products, or the folder cannot be made.
        StaleIndexError: If there is no such collection or folder, and `create` is false.
    """
    if "://" not in uri:
        _check_folder(Path(uri), create)
    login = {"token": token} if (token := os.environ.get("MILVUS_TOKEN")) else {}
    store = Milvus(
        embeddings,
        collection_name=collection,
        connection_args={"uri": uri, **login},
        index_params=INDEX,
        enable_dynamic_field=True,  # for the metadata
        consistency_level="Strong",  # what was written is found at once, by others too
    )
    metric = INDEX["metric_type"]
    if store.client.has_collection(collection):
        metric = store.client.describe_index(collection, store._vector_field)["metric_type"]
    elif not create:
        raise not_there(f"collection {collection!r}")
    if metric not in _SCORES:
        raise InvalidArgumentError(
            f"open_store: the collection {collection!r} compares by {metric!r}; wanted one of {', '.join(_SCORES)}."
        )
    return store, _SCORES[metric]


def _check_folder(folder: Path, create: bool) -> None:
    """Check a folder of Milvus Lite before connecting, which would make it."""
    if not create and not folder.exists():
        raise not_there(f"folder {folder}")
    if folder.is_file():
        raise InvalidArgumentError(f"open_store: {folder} is a file; wanted a folder of Milvus Lite. Name another.")
    if not folder.parent.is_dir():
        raise InvalidArgumentError(f"open_store: there is no folder {folder.parent} for {folder.name}. Make it.")
