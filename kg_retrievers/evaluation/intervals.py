"""Bootstrap intervals: how far a figure may be off, since other questions might have been asked (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kg_retrievers.graph.columns import Array

#: How often the questions are drawn anew, and how much of the figures lies between the ends of an interval.
DRAWS, CONFIDENCE = 1000, 0.95


def bootstrap_interval(
    values: Sequence[float], seed: int, figure: Callable[[Array], float] = np.mean
) -> list[float] | None:
    """Return the percentile bootstrap interval `[low, high]` of a figure, of questions drawn with replacement.

    Args:
        values: A value for each question; None is returned where there are none.
        seed: Of what is drawn.
        figure: What is made of the values, the mean by default.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 1.0], seed=0)
        [1.0, 1.0]
    """
    found = np.array(values, dtype=float)
    if not len(found):
        return None
    generator, tail = np.random.default_rng(seed), (1 - CONFIDENCE) / 2
    figures = [figure(found[generator.integers(0, len(found), len(found))]) for _ in range(DRAWS)]
    low, high = np.quantile(figures, [tail, 1 - tail]).tolist()
    return [low, high]
