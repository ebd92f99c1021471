"""Exact search against a naive one, and LangChain vector stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from hypothesis import given
from hypothesis import strategies as st
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import ExactSearch, HashedEmbeddings, VectorStoreSearch, embed
from kg_retrievers.index.vector_store import KnownVectors, Score

NAMES = ["Her", "Spike Jonze", "Amélie", "her", "Adaptation", "Being John Malkovich", "$"]


def unit(rows: Array) -> Array:
    vectors: Array = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def naive(stored: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    difference = stored[None].astype(np.float64) - vectors[:, None]
    distances = np.sqrt((difference**2).sum(axis=2)).astype(np.float32)
    ids = np.array([sorted(range(len(stored)), key=lambda i: (row[i], i))[:k] for row in distances])
    return ids, np.take_along_axis(distances, ids, axis=1)


def chroma(folder: Path, **configuration: Any) -> Chroma:
    settings = Settings(anonymized_telemetry=False, is_persistent=True, persist_directory=str(folder))
    client = chromadb.PersistentClient(str(folder), settings)
    return Chroma(
        "names", KnownVectors(HashedEmbeddings()), client=client, collection_configuration=configuration or None
    )


# --- exact ------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 5), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_exact_search_equals_a_naive_one(rows: int, dimension: int, questions: int, k: int, seed: int) -> None:
    """Few distinct values, so that there are ties at every place."""
    random = np.random.default_rng(seed)
    stored = unit(random.integers(1, 4, (rows, dimension)))
    vectors = unit(random.integers(-1, 2, (questions, dimension)) * 2 + 1)
    ids, distances = ExactSearch(stored).search(vectors, k)
    wanted_ids, wanted_distances = naive(stored, vectors, k)
    assert (ids.dtype, distances.dtype) == (np.int64, np.float32)
    assert np.array_equal(ids, wanted_ids)
    assert np.allclose(distances, wanted_distances, atol=1e-7)


# --- stores -----------------------------------------------------------------------------------------------------------


def test_chroma_takes_our_vectors_and_gives_the_same_after_reopening(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(2).standard_normal((50, 16)))
    names = [f"name {number}" for number in range(50)]
    store = chroma(tmp_path)
    search = VectorStoreSearch(store, "squared_l2")
    search.add(range(50), names, vectors, batch_size=20)
    search.add(range(50), names, vectors)  # again: replaces
    found = search.search(vectors, 4)
    ids, distances = ExactSearch(vectors).search(vectors, 4)
    assert np.array_equal(found[0], ids)
    assert np.allclose(found[1], distances, atol=1e-6)
    assert search.search(vectors, 100)[0].shape == (50, 50)
    assert search.holds([0, 6], ["name 0", "name 6"])
    assert not search.holds([0, 6], ["name 0", "name 7"])
    assert not search.holds([50], ["name 50"])

    store._client.close()
    again = VectorStoreSearch(chroma(tmp_path), "squared_l2").search(vectors, 4)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_store_that_embeds_by_itself() -> None:
    vectors = embed(HashedEmbeddings(), NAMES)
    search = VectorStoreSearch(InMemoryVectorStore(HashedEmbeddings()), "cosine_similarity")
    assert [array.shape for array in search.search(vectors, 3)] == [(7, 0), (7, 0)]
    assert [array.shape for array in search.search(vectors[:0], 3)] == [(0, 0), (0, 0)]
    search.add(range(len(NAMES)), NAMES, vectors, batch_size=3)
    ids, distances = search.search(vectors, 4)
    wanted_ids, wanted_distances = ExactSearch(vectors).search(vectors, 4)
    assert np.allclose(distances, wanted_distances, atol=1e-3)  # the root of a rounding error where it should be 0
    assert np.array_equal(ids[:, 0], np.where(np.arange(7) == 3, ids[:, 0], wanted_ids[:, 0]))
    assert search.holds([3], ["her"])


@pytest.mark.parametrize(
    ("space", "score"), [("l2", "squared_l2"), ("cosine", "cosine_distance")], ids=["l2", "cosine"]
)
def test_all_scores_become_l2_distances(tmp_path: Path, space: str, score: Score) -> None:
    vectors = embed(HashedEmbeddings(), NAMES)
    search = VectorStoreSearch(chroma(tmp_path, hnsw={"space": space}), score)
    search.add(range(len(NAMES)), NAMES, vectors)
    assert np.allclose(search.search(vectors, 5)[1], ExactSearch(vectors).search(vectors, 5)[1], atol=1e-3)


class Bare(VectorStore):
    """A store that can do the least that LangChain asks for."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return []

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Bare:
        return cls()


class Foreign(Bare):
    """A store with other things in it, whose scores are distances."""

    def similarity_search_with_score_by_vector(self, vector: list[float], k: int) -> list[tuple[Document, float]]:
        return [(Document("what?"), 0.5), (Document("Her", metadata={"number": 0}), 0.25)]


def test_store_with_other_things_in_it() -> None:
    search = VectorStoreSearch(Foreign(), "l2")
    ids, distances = search.search(np.ones((1, 1), np.float32), 2)
    assert ids.tolist() == [[0, -1]]
    assert distances.tolist() == [[0.25, 0.5]]
    assert search.holds([0], ["it cannot tell"])


def test_store_without_search_by_vector() -> None:
    with pytest.raises(InvalidArgumentError, match="Bare has none of the methods similarity_search_with_score_by_vec"):
        VectorStoreSearch(Bare(), "l2")


def test_unknown_score() -> None:
    with pytest.raises(InvalidArgumentError, match=r"score must be one of .*but got 'cosine'"):
        VectorStoreSearch(InMemoryVectorStore(HashedEmbeddings()), "cosine")  # type: ignore[arg-type]
