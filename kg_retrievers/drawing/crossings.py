"""Counts where the lines of facts cross boxes that are not theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int_]
_Bools = NDArray[np.bool_]


class Lines:
    """The lines of facts, each from its head over the box of its relation to its tail.

    Args:
        heads: The positions of the heads among the boxes; (facts,).
        tails: The positions of the tails.
        entities: How many boxes are entities; those after them are relations, one for each fact.
        places: The centres of the boxes, in pixels; it may change afterwards. (boxes, 2).
        sizes: Their widths and heights.
    """

    def __init__(self, heads: _Ints, tails: _Ints, entities: int, places: _Floats, sizes: _Floats) -> None:
        """Take the arrays as they are."""
        self.entities = entities
        self.places, self.sizes = places, sizes
        relations = np.arange(entities, entities + len(heads))
        self.starts, self.stops = np.concatenate([heads, relations]), np.concatenate([relations, tails])

    def crossings(self, fact: int, spots: _Floats, placed: _Bools) -> _Ints:
        """Return how many crossings there are if the relation of a fact is at each of some spots; (spots,).

        Args:
            fact: The fact.
            spots: Where its relation may be; (spots, 2).
            placed: Which boxes have their places; lines may cross the others. (boxes,).
        """
        box, half = self.entities + fact, self.sizes[self.entities + fact] / 2
        starts, stops = self.places[self.starts], self.places[self.stops]
        low, high = spots.min(0) - half, spots.max(0) + half
        near = (np.maximum(starts, stops) > low).all(1) & (np.minimum(starts, stops) < high).all(1)
        near &= (self.starts != box) & (self.stops != box)
        total: _Ints = _hits(starts[near], stops[near], spots - half, spots + half).sum(0)
        for end in (int(self.starts[fact]), int(self.stops[fact + len(self.starts) // 2])):
            total = total + self._over_boxes(end, box, spots, placed)
        return total

    def _over_boxes(self, end: int, box: int, spots: _Floats, placed: _Bools) -> _Ints:
        """Return how many boxes a line from one to each of some spots crosses."""
        here = self.places[end]
        low, high = self.places - self.sizes / 2, self.places + self.sizes / 2
        near = placed & (high > np.minimum(here, spots.min(0))).all(1) & (low < np.maximum(here, spots.max(0))).all(1)
        near[[end, box]] = False
        hits: _Ints = _hits(np.broadcast_to(here, spots.shape), spots, low[near], high[near]).sum(1)
        return hits

    def crossed(self) -> _Ints:
        """Return how many lines cross each box, where all are placed; (boxes,)."""
        low, high = self.places - self.sizes / 2, self.places + self.sizes / 2
        hits = _hits(self.places[self.starts], self.places[self.stops], low + 1, high - 1)
        relations = np.maximum(self.starts, self.stops)  # of each line its relation; its entity is the lesser
        heads = np.tile(self.starts[: len(relations) // 2], 2)
        tails = np.tile(self.stops[len(relations) // 2 :], 2)
        rows = np.arange(len(relations))
        for own in (relations, heads, tails):
            hits[rows, own] = False
        counts: _Ints = hits.sum(0)
        return counts


def _hits(starts: _Floats, stops: _Floats, low: _Floats, high: _Floats) -> _Bools:
    """Return which straight lines meet which upright boxes; (lines, boxes)."""
    ahead = stops - starts
    ahead = np.where(abs(ahead) < 1e-9, 1e-9, ahead)
    enter, leave = np.zeros((len(starts), len(low))), np.ones((len(starts), len(low)))
    for axis in (0, 1):
        one = (low[:, axis] - starts[:, axis, None]) / ahead[:, axis, None]
        other = (high[:, axis] - starts[:, axis, None]) / ahead[:, axis, None]
        np.maximum(enter, np.minimum(one, other), out=enter)
        np.minimum(leave, np.maximum(one, other), out=leave)
    hits: _Bools = leave > enter
    return hits
