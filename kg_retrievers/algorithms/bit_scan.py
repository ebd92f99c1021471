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

#: How many vectors are compared with a question before the next question's turn: their bits are in the fastest cache.
ROWS_AT_ONCE = 64

# The bits of a number that hold a row; those above hold how much it differs.
_ROW_BITS = 40

# The words of a block, and how many rows are compared together: as many, for a square can be turned.
_WORDS = _TOGETHER = BLOCK // 64

# How far the columns of some rows are apart: not by a power of two, for which a cache has few places.
_STRIDE = ROWS_AT_ONCE + 8


def nearest_by_bits(bits: Array, questions: Array, count: int) -> Array:
    """Find the rows whose bits differ the least from those of each question, in one pass for all questions.

    Cost: about 3 nanoseconds a row for one question, and 1 for each of 30.

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


def _count_in_rows(
    typing_context: Any, columns: Any, row: Any, question: Any, word: Any, limit: Any, differing: Any
) -> Any:
    """Compile `_add_differing`: it counts in how many bits of `_WORDS` words a question and `_TOGETHER` rows differ.

    The counts are added to `differing`; not 0 is returned if one of the sums is below the limit.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        _, row, _, word, limit, _ = arguments
        integer = ir.IntType(64)
        vector = ir.VectorType(integer, _TOGETHER)

        def place(array: int, position: Any) -> Any:
            data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
            return builder.gep(data, [position])

        def load(pointer: Any) -> Any:
            loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
            loaded.align = 8
            return loaded

        def repeated(number: Any) -> Any:
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), _TOGETHER), None))

        sums = place(5, integer(0))
        total = load(sums)
        insert: Any = cgutils.get_or_insert_function
        count = insert(builder.module, ir.FunctionType(vector, [vector]), f"llvm.ctpop.v{_TOGETHER}i64")
        for number in range(_WORDS):
            at = builder.add(word, integer(number))
            column = load(place(0, builder.add(builder.mul(at, integer(_STRIDE)), row)))
            asked = repeated(builder.load(place(2, at)))
            total = builder.add(total, builder.call(count, [builder.xor(column, asked)]))
        builder.store(total, builder.bitcast(sums, vector.as_pointer())).align = 8
        below = builder.bitcast(builder.icmp_signed("<", total, repeated(limit)), ir.IntType(_TOGETHER))
        return builder.zext(below, integer)

    number = types.intp
    return types.int64(columns, number, question, number, number, differing), generate


_add_differing: Any = intrinsic(_count_in_rows)


def _turn_rows(typing_context: Any, bits: Any, row: Any, last: Any, word: Any, columns: Any, at: Any) -> Any:
    """Compile `_turn`: it writes `_WORDS` words of `_TOGETHER` rows into as many columns.

    The last row is repeated where fewer are left. Three times the numbers of the first four rows and those of the
    others take turns; then what was a row is a column.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        bits, row, last, word, columns, at = arguments
        integer, half = ir.IntType(64), _WORDS // 2
        vector = ir.VectorType(integer, _WORDS)
        kinds = signature.args
        given, made = context.make_array(kinds[0])(context, builder, bits), context.make_array(kinds[4])
        width = builder.extract_value(given.shape, 1)
        rows = []
        for number in range(_TOGETHER):
            one = builder.add(row, integer(number))
            one = builder.select(builder.icmp_signed("<", one, last), one, last)
            place = builder.gep(given.data, [builder.add(builder.mul(one, width), word)])
            rows.append(builder.load(builder.bitcast(place, vector.as_pointer())))
            rows[-1].align = 8
        in_turns = [[at + by for at in range(start, start + half) for by in (0, _WORDS)] for start in (0, half)]
        for _ in range(_WORDS.bit_length() - 1):
            rows = [
                builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), _WORDS), order))
                for one, other in zip(rows[:half], rows[half:], strict=True)
                for order in in_turns
            ]
        data = made(context, builder, columns).data
        for number, column in enumerate(rows):
            start = builder.mul(builder.add(word, integer(number)), integer(_STRIDE))
            place = builder.gep(data, [builder.add(start, at)])
            builder.store(column, builder.bitcast(place, vector.as_pointer())).align = 8
        return context.get_dummy_value()

    number = types.intp
    return types.void(bits, number, number, number, columns, number), generate


_turn: Any = intrinsic(_turn_rows)


@non_allocating
def _turn_all(bits: Array, first: int, size: int, columns: Array) -> None:
    """Write each word of some rows into a column."""
    for row in range(0, size, _TOGETHER):
        for word in range(0, bits.shape[1], _WORDS):
            _turn(bits, first + row, first + size - 1, word, columns, row)


@non_allocating
def _scan_columns(
    columns: Array, size: int, first: int, question: Array, count: int, differing: Array, state: Array, kept: Array
) -> None:
    """Keep those of some rows, turned into columns, that may be among the nearest; see `_keep_nearest`."""
    for row in range(0, size, _TOGETHER):
        differing[:] = 0
        below = 0
        for word in range(0, len(question), _WORDS):
            below = _add_differing(columns, row, question, word, state[1], differing)
        if below:
            _keep_nearest(differing[: min(_TOGETHER, size - row)], first + row, count, state, kept)


@non_allocating
def _keep_nearest(differing: Array, first: int, count: int, state: Array, kept: Array) -> None:
    """Keep the rows that may be among the nearest: those of which fewer than `count` rows before differ as little.

    `state` holds how many rows are kept, the limit below which a row must differ, how many rows do, and then how many
    differ by 0 bits, by 1 and so on. `kept` holds the rows, each behind how much it differs.
    """
    histogram = state[3:]
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
    state = np.zeros((total, 3 + most), np.int64)
    state[:, 1] = most
    kept = np.empty((total, 3 * count), np.int64)
    differing = np.empty(_TOGETHER, np.int64)
    space = np.zeros(bits.shape[1] * _STRIDE + _WORDS, np.uint64)
    begin = -(space.ctypes.data // 8) % _WORDS  # where a cache line begins
    columns = space[begin : begin + bits.shape[1] * _STRIDE]
    for first in range(0, len(bits), ROWS_AT_ONCE):
        size = min(ROWS_AT_ONCE, len(bits) - first)
        _turn_all(bits, first, size, columns)
        for question in range(total):
            _scan_columns(columns, size, first, questions[question], count, differing, state[question], kept[question])
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
