"""The scan over bits and the 8-bit products, against the plain computation."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.algorithms.bit_scan import ROWS_AT_ONCE, cosines, nearest_by_bits
from kg_retrievers.algorithms.quantization import quantized


def plain_nearest(bits: np.ndarray, question: np.ndarray, count: int) -> list[int]:
    differing = np.unpackbits((bits ^ question).view(np.uint8), axis=1).sum(axis=1, dtype=int)
    return sorted(np.argsort(differing, kind="stable")[:count].tolist())


@given(st.integers(0, 10**6), st.integers(1, 2 * ROWS_AT_ONCE), st.sampled_from([8, 16]), st.integers(1, 3))
def test_the_rows_with_the_fewest_other_bits(seed: int, size: int, words: int, questions: int) -> None:
    """Many rows differ alike, of which the first ones are found."""
    draw = np.random.default_rng(seed)
    few = draw.integers(0, 2**64, (int(draw.integers(1, 9)), words), np.uint64)
    noise = np.where(draw.random((size, words)) < 0.1, draw.integers(0, 2**64, (size, words), np.uint64), 0)
    bits = few[draw.integers(0, len(few), size)] ^ noise.astype(np.uint64)
    asked = draw.integers(0, 2**64, (questions, words), np.uint64)
    asked[0] = bits[draw.integers(0, size)]
    count = int(draw.integers(1, size + 1))
    found = nearest_by_bits(bits, asked, count)
    assert found.dtype == np.int64
    assert found.tolist() == [plain_nearest(bits, question, count) for question in asked]


def test_equal_rows_come_by_their_ids() -> None:
    bits = np.zeros((3 * ROWS_AT_ONCE, 8), np.uint64)
    assert nearest_by_bits(bits, bits[:1], 7).tolist() == [list(range(7))]
    assert nearest_by_bits(bits, ~bits[:1], len(bits)).tolist() == [list(range(len(bits)))]


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 64, 512, 3072]))
def test_cosines(seed: int, dimension: int) -> None:
    draw = np.random.default_rng(seed)
    numbers = quantized(draw.normal(size=(9, dimension)))
    rows, question = draw.integers(0, 9, 20), draw.normal(size=dimension)
    exact = numbers[rows].astype(float) @ question
    exact /= np.linalg.norm(numbers[rows].astype(float), axis=1) * np.linalg.norm(question)
    assert np.allclose(cosines(numbers, rows, question), exact, atol=2e-4)
    assert np.isnan(cosines(np.zeros((1, dimension), np.int8), np.zeros(1, int), question)).all()
