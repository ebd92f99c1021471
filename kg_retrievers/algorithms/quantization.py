"""Vectors as rows of 8-bit numbers, which say nearly the same in a quarter of the memory."""

from __future__ import annotations

from functools import cache
from hashlib import shake_128
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The largest of the 8-bit numbers of a vector.
LARGEST = 127

#: The bits of a vector come in blocks of so many, the width of a cache line.
BLOCK = 512

# The axes that are flipped are drawn from this text; saved bits depend on it.
_SEED = b"kg_retrievers.algorithms.bit_scan"

# How many vectors are rotated at once, while they are in the cache.
_ROWS_AT_ONCE = 512


def quantized(vectors: Array) -> Array:
    """Return vectors as 8-bit numbers: each row is scaled so that its greatest number is 127 or -127, and rounded.

    Args:
        vectors: Floats, shape (n, d): no row is zero.

    Returns:
        int8, shape (n, d).

    Example:
        >>> quantized(np.array([[0.6, -0.8]])).tolist()
        [[95, -127]]
    """
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    numbers: Array = np.rint(vectors * (LARGEST / largest)[:, None]).astype(np.int8)
    return numbers


def unit_rows(numbers: Array) -> Array:
    """Return the unit vectors of 8-bit numbers, float32 of shape (n, d)."""
    rows = numbers.astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def rotated_bits(numbers: Array) -> Array:
    """Return the signs of 8-bit vectors after a rotation: some axes are flipped, and a Hadamard transform mixes all.

    The transform of size a * b is the product of two of the sizes a and b, one along the rows and one along the columns
    of a vector that is laid out as a matrix. Sums of integers below 2**24 are exact in float32, in any order.

    Cost: about a microsecond for a vector of 512 numbers.

    Args:
        numbers: int8, shape (n, d). They may be mapped from disk.

    Returns:
        uint64, shape (n, w), with w = `words_of(d)`.
    """
    width, words = numbers.shape[1], words_of(numbers.shape[1])
    size = 64 * words
    columns = 1 << (size.bit_length() // 2)
    flips = 1 - 2 * np.unpackbits(np.frombuffer(shake_128(_SEED).digest(size // 8), np.uint8)).astype(np.float32)
    bits = np.empty((len(numbers), words), np.uint64)
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        some = numbers[start : start + _ROWS_AT_ONCE]
        flipped = np.zeros((len(some), size), np.float32)
        np.multiply(some, flips[:width], out=flipped[:, :width])
        mixed = (flipped.reshape(-1, columns) @ _hadamard(columns)).reshape(len(some), -1, columns)
        is_positive = (_hadamard(size // columns) @ mixed).reshape(len(some), size) > 0
        bits[start : start + len(some)] = np.packbits(is_positive, axis=1, bitorder="little").view("<u8")
    return bits


@cache
def _hadamard(size: int) -> Array:
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def words_of(dimension: int) -> int:
    """Return how many words of 64 bits a vector has: as many bits as the least power of 2 from `BLOCK` and d on."""
    return max(BLOCK, 1 << (dimension - 1).bit_length()) // 64
