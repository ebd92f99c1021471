"""A picture by matplotlib."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import networkx as nx

from kg_retrievers.drawing.picture import COLORS, FONT, INK, LINE, MARGIN, PAPER, Picture
from kg_retrievers.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_picture(picture: Picture, ax: Axes | None) -> Axes:
    """Draw a picture on axes, or on new ones, and return them; see `Drawing.plot`."""
    try:
        from matplotlib import pyplot
        from matplotlib.patches import FancyBboxPatch
    except ImportError:
        raise MissingExtraError("Drawing.plot", "viz") from None
    if ax is None:
        ax = pyplot.figure(figsize=(picture.width / 72, picture.height / 72)).add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, picture.width), ylim=(picture.height, 0), xticks=[], yticks=[], aspect="equal", facecolor=PAPER)
    ax.apply_aspect()
    scale = ax.get_window_extent().width / picture.width * 72 / ax.figure.dpi  # points for a pixel
    centres = dict(enumerate(picture.centres))
    halves = nx.DiGraph([pair for arrow in picture.arrows for pair in pairwise(arrow.way)])
    for arrow in picture.arrows:
        (first, last), line = pairwise(arrow.way), {"ax": ax, "width": scale, "edge_color": LINE, "node_size": 0}
        line["connectionstyle"] = arrow.style
        nx.draw_networkx_edges(halves, centres, [first], arrowstyle="-", **line)
        line |= {"arrowstyle": "-|>", "arrowsize": 9 * scale, "min_target_margin": arrow.margin * scale}
        nx.draw_networkx_edges(halves, centres, [last], **line)
    for number, (box, (x, y)) in enumerate(zip(picture.boxes, picture.centres.tolist(), strict=True)):
        (width, height), (fill, outline) = box.size, COLORS[box.role]
        shape: Any = {"boxstyle": "round,pad=0,rounding_size=6", "fc": fill, "ec": outline, "lw": scale}
        ax.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, zorder=2, **shape))
        texts = nx.draw_networkx_labels(halves, centres, {number: box.shown}, box.font * scale, INK, ax=ax)
        texts[number].set_parse_math(False)  # a "$" is a "$"
    for y, color, text in picture.below:
        ax.text(MARGIN, y, text, color=color, fontsize=FONT * scale)
    return ax
