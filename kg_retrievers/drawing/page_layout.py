"""Places the boxes of a page: entities first, then each relation where it covers nothing and few lines cross it.

The parts of a drawing that no fact joins are laid out one by one, and put in rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kg_retrievers.drawing.crossings import Lines
from kg_retrievers.drawing.layout import GAP, STEP, spread

_Floats = NDArray[np.float64]
_Ends = Sequence[tuple[int, int]]

#: Width by height of the picture, as it stands beside the table of facts on a screen.
_ASPECT = 1.25

#: In pixels: the space between parts that no fact joins.
_BETWEEN = 40.0

#: How often the layout of entities is made better, and in how many directions it is turned to fit the screen.
_ROUNDS, _TURNS = 80, 24

#: How many layouts are tried at most, and how many facts these may hold altogether.
_TRIES, _FACTS_TRIED = 3, 150

#: How often each relation is placed: again when all others have their places.
_PASSES = 2

#: What a crossing costs, in pixels that a relation is away from the middle of its line.
_CROSSING_COST = 40.0

#: What it costs that no arrow can be seen between a relation and one of its ends, and the space that an arrow takes.
_TOUCH_COST, _ROOM_FOR_ARROW = 30.0, 24.0


def place_page(ends: _Ends, sizes: _Floats) -> _Floats:
    """Return the centres of entities, then of relations, in pixels; none overlap, and equal input gives equal output.

    Args:
        ends: For each fact the positions of its head and its tail among the boxes.
        sizes: The widths and heights of the boxes: first those of the entities, then one for each fact; (boxes, 2).
    """
    entities = len(sizes) - len(ends)
    graph = nx.Graph(ends)
    graph.add_nodes_from(range(entities))
    parts = sorted(sorted(part) for part in nx.connected_components(graph))
    part_of = {entity: number for number, part in enumerate(parts) for entity in part}
    members = [np.array(part, dtype=int) for part in parts]
    for number, part in enumerate(parts):
        facts = [entities + fact for fact, (head, _) in enumerate(ends) if part_of[head] == number]
        members[number] = np.array(part + facts, dtype=int)
    places = np.zeros((len(sizes), 2))
    for part, boxes in zip(parts, members, strict=True):
        inside = {entity: place for place, entity in enumerate(part)}
        of_part = [(inside[ends[box - entities][0]], inside[ends[box - entities][1]]) for box in boxes[len(part) :]]
        places[boxes] = _place_part(of_part, sizes[boxes])
    return _put_in_rows(members, places, sizes)


def _place_part(ends: _Ends, sizes: _Floats) -> _Floats:
    """Place boxes that facts join: the best of several layouts, where they are so few that trying costs little."""
    entities = len(sizes) - len(ends)
    if not ends:
        return np.zeros((entities, 2))
    wanted = _distances(ends, sizes)
    room = sizes[:entities] + GAP + np.array([0.0, sizes[entities:, 1].max()])
    heads, tails = np.array(ends).T
    best, least = np.zeros((0, 2)), np.inf
    for seed in range(max(1, min(_TRIES, _FACTS_TRIED // len(ends)))):
        centres = spread(_turned(_lay_out(wanted, seed), sizes[:entities]), room)
        places = _place_relations(ends, sizes, centres)
        crossed = int(Lines(heads, tails, entities, places, sizes).crossed().sum())
        cost = round(crossed * _CROSSING_COST + _extent(places, sizes), 3)
        if cost < least:
            best, least = places, cost
        if not crossed:
            break
    return best


def _lay_out(wanted: _Floats, seed: int) -> _Floats:
    """Lay out entities in steps by stress majorization, as `layout` does, from random places."""
    entities = len(wanted)
    weights = 1 / (wanted + np.eye(entities)) ** 2 - np.eye(entities)
    inverse = np.linalg.inv(np.diag(weights.sum(1)) - weights + 1)
    places = np.random.default_rng(seed).random((entities, 2)) * wanted.max()
    for _ in range(_ROUNDS):
        across = places[:, None, 0] - places[:, 0]
        down = places[:, None, 1] - places[:, 1]
        pulls = weights * wanted / np.maximum(np.sqrt(across * across + down * down), 1e-9)
        places = inverse @ (pulls.sum(1)[:, None] * places - pulls @ places)
    centred: _Floats = places - places.mean(0)
    return centred


def _distances(ends: _Ends, sizes: _Floats) -> _Floats:
    """Return how far apart entities should be, in steps: along facts, with room for the names of relations."""
    entities = len(sizes) - len(ends)
    degrees = np.bincount(np.array(ends).ravel(), minlength=entities)
    parallel = Counter(frozenset(pair) for pair in ends)
    wanted = np.full((entities, entities), np.inf)
    for (head, tail), (width, _) in zip(ends, sizes[entities:].tolist(), strict=True):
        boxes = sizes[[head, tail], 0].mean() / 2
        beside = 0.4 * (parallel[frozenset((head, tail))] - 1)
        crowd = degrees[[head, tail]].max() ** 0.5 / 1.8
        length = max(1.5, (boxes + width + 2 * GAP[0]) / STEP[0], crowd) + beside
        wanted[head, tail] = wanted[tail, head] = min(length, wanted[head, tail])
    np.fill_diagonal(wanted, 0)
    for middle in range(entities):
        np.minimum(wanted, wanted[:, [middle]] + wanted[middle], out=wanted)
    return wanted


def _turned(places: _Floats, sizes: _Floats) -> _Floats:
    """Turn a layout in steps so that, in pixels, it is large on the screen; what comes first is on the left."""

    def turned(angle: float) -> _Floats:
        cos, sin = np.cos(angle), np.sin(angle)
        found: _Floats = places @ np.array([[cos, -sin], [sin, cos]]) * STEP
        return found * np.where(found[0] > 0, -1, 1)

    return min((turned(np.pi * turn / _TURNS) for turn in range(_TURNS)), key=lambda one: _extent(one, sizes))


def _extent(places: _Floats, sizes: _Floats) -> float:
    """Return the width that a screen must have to show boxes, in pixels."""
    width, height = ((places + sizes / 2).max(0) - (places - sizes / 2).min(0)).tolist()
    return float(round(max(width, height * _ASPECT), 3))


def _place_relations(ends: _Ends, sizes: _Floats, centres: _Floats) -> _Floats:
    """Place each relation near the middle of its line, where it covers no box and few lines cross."""
    entities = len(centres)
    heads, tails = np.array(ends).T
    middles = (centres[heads] + centres[tails]) / 2
    places = np.vstack([centres, middles])
    lines = Lines(heads, tails, entities, places, sizes)
    placed = np.arange(len(sizes)) < entities
    degrees = np.bincount(np.array(ends).ravel(), minlength=entities)
    order = np.argsort(
        np.linalg.norm(centres[heads] - centres[tails], axis=1), kind="stable"
    )  # short lines have least room
    for _ in range(_PASSES):
        for fact in order.tolist():
            box = entities + fact
            placed[box] = False
            small, large = sorted(ends[fact], key=lambda end: (degrees[end], end))
            for spots in _spots(places[small], places[large], sizes[small], sizes[box]):
                free = spots[~_covers(spots, sizes[box], places[placed], sizes[placed])]
                if len(free):
                    break
            costs = _detours(places[small], free, places[large]) + 0.3 * np.linalg.norm(free - middles[fact], axis=1)
            costs += _TOUCH_COST * _covers(
                free, sizes[box] + _ROOM_FOR_ARROW, places[[small, large]], sizes[[small, large]]
            )
            costs += _CROSSING_COST * lines.crossings(fact, free, placed)
            places[box] = free[np.argmin(costs.round(3))]
            placed[box] = True
    return places


def _spots(small: _Floats, large: _Floats, size: _Floats, own: _Floats) -> Iterator[_Floats]:
    """Yield places to try for a relation: along its line and beside one end; then further and further away."""
    along = small + np.linspace(0.2, 0.8, 13)[:, None] * (large - small)
    aside = np.array([[0, 0], [0, 11], [0, -11], [0, 22], [0, -22], [24, 0], [-24, 0]])
    beside = (size + own) / 2 + 3
    yield np.vstack([(along[:, None] + aside).reshape(-1, 2), small + beside * [[0, -1], [0, 1], [-1, 0], [1, 0]]])
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([1.6 * np.cos(angles), np.sin(angles)], 1)
    for ring in count(1):
        yield (small + large) / 2 + 20.0 * ring * circle


def _detours(start: _Floats, spots: _Floats, stop: _Floats) -> _Floats:
    """Return how much longer a line becomes over each of some spots."""
    longer: _Floats = np.linalg.norm(spots - start, axis=1) + np.linalg.norm(spots - stop, axis=1)
    return longer - float(np.linalg.norm(stop - start))


def _covers(spots: _Floats, size: _Floats, places: _Floats, sizes: _Floats) -> NDArray[np.bool_]:
    """Return at which spots a box would cover another one, or come closer than 3 pixels."""
    least = (sizes + size) / 2 + 3
    near = ((places + least > spots.min(0)) & (places - least < spots.max(0))).all(1)
    apart = abs(spots[:, None] - places[near]) < least[near]
    covers: NDArray[np.bool_] = apart.all(2).any(1)
    return covers


def _put_in_rows(members: Sequence[NDArray[np.int_]], places: _Floats, sizes: _Floats) -> _Floats:
    """Put parts side by side, in rows about as wide as the screen wants them, those that come first above."""
    corners = [(places[part] - sizes[part] / 2).min(0) for part in members]
    extents = [(places[part] + sizes[part] / 2).max(0) - low for part, low in zip(members, corners, strict=True)]
    area = sum(float(np.prod(extent + _BETWEEN)) for extent in extents)
    width = max([(area * _ASPECT) ** 0.5, *(float(extent[0]) for extent in extents)])
    moved, left, top, height = places.copy(), 0.0, 0.0, 0.0
    for part, low, extent in zip(members, corners, extents, strict=True):
        if left and left + extent[0] > width:
            left, top, height = 0.0, top + height + _BETWEEN, 0.0
        moved[part] = places[part] - low + [left, top]
        left, height = left + extent[0] + _BETWEEN, max(height, float(extent[1]))
    return moved
