"""A picture that stands still: where each part is, and the SVG of it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kg_retrievers.drawing.boxes import Box, Role
from kg_retrievers.drawing.layout import place_boxes

_Floats = NDArray[np.float64]

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
