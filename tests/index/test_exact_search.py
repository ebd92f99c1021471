"""Exact search against a naive one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph.columns import Array
from kg_retrievers.index import ExactSearch


def unit(rows: Array) -> Array:
    vectors: Array = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def naive(stored: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    difference = stored[None].astype(np.float64) - vectors[:, None]
    distances = np.sqrt((difference**2).sum(axis=2)).astype(np.float32)
    ids = np.array([sorted(range(len(stored)), key=lambda i: (row[i], i))[:k] for row in distances])
    return ids, np.take_along_axis(distances, ids, axis=1)


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
