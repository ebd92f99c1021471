"""Embeddings and an index for workers: they are here so that other processes can import them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bulk_work import doubled
from langchain_core.embeddings import Embeddings

from kg_retrievers.index import GraphIndex, HashedEmbeddings


@dataclass(frozen=True)
class NeedsFolder:
    """Opens an index where it is opened."""

    folder: Path

    def __call__(self, batch: Sequence[int]) -> list[int]:
        return doubled(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphIndex.open, (self.folder, HashedEmbeddings())


class PlainEmbeddings(Embeddings):
    """Embeddings of others: lists of numbers, and now and then none."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if "nothing" in texts:
            return []
        return HashedEmbeddings(64).embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]
