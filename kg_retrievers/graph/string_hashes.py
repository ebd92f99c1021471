"""The hashes of strings by which `StringTable` finds them: the same on every machine, and saved with each graph."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Strings of up to so many bytes are hashed word by word, all strings at once.
HASHED_BY_WORDS = 64

#: How many strings are encoded, hashed or compared at once.
STRINGS_AT_ONCE = 1 << 16

_MASK = 2**64 - 1

#: An odd factor with bits all over it: 2**64 divided by the golden ratio.
_FACTOR = 0x9E3779B97F4A7C15


def hashes_of(offsets: Array, data: Array) -> Array:
    """Return the hash of each string of a table, as `hash_of` does: uint64.

    Cost: some passes over the bytes, without a loop over strings of up to `HASHED_BY_WORDS` bytes.

    Args:
        offsets: Where each string starts in `data`: int, shape (n + 1).
        data: The UTF-8 bytes of the strings: uint8.
    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for first in range(0, len(hashes), STRINGS_AT_ONCE):
        starts = offsets[first : first + STRINGS_AT_ONCE + 1].astype(np.int64)
        some = hashes[first : first + STRINGS_AT_ONCE]
        some[:] = _hashes_by_words(data[starts[0] : starts[-1]], starts - starts[0])
        for at in np.flatnonzero(np.diff(starts) > HASHED_BY_WORDS).tolist():
            some[at] = hash_of(data[starts[at] : starts[at + 1]].tobytes())
    return hashes


def hash_of(encoded: bytes) -> int:
    """Return the hash of a string, given as UTF-8, below 2**64: the same on every machine.

    Each word of 8 bytes is joined by exclusive or, then multiplied and shifted. Longer strings than `HASHED_BY_WORDS`
    have the start of their BLAKE2b digest.

    Example:
        >>> int(hashes_of(np.array([0, 3, 12]), np.frombuffer(b"HerSomewhere", np.uint8))[1]) == hash_of(b"Somewhere")
        True
    """
    if len(encoded) > HASHED_BY_WORDS:
        return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "little")
    value = len(encoded)
    for start in range(0, len(encoded), 8):
        value = (value ^ int.from_bytes(encoded[start : start + 8], "little")) * _FACTOR & _MASK
        value ^= value >> 32
    return value


def _hashes_by_words(data: Array, starts: Array) -> Array:
    """Return the hashes of the strings of at most `HASHED_BY_WORDS` bytes; those of others mean nothing."""
    padded = np.zeros(len(data) + 8, np.uint8)
    padded[: len(data)] = data
    words = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))  # the 8 bytes from each byte on
    lengths = np.diff(starts)
    hashes = lengths.astype(np.uint64)
    for begin in range(0, int(min(lengths.max(initial=0), HASHED_BY_WORDS)), 8):
        open_ = np.flatnonzero(lengths > begin)
        word = words[starts[open_] + begin]
        missing = np.maximum(begin + 8 - lengths[open_], 0).astype(np.uint64) * np.uint64(8)
        word &= np.uint64(_MASK) >> missing
        value = (hashes[open_] ^ word) * np.uint64(_FACTOR)
        value ^= value >> np.uint64(32)
        hashes[open_] = value
    return hashes
