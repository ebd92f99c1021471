"""Hashes of texts and of all their parts, from one running sum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kg_retrievers.graph.columns import Array

# The hash of code points c[0], c[1], ... is the sum of (c[i] + 1) * BASE ** i modulo 2 ** 64, so that the hashes of all
# parts of a text come from one running sum. Equal hashes prove nothing: whoever looks one up compares the texts.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)

_MIX = np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)


class RunningHash:
    """The hashes of all parts of one text, each in constant time.

    Args:
        codes: The code points of the text, integers.
    """

    def __init__(self, codes: Array) -> None:
        """Sum up the text."""
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        terms = codes.astype(np.uint64)
        terms += np.uint64(1)
        terms *= _powers(_BASE, len(codes))
        np.cumsum(terms, out=self._sums[1:])
        self._inverses = _powers(_INVERSE, len(codes) + 1)

    def between(self, starts: Array, ends: Array) -> Array:
        """Return the hashes of the parts between positions: uint64."""
        found: Array = (self._sums[ends] - self._sums[starts]) * self._inverses[starts]
        return found


def codes_of(pieces: Iterable[str]) -> Array:
    """Return the code points of texts, one after the other: uint32.

    Example:
        >>> codes_of(["a", "bc"]).tolist()
        [97, 98, 99]
    """
    return np.frombuffer("".join(pieces).encode("utf-32-le", "surrogatepass"), np.uint32)


def hashes_of(texts: Sequence[str]) -> Array:
    """Return the hash of each text: uint64."""
    ends = np.append(0, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))))
    return RunningHash(codes_of(texts)).between(ends[:-1], ends[1:])


def halved(hashes: Array) -> Array:
    """Return hashes of 32 bits for hashes of 64 bits, each of which depends on all 64: uint32.

    Example:
        >>> len(set(halved(hashes_of(["a", "b", "ab", "ba"])).tolist()))
        4
    """
    mixed = (hashes ^ (hashes >> _HALF)) * _MIX
    half: Array = (mixed >> _HALF).astype(np.uint32)
    return half


def _powers(base: int, count: int) -> Array:
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers, out=powers)
