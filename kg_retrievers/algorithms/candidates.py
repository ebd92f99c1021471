"""Candidates: what a text may stand for, as the index finds it and the algorithms take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Candidates(NamedTuple):
    """Holds what a text may stand for, ascending by distance where the index made it.

    Attributes:
        ids: int32, shape (m): ids of entities, relations or types, each at most once.
        distances: float32, shape (m): the distance of each, 0 or more; in [0, 2] between unit vectors.
    """

    ids: npt.NDArray[np.int32]
    distances: npt.NDArray[Any]
