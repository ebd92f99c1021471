"""Embeddings and an index for workers: they are here so that other processes can import them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bulk_work import doubled, ends_its_process, first_time
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


class KillingEmbeddings(HashedEmbeddings):
    """Ends its process at the first text that begins with a word, once, unless it is the process that made it."""

    def __init__(self, folder: Path, word: str) -> None:
        super().__init__(64)
        self.folder, self.word, self.made_in = folder, word, os.getpid()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        met = any(text.startswith(self.word) for text in texts)
        if met and os.getpid() != self.made_in and first_time(self.folder):
            ends_its_process([])
        return super().embed_documents(texts)


class PlainEmbeddings(Embeddings):
    """Embeddings of others: lists of numbers, and now and then none."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if "nothing" in texts:
            return []
        return HashedEmbeddings(64).embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]
