"""The 95 % Wilson interval of a share, which benchmarks print beside it."""

from __future__ import annotations

from math import sqrt


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """Return the ends of the interval of `right` out of `count`, which is 1 or more."""
    share, z = right / count, 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return middle - half, middle + half
