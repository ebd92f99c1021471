"""Finds the nearest of many vectors: by a bit for each axis first, then by 8-bit numbers.

The bits are the signs of the numbers after a rotation (`quantization.rotated_bits`). The share of the bits in which two
vectors differ grows with the angle between them (M. Charikar: Similarity Estimation Techniques from Rounding
Algorithms. STOC 2002; the fast rotation: N. Ailon, B. Chazelle: Approximate Nearest Neighbors and the Fast
Johnson-Lindenstrauss Transform. STOC 2006). A pass over the bits of all vectors picks candidates, and the 8-bit numbers
of these say how near they are. All sums are sums of integers: the results are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kg_retrievers.algorithms.compiled import compiled, compiled_entry, non_allocating, source_checksum
from kg_retrievers.algorithms.quantization import BLOCK, LARGEST

Array = npt.NDArray[Any]

#: How many vectors are compared with a question before the next question's turn, while their bits are in the cache.
ROWS_AT_ONCE = 512

# The bits of a number that hold a row; those above hold how much it differs.
_ROW_BITS = 40

# The words of a block.
_WORDS = BLOCK // 64


def nearest_by_bits(bits: Array, questions: Array, count: int) -> Array:
    """Find the rows whose bits differ the least from those of each question, in one pass for all questions.

    Cost: about 3 nanoseconds a row for the first question, and 1 for each other.

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


def _count_in_block(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Compile `_differing`: how many bits of a block of one array differ from those of a block of another."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        block, word = ir.VectorType(ir.IntType(64), _WORDS), ir.IntType(64)
        loaded = []
        for kind, array, position in zip(signature.args[::2], arguments[::2], arguments[1::2], strict=True):
            start = builder.gep(context.make_array(kind)(context, builder, array).data, [position])
            loaded.append(builder.load(builder.bitcast(start, block.as_pointer())))
            loaded[-1].align = 8
        ones = ir.FunctionType(block, [block])
        insert: Any = cgutils.get_or_insert_function
        count = insert(builder.module, ones, f"llvm.ctpop.v{_WORDS}i64")
        total = ir.FunctionType(word, [block])
        add = insert(builder.module, total, f"llvm.vector.reduce.add.v{_WORDS}i64")
        return builder.call(add, [builder.call(count, [builder.xor(*loaded)])])

    return types.int64(one, types.intp, other, types.intp), generate


_differing: Any = intrinsic(_count_in_block)


@non_allocating
def _count_differing(bits: Array, first: int, question: Array, differing: Array) -> None:
    """Fill in how many bits of the rows from a first one differ from those of a question."""
    width = len(question)
    for row in range(len(differing)):
        total = 0
        for word in range(0, width, _WORDS):
            total += _differing(bits, (first + row) * width + word, question, word)
        differing[row] = total


@non_allocating
def _keep_nearest(differing: Array, first: int, count: int, state: Array, histogram: Array, kept: Array) -> None:
    """Keep the rows that may be among the nearest: those of which fewer than `count` rows before differ as little.

    `state` holds how many rows are kept, the limit below which a row must differ, and how many rows do. `histogram`
    counts the rows by how much they differ. `kept` holds the rows, each behind how much it differs.
    """
    size, limit, below = state[0], state[1], state[2]
    for row in range(len(differing)):
        by = differing[row]
        if by >= limit:
            continue
        if size == len(kept):
            size = 0
            for old in range(len(kept)):
                kept[size] = kept[old]
                size += kept[old] >> _ROW_BITS <= limit
        kept[size] = by << _ROW_BITS | (first + row)
        size += 1
        histogram[by] += 1
        below += 1
        while below >= count:
            limit -= 1
            below -= histogram[limit]
    state[0], state[1], state[2] = size, limit, below


@compiled
def _scan_bits(bits: Array, questions: Array, count: int) -> Array:
    """Return the nearest rows of each question, ascending."""
    total, most = len(questions), 64 * bits.shape[1] + 1
    state = np.zeros((total, 3), np.int64)
    state[:, 1] = most
    histogram = np.zeros((total, most), np.int64)
    kept = np.empty((total, 3 * count), np.int64)
    differing = np.empty(ROWS_AT_ONCE, np.int64)
    for first in range(0, len(bits), ROWS_AT_ONCE):
        some = differing[: min(ROWS_AT_ONCE, len(bits) - first)]
        for question in range(total):
            _count_differing(bits, first, questions[question], some)
            _keep_nearest(some, first, count, state[question], histogram[question], kept[question])
    found = np.empty((total, count), np.int64)
    for question in range(total):
        size, limit, below = state[question]
        ties, position = count - below, 0
        for old in range(size):
            by = kept[question, old] >> _ROW_BITS
            if by < limit or (by == limit and ties > 0):
                ties -= by == limit
                found[question, position] = kept[question, old] & ((1 << _ROW_BITS) - 1)
                position += 1
    return found


@non_allocating
def _multiply_rows(numbers: Array, rows: Array, question: Array, products: Array, squares: Array) -> None:
    """Fill in the product of a question and each row, and of each row and itself."""
    for position in range(len(rows)):
        row = rows[position]
        product, square = np.int32(0), np.int32(0)
        for axis in range(numbers.shape[1]):
            number = np.int32(numbers[row, axis])
            product = np.int32(product + np.int32(number * np.int32(question[axis])))
            square = np.int32(square + np.int32(number * number))
        products[position], squares[position] = product, square


def _entries(
    sources: int,
) -> tuple[Callable[[Array, Array, int], Array], Callable[[Array, Array, Array, Array, Array], None]]:
    def scan(bits: Array, questions: Array, count: int) -> Array:
        return _scan_bits(bits, questions, count if sources else 0)

    def multiply(numbers: Array, rows: Array, question: Array, products: Array, squares: Array) -> None:
        if sources:
            _multiply_rows(numbers, rows, question, products, squares)

    return compiled_entry(scan), compiled_entry(multiply, allocates=False)


_scan, _multiply = _entries(source_checksum(Path(__file__)))
