"""A picture that stands still: its boxes, where networkx places them without overlaps, and the SVG."""

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
    """An entity or a relation as a picture shows it; sizes in pixels, widths estimated for a sans-serif font."""

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


#: The paper is part of the picture, so that it reads the same in light and dark notebooks.
PAPER, INK, LINE = "#ffffff", "#1f2328", "#6b7280"
#: Fill and outline.
COLORS: dict[Role, tuple[str, str]] = {
    "answer": ("#fff1c7", "#8a5a00"),
    "known": ("#ddf0ff", "#0a5cb8"),
    "other": ("#f3f4f6", LINE),
    "relation": (PAPER, "none"),
}
#: In pixels: the font of the words below; the height of a line of these; the margin.
FONT, _LINE_HEIGHT, MARGIN, _LEAST_WIDTH = 11, 18, 16, 200


class Arrow(NamedTuple):
    """From the box of an entity through that of a relation to that of an entity, straight, or bent if it is a loop."""

    line: str  # as SVG writes a path
    point: str  # the corners of its tip

    @classmethod
    def of(cls, way: tuple[int, int, int], centres: _Floats, size: tuple[float, float]) -> Arrow:
        """Return the arrow along three boxes, the last of which has this size."""
        head, middle, tail = centres[list(way)]
        loop = way[0] == way[2]
        aside = (middle - head)[::-1] * (-0.5, 0.5) * loop
        bend, last_bend = (head + middle) / 2 + aside, (middle + tail) / 2 - aside
        t = np.linspace(0, 1, 201)[:, None]
        curve = (1 - t) ** 2 * middle + 2 * t * (1 - t) * last_bend + t**2 * tail
        outside = np.flatnonzero((abs(curve - tail) > np.array(size) / 2).any(1))[-1]
        tip, beyond = curve[outside], curve[outside + 1]
        ahead = (beyond - tip) / np.linalg.norm(beyond - tip)
        back, side = tip - 9 * ahead, 3.5 * ahead[::-1] * (1, -1)
        line = "M{} Q{} {} Q{} {}".format(*map(_xy, (head, bend, middle, last_bend, tail)))
        point = " ".join(map(_xy, (tip, back + side, back - side)))
        return cls(line, point)


class Picture(NamedTuple):
    """The position of each part of a picture, in pixels from the upper left corner."""

    width: int
    height: int
    boxes: list[Box]  # entities, then relations
    centres: _Floats  # (boxes, 2)
    arrows: list[Arrow]
    below: list[tuple[int, str, str]]  # lines of text: y, colour, text

    @classmethod
    def of(
        cls,
        entities: Sequence[Box],
        relations: Sequence[Box],
        ends: Sequence[tuple[int, int]],
        below: Sequence[tuple[str, str]],
    ) -> Picture:
        """Lay out the boxes of entities and relations, and the lines of text below: their colours and texts."""
        boxes = [*entities, *relations]
        ways = [(head, middle, tail) for middle, (head, tail) in enumerate(ends, len(entities))]
        sizes = np.array([box.size for box in boxes]).reshape(-1, 2)
        centres = place_boxes(ends, sizes)
        corners = np.vstack([centres - sizes / 2, centres + sizes / 2]) if boxes else np.zeros((1, 2))
        centres = centres - corners.min(0) + MARGIN
        width, height = np.ceil(np.ptp(corners, 0) + 2 * MARGIN).astype(int).tolist()
        lines = [(height + _LINE_HEIGHT * number, *line) for number, line in enumerate(below)]
        arrows = [Arrow.of(way, centres, boxes[way[2]].size) for way in ways]
        return cls(max(width, _LEAST_WIDTH), height + _LINE_HEIGHT * len(below), boxes, centres, arrows, lines)

    def svg(self, name: str, namespace: str) -> str:
        """Return it as SVG; `namespace` may be left out inside HTML, as ""."""
        named = f' xmlns="{namespace}"' if namespace else ""
        parts = [
            f'<svg{named} role="img" aria-label="{escape(name)}" width="{self.width}" '
            f'height="{self.height}" font-family="sans-serif" font-size="{FONT}">',
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>',
        ]
        for arrow in self.arrows:
            parts.append(f'<path d="{arrow.line}" fill="none" stroke="{LINE}"/>')
            parts.append(f'<polygon points="{arrow.point}" fill="{LINE}"/>')
        for box, (x, y) in zip(self.boxes, self.centres.tolist(), strict=True):
            (width, height), (fill, outline) = box.size, COLORS[box.role]
            parts.append(
                f'<g><title>{escape(box.tooltip)}</title><rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
                f'width="{width:.1f}" height="{height}" rx="6" fill="{fill}" stroke="{outline}"/>'
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" dominant-baseline="central" '
                f'font-size="{box.font}" fill="{INK}">{escape(box.shown)}</text></g>'
            )
        parts += [f'<text x="{MARGIN}" y="{y}" fill="{color}">{text}</text>' for y, color, text in self.below]
        return "\n".join([*parts, "</svg>"])


def _xy(point: _Floats) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
