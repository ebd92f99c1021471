"""Find the nearest of many vectors: by a bit for each axis first, then by 8-bit numbers.

The bits are the signs of the numbers after a rotation (`quantization.rotated_bits`). The share of the bits in which two
vectors differ grows with the angle between them (M. Charikar: Similarity Estimation Techniques from Rounding
Algorithms. STOC 2002). The rotation is the fast one of N. Ailon, B. Chazelle: Approximate Nearest Neighbors and the
Fast Johnson-Lindenstrauss Transform. STOC 2006. A pass over the bits of all vectors picks candidates, and the 8-bit
numbers of the candidates say how near they are. All sums are sums of integers: the results are the same on every
machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kg_retrievers.algorithms.compiled import compiled, compiled_entry
from kg_retrievers.algorithms.quantization import LARGEST
from kg_retrievers.graph.columns import Array, frozen

#: How many vectors are compared with a question before the next question's turn: their bits are in the fastest cache.
ROWS_AT_ONCE = 64

#: How many questions are compared at once, 2 bytes for each vector.
QUESTIONS_AT_ONCE = 8

# Masks and shifts that count the bits of a word in parallel; LLVM makes them one instruction.
_PAIRS, _NIBBLES, _BYTES, _ONES = (np.uint64(int(digits * 8, 16)) for digits in ("55", "33", "0f", "01"))
_BY_1, _BY_2, _BY_4, _BY_56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


def nearest_by_bits(bits: Array, questions: Array, count: int) -> Array:
    """Find the rows whose bits differ the least from each question's, in one pass for all questions.

    Args:
        bits: uint64, shape (n, w).
        questions: uint64, shape (q, w).
        count: How many to find for each, 1 to n.

    Returns:
        int64 rows, shape (q, count), ascending. Of rows that differ alike, the first ones.
    """
    found = np.empty((len(questions), count), np.int64)
    for first in range(0, len(questions), QUESTIONS_AT_ONCE):
        some = questions[first : first + QUESTIONS_AT_ONCE]
        differing = np.empty((len(some), len(bits)), np.uint16)
        histograms = np.zeros((len(some), 64 * bits.shape[1] + 1), np.int64)
        _count_differing(frozen(bits), frozen(some), differing, histograms)
        for number, (differs, histogram) in enumerate(zip(differing, histograms, strict=True), first):
            limit = np.uint16(np.searchsorted(np.cumsum(histogram), count))
            nearer = np.flatnonzero(differs < limit)
            found[number, : len(nearer)] = nearer
            found[number, len(nearer) :] = np.flatnonzero(differs == limit)[: count - len(nearer)]
    return np.sort(found, axis=1)


def cosines(numbers: Array, rows: Array, question: Array) -> Array:
    """Return the cosine of a vector and some rows of 8-bit numbers.

    The vector is rounded to 16-bit numbers at most, so that no sum leaves 32 bits.

    Args:
        numbers: int8, shape (n, d).
        rows: int64, shape (m).
        question: Floats, shape (d): not zero.

    Returns:
        float64, shape (m). Not-a-number for a row of zeros.
    """
    most = min(np.iinfo(np.int16).max, np.iinfo(np.int32).max // (LARGEST * len(question)))
    rounded = np.rint(question * (most / np.abs(question).max())).astype(np.int16)
    products, squares = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    _multiply(frozen(numbers), rows, rounded, products, squares)
    with np.errstate(invalid="ignore"):
        found: Array = products / np.sqrt(squares * float((rounded.astype(np.int64) ** 2).sum()))
    return found


@compiled
def _count_bits(word: Any) -> Any:
    """Return how many bits of a word are 1."""
    word -= (word >> _BY_1) & _PAIRS
    word = (word & _NIBBLES) + ((word >> _BY_2) & _NIBBLES)
    return (((word + (word >> _BY_4)) & _BYTES) * _ONES) >> _BY_56


@compiled_entry
def _count_differing(bits: Array, questions: Array, differing: Array, histograms: Array) -> None:
    """Fill in how many bits of each row and question differ, and count the rows by this number."""
    for first in range(0, len(bits), ROWS_AT_ONCE):
        for question in range(len(questions)):
            for row in range(first, min(first + ROWS_AT_ONCE, len(bits))):
                count = np.uint64(0)
                for word in range(bits.shape[1]):
                    count += _count_bits(bits[row, word] ^ questions[question, word])
                differing[question, row] = count
                histograms[question, np.int64(count)] += 1


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
