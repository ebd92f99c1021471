"""Places the boxes of a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kg_retrievers.drawing.layout import place_boxes

_Floats = NDArray[np.float64]


def place_page(ends: Sequence[tuple[int, int]], sizes: _Floats) -> _Floats:
    """Return the centres of entities, then of relations, in pixels; none overlap.

    Args:
        ends: For each fact the positions of its head and its tail among the boxes.
        sizes: The widths and heights of the boxes: first those of the entities, then one for each fact; (boxes, 2).
    """
    if not len(sizes):
        return np.zeros((0, 2))
    entities = len(sizes) - len(ends)
    ways = [(head, middle, tail) for middle, (head, tail) in enumerate(ends, entities)]
    return place_boxes(ways, sizes)
