"""Finds the nearest of many vectors: by a bit for each axis first, then by 8-bit numbers.

The bits are the signs of the numbers after a rotation (`quantization.rotated_bits`). The share of the bits in which two
vectors differ grows with the angle between them (M. Charikar: Similarity Estimation Techniques from Rounding
Algorithms. STOC 2002; the fast rotation: N. Ailon, B. Chazelle: Approximate Nearest Neighbors and the Fast
Johnson-Lindenstrauss Transform. STOC 2006). A pass over the bits of all vectors picks candidates, and the 8-bit numbers
of these say how near they are. All sums are sums of integers: the results are the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.algorithms.quantization import LARGEST

Array = npt.NDArray[Any]

#: How many vectors are compared with a question before the next question's turn: their bits are in the fastest cache.
ROWS_AT_ONCE = 64

# The bits of a number that hold a row; those above hold how much it differs.
_ROW_BITS = 40

# Masks and shifts that count the bits of a word in parallel; LLVM makes them one instruction.
_PAIRS, _NIBBLES, _BYTES, _ONES = (np.uint64(int(digits * 8, 16)) for digits in ("55", "33", "0f", "01"))
_BY_1, _BY_2, _BY_4, _BY_56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


def nearest_by_bits(bits: Array, questions: Array, count: int) -> Array:
    """Find the rows whose bits differ the least from those of each question, in one pass for all questions.

    Args:
        bits: uint64, shape (n, w).
        questions: uint64, shape (q, w).
        count: How many to find for each, 1 to n.

    Returns:
        int64 rows, shape (q, count), ascending; of rows that differ alike, the first ones.
    """
    return _scan(_frozen(bits), _frozen(questions), count)


def cosines(numbers: Array, rows: Array, question: Array) -> Array:
    """Return the cosine of a vector and some rows of 8-bit numbers.

    The vector is rounded to 16-bit numbers at most, so that no sum leaves 32 bits.

    Args:
        numbers: int8, shape (n, d).
        rows: int64, shape (m).
        question: Floats, shape (d): not zero.

    Returns:
        float64, shape (m); not-a-number for a row of zeros.
    """
    most = min(np.iinfo(np.int16).max, np.iinfo(np.int32).max // (LARGEST * len(question)))
    rounded = np.rint(question * (most / np.abs(question).max())).astype(np.int16)
    products, squares = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    _multiply(_frozen(numbers), rows, rounded, products, squares)
    with np.errstate(invalid="ignore"):
        found: Array = products / np.sqrt(squares * float((rounded.astype(np.int64) ** 2).sum()))
    return found


def _frozen(array: Array) -> Array:
    """Return an array contiguous and read-only, as one from a disk is, so that one compiled function fits all."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled
def _count_bits(word: Any) -> Any:
    """Return how many bits of a word are 1."""
    word -= (word >> _BY_1) & _PAIRS
    word = (word & _NIBBLES) + ((word >> _BY_2) & _NIBBLES)
    return (((word + (word >> _BY_4)) & _BYTES) * _ONES) >> _BY_56


@compiled
def _scan_rows(bits: Array, first: int, last: int, question: Array, count: int, state: Array, kept: Array) -> None:
    """Keep those of some rows that may be among the nearest: fewer than `count` rows before differ as little.

    `state` holds how many rows are kept, the limit below which a row must differ, how many rows do, and then how many
    differ by 0 bits, by 1 and so on. `kept` holds the rows, each behind how much it differs.
    """
    histogram = state[3:]
    size, limit, below = state[0], state[1], state[2]
    for row in range(first, last):
        differing = np.uint64(0)
        for word in range(len(question)):
            differing += _count_bits(bits[row, word] ^ question[word])
        by = np.int64(differing)
        if by >= limit:
            continue
        if size == len(kept):
            size = 0
            for old in range(len(kept)):
                kept[size] = kept[old]
                size += kept[old] >> _ROW_BITS <= limit
        kept[size] = by << _ROW_BITS | row
        size += 1
        histogram[by] += 1
        below += 1
        while below >= count:
            limit -= 1
            below -= histogram[limit]
    state[0], state[1], state[2] = size, limit, below


@compiled_entry
def _scan(bits: Array, questions: Array, count: int) -> Array:
    """Return the nearest rows of each question, ascending."""
    total, most = len(questions), 64 * bits.shape[1] + 1
    state = np.zeros((total, 3 + most), np.int64)
    state[:, 1] = most
    kept = np.empty((total, 3 * count), np.int64)
    for first in range(0, len(bits), ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, len(bits))
        for question in range(total):
            _scan_rows(bits, first, last, questions[question], count, state[question], kept[question])
    found = np.empty((total, count), np.int64)
    for question in range(total):
        size, limit, below = state[question, :3]
        ties, position = count - below, 0
        for old in range(size):
            by = kept[question, old] >> _ROW_BITS
            if by < limit or (by == limit and ties > 0):
                ties -= by == limit
                found[question, position] = kept[question, old] & ((1 << _ROW_BITS) - 1)
                position += 1
    return found


@compiled_entry
def _multiply(numbers: Array, rows: Array, question: Array, products: Array, squares: Array) -> None:
    """Fill in the product of a question and each row, and of each row and itself."""
    for position in range(len(rows)):
        row = rows[position]
        product, square = np.int32(0), np.int32(0)
        for axis in range(numbers.shape[1]):
            number = np.int32(numbers[row, axis])
            product = np.int32(product + np.int32(number * np.int32(question[axis])))
            square = np.int32(square + np.int32(number * number))
        products[position], squares[position] = product, square
