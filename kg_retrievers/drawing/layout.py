"""Places the boxes of a picture: networkx lays the entities out, and boxes that overlap are pushed apart."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

#: In pixels, across and down: the least space between boxes, and the usual way between two entities (names are wide).
GAP, STEP = np.array([16.0, 14.0]), np.array([170.0, 75.0])


def place_boxes(ends: Sequence[tuple[int, int]], sizes: _Floats) -> _Floats:
    """Return the centres of boxes in pixels, without overlaps.

    Args:
        ends: The positions of head and tail of each triple among the entities.
        sizes: The widths and heights of the boxes of the entities, then of the relations, in pixels; (boxes, 2).

    Returns:
        The centres; (boxes, 2), the same at every call. Without triples the entities stand in a column.
    """
    entities = len(sizes) - len(ends)
    if not ends:
        return np.stack([np.zeros(entities), 40.0 * np.arange(entities)], 1)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(entities))
    graph.add_edges_from((min(pair), max(pair)) for pair in ends)
    places = np.zeros((1, 2))
    if entities > 1:
        found = nx.forceatlas2_layout(graph, _start(graph), seed=0)
        places = np.array([found[entity] for entity in range(entities)])
        places -= places.mean(0)
        places = places @ np.linalg.svd(places, full_matrices=False)[2].T  # the long way is across
        places *= np.where(places[0] > 0, -1, 1)  # the first entity is on the left
    heads, tails = np.array(ends).T
    lengths = np.linalg.norm(places[heads] - places[tails], axis=1)
    usual = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
    places = places / usual * STEP
    return _spread(np.vstack([places, (places[heads] + places[tails]) / 2]), sizes + GAP)


def _start(graph: nx.Graph[int]) -> dict[int, _Floats]:
    """Return each entity's place before the forces act: in wide layers around the first of each part."""
    places: dict[int, _Floats] = {}
    for part in nx.connected_components(graph):
        row = len(places)
        for depth, layer in enumerate(nx.bfs_layers(graph, min(part))):
            for place, entity in enumerate(layer):
                places[entity] = np.array([depth, row + place - len(layer) / 2]) * 6.0
    return places


def _spread(places: _Floats, sizes: _Floats) -> _Floats:
    """Push boxes apart until none overlap, and return their centres.

    Args:
        places: The centres, in pixels; (boxes, 2).
        sizes: The widths and heights, with the space between boxes.
    """
    ones, others = np.triu_indices(len(sizes), 1)
    least = (sizes[ones] + sizes[others]) / 2
    for turn in range(1000):
        near = np.flatnonzero(abs(places[ones, 0] - places[others, 0]) < least[:, 0] - 0.01)
        apart = places[ones[near]] - places[others[near]]
        over = least[near] - abs(apart)
        hit = np.flatnonzero(over[:, 1] > 0.01)
        if not len(hit):
            break
        across = over[hit, 0] < over[hit, 1]
        towards = np.where(across, apart[hit, 0], apart[hit, 1])
        push = np.where(towards > 0, 0.4, -0.4) * over[hit].min(1)
        push = np.stack([push * across, push * ~across], 1)
        places = places * (1 + turn / 10_000)
        np.add.at(places, ones[near[hit]], push)
        np.subtract.at(places, others[near[hit]], push)
    return places
