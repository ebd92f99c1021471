"""Documents and their distances in LangChain vector stores."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import ExactSearch, HashedEmbeddings, VectorStoreSearch, embed
from kg_retrievers.index.server_names import name_key
from kg_retrievers.index.vector_store import Score

NAMES = ["Her", "Spike Jonze", "Amélie", "her", "Adaptation", "Being John Malkovich", "$"]
DOCUMENTS = [Document(name, id=name_key("", number), metadata={"number": number}) for number, name in enumerate(NAMES)]


def chroma(folder: Path, **configuration: Any) -> Chroma:
    settings = Settings(anonymized_telemetry=False, is_persistent=True, persist_directory=str(folder))
    client = chromadb.PersistentClient(str(folder), settings)
    return Chroma("names", HashedEmbeddings(), client=client, collection_configuration=configuration or None)


@pytest.mark.parametrize(
    ("space", "score"),
    [("l2", "squared_l2"), ("cosine", "cosine_distance"), (None, "cosine_similarity")],
    ids=["l2", "cosine", "a store that embeds by itself"],
)
def test_all_scores_become_l2_distances(tmp_path: Path, space: str | None, score: Score) -> None:
    vectors = embed(HashedEmbeddings(), NAMES)
    store = chroma(tmp_path, hnsw={"space": space}) if space else InMemoryVectorStore(HashedEmbeddings())
    search = VectorStoreSearch(store, score)
    search.put(DOCUMENTS, vectors)
    search.put(DOCUMENTS[:3], vectors[:3])  # again: replaces
    ids, distances = ExactSearch(vectors).search(vectors[4:5], 4)  # then "Her" and "her", equally near
    documents, found = search.near(vectors[4], 4)
    assert [document.metadata["number"] for document in documents] == ids[0].tolist()
    assert np.allclose(found, distances[0], atol=1e-3)
    assert len(search.near(vectors[4], 100)[0]) == len(NAMES)
    wanted = [DOCUMENTS[5], DOCUMENTS[0]]
    assert search.get([str(one.id) for one in wanted] + [name_key("", 7)]) == {one.id: one for one in wanted}


class Bare(VectorStore):
    """A store that can do the least that LangChain asks for."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return []

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Bare:
        return cls()


def test_store_without_search_by_vector() -> None:
    with pytest.raises(InvalidArgumentError, match="Bare has none of the methods similarity_search_with_score_by_vec"):
        VectorStoreSearch(Bare(), "l2")


def test_unknown_score() -> None:
    with pytest.raises(InvalidArgumentError, match=r"score must be one of .*but got 'cosine'"):
        VectorStoreSearch(InMemoryVectorStore(HashedEmbeddings()), "cosine")  # type: ignore[arg-type]


def test_stores_pickled_and_not(tmp_path: Path) -> None:
    search = VectorStoreSearch(InMemoryVectorStore(HashedEmbeddings()), "cosine_similarity")
    search.put(DOCUMENTS, embed(HashedEmbeddings(), NAMES))
    assert len(pickle.loads(pickle.dumps(search)).get([str(DOCUMENTS[0].id)])) == 1
    search = VectorStoreSearch(chroma(tmp_path), "squared_l2")
    assert copy.deepcopy(search) is search
    with pytest.raises(InvalidArgumentError, match=r"Chroma cannot be pickled .*Open the store in the other process"):
        pickle.dumps(search)
