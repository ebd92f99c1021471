"""Vectors as 8-bit numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.algorithms.quantization import LARGEST, quantized, unit_rows, words_of


@given(st.integers(0, 1000), st.integers(1, 600))
def test_rows_are_rounded_to_the_greatest_number(seed: int, dimension: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(5, dimension))
    numbers = quantized(vectors)
    assert numbers.dtype == np.int8
    assert (np.abs(numbers).max(axis=1) == LARGEST).all()
    step = np.abs(vectors).max(axis=1, keepdims=True) / LARGEST
    assert (np.abs(numbers * step - vectors) <= step * 0.5000001).all()
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (np.einsum("ij,ij->i", unit_rows(numbers), units) > 0.9999).all()
    assert np.allclose(np.linalg.norm(unit_rows(numbers), axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("dimension", "words"), [(1, 8), (384, 8), (512, 8), (513, 16), (768, 16), (1536, 32)])
def test_words_are_whole_blocks(dimension: int, words: int) -> None:
    assert words_of(dimension) == words
