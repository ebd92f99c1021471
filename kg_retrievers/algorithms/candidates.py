"""Candidates: the possible meanings of a text, as the index finds them and the algorithms take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Candidates(NamedTuple):
    """The possible meanings of a text, ascending by distance if the index made them.

    Attributes:
        ids: int32, shape (m): ids of entities, relations or types, each at most once.
        distances: float32, shape (m): the distance of each, 0 or more, and in [0, 2] between unit vectors.
    """

    ids: npt.NDArray[np.int32]
    distances: npt.NDArray[Any]
