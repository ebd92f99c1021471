"""Vectors as 8-bit numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms.quantization import LARGEST, quantized, rotated_bits, unit_rows


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


def hadamard(size: int) -> np.ndarray:
    matrix = np.ones((1, 1), int)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 384, 512, 600]), st.sampled_from([0, 1, 40, 600]))
def test_bits_are_the_signs_of_a_hadamard_transform(seed: int, dimension: int, rows: int) -> None:
    numbers = np.random.default_rng(seed).integers(-127, 128, (rows, dimension)).astype(np.int8)
    size = 1024 if dimension == 600 else 512
    units = np.eye(dimension, dtype=np.int8)[:, :dimension]
    # A unit row has the sign of its axis everywhere, times the row of the matrix, whose first number is 1.
    signs = np.unpackbits(rotated_bits(units).view(np.uint8), axis=1, bitorder="little")
    flips = np.where(signs[:, 0], 1, -1)
    turned = (numbers * flips) @ hadamard(size)[:dimension]
    expected = np.packbits(turned > 0, axis=1, bitorder="little").view(np.uint64)
    assert np.array_equal(rotated_bits(numbers), expected)
    assert 0 in flips + 1 or dimension < 5, "some axes are flipped"
