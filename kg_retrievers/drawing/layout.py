"""Place the boxes of a drawing with numpy alone: the layouts of networkx need SciPy, or look worse."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

#: In pixels, across and down: the least space between boxes, and one step of the layout (names are wide).
_GAP, _STEP = np.array([16.0, 14.0]), np.array([75.0, 36.0])


def place_boxes(ways: Sequence[tuple[int, int, int]], sizes: _Floats) -> _Floats:
    """Return the centres of boxes, in pixels, so that joined boxes are near each other and none overlap.

    Args:
        ways: For each triple the positions of the boxes of its head, its relation and its tail; one or more.
        sizes: The widths and heights of the boxes, in pixels; (boxes, 2).

    Returns:
        The centres; (boxes, 2), the same at every call.
    """
    return _spread(_layout(ways, sizes) * _STEP, sizes + _GAP)


def _layout(ways: Sequence[tuple[int, int, int]], sizes: _Floats) -> _Floats:
    """Lay out boxes in steps, joined ones at least one step apart.

    Stress majorization: distances on the page approach those in the graph (Gansner, Koren, North: Graph Drawing by
    Stress Majorization, 2004). networkx has such a layout, `kamada_kawai_layout`, with SciPy only.
    """
    count = len(sizes)
    degrees = np.bincount([number for head, _, tail in ways for number in {head, tail}], minlength=count)
    graph, parallel = nx.Graph(), dict[frozenset[int], int]()
    for way in ways:
        for first, second in pairwise(way):
            side_by_side = (sizes[[first, second], 0].mean() + _GAP[0]) / _STEP[0]
            graph.add_edge(first, second, length=max(1.0, side_by_side, degrees[[first, second]].max() ** 0.5 / 2.2))
        if (ends := frozenset(way[::2])) in parallel:
            graph.add_edge(parallel[ends], way[1], length=0.8)  # side by side
        parallel[ends] = way[1]
    wanted = np.full((count, count), count**0.5)  # where nothing joins two
    for number, lengths in nx.all_pairs_dijkstra_path_length(graph, weight="length"):
        wanted[number, list(lengths)] = list(lengths.values())
    weights = 1 / (wanted + np.eye(count)) ** 2 - np.eye(count)
    inverse = np.linalg.inv(np.diag(weights.sum(1)) - weights + 1)
    places = np.random.default_rng(0).random((count, 2)) * count**0.5
    for _ in range(200):
        distances = np.maximum(np.linalg.norm(places[:, None] - places, axis=2), 1e-9)
        pulls = weights * wanted / distances
        places = inverse @ (pulls.sum(1)[:, None] * places - pulls @ places)
    places = (places - places.mean(0)) @ np.linalg.svd(places - places.mean(0))[2].T  # the long way is across
    turned: _Floats = places * np.where(places[0] > 0, -1, 1)  # what comes first is on the left
    return turned


def _spread(places: _Floats, sizes: _Floats) -> _Floats:
    """Push boxes apart until none overlap."""
    least = (sizes[:, None] + sizes) / 2
    order = np.sign(np.arange(len(sizes))[:, None] - np.arange(len(sizes)))
    for turn in range(1000):
        apart = places[:, None] - places
        over = least - abs(apart)
        hit = (over > 0.01).all(2) & (order != 0)
        if not hit.any():
            break
        across = over[..., 0] < over[..., 1]
        towards = np.where(across, apart[..., 0], apart[..., 1])
        push = np.where(hit, over.min(2), 0) * np.where(towards == 0, order, np.sign(towards))
        moves = np.stack([(push * across).sum(1), (push * ~across).sum(1)], 1)
        places = places * (1 + turn / 10_000) + 0.4 * moves
    return places
