"""Place the boxes of a drawing with numpy alone: the layouts of networkx need SciPy, or look worse."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

#: In pixels, across and down: the least space between boxes, and one step of the layout (names are wide).
GAP, STEP = np.array([16.0, 14.0]), np.array([75.0, 36.0])


def place_boxes(ways: Sequence[tuple[int, int, int]], sizes: _Floats) -> _Floats:
    """Return the centres of boxes, in pixels, so that joined boxes are near each other and none overlap.

    Args:
        ways: For each triple the positions of the boxes of its head, its relation and its tail; one or more.
        sizes: The widths and heights of the boxes, in pixels; (boxes, 2).

    Returns:
        The centres; (boxes, 2), the same at every call.
    """
    return spread(_layout(ways, sizes) * STEP, sizes + GAP)


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
            side_by_side = (sizes[[first, second], 0].mean() + GAP[0]) / STEP[0]
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


def spread(places: _Floats, sizes: _Floats) -> _Floats:
    """Push boxes apart until none overlap, and return their centres.

    Args:
        places: The centres, in pixels; (boxes, 2).
        sizes: The widths and heights, with the space between boxes.
    """
    ones, others = np.triu_indices(len(sizes), 1)
    least = (sizes[ones] + sizes[others]) / 2
    for turn in range(1000):
        apart = places[ones] - places[others]
        over = least - abs(apart)
        hit = np.flatnonzero((over > 0.01).all(1))
        if not len(hit):
            break
        across = over[hit, 0] < over[hit, 1]
        towards = np.where(across, apart[hit, 0], apart[hit, 1])
        push = np.where(towards > 0, 0.4, -0.4) * over[hit].min(1)
        push = np.stack([push * across, push * ~across], 1)
        places = places * (1 + turn / 10_000)
        np.add.at(places, ones[hit], push)
        np.subtract.at(places, others[hit], push)
    return places
