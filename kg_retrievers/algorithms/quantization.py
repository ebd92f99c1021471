"""Vectors as rows of 8-bit numbers, which say nearly the same in a quarter of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The largest of the 8-bit numbers of a vector.
LARGEST = 127

#: The bits of a vector come in blocks of so many, the width of a cache line.
BLOCK = 512


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


def words_of(dimension: int) -> int:
    """Return how many words of 64 bits a vector has: as many bits as the least power of 2 from `BLOCK` and d on."""
    return max(BLOCK, 1 << (dimension - 1).bit_length()) // 64
