"""Nearest vectors among many: their bits pick candidates, and 8-bit numbers rank these."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kg_retrievers.algorithms.quantization import quantized, rotated_bits, unit_rows
from kg_retrievers.errors import DamagedDataError
from kg_retrievers.graph.columns import DAMAGED, Array

#: From so many names on, `GraphIndex.build` keeps a byte and a bit for each number of a vector. So many float32 vectors
#: of 512 numbers take 0.4 GB, and an exact scan of them 20 to 30 ms.
QUANTIZED_FROM = 200_000

#: How many candidates are ranked for each vector that is wanted, and at least (`benchmarks/name_recall.py`).
CANDIDATES, LEAST_CANDIDATES = 32, 4096

#: How many candidates of several questions are held at once, 32 bytes each.
MAX_CANDIDATES = 1 << 22

#: A greater cosine may belong to an equal vector, which is then compared number by number.
NEARLY_EQUAL = 0.998


class QuantizedSearch:
    """Find nearly all of the nearest vectors at a fraction of the cost.

    Memory and time are a fraction of `ExactSearch`'s.

    A pass over the bits of all vectors picks the `CANDIDATES * k` that differ in the fewest bits. Their 8-bit numbers
    give the distances, with an error of about 0.01. Vectors with equal 8-bit numbers have a distance of exactly 0, and
    ties go to the smallest ids. `k` of all vectors are found in any case.

    Args:
        vectors: int8, shape (m, d): rows as `quantized` makes them. They may be mapped from disk, and are never copied.
        bits: uint64, shape (m, w): the `rotated_bits` of the rows.
        rows: The row of each id: integers of shape (n). Some rows belong to no id. By default row i belongs to id i.
    """

    def __init__(self, vectors: Array, bits: Array, rows: Array | None = None) -> None:
        """Keep the arrays as they are."""
        self.vectors, self.bits, self.rows = np.asarray(vectors), np.asarray(bits), rows

    def __len__(self) -> int:
        """The number of ids."""
        return len(self.vectors if self.rows is None else self.rows)

    @property
    def columns(self) -> dict[str, Array]:
        """The saved columns, by the ends of their names."""
        return {"": self.vectors, "_bits": self.bits}

    @staticmethod
    def encoded(vectors: Array) -> dict[str, Array]:
        """Return the columns of float vectors, by the ends of their names."""
        rows = quantized(vectors)
        return {"": rows, "_bits": rotated_bits(rows)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the vectors of ids alone."""
        own = self.vectors if self.rows is None else self.vectors[self.rows]
        return QuantizedSearch, (own, self._bits)

    def vectors_of(self, ids: Array) -> Array:
        """Return the vectors of some ids, float32: unit rows."""
        return unit_rows(self.vectors[ids if self.rows is None else self.rows[ids]])

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest vectors.

        See `ExactSearch.search`.
        """
        from kg_retrievers.algorithms.bit_scan import nearest_by_bits  # loads numba

        k = min(k, len(self))
        found = np.empty((len(vectors), k), np.int64), np.empty((len(vectors), k), np.float32)
        if not k or not len(vectors):
            return found
        count = min(len(self), max(LEAST_CANDIDATES, CANDIDATES * k))
        asked, step = quantized(vectors), max(1, MAX_CANDIDATES // count)
        for start in range(0, len(vectors), step):
            candidates = nearest_by_bits(self._bits, rotated_bits(asked[start : start + step]), count)
            for question, ids in enumerate(candidates, start):
                near = self._nearest(vectors[question], asked[question], ids, k)
                found[0][question], found[1][question] = near
        return found

    def _nearest(self, vector: Array, asked: Array, ids: Array, k: int) -> tuple[Array, Array]:
        """Return the ids and distances of the nearest of some vectors."""
        from kg_retrievers.algorithms.bit_scan import cosines  # loads numba

        rows = ids if self.rows is None else self.rows[ids].astype(np.int64)
        near = cosines(self.vectors, rows, vector)
        if not np.isfinite(near).all():
            raise DamagedDataError("GraphIndex: a vector is damaged.", hint_python=DAMAGED)
        nearly = np.flatnonzero(near > NEARLY_EQUAL)
        near[nearly[(self.vectors[rows[nearly]] == asked).all(axis=1)]] = 1
        least = np.partition(near, len(near) - k)[len(near) - k]
        kept = np.flatnonzero(near >= least)
        order = kept[np.lexsort((ids[kept], -near[kept]))[:k]]
        return ids[order], np.sqrt(2 - 2 * np.minimum(near[order], 1))

    @cached_property
    def _bits(self) -> Array:
        """The bits of each id, so that unused rows are no candidates."""
        bits: Array = self.bits if self.rows is None else self.bits[self.rows]
        return bits
