"""The search among many names, against the exact one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import DamagedDataError
from kg_retrievers.index import ExactSearch, default_embeddings, quantized_search
from kg_retrievers.index.quantized_search import QuantizedSearch


def some_vectors(count: int, seed: int = 0, dimension: int = 96) -> np.ndarray:
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(count, dimension)) + 2 * draw.normal(size=(20, dimension))[draw.integers(0, 20, count)]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def search_of(vectors: np.ndarray, rows: np.ndarray | None = None) -> QuantizedSearch:
    columns = QuantizedSearch.encoded(vectors)
    return QuantizedSearch(columns[""], columns["_bits"], rows)


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 70), st.integers(0, 3))
def test_few_vectors_are_all_ranked(seed: int, count: int, k: int, questions: int) -> None:
    """As many candidates as vectors: what is left is the rounding of 8-bit numbers."""
    vectors, asked = some_vectors(count, seed), some_vectors(questions, seed + 1)
    ids, distances = search_of(vectors).search(asked, k)
    assert (ids.dtype, distances.dtype, ids.shape) == (np.int64, np.float32, (questions, min(k, count)))
    for row in range(questions):
        pairs = list(zip(distances[row].tolist(), ids[row].tolist(), strict=True))
        assert pairs == sorted(pairs)
        assert len(set(ids[row].tolist())) == len(pairs)
        exact = np.linalg.norm(vectors[ids[row]] - asked[row], axis=1)
        assert np.allclose(distances[row], exact, atol=0.02)
        assert np.allclose(distances[row], ExactSearch(vectors).search(asked, k)[1][row], atol=0.02)


def test_equal_vectors_are_at_no_distance_and_come_by_their_ids() -> None:
    vectors = some_vectors(50)
    search = search_of(np.concatenate([vectors, vectors[[7, 3, 7]]]))
    ids, distances = search.search(vectors[[3, 7]], 4)
    assert ids[:, :3].tolist()[1] == [7, 50, 52]
    assert ids[0, :2].tolist() == [3, 51]
    assert distances[1, :3].tolist() == [0, 0, 0]
    assert distances[0, 2] > 0


def test_most_of_the_nearest_of_many_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized_search, "LEAST_CANDIDATES", 1)
    words = ["amber", "basin", "grove", "harbor", "keeper", "lantern", "meadow", "north", "orchard", "river", "valley"]
    names = [f"{a} {b} {c}" for a in words for b in words for c in words]
    embeddings = default_embeddings()
    vectors = embeddings.embed_array(names)
    asked = embeddings.embed_array(["ambr basin grove", "north river", "tower valley lanternn", "orchard"])
    exact, found = ExactSearch(vectors).search(asked, 16)[0], search_of(vectors).search(asked, 16)[0]
    recall = np.mean([len(np.intersect1d(*pair)) / 16 for pair in zip(exact, found, strict=True)])
    assert recall > 0.9


def test_rows_of_nothing_are_not_found() -> None:
    vectors = some_vectors(300)
    rows = np.random.default_rng(3).permutation(300)[:40].astype(np.int32)
    search, plain = search_of(vectors, rows), search_of(vectors[rows])
    for k in (1, 5, 40, 99):
        ids, distances = search.search(vectors[:6], k)
        expected = plain.search(vectors[:6], k)
        assert ids.tolist() == expected[0].tolist()
        assert distances.tolist() == expected[1].tolist()
    assert np.array_equal(search.vectors_of(np.array([2, 0])), plain.vectors_of(np.array([2, 0])))
    assert len(search) == 40
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.vectors, plain.vectors)
    assert again.search(vectors[:6], 5)[0].tolist() == plain.search(vectors[:6], 5)[0].tolist()


def test_a_damaged_vector_is_reported() -> None:
    columns = QuantizedSearch.encoded(some_vectors(5))
    columns[""][2] = 0
    with pytest.raises(DamagedDataError, match="damaged"):
        QuantizedSearch(columns[""], columns["_bits"]).search(some_vectors(1, 1), 2)
