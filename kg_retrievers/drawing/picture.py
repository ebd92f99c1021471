"""Draw a still picture as SVG, with boxes that networkx places without overlaps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple
from unicodedata import category, east_asian_width

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kg_retrievers.graph.verbalize import one_line

Role = Literal["answer", "known", "other", "relation"]

#: How many characters of a name a picture shows.
MAX_CHARACTERS = 28

#: In pixels: the fonts of entities and of relations.
ENTITY_FONT, RELATION_FONT = 12, 10

_BLANKS = re.compile("[ \xa0]+")


class Box(NamedTuple):
    """An entity or a relation as a picture shows it.

    Sizes are in pixels, with widths estimated for a sans-serif font.
    """

    role: Role
    shown: str
    tooltip: str

    @property
    def font(self) -> int:
        """The size of the font, in pixels."""
        return RELATION_FONT if self.role == "relation" else ENTITY_FONT

    @property
    def size(self) -> tuple[float, int]:
        """Width and height, in pixels."""
        space, height = (8, 15) if self.role == "relation" else (20, 26)
        return space + self.font * sum(map(_width, self.shown)), height


def clean_line(text: str) -> str:
    """Return a name on one line, with single blanks."""
    return _BLANKS.sub(" ", one_line(text)).strip() or "(no name)"


def cut_short(line: str) -> str:
    """Return as many characters of a line as a picture shows."""
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1].rstrip() + "…"


def _width(character: str) -> float:
    """Return the estimated width of a character, as a share of the font size."""
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    return 1.0 if east_asian_width(character) in "WF" else 0.75 if character.isupper() else 0.57


_Floats = NDArray[np.float64]

#: In pixels, across and down: the least space between boxes, and the usual way between two entities (names are wide).
GAP, STEP = np.array([16.0, 14.0]), np.array([170.0, 75.0])


def place_boxes(ends: Sequence[tuple[int, int]], sizes: _Floats) -> _Floats:
    """Return the centres of boxes in pixels, without overlaps.

    Args:
        ends: The positions of head and tail of each triple among the entities.
        sizes: The widths and heights of the boxes of the entities, then of the relations, in pixels, shape (boxes, 2).

    Returns:
        The centres, shape (boxes, 2), the same at every call. Without triples the entities stand in a column.
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
        row = len(places) + len(part) / 2 if places else 0  # no two entities start at one place
        for depth, layer in enumerate(nx.bfs_layers(graph, min(part))):
            for place, entity in enumerate(layer):
                places[entity] = np.array([depth, row + place - len(layer) / 2]) * 6.0
    return places


def _spread(places: _Floats, sizes: _Floats) -> _Floats:
    """Push boxes apart until none overlap, and return their centres.

    Args:
        places: The centres, in pixels, shape (boxes, 2).
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


#: The paper is part of the picture, so that it reads the same in light and dark notebooks.
PAPER, INK, LINE = "#ffffff", "#1f2328", "#6b7280"
#: Fill and outline.
COLORS: dict[Role, tuple[str, str]] = {
    "answer": ("#fff1c7", "#8a5a00"),
    "known": ("#ddf0ff", "#0a5cb8"),
    "other": ("#f3f4f6", LINE),
    "relation": (PAPER, "none"),
}
#: In pixels: the font of the words below, the height of one of their lines, and the margin.
FONT, _LINE_HEIGHT, MARGIN, _LEAST_WIDTH = 11, 18, 16, 200


def svg_picture(
    entities: Sequence[Box],
    relations: Sequence[Box],
    ends: Sequence[tuple[int, int]],
    below: Sequence[tuple[str, str]],
    name: str,
) -> str:
    """Return a picture as SVG.

    Args:
        entities: The boxes of the entities.
        relations: The boxes of the relations, one for each fact.
        ends: For each fact the positions of its head and its tail.
        below: The colour and the text of each line below.
        name: The name of the picture.
    """
    boxes = [*entities, *relations]
    sizes = np.array([box.size for box in boxes]).reshape(-1, 2)
    centres = place_boxes(ends, sizes)
    corners = np.vstack([centres - sizes / 2, centres + sizes / 2]) if boxes else np.zeros((1, 2))
    centres = centres - corners.min(0) + MARGIN
    width, height = np.ceil(np.ptp(corners, 0) + 2 * MARGIN).astype(int).tolist()
    width, whole_height = max(width, _LEAST_WIDTH), height + _LINE_HEIGHT * len(below)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(name)}" width="{width}" '
        f'height="{whole_height}" font-family="sans-serif" font-size="{FONT}">',
        f'<rect width="{width}" height="{whole_height}" rx="8" fill="{PAPER}"/>',
    ]
    for middle, (head, tail) in enumerate(ends, len(entities)):
        parts += _arrow(centres[[head, middle, tail]], boxes[tail].size, is_loop=head == tail)
    for box, (x, y) in zip(boxes, centres.tolist(), strict=True):
        (box_width, box_height), (fill, outline) = box.size, COLORS[box.role]
        parts.append(
            f'<g><title>{escape(box.tooltip)}</title><rect x="{x - box_width / 2:.1f}" y="{y - box_height / 2:.1f}" '
            f'width="{box_width:.1f}" height="{box_height}" rx="6" fill="{fill}" stroke="{outline}"/>'
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" dominant-baseline="central" '
            f'font-size="{box.font}" fill="{INK}">{escape(box.shown)}</text></g>'
        )
    for number, (color, text) in enumerate(below):
        parts.append(f'<text x="{MARGIN}" y="{height + _LINE_HEIGHT * number}" fill="{color}">{text}</text>')
    return "\n".join([*parts, "</svg>"])


def _arrow(centres: _Floats, size: tuple[float, float], *, is_loop: bool) -> list[str]:
    """Return the line and the tip of an arrow, straight, or bent if it is a loop.

    Args:
        centres: The centres of head, relation and tail, shape (3, 2).
        size: The size of the tail's box.
        is_loop: Whether head and tail are one.
    """
    head, middle, tail = centres
    aside = (middle - head)[::-1] * (-0.5, 0.5) * is_loop
    bend, last_bend = (head + middle) / 2 + aside, (middle + tail) / 2 - aside
    t = np.linspace(0, 1, 201)[:, None]
    curve = (1 - t) ** 2 * middle + 2 * t * (1 - t) * last_bend + t**2 * tail
    outside = np.flatnonzero((abs(curve - tail) > np.array(size) / 2).any(1))[-1]
    tip, beyond = curve[outside], curve[outside + 1]
    ahead = (beyond - tip) / np.linalg.norm(beyond - tip)
    back, side = tip - 9 * ahead, 3.5 * ahead[::-1] * (1, -1)
    line = "M{} Q{} {} Q{} {}".format(*map(_xy, (head, bend, middle, last_bend, tail)))
    point = " ".join(map(_xy, (tip, back + side, back - side)))
    return [f'<path d="{line}" fill="none" stroke="{LINE}"/>', f'<polygon points="{point}" fill="{LINE}"/>']


def _xy(point: _Floats) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
